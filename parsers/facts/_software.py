"""Read the versions of the software for multi-node GPU work: CUDA, NCCL, ROCm, RCCL, CANN, MPI."""

from __future__ import annotations

import re

from fleetmark.parsers.facts._common import text_or_none
from fleetmark.parsers.facts._raw import Raw

_LONGEST = 10_000  # characters to read; versions are on the first lines
_CANN = "/ascend_toolkit_install.info"
_OF_CANN = r"^version=([A-Za-z0-9.]{1,40})\s*$"
_MPI = (
    (r"\(Open(?:RTE| MPI)\) ([\w.]+)", "Open MPI"),
    (r"Intel\(R\) MPI Library.*Version (\S+(?: Update \d+)?)", "Intel MPI"),
    (r"HYDRA build details:\s+Version:\s+(\S+)", "Hydra"),  # MPICH and MVAPICH
)


def software(raw: Raw) -> dict[str, str]:
    """Return the versions of installed software by name.

    The names are ``cuda``, ``nccl``, ``rocm``, ``rccl``, ``cann`` and ``mpi`` (with the kind of MPI).
    """
    versions_by_name = {
        "cuda": _match(r"\brelease ([\d.]+)", raw.out("nvcc")),
        "rocm": _match(r"^([\d.]+)", text_or_none(raw.file("/opt/rocm/.info/version"))),
        "cann": next(
            (v for file, t in raw.files().items() if file.endswith(_CANN) and (v := _match(_OF_CANN, t))), None
        ),
        "mpi": next((f"{kind} {v}" for p, kind in _MPI if (v := _match(p, raw.out("mpirun")))), None),
    }
    for library in ("nccl", "rccl"):
        names = raw.table("libraries").get(f"lib{library}.so") or []
        versions = sorted({v for name in names if (v := _match(r"\.so\.([\d.]+)$", str(name)))})
        versions_by_name[library] = ", ".join(versions) or None
    return {name: version for name, version in versions_by_name.items() if version}


def _match(pattern: str, text: str | None) -> str | None:
    match = re.search(pattern, (text or "")[:_LONGEST], re.MULTILINE)
    return match[1] if match else None
