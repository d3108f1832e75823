"""NIfTI as a source: BIDS data sets, loose files with a table, and files with misleading names."""

from __future__ import annotations

import gzip
import io
import json
import os
import struct
import zipfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import ingest_case
from fixtures.commands import settings
from fixtures.deid import NOTE, head_voxels, write_config, write_index, write_nifti_file
from fixtures.raw import ingest, write_series
from neuralmedbench.config.load import load_benchmark
from neuralmedbench.errors import ConfigError
from neuralmedbench.files.cases import read_case
from neuralmedbench.files.digests import sha256_of
from neuralmedbench.files.raw_folder import RawFile, RawIndex, read_raw_index, write_raw_index
from neuralmedbench.ingest.bids import entities_of, label_bids
from neuralmedbench.ingest.case_tables import keyed_pseudonyms
from neuralmedbench.ingest.grouping import CaseFiles
from neuralmedbench.ingest.import_series import label_nifti
from neuralmedbench.ingest.listing import find_cases, list_cases
from neuralmedbench.ingest.raw_files import read_raw_file
from neuralmedbench.ingest.sequences import Physics
from neuralmedbench.records.case import CaseRecord, Sequence, State


def reasons(case: CaseRecord) -> set[str]:
    """Return the reasons of excluded files, without the series."""
    return {fate.reason.partition(": ")[2] or fate.reason for fate in case.fates if fate.fate == "set_aside"}


def bids(root: Path) -> Path:
    """A small BIDS data set: two subjects, one with two sessions, sidecars, participants and derivatives."""
    for name in ("sub-01_ses-a_T1w", "sub-01_ses-a_ce-gadolinium_T1w", "sub-01_ses-b_FLAIR", "sub-02_T2w", "sub-02_acq-highres_run-2_T1w"):
        session = f"ses-{name.split('ses-')[1][0]}" if "ses-" in name else ""
        write_nifti_file(root / name.split("_")[0] / session / "anat" / f"{name}.nii.gz", head_voxels())
    (root / "sub-02" / "anat" / "sub-02_T2w.json").write_text(json.dumps({"EchoTime": 0.1, "RepetitionTime": 5.0}), encoding="utf-8")
    write_nifti_file(root / "derivatives" / "tool" / "sub-01" / "anat" / "sub-01_desc-preproc_T1w.nii.gz", head_voxels())
    write_nifti_file(root / "sourcedata" / "sub-01" / "scan.nii.gz", head_voxels())
    (root / "dataset_description.json").write_text('{"Name": "x", "BIDSVersion": "1.10.0"}', encoding="utf-8")
    (root / "participants.tsv").write_text(
        "participant_id\tage\tsex\tsite\nsub-01\t61\tF\tOosterhaven\nsub-02\tn/a\tn/a\tn/a\n", encoding="utf-8"
    )
    return root


def case_of(source: Path, study: str) -> CaseFiles:
    """Return one case by its study."""
    return next(case for case in find_cases(source).cases if case.study == study)


def test_a_bids_data_set_has_a_case_per_session_and_leaves_derivatives_out(tmp_path: Path) -> None:
    found = find_cases(bids(tmp_path))
    assert [(case.patient, case.study, len(case.scans)) for case in found.cases] == [
        ("sub-01", "sub-01/ses-a", 2), ("sub-01", "sub-01/ses-b", 1), ("sub-02", "sub-02", 3),
    ]  # fmt: skip
    out = {path.relative_to(tmp_path).parts[0]: reason for path, reason in found.left_out.items()}
    assert out == {
        "derivatives": "derived data (derivatives of a BIDS data set)",
        "sourcedata": "source data of a BIDS data set, which holds the same scans",
        "dataset_description.json": "metadata of a BIDS data set",
        "participants.tsv": "metadata of a BIDS data set",
    }


def test_age_and_sex_of_participants_become_the_health_record_and_nothing_else_does(tmp_path: Path) -> None:
    from neuralmedbench.cli.cases import list_cases as command

    source = bids(tmp_path / "source")
    config = write_config(tmp_path / "config", source)
    assert command.main(["--benchmark", "mine", "--config", str(config), "--data", str(tmp_path / "data")]) == 0
    indexes = [read_raw_index(path) for path in sorted((tmp_path / "data" / "raw" / "mine").glob("*/files.json"))]
    records = [(tmp_path / "data" / "raw" / "mine" / index.case_id / index.record.path).read_text() for index in indexes if index.record]
    assert records == ["variable,value,unit\nage,61,years\nsex,F,\n"] * 2


