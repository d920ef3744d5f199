"""The layout of the plan's workbook: its tabs, and the blocks of cells that formulas refer to."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fleetmark.base.text import Message, message
from fleetmark.demand import equipment, tables
from fleetmark.planner.capacity.question import KINDS
from fleetmark.reports.kit.workbook import Book, Head, Sheet, cell
from fleetmark.reports.plan.xlsx.numbers import Numbers

COMBO = 11  # columns of Allocation before the periods
POOL = 4  # columns of Pools before the periods
SPARE = 5  # empty rows below a table of inputs, for new entries
HEAD = 4  # the row of heads of a tab's only table; explanations are above it

# Roles of tabs by colour: inputs, the solver's decisions, live results, records.
_INPUT, _SOLVER, _LIVE, _RECORD = "#BF9000", "#70AD47", "#0072B2", "#8EA0B8"

TABS: Mapping[str, tuple[Message, str, Message]] = {
    "readme": (
        message("Readme & provenance"),
        _RECORD,
        message("The answer, what each tab is, how to work with this workbook, and where everything is from."),
    ),
    "charts": (
        message("Charts"),
        _LIVE,
        message("Demand against capacity, cost by year, power by site. They follow the cells."),
    ),
    "inputs": (
        message("Inputs"),
        _INPUT,
        message("Prices and rates that hold everywhere, and the periods with their budgets."),
    ),
    "sites": (
        message("Sites"),
        _INPUT,
        message(
            "Limits of each site, what it fails together with, and what may run there. New sites go in the empty rows."
        ),
    ),
    "fleet": (
        message("Fleet"),
        _INPUT,
        message("Servers in place at the start, and when they reach their age limit. New rows go in the empty ones."),
    ),
    "benchmarks": (
        message("Benchmarks"),
        _RECORD,
        message("The worth of each SKU, measured or given, at the time of the plan."),
    ),
    "equivalence": (
        message("Equivalence"),
        _INPUT,
        message("What one server of a SKU serves of a workload at full use, with its 95% interval: exp(ln E ± t se)."),
    ),
    "demand": (
        message("Demand"),
        _INPUT,
        message(
            "Demand by workload and period, its quantiles, what is planned for, and the capacity that the plan gives."
        ),
    ),
    "skus": (
        message("SKU & TCO"),
        _INPUT,
        message(
            "What servers cost, draw and need, and what one costs over all periods. New SKUs go in the empty rows."
        ),
    ),
    "utilisation": (
        message("Utilisation"),
        _INPUT,
        message("How far servers are used for each workload: given, or the most that keeps its latency."),
    ),
    "sizing": (
        message("Sizing"),
        _LIVE,
        message("Servers of one SKU that the planned demand of one workload alone needs: D / (E u), rounded up."),
    ),
    "lost": (
        message("N+1"),
        _LIVE,
        message(
            "Capacity left when the failure domain of a site is gone, and how far it lies above the planned demand."
        ),
    ),
    "rack": (
        message("Rack & power"),
        _LIVE,
        message(
            "Power at the peak of all installed servers, rack units, ports and money spent, against each site's limits."
        ),
    ),
    "refresh": (
        message("Refresh"),
        _LIVE,
        message("How many servers will have reached their age limit, and how many have been retired, since the start."),
    ),
    "scenarios": (
        message("Scenarios"),
        _LIVE,
        message(
            "Servers of one SKU that one workload would need in a period, by demand and by the ends of E's interval."
        ),
    ),
    "supply": (
        message("Supply"),
        _INPUT,
        message("The most that can be ordered of a SKU or from a vendor. New rows go in the empty ones."),
    ),
    "sensitivity": (
        message("Sensitivity"),
        _LIVE,
        message(
            "What matters: each input moved alone (live), and what was simulated and solved beside the plan (kept)."
        ),
    ),
    "plan": (
        message("Purchase plan"),
        _SOLVER,
        message(
            "What to order, retire and switch on, as the solver decided (green), and what is in place then (live)."
        ),
    ),
    "allocation": (
        message("Allocation"),
        _SOLVER,
        message(
            "Which share of whole servers serves what (green, as the solver decided), and the work that it can do "
            "(live)."
        ),
    ),
    "pools": (
        message("Pools"),
        _SOLVER,
        message("Servers of pools that share none with others: whole, and among the active ones (as solved)."),
    ),
    "cost": (
        message("Cost"),
        _LIVE,
        message("Money by kind and period, its present value, and by year."),
    ),
    "checks": (
        message("Checks"),
        _LIVE,
        message("Every limit of the plan: by how much it is kept (below 0: broken), period by period."),
    ),
}


@dataclass(frozen=True, slots=True)
class Block:
    """A rectangle of cells: (i, j) is its i-th row and j-th column from 0."""

    sheet: Sheet
    row: int
    col: int
    rows: int
    cols: int = 1

    def at(self, i: int, j: int = 0) -> str:
        """The absolute reference of a cell, for formulas of any tab."""
        return self.sheet.at(self.row + i, self.col + j)

    def near(self, i: int, j: int = 0) -> str:
        """The relative reference of a cell, for formulas of the same tab."""
        return cell(self.row + i, self.col + j)

    def across(self, i: int, first: int = 0, last: int | None = None) -> str:
        """A row of cells, for formulas of the same tab."""
        end = self.cols - 1 if last is None else last
        return f"{self.near(i, first)}:{self.near(i, end)}"

    def line(self, i: int) -> str:
        """A row of cells, for formulas of any tab."""
        return self.sheet.span(self.row + i, self.col, self.row + i, self.col + self.cols - 1)

    def down(self, j: int = 0, first: int = 0, last: int | None = None) -> str:
        """A column of cells, for formulas of any tab."""
        end = self.rows - 1 if last is None else last
        return self.sheet.span(self.row + first, self.col + j, self.row + end, self.col + j)

    @property
    def all(self) -> str:
        """The block, for formulas of any tab."""
        return self.sheet.span(self.row, self.col, self.row + self.rows - 1, self.col + self.cols - 1)

    @property
    def here(self) -> str:
        """The block, for conditional formats of the same tab."""
        return f"{self.near(0)}:{self.near(self.rows - 1, self.cols - 1)}"

    # ------------------------------------------------------------ writing

    def live(
        self,
        formula: Callable[[int, int], str],
        value: npt.ArrayLike | Callable[[int, int], float | str | bool | None],
        form: str = "General",
        role: str = "computed",
    ) -> None:
        """Write a formula in every cell, with its value as computed here."""
        values = value if callable(value) else np.asarray(value).reshape(self.rows, self.cols)
        for i in range(self.rows):
            for j in range(self.cols):
                result = values(i, j) if callable(values) else float(values[i, j])
                self.sheet.formula(self.row + i, self.col + j, formula(i, j), result, form, role)

    def numbers(self, value: npt.ArrayLike, form: str = "General", role: str = "input") -> None:
        """Write a number in every cell; NaN leaves it empty."""
        values = np.asarray(value, dtype=float).reshape(self.rows, self.cols)
        for i in range(self.rows):
            for j in range(self.cols):
                self.sheet.number(self.row + i, self.col + j, float(values[i, j]), form, role)


def period_heads(numbers: Numbers) -> list[Head]:
    """A head per period."""
    return [Head(str(name), width=11) for name in numbers.question.periods]


def headed(
    block: Block, title: Message | str, labels: Sequence[Head], numbers: Numbers, last: Sequence[Head] = ()
) -> None:
    """The title and the heads of a block with a column per period; ``labels`` to its left, ``last`` to its right."""
    block.sheet.text(block.row - 2, 0, title, "heading")
    heads = [*labels, *period_heads(numbers), *last]
    block.sheet.heads(block.row - 1, heads)
    right_aligned(block.sheet, block.row - 1, len(labels), heads[len(labels) :])


def right_aligned(sheet: Sheet, row: int, col: int, heads: Sequence[Head]) -> None:
    """Heads above columns of numbers."""
    for place, head in enumerate(heads, col):
        name, unit = sheet.book.words(head.name), sheet.book.words(head.unit)
        sheet.inner.write_string(row, place, f"{name}\n{unit}" if unit else name, sheet.book.style("head of numbers"))


def named(book: Book, name: str, block: Block) -> None:
    """Name a block. Raises ValueError if the book has the name already."""
    result = book.name(name, block.all)
    if result != name:
        raise ValueError(f"the range {name} became {result}")


class Places:
    """The blocks that more than one tab uses."""

    def __init__(self, book: Book, n: Numbers) -> None:
        self.sheets = {key: book.sheet(title, colour) for key, (title, colour, _) in TABS.items()}
        s, q, t = self.sheets, n.question, n.periods
        w, k = len(n.workloads), len(n.sites)

        # Inputs: settings on the left, periods on the right.
        self.settings = Block(s["inputs"], HEAD + 1, 1, 2 + len(tables.settings()))
        self.period = Block(s["inputs"], HEAD + 1, 5, t, 5)  # number, name, begins, weight, budget

        after = len(equipment.sites())
        self.site = Block(s["sites"], HEAD + 1, 0, k + SPARE, after)
        self.runs = Block(s["sites"], HEAD + 1, after, k + SPARE, w)
        after += w
        self.site_domain = Block(s["sites"], HEAD + 1, after, k, n.most_domains)
        after += n.most_domains
        self.site_list = Block(s["sites"], HEAD + 1, after, k)  # its domains between commas
        self.site_kwh = Block(s["sites"], HEAD + 1, after + 1, k)  # kWh by one W over a period
        self.site_watt = Block(s["sites"], HEAD + 1, after + 2, k)  # money for one W over a period, without carbon

        cohorts = len(q.fleet) + SPARE
        self.fleet = Block(s["fleet"], HEAD + 1, 0, cohorts, 5)
        self.supply = Block(s["supply"], HEAD + 1, 0, len(q.supply) + SPARE, len(tables.supply()))

        self.pairs_of_worth = [(a, b) for a, sku in q.skus.items() for b in sku.worth]
        self.worth = Block(s["equivalence"], HEAD + 1, 0, len(self.pairs_of_worth) + 2 * SPARE, 6)
        self.worth_lo = Block(s["equivalence"], HEAD + 1, 6, len(self.pairs_of_worth))
        self.worth_hi = Block(s["equivalence"], HEAD + 1, 7, len(self.pairs_of_worth))
        self.worth_used = Block(s["equivalence"], HEAD + 1, 8, len(self.pairs_of_worth))
        self.benchmarks = Block(s["benchmarks"], HEAD + 1, 0, len(self.pairs_of_worth), 9)

        self.workload = Block(s["utilisation"], HEAD + 1, 0, w, len(tables.workloads()))
        self.available = Block(s["utilisation"], HEAD + 1, len(tables.workloads()), w)

        skus = len(n.skus) + SPARE
        self.sku = Block(s["skus"], HEAD + 1, 0, skus, len(equipment.skus()))

        self._by_period(n)

        combos = max(len(n.combos), 1)
        self.combo = Block(s["allocation"], HEAD + 1, 0, combos, COMBO)
        # Whole servers of the row's pool; the shares of them that are there for the workload and that work; work.
        self.pool, self.share, self.working, self.capacity = (
            Block(s["allocation"], HEAD + 1, COMBO + j * t, combos, t) for j in range(4)
        )
        self.pools = Block(s["pools"], HEAD + 1, POOL, max(len(n.own), 1), t)

        c = s["cost"]
        kinds = len(KINDS)
        self.kinds = Block(c, 5, 2, kinds, t)
        self.weight, self.year_of = (Block(c, row + kinds, 2, 1, t) for row in (6, 7))
        self.present = Block(c, 11 + kinds, 2, kinds, t)
        self.total = Block(c, 11 + 2 * kinds, 2 + t, 1)
        self.by_year = Block(c, 15 + 2 * kinds, 2, kinds, max(n.years))
        self.bought = Block(c, 19 + 3 * kinds, 2, len(n.skus), t)
        self.verdict, self.broken, self.tolerance = (Block(s["checks"], row, 3, 1) for row in (2, 3, 4))

    def _by_period(self, n: Numbers) -> None:
        """Tabs with a column per period: stacked blocks with the same periods in the same columns."""
        s, t, w, k, pairs = self.sheets, n.periods, len(n.workloads), len(n.sites), len(n.pairs)

        def stack(sheet: Sheet, first: int, labels: int, sizes: Sequence[int]) -> list[Block]:
            blocks, row = [], first
            for size in sizes:
                blocks.append(Block(sheet, row + 2, labels, size, t))
                row += size + 3
            return blocks

        # Empty rows below the two of inputs take the demand of new workloads.
        self.median, self.sigma = stack(s["demand"], 3, 2, [w + SPARE] * 2)
        demand = stack(s["demand"], self.sigma.row + w + SPARE + 1, 2, [w] * 8)
        self.low, self.high, self.quantile, self.margin, self.planned = demand[:5]
        self.done, self.delivered, self.counted = demand[5:]

        plan = stack(s["plan"], 3, 2, [pairs] * 10)
        self.buy, self.retire, self.active, self.arrive, self.installed, self.load = plan[:6]
        self.paid, self.kept, self.kept_worth = plan[6:9]
        self.figures = Block(s["plan"], plan[9].row, 2, pairs, len(FIGURES))

        self.losses = [(i, j, d) for i in range(w) for j in range(k) for d in range(n.most_domains)]
        self.left, self.above = stack(s["lost"], 3, 3, [len(self.losses)] * 2)
        self.power, self.units, self.ports, self.racks, self.liquid, self.spent = stack(s["rack"], 3, 3, [k] * 6)
        self.must_leave, self.have_left = stack(s["refresh"], 3, 2, [pairs] * 2)

    def period_number(self, t: int) -> str:
        return self.period.at(t, 0)

    def worth_row(self, sku: str, workload: str) -> int:
        return self.pairs_of_worth.index((sku, workload))


# Columns of the block of figures behind the purchase plan's rows.
FIGURES = (
    "start",
    "price",
    "idle",
    "swing",
    "peak",
    "rack_units",
    "ports",
    "support",
    "space",
    "migration",
    "embodied",
    "lead",
    "age_limit",
    "minimum",
    "spares",
    "kwh",
    "watt",
    "site",
    "racks",
    "liquid",
    "residual",
)
