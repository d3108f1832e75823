"""What a grader is sent for one answer: its template, its task, and the request that comes of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from jinja2 import StrictUndefined, Template, TemplateError, UndefinedError
from jinja2.sandbox import ImmutableSandboxedEnvironment

from neuralmedbench.config.model import GraderConfig
from neuralmedbench.errors import ConfigError
from neuralmedbench.files.digests import sha256_of_value
from neuralmedbench.records.items import Family, Gold, Item, Runner
from neuralmedbench.records.keys import text_digest
from neuralmedbench.records.requests import Request, RequestTurn
from neuralmedbench.records.responses import Response
from neuralmedbench.scoring.llm import criteria, diagnosis, errors, reasoning
from neuralmedbench.scoring.llm.candidate import MAX_CHARACTERS, blinded, cut, escaped
from neuralmedbench.scoring.llm.task import GraderTask, Subject
from neuralmedbench.scoring.rubric import gradable

ARM = "grade"
TASKS: dict[str, GraderTask] = {
    "diagnosis": diagnosis.TASK,
    "rubric": criteria.TASK,
    "reasoning": reasoning.TASK,
    "errors": errors.TASK,
}
FENCE_CHARACTERS = 12


@dataclass(frozen=True)
class Asker:
    """A grader that asks a model.

    Attributes
    ----------
    task, template : GraderTask, Template
        What it is asked for, and in which words.
    names : tuple of str
        Names by which the model that answered must not be known.
    arms : tuple of str or None
        Arms whose answers it looks at; None: all.
    """

    task: GraderTask
    template: Template
    names: tuple[str, ...] = ()
    arms: tuple[str, ...] | None = None

    def wants(self, response: Response, item: Item, gold: Gold) -> bool:
        """Whether the grader looks at an answer."""
        return (self.arms is None or response.arm in self.arms) and gradable(response, item) and self.task.applies(item, gold)

    def subject(self, response: Response, item: Item, gold: Gold) -> Subject:
        """Give the answer as the grader has it before it."""
        return Subject(item, gold, response.text, blinded(response.text, self.names))

    def request(self, response: Response, item: Item, gold: Gold) -> Request:
        """Build the request that grades one answer.

        The strategy is the digest of the graded text: equal answers to one item are graded once. Neither the model's name nor the arm is in
        it. A template has the candidate's text in two forms: `candidate`, escaped, which cannot close its own tags, and `blinded`, in
        which names of models are hidden too, for tags that end in `fence`, which no answer can know.
        """
        subject = self.subject(response, item, gold)
        schema = self.task.schema(item, gold)
        values = {
            "question": item.question or (item.turns[-1].question if item.turns else ""),
            "answer": gold.answer,
            "aliases": gold.aliases,
            "lesion_task": item.family is Family.LESION_RECOGNITION,
            "lesion": gold.lesion,
            "candidate": escaped(cut(response.text)),
            "blinded": escaped(subject.shown),
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


def read_asker(grader: str, config: GraderConfig, names: Sequence[str] = (), *, root: Path = Path()) -> Asker:
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
    return Asker(TASKS[config.task], load_template(root / config.prompt), tuple(names), config.arms)


def _render(template: Template, block: str, values: Mapping[str, object]) -> str:
    try:
        return "".join(template.blocks[block](template.new_context(dict(values)))).strip()
    except UndefinedError as error:
        message = f"the grader's prompt asks for something that its task does not give it: {error.message}; correct `prompt` or `task`"
        raise ConfigError(message) from None


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
