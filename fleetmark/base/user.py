"""Who runs this process."""

from __future__ import annotations

import getpass
import os


def user_name() -> str:
    """The user's name; the number of one without a name, as in containers."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return str(os.getuid())
