"""The version of this source: from the tag and the commit, from an sdist's own record, or the next release's.

At the tag v0.2.0 it is 0.2.0; five commits later 0.2.1.dev5+gCOMMIT; without any tag 0.2.0.dev0+gCOMMIT. Hatchling
evaluates ``__version__`` when it builds; ``python scripts/version.py`` prints it.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

NEXT = "0.2.0"  # before its tag exists
ROOT = Path(__file__).resolve().parents[1]


def version(root: Path = ROOT) -> str:
    """Return the version of the source in ``root``. Raise ValueError for a tag that is not a version."""
    if (root / ".git").exists():
        tagged = _git(root, "describe", "--tags", "--long", "--abbrev=8", "--match", "v[0-9]*")
        if tagged:
            return _after(*tagged.rsplit("-", 2))
        if commit := _git(root, "rev-parse", "--short=8", "HEAD"):
            return f"{NEXT}.dev0+g{commit}"
    record = root / "PKG-INFO"  # of an sdist
    match = re.search(r"^Version: (\S+)$", record.read_text("utf-8"), re.MULTILINE) if record.exists() else None
    return match[1] if match else f"{NEXT}.dev0"


def _after(tag: str, commits: str, commit: str) -> str:
    match = re.fullmatch(r"v(\d+\.\d+)\.(\d+)((?:a|b|rc)\d+)?", tag)
    if not match:
        raise ValueError(f"the tag {tag} is not a version: write it as v0.2.0 or v0.2.0rc1")
    if commits == "0":
        return tag[1:]
    patch = int(match[2]) + (0 if match[3] else 1)  # a release follows its candidates
    return f"{match[1]}.{patch}.dev{commits}+{commit}"


def _git(root: Path, *words: str) -> str:
    try:
        done = subprocess.run(["git", "-C", str(root), *words], capture_output=True, text=True, check=False)
    except OSError:
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


__version__ = version()

if __name__ == "__main__":
    sys.stdout.write(f"{__version__}\n")
