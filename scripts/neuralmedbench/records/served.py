"""Served models: a provider may serve another model under the same name from one call to the next."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

LONGEST_NAME = 100


@dataclass(frozen=True, kw_only=True, order=True)
class ServedModel:
    """A model as named by the provider.

    Attributes
    ----------
    first_called_on, last_called_on : str
        Dates of its first and last answer (YYYY-MM-DD); empty if unknown.
    name, fingerprint : str
        As reported by the provider, with unprintable characters replaced.
    answers : int
        Number of its answers.
    """

    first_called_on: str
    last_called_on: str
    name: str
    fingerprint: str
    answers: int


def served_by(answers: Iterable[tuple[str, str, str]]) -> list[ServedModel]:
    """Count answers by served model.

    Parameters
    ----------
    answers : iterable of (str, str, str)
        Served model, fingerprint and date of each answer. Answers without a served model (not reported, or no answer) are left out.

    Returns
    -------
    list of ServedModel
        In the order of their first answers.
    """
    days: dict[tuple[str, str], Counter[str]] = {}
    for (name, fingerprint, day), number in Counter(answers).items():
        if name:
            days.setdefault((printable_name(name), printable_name(fingerprint)), Counter())[day] += number
    return sorted(
        ServedModel(
            first_called_on=min(filter(None, by_day), default=""),
            last_called_on=max(by_day),
            name=name,
            fingerprint=fingerprint,
            answers=by_day.total(),
        )
        for (name, fingerprint), by_day in days.items()
    )


def printable_name(name: str) -> str:
    """Return a name from a provider for display in a log or on a page: printable, on one line, at most `LONGEST_NAME` characters."""
    return "".join(char if char.isprintable() else "?" for char in name[:LONGEST_NAME])
