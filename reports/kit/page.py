"""Fill self-contained HTML pages from templates: Fleetmark's, and those of a user's folder, which take precedence."""

from __future__ import annotations

import base64
import contextlib
import hashlib
import os
import stat
import traceback
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import jinja2
import jinja2.bccache
import jinja2.sandbox
from markupsafe import Markup, escape

from fleetmark.base.errors import FleetmarkError
from fleetmark.base.text import Message, count
from fleetmark.base.words import word
from fleetmark.reports.kit import charts
from fleetmark.reports.kit import format as fmt
from fleetmark.reports.kit.language import Language
from fleetmark.reports.kit.tabular import Cell

Medium = Literal["screen", "paper"]
_HERE = Path(__file__).parent / "templates"
# The scripts in this order. The hash of all of them allows nothing else to run in the page.
_SCRIPTS = ("state.js", "tables.js", "detail.js", "page.js", "strip.js")
_SCRIPT = "\n".join((_HERE / name).read_text("utf-8") for name in _SCRIPTS)


def page(
    name: str,
    context: Mapping[str, Any],
    language: Language,
    *,
    templates: Path | None = None,
    medium: Medium = "screen",
) -> str:
    """Return the page of the template ``name``, which extends ``base.html.j2``, filled with ``context``.

    The common values are ``_``, ``medium``, styles, script and logo. The other arguments and the errors are those of
    ``reports.formats.html.render``.
    """
    if templates is not None and not templates.is_dir():
        raise FleetmarkError(f"--templates {templates}: no such folder")
    shared: dict[str, Any] = {
        "_": _translator(language),
        "medium": medium,
        "script": Markup(_SCRIPT),
        "script_hash": base64.b64encode(hashlib.sha256(_SCRIPT.encode()).digest()).decode(),
        "faces": [],  # a page that compares nothing and has no figures of single hosts
        "embedded": "",
        "site": None,
        "strip": "",
        "origins": "",
        "svg": lambda chart: chart.svg,
        "unique": _unique_ids(),
    }
    context = {**shared, **_own(templates, medium), **context}
    environment = _ENVIRONMENT if templates is None else _environment(templates)
    try:
        return environment.get_template(name).render(context)
    except jinja2.TemplateNotFound as e:
        raise FleetmarkError(f"--templates {templates}: there is no template {e.name}") from e
    except jinja2.TemplateSyntaxError as e:
        raise FleetmarkError(f"{e.filename or e.name} line {e.lineno}: {e.message}") from e
    except Exception as e:
        line_place = _line_of(e, templates)
        if line_place is None:
            raise  # an error in Fleetmark, not in the user's templates
        raise FleetmarkError(f"{line_place}: {e}") from e


def _unique_ids() -> Callable[[str], str]:
    """Return a function that makes ids unique on a page by appending a number."""
    seen: Counter[str] = Counter()

    def unique(name: str) -> str:
        seen[name] += 1
        return name if seen[name] == 1 else f"{name}-{seen[name]}"

    return unique


def _line_of(error: Exception, templates: Path | None) -> str | None:
    """Return ``FILE line N``: where in a user's template ``error`` was raised; None if it was raised elsewhere."""
    if templates is None:
        return None
    frames = [f for f in traceback.extract_tb(error.__traceback__) if f.filename.endswith((".j2", ".css"))]
    user_frames = [f for f in frames if Path(f.filename).is_relative_to(templates)]
    return f"{user_frames[-1].filename} line {user_frames[-1].lineno}" if user_frames else None


def _translator(language: Language) -> Callable[..., str]:
    def translate(text: str, **values: Any) -> str:
        """Return ``text`` in the reader's language. Markup in ``values`` stays markup; other text is escaped."""
        if any(isinstance(v, Markup) for v in values.values()):
            translated = {k: language(v) if isinstance(v, Message) else v for k, v in values.items()}
            return Markup(escape(language(text))).format(**translated)
        return language(text, **values)

    return translate


