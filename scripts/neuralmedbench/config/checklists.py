"""Keys of `config/checklists/<name>.yaml`: the items of a reporting guideline, and the elements of the page that answer them."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, model_validator

from neuralmedbench.config.section import Section

Answer = Literal["yes", "partly", "no", "not applicable", "study team"]
ANSWERED: tuple[Answer, ...] = ("yes", "partly")
"""Answers that claim something about the page."""
PLACE = r"#[a-z]+(\.[a-z0-9]+(-[a-z0-9]+)*)?"
PLACES = rf"^({PLACE}( {PLACE})*)?$"
"""Blocks and elements of the page, `#block` or `#block.element`, separated by single spaces; or empty."""


class ChecklistItem(Section):
    """One item of a guideline, or one question of a card."""

    id: str = Field(description="Number in the guideline.")
    part: str = Field("", description="Part of the guideline to which it belongs.")
    about: str = Field(min_length=1, description="Question, in short words of our own.")
    answer: Answer = Field(description="`yes`, `partly`: the page answers it, or a part of it; `study team`: only the study's authors can.")
    where: str = Field(
        "",
        pattern=PLACES,
        description=(
            "Elements of the page (`#block.element`), separated by spaces. `yes` and `partly` turn to `no` on a page on which one of them is "
            "absent or empty. `#block` is a link alone."
        ),
    )
    note: str = Field("", description="Further remarks.")

    @property
    def places(self) -> tuple[str, ...]:
        """Blocks and elements of `where`, without the `#`."""
        return tuple(place.removeprefix("#") for place in self.where.split())

    @property
    def blocks(self) -> tuple[str, ...]:
        """Blocks of `where`, each once."""
        return tuple(dict.fromkeys(place.partition(".")[0] for place in self.places))

    @property
    def elements(self) -> tuple[str, ...]:
        """Elements of `where`, as `block.element`."""
        return tuple(place for place in self.places if "." in place)


class AnswerSheet(Section):
    """Questions with their answers: a reporting guideline, or a form of a benchmark's card."""

    title: str = Field(description="Name of the guideline.")
    source: str = Field(description="Where it was published, and which parts were read.")
    missing: str = Field("", description="Published items that are missing here, and why.")
    items: tuple[ChecklistItem, ...] = Field(min_length=1, description="Its items in order.")

    @model_validator(mode="after")
    def _asks_once(self) -> AnswerSheet:
        ids = [item.id for item in self.items]
        if double := sorted({name for name in ids if ids.count(name) > 1}):
            message = f"items: {', '.join(double)} is repeated"
            raise ValueError(message)
        return self

    @property
    def counts(self) -> dict[str, int]:
        """Number of items per answer, without answers that do not occur."""
        answers = [item.answer for item in self.items]
        return {ANSWER_WORDS[answer]: answers.count(answer) for answer in ANSWER_WORDS if answer in answers}

    @property
    def parts(self) -> dict[str, list[ChecklistItem]]:
        """Items by part, in order."""
        found: dict[str, list[ChecklistItem]] = {}
        for item in self.items:
            found.setdefault(item.part, []).append(item)
        return found


class ChecklistConfig(AnswerSheet):
    """`config/checklists/<name>.yaml`: a reporting guideline, item by item."""

    @model_validator(mode="after")
    def _names_elements(self) -> ChecklistConfig:
        if vague := [item for item in self.items if item.answer in ANSWERED and not item.elements]:
            message = (
                f"items: {vague[0].id} is answered `{vague[0].answer}` and `where` names no element of the page: "
                "write it as `#block.element`, or answer `no` or `study team`"
            )
            raise ValueError(message)
        return self


ANSWER_WORDS: dict[Answer, str] = {
    "yes": "yes",
    "partly": "partly",
    "no": "no",
    "not applicable": "not applicable",
    "study team": "left to the study team",
}
"""Wording of the answers."""
