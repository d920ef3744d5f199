"""What spreadsheets and terminals show of what we write."""

from __future__ import annotations

import io
import re
from typing import Any

from rich.console import Console

from fleetmark.reports.kit.charts import Chart, to_svg


def drawn(chart: Chart, number: int = 0) -> str:
    """Return the SVG of a chart."""
    return chart.svg or to_svg(chart.spec(), number) if chart.spec else chart.svg


def shown(value: Any, form: str) -> str:
    """What a spreadsheet shows for a number, for the formats that our workbooks use."""
    for part in form.split(";"):
        condition = re.match(r"\[>=([\d.]+)\]", part)
        if condition and value < float(condition[1]):
            continue
        pattern = part[condition.end() :] if condition else part
        digits = len(pattern.partition(".")[2].rstrip("%"))
        if pattern.endswith("%"):
            return f"{100 * value:,.{digits}f}%"
        grouped = "," if "," in pattern else ""
        return format(value, f"{grouped}.{digits}f")
    raise AssertionError(f"{form} shows nothing for {value}")


def printed(parts: list[Any], width: int = 160) -> str:
    """What a terminal of ``width`` columns shows of ``parts``."""
    out = io.StringIO()
    console = Console(file=out, width=width)
    for part in parts:
        console.print(part)
    return out.getvalue()