def test_the_same_label_in_two_data_sets_is_two_people(tmp_path: Path) -> None:
    for name in ("one", "two"):
        bids(tmp_path / name)
    assert {case.patient for case in find_cases(tmp_path).cases} == {"one/sub-01", "one/sub-02", "two/sub-01", "two/sub-02"}


def test_a_sidecar_that_contradicts_the_name_flags_the_scan(tmp_path: Path) -> None:
    path = write_nifti_file(tmp_path / "raw" / "sub-01_T1w.nii.gz", head_voxels())
    beside = path.with_name("sub-01_T1w.json")
    beside.write_text(json.dumps({"EchoTime": 0.1, "RepetitionTime": 5.0}), encoding="utf-8")
    case = ingest(tmp_path, [path, beside])
    assert case.series[0].flags == ("words_and_physics_disagree",)
    assert [fate.fate for fate in case.fates] == ["used", "used"]


def test_a_sidecar_tells_the_kind_of_a_scan_whose_name_says_nothing(tmp_path: Path) -> None:
    path = write_nifti_file(tmp_path / "raw" / "scan.nii.gz", head_voxels())
    beside = path.with_name("scan.json")
    beside.write_text(json.dumps({"SeriesDescription": "AX T2 FLAIR", "EchoTime": 0.12, "RepetitionTime": 9, "InversionTime": 2.5}))
    assert ingest(tmp_path, [path, beside]).series[0].sequence is Sequence.FLAIR
    for text in ("[]", "[" * 200_000):
        beside.write_text(text)
        assert "not a JSON object" in ingest(tmp_path, [path, beside]).reason


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("sub-01_T1w", Sequence.T1W),
        ("sub-01_ce-gad_T1w", Sequence.CE_T1W),
        ("sub-01_acq-flair_T2w", Sequence.T2W),
        ("sub-01_run-2_FLAIR", Sequence.FLAIR),
        ("sub-01_echo-1_T2starw", Sequence.T2STARW),
        ("sub-01_part-phase_T2starw", Sequence.UNKNOWN),
        ("sub-01_task-rest_bold", Sequence.UNKNOWN),
        ("sub-01_magnitude1", Sequence.UNKNOWN),
        ("sub-01_inv-1_MP2RAGE", Sequence.UNKNOWN),
        ("sub-01_ce-iodine_ct", Sequence.CE_CT),
        ("sub-01_acq-tof_angio", Sequence.ANGIO),
        ("sub-01_rec-mip_angio", Sequence.UNKNOWN),
    ],
)
def test_bids_names_are_read_by_suffix_and_entities(name: str, expected: Sequence) -> None:
    label = label_bids(name, "CT" if name.endswith("ct") else "MR", Physics())
    assert label is not None
    assert label.sequence is expected
    assert entities_of(name)["sub"] == "01"


@pytest.mark.parametrize(
    ("name", "expected"),
    [("sub_01_T1", Sequence.T1W), ("sub01_FLAIR", Sequence.FLAIR), ("sub-control_head_T2", Sequence.T2W), ("subtraction_T1", Sequence.UNKNOWN),
     ("sub_T1_post", Sequence.UNKNOWN), ("p7_T1_post", Sequence.CE_T1W), ("p7_scan", Sequence.UNKNOWN), ("p7_MRA", Sequence.ANGIO),
     ("p7_MRA_MIP", Sequence.UNKNOWN)],
)  # fmt: skip
def test_a_subject_is_not_taken_for_a_subtraction(name: str, expected: Sequence) -> None:
    assert label_nifti(name, head_voxels())[1].sequence is expected


def ct_voxels() -> np.ndarray:
    """A head in HU: air around it, fat, brain and skull."""
    voxels = np.full((48, 56, 20), -1000.0)
    voxels[8:40, 8:48] = -80
    voxels[10:38, 10:46] = 700
    voxels[12:36, 12:44] = 35
    return voxels + np.random.default_rng(3).normal(0, 5, voxels.shape)


