"""Test that the fields of a SKU follow from one declaration: in files, their schema, workbooks and the planner."""

from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated

from pydantic import create_model

from fleetmark.base.text import message
from fleetmark.demand.equipment import columns_of, skus
from fleetmark.demand.keys.part import Part
from fleetmark.demand.keys.sku import Sku as WrittenSku
from fleetmark.demand.keys.sku import keys_of
from fleetmark.planner.capacity.answer import Answer
from fleetmark.planner.capacity.sku import YEARLY, Declared, Kind, Sku, declared_fields
from tests.plans import question_of
from tests.reports import plan_sample

DERIVED = {"name", "out", "prices", "allowance"}  # the planner derives them; no file has them
SHORT = """
currency: EUR
date: 2027-01-01
periods: {names: [2027-Q1]}
discount: 8%
energy_price: 0.2
pue: 1.3
sites: {ams: {}}
workloads: {web: {unit: req/s, utilisation: 60%, demand: {p50: 8}}}
skus:
  old:
    price: 9000
    power: {idle: 100 W, peak: 200 W}
    rack_units: 1
    worth: {web: 5}
"""


@dataclass(frozen=True)
class Cooler:
    """A class with one declared field of each sort."""

    plain: int
    fans: Annotated[int, Declared(Kind.COUNT, message("fans"), empty="2", minimum=1)] = 2
    upkeep: Annotated[float, Declared(Kind.MONEY, message("upkeep"), YEARLY, key="terms.upkeep")] = 0.0
    pump_w: Annotated[float | None, Declared(Kind.WATTS, message("pump"), "W", empty="none", key="pump")] = None


def test_a_declared_field_is_a_key_and_a_column() -> None:
    keys = create_model("CoolerKeys", __base__=Part, **keys_of(Cooler))
    terms = create_model("CoolerTerms", __base__=Part, **keys_of(Cooler, "terms"))
    assert list(keys.model_fields) == ["fans", "pump"]
    assert keys.model_validate({"pump": "0.5 kW"}).model_dump() == {"fans": 2, "pump": 500.0}
    assert terms.model_validate({"upkeep": "7 USD"}).model_dump()["upkeep"] == {"value": 7.0, "unit": "USD"}
    fans, upkeep, pump = columns_of(Cooler, "cooler", "EUR")
    assert (fans.name, fans.title, fans.rule.minimum, fans.rule.hint) == (
        "cooler_fans",
        "fans",
        1,
        "a count: a whole number, 1 or more; empty: 2",
    )
    assert (upkeep.name, upkeep.unit, upkeep.rule.optional) == ("cooler_upkeep", "EUR a year", False)
    assert (pump.name, pump.unit, pump.rule.hint) == ("cooler_pump", "W", "a power: a number, 0 or more; empty: none")


def test_the_planner_derives_every_field_that_is_not_declared() -> None:
    declared = declared_fields(Sku)
    assert {field.name for field in fields(Sku)} - {field.name for field in declared} == DERIVED
    assert len({field.key for field in declared}) == len(declared) == len({field.column for field in declared})
    assert set(WrittenSku.model_fields) == {field.key.partition(".")[0] for field in declared}


def test_a_workbook_has_every_field_but_those_with_tables_of_their_own() -> None:
    names = [column.field for column in skus()]
    assert names[0] == "name"
    assert set(names[1:]) == {field.column for field in declared_fields(Sku)} - {"worth", "has"}


def test_a_file_that_leaves_a_key_out_gives_the_default_of_the_planner(tmp_path: Path) -> None:
    sku = question_of(tmp_path, SHORT).skus["old"]
    assert sku == Sku("old", sku.worth, 9000, 100, 200, rack_units=1)


def test_a_plan_in_json_keeps_its_key_for_the_reason_of_a_utilisation() -> None:
    question = plan_sample.question()
    data = plan_sample.document(Answer(question, plan_sample.plan(question))).data["question"]
    assert data["workloads"]["web"]["why"] == question.workloads["web"].reason
    worth = {"value", "se", "df", "source", "utilisation", "why", "hosts", "origin", "promised"}
    assert set(data["skus"]["new"]["worth"]["web"]) == worth
