"""Watch the cleaning of a simulated patient and score it against the answer key; of everybody else nothing is watched."""

from __future__ import annotations

import csv
import difflib
import gzip
import io
import re
import zlib
from collections.abc import Iterator
from pathlib import Path

from neuralmedbench.deid.score.scans import HeaderScorer, score_lost_pixels, score_pixels
from neuralmedbench.deid.score.tally import FILES, NOTE, RECORD, WORDS_REMOVED, ScoreTally, write_score
from neuralmedbench.deid.values import DateShift
from neuralmedbench.files import dicom
from neuralmedbench.files.answer_key import holds, left_in, plain, read_answer_key, searchable
from neuralmedbench.files.json_files import read_json
from neuralmedbench.files.nifti import Volume
from neuralmedbench.records.answer_key import AnswerKey, NoteKey, NoteSpan, SeriesKey
from neuralmedbench.records.case import CaseRecord, Series

SIDECAR = {
    "00080060": "Modality", "00080070": "Manufacturer", "00080008": "ImageType", "00180020": "ScanningSequence", "00180021": "SequenceVariant",
    "00180023": "MRAcquisitionType", "00180080": "RepetitionTime", "00180081": "EchoTime", "00180082": "InversionTime", "00181314": "FlipAngle",
    "00180087": "MagneticFieldStrength", "00180084": "ImagingFrequency",
}  # fmt: skip
"""Keys of a sidecar by the header element that they come from."""
NOTE_WORD = re.compile(r"[\w@.+:/=-]*\w")


class Observer:
    """Sees the scans of a case on their way; this one looks at nothing."""

    def cleaned(self, raw: Path, cleaned: Path) -> None:
        """See the DICOM files of a series before and after their headers were cleaned."""

    def converted(self, raw: Path, volume: Volume) -> None:
        """See a scan after burned-in text was hidden, and before its face is removed."""

    def finish(self, case: CaseRecord, source: Path, out: Path) -> None:
        """See the finished case: `case` is as this stage leaves it."""


class PhantomScorer(Observer):
    """Scores a simulated patient.

    Parameters
    ----------
    answer_key : Path
        `answer_key.json` beside the raw files of the phantom.
    patient_id : str
        The pseudonym that has to stand in the headers.
    dates : DateShift
        How dates are changed.
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
        """Score every picture of a series."""
        rules = self._rules_of(raw)
        if rules is not None:
            self._compared.add(rules.series_uid)
            score_pixels(raw, volume, rules, self._tally)

    def finish(self, case: CaseRecord, source: Path, out: Path) -> None:
        """Score what is shareable, and write `score.json`."""
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
        passed = {rules.series_uid: series for series in case.series if (rules := self._rules_of(source / "series" / series.series_id))}
        score_files(self._key, out, passed, self._tally)
        write_score(out, self._tally.score(case.case_id))

    def _rules_of(self, raw: Path) -> SeriesKey | None:
        paths = sorted(raw.glob("*.dcm"))
        if not paths:
            return None
        uid = dicom.text(dicom.read_dicom(paths[0]), "SeriesInstanceUID")
        return next((rules for rules in self._key.series if rules.series_uid == uid), None)


def observer_of(answer_key: Path | None, patient_id: str, dates: DateShift) -> Observer:
    """Give the scorer of a simulated patient, or the watch that looks at nothing when there is no answer key."""
    return NO_OBSERVER if answer_key is None else PhantomScorer(answer_key, patient_id, dates)


def score_files(key: AnswerKey, out: Path, series: dict[str, Series], tally: ScoreTally) -> None:
    """Score the folder of a de-identified case.

    `tally`: `text_removed` for every planted string, `tag_retained` for every key of a sidecar.
    """
    text = "\n".join(text_of_files(out))
    left = len(left_in(text, key.strings))
    tally.add((FILES, "text_removed", "HIPAA"), len(key.strings) - left, len(key.strings), where="shareable file")
    for rules in key.series:
        if not rules.kept:
            continue
        found = series.get(rules.series_uid)
        path = out / found.path.replace(".nii.gz", ".json") if found else None
        sidecar = read_json(path) if path and path.is_file() else {}
        for rule in rules.rules:
            if rule.action == "text_retained" and rule.path in SIDECAR:
                name = SIDECAR[rule.path]
                tally.add((FILES, "tag_retained", "research"), name in sidecar, where=name)


def text_of_files(folder: Path) -> Iterator[str]:
    """Give the names of all files of a folder and what can be read in each of them, as `searchable` text."""
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
    """Give everything in a PNG but its pixels: the chunks of text, unpacked, and those of an unknown kind."""
    parts, place = [], 8
    while place + 8 <= len(content):
        size, kind = int.from_bytes(content[place : place + 4], "big"), content[place + 4 : place + 8]
        body = content[place + 8 : place + 8 + size]
        if kind != b"IDAT":
            parts.append(body)
            for start in range(len(body)) if kind in {b"zTXt", b"iTXt", b"iCCP"} else ():
                if body[start : start + 1] == b"\x78":
                    try:
                        parts.append(zlib.decompress(body[start:]))
                    except zlib.error:
                        continue
        place += 12 + size
        if kind == b"IEND":  # what stands behind the picture is no chunk
            break
    parts.append(content[place:])
    return b"\n".join(parts)


def score_note(raw: str, cleaned: str, key: NoteKey, tally: ScoreTally) -> None:
    """Score one note.

    `raw`, `cleaned`: the note before and after cleaning; empty when it was withheld. `tally`: `text_removed` by Safe Harbor kind,
    `text_retained` for phrases that had to stay, and `words_removed`: of all words that went, those that had to.
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
    """Whether a planted word is left; a date by its own spelling, as its shifted digits may look alike."""
    if kind == "date":
        return re.search(rf"(?<!\d){re.escape(plain(part))}(?!\d)", plain(cleaned)) is not None
    return holds(cleaned, part)


def removed_words(raw: str, cleaned: str, spans: tuple[NoteSpan, ...]) -> tuple[int, int]:
    """Count the words of a note that cleaning took away.

    Returns: Those of them that lie in a planted span, and all.
    """
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
    """Score the record: no cell may hold what had to go, and the rows of measurements have to be there.

    `cleaned`: the cleaned table (TSV), empty when it was withheld. `go`, `stay`: strings, and rows as `variable=value`.
    """
    rows = list(csv.DictReader(io.StringIO(cleaned), delimiter="\t"))
    cells = [cell for row in rows for cell in row.values() if cell]
    kept = {f"{row['variable']}={row['value']}" for row in rows}
    for value in go:
        tally.add((RECORD, "text_removed", "HIPAA"), not any(holds(cell, value) for cell in cells), where="record")
    for row in stay:
        tally.add((RECORD, "text_retained", "research"), row in kept, where="row")


NO_OBSERVER = Observer()
