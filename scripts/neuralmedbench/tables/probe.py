"""Ask a model earlier questions again, and compare with the answers in its ledger: a change that no revision announced."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

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
from neuralmedbench.records.vocabulary import Vocabulary
from neuralmedbench.scoring.rubric import grade_with_rubric
from neuralmedbench.scoring.scores import score_responses
from neuralmedbench.tables.changes import Side
from neuralmedbench.tables.two_runs import TESTS, WHOLE, Sides, compare_runs, comparison_answer


class ProbeResult(NamedTuple):
    """Result of a probe: True if the model changed, and the lines that report it."""

    changed: bool
    lines: list[str]


ITEMS = 20
FIRST_REPEAT = 1000
"""Repeats from this number on belong to probes; a run asks at most 100 samples."""

GRADER = "rubric"


@dataclass(frozen=True, kw_only=True)
class ProbeTarget:
    """The model to ask: benchmark, configuration, the destinations that the benchmark allows, its ledger, and the ledger of its probes."""

    benchmark: str
    model: ModelConfig
    destinations: Sequence[str]
    ledger: Path
    checks: Path

    @classmethod
    def of(cls, benchmark: str, name: str, root: Path = Path()) -> ProbeTarget:
        """Find a model and its ledgers below the repository root; ConfigError as in `config.load`."""
        return cls(
            benchmark=benchmark,
            model=load_model_for(root / "config", benchmark, name),
            destinations=load_benchmark(root / "config", benchmark).allowed_destinations,
            ledger=root / "data" / "ledger" / benchmark / f"{name}.jsonl",
            checks=root / "data" / "ledger" / benchmark / "drift" / f"{name}.jsonl",
        )


def probe_model(
    requests: Sequence[Request],
    items: Mapping[str, Item],
    gold: Mapping[str, Gold],
    target: ProbeTarget,
    *,
    vocabulary: Vocabulary,
    settings: IntervalSettings,
    count: int = ITEMS,
    root: Path = Path(),
    control: RunLimits = UNLIMITED,
) -> ProbeResult:
    """Ask a model some fixed items again, and compare the answers with those in its ledger as two runs are compared.

    Parameters
    ----------
    requests : sequence of Request
        All requests of the benchmark.
    items, gold : mapping
        By item id; an item without gold is compared by the leading diagnosis of the answers.
    target : ProbeTarget
        The model.
    vocabulary : Vocabulary
        For scoring, and for built-in models.
    settings : IntervalSettings
        Draws, seed and confidence of the test.
    count : int
        Most items that are asked.
    root : Path
        Folder to which the paths of pictures are relative.
    control : RunLimits
        As in `models.engine.answer_requests`.

    Returns
    -------
    ProbeResult
        Both sides are scored by the same code, open items by the deterministic grader only. The new answers are kept in the ledger of the
        probes, under repeats that were never used.

    Raises
    ------
    ConfigError, DataError, ProviderError
        As in `models.engine.answer_requests`; also if the model cannot be asked here, its ledger holds no complete answers of this
        revision, none came, or nothing can be tested.
    """
    model = target.model
    if reason := unavailable_reason(model):
        message = f"model {model.name}: it cannot be asked: {reason}; set it and run again"
        raise ProviderError(message)
    # the answers of the ledger, as responses
    plain = [request for request in requests if _is_plain(request)]
    old = rebuild(plain, model, read_ledger(target.ledger), code=code_of(model, vocabulary))
    old = [row for row in old if row.state not in MISSING_STATES]
    asked = fixed_requests(plain, old, count)
    if not asked:
        message = (
            f"model {model.name}: its ledger holds no complete answers of revision {model.revision} to single questions under the arm full:"
            " run the workflow first, so that there are answers to compare with"
        )
        raise DataError(message)
    names = {request.item_id for request in asked}
    old = [row for row in old if row.item_id in names]
    # repeats that no earlier probe used, so that every call is new
    first = max((entry.repeat + 1 for entry in read_ledger(target.checks).values()), default=FIRST_REPEAT)
    new = answer_requests(
        asked,
        ModelRun(
            model,
            ledger=target.checks,
            destinations=target.destinations,
            max_failed_fraction=None,
            root=root,
            vocabulary=vocabulary,
            first_repeat=first,
            control=control,
        ),
    )
    who = f"{model.name} on {target.benchmark}, revision {model.revision}, {len(asked)} items asked again"
    if others := Counter(row.error for row in new if is_by_another_model(row.error)):
        why = others.most_common(1)[0][0]
        return ProbeResult(True, [f"{who}: changed: {others.total()} of {len(new)} answers were {why}; {next_step(why)}."])
    missing = [row for row in new if row.state in MISSING_STATES]
    if names <= {row.item_id for row in missing}:
        causes = Counter(row.error or str(row.state) for row in missing)
        message = (
            f"model {model.name}: {len(missing)} of {len(new)} answers are missing (most often {causes.most_common(1)[0][0]}), so no item"
            " has all of its answers; nothing was compared: run again"
        )
        raise ProviderError(message)
    # samples are numbered from 0 on both sides, so that they pair
    now = [replace(row, repeat=row.repeat - first) for row in new]
    sides = [_scored(rows, items, gold, vocabulary) for rows in (old, now)]
    return _judged(who, sides, [_served_names(rows) for rows in (old, new)], vocabulary, settings)


def _scored(rows: Sequence[Response], items: Mapping[str, Item], gold: Mapping[str, Gold], vocabulary: Vocabulary) -> Sides:
    """Score the answers of one model to one benchmark as a run of its own."""
    grades = grade_with_rubric(rows, items, gold, vocabulary, grader=GRADER)
    scores = score_responses(rows, items, gold, [grades], vocabulary=vocabulary)
    return {(rows[0].benchmark, rows[0].model): Side.of(scores, rows)}


def _judged(
    who: str, sides: Sequence[Sides], served: Sequence[Sequence[str]], vocabulary: Vocabulary, settings: IntervalSettings
) -> ProbeResult:
    """Compare the answers before and now, and the names under which the model answered."""
    comparison = compare_runs(sides[0], sides[1], vocabulary, settings)
    whole = [row for row in comparison.differences if row["comparisons"] == WHOLE]
    if not any(row[test] is not None for row in whole for test in TESTS):
        message = f"{who}: nothing to compare: no item has a reference answer, and nothing was read from repeated answers, before or now"
        raise DataError(message)
    # another dated version is another model, however it answers
    changed = any(row["changed"] for row in whole) or bool(all(served) and served[0] != served[1])
    lines = [f"{who}: {comparison_answer(comparison, {}, {})}"]
    if comparison.changed:
        lines.append(f"Changed sides: {', '.join(row['item_id'] for row in comparison.changed)}.")
    if served[0] != served[1]:
        lines.append(f"Served as {', '.join(served[0]) or 'not reported'} before, as {', '.join(served[1]) or 'not reported'} now.")
    return ProbeResult(changed, lines)


def _served_names(rows: Sequence[Response]) -> list[str]:
    return withhold_outside_paths(sorted({printable_name(row.served_model) for row in rows} - {""}))


def fixed_requests(requests: Sequence[Request], answered: Sequence[Response], count: int = ITEMS) -> list[Request]:
    """Pick the requests to repeat: the same ones every time, as long as the ledger has all of their answers.

    They are the first ones in the order of the hash of their item id.
    """
    samples = Counter(row.item_id for row in answered if is_headline(row))
    complete = [request for request in requests if samples[request.item_id] == request.samples]
    return sorted(complete, key=lambda request: hashlib.sha256(request.item_id.encode()).hexdigest())[:count]


def _is_plain(request: Request) -> bool:
    return is_headline(request) and request.runner != Runner.DIALOGUE and len(request.turns) == 1