def _own(templates: Path | None, medium: Medium) -> dict[str, Any]:
    """Return styles and logo: Fleetmark's, and the user's if the folder has them."""
    sheets = [_HERE / "page.css", *([_HERE / "paper.css"] if medium == "paper" else [])]
    logo = templates and templates / "logo.svg"
    colours = templates and templates / "colours.css"
    try:
        style = "\n".join(p.read_text("utf-8") for p in [*sheets, *([colours] if colours and colours.exists() else [])])
        data = base64.b64encode(logo.read_bytes()).decode() if logo and logo.exists() else ""
    except (OSError, UnicodeDecodeError) as e:
        raise FleetmarkError(f"--templates {templates}: {e}") from e
    return {
        # A style element ends at the first </ followed by its name, wherever it is.
        "style": Markup(style.replace("</", "<\\/")),
        "logo": f"data:image/svg+xml;base64,{data}" if data else "",
    }


def _environment(templates: Path | None) -> jinja2.Environment:
    """Return the template environment.

    With a user's folder it is sandboxed, so templates reach nothing outside the page.
    """
    ours = jinja2.FileSystemLoader(_HERE)
    loaders: list[jinja2.BaseLoader] = [ours, jinja2.PrefixLoader({"fleetmark": ours})]
    if templates is not None:
        loaders.insert(0, jinja2.FileSystemLoader(templates))
    kind = jinja2.Environment if templates is None else jinja2.sandbox.ImmutableSandboxedEnvironment
    environment = kind(
        loader=jinja2.ChoiceLoader(loaders),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        bytecode_cache=_compiled() if templates is None else None,
    )
    environment.filters |= {
        "clean": fmt.clean,
        "percent": fmt.percent,
        "duration": fmt.duration,
        "moment": fmt.moment,
        "count": count,
        "better": fmt.better,
        "say": _say,
        "minus": fmt.with_minus,
        "titled": charts.titled,
        "unbroken": _unbroken,
        "breakable": _breakable,
        "doubtful": _doubtful,
    }
    return environment


def _compiled() -> jinja2.BytecodeCache | None:
    """Return the folder for compiled templates; None if no folder belongs to this user alone.

    Compiling takes a tenth of a short campaign's time. The files in the folder are executed, so nobody else may write
    to it.
    """
    folder = Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "fleetmark" / "templates"
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        details = folder.lstat()
    except (OSError, RuntimeError):  # the user has no home folder
        return None
    if not stat.S_ISDIR(details.st_mode) or details.st_uid != os.geteuid() or details.st_mode & 0o077:
        return None
    return _Cache(str(folder))


class _Cache(jinja2.FileSystemBytecodeCache):
    def dump_bytecode(self, bucket: jinja2.bccache.Bucket) -> None:
        with contextlib.suppress(OSError):  # such as a full disk; the page does not need the cache
            super().dump_bytecode(bucket)


@jinja2.pass_context
def _say(context: jinja2.runtime.Context, text: object) -> str:
    """Return a Fleetmark sentence or word in the reader's language; in other text, only clean control characters."""
    cleaned = fmt.clean(text)
    return str(context["_"](cleaned if isinstance(cleaned, Message) else word(cleaned)))


def _doubtful(row: Sequence[Cell]) -> bool:
    """Return whether a row of a table has bad or uncertain news."""
    return any(cell.tone in ("bad", "unsure") for cell in row)


def _unbroken(command: str) -> Markup:
    """Return a command in which no line breaks within an option's leading dashes."""
    words = (escape(part) for part in fmt.clean(command).split(" "))
    return Markup(" ").join(Markup("<span>{}</span>").format(w) if w.startswith("-") else w for w in words)


def _breakable(name: str) -> Markup:
    """Return a name that may break after an underscore, so that the browser does not break it within a word."""
    return Markup("_<wbr>").join(escape(part) for part in fmt.clean(name).split("_"))


_ENVIRONMENT = _environment(None)
