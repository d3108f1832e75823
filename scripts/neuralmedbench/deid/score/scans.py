"""Score the scans of a phantom against its answer key: header elements of every DICOM file, and the pixels with burned-in text."""

from __future__ import annotations

import math
import shutil
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from neuralmedbench.deid.score.tally import FILES, HEADER, REMOVALS, ScoreTally
from neuralmedbench.deid.values import DateShift, parse_day
from neuralmedbench.files import dicom
from neuralmedbench.files.answer_key import contains_planted, find_planted, searchable
from neuralmedbench.files.nifti import LPS_TO_RAS, Volume
from neuralmedbench.records.answer_key import AnswerKey, PixelBox, SeriesKey, TagRule

if TYPE_CHECKING:
    from pydicom.dataset import Dataset

PRESENCE = frozenset({"tag_retained", "text_notnull"})
Plane = npt.NDArray[np.float64]
MARGIN_PX = 12
"""Pixels around burned-in text that may be hidden too."""
READ_AT = 4
"""Enlargement before OCR, which needs larger letters than scanners write."""


def rules_of(key: AnswerKey, raw: Path) -> SeriesKey | None:
    """Return what was planted in a series, by the folder of its DICOM files; None if the key does not name it, or there is no file."""
    header = dicom.first_header(raw)
    uid = "" if header is None else dicom.text(header, "SeriesInstanceUID")
    return next((series for series in key.series if uid and series.series_uid == uid), None)


@dataclass
class HeaderScorer:
    """Scores the headers of one case; remembers the new UID of every old one, to check consistency.

    Attributes
    ----------
    key : AnswerKey
        Planted identifiers and the actions required on them.
    patient_id : str
        Pseudonym expected in every file.
    dates : DateShift
        Expected shift of dates.
    tally : ScoreTally
        Collects the counts.
    """

    key: AnswerKey
    patient_id: str
    dates: DateShift
    tally: ScoreTally
    _uids: dict[str, str] = field(default_factory=dict)
    _seen: set[str] = field(default_factory=set)
    _tags: dict[str, list[tuple[int, list[TagRule]]]] = field(default_factory=dict)
    _last: dict[tuple[str, int], tuple[tuple[bytes | None, bytes | None], list[bool]]] = field(default_factory=dict)

    def score_series(self, raw: Path, cleaned: Path) -> None:
        """Score one series."""
        paths, rules = sorted(raw.glob("*.dcm")), rules_of(self.key, raw)
        if rules is None:
            return
        self._seen.add(rules.series_uid)
        for path in paths:
            target = cleaned / path.name
            if target.is_file():
                self._score_file(rules, dicom.read_dicom(path), dicom.read_dicom(target))
            else:
                self._score_absent(rules, 1)
        self._score_absent(rules, rules.files - len(paths))
        # search one file per series as a whole, for strings in places without a rule
        last = cleaned / paths[-1].name
        if last.is_file():
            self._search(paths[-1], last)

    def finish(self) -> None:
        """Score the series without any output file: everything to remove is gone, everything to keep is missing."""
        for rules in self.key.series:
            if rules.series_uid not in self._seen:
                self._score_absent(rules, rules.files)

    def _score_file(self, rules: SeriesKey, raw: Dataset, cleaned: Dataset) -> None:
        before, after = _stored(raw), _stored(cleaned)
        for tag, of_tag in self._by_tag(rules):
            stored = before.get(tag, b""), after.get(tag, b"")
            known = self._last.get((rules.series_uid, tag))
            # the files of a series share most of their header, and decoding a value costs more than comparing its bytes
            if known is None or stored != known[0] or None in stored:
                results = [self._is_right(rule, element_text(raw, rule.path), element_text(cleaned, rule.path)) for rule in of_tag]
                known = self._last[rules.series_uid, tag] = (stored, results)
            for rule, right in zip(of_tag, known[1], strict=True):
                self.tally.add((HEADER, rule.action, rule.category), right, where=rule.path)

    def _by_tag(self, rules: SeriesKey) -> list[tuple[int, list[TagRule]]]:
        """Return the rules of a series by the outermost tag of their paths."""
        if rules.series_uid not in self._tags:
            by_tag: dict[int, list[TagRule]] = {}
            for rule in rules.rules:
                by_tag.setdefault(int(rule.path[:8], 16), []).append(rule)
            self._tags[rules.series_uid] = list(by_tag.items())
        return self._tags[rules.series_uid]

    def _score_absent(self, rules: SeriesKey, files: int) -> None:
        if files <= 0:
            return
        for rule in rules.rules:
            gone = rule.action in REMOVALS
            self.tally.add((HEADER, rule.action, rule.category), files * gone, files, where=rule.path)

    def _is_right(self, rule: TagRule, before: str, after: str) -> bool:
        if rule.action in PRESENCE:
            return bool(after)
        if rule.action == "text_retained":
            return all(contains_planted(after, word) for word in rule.text) if rule.text else is_same(before, after)
        if rule.action == "patid_consistent":
            return after == self.patient_id
        return not after or self._is_changed(rule, before, after)

    def _is_changed(self, rule: TagRule, before: str, after: str) -> bool:
        """Return True if a value that had to change was changed as required."""
        if rule.action == "text_removed":
            return bool(rule.text) and not any(contains_planted(after, word) for word in rule.text)
        if rule.action == "date_shifted":
            return self._is_shifted(before, after)
        if rule.action == "uid_changed":
            return after != before
        return self._uids.setdefault(before, after) == after

    def _is_shifted(self, before: str, after: str) -> bool:
        """Return True if the old day is gone and the new day is the old one moved by the patient's shift."""
        old, new = parse_day(before[:8]), parse_day(after[:8])
        return before[:8] not in after and old is not None and new == self.dates.shifted(old)

    def _search(self, raw: Path, cleaned: Path) -> None:
        """Search the bytes of a whole cleaned file for every planted string of the raw file."""
        planted = find_planted(searchable(_header_bytes(raw)), self.key.strings)
        left = find_planted(searchable(_header_bytes(cleaned)), planted)
        self.tally.add((HEADER, "text_removed", "HIPAA"), len(planted) - len(left), len(planted), where="whole file")