def ringing(voxels: np.ndarray) -> np.ndarray:
    """Add negative voxels around bright ones, as interpolation does."""
    noise = np.random.default_rng(3).normal(0, 300, voxels.shape)
    return np.where(noise < -600, noise, voxels)


GREYS = {
    "ct": ct_voxels(),
    "padded": np.where(np.hypot(*np.meshgrid(range(-24, 24), range(-28, 28), indexing="ij"))[..., None] > 27, -3024, ct_voxels()),
    "clipped to 0": np.maximum(ct_voxels(), 0),
    "clipped to -200": np.maximum(ct_voxels(), -200),
    "ringing": ringing(head_voxels().astype(float) * 20),
    "one voxel": np.where(np.arange(48 * 56 * 20).reshape(48, 56, 20) == 9, -700.0, head_voxels()),
    "phase": np.random.default_rng(3).uniform(-4096, 4095, (48, 56, 20)),
    "z-scores": np.random.default_rng(3).normal(0, 1, (48, 56, 20)),
}


@pytest.mark.parametrize(
    ("name", "greys", "modality", "sequence", "flags"),
    [
        ("scan", "ct", "CT", Sequence.CT, ()),
        ("scan", "padded", "CT", Sequence.CT, ()),
        ("head_ct", "clipped to 0", "CT", Sequence.CT, ()),
        ("head_ct", "clipped to -200", "CT", Sequence.CT, ()),
        ("sub-01_ct", "clipped to 0", "CT", Sequence.CT, ()),
        ("scan", "clipped to 0", "MR", Sequence.UNKNOWN, ()),
        ("anatomical_T1w", "ct", "CT", Sequence.CT, ("words_and_physics_disagree",)),
        ("sub-01_T1w", "ct", "CT", Sequence.T1W, ("words_and_physics_disagree",)),
        ("anatomical_T1w", "one voxel", "MR", Sequence.T1W, ("negative_voxels",)),
        ("sub-01_T1w", "ringing", "MR", Sequence.T1W, ("negative_voxels",)),
        ("scan", "phase", "MR", Sequence.UNKNOWN, ("negative_voxels",)),
        ("t2_flair", "z-scores", "MR", Sequence.FLAIR, ()),
    ],
)
def test_the_greys_of_a_whole_scan_make_it_a_ct_and_single_negative_voxels_do_not(
    name: str, greys: str, modality: str, sequence: Sequence, flags: tuple[str, ...]
) -> None:
    label = label_nifti(name, GREYS[greys])
    assert (label[0], label[1].sequence, label[1].flags) == (modality, sequence, flags)


@pytest.mark.parametrize(("stated", "flags"), [("CT", ()), ("MR", ("words_and_physics_disagree",))])
def test_a_sidecar_states_the_modality(tmp_path: Path, stated: str, flags: tuple[str, ...]) -> None:
    (tmp_path / "scan.json").write_text(json.dumps({"Modality": stated, "SeriesDescription": "T1"}))
    modality, label = label_nifti("scan", ct_voxels(), [tmp_path / "scan.json"])
    assert (modality, label.flags) == (stated, flags)


def test_a_sidecar_that_names_another_part_of_the_body_sets_the_scan_aside(tmp_path: Path) -> None:
    path = write_nifti_file(tmp_path / "raw" / "p7_T1.nii.gz", head_voxels())
    beside = path.with_name("p7_T1.json")
    beside.write_text(json.dumps({"BodyPartExamined": "KNEE"}))
    assert "shows another part of the body: knee" in ingest(tmp_path, [path, beside]).reason
    beside.write_text(json.dumps({"BodyPartExamined": "BRAIN"}))
    assert ingest(tmp_path, [path, beside]).state is State.OK


def test_contrast_in_a_free_entity_alone_is_flagged(tmp_path: Path) -> None:
    label = label_bids("sub-01_acq-postgad_T1w", "MR", Physics())
    assert label is not None
    assert (label.sequence, label.flags) == (Sequence.T1W, ("contrast_unclear",))


