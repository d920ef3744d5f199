"""Reads small files of /proc and /sys, where they can be read.

Standard library only, Python 3.6 and later.
"""


def read(path, limit=1 << 20):
    """The text of a file, None where it is absent or unreadable (many sysfs files answer an error: 'not now')."""
    try:
        with open(path, "rb") as file:
            return file.read(limit).decode("utf-8", "replace")
    except OSError:
        return None


def first_stanza(path):
    """Text up to the first empty line, in small reads: the kernel disturbs each core whose stanza is read."""
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