def _stored(dataset: Dataset) -> dict[int, bytes | None]:
    """Return the encoded bytes of every element by tag; None if the element is already decoded."""
    values = ((int(tag), dataset.get_item(tag).value) for tag in list(dataset.keys()))
    return {tag: value if isinstance(value, bytes) else None for tag, value in values}


def element_text(dataset: Dataset, path: str) -> str:
    """Return the text of an element by its path (`tag/item/tag...`); empty if absent or empty. Bytes become hexadecimal digits."""
    *above, last = path.split("/")
    holder: Any = dataset
    try:
        for tag, item in zip(above[::2], above[1::2], strict=True):
            holder = holder[int(tag, 16)].value[int(item)]
        if int(last, 16) not in holder:
            return ""
        value = holder[int(last, 16)].value
    except (KeyError, IndexError, TypeError):
        return ""
    if value is None or value == "":
        return ""
    if isinstance(value, bytes):
        return value.hex() if value.strip(b"\0 ") else ""
    return dicom.text(holder, int(last, 16))


def is_same(before: str, after: str) -> bool:
    """Return True if two values are equal as text, or as numbers written differently."""
    old, new = before.split("\\"), after.split("\\")
    return len(old) == len(new) and all(map(_equal, old, new))


def _equal(one: str, other: str) -> bool:
    if one == other:
        return True
    try:
        return math.isclose(float(one), float(other), rel_tol=1e-6, abs_tol=1e-9)
    except ValueError:
        return False


def _header_bytes(path: Path) -> bytes:
    """Read a DICOM file as bytes, with preamble and file meta group, without its pixels."""
    pixels = dicom.value(dicom.read_dicom(path), "PixelData")
    content = path.read_bytes()
    return content.replace(pixels, b"") if pixels else content


