"""The model that really answered: a provider may serve another one under the same name from one call to the next."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

LONGEST_NAME = 100


@dataclass(frozen=True, kw_only=True, order=True)
class ServedModel:
    """A model as the provider named it.

    Attributes
    ----------
    first_called_on, last_called_on : str
        First and last day on which it answered (YYYY-MM-DD); empty when not known.
    name, fingerprint : str
        What the provider said, without signs that no name has.
    answers : int
        How many answers it gave.
    """

    first_called_on: str
    last_called_on: str
    name: str
    fingerprint: str
    answers: int


def served_by(answers: Iterable[tuple[str, str, str]]) -> list[ServedModel]:
    """Count answers by the model that the provider said it served.

    Parameters
    ----------
    answers : iterable of (str, str, str)
        Served model, fingerprint and day of each answer. One without a served model (the provider said nothing, or nothing came) is left out.

    Returns
    -------
    list of Served
        In the order in which they appeared.
    """
    days: dict[tuple[str, str], Counter[str]] = {}
    for (name, fingerprint, day), number in Counter(answers).items():
        if name:
            days.setdefault((printable_name(name), printable_name(fingerprint)), Counter())[day] += number
    return sorted(
        ServedModel(
            first_called_on=min(filter(None, found), default=""),
            last_called_on=max(found),
            name=name,
            fingerprint=fingerprint,
            answers=found.total(),
        )
        for (name, fingerprint), found in days.items()
    )


def printable_name(name: str) -> str:
    """Give a provider's word as it may stand in a log or on a page: on one line, and not without end."""
    return "".join(char if char.isprintable() else "?" for char in name[:LONGEST_NAME])
