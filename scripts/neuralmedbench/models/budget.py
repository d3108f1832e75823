"""Spending caps: no paid model runs without a cap, and no call starts that could exceed one, also with jobs in parallel."""

from __future__ import annotations

import asyncio
import math
import os
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from neuralmedbench.config.load import withhold_outside_paths
from neuralmedbench.config.model import ModelConfig
from neuralmedbench.errors import ConfigError
from neuralmedbench.models.conversation import PromptMessage
from neuralmedbench.models.prices import answers_of_a_call, asked_tier, highest_usd, longest_answer, price_list
from neuralmedbench.models.token_estimates import Estimator
from neuralmedbench.runtime.append_log import Record, SharedLog, read_log

NANO = 10**9
"""Billionths of a dollar in a dollar. Money is summed as whole billionths, so that no sum depends on its order."""


def account_of(model: ModelConfig) -> str:
    """Name the account of a model in the spending log: another id or revision is another account."""
    return f"{model.name} {withhold_outside_paths(model.id)} {model.revision}"


class SpendTotals:
    """Sums of a spending log by account and by run, in billionths of a dollar; a reservation counts in full until it is settled."""

    def __init__(self) -> None:
        self.by_account: Counter[str] = Counter()
        self.by_run: Counter[str] = Counter()
        self._open: dict[str, tuple[str, str, int]] = {}

    def add(self, record: Record) -> None:
        """Add one record of the log; records that are torn or of another kind are skipped."""
        with suppress(KeyError, TypeError, ValueError, OverflowError):
            key, amount = str(record["id"]), round(float(record["usd"]) * NANO)
            if amount < 0:  # earlier versions logged negative token counts: the reservation of that call stays
                return
            if "account" in record:  # a reservation; otherwise the settlement of one
                self._open[key] = (str(record["account"]), str(record["run"]), amount)
                self._add(*self._open[key])
            else:
                account, run, reserved = self._open.pop(key)
                self._add(account, run, amount - reserved)

    def _add(self, account: str, run: str, amount: int) -> None:
        self.by_account[account] += amount
        self.by_run[run] += amount


def read_spend_log(log: Path) -> SpendTotals:
    """Sum a spending log without locking it, for reports."""
    totals = SpendTotals()
    for record in read_log(log):
        totals.add(record)
    return totals


OF_MODEL, OF_RUN = "max_cost_usd", "max_run_cost_usd"
SYNC_AFTER_S = 5.0
"""Seconds between two flushes of settlements; one lost to a power cut leaves its reservation, which is more and never less."""


def _is_paid(model: ModelConfig) -> bool:
    """Return True if a model's prices are known and not all zero."""
    return model.prices is not None and bool(model.prices.usd_per_million_prompt_tokens or model.prices.usd_per_million_completion_tokens)


def check_paid(model: ModelConfig) -> None:
    """Refuse a model that may cost money, unless it has a cap that can be enforced.

    Raises
    ------
    ConfigError
        If the model has a key or prices, but no `max_cost_usd`, no prices to compute it from, or no longest answer: all of them.
    """
    if model.api_key_env is None and model.prices is None:
        return
    mistakes = []
    if model.max_cost_usd is None:
        mistakes.append("it may cost money; set max_cost_usd, the cap of this model and revision, in its yaml: `max_cost_usd: 20`")
    if model.prices is None:
        mistakes.append(
            "max_cost_usd cannot be kept without prices; add to its yaml, with the numbers of the provider's price list (0 and 0 when your"
            " server is free): `prices: {usd_per_million_prompt_tokens: 2.5, usd_per_million_completion_tokens: 10,"
            ' dated: "YYYY-MM-DD"}`'
        )
    if (model.prices is None or _is_paid(model)) and longest_answer(model) is None:
        mistakes.append(
            "max_cost_usd cannot be kept when answers may have any length; add to its yaml `max_tokens: 1024`, or for a model that takes its"
            " limit under another name `parameters: {max_completion_tokens: 4096}`"
        )
    if model.prices is not None and price_list(model, tier := asked_tier(model)) is None:
        mistakes.append(
            f"its calls ask for the service tier `{tier}`, which has no prices; add to `prices` of its yaml `tiers: {{{tier}:"
            " {usd_per_million_prompt_tokens: ..., usd_per_million_completion_tokens: ...}}`"
        )
    if mistakes:
        raise ConfigError(*(f"model {model.name}: {mistake}" for mistake in mistakes))


@dataclass(frozen=True)
class Reservation:
    """Money reserved for one attempt of a call.

    Attributes
    ----------
    id : str
        Its key in the spending log; empty if the model costs nothing.
    nano_usd : int
        Amount in billionths of a dollar.
    tokens : int
        Upper bound of the tokens of prompt and answers.
    """

    id: str
    nano_usd: int
    tokens: int


