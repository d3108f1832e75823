"""What changed between two revisions of a model: `revisions.csv` and `flips.csv`."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy import stats

from neuralmedbench.estimates.intervals import Settings, codes_of
from neuralmedbench.estimates.pairs import holm, paired_difference
from neuralmedbench.records.items import Item
from neuralmedbench.records.scores import ParseStatus, Score
from neuralmedbench.records.vocabulary import Vocabulary, normal_form
from neuralmedbench.tables.change.noise import compare_answers
from neuralmedbench.tables.descriptive import headline
from neuralmedbench.tables.study import Study

PASSED, LEADER = "passed", "leader"
MAJORITY = 0.5
"""An item passes when more than this share of its answers does."""

Row = dict[str, Any]


class Both(NamedTuple):
    """One item and its answers under the two revisions, or at the two times, that are compared."""

    item: Item
    old: list[Score]
    new: list[Score]


def passed_of(score: Score) -> str | None:
    """Category of an answer by its pass; None when it is missing or was not graded."""
    return None if score.missing or score.passed is None else str(score.passed)


def leader_of(score: Score, vocabulary: Vocabulary) -> str | None:
    """Category of an answer by what it names first, or by why it names nothing (in brackets); None when it is missing."""
    if score.missing:
        return None
    if score.differential:
        found = vocabulary.find(score.differential[0])
        return found.key if found else normal_form(score.differential[0])
    if score.state != "ok":
        return f"({score.state})"
    return "(unread)" if score.parse_status == ParseStatus.FAILED else "(none)"


def both_sides(items: Sequence[Item], old: list[Score], new: list[Score]) -> list[Both]:
    """Put the answers of two revisions to each item side by side: arm full, strategy direct, items that both have, sorted by id."""
    sides: list[dict[str, list[Score]]] = []
    for scores in (old, new):
        rows: dict[str, list[Score]] = defaultdict(list)
        for row in headline(scores):
            rows[row.item_id].append(row)
        sides.append(rows)
    known = (item for item in items if item.item_id in sides[0] and item.item_id in sides[1])
    return [Both(item, sides[0][item.item_id], sides[1][item.item_id]) for item in sorted(known, key=lambda item: item.item_id)]


def usable(pairs: Sequence[Both], category: Callable[[Score], str | None]) -> list[Both]:
    """Keep the items without a missing new answer, as every contrast does, and of the old answers those that are there."""
    kept = [Both(pair.item, [row for row in pair.old if category(row) is not None], pair.new) for pair in pairs]
    return [pair for pair in kept if pair.old and all(category(row) is not None for row in pair.new)]


def metric_rows(pairs: Sequence[Both], vocabulary: Vocabulary, settings: Settings) -> list[Row]:
    """Compare old and new answers by pass and by leader.

    Parameters
    ----------
    pairs : sequence of Both
        Items with the answers of both sides.
    vocabulary : Vocabulary
        Two names of one diagnosis are one leader.
    settings : Settings
        Resamples, seed and confidence.

    Returns
    -------
    list of dict
        Cells of `revisions.csv` for `passed`, with the paired difference of pass@1 (new minus old, clustered by patient), and for
        `leader`, over the items to which any answer names one. A metric without an item has no row.
    """

    def leader(score: Score) -> str | None:
        return leader_of(score, vocabulary)

    judged, named = usable(pairs, passed_of), usable(pairs, leader)
    named = [pair for pair in named if any(row.differential for row in (*pair.old, *pair.new))]
    rows = [_metric_row(PASSED, judged, passed_of, settings), _metric_row(LEADER, named, leader, settings)]
    if judged:
        old, new = np.array([_share(pair.old) for pair in judged]), np.array([_share(pair.new) for pair in judged])
        difference = paired_difference(new, old, codes_of([pair.item.patient_id for pair in judged]), settings)
        rows[0] |= {"earlier_value": float(old.mean()), "value": float(new.mean()), "difference": difference.value}
        rows[0] |= {"low": difference.low, "high": difference.high, "p_difference": difference.p_value}
        rows[0] |= {"gained": int(((new > MAJORITY) & (old <= MAJORITY)).sum()), "lost": int(((new <= MAJORITY) & (old > MAJORITY)).sum())}
    return [row for row in rows if row["n_items"]]


def _share(scores: Sequence[Score]) -> float:
    return float(np.mean([bool(score.passed) for score in scores]))


def _metric_row(metric: str, pairs: Sequence[Both], category: Callable[[Score], Any], settings: Settings) -> Row:
    old, new = [[category(row) for row in pair.old] for pair in pairs], [[category(row) for row in pair.new] for pair in pairs]
    change = compare_answers(old, new, settings)
    same = [row.text_sha256 == other.text_sha256 for pair in pairs for row in pair.new for other in pair.old if row.repeat == other.repeat]
    return {
        "metric": metric,
        "disagreement": change.disagreement,
        "noise_floor": change.floor,
        "excess": change.excess,
        "p_value": change.p_value,
        "same_text": float(np.mean(same)) if same else None,
        "n_items": len(pairs),
        "n_patients": len({pair.item.patient_id for pair in pairs}),
        "n_repeated": change.repeated,
    }


def flip_rows(pairs: Sequence[Both]) -> list[Row]:
    """Find the items whose majority verdict changed.

    Parameters
    ----------
    pairs : sequence of Both
        Items with the answers of both sides.

    Returns
    -------
    list of dict
        Cells of `flips.csv`. The p value is Fisher's exact one on the answers of the item; it is corrected after Holm over all items
        that were compared, because those that flipped were picked for it.
    """
    rows: list[Row] = []
    for pair in usable(pairs, passed_of):
        passes, earlier = (sum(bool(row.passed) for row in side) for side in (pair.new, pair.old))
        table = [[passes, len(pair.new) - passes], [earlier, len(pair.old) - earlier]]
        now, then = passes > MAJORITY * len(pair.new), earlier > MAJORITY * len(pair.old)
        rows.append(
            {
                "item_id": pair.item.item_id,
                "case_id": pair.item.case_id,
                "family": str(pair.item.family),
                "level": str(pair.item.level),
                "change": "" if now == then else "gained" if now else "lost",
                "earlier_passes": earlier,
                "earlier_samples": len(pair.old),
                "passes": passes,
                "samples": len(pair.new),
                "p_value": float(stats.fisher_exact(table).pvalue),
            }
        )
    corrected = holm([row["p_value"] for row in rows])
    return [row | {"p_holm": p_holm} for row, p_holm in zip(rows, corrected, strict=True) if row["change"]]


def is_change(rows: Sequence[Row], settings: Settings) -> bool:
    """Whether the tests of one model on one benchmark show a change: shuffled passes, shuffled leaders, pass@1; Holm over the three."""
    found = [row[name] for row in rows for name in ("p_value", "p_difference") if row.get(name) is not None]
    return any(p_value < 1 - settings.confidence for p_value in holm(found))


def revision_tables(study: Study) -> tuple[list[Row], list[Row]]:
    """Rows of `revisions.csv` and of `flips.csv`, for every model whose ledger holds answers of the revision before."""
    revisions: list[Row] = []
    flips: list[Row] = []
    for benchmark in study.benchmarks.values():
        for model, old in benchmark.earlier.items():
            if not old:
                continue
            head: Row = {"benchmark": benchmark.name, "model": model}
            named = {"earlier_revision": old[0].revision, "revision": study.models[model].revision}
            pairs = both_sides(benchmark.items, old, benchmark.scores[model])
            revisions += [head | named | row for row in metric_rows(pairs, study.vocabulary, study.settings)]
            flips += [head | row for row in flip_rows(pairs)]
    return revisions, flips
