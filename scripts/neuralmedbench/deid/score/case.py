"""Score the de-identification of a phantom against its answer key; for all other subjects nothing is observed."""

from __future__ import annotations

import csv
import difflib
import gzip
import io
import re
import zlib
from collections.abc import Iterator
from pathlib import Path

from neuralmedbench.deid.score.scans import HeaderScorer, rules_of, score_lost_pixels, score_pixels
from neuralmedbench.deid.score.tally import FILES, NOTE, RECORD, WORDS_REMOVED, ScoreTally, write_score
from neuralmedbench.deid.values import DateShift
from neuralmedbench.files.answer_key import contains_planted, find_planted, plain, read_answer_key, searchable
from neuralmedbench.files.json_files import read_json
from neuralmedbench.files.nifti import Volume
from neuralmedbench.records.answer_key import AnswerKey, NoteKey, NoteSpan
from neuralmedbench.records.case import CaseRecord, Series

SIDECAR = {
    "00080060": "Modality", "00080070": "Manufacturer", "00080008": "ImageType", "00180020": "ScanningSequence", "00180021": "SequenceVariant",
    "00180023": "MRAcquisitionType", "00180080": "RepetitionTime", "00180081": "EchoTime", "00180082": "InversionTime", "00181314": "FlipAngle",
    "00180087": "MagneticFieldStrength", "00180084": "ImagingFrequency",
}  # fmt: skip
"""Sidecar key for each header element."""
NOTE_WORD = re.compile(r"[\w@.+:/=-]*\w")


class Observer:
    """Hooks called while a case is cleaned; this class does nothing."""

    def cleaned(self, raw: Path, cleaned: Path) -> None:
        """Receive the folders of a series before and after its headers were cleaned; files have the same names in both."""

    def converted(self, raw: Path, volume: Volume) -> None:
        """Receive a scan after burned-in text was hidden and before its face is removed."""

    def finish(self, case: CaseRecord, source: Path, out: Path) -> None:
        """Receive the finished case as this stage writes it, with the folders of the ingested and the de-identified case."""


class PhantomScorer(Observer):
    """Scores a phantom.

    Parameters
    ----------
    answer_key : Path
        `answer_key.json` next to the raw files of the phantom.
    patient_id : str
        Pseudonym expected in the headers.
    dates : DateShift
        Expected shift of dates.
    """

    def __init__(self, answer_key: Path, patient_id: str, dates: DateShift) -> None:
        self._key = read_answer_key(answer_key)
        self._tally = ScoreTally()
        self._headers = HeaderScorer(self._key, patient_id, dates, self._tally)
        self._compared: set[str] = set()

    def cleaned(self, raw: Path, cleaned: Path) -> None:
        """Score every header of a series."""
        self._headers.score_series(raw, cleaned)

    def converted(self, raw: Path, volume: Volume) -> None:
        """Score the pixels of a series."""
        rules = rules_of(self._key, raw)
        if rules is not None:
            self._compared.add(rules.series_uid)
            score_pixels(raw, volume, rules, self._tally)

    def finish(self, case: CaseRecord, source: Path, out: Path) -> None:
        """Score the shareable files, and write `score.json`."""
        self._headers.finish()
        for lost in self._key.series:
            if lost.series_uid not in self._compared:
                score_lost_pixels(lost, self._tally)
        for number, key in enumerate(self._key.notes, start=1):
            name = f"text/note-{number:02d}.txt"
            shown = (out / name).read_text(encoding="utf-8") if (out / name).is_file() else ""
            score_note((source / name).read_text(encoding="utf-8"), shown, key, self._tally)
        record = (out / case.record).read_text(encoding="utf-8") if case.record else ""
        score_record(record, self._key.record_go, self._key.record_stay, self._tally)
        passed = {
            rules.series_uid: series for series in case.series if (rules := rules_of(self._key, source / "series" / series.series_id))
        }
        score_files(self._key, out, passed, self._tally)
        write_score(out, self._tally.score(case.case_id))


def observer_of(answer_key: Path | None, patient_id: str, dates: DateShift) -> Observer:
    """Return the scorer of a phantom, or an observer that does nothing if there is no answer key."""
    return NO_OBSERVER if answer_key is None else PhantomScorer(answer_key, patient_id, dates)


