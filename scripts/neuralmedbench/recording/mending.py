"""What Snakemake wrote down, mended after a power cut: a torn record would switch its checks off without a word."""

from __future__ import annotations

import json
import os
from contextlib import suppress
from pathlib import Path

from neuralmedbench.recording.metadata import METADATA, path_of

INCOMPLETE = Path(".snakemake/incomplete")
LOCKS = Path(".snakemake/locks")
MARK = '{"external_jobid": null}'
"""What Snakemake writes for an output whose job has begun."""


def mend_records(root: Path = Path()) -> list[str]:
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
