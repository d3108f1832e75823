"""One number has one value and one interval, in whatever table of a run it stands."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TypeVar

import numpy as np
import pytest

from fixtures.one_value import places_of, second_values
from fixtures.report import build
from fixtures.tables import DEPTH, write_study
from neuralmedbench.files.result_tables import read_result
from neuralmedbench.files.tables import read_records, read_table, write_records
from neuralmedbench.records.items import Item
from neuralmedbench.records.responses import Response
from neuralmedbench.records.results import by_measure
from neuralmedbench.records.scores import Score, response_key

MODELS = ("alpha", "beta", "gamma")
Row = TypeVar("Row", Item, Score, Response)


@pytest.fixture(scope="module")
def uneven(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """Make a run in which one patient has three of twelve cases, and some patients share requests."""
    root = tmp_path_factory.mktemp("uneven")
    write_study(root, models=MODELS)
    path = root / f"data/items/{DEPTH}.parquet"
    write_records(path, Item, [_joined(row) for row in read_records(path, Item)], key=lambda row: row.item_id)
    for model in MODELS:
        path = root / f"results/scores/{DEPTH}/{model}.parquet"
        write_records(path, Score, [_joined(row) for row in read_records(path, Score)], key=response_key)
        path = root / f"results/responses/{DEPTH}/{model}.parquet"
        called = [replace(_joined(row), call_keys=(_call(row),)) for row in read_records(path, Response)]
        write_records(path, Response, called, key=response_key)
    return root, build(root, MODELS, figures=False)


def _joined(row: Row) -> Row:
    return replace(row, patient_id="patient00") if row.case_id in {"case01", "case02"} else row


def _call(row: Response) -> str:
    """Name a call: the last two patients share all of theirs, and every two patients those of the findings alone."""
    number = int(row.case_id.removeprefix("case"))
    case = number // 2 if row.arm == "findings_only" else min(number, 10)
    return f"{case} {row.item_id.rpartition('/')[2]} {row.arm} {row.repeat}"


def test_no_number_has_a_second_value_or_interval(uneven: tuple[Path, str]) -> None:
    tables = uneven[0] / "results/tables"
    assert second_values(tables) == []
    several = [about for about, places in places_of(tables).items() if len(places) > 1]
    assert {about[-1] for about in several} >= {"pass1", "pass1_patients", "candidates5", "difference"}
    of_two_tables = {about for about in several if about[-1] in {"pass1_patients", "difference"}}
    assert len(of_two_tables) >= 2 * len(MODELS)


def test_a_second_interval_is_found(uneven: tuple[Path, str], tmp_path: Path) -> None:
    tables = tmp_path / "results/tables"
    tables.mkdir(parents=True)
    (tables.parent / "metrics.json").write_text("{}", encoding="utf-8")
    text = (uneven[0] / "results/tables/contrasts.csv").read_text(encoding="utf-8")
    (tables / "contrasts.csv").write_text(text, encoding="utf-8")
    assert second_values(tables) == []
    row = next(row for row in read_table(tables / "contrasts.csv") if row["measure"] == "gain")
    gain = next(line for line in text.splitlines() if ",gain,findings_disclosed," in line)
    changed = gain.replace(f",{row['low']},", ",-0.999999,")
    (tables / "contrasts.csv").write_text(text.replace(gain, changed), encoding="utf-8")
    assert any(": low" in line for line in second_values(tables))


def test_the_leaderboard_ranks_by_patients_alike(uneven: tuple[Path, str]) -> None:
    root, page = uneven
    board = {row["model"]: row for row in read_table(root / "results/tables/leaderboard.csv") if row["benchmark"] == DEPTH}
    items = {row.item_id: row.patient_id for row in read_records(root / f"data/items/{DEPTH}.parquet", Item)}
    for model in MODELS:
        passed: dict[str, dict[str, list[bool]]] = {}
        for row in read_records(root / f"results/scores/{DEPTH}/{model}.parquet", Score):
            if row.arm == "full":
                passed.setdefault(items[row.item_id], {}).setdefault(row.item_id, []).append(bool(row.passed))
        of_patients = [np.mean([np.mean(answers) for answers in own.values()]) for own in passed.values()]
        assert float(board[model]["pass1_patients"]) == pytest.approx(np.mean(of_patients), abs=1e-6)
        assert board[model]["pass1"] != board[model]["pass1_patients"]
    ranked = sorted(MODELS, key=lambda model: int(board[model]["rank"]))
    assert ranked == sorted(MODELS, key=lambda model: -float(board[model]["pass1_patients"]))
    assert "Mean over items" in page


def test_a_difference_is_that_of_the_numbers_that_rank(uneven: tuple[Path, str]) -> None:
    tables = uneven[0] / "results/tables"
    board = {(row["benchmark"], row["model"]): row for row in read_table(tables / "leaderboard.csv")}
    pairs = [row for row in read_table(tables / "contrasts.csv") if row["topic"] == "pairs"]
    assert pairs
    for row in pairs:
        first, second = (float(board[row["benchmark"], row[side]]["pass1_patients"]) for side in ("model", "other"))
        if all(board[row["benchmark"], row[side]]["missing"] == "0" for side in ("model", "other")):
            assert float(row["difference"]) == pytest.approx(first - second, abs=2e-6)
    of_arms = by_measure(read_result(tables, "decomposition"), "arm")
    compared = [(place, told) for place, told in of_arms.items() if "gain" in told]
    assert compared
    for (benchmark, model, _), told in compared:
        gain, effect = (float(told[name]["difference"]) for name in ("gain", "effect"))
        values = {name: float(row["value"]) for name, row in told.items() if row["value"]}
        full, donor = (float(of_arms[benchmark, model, arm]["pass1_patients"]["value"]) for arm in ("full", "findings_of_another"))
        assert gain == pytest.approx(values["pass1_patients"] - full, abs=2e-6)
        assert gain == pytest.approx(values["repaired"] - values["made"], abs=2e-6)
        assert effect == pytest.approx(values["pass1_patients"] - donor, abs=2e-6)
