"""Name the user of this process."""

from __future__ import annotations

import getpass
import os


def user_name() -> str:
    """Return the user's name, or the number of a user without a name, as in containers."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return str(os.getuid())
