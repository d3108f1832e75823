"""Repeat earlier requests to a model, to detect a silent change without a new revision."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from neuralmedbench.config.load import load_benchmark, load_model_for, withhold_outside_paths
from neuralmedbench.config.model import ModelConfig
from neuralmedbench.errors import DataError, ProviderError
from neuralmedbench.estimates.intervals import IntervalSettings
from neuralmedbench.models.causes import next_step
from neuralmedbench.models.engine import answer_requests
from neuralmedbench.models.ledger import read_ledger
from neuralmedbench.models.model_run import UNLIMITED, ModelRun, RunLimits
from neuralmedbench.models.registry import code_of, unavailable_reason
from neuralmedbench.models.replay import rebuild
from neuralmedbench.records.items import Gold, Item, Runner, is_headline
from neuralmedbench.records.requests import Request
from neuralmedbench.records.responses import MISSING_STATES, Response, is_by_another_model, printable_name
from neuralmedbench.records.scores import Score
from neuralmedbench.records.vocabulary import Vocabulary
from neuralmedbench.scoring.rubric import grade_with_rubric
from neuralmedbench.scoring.scores import score_responses
from neuralmedbench.tables.revisions import (
    ItemAnswers,
    asks_diagnoses,
    both_sides,
    change_words,
    is_change,
    leader_of,
    metric_rows,
)
from neuralmedbench.tables.rows import Cells
from neuralmedbench.tables.stored_runs import MAJORITY


@dataclass(frozen=True, kw_only=True)
class Drift:
    """Result of a check: True if the model changed, the lines that report it, and all measurements (a JSON value)."""

    changed: bool
    lines: list[str]
    found: Cells


def judge(
    pairs: Sequence[ItemAnswers],
    rows: tuple[list[Response], list[Response]],
    vocabulary: Vocabulary,
    settings: IntervalSettings,
    *,
    lost: int = 0,
) -> Drift:
    """Test the new answers against the earlier ones.

    The first line gives verdict and numbers; others name lost items, the items with different answers (only when the
    tests show a change) and a change of the served model.

    Raises
    ------
    DataError
        If no measure can be compared.
    """
    tests, asked = metric_rows(pairs, vocabulary, settings), rows[1][0]
    if not tests:
        message = (
            f"model {asked.model}: nothing to compare: nothing was read from an answer, before or now, and no item has a reference answer"
        )
        raise DataError(message)
    compared = [_item_row(pair, vocabulary) for pair in pairs]
    served = [_served_names(side) for side in rows]
    # another dated version is another model, however it answers
    changed = is_change(tests, settings) or bool(all(served) and served[0] != served[1])
    dates = [sorted({row.called_on for row in side} - {""}) for side in rows]
    who = f"{asked.model} on {asked.benchmark}, revision {asked.revision}, {len(pairs)} items asked again"
    lines = ["{}: {}. {}".format(who, *change_words(tests, settings, asks_diagnoses(pair.item for pair in pairs))).rstrip()]
    if lost:
        lines.append(f"{lost} more items were left out: some of their answers are missing.")
    if changed:
        lines.append(
            f"Answered differently: {', '.join(row['item_id'] for row in compared if row['otherwise']) or 'no item in most of its answers'}."
        )
    if served[0] != served[1]:
        lines.append(f"Served as {', '.join(served[0]) or 'not reported'} before, as {', '.join(served[1]) or 'not reported'} now.")
    found = {
        "benchmark": asked.benchmark,
        "model": asked.model,
        "revision": asked.revision,
        "changed": changed,
        "said": lines,
        "tests": tests,
        "items": compared,
        "items_lost": lost,
        "first_repeat": min(row.repeat for row in rows[1]),
        "served": {"before": served[0], "now": served[1]},
        "called_on": {"before": dates[0], "now": dates[1]},
        "resamples": settings.resamples,
        "seed": settings.seed,
        "confidence": settings.confidence,
    }
    return Drift(changed=changed, lines=lines, found=found)


def _served_names(rows: Sequence[Response]) -> list[str]:
    return withhold_outside_paths(sorted({printable_name(row.served_model) for row in rows} - {""}))


def _another_model(asked: Sequence[Request], old: Sequence[Response], new: Sequence[Response], others: Counter[str]) -> Drift:
    """Return the result of a check whose answers came from another model than the one asked: nothing is compared."""
    row, (why, _) = new[0], others.most_common(1)[0]
    who = f"{row.model} on {row.benchmark}, revision {row.revision}, {len(asked)} items asked again"
    lines = [f"{who}: changed: {others.total()} of {len(new)} answers were {why}; {next_step(why)}."]
    found = {"benchmark": row.benchmark, "model": row.model, "revision": row.revision, "changed": True, "said": lines}
    return Drift(changed=True, lines=lines, found=found | {"served": {"before": _served_names(old), "now": _served_names(new)}})


def _item_row(pair: ItemAnswers, vocabulary: Vocabulary) -> Cells:
    """Return the answers to one item before and now; `otherwise`: the commonest leader or the majority verdict differs."""
    row: Cells = {"item_id": pair.item.item_id, "case_id": pair.item.case_id}
    for side, scores in (("before", pair.old), ("now", pair.new)):
        leaders = Counter(leader_of(score, vocabulary) or "" for score in scores)
        passes = sum(bool(score.passed) for score in scores)
        row[side] = {"leaders": dict(sorted(leaders.items())), "passes": passes, "answers": len(scores)}
    # different if the majority verdict or all of the commonest leaders differ
    verdicts = {row[side]["passes"] > MAJORITY * row[side]["answers"] for side in ("before", "now")}
    same = _commonest(row["before"]["leaders"]) & _commonest(row["now"]["leaders"])
    return row | {"otherwise": not same or len(verdicts) > 1}


def _commonest(leaders: Mapping[str, int]) -> set[str]:
    return {name for name, count in leaders.items() if count == max(leaders.values())}


ITEMS = 20
FIRST_REPEAT = 1000
"""Repeats from this number on belong to checks; a run asks at most 100 samples."""

GRADER = "rubric"


@dataclass(frozen=True, kw_only=True)
class DriftTarget:
    """The model to check: name and configuration, the destinations that the benchmark allows, its ledger, and the ledger of its checks."""

    name: str
    model: ModelConfig
    destinations: Sequence[str]
    ledger: Path
    checks: Path

    @classmethod
    def of(cls, benchmark: str, name: str, root: Path = Path()) -> DriftTarget:
        """Find a model and its ledgers below the repository root; ConfigError as in `config.load`."""
        return cls(
            name=name,
            model=load_model_for(root / "config", benchmark, name),
            destinations=load_benchmark(root / "config", benchmark).allowed_destinations,
            ledger=root / "data" / "ledger" / benchmark / f"{name}.jsonl",
            checks=root / "data" / "ledger" / benchmark / "drift" / f"{name}.jsonl",
        )


def check_drift(
    requests: Sequence[Request],
    items: Mapping[str, Item],
    gold: Mapping[str, Gold],
    place: DriftTarget,
    *,
    vocabulary: Vocabulary,
    settings: IntervalSettings,
    root: Path = Path(),
    control: RunLimits = UNLIMITED,
) -> Drift:
    """Ask a model its 20 fixed items again and test the answers against those in its ledger.

    Parameters
    ----------
    requests : sequence of Request
        All requests of the benchmark.
    items, gold : mapping
        By item id; an item without gold is compared by the leading diagnosis of the answers.
    place : DriftTarget
        The model.
    vocabulary : Vocabulary
        For scoring, and for built-in models.
    settings : IntervalSettings
        Draws, seed and confidence of the test.
    root : Path
        Folder to which the paths of pictures are relative.
    control : RunLimits
        As in `models.engine.answer_requests`.

    Returns
    -------
    Drift
        Both sides are scored by the same code, open items by the deterministic grader only, and tested as revisions are
        (`tables.revisions`). The new answers are kept in the ledger of the checks, under repeats that were never used.

    Raises
    ------
    ConfigError, DataError, ProviderError
        As in `models.engine.answer_requests`; also if the model cannot be asked here, its ledger holds no complete answers of this
        revision, or none came.
    """
    name, model = place.name, place.model
    if reason := unavailable_reason(model):
        message = f"model {name}: it cannot be asked: {reason}; set it and run again"
        raise ProviderError(message)
    # the answers of the ledger, as responses
    old = rebuild(
        [request for request in requests if _is_plain(request)],
        model,
        read_ledger(place.ledger),
        code=code_of(model, vocabulary),
    )
    old = [row for row in old if row.state not in MISSING_STATES]
    asked = fixed_requests(requests, old)
    if not asked:
        message = (
            f"model {name}: its ledger holds no complete answers of revision {model.revision} to single questions under the arm full:"
            " run the workflow first, so that there are answers to compare with"
        )
        raise DataError(message)
    # repeats that no earlier check used, so that every call is new
    first = max((entry.repeat + 1 for entry in read_ledger(place.checks).values()), default=FIRST_REPEAT)
    new = answer_requests(
        asked,
        ModelRun(
            model,
            ledger=place.checks,
            destinations=place.destinations,
            max_failed_fraction=None,
            root=root,
            vocabulary=vocabulary,
            first_repeat=first,
            control=control,
        ),
    )
    if others := Counter(row.error for row in new if is_by_another_model(row.error)):
        return _another_model(asked, old, new, others)
    failures = Counter(row.error or str(row.state) for row in new if row.state in MISSING_STATES)
    # an item with a missing new answer is left out
    lost = {row.item_id for row in new if row.state in MISSING_STATES}
    kept = {request.item_id for request in asked} - lost
    if not kept:
        message = (
            f"model {name}: {failures.total()} of {len(new)} answers are missing (most often {failures.most_common(1)[0][0]}), so no item"
            " has all of its answers; nothing was compared: run again"
        )
        raise ProviderError(message)
    # score both sides with the same code, and test them
    before, now = ([row for row in rows if row.item_id in kept] for rows in (old, new))
    pairs = both_sides(list(items.values()), *(_score_answers(rows, items, gold, vocabulary) for rows in (before, now)))
    return judge(pairs, (before, now), vocabulary, settings, lost=len(lost))


def fixed_requests(requests: Sequence[Request], answered: Sequence[Response]) -> list[Request]:
    """Pick the requests to repeat: the same ones every time, as long as the ledger has all of their answers.

    Open, choice and structured items under the arm full, the first ones in the order of the hash of their id.
    """
    samples = Counter(row.item_id for row in answered if is_headline(row))
    complete = [request for request in requests if _is_plain(request) and samples[request.item_id] == request.samples]
    return sorted(complete, key=lambda request: hashlib.sha256(request.item_id.encode()).hexdigest())[:ITEMS]


def _is_plain(request: Request) -> bool:
    return is_headline(request) and request.runner != Runner.DIALOGUE and len(request.turns) == 1


def _score_answers(rows: Sequence[Response], items: Mapping[str, Item], gold: Mapping[str, Gold], vocabulary: Vocabulary) -> list[Score]:
    grades = grade_with_rubric(rows, items, gold, vocabulary, grader=GRADER)
    return score_responses(rows, items, gold, [grades], vocabulary=vocabulary)
