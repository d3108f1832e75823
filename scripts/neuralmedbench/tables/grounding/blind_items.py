"""Items that models solve without their pictures, for the authors of a benchmark: `blind_items.csv`."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from neuralmedbench.records.items import Arm, Runner
from neuralmedbench.records.words import all_of, counted, listing
from neuralmedbench.tables.contrasts import answered
from neuralmedbench.tables.declare import Suppression, Table, of_study
from neuralmedbench.tables.outcomes import Key
from neuralmedbench.tables.rows import ResultRow, Tables
from neuralmedbench.tables.study import BenchmarkStudy, Study

SOLVED = 0.5
"""An item is solved by a model that passes it in more than this share of its answers without pictures. (Our rule.)"""


@dataclass(frozen=True, kw_only=True)
class BlindItemRow(ResultRow):
    """One item that at least one model solves without its pictures."""

    benchmark: str
    item_id: str
    family: str
    runner: str
    n_models: int
    n_solving: int
    share_right: float
    floor: float | None = None
    above_floor: float | None = None


def blind_item_rows(study: Study) -> list[BlindItemRow]:
    """Rows of `blind_items.csv`: the items that a model solves under `no_image`, those that most models solve first.

    `floor` is chance for a choice, else what the best constant answer earns on the item when it is chosen on other patients; `above_floor`
    is the share of right answers minus it. Readers are left out; built-in baselines count.
    """
    return [row for benchmark in study.benchmarks.values() for row in _rows_of(study, benchmark)]


def _rows_of(study: Study, benchmark: BenchmarkStudy) -> list[BlindItemRow]:
    outcomes = benchmark.outcomes
    keys = [Key(model, Arm.NO_IMAGE) for model in study.models if model not in study.readers]
    passed = [answered(outcomes, key) for key in keys if key in outcomes.counts]
    rows = []
    for place, shares in enumerate(zip(*passed, strict=True)):
        known = [share for share in shares if np.isfinite(share)]
        solving = sum(bool(share > SOLVED) for share in known)
        if not solving:
            continue
        item = outcomes.items[place]
        floor = 1 / len(item.options) if item.runner is Runner.CHOICE else float(benchmark.floors["pass1"].chosen[place])
        right = float(np.mean(known))
        rows.append(
            BlindItemRow(
                benchmark=benchmark.name,
                item_id=item.item_id,
                family=str(item.family),
                runner=str(item.runner),
                n_models=len(known),
                n_solving=solving,
                share_right=right,
                floor=floor,
                above_floor=right - floor,
            )
        )
    return sorted(rows, key=lambda row: (-row.n_solving, -row.above_floor if row.above_floor is not None else 0.0, row.item_id))


def blind_sentence(study: Study, tables: Tables) -> str:
    """State how many items models solve without pictures, of the benchmarks whose list is shown; empty if none is."""
    parts = []
    for name, benchmark in study.benchmarks.items():
        solved = [row for row in tables["blind_items"] if row["benchmark"] == name]
        if solved:
            of_all = sum(row["n_solving"] == row["n_models"] for row in solved)
            models = max(row["n_models"] for row in solved)
            whole = f", {of_all} of them by {all_of(models, 'model')}" if models > 1 else ""
            parts.append(f"{benchmark.config.title}: {counted(len(solved), 'item')}{whole}")
    return f"Solved without pictures by at least one model: {listing(parts, len(parts))}." if parts else ""


BLIND_ITEMS = Table(
    name="blind_items",
    row=BlindItemRow,
    rows=of_study(blind_item_rows),
    suppression=Suppression("benchmark", each=True),
)
