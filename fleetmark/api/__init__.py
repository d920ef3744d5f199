"""Offer the public interface of the package. Programs import these names from ``fleetmark``, not from here."""

from fleetmark.api.comparison import Comparison
from fleetmark.api.output import parse
from fleetmark.api.record import Record, open
from fleetmark.base.errors import FleetmarkError

__all__ = ["Comparison", "FleetmarkError", "Record", "open", "parse"]
