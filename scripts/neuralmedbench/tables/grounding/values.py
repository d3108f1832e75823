"""Item values of the grounding measures: what the answers of one model do under an arm, compared with those under `full`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from itertools import product

import numpy as np
import numpy.typing as npt

from neuralmedbench.estimates.intervals import Floats
from neuralmedbench.records.arm_changes import OTHER_SIDE
from neuralmedbench.records.items import Arm, Item, Runner
from neuralmedbench.records.scores import Score
from neuralmedbench.records.vocabulary import normal_form
from neuralmedbench.scoring.parse import parse_under
from neuralmedbench.scoring.picture_claims import argues_from_picture, describes_picture, describes_unsent
from neuralmedbench.scoring.places import sides
from neuralmedbench.tables.answers import Samples
from neuralmedbench.tables.outcomes import DIRECT, FULL
from neuralmedbench.tables.study import BenchmarkStudy

Answers = Sequence[Sequence[Score]]
"""Answers per item; empty where the arm does not ask it, one is missing, or one could not be read because of its language."""


class AnswersByArm:
    """The answers of one model to one benchmark, strategy direct; every array has shape (items,), NaN where a measure does not apply."""

    def __init__(self, benchmark: BenchmarkStudy, model: str) -> None:
        self.benchmark, self.model, self.items = benchmark, model, benchmark.outcomes.items
        self._names: dict[str, tuple[str, str]] = {}

    def asked(self, arm: str) -> bool:
        """Return True if the model was asked under an arm."""
        return any(score is not None for score in self._samples(arm).scores)

    def _samples(self, arm: str) -> Samples:
        return self.benchmark.outcomes.answers.of((self.model, arm, DIRECT))

    def under(self, arm: str) -> Answers:
        """Return the answers under an arm, by item."""
        samples = self._samples(arm)
        unknown = samples.number(~samples["there"] | samples["other_language"]) > 0
        return [[] if unknown[place] else rows for place, rows in enumerate(samples.by_item())]

    @cached_property
    def full(self) -> Answers:
        """Answers under the arm full."""
        return self.under(FULL)

    def diagnosis(self, row: Score) -> str:
        """Return the first diagnosis of an answer under one name; empty if it names none."""
        return self._named(row)[0]

    def family(self, row: Score) -> str:
        """Return the family of its first diagnosis; the diagnosis itself if the vocabulary lacks it."""
        return self._named(row)[1]

    def _named(self, row: Score) -> tuple[str, str]:
        if row.state != "ok" or row.abstained or not row.differential:
            return "", ""
        first = row.differential[0]
        if first not in self._names:
            vocabulary = self.benchmark.vocabulary
            found, plain = vocabulary.find(first), normal_form(first)
            self._names[first] = (found.key if found else plain, vocabulary.disease_family(first) or plain)
        # options are compared as written: two of them may be synonyms
        return (normal_form(first), self._names[first][1]) if row.runner == Runner.CHOICE else self._names[first]

    def same_diagnosis(self, arm: str) -> Floats:
        """Return the share of pairs of an answer under full and one under an arm that name the same first diagnosis."""
        return _pairs(self.full, self.under(arm), lambda one, other: self.diagnosis(one) == self.diagnosis(other))

    def same_family(self, arm: str) -> Floats:
        """Return the share of such pairs whose first diagnoses are of one family."""
        return _pairs(self.full, self.under(arm), lambda one, other: self.family(one) == self.family(other))

    def repeats(self, name: Callable[[Score], str]) -> Floats:
        """Return the share of pairs of two different answers under full with the same name: `self.diagnosis` or `self.family`.

        1 for a model whose samples do not differ by design; NaN for a single sample of a model whose samples do.
        """
        single = np.nan if self.benchmark.sampled[self.model] else 1.0

        def share(rows: Sequence[Score]) -> float:
            names = [name(row) for row in rows]
            pairs = len(names) * (len(names) - 1)
            return sum(names.count(one) - 1 for one in names) / pairs if pairs else single if names else np.nan

        return np.array(list(map(share, self.full)), dtype=np.float64)

    def donor_families(self, arm: str) -> dict[int, str]:
        """Return the disease family of the donor, by item, where following the donor's pictures can be told from staying with the text.

        That needs a donor whose lesion is not known to be missed, whose family is neither that of the reference nor one that the model
        names under full, and, of a choice, an option of that family.
        """
        gold = {row.item_id: row for row in self.benchmark.gold}
        items = {item.item_id: item for item in self.benchmark.items}
        places = {item.item_id: place for place, item in enumerate(self.items)}
        families: dict[int, str] = {}
        for row in self.benchmark.disclosures:
            place = places.get(row.item_id)
            if row.arm != arm or place is None or row.images_of not in gold or items[row.images_of].lesion_shown is False:
                continue
            family = self.benchmark.vocabulary.disease_family(gold[row.images_of].answer)
            options = {self.benchmark.vocabulary.disease_family(option) for option in self.items[place].options}
            if family and family not in self._own_families(place) and (not options or family in options):
                families[place] = family
        return families

    def _reference_family(self, place: int) -> str:
        reference = self.benchmark.outcomes.gold[place].answer
        return self.benchmark.vocabulary.disease_family(reference) or normal_form(reference)

    def _own_families(self, place: int) -> set[str]:
        return ({self.family(row) for row in self.full[place]} | {self._reference_family(place)}) - {""}

    def follows_and_stays(self, arm: str) -> tuple[Floats, Floats]:
        """Return the shares of pairs in which the answer to another patient's pictures names a family of that patient, and of the own case.

        Each pair is an answer under full and one under the arm; own is the family of the first, and that of the reference.
        """
        follows, stays = (np.full(len(self.items), np.nan) for _ in range(2))
        families, answers = self.donor_families(arm), self.under(arm)
        for place, donor in families.items():
            pairs = list(product(self.full[place], answers[place]))
            if pairs:
                reference = self._reference_family(place)
                named = [(self.family(one), self.family(other)) for one, other in pairs]
                follows[place] = np.mean([other == donor for _, other in named])
                stays[place] = np.mean([bool(other) and other in (one, reference) for one, other in named])
        return follows, stays

    def flips_and_keeps(self, arm: str) -> tuple[Floats, Floats]:
        """Return the shares of pairs whose sides are opposite, and the same: an answer under full that says left or right, one to mirrored pictures.

        Only items whose reference lies on one side.
        """
        flips, keeps = (np.full(len(self.items), np.nan) for _ in range(2))
        mirrored = self.under(arm)
        for place, gold in enumerate(self.benchmark.outcomes.gold):
            if gold.lesion is None or gold.lesion.side not in OTHER_SIDE:
                continue
            told = [side for row in self.full[place] if (side := _side(row)) in OTHER_SIDE]
            if told and mirrored[place]:
                pairs = [(side, _side(row)) for side, row in product(told, mirrored[place])]
                flips[place] = np.mean([other == OTHER_SIDE[side] for side, other in pairs])
                keeps[place] = np.mean([other == side for side, other in pairs])
        return flips, keeps

    @cached_property
    def silent(self) -> npt.NDArray[np.bool_]:
        """Mask of the items with a free answer in English whose text tells nothing about pictures: what is told of them was not sent."""
        return np.array([_is_silent(item) for item in self.items], dtype=bool)

    def describes_unsent(self, arm: str, *, labelled: bool) -> Floats:
        """Return the share of answers that describe picture content, of which the arm sends none."""
        return self._share(arm, lambda row, item: describes_unsent(parse_under(row.text, item, arm), row.text, labelled=labelled))

    def argues_from_picture(self, arm: str) -> Floats:
        """Return the share of answers that name picture content as the reason for the first diagnosis, of those that give a reason."""
        return self._share(arm, lambda row, item: argues_from_picture(parse_under(row.text, item, arm)))

    def unmoved_reasoning(self, arm: str) -> Floats:
        """Return the share of pairs in which the answer under full argues from the picture, and the one under the arm has the same diagnosis."""
        values, others = np.full(len(self.items), np.nan), self.under(arm)
        for place, item in enumerate(self.items):
            if self.full[place] and others[place] and self.silent[place]:
                argues = [row.state == "ok" and argues_from_picture(parse_under(row.text, item, FULL)) for row in self.full[place]]
                pairs = product(zip(self.full[place], argues, strict=True), others[place])
                values[place] = np.mean([bool(seen) and self.diagnosis(one) == self.diagnosis(other) for (one, seen), other in pairs])
        return values

    def _share(self, arm: str, holds: Callable[[Score, Item], bool | None]) -> Floats:
        values = []
        for rows, item, silent in zip(self.under(arm), self.items, self.silent, strict=True):
            # a refusal describes nothing
            verdicts = [row.state == "ok" and holds(row, item) for row in rows if silent]
            known = [verdict for verdict in verdicts if verdict is not None]
            values.append(np.mean(known) if known else np.nan)
        return np.array(values, dtype=np.float64)


def _pairs(first: Answers, second: Answers, same: Callable[[Score, Score], bool]) -> Floats:
    """Return for each item the share of pairs, one of each side, that are the same; NaN where a side has no answer."""
    return np.array(
        [
            np.mean([same(*pair) for pair in product(one, other)]) if one and other else np.nan
            for one, other in zip(first, second, strict=True)
        ]
    )


def _side(row: Score) -> str:
    """Return the side that an answer states, if it states one."""
    stated = sides((row.fields or {}).get("side") or "")
    return stated.pop() if len(stated) == 1 else ""


def _is_silent(item: Item) -> bool:
    text = "\n".join((item.notes, item.record, item.given, item.question, *(turn.reveal for turn in item.turns)))
    return item.runner in (Runner.OPEN, Runner.DIALOGUE) and item.language == "en" and not describes_picture(text)


def arms_with(benchmark: BenchmarkStudy, pictures: str) -> list[str]:
    """Return the arms of a benchmark that do something with the pictures, text as in full first; see `config.arms.ArmConfig`.

    None of those that ask for one name among five: such an answer describes no picture.
    """
    named = {name: arm.config for name, arm in benchmark.arms.items() if (arm.config.pictures, arm.config.options) == (pictures, "keep")}
    built_in = [Arm.NO_IMAGE] if pictures == "none" and Arm.NO_IMAGE in benchmark.config.arms else []
    return [*map(str, built_in), *sorted(named, key=lambda name: (named[name].text != "keep", name))]


def first_asked(answers: AnswersByArm, arms: Iterable[str]) -> str:
    """Return the first of some arms that a model was asked under; empty if none."""
    return next((arm for arm in arms if answers.asked(arm)), "")