def test_a_table_gives_loose_files_their_case_kind_and_day(tmp_path: Path) -> None:
    source = tmp_path / "source"
    for name in ("a", "b", "c"):
        write_nifti_file(source / f"{name}.nii.gz", head_voxels())
    table = "path,case,patient,sequence,date\na.nii.gz,p1-first,p1,T1w,2030-05-06\nb.nii.gz,p1-first,p1,FLAIR,\nc.nii.gz,p1-later,p1,T2w,2031-01-02\n"
    (source / "files.csv").write_text(table, encoding="utf-8")
    listed = list_cases(source, keyed_pseudonyms(b"k" * 32)).cases
    assert {(len(case.index.files), case.index.scan_date) for case in listed} == {(2, "20300506"), (1, "20310102")}
    assert len({case.index.patient_id for case in listed}) == 1
    assert sorted(kind for case in listed for kind in case.overrides.values()) == ["FLAIR", "T1w", "T2w"]


def test_the_day_of_a_table_is_what_the_dates_of_a_record_are_counted_from(tmp_path: Path) -> None:
    path = write_nifti_file(tmp_path / "p_T1w.nii.gz", head_voxels())
    index = RawIndex(
        case_id="c0ffee", patient_id="beef", files=(RawFile(path=path.as_posix(), sha256=sha256_of(path)),), scan_date="20300506"
    )
    write_raw_index(tmp_path / "files.json", index)
    arguments = [
        "--benchmark",
        "mine",
        "--case",
        "c0ffee",
        "--files",
        str(tmp_path / "files.json"),
        "--out",
        str(tmp_path / "o" / "case.json"),
    ]
    assert ingest_case.main(arguments) == 0
    assert json.loads((tmp_path / "o" / "identity.json").read_text(encoding="utf-8"))["scan_date"] == "20300506"
    assert index.source_sha256 != replace(index, scan_date="20300507").source_sha256


@pytest.mark.parametrize(
    ("row", "match"),
    [
        ("a.nii.gz,one,,,06.05.2030", "line 2, column date: expected a day as YYYY-MM-DD"),
        ("a.nii.gz,one,,,2030-02-30", "line 2, column date: expected a day as YYYY-MM-DD"),
        ("../source/a.nii.gz,one,,,", "line 2: the path is not in the folder"),
        ("/etc/hostname,one,,,", "line 2: the path is not in the folder"),
        ("a.nii.gz/../b.nii.gz,one,,,", "line 2: the path is not in the folder"),
        ("a.nii.gz,one,,,2030-01-01\nb.nii.gz,one,,,2030-01-02", "one case has 2 different days"),
    ],
)
def test_a_wrong_row_of_the_table_is_refused_in_one_line(tmp_path: Path, row: str, match: str) -> None:
    for name in ("a", "b"):
        write_nifti_file(tmp_path / "source" / f"{name}.nii.gz", head_voxels())
    (tmp_path / "source" / "files.csv").write_text(f"path,case,patient,sequence,date\n{row}\n", encoding="utf-8")
    with pytest.raises(ConfigError, match=match):
        list_cases(tmp_path / "source", keyed_pseudonyms(b"k" * 32))


def test_files_are_known_by_what_they_hold_and_not_by_their_names(tmp_path: Path) -> None:
    """DICOM named .nii.gz, NIfTI named .dcm and with no suffix: all are used for what they are."""
    files = write_series(tmp_path / "raw", suffix=".nii.gz")
    nifti = write_nifti_file(tmp_path / "raw" / "x_T2w.nii.gz", head_voxels())
    as_dicom = nifti.rename(tmp_path / "raw" / "x_T2w.dcm")
    plain = tmp_path / "raw" / "y_FLAIR"
    plain.write_bytes(gzip.decompress(as_dicom.read_bytes()))
    case = ingest(tmp_path, [*files, as_dicom, plain])
    assert {series.sequence for series in case.series} == {Sequence.T1W, Sequence.T2W, Sequence.FLAIR}


