"""What was measured between two hosts, ``h1>h2``: which it is of, and what it is called in a summary."""

from __future__ import annotations

from collections.abc import Container, Mapping

import numpy as np
import pandas as pd


def peer(host: str, subject: str, hosts: Container[str]) -> str | None:
    """The other host of a pair, None where ``subject`` is no pair with ``host``. Names may hold ``>`` themselves."""
    for other in (
        subject.removeprefix(f"{host}>") if subject.startswith(f"{host}>") else host,
        subject.removesuffix(f">{host}") if subject.endswith(f">{host}") else host,
    ):
        if other != host and other in hosts:
            return other
    return None


def pair_subjects(frame: pd.DataFrame, generation: Mapping[str, str | None]) -> pd.Series:
    """The ``subject`` of each row of ``frame`` (which has ``host`` too), pairs as ``to GENERATION`` of the peer (``to
    others`` for peers without one); same index. ``generation`` names every host: only names in it make a pair.
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
