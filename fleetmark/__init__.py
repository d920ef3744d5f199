"""Fleetmark: measure servers and turn the results into decisions.

The public interface is ``open``, ``parse``, ``Record``, ``Comparison`` and ``FleetmarkError``. Each name loads on first
use, because ``fleetmark --help`` needs none of them. ``__init__.pyi`` declares them for type checkers.
"""

from typing import Any

_PUBLIC = ("Comparison", "FleetmarkError", "Record", "open", "parse")


def __dir__() -> list[str]:
    return sorted([*globals(), "__version__", *_PUBLIC])


def __getattr__(name: str) -> Any:
    """Load ``__version__`` or a name of the public interface when it is first used."""
    if name in _PUBLIC:
        from importlib import import_module

        globals().update({public: getattr(import_module("fleetmark.api"), public) for public in _PUBLIC})
        return globals()[name]
    if name != "__version__":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib.metadata import PackageNotFoundError, version

    try:
        globals()[name] = version("fleetmark")
    except PackageNotFoundError:  # a source tree that was never installed
        globals()[name] = "0+unknown"
    return globals()[name]