def zip_of(*names: str) -> bytes:
    """Return a zip archive with files of some names."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for name in names:
            archive.writestr(name, "content")
    return stream.getvalue()


def pair_header(magic: bytes, *, big: bool = False) -> bytes:
    """Return the header of a scan in two files."""
    return struct.pack(">i" if big else "<i", 348).ljust(344, b"\0") + magic


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("scan_T1w.nii.gz", b"", "empty file (0 bytes)"),
        ("scan_T1w.nii", b"just a text", "named as NIfTI, but it holds none (damaged, or another format)"),
        ("scan_T1w.nii.gz", gzip.compress(b"just a text", mtime=0), "named as NIfTI, but it holds none (damaged, or another format)"),
        ("scan_T1w.nii.gz", b"\x1f\x8b\x08 broken", "named as NIfTI, but it holds none (damaged, or another format)"),
        ("study.zip", b"PK\x03\x04rest", "an archive or a compressed file: unpack it beside the others"),
        ("study.tar.gz", gzip.compress(b"x" * 1000, mtime=0), "an archive or a compressed file: unpack it beside the others"),
        ("letter.docx", zip_of("[Content_Types].xml"), "an office document or table: save a note as .txt, a record as record.csv"),
        ("table.xlsx", zip_of("docProps/app.xml", "xl/workbook.xml"), "an office document or table"),
        ("table.ods", zip_of("mimetype", "content.xml"), "an office document or table"),
        ("letter.doc", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + b"\0" * 600, "an office document or table"),
        ("study.zip", zip_of("IM0001"), "an archive or a compressed file: unpack it beside the others"),
        ("scan.mgz", gzip.compress(b"\0\0\0\1" + b"\0" * 600, mtime=0), "a scan in another format (MGH): convert it to NIfTI"),
        ("scan.nrrd", b"NRRD0004\n", "a scan in another format (NRRD): convert it to NIfTI, or use its DICOM files"),
        (
            "tiny.mnc",
            b"CDF\x01" + b"\0" * 600,
            "a scan in another format (MINC): convert it to NIfTI, or use its DICOM files; mnc2nii converts it",
        ),
        ("tiny.mnc", b"\x89HDF\r\n\x1a\n" + b"\0" * 600, "(MINC)"),
        ("a+orig.HEAD", b"\ntype = string-attribute\n", "(AFNI): convert it to NIfTI, or use its DICOM files; 3dAFNItoNIFTI of AFNI"),
        ("a+orig.BRIK", b"\1\2" * 300, "(AFNI)"),
        ("a+tlrc.BRIK.gz", gzip.compress(b"\1\2" * 300, mtime=0), "(AFNI)"),
        ("dwi.mif", b"mrtrix image\ndim: 4,4,4\n", "(MRtrix)"),
        ("dwi.mif.gz", gzip.compress(b"mrtrix image\ndim: 4,4,4\n", mtime=0), "(MRtrix)"),
        ("pet.v", b"MATRIX72v" + b"\0" * 600, "(ECAT)"),
        ("scan.rec", b"\1\2" * 300, "(PAR/REC): convert it to NIfTI, or use its DICOM files; dcm2niix converts it"),
        ("scan.hdr", pair_header(b"\0" * 4), "(Analyze), which does not say which side is left: use its DICOM files"),
        ("scan.hdr", pair_header(b"\0" * 4, big=True), "(Analyze)"),
        ("scan.hdr", pair_header(b"ni1\0"), "NIfTI in two files (.hdr and .img): convert it to one .nii; fslchfiletype of FSL does it"),
        ("scan.hdr.gz", gzip.compress(pair_header(b"ni1\0"), mtime=0), "NIfTI in two files"),
        ("scan.hdr", struct.pack("<i", 540) + b"ni2\0\r\n\x1a\n" + b"\0" * 532, "NIfTI in two files"),
        ("scan.img", b"\1\2" * 300, "not a scan (neither readable DICOM nor NIfTI)"),
        ("slice.dcm", b"Patient: Vandermeer", "not a scan (neither readable DICOM nor NIfTI)"),
        ("slice.dcm", b"\0" * 128 + b"DICM" + b"\xff" * 50, ""),
    ],
)
def test_what_is_no_scan_is_set_aside_and_the_rest_goes_on(tmp_path: Path, name: str, content: bytes, reason: str) -> None:
    good = write_nifti_file(tmp_path / "raw" / "good_T2w.nii.gz", head_voxels())
    (tmp_path / "raw" / name).write_bytes(content)
    case = ingest(tmp_path, [good, tmp_path / "raw" / name])
    assert case.state is State.OK
    assert case.fates[1].fate == "set_aside"
    assert reason in case.fates[1].reason
    assert "Vandermeer" not in case.fates[1].reason
    found = find_cases(tmp_path / "raw")
    assert reason in found.left_out[tmp_path / "raw" / name]


@pytest.mark.parametrize(("magic", "reason"), [(b"ni1\0", "NIfTI in two files"), (b"\0" * 4, "Analyze")])
@pytest.mark.parametrize(("header", "voxels"), [("s.hdr", "s.img"), ("S.HDR", "S.IMG"), ("s.hdr.gz", "s.img.gz")])
def test_the_voxels_of_a_scan_in_two_files_are_named_by_its_header(
    tmp_path: Path, magic: bytes, reason: str, header: str, voxels: str
) -> None:
    pack = gzip.compress if header.endswith(".gz") else bytes
    (tmp_path / header).write_bytes(pack(pair_header(magic)))
    (tmp_path / voxels).write_bytes(pack(b"\1\2" * 300))
    assert reason in read_raw_file(1, tmp_path / voxels).why_not


@pytest.mark.skipif(not os.environ.get("NMB_FOUND_SCANS"), reason="NMB_FOUND_SCANS names no folder of scans")
def test_files_of_other_programs_are_named_for_what_they_are() -> None:
    folder = Path(os.environ["NMB_FOUND_SCANS"]) / "other-formats"
    reasons = {path.name: read_raw_file(1, path).why_not for path in folder.iterdir()}
    words = {
        "analyze.hdr": "Analyze", "example4d+orig.BRIK.gz": "AFNI", "example4d+orig.HEAD": "AFNI", "ras.hdr": "NIfTI in two files",
        "ras.img": "NIfTI in two files", "test.mgz": "MGH", "tiny.mnc": "MINC",
    }  # fmt: skip
    assert {name: word for name, word in words.items() if word not in reasons[name]} == {}


@pytest.mark.parametrize(
    ("name", "fields"),
    [("a_T2starw", {"EchoTime": [0.005, 0.01]}), ("a_multi-echo_SWI", {}), ("sub-01_MEGRE", {"EchoTime": [0.005, 0.01]})],
)
def test_echoes_are_no_volumes_without_b_values(tmp_path: Path, name: str, fields: dict[str, object]) -> None:
    path = write_nifti_file(tmp_path / "raw" / f"{name}.nii.gz", np.stack([head_voxels()] * 2, axis=3))
    beside = path.with_name(f"{name}.json")
    beside.write_text(json.dumps(fields), encoding="utf-8")
    reason = ingest(tmp_path, [path, beside]).reason
    assert "a series of 2 echoes: store one of them as a scan of its own" in reason


def test_tables_of_a_bids_data_set_are_no_sidecars(tmp_path: Path) -> None:
    source = bids(tmp_path / "source")
    names = ("sub-01/ses-a/sub-01_ses-a_scans.json", "sub-01/ses-a/sub-01_ses-a_scans.tsv", "sub-01/sub-01_sessions.tsv",
             "sub-01/sub-01_sessions.json", "sub-02/sub-02_task-rest_run-1_events.tsv", "task-rest_events.json", "participants.json",
             "sub-02/func/sub-02_task-rest_physio.tsv.gz")  # fmt: skip
    for name in names:
        (source / name).parent.mkdir(exist_ok=True)
        (source / name).write_text("{}", encoding="utf-8")
    left_out = find_cases(source).left_out
    assert {left_out[source / name] for name in names} == {"metadata of a BIDS data set"}


def test_voxels_that_cannot_be_shown_are_a_reason_and_the_rest_goes_on(tmp_path: Path) -> None:
    raw = tmp_path / "raw"
    voxels = head_voxels().astype(np.float32)
    holes, endless = voxels.copy(), voxels.copy()
    holes[10:12, 10, 10], endless[5, 5, 5] = np.nan, np.inf
    files = [
        write_nifti_file(raw / "a_T1w.nii.gz", voxels),
        write_nifti_file(raw / "b_T1w.nii.gz", holes),
        write_nifti_file(raw / "c_T1w.nii.gz", endless),
        write_nifti_file(raw / "d_T1w.nii.gz", np.full_like(voxels, 5)),
        write_nifti_file(raw / "e_T1w.nii.gz", np.stack([voxels, voxels], axis=3)),
        write_nifti_file(raw / "f_T1w.nii.gz", voxels[:, :, :1]),
    ]
    cut = write_nifti_file(raw / "g_T1w.nii.gz", voxels)
    cut.write_bytes(cut.read_bytes()[:-2000])
    case = ingest(tmp_path, [*files, cut])
    assert [series.series_id for series in case.series] == ["series-01"]
    total = voxels.size
    assert [fate.reason.partition(": ")[2] for fate in case.fates[1:]] == [
        f"2 of {total} voxels are no numbers (NaN or infinite); write 0 where they are background and list the cases again",
        f"1 of {total} voxels are no numbers (NaN or infinite); write 0 where they are background and list the cases again",
        "all voxels are equal; the scan shows nothing",
        "a series of 2 volumes that is no diffusion scan",
        "not a grey volume (a single picture, or colours)",
        "damaged NIfTI file",
    ]


@pytest.mark.parametrize(
    ("fields", "flags"),
    [
        ({"SpacingBetweenSlices": 7.0, "ImageOrientationPatientDICOM": [1, 0, 0, 0, 1, 0]}, ()),
        ({"SpacingBetweenSlices": -7.0, "ImageOrientationPatientDICOM": [0, 1, 0, 0, 0, -1]}, ()),
        ({"SpacingBetweenSlices": 5.6}, ("sidecar_geometry_disagrees",)),
        ({"ImageOrientationPatientDICOM": [1, 0, 0, 0, 0.866, 0.5]}, ("sidecar_geometry_disagrees",)),
        ({"SpacingBetweenSlices": "7", "ImageOrientationPatientDICOM": ["1", 0, 0, 0, 1, 0]}, ()),
        ({"SpacingBetweenSlices": None, "ImageOrientationPatientDICOM": 6}, ()),
    ],
)
def test_a_sidecar_that_contradicts_the_geometry_flags_the_scan(tmp_path: Path, fields: dict[str, object], flags: tuple[str, ...]) -> None:
    path = write_nifti_file(tmp_path / "raw" / "a_T1w.nii.gz", head_voxels())
    beside = path.with_name("a_T1w.json")
    beside.write_text(json.dumps(fields), encoding="utf-8")
    assert ingest(tmp_path, [path, beside]).series[0].flags == flags


@pytest.mark.parametrize(("chosen", "spacing"), [(None, None), ("sform", 7.0), ("pixdim", 5.0)])
def test_voxel_sizes_are_chosen_once_for_a_benchmark(tmp_path: Path, chosen: str | None, spacing: float | None) -> None:
    path = write_nifti_file(tmp_path / "raw" / "a_T1w.nii", head_voxels())
    with path.open("r+b") as file:
        file.seek(76 + 12)  # pixdim[3]
        file.write(np.float32(5.0).tobytes())
    config = write_config(tmp_path / "config", tmp_path / "raw", **({"voxel_sizes": chosen} if chosen else {}))
    out = tmp_path / "ingested" / "case.json"
    command = ["--benchmark", "mine", "--case", "c0ffee", "--files", str(write_index(tmp_path, [path])), "--out", str(out)]
    assert ingest_case.main([*command, *settings(**load_benchmark(config, "mine").reading)]) == 0
    case = read_case(out)
    if spacing is None:
        assert "3.5 x 3.5 x 7 mm by the sform (code 1), 3.5 x 3.5 x 5 mm by pixdim" in case.reason
    else:
        assert case.series[0].quality["spacing_mm"] == spacing


T2_LIKE, T1_LIKE = {"EchoTime": 0.1, "RepetitionTime": 5.0}, {"EchoTime": 0.01, "RepetitionTime": 0.5}


def say(path: Path, **told: float) -> None:
    """Write a sidecar."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(told), encoding="utf-8")


