"""Define the columns of the workbook's input tables: names, titles, units and valid values."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass

from fleetmark.base.text import Message, message

MOST = 1e15
YES, NO = "yes", "no"
TWO = "2"  # number of failure domains lost simultaneously


@dataclass(frozen=True, slots=True)
class Rule:
    """The valid values of a cell: a number, a text, or one of ``words``.

    Numbers lie between ``minimum`` (exclusive if ``above``) and ``maximum``. ``integer`` requires an integer. An
    ``optional`` cell may be empty; ``empty`` describes the meaning of an empty cell.
    """

    description: Message
    _: KW_ONLY
    minimum: float = 0.0
    maximum: float = MOST
    above: bool = False
    integer: bool = False
    text: bool = False
    words: tuple[str, ...] = ()
    optional: bool = False
    empty: str = ""

    @property
    def hint(self) -> Message:
        """Return the valid values in words, for the person who fills in the cell."""
        if self.words:
            return message("{what}: {words}", what=self.description, words=", ".join(self.words))
        if self.text:
            return self.description
        kind = message("a whole number") if self.integer else message("a number")
        if self.above:
            span = message("above {least}", least=f"{self.minimum:g}")
        elif self.maximum >= MOST:
            span = message("{least} or more", least=f"{self.minimum:g}")
        else:
            span = message("{least} to {most}", least=f"{self.minimum:g}", most=f"{self.maximum:g}")
        if self.above and self.maximum < MOST:
            span = message("above {least}, up to {most}", least=f"{self.minimum:g}", most=f"{self.maximum:g}")
        if self.optional:
            return message(
                "{what}: {kind}, {span}; empty: {empty}", what=self.description, kind=kind, span=span, empty=self.empty
            )
        return message("{what}: {kind}, {span}", what=self.description, kind=kind, span=span)


@dataclass(frozen=True, slots=True)
class Column:
    """A column of inputs: the ``name`` of its range, its ``title`` and ``unit``, and the cells' ``rule``."""

    name: str
    title: Message
    rule: Rule
    unit: str = ""
    form: str = "General"

    @property
    def field(self) -> str:
        """Return the field of the table's class: the part of the name after the first underscore."""
        return self.name.split("_", 1)[1]


INTEGER, AMOUNT, PRICE = "#,##0", "#,##0.##", "#,##0.00"
