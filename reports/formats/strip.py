"""Write a decision strip as JSON within a page: figures with full precision, and words in the reader's language."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict

from fleetmark.base.text import Message, message
from fleetmark.reports.kit.language import Language
from fleetmark.reports.kit.strip import Strip

_WORDS: Mapping[str, Message] = {
    "title": message("Decide: change mix, prices, power or numbers"),
    "servers": message("servers to replace"),
    "years": message("years of service"),
    "energy": message("price of 1 kWh"),
    "mix": message("Work mix, shares of server-hours"),
    "side": message("server"),
    "price": message("price of a server"),
    "watts": message("power, W"),
    "rack_units": message("rack units"),
    "ratio": message("ratio"),
    "needed": message("servers needed"),
    "total": message("total"),
    "yearly": message("per year"),
    "power": message("power, kW"),
    "units": message("all rack units"),
    "even": message("break-even price"),
    "change": message("change"),
    "reset": message("reset"),
    "of": message("{name}, {side}"),
    "equal": message("No mix was given: the shares are equal until you set yours."),
    "sums": message("The shares sum to {sum}%; they are scaled to 100%."),
    "work": message("Work: {work}."),
    "nothing": message("Give at least one class a share."),
    "about": message("About: hosts lack some benchmarks, or their sizes differ; --mix gives the exact figure."),
    "again": message("No interval for this mix: only the hosts' figures give one. For the interval, run:"),
    "fixed": message("Brackets: 95% confidence intervals of the ratio, as servers or prices."),
    "invalid": message("not a number above 0"),
}


def _of_pieces(piece: str) -> dict[str, Message]:
    """Return the words to use instead of those for servers."""
    return {
        "servers": message("{piece}s to replace", piece=piece),
        "price": message("price of one {piece}", piece=piece),
        "needed": message("{piece}s needed", piece=piece),
        "mix": message("Work mix, shares of {piece}-hours", piece=piece),
    }


def embedded(strip: Strip, _: Language) -> str:
    """Return the strip as JSON. The JSON text cannot close the enclosing script element."""
    words = {**_WORDS, **(_of_pieces(strip.piece) if strip.piece else {})}
    record = {
        **asdict(strip),
        "words": {key: _(text) for key, text in words.items()},
    }
    for view in record["views"]:
        view["classes"] = {name: _(title) for name, title in view["classes"].items()}
    text = json.dumps(record, ensure_ascii=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")
