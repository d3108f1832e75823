"""Did the picture cause the answer? Measures of every model with intervals over patients, and the class that they show."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from neuralmedbench.estimates.intervals import Floats, patients_rate
from neuralmedbench.records.items import Arm
from neuralmedbench.tables.declare import ContrastRow, Measure, MeasureRow, ModelRows, of_models, topic
from neuralmedbench.tables.grounding.values import AnswersByArm, arms_with, first_asked
from neuralmedbench.tables.outcomes import FULL

CLASS = "class"
LOOKS, SIDE_BLIND, TEXT_ONLY, BLIND, UNTOLD = CLASSES = ("looks", "side-blind", "text-only", "blind", "inconclusive")
ANOTHER, WORDLESS, CONSTANT, MIRROR = CONTRASTS = (
    "follows_less_stays",
    "changes_beyond_repeats",
    "stays_less_changes",
    "flips_less_keeps",
)
"""Measures that decide the class; each is the difference of two shares of answers."""


Row = MeasureRow | ContrastRow


class _ModelGrounding:
    """The measures of one model on one benchmark."""

    def __init__(self, made: ModelRows) -> None:
        self.made, self.benchmark = made, made.benchmark
        self.answers = AnswersByArm(made.benchmark, made.model)

    def rows(self) -> Iterator[Row]:
        """Yield the rows."""
        yield from self._exchanged()
        yield from self._reliance()
        yield from self._unsent()
        yield from self._without_text()
        yield from self._mirrored()

    def _exchanged(self) -> Iterator[Row]:
        if arm := first_asked(self.answers, arms_with(self.benchmark, "another")):
            follows, stays = self.answers.follows_and_stays(arm)
            values = {"follows_picture": follows, "stays_with_text": stays, "neither": 1 - follows - stays}
            yield from (self._rate(name, arm, shares) for name, shares in values.items())
            yield self._difference(ANOTHER, arm, follows, stays)

    def _reliance(self) -> Iterator[Row]:
        for arm in (Arm.SHUFFLED_IMAGE, *arms_with(self.benchmark, "blank")):
            if self.answers.asked(arm):
                yield self.made.passes_contrast("visual_reliance", self.made.key(), self.made.key(arm))
                yield self._rate("image_sensitivity", arm, 1 - self.answers.same_diagnosis(arm))
                yield self._rate("unmoved_reasoning", arm, self.answers.unmoved_reasoning(arm))
        if self.answers.asked(Arm.SHUFFLED_IMAGE):
            yield self._rate("repeat_changes", FULL, 1 - self.answers.repeats(self.answers.diagnosis))

    def _unsent(self) -> Iterator[Row]:
        for pictures in ("none", "blank"):
            for arm in arms_with(self.benchmark, pictures):
                if self.answers.asked(arm):
                    yield self._rate("mirage", arm, self.answers.describes_unsent(arm, labelled=pictures == "blank"))
                    yield self._rate("invented_reasoning", arm, self.answers.argues_from_picture(arm))
                    yield self._rate("abstains", arm, self._abstains(arm))
                    yield self._difference("abstains_beyond_full", arm, self._abstains(arm), self._abstains(FULL))

    def _without_text(self) -> Iterator[Row]:
        if self.answers.asked(Arm.NO_TEXT) and arms_with(self.benchmark, "another"):
            stays = self.answers.same_family(Arm.NO_TEXT)
            yield self._rate("stays_without_text", Arm.NO_TEXT, stays)
            # answers of a model that draws them differ anyway
            yield self._difference(WORDLESS, Arm.NO_TEXT, 1 - stays, 1 - self.answers.repeats(self.answers.family))
            yield self._difference(CONSTANT, Arm.NO_TEXT, stays, 1 - stays)

    def _mirrored(self) -> Iterator[Row]:
        if arm := first_asked(self.answers, arms_with(self.benchmark, "mirrored")):
            flips, keeps = self.answers.flips_and_keeps(arm)
            yield self._rate("side_flips", arm, flips)
            yield self._rate("diagnosis_stays", arm, self.answers.same_family(arm))
            yield self._difference(MIRROR, arm, flips, keeps)

    def _abstains(self, arm: str) -> Floats:
        """Return the share of answers that say that no diagnosis can be named."""
        return np.array([np.mean([row.abstained for row in rows]) if rows else np.nan for rows in self.answers.under(arm)])

    def _rate(self, measure: str, arm: str, values: Floats) -> MeasureRow:
        return self.made.rate(measure, values, arm=str(arm), interval_of=patients_rate)

    def _difference(self, measure: str, arm: str, first: Floats, second: Floats) -> ContrastRow:
        return self.made.contrast(measure, first, second, arm=str(arm))


@of_models("grounding")
def grounding_rows(made: ModelRows) -> Iterator[Row]:
    """Whether the picture caused the answer: pictures exchanged, blank, mirrored or left out.

    The class stands in `note`, before a colon and what is inconclusive.
    """
    if made.model in made.study.readers or not made.benchmark.scores.get(made.model):
        return
    measured = [row for row in _ModelGrounding(made).rows() if row.n_items or row.measure == ANOTHER]
    signs = {row.measure: _sign(row) for row in measured if isinstance(row, ContrastRow) and row.p_value is not None}
    for row in measured:
        yield row
        # without another patient's pictures there is no class
        if row.measure == ANOTHER:
            shown, note = class_of({name: signs.get(name) for name in CONTRASTS})
            yield made.plain(CLASS, arm=row.arm, note=f"{shown}: {note}", n_items=row.n_items, n_patients=row.n_patients)


def _sign(row: ContrastRow) -> int:
    """Return 1 or -1 for a difference whose interval is above or below 0; 0 if it holds 0."""
    if row.low is None or row.high is None:
        return 0
    return 1 if row.low > 0 else -1 if row.high < 0 else 0


def class_of(shown: Mapping[str, int | None]) -> tuple[str, str]:
    """Return the class of a model and a note, from what its four comparisons show.

    Parameters
    ----------
    shown : mapping of str to int or None
        By measure (`CONTRASTS`): 1 or -1 if its interval is above or below 0, 0 if it holds 0, None if nothing could be compared.

    Returns
    -------
    told, note : str
        One of `CLASSES`, and what is inconclusive. A model looks if it follows the pictures of another patient more than it stays with the
        own case; it is side-blind if, besides, the sides that it states stay where pictures are mirrored. If it stays with the own case,
        it is text-only if its diagnosis changes without the text more than between repeats, and blind if it mostly stays then too.
        (Our rules.)
    """
    looks, wordless, constant, mirror = (shown.get(name) for name in CONTRASTS)
    if not looks:
        return UNTOLD, "not asked, or nothing could be compared" if looks is None else "neither following nor staying"
    if looks > 0:
        notes = {None: "sides: not asked", 0: "sides: inconclusive", 1: "", -1: ""}
        return (SIDE_BLIND if mirror == -1 else LOOKS), notes[mirror]
    # a text that changes some answers may leave most as they are
    if wordless == 1:
        return TEXT_ONLY, ""
    if constant == 1:
        return BLIND, ""
    asked = "not asked" if constant is None else "inconclusive"
    return UNTOLD, f"another patient's pictures do not decide; whether the text does is {asked}"


WORDS = {
    LOOKS: "follow(s) the pictures",
    SIDE_BLIND: "follow(s) the pictures, but not their sides",
    TEXT_ONLY: "stay(s) with the text, whatever the pictures show",
    BLIND: "answer(s) the same, whatever is shown",
    UNTOLD: "inconclusive",
}
"""What the classes say of a model."""


MEASURES = (
    Measure(
        CLASS,
        "Shown",
        "What the four differences show of the model, as a word in `note`.",
        "number",
    ),
    Measure(ANOTHER, "Follows minus stays", "`follows_picture` minus `stays_with_text`.", "points"),
    Measure(
        WORDLESS,
        "Text matters",
        "Answers that change family without the text, minus those that do between repeats.",
        "points",
    ),
    Measure(
        CONSTANT,
        "Stays minus changes",
        "Answers that keep their family without the text, minus those that change it.",
        "points",
    ),
    Measure(
        MIRROR,
        "Flips minus keeps",
        "Answers that change side with mirrored pictures, minus those that keep it.",
        "points",
    ),
    Measure(
        "visual_reliance",
        "Visual reliance",
        "pass@1 with its own pictures minus pass@1 with shuffled or blank ones (`other_arm`).",
        "points",
    ),
    Measure("mirage", "Mirage", "Answers that describe pictures although none was sent."),
    Measure(
        "follows_picture",
        "Follows other pictures",
        "Answers to another patient's pictures that name a disease of that patient's family.",
        main=False,
    ),
    Measure(
        "stays_with_text",
        "Stays with case",
        "Answers to another patient's pictures that name a disease of the own case's family.",
        main=False,
    ),
    Measure(
        "neither",
        "Neither",
        "Answers to another patient's pictures that name a disease of neither family.",
        main=False,
    ),
    Measure(
        "image_sensitivity",
        "Changes with pictures",
        "Answers with another first diagnosis when the pictures are exchanged or blank.",
        main=False,
    ),
    Measure(
        "repeat_changes",
        "Changes between repeats",
        "Pairs of answers to the full request with different first diagnoses.",
        main=False,
    ),
    Measure(
        "unmoved_reasoning",
        "Unmoved reasoning",
        "Answers that argue from the pictures and name the same diagnosis with other ones.",
        main=False,
    ),
    Measure(
        "invented_reasoning",
        "Invented reasoning",
        "Answers that argue from pictures which were not sent, of those that give a reason.",
        main=False,
    ),
    Measure("abstains", "Abstains", "Answers that say that no diagnosis can be named.", main=False),
    Measure(
        "abstains_beyond_full",
        "Abstains beyond full",
        "`abstains` without pictures minus `abstains` under the full request.",
        "points",
        main=False,
    ),
    Measure(
        "stays_without_text",
        "Stays without text",
        "Answers without the text that name a disease of the same family.",
        main=False,
    ),
    Measure(
        "side_flips",
        "Side flips",
        "Answers to mirrored pictures that name the opposite side.",
        main=False,
    ),
    Measure(
        "diagnosis_stays",
        "Same in mirror",
        "Answers to mirrored pictures that name a disease of the same family.",
        main=False,
    ),
)

GROUNDING = topic("grounding", grounding_rows, MEASURES)
