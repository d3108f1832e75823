"""Search the files of a de-identified case for the patient's identifiers, and accept those that a person signed for."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from neuralmedbench.deid.cleaning import Cleaning
from neuralmedbench.deid.file_names import input_part
from neuralmedbench.deid.searched_texts import searched_texts
from neuralmedbench.errors import IdentityLeaksError
from neuralmedbench.files import dicom
from neuralmedbench.files.digests import sha256_of
from neuralmedbench.files.identity import Identity, fold, identity_pattern
from neuralmedbench.records.review import AcceptedIdentityLeak, IdentityLeak

DIGESTS = re.compile(r"\b(?:[0-9a-f]{64}|[0-9a-f]{12})\b")
"""Digests and pseudonyms, which contain meaningless runs of digits."""
FILE_NAME, OUTSIDE = "its name", "bytes outside its elements"
SUFFIXES = (".nii.gz", ".json", ".bval", ".bvec", ".txt", ".tsv", ".dcm", ".png")
MOST_NAMED = 5


def require_clean(cleaning: Cleaning) -> tuple[IdentityLeak, ...]:
    """Search the files of a cleaned case, as the last check; as `require_no_leaks`. Counts accepted values as `leaks_accepted`."""
    accepted = require_no_leaks(cleaning.out, cleaning.identity, cleaning.accepted)
    if accepted:
        cleaning.checks["leaks_accepted"] = sum(leak.count for leak in accepted)
    return accepted


def require_no_leaks(folder: Path, identity: Identity, accepted: Sequence[AcceptedIdentityLeak] = ()) -> tuple[IdentityLeak, ...]:
    """Refuse a cleaned case in which identifying values are left, unless a person accepted each.

    `accepted`: those of this case. Returns the accepted leaks that were found. Raises IdentityLeaksError, which names file and place of the
    others and never a value.
    """
    leaks = accept_leaks(find_leaks(folder, identity), accepted)
    left = [leak for leak in leaks if not leak.reviewer]
    if not left:
        return leaks
    named = "; ".join(f"{leak.file}, {leak.place}" for leak in left[:MOST_NAMED])
    more = f"; and {len(left) - MOST_NAMED} more places" if len(left) > MOST_NAMED else ""
    stale = {(row.file, row.place) for row in accepted} & {(leak.file, leak.place) for leak in left}
    again = " (accepted before, but the file changed since)" if stale else ""
    message = (
        f"{sum(leak.count for leak in left)} identifying values are left after cleaning: {named}{more}{again}; the case is kept back: take them"
        " out of the source, or accept them if they identify nobody (docs/own-data.md, What is searched at the end)"
    )
    raise IdentityLeaksError(message, leaks)


def accept_leaks(leaks: Sequence[IdentityLeak], accepted: Sequence[AcceptedIdentityLeak]) -> tuple[IdentityLeak, ...]:
    """Mark the leaks that a person accepted in the file as it is now."""
    known = {(row.file, row.place, row.digest): row for row in accepted}
    rows = [(leak, known.get((leak.file, leak.place, leak.digest))) for leak in leaks]
    return tuple(
        leak if row is None else replace(leak, reason=row.reason, reviewer=row.reviewer, accepted_on=row.accepted_on) for leak, row in rows
    )


def find_leaks(folder: Path, identity: Identity) -> tuple[IdentityLeak, ...]:
    """Find identifying values in names and contents of the files of a case.

    `identity`: the patient's values, matched by `files.identity.identity_pattern` regardless of accents. The project's own literal words are
    not searched (see `searched_texts`). Returns one entry for each place, by file.
    """
    pattern = identity_pattern(identity)
    if pattern is None:
        return ()
    paths = sorted(path for path in folder.rglob("*") if path.is_file())
    leaks = []
    for number, path in enumerate(paths, start=1):
        name = path.relative_to(folder).as_posix()
        beside = sum(1 for other in paths if other.parent == path.parent and other.suffix == ".dcm") if path.suffix == ".dcm" else 0
        named = _hits(pattern, input_part(name, beside).replace("_", " "))
        places = Counter({FILE_NAME: len(named)}) + _places_in(path, name, pattern)
        if places:
            suffix = next((suffix for suffix in SUFFIXES if name.endswith(suffix)), "")
            shown = f"file {number} of {len(paths)} ({suffix or 'no known suffix'})" if input_part(name, beside) == name or named else name
            digest = sha256_of(path)
            leaks += [IdentityLeak(file=shown, place=place, digest=digest, count=count) for place, count in places.items()]
    return tuple(leaks)


def count_leaks(folder: Path, identity: Identity) -> int:
    """Count identifying values in the files of a folder; as `find_leaks`."""
    return sum(leak.count for leak in find_leaks(folder, identity))


def _places_in(path: Path, name: str, pattern: re.Pattern[str]) -> Counter[str]:
    """Count the hits in a file by place."""
    places: Counter[str] = Counter()
    written = path.read_bytes() if path.suffix == ".dcm" else b""
    whole = len(_hits(pattern, dicom.header_bytes(written).decode("latin-1").replace("\0", " "))) if written else 0
    if written and not whole:  # decoding every element of every file would take longer than cleaning it
        return places
    for text in searched_texts(path, name):
        hits = _hits(pattern, text.text)
        whole -= len(hits)
        for start in hits if not text.literal else ():
            places[text.place or f"line {text.text.count(chr(10), 0, start) + 1}"] += 1
    if whole > 0:
        places[OUTSIDE] += whole
    return places


def _hits(pattern: re.Pattern[str], text: str) -> list[int]:
    """Return where identifying values start, in a text without digests."""
    return [match.start() for match in pattern.finditer(fold(DIGESTS.sub(lambda digest: " " * len(digest[0]), text)))]