def score_files(key: AnswerKey, out: Path, series: dict[str, Series], tally: ScoreTally) -> None:
    """Score the folder of a de-identified case.

    `series`: converted scans by raw SeriesInstanceUID. Adds `text_removed` for every planted string and `tag_retained` for every sidecar key
    to `tally`.
    """
    text = "\n".join(text_of_files(out))
    left = len(find_planted(text, key.strings))
    tally.add((FILES, "text_removed", "HIPAA"), len(key.strings) - left, len(key.strings), where="shareable file")
    for rules in key.series:
        if not rules.kept:
            continue
        converted = series.get(rules.series_uid)
        path = out / converted.path.replace(".nii.gz", ".json") if converted else None
        sidecar = read_json(path) if path and path.is_file() else {}
        for rule in rules.rules:
            if rule.action == "text_retained" and rule.path in SIDECAR:
                name = SIDECAR[rule.path]
                tally.add((FILES, "tag_retained", "research"), name in sidecar, where=name)


def text_of_files(folder: Path) -> Iterator[str]:
    """Yield the name and the readable content of every file in a folder, as `searchable` text."""
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        yield searchable(path.relative_to(folder).as_posix().encode())
        content = path.read_bytes()
        if path.name.endswith(".nii.gz"):
            with gzip.open(path) as file:
                content = file.read(2048)  # the header and its extensions; voxels are numbers
        elif path.suffix == ".png":
            content = png_text(content)
        yield searchable(content)


def png_text(content: bytes) -> bytes:
    """Return everything in a PNG but its pixels: text chunks, decompressed, unknown chunks, and bytes after the end."""
    parts, place = [], 8
    while place + 8 <= len(content):
        size, kind = int.from_bytes(content[place : place + 4], "big"), content[place + 4 : place + 8]
        body = content[place + 8 : place + 8 + size]
        if kind != b"IDAT":
            parts.append(body)
            for start in range(len(body)) if kind in {b"zTXt", b"iTXt", b"iCCP"} else ():
                if body[start : start + 1] == b"\x78":  # first byte of a zlib stream
                    try:
                        parts.append(zlib.decompress(body[start:]))
                    except zlib.error:
                        continue
        place += 12 + size
        if kind == b"IEND":  # bytes after it are not a chunk
            break
    parts.append(content[place:])
    return b"\n".join(parts)


def score_note(raw: str, cleaned: str, key: NoteKey, tally: ScoreTally) -> None:
    """Score one note.

    `raw`, `cleaned`: the note before and after cleaning, empty if it was withheld. Adds to `tally`: `text_removed` by Safe Harbor kind,
    `text_retained` for phrases to keep, and `words_removed`: how many of the removed words had to be removed.
    """
    for span in key.spans:
        gone = not any(_is_left(part, span.kind, cleaned) for part in span.parts)
        tally.add((NOTE, "text_removed", span.kind), gone, where="note")
    shown = plain(cleaned)
    for phrase in key.stay:
        tally.add((NOTE, "text_retained", "research"), plain(phrase) in shown, where="phrase")
    due, removed = removed_words(raw, cleaned, key.spans)
    if removed:
        tally.add((NOTE, WORDS_REMOVED, "research"), due, removed)


def _is_left(part: str, kind: str, cleaned: str) -> bool:
    """Return True if a planted word remains; a date only if written exactly as planted, because its shifted digits may be similar."""
    if kind == "date":
        return re.search(rf"(?<!\d){re.escape(plain(part))}(?!\d)", plain(cleaned)) is not None
    return contains_planted(cleaned, part)


def removed_words(raw: str, cleaned: str, spans: tuple[NoteSpan, ...]) -> tuple[int, int]:
    """Count the words removed from a note: those within a planted span, and all."""
    before = [(match.group(), match.start(), match.end()) for match in NOTE_WORD.finditer(raw)]
    after = [match.group() for match in NOTE_WORD.finditer(cleaned)]
    matcher = difflib.SequenceMatcher(a=[word for word, _, _ in before], b=after, autojunk=False)
    due = removed = 0
    for tag, start, end, _, _ in matcher.get_opcodes():
        if tag in {"replace", "delete"}:
            for _, first, last in before[start:end]:
                removed += 1
                due += any(first < span.end and last > span.start for span in spans)
    return due, removed


def score_record(cleaned: str, go: tuple[str, ...], stay: tuple[str, ...], tally: ScoreTally) -> None:
    """Score the record: no cell may hold a planted string, and the rows of measurements must remain.

    `cleaned`: the cleaned table (TSV), empty if it was withheld. `go`: strings to remove; `stay`: rows to keep, as `variable=value`.
    """
    rows = list(csv.DictReader(io.StringIO(cleaned), delimiter="\t"))
    cells = [cell for row in rows for cell in row.values() if cell]
    kept = {f"{row['variable']}={row['value']}" for row in rows}
    for value in go:
        tally.add((RECORD, "text_removed", "HIPAA"), not any(contains_planted(cell, value) for cell in cells), where="record")
    for row in stay:
        tally.add((RECORD, "text_retained", "research"), row in kept, where="row")


NO_OBSERVER = Observer()
