"""Every fixed text of reports is in every catalogue, with its placeholders; and sentences are said as the catalogue has it."""

from __future__ import annotations

import copy
import json
import pickle
import re
import string

import pytest

from fleetmark import workloads
from fleetmark.base.errors import FleetmarkError
from fleetmark.base.measurement import Better, Standing, Status
from fleetmark.base.text import changed, count, joined, message
from fleetmark.base.words import word
from fleetmark.parsers.published.sparecores import MICRO
from fleetmark.planner.comparison import WORK_MIX
from fleetmark.planner.ratio import Verdict
from fleetmark.record.results import HostInfo
from fleetmark.record.sides import PER
from fleetmark.reports.comparison.purchase.bought import unit_of_price
from fleetmark.reports.kit import format as fmt
from fleetmark.reports.kit.language import ENGLISH, Language, language, languages
from tests.texts import texts


def fields(template: str) -> set[tuple[str, str]]:
    """Placeholders with how they are written; ``{n:,}`` is ("n", ",")."""
    return {(name, form or "") for _, name, form, _ in string.Formatter().parse(template) if name is not None}


@pytest.mark.parametrize("code", [c for c in languages() if c != ENGLISH])
def test_a_catalogue_has_every_text_and_none_more(code: str) -> None:
    expected, catalogue = texts(), language(code).texts
    assert len(expected) > 100
    assert sorted(expected - set(catalogue)) == []
    assert sorted(set(catalogue) - expected) == []


@pytest.mark.parametrize("code", [c for c in languages() if c != ENGLISH])
def test_translations_keep_placeholders_and_are_no_copies(code: str) -> None:
    for text, translation in language(code).texts.items():
        assert translation.strip(), text
        assert fields(translation) == fields(text), text
        if text not in (", ", "; ", ": ", ". "):  # whose Chinese signs hold their own space
            assert [translation[i].isspace() for i in (0, -1)] == [text[i].isspace() for i in (0, -1)], text


def test_every_word_of_ours_is_a_sentence() -> None:
    words = [*Status, *Standing, *Verdict, *PER, WORK_MIX, Better.HIGHER, Better.LOWER, "zero or negative"]
    zh = language("zh-CN")
    for value in words:
        assert word(str(value)) == str(value)  # in English it is itself
        assert zh(word(str(value))) != str(value)
    assert zh(word("estimate, unverified")) == f"{zh(word('estimate'))}、{zh(word('unverified'))}"
    assert word("passed-ish") == "passed-ish"
    assert [zh(fmt.better(b)) for b in Better][2] == ""


def test_classes_of_work_have_chinese_names() -> None:
    zh = language("zh-CN")
    manifests = [workloads.load(name) for name in workloads.names()]
    declared = {m.class_ for m in manifests} | {x.class_ for m in manifests for x in m.metrics.values() if x.class_}
    classes = {c for c in declared if re.fullmatch(r"[a-z-]+", c)} - {"none"}
    assert len(classes) > 10
    assert [c for c in sorted(classes) if zh(word(c)) == c] == []


def test_terms_of_prices_and_classes_of_one_benchmark_have_chinese_names() -> None:
    zh = language("zh-CN")
    price = HostInfo(name="a", labels={"price": "1", "currency": "USD", "term": "hour"})
    assert unit_of_price(price) == "USD per hour" and zh(unit_of_price(price)) == "USD（每小时）"
    assert [str(title) for title in MICRO.values() if re.search("[a-z] [a-z]", zh(word(str(title))))] == []


def test_no_space_follows_a_full_width_stop() -> None:
    both = joined([message("Nothing is bought."), message("No host is recorded.")], " ")
    assert both == "Nothing is bought. No host is recorded." and " " not in language("zh-CN")(both)


def test_the_catalogue_is_chinese() -> None:
    """Every text with letters of its own has a Han character, but for names that are the same in any language."""
    texts = {text: chinese for text, chinese in language("zh-CN").texts.items() if re.search("[a-z]", _unfilled(text))}
    bare = {text for text, chinese in texts.items() if not any("\u4e00" <= c <= "\u9fff" for c in chinese)}
    assert all(len(t) <= 40 for t in bare)
    assert len(bare) < 40, sorted(bare)


def _unfilled(text: str) -> str:
    """The text without its placeholders."""
    return "".join(literal for literal, *_ in string.Formatter().parse(text))


def test_sentences_within_sentences() -> None:
    zh = Language(
        "xx", {"{a}: {b}": "{b} <- {a}", "none": "nil", "{n} host": "H{n}", "{n} hosts": "H{n}", "; ": " // "}
    )
    inner = message("{a}: {b}", a="host-1", b=message("none"))
    assert inner == "host-1: none" and zh(inner) == "nil <- host-1"
    assert zh(joined([inner, count(1, "host"), count(12345, "host"), None, ""])) == "nil <- host-1, H1, H12,345"
    assert joined([None, "a"]) == "a" and joined([]) == ""
    assert zh("none") == "nil" and zh("not in it") == "not in it"
    assert zh("{a}: {b}", a=1, b=2) == "2 <- 1"
    assert count(1, "class", "classes") == "1 class" and count(0, "class", "classes") == "0 classes"


def test_values_cannot_be_taken_for_templates() -> None:
    hostile = "{a.__class__} {0} %s {"
    assert message("{a}: {b}", a=hostile, b=1) == f"{hostile}: 1"
    assert language("zh-CN")(hostile) == hostile
    assert hostile in language("zh-CN")(message("unreachable: {why}", why=hostile))
    assert hostile in joined([hostile, "b"])


def test_sentences_survive_what_is_done_to_strings() -> None:
    sentence = message("unreachable: {why}", why=message("no reason recorded"))
    zh = language("zh-CN")(sentence)
    for copied in (
        copy.deepcopy(sentence),
        pickle.loads(pickle.dumps(sentence)),
        changed(sentence, str),
        fmt.clean(sentence),
    ):
        assert copied == sentence and language("zh-CN")(copied) == zh != sentence
    assert json.loads(json.dumps({"x": sentence})) == {"x": sentence}
    assert fmt.clean(message("unreachable: {why}", why="a\x00\nb")) == "unreachable: a␀ b"
    assert changed("gen=old", str.upper) == "GEN=OLD"
    assert changed(message("unreachable: {why}", why="gen=old"), str.upper) == "unreachable: GEN=OLD"


def test_an_unknown_language_is_named_with_those_there_are() -> None:
    with pytest.raises(FleetmarkError, match=r"no language 'zh'.*en, zh-CN"):
        language("zh")
