"""Self-consistency: the samples of an item vote, and the answer of the majority counts as its only one."""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from collections.abc import Iterable
from typing import NamedTuple

from neuralmedbench.records.items import Family, Runner, Strategy
from neuralmedbench.records.scores import Score
from neuralmedbench.records.vocabulary import Vocabulary, normal_form

Group = tuple[str, str, str, str]


class Election(NamedTuple):
    """The elected sample, how many samples said the same, and how many samples there are (those that name nothing too)."""

    row: Score
    votes: int
    samples: int


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
        Rows of other strategies as they are. Of each item's samples under `self_consistency` one row: the first sample that said what most
        of them said, under its own number, so that it is still found beside its response. Of equally many votes the digest of item and
        answer decides, which neither the order of the samples nor that of the alphabet can turn. An answer that names nothing has no vote;
        when none has one, the first sample stands for the item. Where the samples that are missing because of us could have turned the
        vote, the item is missing.

    Notes
    -----
    The rule is that of Wang et al., Self-Consistency Improves Chain of Thought Reasoning in Language Models (ICLR 2023): a majority over
    final answers, without weights. An item of choice votes by its option, a structured one by its class, a lesion by place and side (which
    its score is made of), a ranked differential by what leads it, a dialogue by what leads its last turn. Long open answers are hardly ever
    equal, so there the vote is close to a draw by lot.
    """
    kept: list[Score] = []
    groups: dict[Group, list[Score]] = defaultdict(list)
    for score in scores:
        if score.strategy == Strategy.SELF_CONSISTENCY:
            groups[score.item_id, score.arm, score.model, score.revision].append(score)
        else:
            kept.append(score)
    return kept + [elected(rows, vocabulary).row for rows in groups.values()]


def elected(rows: Iterable[Score], vocabulary: Vocabulary) -> Election:
    """Elect one of the samples of an item, by the rule of :func:`elect`.

    Parameters
    ----------
    rows : iterable of Score
        The samples of one model under one arm and strategy; at least one.
    vocabulary : Vocabulary
        By which two names of one diagnosis are one vote.

    Returns
    -------
    Election
        The elected sample; its row is a missing one where the missing samples could have turned the vote.
    """
    rows = sorted(rows, key=lambda row: row.repeat)
    missing = [row for row in rows if row.missing]
    there = [row for row in rows if not row.missing]
    votes = [(vote, row) for row in there if (vote := _vote(row, vocabulary))]
    counts = Counter(vote for vote, _ in votes)
    order = sorted(counts, key=lambda vote: (-counts[vote], hashlib.sha256(f"{rows[0].item_id}\n{vote}".encode()).hexdigest()))
    lead = counts[order[0]] - (counts[order[1]] if len(order) > 1 else 0) if order else 0
    if missing and len(missing) >= lead:
        return Election(missing[0], 0, len(there))
    if not order:
        return Election(there[0], 0, len(there))
    return Election(next(row for vote, row in votes if vote == order[0]), counts[order[0]], len(there))


def _vote(row: Score, vocabulary: Vocabulary) -> str:
    """Give the answer under one name; empty for an answer that names nothing."""
    if row.state != "ok" or not row.differential:
        return ""
    if row.family == Family.LESION_RECOGNITION:
        fields = row.fields or {}
        place, side = (normal_form(fields.get(name, "")) for name in ("location", "side"))
        return f"{vocabulary.places.get(place, place)} / {side}"
    first = row.differential[0]
    # options and classes are words of the data set: two of them may be names of one thing and still be two answers
    known = None if row.runner in (Runner.CHOICE, Runner.STRUCTURED) else vocabulary.find(first)
    return known.key if known else normal_form(first)
