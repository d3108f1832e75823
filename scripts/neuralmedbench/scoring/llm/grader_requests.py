"""Which answers are graded, and the request that a model grader is sent for one of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from jinja2 import StrictUndefined, Template, TemplateError, UndefinedError
from jinja2.sandbox import ImmutableSandboxedEnvironment

from neuralmedbench.config.model import GraderConfig
from neuralmedbench.errors import ConfigError
from neuralmedbench.files.digests import sha256_of_value
from neuralmedbench.records.items import Family, Gold, Item, Runner, Strategy
from neuralmedbench.records.keys import response_key, text_digest
from neuralmedbench.records.requests import Request, RequestTurn
from neuralmedbench.records.responses import Response
from neuralmedbench.records.vocabulary import Vocabulary
from neuralmedbench.scoring.llm.reasoning import REASONING_TASK
from neuralmedbench.scoring.llm.task import MAX_CHARACTERS, GraderTask, GradingInput, blind, escape_markup, truncate
from neuralmedbench.scoring.llm.tasks import DIAGNOSIS_TASK, ERRORS_TASK, RUBRIC_TASK
from neuralmedbench.scoring.rubric import gradable
from neuralmedbench.scoring.scores import score_responses

ARM = "grade"
TASKS: dict[str, GraderTask] = {
    "diagnosis": DIAGNOSIS_TASK,
    "rubric": RUBRIC_TASK,
    "reasoning": REASONING_TASK,
    "errors": ERRORS_TASK,
}
FENCE_CHARACTERS = 12


@dataclass(frozen=True)
class ModelGrader:
    """A grader that asks a model: its task, its template, the names to hide, and the arms whose answers it grades (None: all)."""

    task: GraderTask
    template: Template
    names: tuple[str, ...] = ()
    arms: tuple[str, ...] | None = None

    def wants(self, response: Response, item: Item, gold: Gold) -> bool:
        """Whether the grader looks at an answer."""
        return (self.arms is None or response.arm in self.arms) and gradable(response, item) and self.task.applies(item, gold)

    def subject(self, response: Response, item: Item, gold: Gold) -> GradingInput:
        """Give the answer as the grader sees it."""
        return GradingInput(item, gold, response.text, blind(response.text, self.names))

    def request(self, response: Response, item: Item, gold: Gold) -> Request:
        """Build the request that grades one answer.

        The strategy is the digest of the graded text, so equal answers to one item are graded once; the model's name and the arm are not
        in it. Templates get the text twice: `candidate`, escaped so that it cannot close its tags, and `blinded`, in which names of
        models are hidden too, for tags that end in `fence`, which no answer can know.
        """
        subject = self.subject(response, item, gold)
        schema = self.task.schema(item, gold)
        values = {
            "question": item.question or (item.turns[-1].question if item.turns else ""),
            "answer": gold.answer,
            "aliases": gold.aliases,
            "lesion_task": item.family is Family.LESION_RECOGNITION,
            "lesion": gold.lesion,
            "candidate": escape_markup(truncate(response.text)),
            "blinded": escape_markup(subject.shown),
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
            runner=Runner.STRUCTURED,  # whatever the item is, a grader answers with one JSON object
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
        By which two names of one diagnosis are one vote.

    Returns
    -------
    list of Response
        In their order. Under `self_consistency` those that `scores.elect` elects: the vote goes by the answers, never by a grade, so it is
        known before anything is graded.
    """
    rows = list(responses)
    voting = [row for row in rows if row.strategy == Strategy.SELF_CONSISTENCY]
    elected = {response_key(score) for score in score_responses(voting, items, gold, [], vocabulary=vocabulary)}
    return [row for row in rows if row.strategy != Strategy.SELF_CONSISTENCY or response_key(row) in elected]


def read_model_grader(grader: str, config: GraderConfig, names: Sequence[str] = (), *, root: Path = Path()) -> ModelGrader:
    """Read what a grader needs before it can ask.

    Parameters
    ----------
    grader : str
        Its name, for messages.
    config : GraderConfig
        Its yaml.
    names : sequence of str
        Names of the model that answered.
    root : Path
        The repository root, below which `prompt` lies.

    Returns
    -------
    Asker
        The grader.

    Raises
    ------
    ConfigError
        If the yaml lacks the model or the prompt, or the prompt is not usable.
    """
    if config.model is None or config.prompt is None:
        message = f"grader {grader}: a grader of `kind: llm` needs `model` and `prompt` in its yaml"
        raise ConfigError(message)
    return ModelGrader(TASKS[config.task], load_template(root / config.prompt), tuple(names), config.arms)


def load_template(path: Path) -> Template:
    """Read a grader's prompt, a template with the blocks `system` and `user`; ConfigError when it is absent, malformed or lacks a block."""
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


def _render(template: Template, block: str, values: Mapping[str, object]) -> str:
    try:
        return "".join(template.blocks[block](template.new_context(dict(values)))).strip()
    except UndefinedError as error:
        message = f"the grader's prompt asks for something that its task does not give it: {error.message}; correct `prompt` or `task`"
        raise ConfigError(message) from None
