"""Snakemake's records of what it made: read, and repaired after a power cut, when a torn one would silently switch its checks off."""

from __future__ import annotations

import json
import os
from base64 import urlsafe_b64decode
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

METADATA = Path(".snakemake/metadata")


@dataclass(frozen=True, kw_only=True)
class OutputRecord:
    """How one file was made.

    Attributes
    ----------
    path : str
        The file, relative to the repository root.
    rule : str
        The rule that made it.
    shellcmd : str
        The command, as it was run.
    inputs : tuple of str
        What it was made from.
    params : tuple of str
        The rule's params, the hash of the code among them, as Snakemake spells them.
    checksums : dict of str to str
        SHA-256 digests of the inputs when it was made; a folder has none.
    ended : float
        When the command ended, seconds since 1970.
    """

    path: str
    rule: str
    shellcmd: str
    inputs: tuple[str, ...]
    params: tuple[str, ...]
    checksums: dict[str, str]
    ended: float


def read_metadata(folder: Path = METADATA) -> Iterator[OutputRecord]:
    """Read the records of all files, sorted by path; none when there is no folder.

    One JSON file an output, named by the base64 of its path (a long name is cut into folders that begin with `@`). A torn record
    (Snakemake was killed while it wrote it) is passed over: Snakemake makes such a file again.
    """
    files = {path_of(file.relative_to(folder)): file for file in folder.rglob("*") if file.is_file()} if folder.is_dir() else {}
    for path, file in sorted(files.items()):
        try:
            value = json.loads(file.read_text(encoding="utf-8"))
        except ValueError:
            continue
        yield OutputRecord(
            path=path,
            rule=value.get("rule") or "",
            shellcmd=value.get("shellcmd") or "",
            inputs=tuple(value.get("input") or ()),
            params=tuple(value.get("params") or ()),
            checksums={name: digest.removeprefix("sha256:") for name, digest in (value.get("input_checksums") or {}).items()},
            ended=value.get("endtime") or 0.0,
        )


def path_of(record: Path) -> str:
    """Give the path that a record speaks of, from the record's place in Snakemake's folder."""
    return urlsafe_b64decode("".join(part.removeprefix("@") for part in record.parts)).decode()


INCOMPLETE = Path(".snakemake/incomplete")
LOCKS = Path(".snakemake/locks")
MARK = '{"external_jobid": null}'
"""What Snakemake writes for an output whose job has begun."""


def repair_metadata(root: Path = Path()) -> list[str]:
    """Mark the outputs whose record cannot be read as incomplete, so that Snakemake makes them again.

    Snakemake writes its records in place, not whole or not at all. A torn one it passes over with a warning: the output then counts
    as up to date for ever, whatever happens to its settings and code. (A killed Snakemake leaves such an output marked as incomplete
    by itself; only a power cut can keep the removal of the mark and lose the record.) Nothing is asked again: answers stand in the
    ledger.

    Parameters
    ----------
    root : Path
        The repository root.

    Returns
    -------
    list of str
        The outputs that will be made again, sorted. Empty while another Snakemake works here: a record that it is writing looks torn.
    """
    if any((root / LOCKS).glob("*")):
        return []
    metadata, incomplete = root / METADATA, root / INCOMPLETE
    torn = _unreadable(metadata)
    for place in {*_unreadable(incomplete), *torn}:
        mark = incomplete / place
        mark.parent.mkdir(parents=True, exist_ok=True)
        mark.write_text(MARK, encoding="utf-8")
    for place in torn:
        (metadata / place).unlink(missing_ok=True)
    return sorted(torn.values())


def _unreadable(folder: Path) -> dict[Path, str]:
    """Places (relative to the folder) of records that are no JSON object, with the paths of which they speak."""
    found: dict[Path, str] = {}
    for parent, _, names in os.walk(folder):  # a run of 10,000 cases has 100,000 records
        for name in names:
            if not _is_record(os.path.join(parent, name)):
                with suppress(ValueError):  # a stray file, whose name is no record's
                    place = Path(parent, name).relative_to(folder)
                    found[place] = path_of(place)
    return found


def _is_record(file: str) -> bool:
    with open(file, "rb") as record:
        try:
            return isinstance(json.load(record), dict)
        except ValueError:
            return False
