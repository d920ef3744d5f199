"""Write workbooks for further work: sheets with live formulas, named cells, filters, validation and charts.

The module is a thin layer over XlsxWriter. Text is always text, never a formula or a link. A formula has the value that
Python computed. The same content gives the same bytes.
"""

from __future__ import annotations

import io
import math
import re
import tempfile
import textwrap
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import xlsxwriter
from xlsxwriter.utility import xl_rowcol_to_cell

from fleetmark.base.errors import FleetmarkError
from fleetmark.base.inert import inert
from fleetmark.base.text import Message
from fleetmark.base.units import scale_for
from fleetmark.reports.kit import charts
from fleetmark.reports.kit import format as fmt

COLOURS = charts.COLOURS  # a machine has the same colour in every format
MOST_TEXT = 32_767  # maximum characters in a cell
MOST_TAB = 31  # maximum characters in the name of a tab
MOST_FORMULA = 8_192
MOST_ROWS, MOST_COLUMNS = 1_048_576, 16_384
GRID = {"major_gridlines": {"visible": True, "line": {"color": "#D9D9D9", "width": 0.75}}}  # grid lines of a chart

# Number formats. A cell keeps the base unit; its format only scales the display.
_LONG = 60  # characters; words of shorter texts may break far from the end of a line
GENERAL, INTEGER, RATIO, PERCENT, LOG = "General", "#,##0", fmt.RATIO_FORM, "0.0%", "0.000000"
P_VALUE = '[<0.001]"<0.001";0.000'
_ENGINEERING = "##0.00E+0"

# The roles of cells, and their styles. Only inputs are unlocked, in case a sheet is protected.
_ROLES: Mapping[str, Mapping[str, Any]] = {
    "title": {"bold": True, "font_size": 16, "font_color": "#1F3A5F"},
    "heading": {"bold": True, "font_size": 12, "font_color": "#1F3A5F"},
    "head": {
        "bold": True,
        "font_color": "#FFFFFF",
        "bg_color": "#1F3A5F",
        "text_wrap": True,
        "valign": "top",
        "border": 1,
        "border_color": "#8EA0B8",
    },
    "head of numbers": {
        "bold": True,
        "font_color": "#FFFFFF",
        "bg_color": "#1F3A5F",
        "text_wrap": True,
        "valign": "top",
        "align": "right",
        "border": 1,
        "border_color": "#8EA0B8",
    },
    "text": {"valign": "top", "align": "left", "indent": 1},  # keeps the text away from numbers to its left
    "wrap": {"valign": "top", "text_wrap": True, "align": "left", "indent": 1},
    "strong": {"bold": True, "valign": "top", "align": "left", "indent": 1},
    "code": {"font_name": "Consolas", "valign": "top", "text_wrap": True, "align": "left", "indent": 1},
    "answer": {"bold": True, "bg_color": "#EAF1FB", "align": "left", "indent": 1},
    "word": {"valign": "top", "align": "left", "indent": 1},  # a word computed by a formula
    "link": {"font_color": "#0563C1", "underline": 1, "valign": "top"},
    "note": {"italic": True, "font_color": "#595959", "valign": "top"},
    "input": {"bg_color": "#FFF2CC", "font_color": "#0000C0", "locked": False, "border": 1, "border_color": "#BF9000"},
    "computed": {"valign": "top"},
    "key": {"valign": "top", "bold": True, "bg_color": "#EAF1FB"},
    "value": {"valign": "top", "font_color": "#595959"},  # computed elsewhere, without a formula
    "solver": {"bg_color": "#E2EFDA", "font_color": "#375623", "border": 1, "border_color": "#70AD47"},
    "better": {"bg_color": "#CFE5F7", "font_color": "#08436E"},
    "worse": {"bg_color": "#FBDDC4", "font_color": "#7A3300"},
    "same": {"bg_color": "#E4E4E4", "font_color": "#303030"},
    "unsure": {"font_color": "#6B6B6B", "italic": True},
    "ok": {"bg_color": "#D3EBDD", "font_color": "#0B5132"},
    "bad": {"bg_color": "#D55E00", "font_color": "#FFFFFF", "bold": True},
    "differs": {"bg_color": "#FFF8E1"},
    "odd": {"bg_color": "#FBDDC4", "bold": True, "valign": "top", "text_wrap": True},
}


