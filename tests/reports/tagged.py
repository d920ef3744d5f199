"""What a tagged PDF breaks of PDF/UA-1 (ISO 14289-1), read from its structure tree and content streams by pikepdf."""

from __future__ import annotations

import io
from collections.abc import Iterator

import pikepdf

# What stands right below what, by ISO 32000-1, 14.8.4. Elements that are not named here may hold anything.
BELOW = {
    "/Table": {"/TR", "/THead", "/TBody", "/TFoot", "/Caption"},
    "/THead": {"/TR"},
    "/TBody": {"/TR"},
    "/TFoot": {"/TR"},
    "/TR": {"/TH", "/TD"},
    "/L": {"/LI", "/L", "/Caption"},
    "/LI": {"/Lbl", "/LBody"},
}
PAINTS = {"Tj", "TJ", "'", '"', "f", "F", "f*", "S", "s", "B", "B*", "b", "b*", "Do", "sh", "EI"}


def kids(element: pikepdf.Dictionary) -> list[pikepdf.Object]:
    held = element.get("/K", pikepdf.Array())
    return list(held) if isinstance(held, pikepdf.Array) else [held]


def children(element: pikepdf.Dictionary) -> list[pikepdf.Dictionary]:
    return [k for k in kids(element) if isinstance(k, pikepdf.Dictionary) and "/S" in k]


def below(element: pikepdf.Dictionary) -> Iterator[pikepdf.Dictionary]:
    for child in children(element):
        yield child
        yield from below(child)


def faults(file: bytes) -> list[str]:
    """One sentence for each; none where the file keeps what this checks."""
    with pikepdf.open(io.BytesIO(file)) as pdf:
        return [*_of_document(pdf), *_of_elements(pdf), *_of_marks(pdf), *_of_links(pdf)]


def _of_document(pdf: pikepdf.Pdf) -> Iterator[str]:
    root = pdf.Root
    if root.get("/MarkInfo", {}).get("/Marked") is not True:
        yield "it is not marked as tagged"
    if not str(root.get("/Lang", "")):
        yield "it has no language"
    if root.get("/ViewerPreferences", {}).get("/DisplayDocTitle") is not True:
        yield "its title is not what a viewer shows"
    with pdf.open_metadata() as metadata:
        if metadata.get("pdfuaid:part") != "1":
            yield "it does not say that it is PDF/UA-1"
        if not metadata.get("dc:title"):
            yield "it has no title"
    yield from (f"page {n}: no tab order by structure" for n, p in enumerate(pdf.pages, 1) if p.get("/Tabs") != "/S")


def _of_elements(pdf: pikepdf.Pdf) -> Iterator[str]:
    level = 0
    (document,) = children(pdf.Root.StructTreeRoot)
    for element in below(document):
        kind, names = str(element.S), [str(c.S) for c in children(element)]
        if kind == "/Figure" and not str(element.get("/Alt", "")):
            yield "a figure has no text"
        if kind in BELOW and not set(names) <= BELOW[kind]:
            yield f"{kind} holds {sorted(set(names) - BELOW[kind])}"
        if kind == "/Table" and "/TR" not in [str(e.S) for e in below(element)]:
            yield "a table has no row"
        if kind == "/TH" and str(element.get("/A", {}).get("/Scope", "")) not in ("/Column", "/Row"):
            yield "a head of a table does not say of which cells"
        if kind[1:2] == "H" and kind[2:].isdigit():
            if int(kind[2:]) > level + 1:
                yield f"{kind} stands below level {level}"
            level = int(kind[2:])
        if any(c.P.objgen != element.objgen for c in children(element)):
            yield f"{kind} holds what says that it is elsewhere"


def _of_marks(pdf: pikepdf.Pdf) -> Iterator[str]:
    """All that is painted is an artifact or has a place in the tree, and the tree has a place for it on the page."""
    tree = {
        (e.Pg.objgen, int(k)): e.objgen
        for e in below(children(pdf.Root.StructTreeRoot)[0])
        for k in kids(e)
        if isinstance(k, int)
    }
    nums = list(pdf.Root.StructTreeRoot.ParentTree.Nums)
    parents = dict(zip(map(int, nums[::2]), nums[1::2], strict=True))
    for number, page in enumerate(pdf.pages, 1):
        owners = parents[int(page.StructParents)]
        seen: set[int] = set()
        inside: list[str] = []
        for operands, operator in pikepdf.parse_content_stream(page):
            name = str(operator)
            if name in ("BDC", "BMC"):
                inside.append(str(operands[0]))
                mark = operands[1].get("/MCID") if name == "BDC" else None
                if mark is not None:
                    seen.add(int(mark))
                    if (page.objgen, int(mark)) not in tree:
                        yield f"page {number}: mark {mark} has no place in the tree"
                    elif owners[int(mark)].objgen != tree[page.objgen, int(mark)]:
                        yield f"page {number}: mark {mark} belongs to two elements"
                if len(inside) > 1 and "/Artifact" in inside:
                    yield f"page {number}: {inside} within one another"
            elif name == "EMC":
                inside.pop()
            elif name in PAINTS and not inside:
                yield f"page {number}: {name} paints what is neither tagged nor an artifact"
        yield from (
            f"page {number}: the tree waits for mark {m}" for p, m in tree if p == page.objgen and m not in seen
        )


def _of_links(pdf: pikepdf.Pdf) -> Iterator[str]:
    held = {
        k.Obj.objgen
        for e in below(children(pdf.Root.StructTreeRoot)[0])
        for k in kids(e)
        if isinstance(k, pikepdf.Dictionary) and k.get("/Type") == "/OBJR"
    }
    for number, page in enumerate(pdf.pages, 1):
        for annotation in page.get("/Annots", []):
            if annotation.objgen not in held or not str(annotation.get("/Contents", "")):
                yield f"page {number}: a link has no place in the tree, or no text"
