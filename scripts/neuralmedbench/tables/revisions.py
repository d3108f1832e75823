"""Changes between two revisions of a model: `revisions.csv` and `flips.csv`, and the sentences about them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy import stats

from neuralmedbench.estimates.contrasts import paired_difference
from neuralmedbench.estimates.exact import holm
from neuralmedbench.estimates.intervals import ByPatient, IntervalSettings, patients_rate
from neuralmedbench.estimates.repeats import compare_answers, share_of_same_answers
from neuralmedbench.records.items import DIAGNOSES, Item, Runner
from neuralmedbench.records.scores import ParseStatus, Score
from neuralmedbench.records.vocabulary import Vocabulary, normal_form
from neuralmedbench.records.words import counted, p_equals, percent, points, points_span
from neuralmedbench.tables.declare import MODEL, Suppression, Table
from neuralmedbench.tables.outcomes import headline
from neuralmedbench.tables.rows import Cells, ModelRow, Tables
from neuralmedbench.tables.stored_runs import MAJORITY
from neuralmedbench.tables.study import Study
from neuralmedbench.tables.words import Takeaway, exploratory, largest

PASSED, LEADER = "passed", "leader"


class ItemAnswers(NamedTuple):
    """One item and its answers under the two revisions, or at the two times, that are compared."""

    item: Item
    old: list[Score]
    new: list[Score]


def passed_of(score: Score) -> str | None:
    """Return the category of an answer by its pass; None when it is missing or was not graded."""
    return None if score.missing or score.passed is None else str(score.passed)


def leader_of(score: Score, vocabulary: Vocabulary) -> str | None:
    """Return the category of an answer: its leading diagnosis, or in brackets why it has none; None when it is missing."""
    if score.missing:
        return None
    if score.differential:
        found = vocabulary.find(score.differential[0])
        return found.key if found else normal_form(score.differential[0])
    if score.state != "ok":
        return f"({score.state})"
    return "(unread)" if score.parse_status == ParseStatus.FAILED else "(none)"


def both_sides(items: Sequence[Item], old: list[Score], new: list[Score]) -> list[ItemAnswers]:
    """Pair the answers of two revisions by item: arm full, strategy direct, items that both answered, sorted by id."""
    sides: list[dict[str, list[Score]]] = []
    for scores in (old, new):
        rows: dict[str, list[Score]] = defaultdict(list)
        for row in headline(scores):
            rows[row.item_id].append(row)
        sides.append(rows)
    known = (item for item in items if item.item_id in sides[0] and item.item_id in sides[1])
    return [ItemAnswers(item, sides[0][item.item_id], sides[1][item.item_id]) for item in sorted(known, key=lambda item: item.item_id)]


def usable(pairs: Sequence[ItemAnswers], category: Callable[[Score], str | None]) -> list[ItemAnswers]:
    """Keep the items without a missing new answer, as every contrast does, and all old answers that are not missing."""
    kept = [ItemAnswers(pair.item, [row for row in pair.old if category(row) is not None], pair.new) for pair in pairs]
    return [pair for pair in kept if pair.old and all(category(row) is not None for row in pair.new)]


def metric_rows(pairs: Sequence[ItemAnswers], vocabulary: Vocabulary, settings: IntervalSettings) -> list[Cells]:
    """Compare old and new answers by pass and by leader.

    Cells of `revisions.csv` for `passed`, with the paired difference of pass@1 (new minus old, patients alike), and for
    `leader`, over the items with a leading diagnosis in any answer. A metric without an item has no row.
    """

    def leader(score: Score) -> str | None:
        return leader_of(score, vocabulary)

    # each metric is over the items that it can compare
    judged, named = usable(pairs, passed_of), usable(pairs, leader)
    named = [pair for pair in named if any(row.differential for row in (*pair.old, *pair.new))]
    rows = [_metric_row(PASSED, judged, passed_of, settings), _metric_row(LEADER, named, leader, settings)]
    if judged:
        old, new = np.array([_share(pair.old) for pair in judged]), np.array([_share(pair.new) for pair in judged])
        by = ByPatient([pair.item.patient_id for pair in judged], settings)
        difference = paired_difference(new, old, by)
        rows[0] |= {"earlier_value": patients_rate(old, by).value, "value": patients_rate(new, by).value, "difference": difference.value}
        rows[0] |= {"low": difference.low, "high": difference.high, "p_difference": difference.p_value}
        rows[0] |= {"gained": int(((new > MAJORITY) & (old <= MAJORITY)).sum()), "lost": int(((new <= MAJORITY) & (old > MAJORITY)).sum())}
    return [row for row in rows if row["n_items"]]


def _share(scores: Sequence[Score]) -> float:
    return float(np.mean([bool(score.passed) for score in scores]))


def _metric_row(metric: str, pairs: Sequence[ItemAnswers], category: Callable[[Score], Any], settings: IntervalSettings) -> Cells:
    old, new = [[category(row) for row in pair.old] for pair in pairs], [[category(row) for row in pair.new] for pair in pairs]
    change = compare_answers(old, new, settings)
    return {
        "metric": metric,
        "disagreement": change.disagreement,
        "noise_floor": change.floor,
        "excess": change.excess,
        "p_value": change.p_value,
        "same_text": share_of_same_answers((_texts(pair.old), _texts(pair.new)) for pair in pairs),
        "n_items": len(pairs),
        "n_patients": len({pair.item.patient_id for pair in pairs}),
        "n_repeated": change.repeated,
    }


def _texts(scores: Sequence[Score]) -> dict[int, str]:
    return {row.repeat: row.text_sha256 for row in scores}


def flip_rows(pairs: Sequence[ItemAnswers]) -> list[Cells]:
    """Find the items whose majority verdict changed.

    Cells of `flips.csv`. The p value is of Fisher's exact test on the answers of the item; Holm's correction is over all compared
    items, because the flipped ones are selected by the result.
    """
    rows: list[Cells] = []
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
    # Holm over all compared items, then keep the flipped ones
    corrected = holm([row["p_value"] for row in rows])
    return [row | {"p_corrected": p_corrected} for row, p_corrected in zip(rows, corrected, strict=True) if row["change"]]


def is_change(rows: Sequence[Cells], settings: IntervalSettings) -> bool:
    """Return True if the tests of one model on one benchmark show a change: shuffled passes, shuffled leaders, pass@1; Holm over the three."""
    return any(p_value < 1 - settings.confidence for p_value in holm([p_value for row in rows for p_value in change_tests(row)]))


def change_tests(row: Cells) -> list[float]:
    """Return the p values of one metric: shuffled answers, and the difference of pass@1 (1 if its interval holds 0)."""
    found = [] if row.get("p_value") is None else [row["p_value"]]
    if row.get("p_difference") is not None:
        low, high = row.get("low"), row.get("high")
        found.append(1.0 if low is not None and high is not None and low <= 0 <= high else row["p_difference"])
    return found


@dataclass(frozen=True, kw_only=True)
class RevisionRow(ModelRow):
    """Two revisions of one model, by pass or by leading diagnosis."""

    metric: str | None = None
    earlier_revision: str | None = None
    revision: str | None = None
    earlier_value: float | None = None
    value: float | None = None
    difference: float | None = None
    low: float | None = None
    high: float | None = None
    p_difference: float | None = None
    disagreement: float | None = None
    noise_floor: float | None = None
    excess: float | None = None
    p_value: float | None = None
    same_text: float | None = None
    n_items: int | None = None
    n_patients: int | None = None
    n_repeated: int | None = None
    gained: int | None = None
    lost: int | None = None


@dataclass(frozen=True, kw_only=True)
class FlipRow(ModelRow):
    """One item whose majority verdict changed between two revisions."""

    item_id: str
    case_id: str
    family: str | None = None
    level: str | None = None
    change: str | None = None
    earlier_passes: int | None = None
    earlier_samples: int | None = None
    passes: int | None = None
    samples: int | None = None
    p_value: float | None = None
    p_corrected: float | None = None


def revision_tables(study: Study) -> tuple[list[RevisionRow], list[FlipRow]]:
    """Rows of `revisions.csv` and `flips.csv`, for every model whose ledger holds answers of the previous revision."""
    revisions: list[RevisionRow] = []
    flips: list[FlipRow] = []
    for benchmark in study.benchmarks.values():
        for model, old in benchmark.earlier.items():
            if not old:
                continue
            head: Cells = {"benchmark": benchmark.name, "model": model}
            named: Cells = {"earlier_revision": old[0].revision, "revision": study.models[model].revision}
            pairs = both_sides(benchmark.items, old, benchmark.scores[model])
            revisions += [RevisionRow(**head, **named, **row) for row in metric_rows(pairs, study.vocabulary, study.settings)]
            flips += [FlipRow(**head, **row) for row in flip_rows(pairs)]
    return revisions, flips


WHAT = {LEADER: "Another answer stands first", PASSED: "The verdict (pass or not) is another one"}
DIAGNOSIS = "Another diagnosis stands first"
"""What `LEADER` compares where every item asks for a diagnosis."""


def change_notes(study: Study, revisions: list[Cells]) -> Cells:
    """Return the sentences of the section "What changed": one entry per benchmark and model; empty without rows of `revisions.csv`."""
    groups = _groups(revisions)
    changes = []
    for (benchmark, model), rows in groups.items():
        verdict, numbers = change_words(rows, study.settings, asks_diagnoses(study.benchmarks[benchmark].items))
        changes.append({"benchmark": benchmark, "model": model, "verdict": f"{_head(study, model, rows)}: {verdict}", "numbers": numbers})
    return {"changes": changes} if changes else {}


def _change_sentence(study: Study, model: str, groups: Mapping[tuple[str, str], list[Cells]]) -> str:
    """Say what is otherwise in the new revision of a model."""
    own = [row for (_, name), rows in groups.items() if name == model for row in rows]
    title = study.models[model].title
    if all(row["same_text"] == 1 for row in own):
        return f"The new revision of {title} gives the answers of the one before, word for word."
    rates = [row for row in own if row["metric"] == PASSED]
    items, gained, lost = (sum(row[name] or 0 for row in rates) for name in ("n_items", "gained", "lost"))
    moved = f"In the new revision of {title} {gained + lost} of {counted(items, 'verdict')} changed ({gained} to passed, {lost} to failed)."
    return f"{moved} {exploratory(study, 'New minus old pass@1', rates)}".rstrip()


def asks_diagnoses(items: Iterable[Item]) -> bool:
    """Return True if every item asks for a diagnosis, so that the leader of an answer is one."""
    return all(item.family in DIAGNOSES and item.runner is not Runner.CHOICE for item in items)


def change_words(rows: Sequence[Cells], settings: IntervalSettings, diagnoses: bool = True) -> tuple[str, str]:
    """Describe the rows of one model on one benchmark in words.

    Parameters
    ----------
    rows : sequence of dict
        Its rows of `revisions.csv`.
    settings : IntervalSettings
        Confidence level of the tests.
    diagnoses : bool
        True if every item asks for a diagnosis.

    Returns
    -------
    verdict : str
        A few words, without a full stop.
    numbers : str
        Sentences: how much old and new answers differ, against the noise floor, then pass@1.
    """
    by_metric = {row["metric"]: row for row in rows}
    rates = [_pass_rate(by_metric[PASSED])] if PASSED in by_metric else []
    # no test is needed when nothing changed
    if all(row["same_text"] == 1 for row in rows):
        return "every answer is the same as before, word for word", _sentences(rates)
    what = WHAT | ({LEADER: DIAGNOSIS} if diagnoses else {})
    noise = [_noise(words, by_metric[metric]) for metric, words in what.items() if metric in by_metric]
    if any(row["noise_floor"] is not None for row in rows):
        text = "changed, beyond the noise of repeats" if is_change(rows, settings) else "no sign of a change beyond the noise of repeats"
        return text, _sentences(noise + rates)
    once = "Every question was asked once, so the noise floor (how much repeats differ) is not known"
    return "pass@1 changed" if is_change(rows, settings) else "not known whether it changed", _sentences([*noise, once, *rates])


def _groups(revisions: list[Cells]) -> dict[tuple[str, str], list[Cells]]:
    groups: dict[tuple[str, str], list[Cells]] = defaultdict(list)
    for row in revisions:
        groups[row["benchmark"], row["model"]].append(row)
    return groups


def _head(study: Study, model: str, rows: list[Cells]) -> str:
    return f"{study.models[model].title}, revision {rows[0]['revision']} against {rows[0]['earlier_revision']}"


def _noise(words: str, row: Cells) -> str:
    text = f"{words} in {percent(row['disagreement'])} of pairs of an old and a new answer"
    if row["noise_floor"] is None:
        return text
    return f"{text}, in {percent(row['noise_floor'])} of pairs of repeats (the noise floor; {p_equals(row['p_value'])})"


def _pass_rate(row: Cells) -> str:
    text = f"pass@1 went from {percent(row['earlier_value'])} to {percent(row['value'])}"
    if row["low"] is not None:
        difference, span = points(row["difference"], minus="-"), points_span(row["low"], row["high"], minus="-")
        text += f" ({difference} points, {span}; {p_equals(row['p_difference'])})"
    return f"{text} over {row['n_items']} items; {row['gained']} gained a majority of passes, {row['lost']} lost it"


def _sentences(parts: Sequence[str]) -> str:
    return " ".join(f"{part}." for part in parts)


def revisions_takeaway(study: Study, tables: Tables) -> Takeaway:
    """Summarise what is otherwise in new revisions."""
    rows = tables["revisions"]
    if not rows:
        return Takeaway("No earlier revision of a model stands beside the present one.", "0 revisions")
    models = sorted({row["model"] for row in rows})
    groups = _groups(rows)
    parts = [_change_sentence(study, model, groups) for model in models]
    return Takeaway(" ".join(parts), f"{counted(len(models), 'model')} with an earlier revision; {largest(rows)}")


REVISIONS = Table(
    name="revisions",
    row=RevisionRow,
    rows=lambda results: results.once(revision_tables)[0],
    suppression=Suppression(f"{MODEL} metric earlier_revision revision"),
    takeaways={"changed": revisions_takeaway},
)

FLIPS = Table(
    name="flips",
    row=FlipRow,
    rows=lambda results: results.once(revision_tables)[1],
    suppression=Suppression("benchmark", each=True),
)