@dataclass(frozen=True, slots=True)
class Head:
    """A column's heading: its name, its unit (below the name), and its width in characters.

    A width of 0 follows the content. ``is_right``: the heading is above numbers.
    """

    name: str
    unit: str = ""
    width: int = 0
    is_right: bool = False


class Book:
    """Write a workbook. ``created``: ISO 8601.

    ``say``: translates fixed text into the reader's language. ``on_disk``: for sheets with millions of cells, which are
    stored in temporary files until they are packed.
    """

    def __init__(self, title: str, created: str, say: Callable[[Message], str] = str, *, on_disk: bool = False) -> None:
        self._out = io.BytesIO()
        self._folder = tempfile.TemporaryDirectory() if on_disk else None  # deleted with the process
        self._book = xlsxwriter.Workbook(
            self._out, {"tmpdir": self._folder.name} if self._folder else {"in_memory": True}
        )
        self._say = say
        self._formats: dict[tuple[str, str, bool], Any] = {}
        self._names: set[str] = set()
        self.sheets: dict[str, Sheet] = {}
        self._book.set_properties(
            {"title": self.words(title)[:255], "author": "Fleetmark", "created": _moment(created)}
        )
        self._book.set_calc_mode("auto")

    def words(self, text: object) -> str:
        """Return ``text`` as a cell shows it: translated, without active content, and shortened if too long."""
        content = legal(self._say(text) if isinstance(text, Message) else text)
        return content if len(content) <= MOST_TEXT else content[: MOST_TEXT - 1] + "…"

    def sheet(self, name: str, colour: str = "", *, in_rows: bool = False) -> Sheet:
        """Add a sheet at the end, with a legal and unique name.

        ``in_rows``: in a book ``on_disk``, cells are written row by row, and only the last row stays in memory.
        """
        base = _tab_name(self.words(name))
        if base.lower() == "history":  # a name that Excel reserves
            base = "History of it"
        unique, n = base, 1
        while unique.lower() in {s.lower() for s in self.sheets}:
            n += 1
            unique = f"{base[: 28 - len(str(n))]} ({n})"
        self._book.constant_memory = in_rows  # XlsxWriter asks each sheet, although it is set for the book
        inner = self._book.add_worksheet(unique)
        self._book.constant_memory = False
        if colour:
            inner.set_tab_color(colour)
        self.sheets[unique] = Sheet(self, unique, inner)
        return self.sheets[unique]

    def hidden(self, name: str, texts: Sequence[str]) -> None:
        """Add a sheet that no menu of a spreadsheet shows, with a text per row."""
        inner = self._book.add_worksheet(name)
        inner.very_hidden()
        for row, text in enumerate(texts):
            inner.write_string(row, 0, text)

    def style(self, role: str, form: str = GENERAL, *, quoted: bool = False) -> Any:
        """Return the format for a role of _ROLES and a number format. ``quoted``: text stays text when edited."""
        key = (role, form, quoted)
        if key not in self._formats:
            more = {"quote_prefix": True} if quoted else {}
            self._formats[key] = self._book.add_format({**_ROLES[role], "num_format": form, **more})
        return self._formats[key]

    def name(self, proposed: str, target: str) -> str:
        """Define a name for ``target`` (an absolute reference) and return it: ``proposed``, made legal and unique."""
        unique = re.sub(r"\W", "_", proposed, flags=re.ASCII)[:200]
        if not re.match(r"[A-Za-z_]", unique) or re.fullmatch(r"[A-Za-z]{1,3}\d+|[RrCc]\d*|[Rr]\d*[Cc]\d*", unique):
            unique = f"_{unique}"
        base, n = unique, 1
        while unique.lower() in self._names:
            n += 1
            unique = f"{base}_{n}"
        self._names.add(unique.lower())
        self._book.define_name(unique, f"={target}")
        return unique

    def chart(self, kind: str, title: str, **options: Any) -> Any:
        """Return an XlsxWriter chart in the common style; ``options`` are passed to ``add_chart``.

        Give the names of series as references, because a name that begins with = would be read as a reference.
        """
        chart = self._book.add_chart({"type": kind, **options})
        chart.set_title({"name": self.words(title).lstrip("="), "name_font": {"size": 12, "bold": True}})
        chart.set_legend({"position": "bottom"})
        return chart

    def bytes(self) -> bytes:
        """Return the workbook. Nothing can be added to it afterwards."""
        for sheet in self.sheets.values():
            sheet.finish()
        self._book.close()
        if self._folder:
            self._folder.cleanup()
        return self._out.getvalue()


