"""The answers behind a row of a table, and its plain rates counted once more from the scores, without the code of the tables."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from neuralmedbench.files.tables import read_records
from neuralmedbench.records.items import DIAGNOSES, Gold, Item, Runner, Strategy
from neuralmedbench.records.responses import Response
from neuralmedbench.records.scores import Score
from neuralmedbench.tables.outcomes import can_pass

DIRECT = "direct"
CANDIDATES = frozenset({Runner.OPEN, Runner.DIALOGUE})
GRADES = ("main_condition", "core_diagnosis", "rubric")


def _sequence(item: Item, gold: Gold) -> str:
    """Name the one sequence of an item's pictures, `several_sequences`, or that of the reference where the pictures do not say it."""
    found = {image.sequence for image in item.images} - {"", "unknown"}
    if found:
        return found.pop() if len(found) == 1 else "several_sequences"
    return gold.fields.sequence or "" if gold.fields else ""


PARTS: dict[str, Callable[[Item, Gold], str]] = {
    "all": lambda _item, _gold: "all",
    "family": lambda item, _gold: str(item.family),
    "level": lambda item, _gold: str(item.level),
    "diagnosis": lambda _item, gold: gold.answer,
    "lesion_shown": lambda item, _gold: str(item.lesion_shown).lower(),
    "sequence": _sequence,
}
"""Slices of the tables that can be told from an item and its reference alone."""


@dataclass(frozen=True)
class Answers:
    """The answers of one model to one item under one arm: how many are expected, what they scored, what came back."""

    item: Item
    expected: int
    scores: tuple[Score, ...]
    responses: tuple[Response, ...]

    @property
    def passed(self) -> int:
        """Answers that pass."""
        return sum(row.passed is True for row in self.scores)

    @property
    def missing(self) -> int:
        """Answers that are missing because of us: no answer, or no grade."""
        return max(self.expected - sum(row.passed is not None and not row.missing for row in self.scores), 0)


def read_answers(
    benchmark: str, model: str, *, arm: str = "full", strategy: str = DIRECT, part: tuple[str, str] = ("all", "all"), root: Path = Path()
) -> list[Answers]:
    """Read the answers of one model to the items that count.

    Parameters
    ----------
    benchmark, model, arm, strategy : str
        Whose.
    part : tuple of str
        A slice of `PARTS`, and its value.
    root : Path
        The repository root.

    Returns
    -------
    list of Answers
        One an item that has a reference answer, belongs to the slice and was asked, sorted by item id; of the present revision.

    Raises
    ------
    DataError
        If a table of the run is not there.
    """
    gold = {row.item_id: row for row in read_records(root / f"data/gold/{benchmark}.parquet", Gold)}
    items = read_records(root / f"data/items/{benchmark}.parquet", Item)
    all_responses = read_records(root / f"results/responses/{benchmark}/{model}.parquet", Response)
    present = all_responses[0].revision if all_responses else ""
    scores, responses = defaultdict[str, list[Score]](list), defaultdict[str, list[Response]](list)
    samples: dict[str, int] = defaultdict(lambda: 1)
    for score in read_records(root / f"results/scores/{benchmark}/{model}.parquet", Score):
        if (score.arm, score.strategy, score.revision) == (arm, strategy, present):
            scores[score.item_id].append(score)
            if strategy != Strategy.SELF_CONSISTENCY:  # one answer an item is left of the vote, under the number of the sample that won
                samples[score.runner] = max(samples[score.runner], score.repeat + 1)
    for response in all_responses:
        if (response.arm, response.strategy, response.revision) == (arm, strategy, present):
            responses[response.item_id].append(response)
    return [
        Answers(item, samples[item.runner], tuple(scores[item.item_id]), tuple(responses[item.item_id]))
        for item in sorted(items, key=lambda item: item.item_id)
        if item.item_id in gold
        and can_pass(item, gold[item.item_id])
        and PARTS[part[0]](item, gold[item.item_id]) == part[1]
        and ((arm, strategy) == ("full", DIRECT) or item.item_id in scores)
    ]


def recount(name: str, answers: Sequence[Answers]) -> float | int | None:
    """Count one number once more.

    Parameters
    ----------
    name : str
        `pass1`, `best_case`, `worst_case`, `candidates5`, `main_condition`, `core_diagnosis`, `rubric`, `expected`, `missing`,
        `missing_fraction`, `n_items`, `n_patients`, `refused` or `truncated`.
    answers : sequence of Answers
        The answers.

    Returns
    -------
    float, int or None
        A rate is the mean over the items of the share of the expected answers; None for any other name, and for a rate of nothing.
    """
    expected, missing = sum(one.expected for one in answers), sum(one.missing for one in answers)
    counts = {
        "expected": expected,
        "missing": missing,
        "n_items": len(answers),
        "n_patients": len({one.item.patient_id for one in answers}),
        **{state: sum(row.state == state for one in answers for row in one.scores) for state in ("refused", "truncated")},
    }
    if name in counts:
        return counts[name]
    if name == "missing_fraction":
        return missing / max(expected, 1)
    shares: dict[str, list[float]] = {
        "pass1": [one.passed / one.expected for one in answers],
        "best_case": [(one.passed + one.missing) / one.expected for one in answers],
        "candidates5": [
            sum(bool(row.in_candidates) for row in _counted(one)) / one.expected for one in answers if _has_candidates(one.item)
        ],
    }
    shares["worst_case"] = shares["pass1"]
    if missing >= expected:  # no answer is there: nothing is known, and no rate is 0
        shares = {}
    if name in GRADES:
        grades = [[value for row in one.scores if not row.missing and (value := getattr(row, name)) is not None] for one in answers]
        shares[name] = [math.fsum(values) / len(values) for values in grades if values]
    values = shares.get(name, [])
    return math.fsum(values) / len(values) if values else None


def _counted(answers: Answers) -> list[Score]:
    return [row for row in answers.scores if row.passed is not None and not row.missing]


def _has_candidates(item: Item) -> bool:
    return item.runner in CANDIDATES and item.family in DIAGNOSES
