"""A results root in an object store: a folder here holds a copy of it, which verbs use as any root."""

from fleetmark.record.store.copy import Need, StoreCopy, copy_of
from fleetmark.record.store.lock import held
from fleetmark.record.store.place import name_of, url_of

__all__ = ["Need", "StoreCopy", "copy_of", "held", "name_of", "url_of"]
