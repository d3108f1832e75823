"""What was spent, according to the book of money: by model and revision, and by run."""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from pathlib import Path

from neuralmedbench.config.model import ModelConfig
from neuralmedbench.config.places import without_places
from neuralmedbench.runtime.shared_log import Record, read_log

NANO = 10**9
"""Money is counted in whole billionths of a dollar: sums that do not depend on their order, and caps that are met to the cent."""


def account_of(name: str, model: ModelConfig) -> str:
    """Name under which a model's money is booked: another id or revision is another account."""
    return f"{name} {without_places(model.id)} {model.revision}"


class SpendTotals:
    """What the book says: sums by account and by run. A reservation counts in full until it is settled."""

    def __init__(self) -> None:
        self.by_account: Counter[str] = Counter()
        self.by_run: Counter[str] = Counter()
        self._open: dict[str, tuple[str, str, int]] = {}

    def add(self, record: Record) -> None:
        """Take one line of the book in; what is not a whole line of this kind is passed over."""
        with suppress(KeyError, TypeError, ValueError, OverflowError):
            key, amount = str(record["id"]), round(float(record["usd"]) * NANO)
            if amount < 0:  # versions before booked negative tokens: what was set aside for that call stays booked
                return
            if "account" in record:
                self._open[key] = (str(record["account"]), str(record["run"]), amount)
                self._add(*self._open[key])
            else:
                account, run, reserved = self._open.pop(key)
                self._add(account, run, amount - reserved)

    def _add(self, account: str, run: str, amount: int) -> None:
        self.by_account[account] += amount
        self.by_run[run] += amount


def read_spend_log(log: Path) -> SpendTotals:
    """Add up what a book says, for a person who looks on."""
    spending = SpendTotals()
    for record in read_log(log):
        spending.add(record)
    return spending
