"""Declare the public interface of Fleetmark for type checkers."""

from fleetmark.api import Comparison as Comparison
from fleetmark.api import FleetmarkError as FleetmarkError
from fleetmark.api import Record as Record
from fleetmark.api import open as open
from fleetmark.api import parse as parse

__version__: str
