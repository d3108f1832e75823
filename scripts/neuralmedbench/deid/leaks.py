"""Search the files of a de-identified case for the patient's identifiers, and accept those that a person signed for.

Searched is what came from the input. A word is exempt where the project itself wrote it: as the whole value of an element, key or part of a
path for which it is listed here. The same word anywhere else, or with anything beside it, is searched.
"""

from __future__ import annotations

import gzip
import json
import re
import struct
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from neuralmedbench.deid.cleaning import Cleaning
from neuralmedbench.deid.file_names import RECORD, SCAN, input_part
from neuralmedbench.deid.headers import cleaner, rules
from neuralmedbench.deid.headers.diff import ACTIONS, PRIVATE_ELEMENT, UNKNOWN
from neuralmedbench.deid.headers.element_values import DUMMIES, REMOVED, standard_meaning
from neuralmedbench.deid.headers.rules import CREATORS, MANUFACTURERS
from neuralmedbench.deid.notes.patterns import PLACEHOLDERS
from neuralmedbench.deid.review.pieces import NO_PREVIEW, REVIEW, SERIES, TOOLS
from neuralmedbench.deid.values import NAMELESS_AGENT
from neuralmedbench.errors import IdentityLeaksError
from neuralmedbench.files import dicom
from neuralmedbench.files.digests import sha256_of
from neuralmedbench.files.identity import Identity, IdentityPattern, fold, identity_pattern
from neuralmedbench.records.columns import RECORD_COLUMNS
from neuralmedbench.records.review import AcceptedIdentityLeak, IdentityLeak

if TYPE_CHECKING:
    from pydicom.dataset import Dataset

DIGESTS = re.compile(r"\b(?=[0-9]*[a-f])(?:[0-9a-f]{64}|[0-9a-f]{12})\b")
"""Digests and pseudonyms, which contain meaningless runs of digits. A run without a letter is a number, such as a national one of twelve digits."""
FILE_NAME, OUTSIDE = "its name", "bytes outside its elements"
SUFFIXES = (".nii.gz", ".json", ".bval", ".bvec", ".txt", ".tsv", ".dcm", ".png")
MOST_NAMED = 5
DUMMY_TEXTS = frozenset({REMOVED.decode(), *(value.decode() for value in DUMMIES.values())})
LITERALS = {
    # declarations, in headers and sidecars
    "DeidentificationMethod": frozenset({rules.METHOD, rules.OWN_RULES, *cleaner.METHOD}),
    "CodeValue": frozenset(rules.CODES),
    "CodingSchemeDesignator": frozenset({"DCM"}),
    "CodeMeaning": frozenset(rules.CODES.values()),
    "PatientIdentityRemoved": frozenset({"YES"}),
    "LongitudinalTemporalInformationModified": frozenset({"MODIFIED", "REMOVED"}),
    "RecognizableVisualFeatures": frozenset({"NO"}),
    "BurnedInAnnotation": frozenset({"NO"}),
    # one word for whatever the header said
    "ContrastBolusAgent": frozenset({NAMELESS_AGENT, "NONE"}),
    "Modality": frozenset({"MR", "CT", "OT"}),
    # written by the converter
    "ConversionSoftware": frozenset({"dcm2niix"}),
}
"""Literal values by element or key of a sidecar."""
SIDECAR_KEYS = frozenset({*cleaner.ALLOWED, *cleaner.DEVICE, *cleaner.DESCRIPTIONS, *LITERALS, "AcquisitionTime",
    "DeidentificationMethodCodeSequence"})  # fmt: skip
PLACEHOLDER = re.compile("|".join(map(re.escape, PLACEHOLDERS)))
NOT_TEXT = ".png"
UNKNOWN_KEY = "a key that is not one of ours"
CODE_KEYS = frozenset({"CodeValue", "CodingSchemeDesignator", "CodeMeaning"})
HEADER_PIECE = re.compile(r"review/series-\d{2,3}_headers\.json")
TOOLS_PIECE, SERIES_PIECE = f"{REVIEW}/tools.json", f"{REVIEW}/{SERIES}"
SERIES_ID = re.compile(r"(?:series|other)-\d{2,3}")


