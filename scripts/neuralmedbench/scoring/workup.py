"""What a model did in a work-up: what it asked for, what came, and how its probabilities moved; measures of one answer."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise

from neuralmedbench.models.conversation import WorkUpStep, facts_told, questions_asked, released, shown_answer
from neuralmedbench.models.informant import MOST_REPLIES, informed_questions
from neuralmedbench.records.examinations.inventory import RequestOutcome
from neuralmedbench.records.examinations.matching import match_request
from neuralmedbench.records.requests import MOST_CANDIDATES, Inquiry
from neuralmedbench.records.thoughts import without_thoughts
from neuralmedbench.records.vocabulary import normal_form
from neuralmedbench.scoring.choice import read_choice
from neuralmedbench.scoring.matching import RIGHT, ReferenceAnswer, relation

HEADER = re.compile(r"^[\s>*_#-]*CANDIDATES?[*_]*\s*:[*_\s]*$", re.IGNORECASE | re.MULTILINE)
NEXT_SECTION = re.compile(r"^[\s>*_#-]*[A-Z]{4,}[*_]*\s*:", re.MULTILINE)
CANDIDATE = re.compile(
    r"^[\s>]*(?:\d+\s*[.)]|[-*•])\s*(?P<name>.*?\w.*?)[\s*_]*(?:\||[:–—=(]|\s-\s)\s*(?:p(?:robability)?\s*[:=]?\s*)?(?P<value>\d*\.?\d+)\s*(?P<percent>%)?[)\s*_.]*$",
    re.IGNORECASE,
)
LEAST_PROBABILITY = 0.01
"""Probability that a reference counts with at least, so that one turn does not decide the mean of the log losses."""
MOST_LOG_LOSS, MOST_BRIER = -math.log(LEAST_PROBABILITY), 2.0


@dataclass(frozen=True)
class Candidate:
    """A diagnosis, and the probability that the model states for it."""

    name: str
    probability: float


@dataclass(frozen=True)
class WorkUpTurn:
    """One message of the model.

    Attributes
    ----------
    step : WorkUpStep or None
        Its request and what came of it; None for the final answer.
    candidates : tuple of Candidate
        As stated, most likely first; empty if none could be read.
    right : tuple of bool
        Which of them are the reference.
    """

    step: WorkUpStep | None
    candidates: tuple[Candidate, ...]
    right: tuple[bool, ...]

    @property
    def mass(self) -> float | None:
        """Probability stated for the reference; None if no candidate could be read."""
        if not self.candidates:
            return None
        return min(1.0, sum(one.probability for one, right in zip(self.candidates, self.right, strict=True) if right))

    @property
    def brier(self) -> float | None:
        """Squared distance of the stated probabilities from 1 for the reference and 0 for all others: 0 to 2."""
        if self.mass is None:
            return None
        wrong = [one.probability for one, right in zip(self.candidates, self.right, strict=True) if not right]
        return (1 - self.mass) ** 2 + sum(value**2 for value in wrong)

    @property
    def log_loss(self) -> float | None:
        """Negative natural logarithm of the probability of the reference, which counts with at least `LEAST_PROBABILITY`."""
        return None if self.mass is None else -math.log(max(self.mass, LEAST_PROBABILITY))

    @property
    def leads(self) -> bool:
        """True if the reference leads: the first of the candidates with the highest probability."""
        return bool(self.candidates) and self.right[_leader(self.candidates)]


def _leader(candidates: Sequence[Candidate]) -> int:
    return max(range(len(candidates)), key=lambda place: (candidates[place].probability, -place))


@dataclass(frozen=True)
class WorkUp:
    """All messages of one answer, with what its case holds.

    Attributes
    ----------
    inquiry : Inquiry
        The examinations and the budget.
    turns : tuple of WorkUpTurn
        The messages in order; the last one is the final answer.
    essential : tuple of str
        Names of the examinations that the case's author calls essential, in the author's order; empty if there is no such list.
    """

    inquiry: Inquiry
    turns: tuple[WorkUpTurn, ...]
    essential: tuple[str, ...] = ()

    @property
    def given(self) -> list[str]:
        """Names of the examinations that were released, in order."""
        places = [turn.step.place for turn in self.turns if turn.step is not None and not turn.step.again]
        return [self.inquiry.facts[place].name for place in places if place is not None]

    def measures(self) -> dict[str, float | None]:
        """Return the measures of the answer by name; None where one is not defined (`docs/metrics.md`)."""
        steps = [turn.step for turn in self.turns if turn.step is not None]
        chosen, final = not self.inquiry.fixed and self.inquiry.max_questions > 0, self.turns[-1]
        given, essential = self.given, self.essential
        found = [name for name in given if name in essential]
        ordered = [essential.index(first) < essential.index(second) for first, second in combinations(found, 2)]
        used_up = len(steps) >= self.inquiry.max_questions
        invalid = [step.again or step.outcome is not RequestOutcome.GIVEN for step in steps]
        listed = bool(chosen and essential)
        return {
            "essential_recall": len(found) / len(essential) if listed else None,
            "not_needed": 1 - len(found) / len(given) if listed and given else None,
            "invalid_requests": sum(invalid) / len(invalid) if chosen and invalid else None,
            "authors_order": sum(ordered) / len(ordered) if listed and ordered else None,
            "premature_closure": float(len(found) < len(essential)) if listed and not used_up else None,
            "brier": final.brier,
            "log_loss": final.log_loss,
            "turns_to_diagnosis": self._turns_to_diagnosis(),
            "mass_moved_right": _mean([after >= before and (after > before or after == 1) for before, after in self._moves()]),
            "leader_changed_without_evidence": _mean(self._changes_without_evidence()),
        }

    def _turns_to_diagnosis(self) -> float | None:
        """Return the number of the message from which the reference leads to the end."""
        if not self.turns[-1].leads:
            return None
        return next(number for number in range(1, len(self.turns) + 1) if all(turn.leads for turn in self.turns[number - 1 :]))

    def _moves(self) -> list[tuple[float, float]]:
        """Return the probability of the reference before and after each examination that was released."""
        pairs = [(first, second) for first, second in pairwise(self.turns) if _brings_evidence(first.step)]
        return [(first.mass, second.mass) for first, second in pairs if first.mass is not None and second.mass is not None]

    def _changes_without_evidence(self) -> list[bool]:
        pairs = [(first.candidates, second.candidates) for first, second in pairwise(self.turns) if not _brings_evidence(first.step)]
        names = [[normal_form(part[_leader(part)].name) for part in pair] for pair in pairs if all(pair)]
        return [first != second for first, second in names]


def _brings_evidence(step: WorkUpStep | None) -> bool:
    return step is not None and step.place is not None and not step.again


def _mean(values: Sequence[bool]) -> float | None:
    return sum(values) / len(values) if values else None


def read_work_up(inquiry: Inquiry, answers: Sequence[str], reference: ReferenceAnswer, essential: Sequence[str] = ()) -> WorkUp:
    """Read the messages of one answer.

    Parameters
    ----------
    inquiry : Inquiry
        The examinations of the case.
    answers : sequence of str
        All messages of the model; at least one.
    reference : ReferenceAnswer
        The diagnosis.
    essential : sequence of str
        As the author names them; what the case does not hold is left out.
    """
    steps: list[WorkUpStep | None] = [*released(inquiry, answers[:-1])]
    turns = [read_turn(answer, steps[number] if number < len(steps) else None, reference) for number, answer in enumerate(answers)]
    places = [match_request(name, inquiry.held).place for name in essential]
    names = [inquiry.facts[place].name for place in places if place is not None]
    return WorkUp(inquiry, tuple(turns), tuple(dict.fromkeys(names)))


def measures_of_asking(
    inquiry: Inquiry, answers: Sequence[str], options: Sequence[str], replies: Sequence[str] = ()
) -> dict[str, float | None]:
    """Return the measures of one answer to a question with options whose facts were asked for, by name; None where one is not defined.

    `replies` are those of the language model that told the facts, if there is one.
    """
    questions = questions_asked(inquiry, answers)
    told = facts_told(inquiry, answers, replies)
    unusable = [one.unusable for one in informed_questions(inquiry, questions, replies)] if replies else []
    letter, _ = read_choice(without_thoughts(answers[-1]), options)
    return {
        "questions": float(len(questions)) if inquiry.facts else None,
        "facts_asked": len({fact for facts in told for fact in facts}) / len(inquiry.facts) if inquiry.facts else None,
        "not_answered": sum(not facts for facts in told) / len(told) if told else None,
        "no_option": float(not letter),
        "informant_corrected": sum(number > 0 for number in unusable) / len(unusable) if unusable else None,
        "informant_unusable": sum(number == MOST_REPLIES for number in unusable) / len(unusable) if unusable else None,
    }


def read_turn(answer: str, step: WorkUpStep | None, reference: ReferenceAnswer) -> WorkUpTurn:
    """Read the candidates of one message, and which of them are the reference."""
    candidates = read_candidates(answer)
    return WorkUpTurn(step, candidates, tuple(relation(one.name, reference) in RIGHT for one in candidates))


def without_candidates(text: str) -> str:
    """Remove the candidates from a final answer, of which the rest is the answer in its form; other texts stay as they are."""
    said = shown_answer(text)
    header = HEADER.search(said)
    following = NEXT_SECTION.search(said, header.end()) if header else None
    return said[: header.start()] + said[following.start() :] if header and following else text


def read_candidates(answer: str) -> tuple[Candidate, ...]:
    r"""Read the diagnoses and probabilities of one message: at most four, most likely first as stated; empty if none has a probability.

    Where they add up to more than 1 they are scaled down to 1.

    Examples
    --------
    >>> read_candidates("CANDIDATES:\n1. glioblastoma | 0.6\n2. Metastasis: 30 %\nREQUEST: FLAIR")
    (Candidate(name='glioblastoma', probability=0.6), Candidate(name='Metastasis', probability=0.3))
    """
    said = shown_answer(answer)
    if (header := HEADER.search(said)) is None:
        return ()
    part = said[header.end() :]
    if following := NEXT_SECTION.search(part):
        part = part[: following.start()]
    stated = [match for line in part.splitlines() if (match := CANDIDATE.match(line))][:MOST_CANDIDATES]
    values = [float(match["value"]) / (100 if match["percent"] else 1) for match in stated]
    if any(value > 1 for value in values):
        return ()
    total = max(1.0, sum(values))
    return tuple(Candidate(match["name"].strip(" *_"), value / total) for match, value in zip(stated, values, strict=True))
