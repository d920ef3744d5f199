"""Use a results root in an object store through a local copy, which verbs treat like any other root."""

from fleetmark.record.store.copy import Need, StoreCopy, copy_of
from fleetmark.record.store.lock import held
from fleetmark.record.store.place import name_of, url_of

__all__ = ["Need", "StoreCopy", "copy_of", "held", "name_of", "url_of"]
