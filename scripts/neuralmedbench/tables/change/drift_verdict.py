"""Whether a model that was asked again answers as before: the numbers of a check, and the lines that say them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from neuralmedbench.config.load import without_places
from neuralmedbench.errors import DataError
from neuralmedbench.estimates.intervals import Settings
from neuralmedbench.records.responses import Response
from neuralmedbench.records.vocabulary import Vocabulary
from neuralmedbench.tables.change.revisions import MAJORITY, Both, change_words, is_change, leader_of, metric_rows
from neuralmedbench.tables.rows import Cells


@dataclass(frozen=True, kw_only=True)
class Drift:
    """What a check found: whether the model changed, the lines that say so, and everything that was measured (a JSON value)."""

    changed: bool
    lines: list[str]
    found: Cells


def judge(
    pairs: Sequence[Both], rows: tuple[list[Response], list[Response]], vocabulary: Vocabulary, settings: Settings, *, lost: int = 0
) -> Drift:
    """Test the answers of now against those of before.

    Parameters
    ----------
    pairs : sequence of Both
        The items, at least one, with the scores of both sides.
    rows : tuple of list of Response
        The scored responses of before and of now.
    vocabulary : Vocabulary
        Two names of one diagnosis are one leader.
    settings : Settings
        Draws, seed and confidence of the tests.
    lost : int
        Items that were asked for, and left out because an answer did not come.

    Returns
    -------
    Drift
        The first line gives verdict and numbers; others name lost items, the items that are answered otherwise (only when the
        tests show a change) and another served model.

    Raises
    ------
    DataError
        If there is nothing by which the answers could be compared.
    """
    tests, asked = metric_rows(pairs, vocabulary, settings), rows[1][0]
    if not tests:
        message = f"model {asked.model}: nothing to compare: no answer names a diagnosis, before or now, and no item has a reference answer"
        raise DataError(message)
    compared = [_item_row(pair, vocabulary) for pair in pairs]
    changed = is_change(tests, settings)
    served = [without_places(sorted({row.served_model for row in side} - {""})) for side in rows]
    dates = [sorted({row.called_on for row in side} - {""}) for side in rows]
    who = f"{asked.model} on {asked.benchmark}, revision {asked.revision}, {len(pairs)} items asked again"
    lines = ["{}: {}. {}".format(who, *change_words(tests, settings)).rstrip()]
    if lost:
        lines.append(f"{lost} more items were left out: not all of their answers came.")
    if changed:
        lines.append(
            f"Answered otherwise: {', '.join(row['item_id'] for row in compared if row['otherwise']) or 'no item most of the time'}."
        )
    if served[0] != served[1]:
        lines.append(f"Served as {', '.join(served[0]) or 'not said'} before, as {', '.join(served[1]) or 'not said'} now.")
    found = {
        "benchmark": asked.benchmark,
        "model": asked.model,
        "revision": asked.revision,
        "changed": changed,
        "said": lines,
        "tests": tests,
        "items": compared,
        "items_lost": lost,
        "first_repeat": min(row.repeat for row in rows[1]),
        "served": {"before": served[0], "now": served[1]},
        "called_on": {"before": dates[0], "now": dates[1]},
        "resamples": settings.resamples,
        "seed": settings.seed,
        "confidence": settings.confidence,
    }
    return Drift(changed=changed, lines=lines, found=found)


def _item_row(pair: Both, vocabulary: Vocabulary) -> Cells:
    """Give what one item was answered before and now; `otherwise`: the commonest leader or the majority verdict is another one."""
    row: Cells = {"item_id": pair.item.item_id, "case_id": pair.item.case_id}
    for side, scores in (("before", pair.old), ("now", pair.new)):
        leaders = Counter(leader_of(score, vocabulary) or "" for score in scores)
        passes = sum(bool(score.passed) for score in scores)
        row[side] = {"leaders": dict(sorted(leaders.items())), "passes": passes, "answers": len(scores)}
    verdicts = {row[side]["passes"] > MAJORITY * row[side]["answers"] for side in ("before", "now")}
    same = _commonest(row["before"]["leaders"]) & _commonest(row["now"]["leaders"])
    return row | {"otherwise": not same or len(verdicts) > 1}


def _commonest(leaders: Mapping[str, int]) -> set[str]:
    return {name for name, count in leaders.items() if count == max(leaders.values())}
