"""The requests of a model grader, and its tasks `diagnosis`, `rubric` and `errors` (`reasoning` has its own module)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from jinja2 import StrictUndefined, Template, TemplateError, UndefinedError
from jinja2.sandbox import ImmutableSandboxedEnvironment

from neuralmedbench.config.model import GraderConfig, ModelConfig
from neuralmedbench.errors import ConfigError
from neuralmedbench.files.digests import sha256_of_value
from neuralmedbench.records.items import Family, Gold, Item, Runner, Strategy
from neuralmedbench.records.requests import Request, RequestTurn
from neuralmedbench.records.responses import Response
from neuralmedbench.records.scores import CORE_DIAGNOSIS, MAIN_CONDITION, response_key, text_digest
from neuralmedbench.records.taxonomy import ERROR_AXIS, TAXONOMY, ErrorCode, counts_under
from neuralmedbench.records.thoughts import without_thoughts
from neuralmedbench.records.vocabulary import Vocabulary
from neuralmedbench.scoring.checklist import is_checklist
from neuralmedbench.scoring.llm.reasoning import REASONING_TASK
from neuralmedbench.scoring.llm.task import (
    MAX_CHARACTERS,
    CriterionJudgement,
    GraderTask,
    GradingInput,
    UnreadReplyError,
    blind,
    blind_thoroughly,
    case_evidence,
    contains_quote,
    escape_markup,
    list_of,
    object_of,
    object_schema,
    one_or_zero,
    schema_text,
    truncate,
    with_exactly,
    words_of,
)
from neuralmedbench.scoring.rubric import gradable
from neuralmedbench.scoring.scores import score_responses

ARM = "grade"

FENCE_CHARACTERS = 12
"""Digits of a fence, which keeps an answer from closing its own tags: it ends the names of the tags and depends on the answer."""


@dataclass(frozen=True)
class ModelGrader:
    """A grader that asks a model: task, prompt template, names to hide, and the arms whose answers it grades (None: all)."""

    task: GraderTask
    template: Template
    names: tuple[str, ...] = ()
    arms: tuple[str, ...] | None = None

    def wants(self, response: Response, item: Item, gold: Gold) -> bool:
        """Return True if the grader grades an answer."""
        return (self.arms is None or response.arm in self.arms) and gradable(response, item) and self.task.applies(item, gold)

    def wanted(self, responses: Iterable[Response], items: Mapping[str, Item], gold: Mapping[str, Gold]) -> list[Response]:
        """Return the answers that the grader grades; those to items without gold are left out."""
        return [row for row in responses if row.item_id in gold and self.wants(row, items[row.item_id], gold[row.item_id])]

    def requests(
        self, responses: Iterable[Response], items: Mapping[str, Item], gold: Mapping[str, Gold]
    ) -> dict[tuple[str, str], Request]:
        """Return the requests by item and digest of the text: equal answers to one item are one request, whichever sample or arm they come from."""
        return {
            (row.item_id, text_digest(row.text)): self.request(row, items[row.item_id], gold[row.item_id])
            for row in self.wanted(responses, items, gold)
        }

    def subject(self, response: Response, item: Item, gold: Gold) -> GradingInput:
        """Return the answer with its item and gold, and its text as the grader sees it."""
        return GradingInput(item, gold, response.text, blind(response.text, self.names))

    def request(self, response: Response, item: Item, gold: Gold) -> Request:
        """Build the request that grades one answer.

        Its strategy is the digest of the graded text: equal answers to one item are graded once, whatever their model and arm. Templates
        get the text three times: `candidate`, escaped so that it cannot close its tags; `blinded`, with the names of models hidden too, for
        tags that end in `fence`, which no answer can guess; and `cleaned`, from which nothing hidden is left.
        """
        # everything that any template may use; the task adds its own values
        subject = self.subject(response, item, gold)
        schema = self.task.schema(item, gold)
        values = {
            "question": item.question or (item.turns[-1].question if item.turns else ""),
            "answer": gold.answer,
            "aliases": gold.aliases,
            "lesion_task": item.family is Family.LESION_RECOGNITION,
            "lesion": gold.lesion,
            "candidate": escape_markup(truncate(response.text)),
            "blinded": escape_markup(subject.blinded),
            "cleaned": escape_markup(blind_thoroughly(response.text, self.names)),
            "shortened": len(response.text) > MAX_CHARACTERS,
            "fence": text_digest(response.text)[:FENCE_CHARACTERS],
            **self.task.values(subject),
        }
        system, user = (_render(self.template, name, values) for name in ("system", "user"))
        return Request(
            item_id=item.item_id,
            case_id=item.case_id,
            patient_id=item.patient_id,
            benchmark=item.benchmark,
            arm=ARM,
            strategy=text_digest(response.text),
            request_id=sha256_of_value([system, user, schema]),
            runner=Runner.STRUCTURED,  # whatever the runner of the item, a grader replies with one JSON object
            system=system,
            turns=(RequestTurn(text=user),),
            answer_schema=schema,
            samples=1,
        )


def scored_responses(
    responses: Iterable[Response], items: Mapping[str, Item], gold: Mapping[str, Gold], vocabulary: Vocabulary
) -> list[Response]:
    """Keep the answers that will be scored.

    Parameters
    ----------
    responses : iterable of Response
        Answers of one model.
    items, gold : mapping
        By item id.
    vocabulary : Vocabulary
        Makes two names of one diagnosis one vote.

    Returns
    -------
    list of Response
        In their order. Under `self_consistency` only those that `scores.elect` elects: the vote depends on the answers and never on a
        grade, so it is known before grading.
    """
    rows = list(responses)
    voting = [row for row in rows if row.strategy == Strategy.SELF_CONSISTENCY]
    elected = {response_key(score) for score in score_responses(voting, items, gold, [], vocabulary=vocabulary)}
    return [row for row in rows if row.strategy != Strategy.SELF_CONSISTENCY or response_key(row) in elected]


def read_model_grader(grader: str, config: GraderConfig, names: Sequence[str] = (), *, root: Path = Path()) -> ModelGrader:
    """Read the task and the prompt of a grader.

    Parameters
    ----------
    grader : str
        Its name, for messages.
    config : GraderConfig
        Its yaml.
    names : sequence of str
        Names of the model that answered, to be hidden from the grader.
    root : Path
        Folder to which `prompt` is relative.

    Returns
    -------
    ModelGrader
        The grader.

    Raises
    ------
    ConfigError
        If the yaml lacks the model or the prompt, or the prompt cannot be used.
    """
    _, prompt = _model_and_prompt(grader, config)
    return ModelGrader(TASKS[config.task], load_template(root / prompt), tuple(names), config.arms)


def grader_model(grader: str, config: GraderConfig) -> ModelConfig:
    """Return the model that a grader asks, under the grader's name; ConfigError if the yaml lacks the model or the prompt."""
    return _model_and_prompt(grader, config)[0].named(grader)


