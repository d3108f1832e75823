"""The grader that asks a model: blind to who answered, and a failed grade is missing, never zero."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from html import escape
from pathlib import Path

from jinja2 import StrictUndefined, Template, TemplateError
from jinja2.sandbox import ImmutableSandboxedEnvironment

from neuralmedbench.config.model import GraderConfig, ModelConfig
from neuralmedbench.errors import ConfigError
from neuralmedbench.io.files import sha256_of_value
from neuralmedbench.models.control.bounds import ALONE, Control
from neuralmedbench.models.destinations import check_destination
from neuralmedbench.models.engine import answer_requests
from neuralmedbench.models.ledgers.ledger import open_ledger
from neuralmedbench.models.served import say_served
from neuralmedbench.records.items import Family, Gold, Item, Runner
from neuralmedbench.records.keys import text_digest
from neuralmedbench.records.requests import Request, RequestTurn
from neuralmedbench.records.responses import Response, ResponseState
from neuralmedbench.records.scores import Grade, GradeState
from neuralmedbench.scoring.checklist import is_checklist
from neuralmedbench.scoring.rubric import CORE_DIAGNOSIS, MAIN_CONDITION, gradable, grade_row

ARM = "grade"
CRITERIA = (MAIN_CONDITION, CORE_DIAGNOSIS)
MAX_CHARACTERS = 12_000
"""Longest candidate text that a grader is shown."""

SCHEMA = json.dumps(
    {
        "type": "object",
        "properties": {**{name: {"enum": [0, 1]} for name in CRITERIA}, "explanation": {"type": "string"}},
        "required": [*CRITERIA, "explanation"],
        "additionalProperties": False,
    }
)


@dataclass(frozen=True)
class Verdict:
    """What a grader said about one answer."""

    values: Mapping[str, float]
    explanation: str


def load_template(path: Path) -> Template:
    """Read the prompt of a grader: a template with the blocks `system` and `user`.

    Raises
    ------
    ConfigError
        If it is absent, malformed, or lacks a block.
    """
    environment = ImmutableSandboxedEnvironment(undefined=StrictUndefined, autoescape=False)
    try:
        template = environment.from_string(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        message = f"{path.as_posix()}: the grader's prompt is not there; correct `prompt` in the grader's yaml"
        raise ConfigError(message) from None
    except TemplateError as error:
        message = f"{path.as_posix()}: not a valid template ({type(error).__name__})"
        raise ConfigError(message) from None
    if not {"system", "user"} <= set(template.blocks):
        message = f"{path.as_posix()}: a grader's prompt needs the blocks `system` and `user`"
        raise ConfigError(message)
    return template


def build_request(response: Response, item: Item, gold: Gold, template: Template) -> Request:
    """Build the request that grades one answer.

    The strategy is the digest of the graded text: equal answers to one item are graded once. Neither the model's name nor
    the arm is in it, and the candidate's text cannot close its own tags.
    """
    values = {
        "question": item.question or (item.turns[-1].question if item.turns else ""),
        "answer": gold.answer,
        "aliases": gold.aliases,
        "lesion_task": item.family is Family.LESION_RECOGNITION,
        "lesion": gold.lesion,
        "checklist": is_checklist(response.text),
        "candidate": escape(response.text[:MAX_CHARACTERS], quote=False),
    }
    system, user = ("".join(template.blocks[name](template.new_context(values))).strip() for name in ("system", "user"))
    return Request(
        item_id=item.item_id,
        case_id=item.case_id,
        patient_id=item.patient_id,
        benchmark=item.benchmark,
        arm=ARM,
        strategy=text_digest(response.text),
        request_id=sha256_of_value([system, user, SCHEMA]),
        runner=Runner.STRUCTURED,  # whatever the item is, a grader answers with one JSON object
        system=system,
        turns=(RequestTurn(text=user),),
        answer_schema=SCHEMA,
        samples=1,
    )


def read_verdict(text: str) -> Verdict | None:
    """Read a grader's answer: one JSON object with exactly the keys that were asked for, or nothing."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(value, dict) or set(value) != {*CRITERIA, "explanation"} or not isinstance(value["explanation"], str):
        return None
    if any(isinstance(value[name], bool) or value[name] not in (0, 1) for name in CRITERIA):
        return None
    return Verdict({name: float(value[name]) for name in CRITERIA}, value["explanation"])