def two_subjects(root: Path) -> Path:
    """A BIDS data set of two subjects, one with a session; all sidecars are inherited."""
    write_nifti_file(root / "sub-01" / "ses-a" / "anat" / "sub-01_ses-a_T1w.nii.gz", head_voxels())
    write_nifti_file(root / "sub-02" / "anat" / "sub-02_T1w.nii.gz", head_voxels())
    (root / "dataset_description.json").write_text('{"Name": "x", "BIDSVersion": "1.10.0"}', encoding="utf-8")
    return root


def flags_of(source: Path, work: Path, study: str) -> tuple[tuple[str, ...], int]:
    """Return the flags of the only scan of a case, listed and ingested, and the number of used files."""
    case = ingest(work / study.replace("/", "-"), [scan.path for scan in case_of(source, study).scans])
    return case.series[0].flags, case.raw_files["used"]


def test_a_scan_inherits_what_a_sidecar_above_it_says(tmp_path: Path) -> None:
    """From the root of a BIDS data set, the folder of the subject and that of the session."""
    source = two_subjects(tmp_path / "source")
    assert flags_of(source, tmp_path / "none", "sub-02") == ((), 1)
    say(source / "T1w.json", **T2_LIKE)
    assert {study: flags_of(source, tmp_path / "root", study) for study in ("sub-01/ses-a", "sub-02")} == {
        "sub-01/ses-a": (("words_and_physics_disagree",), 2), "sub-02": (("words_and_physics_disagree",), 2),
    }  # fmt: skip
    assert source / "T1w.json" not in find_cases(source).left_out


