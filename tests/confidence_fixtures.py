"""Answers with confidences, made up, for the tests of their tables: no number comes from a model."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np

from neuralmedbench.estimates.intervals import Settings
from neuralmedbench.records.items import Family, Gold, Item, Level, Runner
from neuralmedbench.records.scores import Score
from neuralmedbench.records.vocabulary import Vocabulary
from neuralmedbench.tables.confidence.sources import Confidences, Source
from neuralmedbench.tables.outcomes import gather_outcomes
from tables_fixtures import item, score

FAST = Settings(resamples=200)


def open_item(number: int, patient: str, *, family: Family = Family.DIFFERENTIAL_DIAGNOSIS, level: Level = Level.DIRECT) -> Item:
    """Give an open item; free answers are of the family question_answering."""
    one = item("made-up", f"case{number}", patient, family, level=level, runner=Runner.OPEN)
    return replace(one, item_id=f"made-up/{number:03d}")


def study_of(items: list[Item], scores: dict[str, list[Score]], *, sampled: bool = True, tokens: dict[str, float] | None = None) -> Any:
    """Give what the tables read of a study; `tokens` are mean log-probabilities of the first samples by item."""
    gold = [Gold(item_id=one.item_id, answer="stroke") for one in items]
    known = dict.fromkeys(scores, sampled)
    responses = {
        model: [SimpleNamespace(**_key(row), mean_logprob=(tokens or {}).get(row.item_id)) for row in rows if row.repeat == 0]
        for model, rows in scores.items()
    }
    benchmark = SimpleNamespace(
        name="made-up",
        outcomes=gather_outcomes("made-up", "depth", items, gold, scores=scores, sampled=known),
        scores=scores,
        responses=responses,
        config=SimpleNamespace(title="Made up"),
    )
    models = {name: SimpleNamespace(title=name.title()) for name in scores}
    vocabulary = Vocabulary(version="1", digest="", diagnoses={}, locations={})
    return SimpleNamespace(benchmarks={"made-up": benchmark}, models=models, readers={}, vocabulary=vocabulary, settings=FAST)


def _key(row: Score) -> dict[str, Any]:
    return {name: getattr(row, name) for name in ("item_id", "arm", "strategy", "model", "revision", "repeat")}


def answer(one: Item, confidence: float | None, right: bool | None, **changes: object) -> Score:
    """Give an answer of the model `m`."""
    return score(one, "m", passed=right, **{"confidence": confidence, "differential": ("stroke",), **changes})  # type: ignore[arg-type]


def confidences(
    value: list[float], right: list[float], *, rest: list[float] | None = None, patients: list[int] | None = None
) -> Confidences:
    """Give confidences of one answer an item; of one item a patient unless it is said otherwise."""
    known, absent = np.arange(len(value)), rest or []
    return Confidences(
        benchmark="b",
        model="m",
        arm="full",
        source=Source.STATED,
        value=np.array(value, dtype=np.float64),
        right=np.array(right, dtype=np.float64),
        items=known,
        patients=known if patients is None else np.array(patients),
        rest_right=np.array(absent, dtype=np.float64),
        rest_patients=np.arange(len(absent)),
        reasons={"refused": len(absent), "truncated": 0, "abstained": 0, "unparsable": 0, "unstated": 0},
        missing=0,
    )
