"""Find the hosts of a pair, ``h1>h2``, and name pairs in a summary."""

from __future__ import annotations

from collections.abc import Container, Mapping

import numpy as np
import pandas as pd


def peer(host: str, subject: str, hosts: Container[str]) -> str | None:
    """Return the other host of a pair, or None if ``subject`` is not a pair with ``host``. Names may contain ``>``."""
    for other in (
        subject.removeprefix(f"{host}>") if subject.startswith(f"{host}>") else host,
        subject.removesuffix(f">{host}") if subject.endswith(f">{host}") else host,
    ):
        if other != host and other in hosts:
            return other
    return None


def pair_subjects(frame: pd.DataFrame, generation: Mapping[str, str | None]) -> pd.Series:
    """Return the ``subject`` of each row of ``frame``, which also has ``host``. The index stays the same.

    A pair becomes ``to GENERATION`` of the peer, or ``to others`` if it has none. Only hosts in ``generation`` form
    pairs.
    """
    code, subjects = pd.factorize(frame["subject"])
    pairs = np.flatnonzero(np.array([">" in s for s in subjects] or [False])[code])
    if not len(pairs):
        return frame["subject"]
    names = np.array(subjects, dtype=object)[code]
    called: dict[tuple[str, str], str] = {}
    for host, subject in dict.fromkeys(zip(frame["host"].iloc[pairs], names[pairs], strict=True)):
        other = peer(host, subject, generation)
        called[host, subject] = subject if other is None else f"to {generation[other] or 'others'}"
    names[pairs] = [called[key] for key in zip(frame["host"].iloc[pairs], names[pairs], strict=True)]
    return pd.Series(names, index=frame.index, dtype=object)