@pytest.mark.parametrize(
    "nearer", ["sub-01/sub-01_T1w.json", "sub-01/ses-a/sub-01_ses-a_T1w.json", "sub-01/ses-a/anat/sub-01_ses-a_T1w.json"]
)
def test_the_nearest_sidecar_wins_key_by_key(tmp_path: Path, nearer: str) -> None:
    source = two_subjects(tmp_path / "source")
    say(source / "T1w.json", **T2_LIKE)
    say(source / nearer, **T1_LIKE)
    assert flags_of(source, tmp_path / "near", "sub-01/ses-a") == ((), 3)
    assert flags_of(source, tmp_path / "far", "sub-02") == (("words_and_physics_disagree",), 2)
    say(source / nearer, EchoTime=0.1)
    say(source / "T1w.json", EchoTime=0.01, RepetitionTime=5.0)
    assert flags_of(source, tmp_path / "both", "sub-01/ses-a")[0] == ("words_and_physics_disagree",)


def test_a_sidecar_above_is_inherited_by_scans_of_its_kind_alone(tmp_path: Path) -> None:
    source = two_subjects(tmp_path / "source")
    for name in ("T2w.json", "acq-fast_T1w.json", "task-rest_bold.json", "participants.json", "sub-02/sub-01_T1w.json"):
        say(source / name, **T2_LIKE)
    found = find_cases(source)
    assert [len(case.scans) for case in found.cases] == [1, 1]
    assert {path.relative_to(source).as_posix(): reason for path, reason in found.left_out.items()} == {
        **dict.fromkeys(("T2w.json", "acq-fast_T1w.json", "dataset_description.json", "participants.json", "task-rest_bold.json"), "metadata of a BIDS data set"),
        "sub-02/sub-01_T1w.json": "gradients or a sidecar without their scan",
    }  # fmt: skip