class Sheet:
    """Write a sheet. Rows and columns count from 0. ``name``: the name in formulas of other sheets."""

    def __init__(self, book: Book, name: str, inner: Any) -> None:
        self.book, self.name, self.inner = book, name, inner
        self._widths: dict[int, float] = {}
        self._fixed: dict[int, float] = {}
        self._wrapped: dict[int, list[tuple[int, float]]] = {}  # maps a row to the columns and widths of its long texts
        inner.set_landscape()
        inner.set_paper(9)
        inner.fit_to_pages(1, 0)
        inner.set_margins(left=0.4, right=0.4, top=0.5, bottom=0.6)
        inner.set_footer("&L&A&R&P / &N")
        inner.hide_gridlines(2)

    # ------------------------------------------------------------ cells

    def text(self, row: int, col: int, text: object, role: str = "text") -> None:
        """Write text that stays text, whatever its first character."""
        content = self.book.words(text)
        if not content:
            return
        self._inside(row, col)
        self.inner.write_string(row, col, content, self.book.style(role, quoted=content != inert(content)))
        if role not in ("title", "heading", "note"):  # text that may extend over the cells to its right
            self._widths[col] = max(self._widths.get(col, 0), wide(content))
            if _ROLES[role].get("text_wrap"):
                self._wrapped.setdefault(row, []).append((col, _width_of_prose(content, role)))

    def number(self, row: int, col: int, value: float | None, form: str = GENERAL, role: str = "computed") -> None:
        """Write a number: an empty cell for None or NaN, and ∞ as text."""
        if value is None or math.isnan(value):
            if role == "input":
                self.inner.write_blank(row, col, None, self.book.style(role, form))
            return
        self._inside(row, col)
        if math.isinf(value):
            self.text(row, col, "∞" if value > 0 else "-∞", role)
        else:
            self.inner.write_number(row, col, _Exact(value), self.book.style(role, form))

    def formula(
        self,
        row: int,
        col: int,
        formula: str,
        value: float | str | bool | None,
        form: str = GENERAL,
        role: str = "computed",
    ) -> None:
        """Write a live formula (``=…``) with the value that Python computed for it; None is an empty text.

        Raise ValueError for a formula that is too long for Excel and for a value that no cell can hold.
        """
        if len(formula) > MOST_FORMULA:
            raise ValueError(f"{self.name}!{xl_rowcol_to_cell(row, col)}: a formula of {len(formula)} characters")
        if isinstance(value, float | int) and not math.isfinite(value):
            raise ValueError(f"{self.name}!{xl_rowcol_to_cell(row, col)}: {value} as the value of {formula[:80]}")
        self._inside(row, col)
        cached: float | str | bool
        if value is None or isinstance(value, str):
            cached = self.book.words(value or "")
            self._widths[col] = max(self._widths.get(col, 0), wide(cached))
        else:
            cached = bool(value) if isinstance(value, bool) else float(value)
        self.inner.write_formula(row, col, formula, self.book.style(role, form), cached)

    def link(self, row: int, col: int, sheet: str) -> None:
        """Write a sheet's name as a link to the sheet."""
        target = "internal:'" + sheet.replace("'", "''") + "'!A1"
        self.inner.write_url(row, col, target, self.book.style("link"), sheet)

    def _inside(self, row: int, col: int) -> None:
        if row >= MOST_ROWS or col >= MOST_COLUMNS:
            raise FleetmarkError(
                f"the tab {self.name} would need {row + 1:,} rows and {col + 1:,} columns; a workbook has room for "
                f"{MOST_ROWS:,} and {MOST_COLUMNS:,}: narrow the selection, or write JSON"
            )

    # ------------------------------------------------------------ references

    def address(self, row: int, col: int) -> str:
        """Return the reference of a cell for formulas of any sheet: ``'Per host'!$B$4``."""
        return f"{self._quoted()}!{xl_rowcol_to_cell(row, col, True, True)}"

    def span(self, first_row: int, first_col: int, last_row: int, last_col: int) -> str:
        """Return the reference of a range, both ends included: ``'Per host'!$B$4:$D$9``."""
        ends = (xl_rowcol_to_cell(r, c, True, True) for r, c in ((first_row, first_col), (last_row, last_col)))
        return f"{self._quoted()}!{':'.join(ends)}"

    def _quoted(self) -> str:
        return "'" + self.name.replace("'", "''") + "'"

    # ------------------------------------------------------------ parts of a page

    def top(self, title: str, note: str = "") -> int:
        """Write the sheet's title and purpose, and return the row where its content may begin."""
        self.text(0, 0, title, "title")
        self.inner.set_row(0, 24)
        if note:
            self.text(1, 0, note, "note")
        return 3

    def heads(self, row: int, heads: Sequence[Head], col: int = 0) -> None:
        """Write the headings of a table, with units."""
        lines = 1
        for place, head in enumerate(heads, col):
            name, unit = self.book.words(head.name), self.book.words(head.unit)
            style = self.book.style("head of numbers" if head.is_right else "head")
            self.inner.write_string(row, place, f"{name}\n{unit}" if unit else name, style)
            width = head.width or max(self._widths.get(place, 0), min(wide(name), 14), wide(unit))
            if head.width:
                self._fixed[place] = head.width
            self._widths[place] = max(self._widths.get(place, 0), width)
            lines = max(lines, sum(len(textwrap.wrap(text, max(int(width) - 2, 1))) for text in (name, unit)))
        self.inner.set_row(row, 15 * min(lines, 8) + 3)

    def filtered(self, head_row: int, last_row: int, columns: int, *, frozen_columns: int = 0) -> None:
        """Set the sheet's only filterable table. Its headings stay visible and are repeated on paper."""
        self.frozen(head_row + 1, frozen_columns)
        self.inner.autofilter(head_row, 0, max(last_row, head_row), columns - 1)
        self.inner.repeat_rows(head_row)

    def frozen(self, rows: int, columns: int = 0) -> None:
        """Freeze the rows above and the columns to the left of a cell."""
        self.inner.freeze_panes(rows, columns)

    def width(self, col: int, characters: float) -> None:
        """Set a column width that content does not change."""
        self._fixed[col] = characters

    def must_be_number(self, row: int, col: int, lo: float, hi: float, hint: str) -> None:
        """Accept only numbers from ``lo`` to ``hi`` as input. ``hint``: the prompt and the error message."""
        prompt = self.book.words(hint)[:255]
        self.inner.data_validation(
            *(row, col, row, col),
            {
                "validate": "decimal",
                "criteria": "between",
                "minimum": lo,
                "maximum": hi,
                "input_message": prompt,
                "error_title": "Fleetmark",
                "error_message": prompt,
            },
        )

    def must_be_one_of(self, row: int, col: int, values: Sequence[str]) -> None:
        """Accept only these texts as input; values of a named range are only suggestions.

        The texts may have at most 255 characters in total.
        """
        named: Mapping[str, Any] = {"source": f"={values}", "error_type": "warning"}
        given = named if isinstance(values, str) else {"source": list(values)}
        self.inner.data_validation(row, col, row, col, {"validate": "list", **given})

    def printed(self, last_row: int, last_col: int) -> None:
        """Set the area to print, from the first cell. The workings to its right are not printed."""
        self.inner.print_area(0, 0, last_row, last_col)

    def place(self, chart: Any, row: int, col: int, width: int = 720, height: int = 360) -> None:
        """Place a chart with its upper left corner in a cell. Sizes are in pixels."""
        chart.set_size({"width": width, "height": height})
        self.inner.insert_chart(row, col, chart, {"object_position": 2})

    def finish(self) -> None:
        """Set the columns' widths, and the heights of rows with wrapped text. The book calls this method."""
        widths = {col: self._fixed.get(col, min(max(w + 3, 9), 60)) for col, w in (self._widths | self._fixed).items()}
        for col, width in widths.items():
            self.inner.set_column(col, col, width)
        for row, texts in self._wrapped.items():
            lines = max(math.ceil(length / (widths[col] - 2)) for col, length in texts)
            if lines > 1:
                self.inner.set_row(row, min(15 * lines, 400))


