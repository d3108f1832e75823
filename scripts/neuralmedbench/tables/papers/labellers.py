"""Who labelled the errors of a model's answers: one line each in the table of a paper."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

SIMULATED_LABELS = "labels of simulated raters say nothing about a model and are not shown here; a round of clinicians fills it (results/ratings/ratings.parquet)"


@dataclass(frozen=True)
class Labeller:
    """Who labelled.

    Attributes
    ----------
    words : str
        In words; empty where a table has no labels.
    columns : tuple of (str, str)
        What the columns of `errors.csv` say of it.
    simulated : bool
        A program in the place of a rater: it fills no cell.
    nobody : bool
        Nobody labelled this model's answers.
    """

    words: str = ""
    columns: tuple[tuple[str, str], ...] = ()
    simulated: bool = False
    nobody: bool = False


def labellers_of(rows: Iterable[Mapping[str, str]]) -> list[Labeller]:
    """Give those who labelled, in the order of the rows of `errors.csv` about one model; never none."""
    found = dict[Labeller, None]()
    for row in rows:
        simulated, name = row["simulated"] == "true", row["source"]
        people = f"{'simulated raters' if simulated else 'clinicians'}, round {name}"
        columns = tuple((column, row[column]) for column in ("source", "kind", "simulated"))
        found[Labeller(people if row["kind"] == "round" else f"grader {name}", columns, simulated)] = None
    return list(found) or [Labeller(nobody=True)]
