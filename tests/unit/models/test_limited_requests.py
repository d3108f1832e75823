"""The requests of a limited run: few, spread over patients and families, the same every time, and asked by the keys of the whole run."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from fixtures.models import model_config, picture, request
from fixtures.tables import item
from neuralmedbench.files.tables import write_records
from neuralmedbench.models.requests_of_model import limited_requests, spread_requests
from neuralmedbench.models.samples import SampleWalk
from neuralmedbench.records.items import Arm, Family, Item, Level, Runner, Strategy
from neuralmedbench.records.requests import Request

FAMILIES = {f"b/{patient}{family}": family for patient in "abcdefgh" for family in ("diagnosis", "place", "reasons")}
ASKED = [
    replace(request(item.removeprefix("b/"), samples=5, arm=arm), patient_id=item[2], strategy=strategy)
    for item in FAMILIES
    for arm in (Arm.NO_IMAGE, Arm.FULL)
    for strategy in (Strategy.COT, Strategy.DIRECT)
]


def chosen(limit: int, asked: list[Request] = ASKED) -> list[Request]:
    return spread_requests(asked, limit, FAMILIES)


@pytest.mark.parametrize("limit", [1, 5, 8, 16, 20])
def test_a_limited_run_asks_one_sample_of_the_full_arm_and_first_strategy_evenly_over_patients_and_families(limit: int) -> None:
    rows = chosen(limit)
    assert len({row.item_id for row in rows}) == limit
    assert {(row.arm, row.strategy, row.samples) for row in rows} == {(Arm.FULL, Strategy.DIRECT, 1)}
    patients, families = Counter(row.patient_id for row in rows), Counter(FAMILIES[row.item_id] for row in rows)
    for numbers in ([patients[name] for name in "abcdefgh"], [families[name] for name in set(FAMILIES.values())]):
        assert max(numbers) - min(numbers) <= 1


def test_the_choice_depends_on_neither_the_order_of_the_table_nor_the_limit() -> None:
    assert chosen(20, ASKED[::-1]) == chosen(20)
    assert chosen(20)[:5] == chosen(5)
    assert chosen(1000) == chosen(24)
    assert {row.strategy for row in chosen(3, [row for row in ASKED if row.strategy == Strategy.COT])} == {Strategy.COT}


def test_an_answer_of_a_limited_run_has_the_key_of_the_whole_run() -> None:
    model = model_config(seed=1, temperature=1.0)
    whole = {row.item_id: row for row in ASKED if (row.arm, row.strategy) == (Arm.FULL, Strategy.DIRECT)}
    for row in chosen(4):
        assert SampleWalk(row, model, 0).key == SampleWalk(whole[row.item_id], model, 0).key


def test_a_question_that_a_model_cannot_be_asked_is_not_chosen(tmp_path: Path) -> None:
    options = tuple(replace(picture(tmp_path, number), option=True) for number in range(3))
    asked = [replace(row, turns=(replace(row.turns[0], images=options),)) if row.patient_id == "a" else row for row in ASKED]
    one = item("b", "a", "a", Family.LESION_RECOGNITION, level=Level.DIRECT, runner=Runner.OPEN)
    items = [replace(one, item_id=name) for name in FAMILIES]
    write_records(tmp_path / "items.parquet", Item, items, key=lambda row: row.item_id)
    found = limited_requests(model_config(max_images=2), asked, 24, tmp_path / "items.parquet")
    assert {row.patient_id for row in found} == set("bcdefgh")
    assert limited_requests(model_config(max_images=2), asked, 0, tmp_path / "none") == asked, "no limit"
