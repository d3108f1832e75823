"""Wording shared by the sentences of the tables: shares with their intervals, counts with their nouns, lists."""

from __future__ import annotations

from collections.abc import Iterable

from neuralmedbench.estimates.contrasts import DIFFERENT
from neuralmedbench.records.results import PATIENT, PRIOR
from neuralmedbench.records.words import capital, counted, items_of, listing, percent_with_span, points, points_span
from neuralmedbench.tables.declare import Cells, Tables
from neuralmedbench.tables.family import PRIMARY
from neuralmedbench.tables.study import Study

TITLE, PICTURES, MODELS = "title", "pictures", "models"
"""Kinds of comparisons that sentences at a glance may claim, beside the primary."""

MOST_EXPLORED = 3
"""Most exploratory differences in a sentence."""


def claims_of(tables: Tables, kind: str, *, significant: bool = True, **cells: str) -> list[Cells]:
    """Return the comparisons of one kind that have the given cells; only those that are significant after correction, or all that were made.

    They are the rows with a family: those of topic `title`; pictures of topic `arms`; of topic `pairs` the primary, and models against the leader
    of their benchmark.
    """
    rows = [row for row in tables[{TITLE: "title", PICTURES: "arms"}.get(kind, "pairs")] if row.get("family")]
    if kind == PRIMARY:
        rows = [row for row in rows if row["family"] == PRIMARY]
    else:
        rows = [row for row in rows if row["family"] != PRIMARY and row["p_value"] is not None]
    if kind == MODELS:
        leaders = {name: (best_of(tables, name) or {}).get("model") for name in {row["benchmark"] for row in rows}}
        rows = [row for row in rows if leaders[row["benchmark"]] in (row["model"], row["other"])]
    rows = [row for row in rows if all(row[name] == value for name, value in cells.items())]
    return [row for row in rows if row["answer"] in DIFFERENT] if significant else rows


def is_closed(tables: Tables) -> bool:
    """Return True if a stated comparison is not significant, so that nothing else was tested."""
    return any(row["answer"] not in DIFFERENT for row in claims_of(tables, PRIMARY, significant=False))


def exploratory(study: Study, head: str, rows: Iterable[Cells]) -> str:
    """State differences that are not corrected, each with its interval; empty without one. A row may say in `of` what it is about."""
    rows = [row for row in rows if row["model"] not in study.readers and row.get("difference", row.get("value")) is not None]
    several = len({row["benchmark"] for row in rows}) > 1
    parts = []
    for row in rows[:MOST_EXPLORED]:
        span = points_span(row["low"], row["high"])
        words = [
            study.models[row["model"]].title,
            f"{points(row.get('difference', row.get('value')))} points{f' ({span})' if span else ''}",
            str(row.get("of", "")),
            f"on {study.benchmarks[row['benchmark']].config.title}" if several else "",
        ]
        parts.append(" ".join(filter(None, words)))
    if len(rows) > MOST_EXPLORED:
        parts.append(f"{len(rows) - MOST_EXPLORED} more are in the table")
    return f"{head} (exploratory): {'; '.join(parts)}." if parts else ""


def share(row: Cells, name: str) -> str:
    """Format a share with its interval.

    Examples
    --------
    >>> share({"p": 0.5, "p_low": 0.25, "p_high": 0.75}, "p")
    '50 % (25 % to 75 %)'
    """
    return percent_with_span(row[name], row.get(f"{name}_low"), row.get(f"{name}_high"))


def value_share(row: Cells) -> str:
    """Format the column `value` of a tidy table with its interval."""
    return share({"p": row["value"], "p_low": row["low"], "p_high": row["high"]}, "p")


def without_head(sentence: str, study: Study) -> str:
    """Remove the words before the first colon of a sentence."""
    return begun(sentence.partition(": ")[2] or sentence, study)


def begun(sentence: str, study: Study) -> str:
    """Begin a sentence with a capital letter, or with the name of a model or grader as it is spelled."""
    names = [name for one in (study.models, study.all_graders) for key, config in one.items() for name in (key, config.title)]
    return capital(sentence, names)