def test_without_a_data_set_nothing_is_inherited_and_a_note_at_the_root_is_no_ones(tmp_path: Path) -> None:
    source = two_subjects(tmp_path / "source")
    say(source / "T1w.json", **T2_LIKE)
    (source / "note.txt").write_text(NOTE, encoding="utf-8")
    found = find_cases(source)
    assert [len(case.notes) for case in found.cases] == [0, 0]
    (source / "dataset_description.json").unlink()
    found = find_cases(source)
    assert [len(case.scans) for case in found.cases] == [1, 1]
    assert found.left_out[source / "T1w.json"] == "gradients or a sidecar without their scan"


def test_gradients_and_sidecars_without_their_scan_are_named(tmp_path: Path) -> None:
    raw = tmp_path / "raw"
    good = write_nifti_file(raw / "good_T2w.nii.gz", head_voxels())
    (raw / "other.bval").write_text("0 1000", encoding="ascii")
    (raw / "other.json").write_text("{}", encoding="ascii")
    case = ingest(tmp_path, [good, raw / "other.bval", raw / "other.json"])
    assert reasons(case) == {"gradients or a sidecar without their scan"}
    assert set(find_cases(raw).left_out.values()) == {"gradients or a sidecar without their scan"}


def test_a_dicom_file_with_the_name_of_a_note_is_a_scan(tmp_path: Path) -> None:
    write_series(tmp_path / "raw", suffix=".txt")
    (tmp_path / "raw" / "note.txt").write_text(NOTE, encoding="utf-8")
    (case,) = find_cases(tmp_path / "raw").cases
    assert (len(case.scans), len(case.notes)) == (8, 1)
