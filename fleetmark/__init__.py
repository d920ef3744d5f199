"""Fleetmark: what a server is worth, measured."""

from typing import Any


def __getattr__(name: str) -> Any:
    """``__version__``: looked up where it is asked for, as looking takes longer than loading this package."""
    if name != "__version__":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib.metadata import PackageNotFoundError, version

    try:
        globals()[name] = version("fleetmark")
    except PackageNotFoundError:  # a source tree that was never installed
        globals()[name] = "0+unknown"
    return globals()[name]