class Budget:
    """The spending of one model in one run; all jobs of all runs share the spending log.

    Parameters
    ----------
    model : ModelConfig
        Its prices and its cap, which covers everything ever logged for this name, id and revision.
    log : Path or None
        The spending log; None: the caps hold within this process only.
    before : Path or None
        A log that counts as well and is not written; ignored if it is `log`.
    run : str
        Name of the run (`runtime.one_writer.this_run`).
    run_cap : float or None
        Cap of the run in USD, over all models and graders.
    root : Path
        Folder to which the paths of pictures are relative.

    Attributes
    ----------
    why : str
        The cap that refused the last call: `max_cost_usd` or `max_run_cost_usd`.

    Notes
    -----
    A model that costs nothing opens no log. Reservations of a killed process stay spent: its calls may have been charged.
    """

    def __init__(
        self,
        model: ModelConfig,
        *,
        log: Path | None = None,
        before: Path | None = None,
        run: str = "",
        run_cap: float | None = None,
        root: Path = Path(),
    ) -> None:
        self._model, self._run, self._account = model, run, account_of(model)
        caps = ((OF_MODEL, model.max_cost_usd), (OF_RUN, run_cap))
        self._caps = {why: round(cap * NANO) for why, cap in caps if cap is not None}
        self._estimator = Estimator(model, root)
        self._log, self._totals = SharedLog(log), SpendTotals()
        for record in read_log(before) if before and before != log else ():
            self._totals.add(record)
        self._process, self._count = os.urandom(6).hex(), 0
        self._in_flight: set[str] = set()
        self._settled: asyncio.Event | None = None
        self._synced = time.monotonic()
        self.why = OF_MODEL

    def reserve(self, messages: Sequence[PromptMessage], samples: int = 1, schema: str = "") -> Reservation | None:
        """Reserve the highest price that one attempt of a call can have; None if a cap leaves no room.

        Raises OSError if the log cannot be written: then nothing may be asked.
        """
        prompt = self._estimator.prompt_at_most(messages, schema)
        completion = (longest_answer(self._model) or 0) * samples * answers_of_a_call(self._model)
        usd = highest_usd(self._model, prompt, completion) or 0.0
        return self._reserve(math.ceil(usd * NANO), prompt + completion)

    async def reserve_in_turn(self, messages: Sequence[PromptMessage], samples: int = 1, schema: str = "") -> Reservation | None:
        """Reserve as `reserve` does, but wait for calls in flight to settle: they usually cost less than was reserved for them."""
        while (reservation := self.reserve(messages, samples, schema)) is None and self._in_flight:
            self._settled = self._settled or asyncio.Event()
            self._settled.clear()
            await self._settled.wait()
        return reservation

    def reserve_retry(self, reservation: Reservation) -> bool:
        """Reserve money for another attempt, because the last one may have been charged; False if a cap leaves no room."""
        if not reservation.id:
            return True
        paid = self._reserve(reservation.nano_usd, 0)
        if paid is None:
            return False
        self._in_flight.discard(paid.id)  # never settled: the failed attempt stays spent
        return True

    def settle(self, reservation: Reservation, usd: float | None) -> None:
        """Log the real cost of a call; if it is unknown, negative or not finite, the reservation stands."""
        if not reservation.id:
            return
        self._in_flight.discard(reservation.id)
        if usd is not None and 0 <= usd < math.inf:
            with suppress(OSError):  # a full disk: the reservation stands, which is more and never less
                self._write({"id": reservation.id, "usd": math.ceil(round(usd * NANO, 3)) / NANO})
        if self._settled:
            self._settled.set()

    def spent_of_cap(self) -> tuple[float, float] | None:
        """Return what counts against the cap that leaves the least, and that cap, in USD; None without a cap or for a model that is free."""
        if not self._caps or not _is_paid(self._model):
            return None
        spent = self._spent()
        why = min(self._caps, key=lambda why: self._caps[why] - spent[why])
        return spent[why] / NANO, self._caps[why] / NANO

    def _spent(self) -> dict[str, int]:
        return {OF_MODEL: self._totals.by_account[self._account], OF_RUN: self._totals.by_run[self._run]}

    def _reserve(self, amount: int, tokens: int) -> Reservation | None:
        if not amount:
            return Reservation("", 0, tokens)
        # read what other jobs logged, compare with the caps and append, all under the lock of the log: no two jobs take the same money
        with self._log.transaction() as transaction:
            for record in transaction.new_records:
                self._totals.add(record)
            spent = self._spent()
            for why, cap in self._caps.items():
                if spent[why] + amount > cap:
                    self.why = why
                    return None
            self._count += 1
            key = f"{self._process}.{self._count}"
            record = {"account": self._account, "id": key, "run": self._run, "usd": amount / NANO}
            transaction.added.append(record)
        self._totals.add(record)
        self._in_flight.add(key)
        return Reservation(key, amount, tokens)

    def _write(self, record: Record) -> None:
        with self._log.transaction() as transaction:
            for other in transaction.new_records:
                self._totals.add(other)
            transaction.added.append(record)
        self._totals.add(record)
        if time.monotonic() - self._synced > SYNC_AFTER_S:
            self._log.sync()
            self._synced = time.monotonic()
