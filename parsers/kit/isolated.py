"""Run one parser from outside the package: ``python -m parsers.kit.isolated FILE TOOL COMMAND``.

stdin is the tool's output. The reply is one JSON object on stdout: ``parsed``, ``refused`` (a ParseError) or
``error``. Text that the parser prints goes to stderr.
"""

from __future__ import annotations

import importlib.util
import inspect
import json
import os
import resource
import sys
import traceback
from dataclasses import asdict
from pathlib import Path
from types import ModuleType
from typing import Any

from fleetmark.base.errors import ParseError
from fleetmark.base.measurement import Parsed

MEMORY_BYTES = 2 << 30
CPU_S = 60
_LONGEST = 300  # maximum length of an error message
_LIMITS = {
    resource.RLIMIT_AS: MEMORY_BYTES,
    resource.RLIMIT_CPU: CPU_S,
    resource.RLIMIT_FSIZE: 0,  # a parser may not write files
    resource.RLIMIT_CORE: 0,
    resource.RLIMIT_NOFILE: 64,
}


def main() -> None:
    """Parse stdin with the parser named on the command line, and print the reply."""
    path, tool, command = sys.argv[1:4]
    with os.fdopen(os.dup(1), "w", encoding="utf-8") as reply:
        os.dup2(2, 1)
        _limit()
        answer = _answer(Path(path), tool, json.loads(command))
        try:
            text = json.dumps(answer)
        except (TypeError, ValueError, RecursionError) as error:
            text = json.dumps({"error": f"returned values that are not plain text or numbers: {error}"[:_LONGEST]})
        reply.write(text)
        reply.flush()
    os._exit(0)  # skip the parser's exit handlers


def _limit() -> None:
    for kind, value in _LIMITS.items():
        hard = resource.getrlimit(kind)[1]
        least = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(kind, (least, least))


def _answer(path: Path, tool: str, command: list[str]) -> dict[str, Any]:
    try:
        parse = load(path, tool).parse
        parameters = list(inspect.signature(parse).parameters)
        if parameters[:2] != ["raw", "command"]:
            return {"error": f"has parse({', '.join(parameters)}): write parse(raw: bytes, command=())"}
        raw = sys.stdin.buffer.read()
        parsed = parse(raw, tuple(command))
        if not isinstance(parsed, Parsed):
            return {"error": f"returned {type(parsed).__name__} instead of Parsed"}
        return {"parsed": asdict(parsed)}
    except ParseError as error:
        return {"refused": [error.expected, error.line, error.got]}
    except MemoryError:
        return {"error": f"needs more than {MEMORY_BYTES >> 30} GiB of memory"}
    except BaseException as error:  # noqa: BLE001  # includes SystemExit: the caller waits for a reply
        return {"error": _sentence(error, path)}


def load(path: Path, tool: str) -> ModuleType:
    """Return the parser in ``path`` as a module. Raise AttributeError if it has no parse(), and any error it raises."""
    places = [str(path.parent)] if path.name == "__init__.py" else None
    spec = importlib.util.spec_from_file_location(tool, path, submodule_search_locations=places)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path} is not a Python module")
    module = importlib.util.module_from_spec(spec)
    sys.modules[tool] = module
    spec.loader.exec_module(module)
    if not callable(getattr(module, "parse", None)):
        raise AttributeError("it does not define parse(raw, command=())")
    return module


def _sentence(error: BaseException, path: Path) -> str:
    """Return the type and text of an error, with the last line of the parser in its traceback."""
    words = (str(error).splitlines() or [""])[0][:_LONGEST]
    frames = [f for f in traceback.extract_tb(error.__traceback__) if Path(f.filename).is_relative_to(path.parent)]
    line = f" on line {frames[-1].lineno}" if frames else ""
    if isinstance(error, SyntaxError) and error.lineno:
        line, words = f" on line {error.lineno}", error.msg
    return f"raised {type(error).__name__}{line}: {words}" if words else f"raised {type(error).__name__}{line}"


if __name__ == "__main__":
    main()