def models_of(tables: Tables, benchmark: str) -> list[Cells]:
    """Return the rows of the leaderboard that are models: no prior, no reader."""
    return [row for row in tables["leaderboard"] if row["benchmark"] == benchmark and row["model"] != PRIOR and not row.get("reader")]


def constant_of(tables: Tables, benchmark: str) -> Cells:
    """Return the row of the best constant answer; empty where there is none."""
    return next((row for row in tables["leaderboard"] if (row["benchmark"], row["model"]) == (benchmark, PRIOR)), {})


def noun_of(rows: Iterable[Cells]) -> str:
    """Name what rows of the leaderboard are: models, or built-in baselines where no model is among them."""
    baselines = [bool(row.get("baseline")) for row in rows]
    return "built-in baseline" if baselines and all(baselines) else "model"


def ranked_of(tables: Tables, benchmark: str) -> list[Cells]:
    """Return the rows of the leaderboard that have a rank."""
    return [row for row in models_of(tables, benchmark) if row.get("rank")]


def best_of(tables: Tables, benchmark: str) -> Cells | None:
    """Return the row of the model with the best rank; None when no model has a rank."""
    return min(ranked_of(tables, benchmark), key=lambda row: (row["rank"], row["model"]), default=None)


def rows_of_best(rows: Iterable[Cells], tables: Tables, benchmark: str) -> list[Cells]:
    """Return the rows of another table that are about the model with the best rank on a benchmark; none when no model has a rank."""
    best = best_of(tables, benchmark)
    return [row for row in rows if best and (row["benchmark"], row["model"]) == (benchmark, best["model"])]


def size_of(row: Cells, between: str = ", ", separator: str = ",") -> str:
    """Count the items and patients of a row; `between` and `separator` as of `items_of`."""
    return items_of(row["n_items"], row["n_patients"], row.get("cluster"), between, separator)


def whole_size(study: Study, tables: Tables) -> str:
    """Count the items, patients and answers of every benchmark under the arm full."""
    parts = []
    for name in study.benchmarks:
        rows = models_of(tables, name)
        if rows:
            answers = sum(row.get("expected") or 0 for row in rows)
            parts.append((name, f"{size_of(rows[0])}, {counted(answers, 'answer')}"))
    return by_benchmark(parts) or "0 answers"


def largest(rows: Iterable[Cells]) -> str:
    """Count items and patients by benchmark; where rows differ, the largest counts."""
    found: dict[str, list[Cells]] = {}
    for row in rows:
        found.setdefault(row["benchmark"], []).append(row)
    parts = []
    for name, own in found.items():
        # rows may differ in their items, as arms do
        upto = "up to " if len({row["n_items"] for row in own}) > 1 else ""
        items, patients = (max(row[column] or 0 for row in own) for column in ("n_items", "n_patients"))
        parts.append((name, f"{upto}{items_of(items, patients, own[0].get('cluster'))}"))
    return by_benchmark(parts) or "0 items"


def cluster_of(rows: Iterable[Cells]) -> str:
    """Return what the rows count as patients, if they agree (`records.results.CLUSTER_MARKS`); else cases, for sets with and without patients."""
    nouns = {row.get("cluster") or PATIENT for row in rows} or {PATIENT}
    return nouns.pop() if len(nouns) == 1 else "case"


def case_noun(cluster: str) -> str:
    """Name what the case browser lists: an item where each counts as a patient of its own, else a case."""
    return "item" if cluster == "item" else "case"


def by_benchmark(texts: list[tuple[str, str]]) -> str:
    """Join texts about benchmarks, by name, into one line; a single one has no name."""
    return texts[0][1] if len(texts) == 1 else "; ".join(f"{name}: {words}" for name, words in texts)


def titles_of(study: Study, names: Iterable[str]) -> str:
    """List the titles of models, in the order of the run list."""
    wanted = set(names)
    found = [model.title for name, model in study.models.items() if name in wanted]
    return listing(found) if found else "nobody"
