"""Test that expressions which readers did not understand stay out of every sentence, in English and in Chinese."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from fleetmark.reports.kit.language import ENGLISH, language, languages
from tests.texts import texts

HOUSE = Path(__file__).parents[1]
ROOMS = ("fleetmark", "parsers", "planner", "reports")
# What each is replaced by is in the comment. A pattern matches anywhere in a sentence, in either case.
ENGLISH_WORDS = (
    r"how many of .* is one of .* worth",  # How many A servers does one B replace?
    r"is worth, per server|candidate is worth",  # replaces
    r"cannot be said",  # There is no overall figure: too few benchmarks ran on both
    r"of the weight is measured",  # 1 of 2 benchmarks ran on both
    r"hold as far as",  # valid if these hosts are typical
    r"before believing|how it went|what binds|what the cost hangs on",  # Before you rely on this; Run status; ...
    r"above 1: the candidate",  # Above 1, the candidate is better: for latency too
    r"something else was busy",  # Other processes disturbed 13 of 66 runs
    r"limits the plan stands at|where it says no plan",  # What limits the plan; in that case no purchase ...
    r"no plan costs less",  # At most 0.08% above the cheapest possible plan
    r"nobody knows",  # result unknown
    r"^upright: ",  # Dotted lines
    r"it is not even any more",  # multiply and divide by f
    r"demand and worth are drawn together",  # simulated futures
    r"without (?:it|them): \{",  # excluding it
    r"set unlike|own program",  # CPU governor is powersave on ...; similar program
    r"how a program of your own does",  # Too few benchmarks to predict your own program
    r"warnings more",  # 3 more warnings
    r"left out of a class",  # lack shared benchmarks and are excluded
    r"under their own roofs",  # Measured bandwidth against hardware peak
    r"operations a byte",  # operations per byte
    r"who was compared with whom|hosts against their",  # Peer groups; Deviation from group median
    r"peak of a pair",  # Peak: the slower host's link
    r"bytes are moved for each",  # includes write allocation
    r"\bmend it\b|read what the tool printed",  # fix the host, then resume; see the tool's output
    r"notes of runs|what is odd",  # Run notes; Anomalies
    r"with the worst failure domain lost",  # if one failure domain is lost
    r"proven to be dearer",  # may cost the same
    r"of what is called better",  # about 5% of better / worse verdicts may be false
    r"turned so that more is better",  # inverted where lower is better
    r"takes nothing from it",  # unmatched benchmarks are listed, not penalised
    r"were read, those of headlines",  # Telemetry read for 54 of 54 headline runs
    r"go with whole servers and without",  # cannot be combined with --per or --paired
    r"has anything to say",  # No tuning advice for these 16 hosts
    r"upgrade of the mean machine|gain per 1000",  # average machine; gain per 1,000 spent
    r"\{time\} at 1",  # CPU time per operation at score 1
    r"the owner of security",  # security decides
    r"does not come back",  # smaller values cannot be undone
    r"can be had",  # only {m} available
    r"not chance: z|: z \{z\}",  # shortfall of 2.6 robust deviations
    r"below its own median",  # worse than its own median
    r"mix-sensitive",  # depends on the mix
    r"equal work",  # the same jobs
)
CHINESE_WORDS = (
    "采信",  # 使用结论前请注意
    "相当于多少",  # 可替代多少台
    "无总比值",  # 无综合比值
    "只占权重",  # 仅占权重的
    "等量工作",  # 按完成同样任务折算
    "现有机群",  # 存量服务器
    "忙碌",  # 在用
    "被窃取",  # CPU steal 占比
    "从不比较",  # 不参与对比
    "突破",  # 超限
    "关键数据",  # 关键指标
    "主要指标",  # 关键指标
    "自有程序",  # 同类程序预测
    "剔除",  # 未参与对比, 不计入
)


def faults(words: tuple[str, ...], sentences: Iterator[str] | set[str] | list[str]) -> list[str]:
    """Return the sentences with one of the ``words``, each with the word."""
    patterns = [re.compile(word, re.I) for word in words]
    return [f"{p.pattern}: {s}" for s in sentences for p in patterns if p.search(s)]


def strings(path: Path) -> Iterator[str]:
    """Yield the strings of a module that are not docstrings; those written next to each other as one."""
    tree = ast.parse(path.read_text("utf-8"))
    documents = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        and node.body
        and isinstance(node.body[0], ast.Expr)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in documents:
            yield node.value


@pytest.mark.parametrize("room", ROOMS)
def test_no_sentence_has_these_words(room: str) -> None:
    modules = sorted((HOUSE / room).rglob("*.py"))
    assert faults(ENGLISH_WORDS, [s for path in modules for s in strings(path)]) == []


def test_no_text_of_a_document_has_these_words() -> None:
    assert faults(ENGLISH_WORDS, texts()) == []


@pytest.mark.parametrize("code", [c for c in languages() if c != ENGLISH])
def test_no_translation_has_these_words(code: str) -> None:
    assert faults(CHINESE_WORDS, list(language(code).texts.values())) == []


def test_the_measure_sees_words() -> None:
    assert faults(ENGLISH_WORDS, ["Not chance: z 2.6", "Peer groups"]) == [
        "not chance: z|: z \\{z\\}: Not chance: z 2.6"
    ]
    assert faults(CHINESE_WORDS, ["剔除项", "未参与对比"]) == ["剔除: 剔除项"]
