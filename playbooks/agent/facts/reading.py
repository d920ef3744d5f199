"""Read small files in /proc and /sys.

Standard library only, Python 3.6 and later.
"""


def read(path, limit=1 << 20):
    """Return the text of a file, or None if it is missing or unreadable. Reading many sysfs files gives an error."""
    try:
        with open(path, "rb") as file:
            return file.read(limit).decode("utf-8", "replace")
    except OSError:
        return None


def first_stanza(path):
    """Return the text up to the first empty line in small reads, because reading a stanza disturbs its core."""
    text = b""
    try:
        with open(path, "rb", 0) as file:
            while b"\n\n" not in text:
                more = file.read(1024)
                if not more:
                    break
                text += more
    except OSError:
        return None
    return text.split(b"\n\n")[0].decode("utf-8", "replace")
