"""Find workload folders outside the package: from ``--workloads``, the environment or installed packages.

A folder holds ``NAME.yml``, ``parsers/NAME.py``, ``roles/NAME/``, ``suites/NAME.yml`` and ``docs/NAME.md``. Only the
user's choice and the installed packages decide which folders are used; a record cannot add any.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from fleetmark.base.errors import FleetmarkError

VARIABLE = "FLEETMARK_WORKLOADS"
GROUP = "fleetmark.workloads"  # entry point group


@dataclass(frozen=True, slots=True)
class Extension:
    """A workload folder. ``package`` and ``version``: the installed distribution that provides it, if any."""

    path: Path
    package: str = ""
    version: str = ""

    @property
    def name(self) -> str:
        """Return the name to store in a record. It contains no path of this machine."""
        return self.package or self.path.name


def state() -> str:
    """Return the folders that the user chose, as stored in the environment; use it as a cache key."""
    return os.environ.get(VARIABLE, "")


def choose(folders: Iterable[Path]) -> None:
    """Add ``folders`` for this process and its children. Raise FleetmarkError if one is invalid."""
    paths = [str(_checked(Path(folder), "--workloads")) for folder in folders]
    os.environ[VARIABLE] = os.pathsep.join(dict.fromkeys([*paths, *_words(state())]))


def chosen() -> Sequence[Extension]:
    """Return the folders that the user chose. Raise FleetmarkError if one is invalid."""
    return [Extension(_checked(Path(word), VARIABLE)) for word in _words(state())]


def extensions() -> list[Extension]:
    """Return all folders, with those of installed packages last. Raise FleetmarkError if one is invalid."""
    selected = list(chosen())
    paths = {extension.path for extension in selected}
    return selected + [extension for extension in _installed(_import_path()) if extension.path not in paths]


def gather(noun: str, built_in: Mapping[str, Path], inside: str = "") -> dict[str, Path]:
    """Map names to files: Fleetmark's ``built_in`` files and those in the folder ``inside`` of each extension.

    ``noun``: the term for messages, such as manifest, suite or parser. A file's name is its stem, and a Python package
    counts as one file. Raise FleetmarkError if two folders use the same name.
    """
    paths = dict(built_in)
    for extension in extensions():
        for path in _files(extension.path / inside, ".py" if inside == "parsers" else ".yml"):
            name = path.parent.name if path.name == "__init__.py" else path.stem
            if name in paths and paths[name] != path:
                raise FleetmarkError(
                    f"{noun} {name}: two files have this name, {paths[name]} and {path}; rename one of them"
                )
            paths[name] = path
    return paths


def owner(path: Path) -> Extension | None:
    """Return the extension that provides a manifest, parser or suite, or None if Fleetmark itself provides it.

    Other files in the folder do not count: the folder may contain the virtual environment that runs Fleetmark.
    """
    return next((extension for extension in extensions() if _is_part(path, extension)), None)


def code_files() -> list[Path]:
    """Return all manifests and parser modules of the extensions."""
    return [
        path
        for extension in extensions()
        for path in [*_files(extension.path, ".yml"), *sorted((extension.path / "parsers").rglob("*.py"))]
    ]


def _is_part(path: Path, extension: Extension) -> bool:
    if not path.is_relative_to(extension.path):
        return False
    inside = path.relative_to(extension.path).parts
    return len(inside) == 1 or inside[0] in ("parsers", "suites")


def _words(text: str) -> list[str]:
    return [word for word in text.split(os.pathsep) if word.strip()]


def _checked(folder: Path, source: str) -> Path:
    path = folder.expanduser().resolve()
    if os.pathsep in str(path):
        raise FleetmarkError(f"{source} {folder}: the path contains {os.pathsep!r}; rename the folder")
    if not path.is_dir():
        problem = "it is a file" if path.exists() else "it does not exist"
        raise FleetmarkError(
            f"{source} {folder}: {problem}; choose a folder with manifests (fleetmark workloads new NAME)"
        )
    return path


def _files(folder: Path, suffix: str) -> Iterator[Path]:
    if not folder.is_dir():
        return
    for path in sorted(folder.iterdir()):
        if path.suffix == suffix and not path.name.startswith(("_", ".")):
            yield path
        elif suffix == ".py" and (path / "__init__.py").is_file():
            yield path / "__init__.py"


def _import_path() -> tuple[tuple[str, int], ...]:
    """Return the folders of ``sys.path`` with their modification times, which change when a package is installed."""
    folders = [(folder, Path(folder)) for folder in sys.path]
    return tuple((folder, path.stat().st_mtime_ns) for folder, path in folders if path.is_dir())


@cache
def _installed(_: tuple[tuple[str, int], ...]) -> list[Extension]:
    """Return the folders that installed packages declare, without importing the packages' code.

    Reading the metadata of all packages takes milliseconds, so the result is cached for each import path.
    """
    import importlib.metadata
    import importlib.util

    listed = []
    for point in importlib.metadata.entry_points(group=GROUP):
        top, *rest = point.module.split(".")
        spec = importlib.util.find_spec(top)
        places = list(spec.submodule_search_locations or ()) if spec else []
        folder = Path(places[0], *rest) if places else None
        distribution = point.dist
        package = distribution.name if distribution else point.name
        if folder is None or not folder.is_dir():
            raise FleetmarkError(
                f"the installed package {package}: its entry point {GROUP} names {point.value}, which is not a package "
                f"with a folder; correct it, or uninstall it: pip uninstall {package}"
            )
        listed.append(Extension(folder.resolve(), package, distribution.version if distribution else ""))
    return listed
