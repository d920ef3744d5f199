"""Complete the structure tree of a WeasyPrint PDF for PDF/UA-1 (ISO 14289-1) before the file is written.

WeasyPrint tags text, tables, lists, links and drawings. This module makes decoration (lines repeated on each page,
drawings without a title) an artifact, keeps heading levels consecutive, gives table headings their scope, and corrects
the boxes of figures.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

_POINTS = 0.75  # points per CSS pixel


def finish(_document: Any, pdf: Any) -> None:
    """Finish a PDF for WeasyPrint's ``write_pdf``. ``pdf``, a ``pydyf.PDF`` with tags, is changed in place."""
    Tree(pdf).finish()


@dataclass(slots=True)
class Tree:
    """The structure elements of one file. Elements are dictionaries, and refer to each other by object number."""

    pdf: Any

    def finish(self) -> None:
        root = self.resolved(self.pdf.catalog["StructTreeRoot"])
        document = self.resolved(root["K"][0])
        self._drop_decoration(document)
        self._nest_headings(document)
        self._scope_heads(document, in_head=False)
        self._place_figures(document)
        self._mark_artifacts(self.resolved(root["ParentTree"])["Nums"], {document.number, *self._numbers(document)})

    def resolved(self, reference: bytes) -> Any:
        return self.pdf.objects[int(reference.split()[0])]

    def children(self, element: Any) -> Iterator[Any]:
        """Yield the direct child elements in reading order, without marks and annotations."""
        for kid in element["K"]:
            if isinstance(kid, bytes) and (child := self.resolved(kid)).get("Type") == "/StructElem":
                yield child

    def below(self, element: Any) -> Iterator[Any]:
        """Yield all descendant elements in reading order."""
        for child in self.children(element):
            yield child
            yield from self.below(child)

    def _numbers(self, element: Any) -> Iterator[int]:
        return (child.number for child in self.below(element))

    def _drop_decoration(self, element: Any) -> None:
        """Remove drawings without a title from the tree; the text beside them has the same content."""
        decoration = {c.reference for c in self.children(element) if c["S"] == "/Figure" and "Alt" not in c}
        if decoration:
            element["K"][:] = [kid for kid in element["K"] if kid not in decoration]
        for child in self.children(element):
            self._drop_decoration(child)

    def _nest_headings(self, document: Any) -> None:
        """Set each heading one level below the nearest earlier heading with a higher rank."""
        above: list[int] = []
        for element in self.below(document):
            kind = element["S"]
            if len(kind) == 3 and kind[1] == "H" and kind[2].isdigit():
                while above and above[-1] >= int(kind[2]):
                    above.pop()
                above.append(int(kind[2]))
                element["S"] = f"/H{len(above)}"

    def _scope_heads(self, element: Any, in_head: bool) -> None:
        """Give headings in the head of a table the column scope, and others the row scope.

        The scopes replace lists of ids.
        """
        for child in self.children(element):
            if child["S"] == "/TH":
                child.setdefault("A", {"O": "/Table"})["Scope"] = "/Column" if in_head else "/Row"
            if child["S"] in ("/TH", "/TD"):
                child.pop("ID", None)
                child.get("A", {}).pop("Headers", None)
            self._scope_heads(child, in_head or child["S"] == "/THead")

    def _place_figures(self, document: Any) -> None:
        """Convert the boxes of figures from pixels below the page's upper edge to points above its lower edge."""
        for element in self.below(document):
            if element["S"] == "/Figure" and "BBox" in element.get("A", {}):
                height = self.resolved(element["Pg"])["MediaBox"][3]
                x1, y1, x2, y2 = (_POINTS * x for x in element["A"]["BBox"])
                element["A"]["BBox"][:] = [x1, height - y2, x2, height - y1]

    def _mark_artifacts(self, parents: Any, in_tree: set[int]) -> None:
        """Turn marked content without an element in the tree into artifacts, on every page and in ``parents``.

        In ``parents``, each page number is followed by the page's elements in the order of their marks.
        """
        for page, elements in zip(parents[::2], parents[1::2], strict=True):
            if not isinstance(elements, list):
                continue  # the entry of an annotation
            dropped = {mark for mark, reference in enumerate(elements) if int(reference.split()[0]) not in in_tree}
            for mark in dropped:
                elements[mark] = "null"
            self._unmark(self.resolved(self.resolved(self.pdf.page_references[page])["Contents"]).stream, dropped)

    @staticmethod
    def _unmark(stream: list[Any], dropped: set[int]) -> None:
        for place, item in enumerate(stream):
            if isinstance(item, dict) and item.get("MCID") in dropped:
                stream[place - 1] = "/Artifact"
                stream[place] = b"<<>>"
