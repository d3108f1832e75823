"""Money: no paid model runs without a cap, and no call starts that could exceed it, whatever other jobs do at the same time."""

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
from neuralmedbench.models.token_estimate import Estimator, answers_of_a_call, longest_answer
from neuralmedbench.runtime.shared_log import Record, SharedLog, read_log

NANO = 10**9
"""Money is counted in whole billionths of a dollar: sums that do not depend on their order, and caps that are met to the cent."""


def account_of(model: ModelConfig) -> str:
    """Name under which a model's money is booked: another id or revision is another account."""
    return f"{model.name} {withhold_outside_paths(model.id)} {model.revision}"


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


OF_MODEL, OF_RUN = "max_cost_usd", "max_run_cost_usd"
SYNC_AFTER_S = 5.0


def is_paid(model: ModelConfig) -> bool:
    """Whether a model's prices are known and not all zero."""
    return model.prices is not None and bool(model.prices.usd_per_million_prompt_tokens or model.prices.usd_per_million_completion_tokens)


def check_paid(model: ModelConfig) -> None:
    """Refuse a model that costs money without a cap that can be kept.

    Raises
    ------
    ConfigError
        If the model has a key or prices, and has no `max_cost_usd`, no prices to keep it by, or answers of any length.
    """
    if model.api_key_env is None and model.prices is None:
        return
    if model.max_cost_usd is None:
        message = (
            f"model {model.name}: it may cost money; set max_cost_usd, the cap of this model and revision, in its yaml: `max_cost_usd: 20`"
        )
        raise ConfigError(message)
    if model.prices is None:
        message = (
            f"model {model.name}: max_cost_usd cannot be kept without prices; add to its yaml, with the numbers of the provider's price list (0 and"
            " 0 when your server is free): `prices: {usd_per_million_prompt_tokens: 2.5, usd_per_million_completion_tokens: 10,"
            ' dated: "YYYY-MM-DD"}`'
        )
        raise ConfigError(message)
    if is_paid(model) and longest_answer(model) is None:
        message = (
            f"model {model.name}: max_cost_usd cannot be kept when answers may have any length; add to its yaml `max_tokens: 1024`, or for a model"
            " that takes its limit under another name `parameters: {max_completion_tokens: 4096}`"
        )
        raise ConfigError(message)


def cost_usd(model: ModelConfig, prompt_tokens: int | None, completion_tokens: int | None) -> float | None:
    """Price of an answer in USD; None when the prices or the tokens are not known."""
    if model.prices is None or prompt_tokens is None or completion_tokens is None:
        return None
    prompt = prompt_tokens * model.prices.usd_per_million_prompt_tokens
    return (prompt + completion_tokens * model.prices.usd_per_million_completion_tokens) / 1e6


@dataclass(frozen=True)
class Reservation:
    """Money that is set aside for one call.

    Attributes
    ----------
    id : str
        Its name in the book; empty when the model costs nothing.
    nano_usd : int
        How much, in billionths of a dollar.
    tokens : int
        Tokens that prompt and answers have at most.
    """

    id: str
    nano_usd: int
    tokens: int


class Budget:
    """The money of one model in one run; the book is shared by all jobs of all runs.

    Parameters
    ----------
    model : ModelConfig
        Its prices and its cap: of everything that was ever spent on this name, id and revision according to the book.
    log : Path or None
        The book; None: the caps hold within this process alone.
    run : str
        Name of the run (`runtime.parent_run.this_run`).
    run_cap : float or None
        Cap in USD of the run, over all models and graders.
    root : Path
        Folder to which the paths of pictures are relative.

    Attributes
    ----------
    why : str
        Which cap left no room for the last call that was refused: `max_cost_usd` or `max_run_cost_usd`.

    Notes
    -----
    A model that costs nothing opens no book. What a killed process had set aside stays spent: its calls may have been charged.
    """

    def __init__(
        self,
        model: ModelConfig,
        *,
        log: Path | None = None,
        run: str = "",
        run_cap: float | None = None,
        root: Path = Path(),
    ) -> None:
        self._model, self._run, self._account = model, run, account_of(model)
        caps = ((OF_MODEL, model.max_cost_usd), (OF_RUN, run_cap))
        self._caps = {why: round(cap * NANO) for why, cap in caps if cap is not None}
        self._estimator = Estimator(model, root)
        self._log, self._spending = SharedLog(log), SpendTotals()
        self._process, self._count = os.urandom(6).hex(), 0
        self._underway: set[str] = set()
        self._settled: asyncio.Event | None = None
        self._synced = time.monotonic()
        self.why = OF_MODEL

    def reserve(self, messages: Sequence[PromptMessage], samples: int = 1, schema: str = "") -> Reservation | None:
        """Set the highest price of one attempt of a call aside."""
        prompt = self._estimator.prompt_at_most(messages, schema)
        completion = (longest_answer(self._model) or 0) * samples * answers_of_a_call(self._model)
        usd = cost_usd(self._model, prompt, completion) or 0.0
        return self._reserve(math.ceil(usd * NANO), prompt + completion)

    async def reserve_in_turn(self, messages: Sequence[PromptMessage], samples: int = 1, schema: str = "") -> Reservation | None:
        """As `reserve`, but while calls of this process are under way wait for what they leave: they cost less than was set aside."""
        while (reservation := self.reserve(messages, samples, schema)) is None and self._underway:
            self._settled = self._settled or asyncio.Event()
            self._settled.clear()
            await self._settled.wait()
        return reservation

    def reserve_retry(self, reservation: Reservation) -> bool:
        """Set money aside for one more attempt, because the one before may have been charged; False when a cap leaves no room."""
        if not reservation.id:
            return True
        paid = self._reserve(reservation.nano_usd, 0)
        if paid is None:
            return False
        self._underway.discard(paid.id)  # it is never settled: that attempt stays spent
        return True

    def settle(self, reservation: Reservation, usd: float | None) -> None:
        """Book what a call really cost; one whose price is not known, or is none, costs what was set aside."""
        if not reservation.id:
            return
        self._underway.discard(reservation.id)
        if usd is not None and 0 <= usd < math.inf:
            with suppress(OSError):  # a full disk: it stays booked as it was set aside, which is more and never less
                self._write({"id": reservation.id, "usd": math.ceil(round(usd * NANO, 3)) / NANO})
        if self._settled:
            self._settled.set()

    def _reserve(self, amount: int, tokens: int) -> Reservation | None:
        if not amount:
            return Reservation("", 0, tokens)
        with self._log.transaction() as transaction:
            for record in transaction.new_records:
                self._spending.add(record)
            booked = {OF_MODEL: self._spending.by_account[self._account], OF_RUN: self._spending.by_run[self._run]}
            for why, cap in self._caps.items():
                if booked[why] + amount > cap:
                    self.why = why
                    return None
            self._count += 1
            key = f"{self._process}.{self._count}"
            record = {"account": self._account, "id": key, "run": self._run, "usd": amount / NANO}
            transaction.added.append(record)
        self._spending.add(record)
        self._underway.add(key)
        return Reservation(key, amount, tokens)

    def _write(self, record: Record) -> None:
        with self._log.transaction() as transaction:
            for other in transaction.new_records:
                self._spending.add(other)
            transaction.added.append(record)
        self._spending.add(record)
        if time.monotonic() - self._synced > SYNC_AFTER_S:
            self._log.sync()
            self._synced = time.monotonic()
