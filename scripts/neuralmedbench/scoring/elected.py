"""Which answers a score is made of: of the samples of a vote only the elected one, so that no grader is asked about the others."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from neuralmedbench.records.items import Gold, Item, Strategy
from neuralmedbench.records.keys import response_key
from neuralmedbench.records.responses import Response
from neuralmedbench.records.vocabulary import Vocabulary
from neuralmedbench.scoring.scores import score_responses


def counted(responses: Iterable[Response], items: Mapping[str, Item], gold: Mapping[str, Gold], vocabulary: Vocabulary) -> list[Response]:
    """Keep the answers that will be scored.

    Parameters
    ----------
    responses : iterable of Response
        Answers of one model.
    items, gold : mapping
        By item id.
    vocabulary : Vocabulary
        By which two names of one diagnosis are one vote.

    Returns
    -------
    list of Response
        In their order. Under `self_consistency` those that `voting.elect` elects: the vote goes by what was said, never by a grade, so it is
        known before anything is graded.
    """
    rows = list(responses)
    voting = [row for row in rows if row.strategy == Strategy.SELF_CONSISTENCY]
    elected = {response_key(score) for score in score_responses(voting, items, gold, [], vocabulary=vocabulary)}
    return [row for row in rows if row.strategy != Strategy.SELF_CONSISTENCY or response_key(row) in elected]
