"""Score the cleaned DICOM files of a simulated patient against its answer key, file by file."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from neuralmedbench.deid.score.tally import HEADER, REMOVALS, ScoreTally
from neuralmedbench.deid.values import DateShift, parse_day
from neuralmedbench.files import dicom
from neuralmedbench.files.answer_key import holds, left_in, searchable
from neuralmedbench.records.answer_key import AnswerKey, SeriesKey, TagRule

if TYPE_CHECKING:
    from pydicom.dataset import Dataset

PRESENCE = frozenset({"tag_retained", "text_notnull"})


@dataclass
class HeaderScorer:
    """Scores the series of one case; remembers which new UID stands for which old one.

    Attributes
    ----------
    key : AnswerKey
        What was planted.
    patient_id : str
        The pseudonym that has to stand in every file.
    dates : DateShift
        How dates were to be changed.
    tally : Tally
        Where the counts go.
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
        paths = sorted(raw.glob("*.dcm"))
        if not paths:
            return
        first = dicom.read_dicom(paths[0])
        uid = dicom.text(first, "SeriesInstanceUID")
        rules = next((series for series in self.key.series if series.series_uid == uid), None)
        if rules is None:
            return
        self._seen.add(uid)
        for path in paths:
            target = cleaned / path.name
            if target.is_file():
                self._score_file(rules, dicom.read_dicom(path), dicom.read_dicom(target))
            else:
                self._score_absent(rules, 1)
        self._score_absent(rules, rules.files - len(paths))
        last = cleaned / paths[-1].name
        if last.is_file():
            self._search(paths[-1], last)

    def finish(self) -> None:
        """Score the series of which no file came: what had to go has gone, what had to stay has not stayed."""
        for rules in self.key.series:
            if rules.series_uid not in self._seen:
                self._score_absent(rules, rules.files)

    def _score_file(self, rules: SeriesKey, raw: Dataset, cleaned: Dataset) -> None:
        before, after = _stored(raw), _stored(cleaned)
        for tag, of_tag in self._by_tag(rules):
            stored = before.get(tag, b""), after.get(tag, b"")
            known = self._last.get((rules.series_uid, tag))
            # the files of a series share most of their header, and reading a value costs more than comparing its bytes
            if known is None or stored != known[0] or None in stored:
                results = [self._is_right(rule, element_text(raw, rule.path), element_text(cleaned, rule.path)) for rule in of_tag]
                known = self._last[rules.series_uid, tag] = (stored, results)
            for rule, right in zip(of_tag, known[1], strict=True):
                self.tally.add((HEADER, rule.action, rule.category), right, where=rule.path)

    def _by_tag(self, rules: SeriesKey) -> list[tuple[int, list[TagRule]]]:
        """Give the rules of a series by the outermost tag of their paths."""
        if rules.series_uid not in self._tags:
            found: dict[int, list[TagRule]] = {}
            for rule in rules.rules:
                found.setdefault(int(rule.path[:8], 16), []).append(rule)
            self._tags[rules.series_uid] = list(found.items())
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
            return all(holds(after, word) for word in rule.text) if rule.text else is_same(before, after)
        if rule.action == "patid_consistent":
            return after == self.patient_id
        return not after or self._is_changed(rule, before, after)

    def _is_changed(self, rule: TagRule, before: str, after: str) -> bool:
        """Whether what is left of a value that had to change gives nothing away."""
        if rule.action == "text_removed":
            return bool(rule.text) and not any(holds(after, word) for word in rule.text)
        if rule.action == "date_shifted":
            return self._is_shifted(before, after)
        if rule.action == "uid_changed":
            return after != before
        return self._uids.setdefault(before, after) == after

    def _is_shifted(self, before: str, after: str) -> bool:
        """Whether the old day is gone and, where there is a new one, it is the one that the patient's shift gives."""
        old, new = parse_day(before[:8]), parse_day(after[:8])
        return before[:8] not in after and old is not None and new == self.dates.shifted(old)

    def _search(self, raw: Path, cleaned: Path) -> None:
        """Search the bytes of a whole cleaned file for every planted string that stands in the raw one."""
        planted = left_in(searchable(_header_bytes(raw)), self.key.strings)
        left = left_in(searchable(_header_bytes(cleaned)), planted)
        self.tally.add((HEADER, "text_removed", "HIPAA"), len(planted) - len(left), len(planted), where="whole file")


def _stored(dataset: Dataset) -> dict[int, bytes | None]:
    """Bytes of every element as they lie in the file, by tag; None when they are decoded already."""
    values = ((int(tag), dataset.get_item(tag).value) for tag in list(dataset.keys()))
    return {tag: value if isinstance(value, bytes) else None for tag, value in values}


def element_text(dataset: Dataset, path: str) -> str:
    """Text of an element by its path; empty when it is absent or empty. Bytes count as text of their digits."""
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
    """Whether two values say the same: equal text, or equal numbers in another spelling."""
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
    """Bytes of a DICOM file as they lie on the disk, preamble and file meta too, without its pixels."""
    pixels = dicom.value(dicom.read_dicom(path), "PixelData")
    content = path.read_bytes()
    return content.replace(pixels, b"") if pixels else content