class SearchedText(NamedTuple):
    """A text of a file.

    `place`: its element or key, never with a word of the input; empty where the line is the place. `literal`: the project wrote it.
    """

    place: str
    text: str
    literal: bool = False


class _Pairs(list[tuple[str, Any]]):
    """Keys and values of a JSON object, repeated keys too."""


Trail = tuple[str, ...]
"""Keys above a key or value, from the outermost."""


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


def _places_in(path: Path, name: str, pattern: IdentityPattern) -> Counter[str]:
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


def _hits(pattern: IdentityPattern, text: str) -> list[int]:
    """Return where identifying values start, in a text without digests; an identifying value is no digest, even if it looks like one."""

    def without(digest: re.Match[str]) -> str:
        return digest[0] if pattern.fullmatch(fold(digest[0])) else " " * len(digest[0])

    return [match.start() for match in pattern.finditer(fold(DIGESTS.sub(without, text)))]


def searched_texts(path: Path, name: str) -> Iterator[SearchedText]:
    """Yield the texts of a file but for its pixels, by place.

    `name`: its path relative to the case; what is literal depends on it.
    """
    if path.suffix == NOT_TEXT:
        return
    if path.suffix == ".dcm":
        yield from _dicom_texts(path)
    elif path.name.endswith(".nii.gz"):
        yield from _nifti_texts(path)
    elif path.suffix == ".json":
        yield from _json_texts(path.read_text(encoding="utf-8", errors="replace"), name)
    else:
        yield SearchedText("", _without_literals(path.read_text(encoding="utf-8", errors="replace"), name))


def _without_literals(text: str, name: str) -> str:
    """Take the head of the record's table and the placeholders of a note out of a text; lines keep their numbers."""
    if name == RECORD:
        head, line, rest = text.partition("\n")
        return f"{line}{rest}" if head == "\t".join(RECORD_COLUMNS) else text
    return PLACEHOLDER.sub("[]", text) if name.startswith("text/") else text


def _json_texts(text: str, name: str) -> Iterator[SearchedText]:
    """Yield every key and value of a JSON file, numbers as they are written."""
    try:
        content = json.loads(text, object_pairs_hook=_Pairs, parse_int=str, parse_float=str)
    except (ValueError, RecursionError):
        yield SearchedText("", text)
        return
    if SCAN.fullmatch(name):
        yield from _walk(content, (), _is_sidecar_key, _is_sidecar_value)
    elif HEADER_PIECE.fullmatch(name):
        yield from _walk(content, (), _is_header_key, lambda trail, value: False)
    elif name == TOOLS_PIECE:
        yield from _walk(content, (), lambda trail, key: key in TOOLS, _is_version)
    elif name == SERIES_PIECE:
        yield from _walk(content, (), _is_series_key, lambda trail, value: trail[-1:] == ("no_preview",) and value in NO_PREVIEW)
    else:
        yield from _walk(content, (), lambda trail, key: False, lambda trail, value: False)


def _walk(
    content: Any, trail: Trail, literal_key: Callable[[Trail, str], bool], literal_value: Callable[[Trail, str], bool]
) -> Iterator[SearchedText]:
    where = " > ".join(trail)
    if isinstance(content, _Pairs):
        for key, value in content:
            known = literal_key(trail, key)
            yield SearchedText(f"{where} > {UNKNOWN_KEY}" if where else UNKNOWN_KEY, key, known)
            yield from _walk(value, (*trail, key if known else UNKNOWN_KEY), literal_key, literal_value)
    elif isinstance(content, list):
        for value in content:
            yield from _walk(value, trail, literal_key, literal_value)
    elif isinstance(content, str):
        yield SearchedText(where, content, literal_value(trail, content))


def _is_sidecar_key(trail: Trail, key: str) -> bool:
    return key in (CODE_KEYS if trail else SIDECAR_KEYS)


