"""Whether the answers that come in can be read, for a warning before the rest is asked; no result depends on it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from neuralmedbench.files.tables import read_records
from neuralmedbench.records.items import Item
from neuralmedbench.records.options import as_asked
from neuralmedbench.records.responses import Response
from neuralmedbench.scoring.why_unread import why_unread


def early_check(items: Path) -> Callable[[Response], str]:
    """Return a function that says why nothing can be read from an answer.

    Parameters
    ----------
    items : Path
        Table of the items that are asked.

    Returns
    -------
    callable
        Takes a response; returns a few words without any of the answer's own, empty if it is read (`why_unread.why_unread`).

    Raises
    ------
    DataError
        If the table is absent or has another schema.
    """
    by_id = {item.item_id: item for item in read_records(items, Item)}

    def reason(response: Response) -> str:
        # a warning must not end a run that is paid for: an answer to an unknown item is not checked
        return why_unread(response.text, as_asked(by_id[response.item_id], response.arm)) if response.item_id in by_id else ""

    return reason