def _model_and_prompt(grader: str, config: GraderConfig) -> tuple[ModelConfig, str]:
    if config.model is None or config.prompt is None:
        message = f"grader {grader}: a grader of `kind: llm` needs `model` and `prompt` in its yaml"
        raise ConfigError(message)
    return config.model, config.prompt


def load_template(path: Path) -> Template:
    """Read a grader's prompt, a template with the blocks `system` and `user`; ConfigError if it is absent, invalid or lacks a block."""
    # sandboxed, and an unknown name is an error instead of empty text
    environment = ImmutableSandboxedEnvironment(undefined=StrictUndefined, autoescape=False)
    try:
        template = environment.from_string(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        message = f"{path.as_posix()}: the grader's prompt is not there; correct `prompt` in the grader's yaml"
        raise ConfigError(message) from None
    except (TemplateError, UnicodeDecodeError, OSError) as error:
        message = f"{path.as_posix()}: not a valid template ({type(error).__name__})"
        raise ConfigError(message) from None
    if not {"system", "user"} <= set(template.blocks):
        message = f"{path.as_posix()}: a grader's prompt needs the blocks `system` and `user`"
        raise ConfigError(message)
    return template


def _render(template: Template, block: str, values: Mapping[str, object]) -> str:
    try:
        return "".join(template.blocks[block](template.new_context(dict(values)))).strip()
    except UndefinedError as error:
        message = f"the grader's prompt asks for something that its task does not give it: {error.message}; correct `prompt` or `task`"
        raise ConfigError(message) from None


def _has_answer(_item: Item, gold: Gold) -> bool:
    """Return True if there is something to compare with; sets with criteria alone have no reference answer."""
    return bool(gold.answer.strip() or gold.lesion)


DIAGNOSIS_CRITERIA = {MAIN_CONDITION: 1.0, CORE_DIAGNOSIS: 1.0}

DIAGNOSIS_SCHEMA = schema_text({**{name: {"enum": [0, 1]} for name in DIAGNOSIS_CRITERIA}, "explanation": {"type": "string"}})


def _diagnosis_values(subject: GradingInput) -> Mapping[str, object]:
    return {"checklist": is_checklist(without_thoughts(subject.text))}


def _parse_diagnosis(text: str, _subject: GradingInput) -> list[CriterionJudgement]:
    value = object_of(text, *DIAGNOSIS_CRITERIA, "explanation")
    explanation = words_of(value["explanation"])
    verdict = {name: one_or_zero(value[name]) for name in DIAGNOSIS_CRITERIA}
    if verdict[CORE_DIAGNOSIS] > verdict[MAIN_CONDITION]:  # the narrow diagnosis includes the wide one
        message = f"`{CORE_DIAGNOSIS}` 1 beside `{MAIN_CONDITION}` 0, a contradiction"
        raise UnreadReplyError(message)
    return [CriterionJudgement(name, float(value), explanation) for name, value in verdict.items()]


DIAGNOSIS_TASK = GraderTask(
    applies=_has_answer,
    criteria=lambda _item, _gold: DIAGNOSIS_CRITERIA,
    schema=lambda _item, _gold: DIAGNOSIS_SCHEMA,
    values=_diagnosis_values,
    parse=_parse_diagnosis,
)

_JUDGED = object_schema({"met": {"enum": [0, 1]}, "explanation": {"type": "string"}})


def _has_rubric(_item: Item, gold: Gold) -> bool:
    return bool(gold.rubric)


def _rubric_criteria(_item: Item, gold: Gold) -> Mapping[str, float]:
    return {criterion.criterion: criterion.points for criterion in gold.rubric}


def _rubric_schema(_item: Item, gold: Gold) -> str:
    return schema_text({criterion.criterion: _JUDGED for criterion in gold.rubric})


def _rubric_values(subject: GradingInput) -> Mapping[str, object]:
    # without the points: a grader that knows them could be lenient where many are at stake
    return {"criteria": [(criterion.criterion, criterion.text) for criterion in subject.gold.rubric]}


def _parse_rubric(text: str, subject: GradingInput) -> list[CriterionJudgement]:
    names = list(_rubric_criteria(subject.item, subject.gold))
    value = object_of(text, *names)
    judgements = []
    for name in names:
        judged = with_exactly(value[name], "met", "explanation")
        judgements.append(CriterionJudgement(name, float(one_or_zero(judged["met"])), words_of(judged["explanation"])))
    return judgements


RUBRIC_TASK = GraderTask(applies=_has_rubric, criteria=_rubric_criteria, schema=_rubric_schema, values=_rubric_values, parse=_parse_rubric)


ABSENT, MINOR, SIGNIFICANT = 0.0, 1.0, 2.0

NO_QUOTE = "the quoted words are not in the answer"


def _applicable_errors(item: Item, gold: Gold) -> list[ErrorCode]:
    """Return the errors that can be judged for an item: those whose condition it meets."""
    return [error for error in TAXONOMY if counts_under(error, lesion_shown=item.lesion_shown, findings_complete=gold.findings_complete)]


def _error_criteria(item: Item, gold: Gold) -> Mapping[str, float]:
    return {f"{ERROR_AXIS}{error.code}": 1.0 for error in _applicable_errors(item, gold)}


def _error_schema(item: Item, gold: Gold) -> str:
    label = {
        "code": {"enum": [error.code for error in _applicable_errors(item, gold)]},
        "significant": {"enum": [0, 1]},
        "quote": {"type": "string"},
        "explanation": {"type": "string"},
    }
    return schema_text({"errors": {"type": "array", "items": object_schema(label)}})


def _error_values(subject: GradingInput) -> Mapping[str, object]:
    return {"evidence": case_evidence(subject), "errors": _applicable_errors(subject.item, subject.gold)}


def _parse_errors(text: str, subject: GradingInput) -> list[CriterionJudgement]:
    known = {error.code: error for error in _applicable_errors(subject.item, subject.gold)}
    labels = list_of(object_of(text, "errors")["errors"])
    # every error is absent until a label says otherwise; one invalid label makes the whole reply invalid
    judgements = {code: CriterionJudgement(f"{ERROR_AXIS}{code}", ABSENT, "") for code in known}
    for entry in labels:
        label = with_exactly(entry, "code", "significant", "quote", "explanation")
        code = words_of(label["code"], *known)
        read = {"quote": words_of(label["quote"]), "explanation": words_of(label["explanation"])}
        significant = bool(one_or_zero(label["significant"]))
        judgements[code] = _weightier(judgements[code], _judgement(read, known[code], subject.blinded, significant=significant))
    return list(judgements.values())


def _judgement(label: Mapping[str, str], error: ErrorCode, shown: str, *, significant: bool) -> CriterionJudgement:
    """Judge one label; only an error of omission may come without a quote from the answer."""
    quote, name = label["quote"].strip(), f"{ERROR_AXIS}{error.code}"
    if not (contains_quote(shown, quote) or (error.omission and not quote)):
        return CriterionJudgement(name, None, NO_QUOTE)
    explanation = f"“{quote}” {label['explanation']}" if quote else label["explanation"]
    return CriterionJudgement(name, SIGNIFICANT if significant else MINOR, explanation)


def _weightier(first: CriterionJudgement, second: CriterionJudgement) -> CriterionJudgement:
    """Return the weightier of two labels of one code; a failed label outweighs only the absence of the error."""
    rank = {ABSENT: 0, None: 1, MINOR: 2, SIGNIFICANT: 3}
    return max(first, second, key=lambda judgement: rank[judgement.value])


ERRORS_TASK = GraderTask(
    applies=lambda _item, _gold: True, criteria=_error_criteria, schema=_error_schema, values=_error_values, parse=_parse_errors
)

TASKS: dict[str, GraderTask] = {
    "diagnosis": DIAGNOSIS_TASK,
    "rubric": RUBRIC_TASK,
    "reasoning": REASONING_TASK,
    "errors": ERRORS_TASK,
}
