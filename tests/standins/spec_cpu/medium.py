"""Makes the medium of a SPEC CPU that is none: an ISO image, or a tar, with an install.sh and a runcpu that play SPEC's.

    python tests/standins/spec_cpu/medium.py OUT.iso [2017|2026] ['{"seconds": 0.1, ...}']

``standin.json`` in the installed tree sets its behaviour; ``/etc/spec_standin.json`` on a host overrides it:
``seconds``, what a benchmark takes; ``end``, benchmark to CE, RE, VE or hang (``"502.gcc_r peak": "CE"`` for one tune);
``install``: ``fail`` ends the installation half way.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent


def make(out: Path, release: int = 2017, behaviour: Mapping[str, Any] | None = None) -> Path:
    """The medium of ``release`` at ``out``: a tar where its name says so, an ISO image otherwise."""
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        for script in ("install.sh", "shrc"):
            shutil.copy(HERE / script, root / script)
        (root / "install.sh").chmod(0o755)
        (root / "tools").mkdir()
        shutil.copy(HERE / "unpack.sh", root / "tools" / "unpack.sh")
        (root / "tools" / "unpack.sh").chmod(0o555)  # as on a medium: an unpacked one must still be executable
        kit = root / "install_archives"
        kit.mkdir()
        for source in ("runcpu.py", "specconfig.py", "specreports.py"):
            shutil.copy(HERE / source, kit / source)
        suites = json.loads((HERE / "benchmarks.json").read_text())[str(release)]
        content = {
            "release": release,
            "version": "1.1.9" if release == 2017 else "1.0.1",
            "suites": suites,
            "seconds": 0.1,
        }
        (kit / "standin.json").write_text(json.dumps({**content, **(behaviour or {})}))
        if out.suffix in (".tar", ".tgz", ".xz"):
            with tarfile.open(out, "w") as tar:
                tar.add(root, arcname=f"cpu{release}")
        else:
            subprocess.run(
                ["xorriso", "-as", "mkisofs", "-quiet", "-R", "-V", f"CPU{release}", "-o", str(out), str(root)],
                check=True,
                capture_output=True,
            )
    return out


if __name__ == "__main__":
    arguments = sys.argv[1:]
    if not 1 <= len(arguments) <= 3:
        sys.exit(__doc__)
    make(
        Path(arguments[0]),
        int(arguments[1]) if len(arguments) > 1 else 2017,
        json.loads(arguments[2]) if len(arguments) > 2 else None,
    )
