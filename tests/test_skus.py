"""Test that the fields of a SKU agree wherever they stand: in files, in workbooks and in the planner."""

from __future__ import annotations

from dataclasses import MISSING, fields

from fleetmark.demand.equipment import skus
from fleetmark.demand.keys.sku import Sku as WrittenSku
from fleetmark.planner.capacity.answer import Answer
from fleetmark.planner.capacity.question import Sku
from tests.reports import plan_sample

# Fields of files that the planner knows by other names, and fields that the planner derives.
RENAMED = {
    "power": {"idle_w", "peak_w", "provisioned_w"},
    "cooling": {"liquid"},
    "price_breaks": {"breaks"},
    "price": {"price", "prices"},
}
DERIVED = {"name", "out", "allowance"}


def test_a_file_gives_every_field_of_the_planner() -> None:
    written = set(WrittenSku.model_fields)
    given = (written - set(RENAMED)).union(*RENAMED.values())
    assert given == {field.name for field in fields(Sku)} - DERIVED


def test_a_workbook_has_every_field_of_a_file() -> None:
    columns = {column.field for column in skus()}
    written = set(WrittenSku.model_fields) - {"power", "worth", "has"}  # worth and resources have tables of their own
    assert columns == written | RENAMED["power"] | {"name"}


def test_what_a_file_leaves_out_is_what_the_planner_assumes() -> None:
    plain = {
        field.name: field.default
        for field in fields(Sku)
        if field.default is not MISSING and field.name not in DERIVED | {"slips", "vendor", "age_limit"}
    }
    own_units = dict.fromkeys(("lead", "term", "repair"), (0.0, "period"))  # with its unit in a file
    for name, default in plain.items():
        if name in WrittenSku.model_fields:
            value = WrittenSku.model_fields[name].default
            number = getattr(value, "value", value)
            assert (number == own_units[name]) if name in own_units else (number == default), name


def test_a_plan_in_json_keeps_its_key_for_the_reason_of_a_utilisation() -> None:
    question = plan_sample.question()
    data = plan_sample.document(Answer(question, plan_sample.plan(question))).data["question"]
    assert data["workloads"]["web"]["why"] == question.workloads["web"].reason
    worth = {"value", "se", "df", "source", "utilisation", "why", "hosts", "origin", "promised"}
    assert set(data["skus"]["new"]["worth"]["web"]) == worth
