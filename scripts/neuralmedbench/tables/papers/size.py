"""Estimate of the cost of asking a data set that is not here, by its published size; for the plan and for the papers' tables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from neuralmedbench.config.model import GraderConfig, ModelConfig
from neuralmedbench.config.published import PublishedConfig, PublishedSize
from neuralmedbench.models.prices import asked_tier, cost_usd, highest_usd, longest_answer
from neuralmedbench.records.items import Arm
from neuralmedbench.records.responses import Usage

TOKENS_PER_WORD = 4 / 3


@dataclass(frozen=True, kw_only=True)
class SizeRow:
    """Estimated calls, tokens and cost of one model, or of one grader of its answers.

    Attributes
    ----------
    model, grader : str
        Their names; `grader` is empty for the model itself.
    title : str
        Printable name.
    calls, prompt_tokens : int
        Calls, and tokens of all prompts, by the published size.
    completion_tokens : int or None
        Tokens of all answers at the maximum length; None if there is no maximum.
    usd, most_usd : float or None
        Cost with answers of half the maximum length, and of the maximum length; None if not known.
    unknown : str
        Reason why the cost is not known.
    """

    model: str
    grader: str
    title: str
    calls: int
    prompt_tokens: int
    completion_tokens: int | None
    usd: float | None
    most_usd: float | None
    unknown: str = ""


def by_published_size(published: PublishedConfig, models: Mapping[str, ModelConfig], graders: Mapping[str, GraderConfig]) -> list[SizeRow]:
    """Estimate the cost of asking everything that a paper published.

    Parameters
    ----------
    published : PublishedConfig
        Only its `size` is used.
    models, graders : mapping
        Models and graders of the run by name; members of juries are among the graders.

    Returns
    -------
    list of SizeRow
        Each model that would be asked, followed by its graders; without built-in baselines, imported answers and readers.
    """
    return [
        row
        for name, model in models.items()
        if not model.baseline and model.backend != "imported"
        for row in _rows(published, name, model, graders)
    ]


def _rows(published: PublishedConfig, name: str, model: ModelConfig, graders: Mapping[str, GraderConfig]) -> Iterator[SizeRow]:
    size, words = published.size, round(published.size.words_per_call * TOKENS_PER_WORD)
    # all samples under the arm full and the arms without images
    calls = _calls(size, full_alone=False)
    tokens = size.samples * size.images * size.tokens_per_image + calls * words
    yield _row(model, calls, tokens, model=name, grader="", title=model.title)
    for grader, config in graders.items() if size.graded else ():
        if config.kind == "llm" and config.model:
            judged = _calls(size, full_alone=config.arms is not None and Arm.NO_IMAGE not in config.arms)
            # a grader reads the question and the longest answer
            read = judged * (words + (longest_answer(model) or 0))
            yield _row(config.model, judged, read, model=name, grader=grader, title=f"{config.title}, of {model.title}")


def _calls(size: PublishedSize, *, full_alone: bool) -> int:
    return size.samples * size.calls * (1 if full_alone else 1 + size.arms_without_images)


def _row(asked: ModelConfig, calls: int, prompt_tokens: int, *, model: str, grader: str, title: str) -> SizeRow:
    longest = longest_answer(asked)
    unknown = "no prices in its yaml" if asked.prices is None else "" if longest is not None else "nothing limits its answers (max_tokens)"
    # as in the plan of a data set that is here, the expected answer has half the maximum length
    likely = Usage(prompt_tokens=prompt_tokens, completion_tokens=calls * ((longest or 0) // 2), service_tier=asked_tier(asked))
    usd, most = (None, None) if unknown else (cost_usd(asked, likely), highest_usd(asked, prompt_tokens, calls * (longest or 0)))
    answers = None if longest is None else calls * longest
    return SizeRow(
        model=model, grader=grader, title=title, calls=calls, prompt_tokens=prompt_tokens, completion_tokens=answers, usd=usd,
        most_usd=most, unknown=unknown,
    )  # fmt: skip


def size_words(size: PublishedSize) -> str:
    """Describe what the estimate counts."""
    arms = {0: "", 1: " and as often without pictures"}.get(
        size.arms_without_images, f" and {size.arms_without_images} arms without pictures"
    )
    graders = "; graders read an answer of the longest length" if size.graded else "; no grader that asks a model"
    answers = "1 answer" if size.samples == 1 else f"{size.samples} answers"
    return f"Estimated by the published size, not counted: {answers} to everything, arm full{arms}{graders}. {size.basis.strip()}"