class _Exact(float):
    """Return a number with all its digits: XlsxWriter uses 16, one too few to read the same number back."""

    def __format__(self, spec: str) -> str:
        return repr(float(self))


# ---------------------------------------------------------------- text and formulas


def legal(text: object) -> str:
    """Return ``text`` without active content and characters that XML forbids."""
    return re.sub("[\ufffe\uffff]", lambda m: f"<U+{ord(m[0]):04X}>", fmt.clean(text))


def literal(text: str) -> str:
    """Return ``text`` as a string literal of a formula (at most 255 characters)."""
    return '"' + legal(text)[:255].replace('"', '""') + '"'


def wide(text: str) -> int:
    """Return the number of terminal columns that ``text`` takes; Chinese characters are two columns wide."""
    return len(text) if text.isascii() else sum(2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)


def _width_of_prose(text: str, role: str) -> float:
    """Return the width of a text that can wrap between its words. Prose is narrower than digits."""
    return wide(text) * (0.98 if role == "wrap" and wide(text) == len(text) >= _LONG else 1.08)


def cell(row: int, col: int) -> str:
    """Return ``B4`` for (3, 1)."""
    reference: str = xl_rowcol_to_cell(row, col)
    return reference


def absolute(row: int, col: int) -> str:
    """Return ``$B$4`` for (3, 1)."""
    reference: str = xl_rowcol_to_cell(row, col, True, True)
    return reference


