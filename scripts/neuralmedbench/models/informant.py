"""A language model as informant: it names the facts that answer a question, and the case tells these facts word for word.

It replies with numbers of facts alone. Whatever else it writes is thrown away unread, so nothing that is not in the case reaches the model that
asks. A reply in no form gets one correction; after a second one the case does not say.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from neuralmedbench.records.fact_matching import MOST_FACTS
from neuralmedbench.records.requests import Fact, Inquiry
from neuralmedbench.records.thoughts import THINKING

INFORMANT = "informant"
"""Strategy under which the ledger keeps its calls, in the ledger of the model that asks."""

MOST_REPLIES = 2
"""Calls for one question: the first, and one correction."""

CHOICE = re.compile(
    r"(?:[*_]*FACTS[*_]*\s*:[*_]*)?\s*(?:none|(?P<numbers>\[?\d{1,4}\]?(?:(?:\s*,\s*|\s+)\[?\d{1,4}\]?)*))\.?", re.IGNORECASE
)
"""Numbers, or `none`, and nothing beside them."""


def chosen_facts(reply: str, facts: Sequence[Fact]) -> tuple[Fact, ...] | None:
    """Read the reply of an informant.

    Parameters
    ----------
    reply : str
        All that it wrote; thoughts between tags do not count.
    facts : sequence of Fact
        The facts of the case, numbered from 1.

    Returns
    -------
    tuple of Fact or None
        The facts that it names, in the order of the case, and none of them if it says so. None if the reply is anything else than at most
        `MOST_FACTS` numbers of facts: other words beside them, a number without a fact, or nothing at all.
    """
    read = CHOICE.fullmatch(THINKING.sub("", reply).strip())
    if read is None:
        return None
    numbers = {int(number) for number in re.findall(r"\d+", read["numbers"] or "")}
    if len(numbers) > MOST_FACTS or not all(1 <= number <= len(facts) for number in numbers):
        return None
    return tuple(facts[number - 1] for number in sorted(numbers))


@dataclass(frozen=True)
class InformedQuestion:
    """A question of the model, the informant's replies to it, and what they come to.

    Attributes
    ----------
    facts : tuple of Fact or None
        The facts that are told; None while the informant is still to reply.
    unusable : int
        Replies in no form: one was corrected, after two the case does not say.
    """

    question: str
    replies: tuple[str, ...]
    facts: tuple[Fact, ...] | None
    unusable: int


def informed_questions(inquiry: Inquiry, questions: Sequence[str], replies: Sequence[str]) -> Iterator[InformedQuestion]:
    """Share the replies of an informant among the questions, in their order."""
    rest = list(replies)
    for question in questions:
        own: list[str] = []
        facts: tuple[Fact, ...] | None = None
        while rest and facts is None and len(own) < MOST_REPLIES:
            own.append(rest.pop(0))
            facts = chosen_facts(own[-1], inquiry.facts)
        unusable = len(own) - (facts is not None)
        yield InformedQuestion(question, tuple(own), () if unusable == MOST_REPLIES else facts, unusable)
