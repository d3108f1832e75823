"""An answer that a round may show: what was sent, what came back, and what is right."""

from __future__ import annotations

from dataclasses import dataclass

from neuralmedbench.records.items import NO_LESION, Family, Gold, Item
from neuralmedbench.records.requests import RequestTurn
from neuralmedbench.records.responses import Response


@dataclass(frozen=True)
class Candidate:
    """One response with its item.

    Attributes
    ----------
    item : Item
        Whose case, family and level count.
    response : Response
        State ok.
    sent : tuple of RequestTurn
        The messages as this model got them, its own picture budget applied.
    gold : Gold or None
        What is right, where it is known.
    """

    item: Item
    response: Response
    sent: tuple[RequestTurn, ...]
    gold: Gold | None

    @property
    def stratum(self) -> str:
        """Model, family and level."""
        return f"{self.response.model}/{self.item.family}/{self.item.level}"

    @property
    def answers(self) -> tuple[str, ...]:
        """The answer to each message."""
        return self.response.turns if len(self.sent) > 1 else (self.response.text,)


def reference_lines(item: Item, gold: Gold) -> list[str]:
    """Tell what is right in lines of text.

    Parameters
    ----------
    item : Item
        The item.
    gold : Gold
        Its answer.

    Returns
    -------
    list of str
        Answer, place of the lesion, what else has to be considered, findings, and how all of this is known; what is not known is left out.
    """
    choice = f"{gold.choice}. " if gold.choice else ""
    place = ""
    if gold.lesion and gold.answer != NO_LESION:
        place = " ".join(part for part in (gold.lesion.side, gold.lesion.location) if part)
    lines = [
        ("Reference", f"{choice}{gold.answer}"),
        ("Lesion" if item.family is Family.LESION_RECOGNITION else "Main lesion", place),
        ("To be considered", "; ".join(gold.differentials)),
        ("Findings", "; ".join(gold.findings)),
        ("Known from", gold.established),
    ]
    return [f"{name}: {text}" for name, text in lines if text]