def t_quantile(confidence: str, df: str) -> str:
    """Return a formula for Student's two-sided t of ``confidence``, with ``df`` degrees of freedom (fractions allowed).

    The formula uses the incomplete beta function, t²/(df + t²) ~ Beta(1/2, df/2) (Abramowitz & Stegun 26.5.27). TINV
    would truncate the degrees of freedom of Welch's test to a whole number.
    """
    return f"SQRT(({df})/(1/BETAINV({confidence},0.5,({df})/2)-1))"


def t_two_sided(t: str, df: str) -> str:
    """Return a formula for the probability of a |t| at least this large; ``df`` as in ``t_quantile``.

    Pass references to cells, because the formula contains both arguments more than once.
    """
    square = f"({t})^2"  # near 0, the other tail keeps its digits
    near = f"1-BETADIST({square}/(({df})+{square}),0.5,({df})/2)"
    return f"IF({square}<1,{near},BETADIST(({df})/(({df})+{square}),({df})/2,0.5))"


def form_for(
    values: Sequence[float], unit: str, width: float = math.inf, *, percent: bool = False, counted: str = ""
) -> str:
    """Return a number format that shows figures in a base unit legibly: ``210.00 GB/s`` for 2.1e11 B/s.

    The cell keeps the base unit. Values below 1 (mostly seconds) are shown as ``71.0E-9 s``. A fourth digit is added if
    three digits would hide an interval of ``width``. ``percent``: show a share of unit 1 in %. ``counted``: the display
    unit of a rate.
    """
    sizes = sorted(abs(v) for v in values if math.isfinite(v) and v)
    if not sizes:
        return GENERAL
    size = sizes[len(sizes) // 4]
    scale = scale_for(size, unit, percent=percent, counted=counted)
    # A % sign in a format multiplies by 100.
    power = round(-math.log10(scale.factor)) if unit != "B" and scale.unit != "%" else 0
    shown_unit = scale.unit if unit != "B" else "B"
    if power < 0 or size * scale.factor < 1e-3 or (power == 0 and size >= 1e7):
        return f'{_ENGINEERING}" {unit}"' if unit != "1" else _ENGINEERING
    least = 2 - math.floor(math.log10(size * scale.factor))
    digits = max(0, least + (width * scale.factor < 4 * 10.0**-least))
    decimals = f"0.{'0' * min(digits, 6)}" if digits else "0"
    if scale.unit == "%":
        return f"{decimals}%"
    name = "" if shown_unit in ("", "1") else f'" {shown_unit.replace(chr(34), "")}"'
    return f"#,##{decimals}{',' * (power // 3)}{name}"


def _tab_name(title: str) -> str:
    """Return a title as a valid name of a tab, without characters that Excel forbids.

    A long title is cut before a colon or a word.
    """
    if len(title) > MOST_TAB and ": " in title:
        title = title.partition(": ")[0]
    name = re.sub(r"[\[\]:*?/\\]", "-", title).strip("' ")
    if len(name) > MOST_TAB:
        words = name[: MOST_TAB + 1].rpartition(" ")[0]
        name = (words or name)[:MOST_TAB].strip("' ")
    return name or "Sheet"


def _moment(iso: str) -> datetime:
    try:
        return datetime.fromisoformat(iso).replace(tzinfo=None)
    except ValueError:
        return datetime(1980, 1, 1)  # a record without a date still gives the same bytes each time
