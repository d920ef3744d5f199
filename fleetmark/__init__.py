"""Fleetmark: what a server is worth, measured."""

from importlib.metadata import PackageNotFoundError, version

try:
    __version__ = version("fleetmark")
except PackageNotFoundError:  # a source tree that was never installed
    __version__ = "0+unknown"
