"""Self-consistency: the samples of an item vote, and the answer of the majority counts as its only one."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import replace

from neuralmedbench.records.items import Strategy
from neuralmedbench.records.scores import Score
from neuralmedbench.records.vocabulary import Vocabulary, normal_form

Group = tuple[str, str, str, str]


def elect(scores: Iterable[Score], vocabulary: Vocabulary) -> list[Score]:
    """Let the samples of the strategy `self_consistency` vote.

    Parameters
    ----------
    scores : iterable of Score
        One row a response.
    vocabulary : Vocabulary
        By which two names of one diagnosis are one vote.

    Returns
    -------
    list of Score
        Rows of other strategies as they are. Of each item's samples under `self_consistency` one row with `repeat` 0: the first that said
        what most of them said (of equally many the one that was said first). An answer that names nothing has no vote; when none has
        one, the first that is not missing stands for the item.

    Notes
    -----
    The rule is that of Wang et al., Self-Consistency Improves Chain of Thought Reasoning in Language Models (ICLR 2023): a majority over
    final answers, without weights.
    """
    kept: list[Score] = []
    groups: dict[Group, list[Score]] = defaultdict(list)
    for score in scores:
        if score.strategy == Strategy.SELF_CONSISTENCY:
            groups[score.item_id, score.arm, score.model, score.revision].append(score)
        else:
            kept.append(score)
    return kept + [replace(_elected(rows, vocabulary), repeat=0) for rows in groups.values()]


def _elected(rows: list[Score], vocabulary: Vocabulary) -> Score:
    rows = sorted(rows, key=lambda row: (row.missing, row.repeat))
    votes = [(_vote(row, vocabulary), row) for row in rows]
    counts = Counter(vote for vote, _ in votes if vote)  # keeps the order of first votes, and so does most_common among equals
    if not counts:
        return rows[0]
    winner = counts.most_common(1)[0][0]
    return next(row for vote, row in votes if vote == winner)


def _vote(row: Score, vocabulary: Vocabulary) -> str:
    """Give the answer under one name; empty for an answer that names nothing."""
    if row.missing or row.state != "ok" or not row.differential:
        return ""
    known = vocabulary.find(row.differential[0])
    return known.key if known else normal_form(row.differential[0])
