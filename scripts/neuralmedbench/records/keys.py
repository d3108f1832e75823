"""The key that links a response to its grades, similarity, score and ratings."""

from __future__ import annotations

import hashlib

from neuralmedbench.records.responses import Response
from neuralmedbench.records.scores import Grade, Rating, Score, SimilarityRow

Key = tuple[str, str, str, str, str, int]


def response_key(row: Response | Grade | Rating | Score | SimilarityRow) -> Key:
    """Return (item_id, arm, strategy, model, revision, repeat)."""
    return row.item_id, row.arm, row.strategy, row.model, row.revision, row.repeat


def text_digest(text: str) -> str:
    """Return the hex SHA-256 of an answer's text: a grade, similarity or rating with another digest is stale."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
