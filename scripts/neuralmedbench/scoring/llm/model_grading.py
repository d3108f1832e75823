"""Grade answers with a model that does not know which model answered; a failed grade is missing, never zero.

A table to grade has the answers of a model, some of them again with planted errors, or planted answers alone.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from neuralmedbench.errors import ConfigError, ProviderError
from neuralmedbench.files.tables import read_records
from neuralmedbench.files.vocabulary import read_urgency, read_vocabulary, urgency_path
from neuralmedbench.models.console import log_served_models
from neuralmedbench.models.destinations import check_destination
from neuralmedbench.models.engine import answer_requests
from neuralmedbench.models.ledger import open_ledger, read_ledger
from neuralmedbench.models.model_run import ModelRun
from neuralmedbench.models.samples import SampleWalk, response_row
from neuralmedbench.records.items import Gold, Item
from neuralmedbench.records.requests import Request
from neuralmedbench.records.responses import Response, ResponseState, is_by_another_model
from neuralmedbench.records.scores import Grade, GradeState, PlantedAnswer, text_digest
from neuralmedbench.scoring.llm.grader_requests import ModelGrader, scored_responses
from neuralmedbench.scoring.llm.task import UnreadReplyError
from neuralmedbench.scoring.planted.planting import References, plant_in_answers, planted_responses
from neuralmedbench.scoring.rubric import grade_with_rubric, make_grade

NO_ANSWER = "the grader's answer is {}"
"""Why a grade is missing whose grader did not answer, with the state of its answer."""


@dataclass(frozen=True)
class GraderTests:
    """On how many patients a grader is tested, per planted error.

    Attributes
    ----------
    planted : int or None
        The table holds planted answers, which are graded for so many patients; None: it holds answers of a model.
    in_answers : int
        Answers of the model, each of another patient, that are graded again with errors planted in them.
    """

    planted: int | None = None
    in_answers: int = 0


@dataclass(frozen=True)
class GraderRun:
    """One grader over the answers of one model.

    Attributes
    ----------
    grader : ModelGrader
        The grader, with its prompt and the names to hide.
    run : ModelRun
        The grader's model under the grader's name (`grader_model`), with its limits and the ledger of this grader for this model. Under
        `replay` a grader with an empty ledger asked nothing when the run was recorded and stays skipped.
    by_default : bool
        Of planted answers: True if the configuration does not say on how many patients graders are tested. A grader that was paid for
        grades before it was ever tested is then left untested.
    """

    grader: ModelGrader
    run: ModelRun
    by_default: bool = False


def grade_with_model(responses: Iterable[Response], items: Mapping[str, Item], gold: Mapping[str, Gold], grading: GraderRun) -> list[Grade]:
    """Grade the responses of one model by asking another model.

    Parameters
    ----------
    responses : iterable of Response
        Answers of one model.
    items, gold : mapping
        By item id; an item without gold is not graded.
    grading : GraderRun
        The grader, its ledger and its limits.

    Returns
    -------
    list of Grade
        The criteria of the grader's task for every open or dialogue response that was answered. Rows are `skipped` when the grader may not
        or cannot be asked, `failed` when its answer did not come, could not be read, or quotes words that are not in the graded answer.

    Raises
    ------
    ConfigError
        If the prompt asks for values that the task does not give.
    ProviderError
        As `models.engine.answer_requests`.
    """
    grader, run, name = grading.grader, grading.run, grading.run.model.name
    wanted = grader.wanted(responses, items, gold)
    if reason := _may_not_ask(run):
        print(f"grader {name}: {len(wanted)} answers are not graded: {reason}", file=sys.stderr)
        if not run.replay:
            with open_ledger(run.ledger):  # an empty ledger records that nothing was asked
                pass
        return [
            grade
            for row in wanted
            for grade in _missing(row, grader.task.criteria(items[row.item_id], gold[row.item_id]), name, GradeState.SKIPPED, reason)
        ]
    requests = grader.requests(wanted, items, gold)
    graded = {(row.item_id, text_digest(row.text)): row for row in wanted}

    def why_unread(reply: Response) -> str:
        row = graded[reply.item_id, reply.strategy]
        return grader.task.fault(reply.text, grader.subject(row, items[row.item_id], gold[row.item_id]))

    warned = replace(run, why_unread=lambda reply: "is not in the form of its task" if why_unread(reply) else "")
    answers = _ask(requests, warned, why_unread)
    log_served_models(f"grader {name}", answers)
    by_text = {(answer.item_id, answer.strategy): answer for answer in answers}
    faults = Counter(why for answer in answers if answer.state is ResponseState.OK and (why := why_unread(answer)))
    if faults:
        kinds = "; ".join(f"{number}: {why}" for why, number in faults.most_common())
        again = f"`nmb run retry` asks for these again, up to {run.model.max_attempts} times"
        print(f"grader {name}: {faults.total()} of {len(answers)} replies cannot be read ({kinds}); {again}", file=sys.stderr)
    pairs = [(row, by_text[row.item_id, text_digest(row.text)]) for row in wanted]
    return [
        _with_call(grade, answer)
        for row, answer in pairs
        for grade in _grades(row, answer, grading, of=(items[row.item_id], gold[row.item_id]))
    ]


def _ask(requests: Mapping[tuple[str, str], Request], run: ModelRun, why_unread: Callable[[Response], str]) -> list[Response]:
    """Ask a grader, and once more, as a further sample, where its ledger holds replies that cannot be read."""
    recorded = read_ledger(run.ledger)
    answers = {(row.item_id, row.strategy): row for row in answer_requests(list(requests.values()), run)}
    for sample in range(1, run.model.max_attempts):
        unread = [
            key
            for key, row in answers.items()
            if row.state is ResponseState.OK and recorded.keys() >= {*row.call_keys[-1:]} and why_unread(row)
        ]
        if not unread:
            break
        again, further = [requests[key] for key in unread], replace(run, first_repeat=run.first_repeat + sample)
        walks = (SampleWalk(request, run.model, further.first_repeat).resume(recorded) for request in again)
        rows = [response_row(walk) for walk in walks if walk.complete] if run.replay else answer_requests(again, further)
        for row in rows:
            before = answers[row.item_id, row.strategy]
            answers[row.item_id, row.strategy] = replace(row, calls=(*before.calls, *row.calls), attempts=before.attempts + row.attempts)
        if run.replay and not rows:
            break
    return list(answers.values())


def grade_planted(responses: Iterable[Response], items: Mapping[str, Item], gold: Mapping[str, Gold], grading: GraderRun) -> list[Grade]:
    """Grade answers with planted errors; nothing is paid that nobody asked for.

    Parameters
    ----------
    responses : iterable of Response
        Planted answers of one benchmark.
    items, gold : mapping
        By item id.
    grading : GraderRun
        The grader; its ledger is `<graders>/planted/<grader>.jsonl`.

    Returns
    -------
    list of Grade
        As `grade_with_model`; empty if the grader is not tested, or if a replayed ledger lacks an answer.

    Raises
    ------
    ConfigError, ProviderError
        As `grade_with_model`.
    """
    run = grading.run
    if not (reason := why_not_tested(run.ledger, replay=run.replay, by_default=grading.by_default)):
        return _grade_edited(responses, items, gold, grading)
    print(f"grader {run.model.name}: not tested with planted errors: {reason}", file=sys.stderr)
    if not run.replay:
        with open_ledger(run.ledger):  # an empty ledger records that nothing was asked
            pass
    return []


def _grade_edited(responses: Iterable[Response], items: Mapping[str, Item], gold: Mapping[str, Gold], grading: GraderRun) -> list[Grade]:
    """Grade answers with planted errors as `grade_with_model` does; in a replay whose ledger lacks one, none is graded."""
    try:
        return grade_with_model(responses, items, gold, grading)
    except ProviderError:
        if not grading.run.replay:
            raise
    name = grading.run.model.name
    print(f"grader {name}: not tested with these planted errors: its ledger lacks answers to them", file=sys.stderr)
    return []


def why_not_tested(ledger: Path, *, replay: bool, by_default: bool) -> str:
    """Return the reason why a grader is not asked about planted errors, as in `grade_planted`; empty if it is asked."""
    if _has_lines(ledger):
        return ""
    if replay:
        return "nothing was asked about them when the run was recorded"
    others = (path for path in ledger.parent.parent.glob(f"*/{ledger.name}") if path.parent != ledger.parent)
    if by_default and any(map(_has_lines, others)):
        return "it graded answers before it was tested; `grader_checks: {items_per_edit: 6}` in the configuration tests it"
    return ""


def _has_lines(ledger: Path) -> bool:
    return ledger.exists() and ledger.stat().st_size > 0


def _may_not_ask(run: ModelRun) -> str:
    """Return the reason why the grader may not or cannot be asked; empty if it can, or if its grades are in the ledger."""
    model = run.model
    if run.replay and _has_lines(run.ledger):
        return ""
    try:
        check_destination(model, run.destinations)
    except ConfigError as error:
        return str(error)
    if not run.replay and model.api_key_env and not model.api_key and not run.ledger.exists():
        return f"the environment variable {model.api_key_env} is not set"
    return ""


def _grades(response: Response, answer: Response, grading: GraderRun, *, of: tuple[Item, Gold]) -> list[Grade]:
    grader, run, name = grading.grader, grading.run, grading.run.model.name
    points = grader.task.criteria(*of)
    if answer.state is ResponseState.SKIPPED:
        return _missing(response, points, name, GradeState.SKIPPED, answer.error)
    if answer.state is not ResponseState.OK:
        why = answer.error if is_by_another_model(answer.error) else NO_ANSWER.format(answer.state)
        return _missing(response, points, name, GradeState.FAILED, why)
    try:
        judgements = grader.task.parse(answer.text, grader.subject(response, *of))
    except UnreadReplyError as error:
        asked = answer.repeat - run.first_repeat + 1
        state = GradeState.FAILED if asked < run.model.max_attempts else GradeState.NOT_GRADED
        often = "" if state is GradeState.FAILED else f", asked {asked} times"
        return _missing(response, points, name, state, f"the grader's answer is not in its form{often}: {error}")
    return [
        make_grade(response, name, row.criterion, value=row.value, weight=points[row.criterion], explanation=row.explanation)
        for row in judgements
    ]


def _with_call(grade: Grade, answer: Response) -> Grade:
    """Add to a grade which model served the grader's call, and what left the machine."""
    return replace(
        grade,
        served_model=answer.served_model,
        fingerprint=answer.fingerprint,
        called_on=answer.called_on,
        destination=answer.destination,
        attempts=answer.attempts,
        characters_sent=answer.characters_sent,
        calls=answer.calls,
    )


