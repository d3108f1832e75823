"""Ledgers here against those that were recorded: a ledger may grow, and what was recorded stays in it word by word."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path

from neuralmedbench.errors import DataError
from neuralmedbench.files.dvc_lock import Recorded
from neuralmedbench.models.ledger import read_ledger
from neuralmedbench.recording.repository import LEDGERS

SHOWN = 3


def changed_answers(recorded: Mapping[str, Recorded], cached: Mapping[str, Path], root: Path = Path()) -> tuple[list[str], list[str]]:
    """Compare every ledger with its recorded one, and every answer with the digest in its line.

    Parameters
    ----------
    recorded : mapping of str to Recorded
        What `dvc.lock` records, by path.
    cached : mapping of str to Path
        Where the recorded content of a path lies in DVC's cache, if it is there.
    root : Path
        The repository root.

    Returns
    -------
    findings : list of str
        One line for each ledger in which a recorded line was changed or is gone, or an answer does not fit its digest.
    notes : list of str
        One line when recorded ledgers are not in the cache, so that they could not be compared line by line.
    """
    findings, by_digest = [], 0
    for path, before in sorted(recorded.items()):
        if not path.startswith(LEDGERS):
            continue
        here, copy = root / path, cached.get(path)
        if not here.is_file():
            findings.append(f"{path}: the recorded ledger is not here; `make pull` brings it")
        elif copy is not None and copy.is_file():
            findings += _compared(path, here, copy)
        else:
            by_digest += 1
            findings += _by_digest(path, here, before)
    for here in sorted((root / LEDGERS).rglob("*.jsonl")):
        path = here.relative_to(root).as_posix()
        if not any(finding.startswith(f"{path}: ") for finding in findings):
            findings += _misfits(path, here)
    notes = [f"{by_digest} recorded ledgers are not in DVC's cache: compared by the digest of all they held (`dvc fetch` brings them)"]
    return findings, notes if by_digest else []


def _compared(path: str, here: Path, copy: Path) -> list[str]:
    """Look for every recorded line among the lines here."""
    with here.open("rb") as now, copy.open("rb") as recorded:
        lines = [line.rstrip(b"\r\n") for line in now]
        there = set(lines)
        missing = [_named(line) for line in recorded if line.strip() and line.rstrip(b"\r\n") not in there]
    if not missing:
        return []
    places = {_named(line)[0]: number for number, line in enumerate(lines, start=1)}
    shown = [f"that to {item} ({f'line {places[key]} here' if key in places else 'gone'})" for key, item in missing[:SHOWN]]
    more = f" and {len(missing) - SHOWN} more" if len(missing) > SHOWN else ""
    number = f"{len(missing)} recorded answer{'s' if len(missing) > 1 else ''}"
    remedy = "delete changed lines and run `make pull`, which brings the recorded ones back"
    return [f"{path}: {number} changed or gone: {', '.join(shown)}{more}; {remedy}"]


def _by_digest(path: str, here: Path, before: Recorded) -> list[str]:
    """Compare the beginning of a ledger with the digest of all that was recorded: a ledger only grows."""
    with here.open("rb") as file:
        if hashlib.md5(file.read(before.size), usedforsecurity=False).hexdigest() == before.md5:
            return []
    fault = f"its first {before.size} bytes are not what dvc.lock records: a recorded answer was changed, or answers were united in another order"
    return [f"{path}: {fault}; `dvc fetch` brings the recorded ledger, then audit again"]


def _misfits(path: str, here: Path) -> list[str]:
    try:
        read_ledger(here)
    except DataError as error:
        return [f"{path}: {error}"]
    return []


def _named(line: bytes) -> tuple[str, str]:
    """Key and item of a line; its digest and no item when it is no answer."""
    try:
        value = json.loads(line)
        return str(value["key"]), str(value.get("item_id") or "an item without a name")
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return hashlib.sha256(line).hexdigest(), "an unreadable line"
