"""Wording shared by the sentences of the tables: shares with their intervals, counts with their nouns, lists."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from neuralmedbench.records.words import capital, counted, listing, percent_with_span
from neuralmedbench.tables.outcomes import PRIOR
from neuralmedbench.tables.rows import Cells, Tables
from neuralmedbench.tables.study import Study


@dataclass(frozen=True)
class Takeaway:
    """What stands above a block: its takeaway, and what it counts (without `n =`)."""

    takeaway: str
    n: str


def share(row: Cells, name: str) -> str:
    """Write a share with its interval.

    Examples
    --------
    >>> share({"p": 0.5, "p_low": 0.25, "p_high": 0.75}, "p")
    '50 % (25 % to 75 %)'
    """
    return percent_with_span(row[name], row.get(f"{name}_low"), row.get(f"{name}_high"))


def value_share(row: Cells) -> str:
    """Write the column `value` of a tidy table with its interval."""
    return share({"p": row["value"], "p_low": row["low"], "p_high": row["high"]}, "p")


def without_head(sentence: str) -> str:
    """Leave out the words before the colon with which a sentence of the glance begins."""
    return capital(sentence.partition(": ")[2] or sentence)


def models_of(tables: Tables, benchmark: str) -> list[Cells]:
    """Rows of the leaderboard that are models: no prior, no reader."""
    return [row for row in tables["leaderboard"] if row["benchmark"] == benchmark and row["model"] != PRIOR and not row.get("reader")]


def best_of(tables: Tables, benchmark: str) -> Cells | None:
    """Row of the model that stands first; None when no model has a rank."""
    ranked = [row for row in models_of(tables, benchmark) if row.get("rank")]
    return min(ranked, key=lambda row: (row["rank"], row["model"])) if ranked else None


def whole_size(study: Study, tables: Tables) -> str:
    """Items, patients and answers of every benchmark under the arm full."""
    told = []
    for name in study.benchmarks:
        rows = models_of(tables, name)
        if rows:
            answers = sum(row.get("expected") or 0 for row in rows)
            told.append(
                (name, f"{counted(rows[0]['n_items'], 'item')}, {counted(rows[0]['n_patients'], 'patient')}, {counted(answers, 'answer')}")
            )
    return by_benchmark(told) or "0 answers"


def largest(rows: Iterable[Cells]) -> str:
    """Items and patients by benchmark; where rows differ, of the one with the most."""
    found: dict[str, list[Cells]] = {}
    for row in rows:
        found.setdefault(row["benchmark"], []).append(row)
    told = []
    for name, own in found.items():
        upto = "up to " if len({row["n_items"] for row in own}) > 1 else ""
        items, patients = (max(row[column] or 0 for row in own) for column in ("n_items", "n_patients"))
        told.append((name, f"{upto}{counted(items, 'item')}, {counted(patients, 'patient')}"))
    return by_benchmark(told) or "0 items"


def by_benchmark(told: list[tuple[str, str]]) -> str:
    """Put what is said of benchmarks into one line; one alone needs no name."""
    return told[0][1] if len(told) == 1 else "; ".join(f"{name}: {words}" for name, words in told)


def titles_of(study: Study, names: Iterable[str]) -> str:
    """Titles of models, in the order of the run list."""
    wanted = set(names)
    found = [model.title for name, model in study.models.items() if name in wanted]
    return listing(found) if found else "nobody"
