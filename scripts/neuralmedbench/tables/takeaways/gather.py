"""Every block's takeaway and `n =` line, as `notes.json` holds them."""

from __future__ import annotations

from collections.abc import Callable

from neuralmedbench.records.words import counted
from neuralmedbench.tables.change.words import change_sentences
from neuralmedbench.tables.confidence.reliability import confidence_sentence
from neuralmedbench.tables.study import Study
from neuralmedbench.tables.takeaways import data, results, trust
from neuralmedbench.tables.takeaways.contamination import contaminated
from neuralmedbench.tables.takeaways.words import Said, Tables, without_head
from neuralmedbench.tables.trust.words import trust_takeaway


def _confidence(study: Study, tables: Tables) -> Said:
    rows = [row for row in tables["confidence"] if row["arm"] == "full"]
    return Said(
        confidence_sentence(study, tables["confidence"]),
        f"{counted(sum(row['with_confidence'] or 0 for row in rows), 'answer')} with a confidence",
    )


def _trust(study: Study, tables: Tables) -> Said:
    return Said(trust_takeaway(study, tables), trust.trust(study, tables).n)


def _changed(study: Study, tables: Tables) -> Said:
    said = data.changed(study, tables)
    told = [without_head(sentence) for sentence in change_sentences(study, tables["revisions"])]
    return Said(" ".join(told) or said.takeaway, said.n)


TAKEAWAYS: dict[str, Callable[[Study, Tables], Said]] = {
    "glance": results.glance,
    "leaderboard": results.leaderboard,
    "axes": results.axes,
    "perception": results.perception,
    "repeats": results.repeats,
    "errors": results.errors,
    "steps": results.steps,
    "graders": trust.graders,
    "juries": trust.juries,
    "ratings": trust.ratings,
    "trust": _trust,
    "similarity": trust.similarity,
    "arms": results.arms,
    "cases": data.cases,
    "cohort": data.cohort,
    "flow": data.flow,
    "privacy": data.privacy,
    "left": data.left,
    "methods": data.methods,
    "changed": _changed,
    "pairs": results.pairs,
    "groups": results.groups,
    "contamination": contaminated,
    "confidence": _confidence,
    "abstention": results.abstention,
    "cost": data.cost,
    "fields": data.fields,
    "form": data.form,
    "readers": trust.readers,
    "readiness": data.readiness,
}
"""By the id of the block on the page; blocks that show files instead of tables say theirs in their templates."""


def block_notes(study: Study, tables: Tables) -> dict[str, dict[str, str]]:
    """Say of every block what its table shows.

    Parameters
    ----------
    study : Study
        The run.
    tables : dict of str to list of dict
        Tables of results.

    Returns
    -------
    dict of str to dict
        By block: `takeaway`, one sentence that claims no more than the table, and `n`, what the block counts.
    """
    said = {name: words(study, tables) for name, words in TAKEAWAYS.items()}
    return {name: {"takeaway": one.takeaway, "n": one.n} for name, one in said.items()}