def score_pixels(raw: Path, hidden: Volume, rules: SeriesKey, tally: ScoreTally) -> None:
    """Compare every raw file of a series with the voxels it was converted to.

    `hidden`: the scan with burned-in text hidden and before defacing, voxels (X, Y, Z), affine to RAS+ mm. Adds `pixels_retained` and
    `pixels_hidden` to `tally`, one check per file, and one for text that OCR can still read.
    """
    planes = []
    for path in sorted(raw.glob("*.dcm")):
        dataset = dicom.read_dicom(path)
        before = _measured(dataset)
        after = plane_of(dataset, before.shape, hidden)
        tally.add((FILES, "pixels_retained", "research"), _is_retained(before, after, rules.boxes))
        if rules.boxes:
            tally.add((FILES, "pixels_hidden", "HIPAA"), all(_is_hidden(_cut(before, box), _cut(after, box)) for box in rules.boxes))
            planes.append(after)
    if planes:
        read = read_text(planes[len(planes) // 2], rules.boxes)
        if read is not None:
            left = any(contains_planted(read, word) for box in rules.boxes for word in box.text)
            tally.add((FILES, "pixels_hidden", "HIPAA"), not left, where="read by a program")


def score_lost_pixels(rules: SeriesKey, tally: ScoreTally) -> None:
    """Count a series without output: its text is hidden, its pixels are not retained."""
    if rules.boxes:
        tally.add((FILES, "pixels_hidden", "HIPAA"), rules.files, rules.files)
    if rules.kept:
        tally.add((FILES, "pixels_retained", "research"), 0, rules.files)


def plane_of(dataset: Dataset, shape: tuple[int, ...], volume: Volume) -> Plane:
    """Sample the voxels at the pixels of one DICOM file, by their position in the scanner.

    `dataset`: with ImagePositionPatient, ImageOrientationPatient (LPS+ mm) and PixelSpacing. `volume`: voxels (X, Y, Z), affine to RAS+ mm.
    Returns float64, shape (rows, columns); NaN outside the volume.
    """
    origin, along = (np.array(dicom.numbers(dataset, name)) for name in ("ImagePositionPatient", "ImageOrientationPatient"))
    down_mm, across_mm = dicom.numbers(dataset, "PixelSpacing")
    back = np.linalg.inv(volume.affine)
    # voxel index at the first pixel, and its step per column and per row
    start, across, down = (back[:3, :3] @ (LPS_TO_RAS * vector) for vector in (origin, across_mm * along[:3], down_mm * along[3:]))
    rows, columns = np.arange(shape[0])[:, None], np.arange(shape[1])[None, :]
    index = [np.rint(start[axis] + back[axis, 3] + rows * down[axis] + columns * across[axis]).astype(np.intp) for axis in range(3)]
    inside = np.logical_and.reduce([(part >= 0) & (part < size) for part, size in zip(index, volume.voxels.shape, strict=True)])
    if inside.all():
        return np.asarray(volume.voxels[tuple(index)], dtype=np.float64)
    values = np.full(shape, np.nan)
    values[inside] = volume.voxels[tuple(part[inside] for part in index)]
    return values


def _measured(dataset: Dataset) -> Plane:
    """Return the pixels in the units of the scan, with rescale slope and intercept applied."""
    slope, intercept = dicom.number(dataset, "RescaleSlope"), dicom.number(dataset, "RescaleIntercept")
    stored = np.asarray(dataset.pixel_array, dtype=np.float64)
    return stored * (1.0 if slope is None else slope) + (intercept or 0.0)


def _is_hidden(before: Plane, after: Plane) -> bool:
    """Return True if the letters (the highest value of the box) were changed and do not stand out from their surroundings."""
    letters = before == before.max()
    if after.max() == after.min():
        return True
    spread = after[~letters].std() + after[letters].std()
    return bool((after[letters] != before[letters]).all() and abs(after[letters].mean() - after[~letters].mean()) < spread)


def _is_retained(before: Plane, after: Plane, boxes: tuple[PixelBox, ...]) -> bool:
    same = np.abs(before - after) < 0.5
    for box in boxes:
        same[max(0, box.top - MARGIN_PX) : box.bottom + MARGIN_PX, max(0, box.left - MARGIN_PX) : box.right + MARGIN_PX] = True
    return bool(same.all())


def read_text(plane: Plane, boxes: tuple[PixelBox, ...]) -> str | None:
    """Read the boxes of a picture with tesseract; None if it is not installed."""
    program = shutil.which("tesseract")
    if program is None:
        return None
    return "\n".join(_read(program, _cut(plane, box, margin=MARGIN_PX)) for box in boxes)


def _read(program: str, cut: Plane) -> str:
    import io

    from PIL import Image

    grey: Any = 255 * (cut - cut.min()) / max(float(np.ptp(cut)), 1.0)
    picture = Image.fromarray(255 - np.nan_to_num(grey).astype(np.uint8))  # tesseract expects dark letters
    held = io.BytesIO()
    picture.resize((picture.width * READ_AT, picture.height * READ_AT)).save(held, "PNG")
    done = subprocess.run([program, "-", "-", "--psm", "6"], input=held.getvalue(), capture_output=True, check=False, timeout=60)
    return done.stdout.decode("utf-8", "replace")


def _cut(plane: Plane, box: PixelBox, *, margin: int = 0) -> Plane:
    return plane[max(0, box.top - margin) : box.bottom + margin, max(0, box.left - margin) : box.right + margin]
