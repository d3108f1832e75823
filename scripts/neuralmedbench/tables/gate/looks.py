"""The account of looks: every verdict on an update of a model with the same patients is paid for, and kept in a record that shows changes."""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from neuralmedbench.errors import DataError
from neuralmedbench.files.digests import sha256_of_value
from neuralmedbench.runtime.append_log import SharedLog
from neuralmedbench.tables.gate.verdict import APPROVE, Alarm, MarginVerdict

LEFT = 1e-9


@dataclass(frozen=True, kw_only=True)
class UpdateLook:
    """One verdict on an update, as it is kept.

    Attributes
    ----------
    number : int
        From 1, over all looks with these patients.
    previous : str
        Digest of the look before; empty for the first.
    reference, revision : str
        The revision in use, and the new one.
    answered_on, looked_on : str
        Days on which the new revision was asked, and of the verdict.
    stated_on : str
        Day of the margins.
    planned : int
        Looks planned then.
    share, level : float
        Part of the whole error that was set aside for this look, and the error that it had, with that of an approval before it.
    data : str
        Digest of everything that decides the verdict; a look at the same is the same look.
    """

    number: int
    previous: str
    benchmark: str
    model: str
    reference: str
    revision: str
    answered_on: str
    looked_on: str
    stated_on: str
    planned: int
    share: float
    level: float
    data: str
    outcome: str
    margins: tuple[MarginVerdict, ...]
    alarms: tuple[Alarm, ...] = ()
    reasons: tuple[str, ...] = ()

    @property
    def alarmed(self) -> bool:
        """True if one of its alarms was raised."""
        return any(alarm.raised for alarm in self.alarms)

    @property
    def digest(self) -> str:
        """Digest of the look as it is kept, which the next one and the page repeat."""
        return sha256_of_value(asdict(self))

    @classmethod
    def of(cls, record: dict[str, Any]) -> UpdateLook:
        """Read a look from its record."""
        cells: dict[str, Any] = dict(record)
        cells["margins"] = tuple(MarginVerdict(**row) for row in record["margins"])
        cells["alarms"] = tuple(Alarm(**(row | {"cases": tuple(row["cases"])})) for row in record["alarms"])
        cells["reasons"] = tuple(record["reasons"])
        return cls(**cells)


def next_level(shares: Sequence[float], last: float, *, approved: bool, planned: int, alpha: float) -> tuple[float, float]:
    """Return the part of the error that the next look gets, and its level.

    Parameters
    ----------
    shares : sequence of float
        Parts of the looks so far; they never sum to more than 1, however often the plan is changed.
    last : float
        Level of the last look; 0 without one.
    approved : bool
        Whether the last look approved: then its level was not used up and goes to the next one.
    planned : int
        Looks planned now.
    alpha : float
        Error over all looks.

    Returns
    -------
    share, level : float
        0 and 0 when no error is left: no further update can be approved with these patients.

    References
    ----------
    Tian and Ramdas, Statistical Methods in Medical Research 30 (2021) 976: online fallback. The chance that any look approves an update that
    is worse by a margin is at most `alpha`, whatever the looks have to do with each other.

    Examples
    --------
    >>> next_level([], 0, approved=False, planned=4, alpha=0.0625)
    (0.25, 0.015625)
    >>> next_level([0.25], 0.015625, approved=True, planned=4, alpha=0.0625)
    (0.25, 0.03125)
    """
    left = 1 - sum(shares)
    share = min(1 / planned, left) if left > LEFT else 0.0
    return share, share * alpha + (last if approved else 0.0)


def level_after(looks: Sequence[UpdateLook], planned: int, alpha: float) -> tuple[float, float]:
    """Return share and level of the look after these, as `next_level` does."""
    last = looks[-1] if looks else None
    approved = bool(last and last.outcome == APPROVE)
    return next_level([look.share for look in looks], last.level if last else 0.0, approved=approved, planned=planned, alpha=alpha)


@dataclass
class LookRecord:
    """The record of looks at updates of one model with the patients of one benchmark, while no other process writes it.

    Attributes
    ----------
    looks : list of UpdateLook
        All looks so far.
    """

    looks: list[UpdateLook]

    def same(self, data: str) -> UpdateLook | None:
        """Return the look at the same data, which costs nothing again; None if there is none."""
        return next((look for look in self.looks if look.data == data), None)

    def add(self, **cells: Any) -> UpdateLook:
        """Add a look; it is written when the record is left without an error."""
        today = datetime.datetime.now(datetime.UTC).date().isoformat()
        look = UpdateLook(number=len(self.looks) + 1, previous=self.looks[-1].digest if self.looks else "", looked_on=today, **cells)
        self.looks.append(look)
        return look


@contextmanager
def look_record(path: Path, pages: Path) -> Iterator[LookRecord]:
    """Open the record of looks.

    Parameters
    ----------
    path : Path
        The file, JSON lines.
    pages : Path
        Folder of the pages of earlier looks, each named by its number: a record that is shorter than they are was cut.

    Raises
    ------
    DataError
        If the record was changed or cut after it was written.
    """
    log = SharedLog(path)
    with log.transaction() as transaction:
        looks = [UpdateLook.of(record) for record in transaction.new_records]
        for number, look in enumerate(looks, start=1):
            before = looks[number - 2].digest if number > 1 else ""
            if (look.number, look.previous) != (number, before):
                message = f"{path.as_posix()}: look {number} is not as it was written, or one before it is missing; restore the file, looks are not begun anew"
                raise DataError(message)
        numbers = [int(page.stem) for page in pages.glob("*.json")]
        if max(numbers, default=0) > len(looks):
            message = f"{path.as_posix()}: it has {len(looks)} looks, but there is a page of look {max(numbers)}; restore the file, looks are not begun anew"
            raise DataError(message)
        known = len(looks)
        yield LookRecord(looks)
        transaction.added += [asdict(look) for look in looks[known:]]
    log.sync()
    log.close()
