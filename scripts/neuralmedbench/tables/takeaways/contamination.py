"""Takeaway of the training cut-offs: whether a model does better on cases that it may have read."""

from __future__ import annotations

from neuralmedbench.records.words import counted
from neuralmedbench.tables.study import Study
from neuralmedbench.tables.takeaways.words import Row, Said, Tables, titles_of


def contaminated(study: Study, tables: Tables) -> Said:
    """Say which models do better before their cut-off than after it, and whether more so than models that it does not divide."""
    rows = tables["contamination"]
    known = [row for row in rows if row.get("difference") is not None and row["metric"] == "pass1"]
    if not known:
        return Said("No model could be compared before and after its training cut-off.", "0 comparisons")
    size = f"{counted(len(known), 'comparison')} of pass@1"
    better = [row for row in known if row["difference"] > 0 and row["p_holm"] < 1 - study.settings.confidence]
    if not better:
        return Said("No model was shown to do better on cases from before its training cut-off; that is no proof that it read none.", size)
    told = f"{titles_of(study, sorted({row['model'] for row in better}))} {'does' if _one(better) else 'do'} better before the cut-off"
    beyond = [row for row in better if row.get("beyond_low") is not None and row["beyond_low"] > 0]
    if beyond:
        return Said(
            f"{told}; of {titles_of(study, sorted({row['model'] for row in beyond}))} more so than models that it does not divide.", size
        )
    return Said(f"{told}; newer cases may only be harder.", size)


def _one(rows: list[Row]) -> bool:
    return len({row["model"] for row in rows}) == 1
