"""Grade answers with a model that is blind to who answered; a failed grade is missing, never zero."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from neuralmedbench.config.model import GraderConfig, ModelConfig
from neuralmedbench.errors import ConfigError
from neuralmedbench.models.console import log_served_models
from neuralmedbench.models.destinations import check_destination
from neuralmedbench.models.engine import answer_requests
from neuralmedbench.models.ledger import open_ledger
from neuralmedbench.models.model_run import UNLIMITED, ModelRun, RunLimits
from neuralmedbench.records.items import Gold, Item
from neuralmedbench.records.keys import text_digest
from neuralmedbench.records.responses import Response, ResponseState
from neuralmedbench.records.scores import Grade, GradeState
from neuralmedbench.scoring.llm.grader_requests import ModelGrader, read_model_grader
from neuralmedbench.scoring.rubric import make_grade


@dataclass(frozen=True, kw_only=True)
class GraderRun:
    """One grader over the answers of one model.

    Attributes
    ----------
    grader : str
        Name of the grader.
    config : GraderConfig
        Its yaml.
    ledger : Path
        Ledger of this grader for this model: no grade is paid for twice.
    names : sequence of str
        Names of the model that answered, which the grader must not learn.
    destinations : sequence of str
        `allowed_destinations` of the benchmark.
    max_failed_fraction : float or None
        A larger share of failed calls is an error.
    replay : bool
        Take every grade from the ledger and ask for nothing. A grader that asked nothing left an empty ledger: it stays skipped.
    control : RunLimits
        As of `models.engine.answer_requests`.
    """

    grader: str
    config: GraderConfig
    ledger: Path
    names: Sequence[str] = ()
    destinations: Sequence[str] = ()
    max_failed_fraction: float | None = None
    replay: bool = False
    control: RunLimits = UNLIMITED


def grade_with_model(responses: Iterable[Response], items: Mapping[str, Item], gold: Mapping[str, Gold], run: GraderRun) -> list[Grade]:
    """Grade the responses of one model by asking another one.

    Parameters
    ----------
    responses : iterable of Response
        Answers of one model.
    items, gold : mapping
        By item id; an item without gold is not graded.
    run : GraderRun
        The grader, its ledger and its limits.

    Returns
    -------
    list of Grade
        The criteria of the grader's task for every open or dialogue response that was answered. Rows are `skipped` when the grader may not
        or cannot be asked, `failed` when its answer did not come, could not be read, or quotes what the answer does not hold.

    Raises
    ------
    ConfigError
        If the yaml lacks the model or the prompt, or the prompt is not usable.
    ProviderError
        As `models.engine.answer_requests`.
    """
    model_grader, model, grader = read_model_grader(run.grader, run.config, run.names), run.config.model, run.grader
    assert model
    wanted = [row for row in responses if row.item_id in gold and model_grader.wants(row, items[row.item_id], gold[row.item_id])]
    if reason := _may_not_ask(run, model):
        print(f"grader {grader}: {len(wanted)} answers are not graded: {reason}", file=sys.stderr)
        if not run.replay:
            with open_ledger(run.ledger):  # left empty, it says that nothing was asked
                pass
        return [
            grade
            for row in wanted
            for grade in _missing(
                row, model_grader.task.criteria(items[row.item_id], gold[row.item_id]), grader, GradeState.SKIPPED, reason
            )
        ]
    requests = {(row.item_id, text_digest(row.text)): model_grader.request(row, items[row.item_id], gold[row.item_id]) for row in wanted}
    answers = answer_requests(
        list(requests.values()),
        ModelRun(
            model.named(grader),
            ledger=run.ledger,
            destinations=run.destinations,
            max_failed_fraction=run.max_failed_fraction,
            replay=run.replay,
            control=run.control,
        ),
    )
    log_served_models(f"grader {grader}", answers)
    by_text = {(answer.item_id, answer.strategy): answer for answer in answers}
    pairs = [(row, by_text[row.item_id, text_digest(row.text)]) for row in wanted]
    return [
        _with_call(grade, answer)
        for row, answer in pairs
        for grade in _grades(row, answer, model_grader, grader, of=(items[row.item_id], gold[row.item_id]))
    ]


def _may_not_ask(run: GraderRun, model: ModelConfig) -> str:
    """Say why the grader may not or cannot be asked; empty when it can, or when its grades are in the ledger."""
    if run.replay and run.ledger.exists() and run.ledger.stat().st_size:
        return ""
    try:
        check_destination(model.named(run.grader), run.destinations)
    except ConfigError as error:
        return str(error)
    if not run.replay and model.api_key_env and not os.environ.get(model.api_key_env) and not run.ledger.exists():
        return f"the environment variable {model.api_key_env} is not set"
    return ""


def _grades(response: Response, answer: Response, model_grader: ModelGrader, grader: str, *, of: tuple[Item, Gold]) -> list[Grade]:
    points = model_grader.task.criteria(*of)
    if answer.state is ResponseState.SKIPPED:
        return _missing(response, points, grader, GradeState.SKIPPED, answer.error)
    if answer.state is not ResponseState.OK:
        return _missing(response, points, grader, GradeState.FAILED, f"the grader's answer is {answer.state}")
    judgements = model_grader.task.read(answer.text, model_grader.subject(response, *of))
    if judgements is None:
        return _missing(response, points, grader, GradeState.FAILED, "the grader's answer is not in its form")
    return [
        make_grade(response, grader, one.criterion, value=one.value, weight=points[one.criterion], explanation=one.explanation)
        for one in judgements
    ]


def _with_call(grade: Grade, answer: Response) -> Grade:
    """Keep of the grader's call who answered, and what left the machine."""
    return replace(
        grade,
        served_model=answer.served_model,
        fingerprint=answer.fingerprint,
        called_on=answer.called_on,
        destination=answer.destination,
        attempts=answer.attempts,
        characters_sent=answer.characters_sent,
    )


def _missing(response: Response, points: Mapping[str, float], grader: str, state: GradeState, why: str) -> list[Grade]:
    rows = [make_grade(response, grader, name, value=None, weight=weight, explanation=why) for name, weight in points.items()]
    return [replace(row, state=state) for row in rows]
