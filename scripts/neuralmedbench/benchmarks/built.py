"""What an adapter gives: items, gold and disclosures."""

from __future__ import annotations

from dataclasses import dataclass

from neuralmedbench.errors import DataError
from neuralmedbench.records.items import Disclosure, Exemplar, Gold, Item, ShownLesion


@dataclass(frozen=True)
class Built:
    """What an adapter gives.

    Attributes
    ----------
    items, gold : tuple
        What is asked, and what is right for those that have an answer.
    disclosures, lesions : tuple
        What an arm may show of it, and what pictures show of it.
    exemplars : tuple
        Examples that few-shot prompts may show.
    """

    items: tuple[Item, ...]
    gold: tuple[Gold, ...]
    disclosures: tuple[Disclosure, ...] = ()
    lesions: tuple[ShownLesion, ...] = ()
    exemplars: tuple[Exemplar, ...] = ()

    def checked(self, benchmark: str) -> Built:
        """Give itself; DataError when there is no item, an id stands twice or gold has no item."""
        ids = [item.item_id for item in self.items]
        if not ids:
            message = f"{benchmark}: no item: every case or picture was excluded or quarantined; the reasons stand in its case records"
            raise DataError(message)
        answered = {gold.item_id for gold in self.gold} | {shown.item_id for shown in self.disclosures}
        if len(set(ids)) != len(ids) or not answered <= set(ids):
            message = f"{benchmark}: item ids are not unique, or gold names an item that is not there"
            raise DataError(message)
        return self