def _missing(response: Response, points: Mapping[str, float], grader: str, state: GradeState, why: str) -> list[Grade]:
    return [
        make_grade(response, grader, criterion, value=None, weight=weight, explanation=why, missing=state)
        for criterion, weight in points.items()
    ]


def grade_table(
    path: Path,
    items: Mapping[str, Item],
    gold: Mapping[str, Gold],
    *,
    vocabulary: Path,
    grader: str | GraderRun,
    tests: GraderTests,
) -> list[Grade]:
    """Grade one table of answers with one grader.

    Parameters
    ----------
    path : Path
        Responses of a model, or planted answers.
    items, gold : mapping
        By item id.
    vocabulary : Path
        The vocabulary; the list of time-critical diagnoses is beside it.
    grader : str or GraderRun
        The run of a grader that asks a model; of one of kind `rubric` its name.
    tests : GraderTests
        What is graded, and what is planted in it.

    Returns
    -------
    list of Grade
        Those of answers with planted errors have the model `planted`.

    Raises
    ------
    ConfigError, DataError, ProviderError
        If a file cannot be read, or as `llm.model_grading.grade_with_model`.
    """
    known = read_vocabulary(vocabulary)
    if isinstance(grader, str):
        test = grade = again = partial(grade_with_rubric, items=items, gold=gold, vocabulary=known, grader=grader)
    else:
        functions = (grade_planted, grade_with_model, _grade_edited)
        test, grade, again = (partial(function, items=items, gold=gold, grading=grader) for function in functions)
    if tests.planted is not None:
        return test(planted_responses(read_records(path, PlantedAnswer), items, tests.planted))
    responses = scored_responses(read_records(path, Response), items, gold, known)
    grades = grade(responses)
    urgency = read_urgency(urgency_path(vocabulary), known)
    planted = plant_in_answers(responses, grades, References(items, gold, known, urgency), patients=tests.in_answers)
    return [*grades, *again(planted_responses(planted, items, tests.in_answers))] if planted else grades
