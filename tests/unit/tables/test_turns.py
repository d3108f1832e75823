"""Dialogues turn by turn: right after each turn, and anchoring on the first hypothesis."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

from fixtures.prompt import open_question
from fixtures.scoring import vocabulary
from neuralmedbench.estimates.intervals import IntervalSettings
from neuralmedbench.records.items import Gold
from neuralmedbench.records.scores import Score
from neuralmedbench.tables.outcomes import gather_outcomes
from neuralmedbench.tables.reasoning import turn_rows
from neuralmedbench.tables.study import Study

KEYS = {"benchmark": "b", "axis": "depth", "family": "differential_diagnosis", "level": "dialogue", "runner": "dialogue", "model": "m"}
REST = {"revision": "1", "text_sha256": "", "state": "ok", "parse_status": "strict", "scored": True, "lesion_shown": None}


def sample(item: str, *turns: tuple[str, bool], repeat: int = 0, **changes: Any) -> Score:
    """Return a sample whose turns have these leaders, right or wrong."""
    words, passes = zip(*turns, strict=True)
    which = {"item_id": item, "case_id": item, "patient_id": item, "arm": "full", "strategy": "direct", "repeat": repeat, "missing": False}
    return Score(**KEYS | REST | which | {"turn_leaders": words, "turn_passes": passes} | changes)


def rows_of(*scores: Score) -> dict[tuple[str, str], dict[str, Any]]:
    asked = {row.item_id: row.patient_id for row in scores}
    items = [replace(open_question(), item_id=name, patient_id=patient) for name, patient in asked.items()]
    gold = [Gold(item_id=name, answer="brain abscess") for name in asked]
    outcomes = gather_outcomes("b", "depth", items, gold, scores={"m": list(scores)}, sampled={"m": False})
    study = SimpleNamespace(
        benchmarks={"b": SimpleNamespace(name="b", outcomes=outcomes, scores={"m": list(scores)})},
        models={"m": None},
        vocabulary=vocabulary(),
        settings=IntervalSettings(200, 1, 0.95),
    )
    return {(row["measure"], row["value_of_slice"]): row for row in turn_rows(cast(Study, study))}


def test_a_wrong_first_hypothesis_that_is_kept_in_other_words_is_anchored():
    found = rows_of(
        sample("a", ("GBM", False), ("Glioblastoma multiforme", False)),
        sample("b", ("GBM", False), ("brain abscess", True)),
        sample("c", ("migraine", False), ("stroke", False)),
        sample("d", ("brain abscess", True), ("brain abscess", True)),
        sample("e", ("brain abscess", True), ("GBM", False)),
    )
    assert {key: (row["value"], row["n_items"], row["n_answers"]) for key, row in found.items()} == {
        ("right", "1"): (2 / 5, 5, 5),
        ("right", "2"): (2 / 5, 5, 5),
        ("anchored", ""): (1 / 3, 3, 3),
        ("lost", ""): (1 / 2, 2, 2),
    }
    assert all(0 <= row["low"] <= row["value"] <= row["high"] <= 1 for row in found.values())


def test_samples_count_in_their_item_and_a_turn_that_names_nothing_is_never_the_same_again():
    found = rows_of(
        sample("a", ("GBM", False), ("GBM", False), repeat=0),
        sample("a", ("GBM", False), ("abscess", True), repeat=1),
        sample("b", ("", False), ("", False)),
        sample("c", ("a rare thing", False), ("A rare thing.", False)),
    )
    anchored = found["anchored", ""]
    assert (anchored["value"], anchored["n_items"], anchored["n_patients"], anchored["n_answers"]) == (0.5, 3, 3, 4)


def test_missing_samples_other_arms_and_strategies_and_what_is_no_dialogue_are_left_out():
    left_out = [
        sample("a", ("GBM", False), ("GBM", False), missing=True),
        sample("b", ("GBM", False), ("GBM", False), arm="no_image"),
        sample("c", ("GBM", False), ("GBM", False), strategy="cot"),
        sample("d", ("GBM", False), turn_passes=(), turn_leaders=()),
    ]
    assert rows_of(*left_out) == {}
