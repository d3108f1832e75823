"""The score of de-identification counts remaining identifiers, lost values and wrong changes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pydicom
import pytest
from pydicom.dataset import Dataset

from neuralmedbench.deid.audit import AuditRules, audit_cases
from neuralmedbench.deid.headers.cleaner import clean_series
from neuralmedbench.deid.headers.rules import HeaderRules
from neuralmedbench.deid.score.case import score_files, score_note, score_record
from neuralmedbench.deid.score.scans import HeaderScorer, score_lost_pixels, score_pixels
from neuralmedbench.deid.score.tally import HEADER, NOTE, REMOVALS, ScoreTally, read_scores, sum_scores, write_score
from neuralmedbench.deid.values import DateShift
from neuralmedbench.demo.cohort import FOLDER, read_patient
from neuralmedbench.demo.dicom import SeriesFiles, write_keyed_series
from neuralmedbench.demo.scanner import PROTOCOLS, ScanGrid, SliceStack
from neuralmedbench.files.answer_key import contains_planted
from neuralmedbench.files.identity import Identity, identity_pattern
from neuralmedbench.files.json_files import write_json
from neuralmedbench.files.nifti import Volume
from neuralmedbench.records.answer_key import AnswerKey
from neuralmedbench.records.case import CaseRecord, Sequence, Series

PATIENT = read_patient(FOLDER / "stroke.yaml")
KEY, PSEUDONYM, DATES = b"a key of the tests, long enough", "beef00000001", DateShift(41)
GRID = ScanGrid((-80.0, -60.0, -20.0), (4, 64, 96), (2.0, 2.0, 6.0))


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> SeriesFiles:
    """Make a small FLAIR series with everything planted and its name burned in."""
    folder = tmp_path_factory.mktemp("raw")
    voxels = np.random.default_rng(1).integers(0, 60, GRID.shape)
    voxels[:, 30:50, 40:60] += 800
    stack = SliceStack(GRID, voxels.astype(np.int16))
    series = write_keyed_series(folder, PATIENT, 1, PROTOCOLS["FLAIR"], stack, burned=True, graphics=True)
    for number, path in enumerate(series.files, start=1):
        path.rename(folder / f"{number:06d}.dcm")
    return SeriesFiles(sorted(folder.glob("*.dcm")), series.key)


@pytest.fixture(scope="module")
def key(written: SeriesFiles) -> AnswerKey:
    notes = tuple(key for _, key in PATIENT.keyed_notes())
    return AnswerKey(case_id="c0ffee", series=(written.key,), notes=notes, strings=tuple(PATIENT.planted()))


def header_score(key: AnswerKey, raw: Path, cleaned: Path) -> ScoreTally:
    tally = ScoreTally()
    scorer = HeaderScorer(key, PSEUDONYM, DATES, tally)
    scorer.score_series(raw, cleaned)
    scorer.finish()
    return tally


def edited(written: SeriesFiles, folder: Path, edit: Callable[[Dataset], None], source: Path | None = None) -> Path:
    """Copy the series (or a cleaned copy of it) and change every file."""
    for path in sorted((source or written.files[0].parent).glob("*.dcm")):
        dataset = pydicom.dcmread(path)
        edit(dataset)
        dataset.save_as(folder / path.name)
    return folder


@pytest.fixture(scope="module")
def cleaned(written: SeriesFiles, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("cleaned")
    who = PATIENT.identity
    people = (
        f"{who.family}^{who.given}",
        *(f"{name.split()[1]}^{name.split()[0]}" for name in (who.physician, who.operator, who.colleague)),
    )
    identity = Identity(names=people, places=(who.hospital, who.station), numbers=(who.mrn, who.other_id, who.accession, who.serial))
    clean_series(written.files[0].parent, folder, HeaderRules(KEY, PSEUDONYM, DATES, identity_pattern(identity)))
    return folder


def shares(tally: ScoreTally) -> dict[str, float]:
    required, right = Counter[str](), Counter[str]()
    for place, number in tally.required.items():
        required[place[1]] += number
        right[place[1]] += tally.right[place]
    return {action: right[action] / required[action] for action in required}


def test_our_cleaner_does_all_removals_and_nearly_everything_else(written: SeriesFiles, key: AnswerKey, cleaned: Path) -> None:
    tally = header_score(key, written.files[0].parent, cleaned)
    found = shares(tally)
    assert {action: found[action] for action in REMOVALS & set(found)} == dict.fromkeys(REMOVALS & set(found), 1.0), tally.wrong
    assert sum(tally.right.values()) / sum(tally.required.values()) >= 0.999, tally.wrong
    assert sum(tally.required.values()) > 500


def test_a_cleaner_that_does_nothing_fails_every_removal(written: SeriesFiles, key: AnswerKey) -> None:
    raw = written.files[0].parent
    found = shares(header_score(key, raw, raw))
    removals = {action: found[action] for action in REMOVALS & set(found)} | {"uid_consistent": 0.0}  # unchanged UIDs are consistent
    assert removals == dict.fromkeys(removals, 0.0)
    assert found["tag_retained"] == found["text_notnull"] == 1.0


def test_a_cleaner_that_blanks_everything_fails_what_has_to_stay(written: SeriesFiles, key: AnswerKey, tmp_path: Path) -> None:
    def blank(dataset: Dataset) -> None:
        for tag in [tag for tag in dataset.keys() if tag != 0x7FE00010]:  # noqa: SIM118 (a Dataset iterates over elements)
            del dataset[tag]
        dataset.SOPClassUID = dataset.file_meta.MediaStorageSOPClassUID
        dataset.PatientID = PSEUDONYM
        dataset.preamble = b"\0" * 128
        del dataset.file_meta.PrivateInformation, dataset.file_meta.PrivateInformationCreatorUID
        dataset.file_meta.SourceApplicationEntityTitle = ""

    found = shares(header_score(key, written.files[0].parent, edited(written, tmp_path, blank)))
    assert {action: found[action] for action in REMOVALS & set(found)} == dict.fromkeys(REMOVALS & set(found), 1.0)
    assert found["tag_retained"] == 0.0
    assert found["text_retained"] < 0.1


def test_a_series_that_vanished_has_lost_what_had_to_stay(key: AnswerKey, tmp_path: Path) -> None:
    found = shares(header_score(key, tmp_path, tmp_path))
    assert all(share == (1.0 if action in REMOVALS else 0.0) for action, share in found.items())


@pytest.mark.parametrize(
    ("edit", "action"),
    [
        (lambda dataset: setattr(dataset, "StudyDate", "20310101"), "date_shifted"),
        (lambda dataset: setattr(dataset, "FrameOfReferenceUID", pydicom.uid.generate_uid()), "uid_consistent"),
        (lambda dataset: setattr(dataset, "PatientID", "beef00000002"), "patid_consistent"),
        (lambda dataset: setattr(dataset, "EchoTime", "93"), "text_retained"),
        (lambda dataset: setattr(dataset, "StudyDescription", "Head, V.andermeer"), "text_removed"),
        (lambda dataset: dataset.__delattr__("Rows"), "tag_retained"),
        (lambda dataset: setattr(dataset, "PatientName", ""), "text_notnull"),
        (lambda dataset: setattr(dataset, "preamble", b"VANDERMEER".ljust(128, b"\0")), "text_removed"),
    ],
    ids=["other shift", "other UID in every file", "other patient", "other number", "name left", "tag lost", "no pseudonym", "preamble"],
)
def test_one_mistake_costs_its_action(
    written: SeriesFiles, key: AnswerKey, cleaned: Path, *, tmp_path: Path, edit: Callable[[Dataset], None], action: str
) -> None:
    raw = written.files[0].parent
    before, after = header_score(key, raw, cleaned), header_score(key, raw, edited(written, tmp_path, edit, cleaned))
    assert shares(after)[action] < shares(before)[action]
    assert {name: share for name, share in shares(after).items() if name != action} == {
        name: share for name, share in shares(before).items() if name != action
    }


def as_volume(written: SeriesFiles) -> Volume:
    """Return the series as converted: rows flipped, RAS+."""
    planes = np.stack([pydicom.dcmread(path).pixel_array for path in written.files]).astype(np.int16)
    (x, y, z), (dx, dy, dz) = GRID.origin, GRID.spacing
    affine = np.diag([-dx, dy, dz, 1.0])
    affine[:3, 3] = [-x, -(y + dy * (planes.shape[1] - 1)), z]
    return Volume(np.ascontiguousarray(planes.transpose(2, 1, 0)[:, ::-1]), affine)


def pixel_shares(written: SeriesFiles, volume: Volume) -> dict[str, float]:
    tally = ScoreTally()
    score_pixels(written.files[0].parent, volume, written.key, tally)
    return shares(tally)


def test_pixels_are_compared_where_the_converter_put_them(written: SeriesFiles) -> None:
    volume = as_volume(written)
    found = pixel_shares(written, volume)
    assert found["pixels_retained"] == 1.0
    assert found["pixels_hidden"] <= 0.2, "four pictures, and the reading program where there is one, which may not read such small letters"
    (box,) = written.key.boxes
    hidden = volume.voxels.copy()
    rows = hidden.shape[1] - 1 - np.arange(box.top, box.bottom)
    hidden[np.ix_(np.arange(box.left, box.right), rows, range(hidden.shape[2]))] = 0
    assert pixel_shares(written, Volume(hidden, volume.affine)) == {"pixels_retained": 1.0, "pixels_hidden": 1.0}
    hidden[80, 2, 1] += 50
    assert pixel_shares(written, Volume(hidden, volume.affine)) == {"pixels_retained": 0.75, "pixels_hidden": 1.0}
    assert pixel_shares(written, Volume(np.zeros_like(hidden), volume.affine))["pixels_retained"] == 0.0


def test_a_scan_without_output_hides_its_text_and_loses_its_pixels(written: SeriesFiles) -> None:
    tally = ScoreTally()
    score_lost_pixels(written.key, tally)
    assert shares(tally) == {"pixels_retained": 0.0, "pixels_hidden": 1.0}


def note_shares(cleaned: Callable[[str], str]) -> dict[str, float]:
    tally = ScoreTally()
    for text, key in PATIENT.keyed_notes():
        score_note(text, cleaned(text), key, tally)
    return shares(tally)


def without_spans(text: str) -> str:
    """Clean a note perfectly."""
    spans = next(key.spans for written, key in PATIENT.keyed_notes() if written == text)
    for span in sorted(spans, key=lambda span: -span.start):
        text = text[: span.start] + "[X]" + text[span.end :]
    return text


def test_a_note_is_scored_by_remaining_identifiers_and_by_lost_text() -> None:
    assert note_shares(without_spans) == {"text_removed": 1.0, "text_retained": 1.0, "words_removed": 1.0}
    nothing = note_shares(lambda text: text)
    assert (nothing["text_removed"], nothing["text_retained"], "words_removed" in nothing) == (0.0, 1.0, False)
    blank = note_shares(lambda text: "")
    assert (blank["text_removed"], blank["text_retained"]) == (1.0, 0.0)
    assert blank["words_removed"] < 0.4
    half = note_shares(lambda text: without_spans(text) + "\nsister of Vander-meer")
    assert 0.5 < half["text_removed"] < 1.0


def test_a_record_is_scored_cell_by_cell() -> None:
    tally = ScoreTally()
    score_record("variable\tvalue\nNIHSS\t16\nlabel\tSUBJ 13371\n", ("SUBJ-13371", "48213371"), ("NIHSS=16", "INR=1.1"), tally)
    assert shares(tally) == {"text_removed": 0.5, "text_retained": 0.5}


def test_shareable_files_are_searched_and_sidecars_have_to_describe_the_scan(written: SeriesFiles, key: AnswerKey, tmp_path: Path) -> None:
    series = Series(series_id="series-01", path="anat/sub-1_FLAIR.nii.gz", modality="MR", sequence=Sequence.FLAIR)
    write_json(tmp_path / "anat" / "sub-1_FLAIR.json", {"EchoTime": 0.09, "Note": "of VANDER MEER"})
    tally = ScoreTally()
    score_files(key, tmp_path, {written.key.series_uid: series}, tally)
    left = sum(contains_planted("of VANDER MEER", word) for word in key.strings)
    assert left >= 1
    assert tally.right["files", "text_removed", "HIPAA"] == len(key.strings) - left
    assert tally.right["files", "tag_retained", "research"] == 1


def test_scores_of_cases_are_summed_and_hold_no_value(key: AnswerKey, written: SeriesFiles, cleaned: Path, tmp_path: Path) -> None:
    right, wrong = header_score(key, written.files[0].parent, cleaned), ScoreTally()
    wrong.add((HEADER, "date_shifted", "HIPAA"), 0, 3, where="00080020")
    wrong.add((NOTE, "words_removed", "research"), 1, 2)
    for name, tally in (("one", right), ("two", wrong)):
        write_score(tmp_path / name, tally.score(name))
    rows = {
        (row.place, row.action, row.category): row
        for row in sum_scores(read_scores([tmp_path / "one", tmp_path / "two", tmp_path / "none"]))
    }
    dates = rows[HEADER, "date_shifted", "HIPAA"]
    assert (dates.patients, dates.patients_right, dates.required - dates.right) == (2, 1, 3)
    assert rows["all", "removals", "all"].patients_right == 1
    assert rows["all", "actions", "all"].required == sum(row.required for row in rows.values() if row.place == HEADER)
    text = "".join(path.read_text(encoding="utf-8") for path in tmp_path.rglob("score.json"))
    assert [word for word in key.strings if contains_planted(text, word)] == []


def test_the_audit_gathers_the_scores(tmp_path: Path) -> None:
    tally = ScoreTally()
    tally.add((HEADER, "uid_changed", "DICOM"), 5, 5)
    write_score(tmp_path, tally.score("c1"))
    case = CaseRecord(benchmark="demo", case_id="c1", patient_id="p1", stage="deidentify", files={"anat/a.nii.gz": "0" * 64})
    audit = audit_cases(AuditRules(benchmark="demo", profile="pseudonymised", subjects="phantom"), [(case, tmp_path)])
    assert [(row.place, row.action, row.right) for row in audit.score if row.place == HEADER] == [(HEADER, "uid_changed", 5)]
    assert replace(audit, score=()).state == "passed"
