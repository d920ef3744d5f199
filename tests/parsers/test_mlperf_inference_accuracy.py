"""accuracy.txt of MLPerf Inference in the forms its scripts print."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from fleetmark.base.errors import ParseError
from fleetmark.base.measurement import Better, Parsed, Standing
from fleetmark.parsers.mlperf_inference import parse
from tests.parsers.reading import cases, read, value


def ours(name: str) -> Parsed:
    return read("mlperf_inference", name)


@pytest.mark.parametrize(
    ("name", "figures"),
    [
        ("resnet50", {"accuracy": 0.75318, "good": 37659, "total": 50000}),
        ("hash_on_the_line", {"accuracy": 0.75906, "good": 37953, "total": 50000}),
        ("bert", {"exact_match": 83.11402906518447, "f1": 90.40557129935501}),
        ("retinanet", {"map": 0.37412}),
        ("dlrm", {"auc": 0.801902}),
        ("dlrm_counts", {"auc": 0.80171, "accuracy": 0.9659, "good": 86097811, "total": 89137319, "queries": 330067}),
        ("whisper", {"word_error_rate": 0.023109925120448101, "accuracy": 0.976890074879552}),
        ("sdxl", {"fid_score": 23.517703320119488, "clip_score": 31.802116044321}),
        ("gpt_oss", {"exact_match": 82.801}),
        ("gnmt", {"bleu": 23.9}),
        ("reference_stdout", {"accuracy": 0.75906}),
    ],
)
def test_accuracy(name: str, figures: Mapping[str, float]) -> None:
    parsed = ours(f"accuracy_{name}.txt")
    assert {m.metric: m.value for m in parsed.measurements} == pytest.approx(dict(figures))
    assert (cases(parsed), parsed.standing, parsed.invalid, parsed.notes) == (
        {"accuracy"},
        Standing.UNVERIFIED,
        None,
        (),
    )
    lower = {m.metric for m in parsed.measurements if m.better is Better.LOWER}
    assert lower == figures.keys() & {"word_error_rate", "fid_score"}


def test_accuracy_with_parts() -> None:
    text = ours("accuracy_llm.txt")
    assert (value(text, "rouge1"), value(text, "rougel"), value(text, "rouge2")) == (44.7103, 28.9041, 22.3306)
    assert (value(text, "gen_len"), value(text, "mbxp")) == (29411802, 60.7)
    organs = ours("accuracy_3dunet.txt")
    assert (value(organs, "accuracy"), value(organs, "accuracy", part="kidney")) == (0.86204, 0.9333)
    classes = ours("accuracy_pointpainting.txt")
    assert value(classes, "map") == pytest.approx(0.54004755372157890)
    assert value(classes, "map", **{"class": "car"}) == pytest.approx(0.55781120934401766)
    ranks = ours("accuracy_dlrmv3.txt")
    assert (value(ranks, "lifetime_gauc"), value(ranks, "lifetime_gauc_num_samples")) == (0.785001923377104, 349821)


def test_accuracy_oddities() -> None:
    assert value(parse(b'{\n  "accuracy": 0.5,\n  "f1": 80.5\n}\n'), "f1") == 80.5
    assert (
        value(parse(b" Average Precision  (AP) @[ IoU=0.50:0.95 | area=   all | maxDets=100 ] = 0.375\n"), "map")
        == 0.375
    )
    assert parse(b"accuracy=70.0%, good=69, total=100\n").notes == (
        "accuracy 0.70000 disagrees with its own counts, 69 of 100",
    )
    assert [m.metric for m in parse(b"accuracy=76.5%, good=765, total=10").measurements] == ["accuracy", "good"]
    assert value(parse(b"accuracy 81.43\n"), "accuracy") == pytest.approx(0.8143)
    assert value(parse(b"accuracy 81.43%\nhash=1a46\n"), "accuracy") == pytest.approx(0.8143)
    for text in (b"accuracy=176.5%\n", b"accuracy=nan%\n", b"accuracy=76.", b"{'rouge1': 44.4", b"{'seed': 4}\n"):
        with pytest.raises(ParseError):
            parse(text)
    verified = parse(b"Verifying accuracy.\n'exact_match': 61.111\nTEST PASS\n")
    assert verified.invalid == "a compliance test's verification, not the accuracy of a run"


def test_accuracy_that_is_cut() -> None:
    line = b"accuracy=75.318%, good=37659, total=50000"
    for text in (line, line[:-3], line[:-8], b"hello\n" + line[:-14]):
        n = text.count(b"\n") + 1
        assert parse(text).invalid == f"the output is cut: line {n} may be half of one"
    for text in (line + b"\n", line + b"\n\nhash=1a", line + b"hash=1a", b"{'rouge1': 44.4}"):
        assert parse(text).invalid is None
    lost = b"metric/lifetime_ne/rating: 0.87\nmetric/lifetime_gauc/rating: 0.785\n"
    assert parse(lost).invalid == "the output is cut: the number of samples is missing that follows lifetime_gauc"