def grade_with_model(
    responses: Iterable[Response],
    items: Mapping[str, Item],
    gold: Mapping[str, Gold],
    config: GraderConfig,
    *,
    grader: str,
    ledger: Path,
    destinations: Sequence[str],
    max_failed_fraction: float | None,
    replay: bool = False,
    control: Control = ALONE,
) -> list[Grade]:
    """Grade the responses of one model by asking another one.

    Parameters
    ----------
    responses : iterable of Response
        Answers of one model.
    items, gold : mapping
        By item id; an item without gold is not graded.
    config : GraderConfig
        The grader's yaml.
    grader : str
        Name of the grader.
    ledger : Path
        Ledger of this grader for this model: no grade is paid for twice.
    destinations : sequence of str
        `allowed_destinations` of the benchmark.
    max_failed_fraction : float or None
        A larger share of failed calls is an error.
    replay : bool
        Take every grade from the ledger and ask for nothing. A grader that asked nothing left an empty ledger: it stays skipped.
    control : Control
        As of `models.engine.answer_requests`.

    Returns
    -------
    list of Grade
        `main_condition` and `core_diagnosis` for every open or dialogue response that was answered. Rows are `skipped`
        when the grader may not or cannot be asked, `failed` when its answer did not come or could not be read.

    Raises
    ------
    ConfigError
        If the yaml lacks the model or the prompt, or the prompt is not usable.
    ProviderError
        As `models.engine.answer_requests`.
    """
    if config.model is None or config.prompt is None:
        message = f"grader {grader}: a grader of `kind: llm` needs `model` and `prompt` in its yaml"
        raise ConfigError(message)
    template = load_template(Path(config.prompt))
    wanted = [row for row in responses if row.item_id in gold and gradable(row, items[row.item_id])]
    if reason := _may_not_ask(grader, config.model, ledger, destinations, replay=replay):
        print(f"grader {grader}: {len(wanted)} answers are not graded: {reason}", file=sys.stderr)
        if not replay:
            with open_ledger(ledger):  # left empty, it says that nothing was asked
                pass
        return [_row(row, grader, name, GradeState.SKIPPED, reason) for row in wanted for name in CRITERIA]
    requests = {(row.item_id, text_digest(row.text)): build_request(row, items[row.item_id], gold[row.item_id], template) for row in wanted}
    answers = answer_requests(
        list(requests.values()),
        config.model,
        name=grader,
        ledger=ledger,
        destinations=destinations,
        max_failed_fraction=max_failed_fraction,
        replay=replay,
        control=control,
    )
    say_served(f"grader {grader}", answers)
    by_text = {(answer.item_id, answer.strategy): answer for answer in answers}
    pairs = [(row, by_text[row.item_id, text_digest(row.text)]) for row in wanted]
    return [_with_call(grade, answer) for row, answer in pairs for grade in _grades(row, answer, grader)]


def _may_not_ask(grader: str, model: ModelConfig, ledger: Path, destinations: Sequence[str], *, replay: bool) -> str:
    if replay and ledger.exists() and ledger.stat().st_size:
        return ""
    try:
        check_destination(grader, model, destinations)
    except ConfigError as error:
        return str(error)
    if not replay and model.api_key_env and not os.environ.get(model.api_key_env) and not ledger.exists():
        return f"the environment variable {model.api_key_env} is not set"
    return ""


def _grades(response: Response, answer: Response, grader: str) -> list[Grade]:
    if answer.state is ResponseState.SKIPPED:
        return [_row(response, grader, name, GradeState.SKIPPED, answer.error) for name in CRITERIA]
    if answer.state is not ResponseState.OK:
        return [_row(response, grader, name, GradeState.FAILED, f"the grader's answer is {answer.state}") for name in CRITERIA]
    verdict = read_verdict(answer.text)
    if verdict is None:
        return [_row(response, grader, name, GradeState.FAILED, "the grader's answer is not in its form") for name in CRITERIA]
    return [grade_row(response, grader, name, value=verdict.values[name], weight=1.0, explanation=verdict.explanation) for name in CRITERIA]


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


def _row(response: Response, grader: str, criterion: str, state: GradeState, why: str) -> Grade:
    return replace(grade_row(response, grader, criterion, value=None, weight=1.0, explanation=why), state=state)