def _is_sidecar_value(trail: Trail, value: str) -> bool:
    return bool(trail) and UNKNOWN_KEY not in trail and _is_literal(trail[-1], value)


def _is_literal(keyword: str, value: str) -> bool:
    """Return True if the project wrote the whole value of an element or key."""
    if keyword == "Manufacturer" and value.casefold() in MANUFACTURERS:
        return True
    return value in DUMMY_TEXTS or value in LITERALS.get(keyword, ())


def _is_header_key(trail: Trail, key: str) -> bool:
    from pydicom.datadict import tag_for_keyword

    if not trail:
        return key in ACTIONS
    return all(part in {PRIVATE_ELEMENT, UNKNOWN} or tag_for_keyword(part) is not None for part in key.split(" > "))


def _is_series_key(trail: Trail, key: str) -> bool:
    return key in {"description", "no_preview"} if trail else SERIES_ID.fullmatch(key) is not None


def _is_version(trail: Trail, value: str) -> bool:
    return len(trail) == 1 and trail[0] in TOOLS and value == _installed_version(trail[0])


@cache
def _installed_version(tool: str) -> str | None:
    """Return the version of an installed package; cached, because its metadata are read and parsed each time."""
    try:
        return version(tool)
    except PackageNotFoundError:
        return None


def _dicom_texts(path: Path) -> Iterator[SearchedText]:
    """Yield every element before the pixels, in items of sequences too; DataError as in `dicom.read_header`."""
    header = dicom.read_header(path.read_bytes())
    yield SearchedText("preamble", _plain(getattr(header, "preamble", None) or b""))
    yield from _element_texts(header.file_meta, "")
    yield from _element_texts(header, "")


def _element_texts(dataset: Dataset, outer: str) -> Iterator[SearchedText]:
    from pydicom.datadict import keyword_for_tag

    meaning = standard_meaning(dicom.text(dataset, "CodingSchemeDesignator"), dicom.text(dataset, "CodeValue"))
    for tag in list(dataset.keys()):
        keyword = keyword_for_tag(tag)
        place = outer + (PRIVATE_ELEMENT if tag.group % 2 else keyword or UNKNOWN)
        raw: Any = dataset.get_item(tag)
        text = _plain(raw.value) if isinstance(raw.value, bytes) else ""
        items = [] if keyword in {"PixelData"} else _items_of(dataset, tag)
        if items is None:
            text = text or "\\".join(dicom.texts(dataset, tag))
            yield from (SearchedText(place, part, _is_written(keyword, tag, part, meaning)) for part in text.split("\\"))
        for item in items or ():
            yield from _element_texts(item, f"{place} > ")


def _items_of(dataset: Dataset, tag: Any) -> list[Dataset] | None:
    """Return the items of a sequence; None for another element."""
    try:
        element = dataset[tag]
    except Exception:  # pydicom may raise anything, and its message may hold the value: the bytes are searched
        return None
    return list(element.value or ()) if element.VR == "SQ" else None


def _is_written(keyword: str, tag: Any, value: str, meaning: str) -> bool:
    bare = value.strip()
    if tag.group % 2:
        return 0x10 <= tag.element <= 0xFF and bare in CREATORS
    return _is_literal(keyword, bare) or (keyword == "CodeMeaning" and bool(bare) and bare == meaning)


def _plain(content: bytes) -> str:
    return content.decode("latin-1").replace("\0", " ")


def _nifti_texts(path: Path) -> Iterator[SearchedText]:
    """Yield header and extensions of a NIfTI file; text in them is terminated by zero bytes."""
    with gzip.open(path) as file:
        header = file.read(352)
        offset = _voxel_offset(header)
        extensions = file.read(max(0, min(offset, 1 << 20) - len(header)))
    yield SearchedText("NIfTI header", _plain(header + extensions))


def _voxel_offset(header: bytes) -> int:
    if len(header) < 112:
        return 0
    little = struct.unpack("<i", header[:4])[0] == 348
    return int(struct.unpack(("<" if little else ">") + "f", header[108:112])[0])
