"""The audit passes only clean data, and patients' data only after a signature; it holds checks and counts, never values."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import build_review
import gather_audit
from fixtures.deid import write_config
from fixtures.viewing import FLAIR
from neuralmedbench.cli.deid import sign_review
from neuralmedbench.deid.audit import DESCRIPTIONS, FAMILIES, OTHER, REASONS, describe_check, kind_of_reason
from neuralmedbench.errors import DeidentificationError
from neuralmedbench.files.cases import CaseRow, read_audit, read_case_table, write_case, write_case_table
from neuralmedbench.files.digests import sha256_of
from neuralmedbench.files.json_files import read_json, write_json
from neuralmedbench.prompts.coverage import check_view, require_covered
from neuralmedbench.records.case import Audit, CaseRecord, Plane, Sequence, Series, Slice, State, Tile
from neuralmedbench.records.views import SliceView
from neuralmedbench.runtime.atomic_write import write_text

OPTIONS = ("113101", "113102")
NOTE = "A note with <script>."
REASON = "series-07: 3 identifying values are left of Vandermeer"


def write_stages(data: Path, *, cases: tuple[str, ...] = ("c1", "c2"), note: str = NOTE, leaks: int = 0, picture: str = "grey") -> None:
    """Write cases as after the three stages, and one quarantined at ingest."""
    for case in cases:
        base = CaseRecord(benchmark="mine", case_id=case, patient_id=f"p{case}", stage="deidentify")
        clean, cut = (data / stage / "mine" / f"sub-{case}" for stage in ("deidentified", "slices"))
        path = f"anat/sub-{case}_T1w.nii.gz"
        write_text(clean / path, f"voxels of {case}")
        write_text(clean / "text" / "note-01.txt", note)
        write_json(clean / "review" / "tools.json", {"pydicom": "3.0.2"})
        series = Series(series_id="series-01", path=path, modality="MR", sequence=Sequence.T1W)
        changed = {"series": (series,), "notes": ("text/note-01.txt",), "checks": {"leaks": leaks, "header_dates": 3}}
        write_case(clean / "case.json", CaseRecord(**{**base.__dict__, **changed}))
        write_text(cut / "png" / "t1w-z+001.png", picture)
        shown = Slice(
            image_id="t1w-z+001", path="png/t1w-z+001.png", sha256=sha256_of(cut / "png" / "t1w-z+001.png"), pixels_sha256="",
            volume_sha256="v", sequence=Sequence.T1W, plane=Plane.AXIAL, index=1, position_mm=1.0, tiles=(Tile(index=1, position_mm=1.0),),
            native_mm_per_px=(1.0, 1.0), mm_per_px=1.0, window=(0.0, 1.0), window_name="own",
        )  # fmt: skip
        write_case(data / "normalised" / "mine" / f"sub-{case}" / "case.json", CaseRecord(**{**base.__dict__, "stage": "normalise"}))
        write_case(cut / "case.json", CaseRecord(**{**base.__dict__, "stage": "slices", "slices": (shown,)}))
    for stage in ("deidentified", "normalised", "slices"):
        bad = CaseRecord(
            benchmark="mine", case_id="bad", patient_id="p9", stage=stage, state=State.QUARANTINED, quarantined_by="ingest", reason=REASON
        )
        write_case(data / stage / "mine" / "sub-bad" / "case.json", bad)


def write_table(config: Path, cases: tuple[str, ...] = ("c2", "c1", "bad")) -> Path:
    """Write the case table: the cases, and one that a person excluded."""
    path = config / "benchmarks" / "mine.cases.tsv"
    rows = [
        CaseRow(case_id=case, patient_id=f"p{case}", source_sha256="0", sequence_overrides={}, exclude=why)
        for case, why in (*((case, "") for case in cases), ("gone", "withdrawn"))
    ]
    path.parent.mkdir(parents=True, exist_ok=True)
    write_case_table(path, rows)
    return path


def gather(root: Path, subjects: str = "patient", *, new_sheets: bool = True, viewer: str = "", **settings: Any) -> Audit:
    """Write the data and run the two gathering commands as the rules do."""
    data, config = (
        root / "data",
        write_config(
            root / "config", root, subjects=subjects, deidentification={"options": list(OPTIONS)}, **({"viewer": viewer} if viewer else {})
        ),
    )
    table = config / "benchmarks" / "mine.cases.tsv"
    if not table.exists():
        write_table(config, (*settings.get("cases", ("c2", "c1")), "bad"))
    if settings or not (data / "deidentified").exists():
        write_stages(data, **settings)
    common = ["--benchmark", "mine", "--config", str(config), "--table", str(table)]
    shown = data / "reviews" / "mine" / "review.json"
    if new_sheets:
        assert build_review.main([*common, "--data", str(data), "--out", str(shown)]) == 0
    folder = data / "deidentified" / "mine"
    places = ["--folder", str(folder), "--shown", str(shown), "--signed", str(data / "reviews" / "mine.json")]
    assert gather_audit.main([*common, *places, "--out", str(folder / "audit.json")]) == 0
    return read_audit(folder / "audit.json")


def sign(root: Path, *arguments: str, digest: str | None = None) -> int:
    """Sign as a person does, by default with the digits shown on the first page."""
    typed = digest or shown_digest(root)
    places = ["--config", str(root / "config"), "--data", str(root / "data")]
    return sign_review.main(["--benchmark", "mine", "--reviewer", "AB", "--digest", typed, *arguments, *places])


def shown_digest(root: Path) -> str:
    """Read the digits off the first page."""
    found = re.search(r"--digest ([0-9a-f]{12})", (root / "data" / "reviews" / "mine" / "review.html").read_text(encoding="utf-8"))
    assert found
    return found[1]


def volume(root: Path, case: str) -> str:
    """Return the digest of a case's scan."""
    return sha256_of(root / "data" / "deidentified" / "mine" / f"sub-{case}" / "anat" / f"sub-{case}_T1w.nii.gz")


@pytest.mark.parametrize("subjects", ["phantom", "public"])
def test_phantoms_and_public_data_pass_by_themselves(tmp_path: Path, subjects: str) -> None:
    audit = gather(tmp_path, subjects)
    assert (audit.state, audit.leaks, audit.checks, audit.options) == ("passed", 0, {"header_dates": 6}, OPTIONS)
    assert audit.flow == {"listed": 3, "passed": 2, "quarantined_ingest": 1, "quarantined_deidentify": 0}
    require_covered(audit, [volume(tmp_path, "c1"), volume(tmp_path, "c2")])
    assert "pass without a signature" in (tmp_path / "data" / "reviews" / "mine" / "review.html").read_text(encoding="utf-8")


def test_every_string_of_an_audit_is_of_a_fixed_vocabulary_or_an_id_or_a_digest(tmp_path: Path) -> None:
    gather(tmp_path)
    sign(tmp_path, "--accept-rest")
    audit = gather(tmp_path)
    written = read_json(tmp_path / "data" / "deidentified" / "mine" / "audit.json")
    words = {*DESCRIPTIONS.values(), *FAMILIES.values(), OTHER, *(kind for kind, _ in REASONS), "other"}
    own = {"mine", "pseudonymised", "patient", "passed", "c1", "c2", *OPTIONS, *Audit.__dataclass_fields__, *audit.flow, *audit.checks}
    pattern = re.compile(r"[0-9a-f]{64}|signed on \d{4}-\d\d-\d\d|pydicom|3\.0\.2")

    def strings(value: Any) -> list[str]:
        if isinstance(value, dict):
            return [text for key, part in value.items() for text in (key, *strings(part))]
        return [text for part in value for text in strings(part)] if isinstance(value, list) else [value] if isinstance(value, str) else []

    assert [text for text in strings(written) if text not in words | own and not pattern.fullmatch(text)] == []
    assert written["reasons"] == {"identifying_values_left": 1}
    assert written["looked_for"] == {"header_dates": DESCRIPTIONS["header_dates"]}


def test_the_audit_covers_scans_and_texts_but_no_files_for_the_reviewer(tmp_path: Path) -> None:
    audit = gather(tmp_path, "public")
    folder = tmp_path / "data" / "deidentified" / "mine" / "sub-c1"
    require_covered(audit, [sha256_of(path) for path in folder.rglob("*") if path.suffix in {".gz", ".txt"}])
    with pytest.raises(DeidentificationError, match="1 scans or pictures are not covered"):
        require_covered(audit, [sha256_of(folder / "review" / "tools.json")])


def test_patients_wait_for_a_signature(tmp_path: Path) -> None:
    audit = gather(tmp_path)
    assert audit.state == "pending"
    with pytest.raises(DeidentificationError, match=r"data/reviews/mine/review\.html.*sign with the command"):
        require_covered(audit, [])
    assert sign(tmp_path, "--accept-rest") == 0
    audit = gather(tmp_path)
    assert (audit.state, audit.flow["excluded_by_review"]) == ("passed", 0)
    require_covered(audit, [volume(tmp_path, "c1"), volume(tmp_path, "c2")])


def test_a_slice_is_shown_on_request_only_as_the_signed_audit_allows(tmp_path: Path) -> None:
    allowed = "{planes: [axial], windows: [own], zooms: [1, 2]}"

    def view(**changes: Any) -> SliceView:
        return SliceView(
            **{"scan": replace(FLAIR, volume_sha256=volume(tmp_path, "c1")), "plane": "axial", "number": 3, "window": "own", **changes}
        )

    pending = gather(tmp_path, viewer=allowed)
    assert pending.state == "pending"
    assert "any slice of these scans" in (tmp_path / "data/reviews/mine/review.html").read_text(encoding="utf-8")
    with pytest.raises(DeidentificationError, match="waits for a person"):
        check_view(pending, view())
    assert sign(tmp_path, "--accept-rest") == 0
    audit = gather(tmp_path, viewer=allowed)
    check_view(audit, view(zoom=2))
    for other in ({"plane": "coronal"}, {"window": "dark"}, {"zoom": 4}):
        with pytest.raises(DeidentificationError, match="its audit allows no"):
            check_view(audit, view(**other))
    with pytest.raises(DeidentificationError, match="not covered"):
        check_view(audit, view(scan=FLAIR))
    # to allow more, or anything at all, is to ask for another signature
    for other_rules in ("{planes: [axial], windows: [own], zooms: [1, 2, 4]}", ""):
        changed = gather(tmp_path, viewer=other_rules)
        assert (changed.state, "sign it again" in changed.reason) == ("pending", True)


def test_an_audit_of_chosen_slices_allows_no_others(tmp_path: Path) -> None:
    audit = gather(tmp_path, "public")
    scan = replace(FLAIR, volume_sha256=volume(tmp_path, "c1"))
    with pytest.raises(DeidentificationError, match="no slices on request"):
        check_view(audit, SliceView(scan=scan, plane="axial", number=3, window="own"))


@pytest.mark.parametrize("change", [{"note": "Another note."}, {"picture": "another picture"}, {"cases": ("c1", "c2", "c3")}])
def test_a_changed_text_a_changed_picture_and_a_new_case_make_the_signature_void(tmp_path: Path, change: dict[str, Any]) -> None:
    gather(tmp_path)
    sign(tmp_path, "--accept-rest")
    assert gather(tmp_path).state == "passed"
    write_table(tmp_path / "config", (*change.get("cases", ("c2", "c1")), "bad"))
    changed = gather(tmp_path, **change)
    assert (changed.state, "sign it again" in changed.reason) == ("pending", True)


def test_withdrawing_a_case_later_does_not_invalidate_the_others(tmp_path: Path) -> None:
    gather(tmp_path)
    sign(tmp_path, "--accept-rest")
    write_table(tmp_path / "config", ("c1", "bad"))
    audit = gather(tmp_path)
    assert (audit.state, set(audit.covered.values())) == ("passed", {"c1"})


def test_a_case_excluded_by_the_reviewer_is_not_covered_and_is_entered_in_the_case_table(tmp_path: Path) -> None:
    gather(tmp_path)
    assert sign(tmp_path, "--exclude", "c2=face_left", "--accept-rest") == 0
    rows = {row.case_id: row.exclude for row in read_case_table(tmp_path / "config" / "benchmarks" / "mine.cases.tsv")}
    assert rows == {"bad": "", "c1": "", "c2": "review: face left", "gone": "withdrawn"}
    audit = gather(tmp_path)
    assert (audit.state, set(audit.covered.values())) == ("passed", {"c1"})
    write_table(tmp_path / "config")  # the reason is removed again
    audit = gather(tmp_path)
    assert (audit.state, audit.flow["excluded_by_review"]) == ("passed", 1)
    with pytest.raises(DeidentificationError, match="exclude in the case table what a reviewer took out"):
        require_covered(audit, [volume(tmp_path, "c2")])


def test_a_review_that_excludes_every_case_fails_the_audit(tmp_path: Path) -> None:
    gather(tmp_path)
    sign(tmp_path, "--exclude", "c1=other", "c2=wrong_side")
    write_table(tmp_path / "config")
    audit = gather(tmp_path)
    assert (audit.state, audit.covered) == ("failed", {})


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "2 cases are undecided"),
        (("--accept", "c1"), r"1 cases are undecided \(first: c2\)"),
        (("--accept", "c7", "--accept-rest"), "c7: not a case of this review"),
        (("--accept", "c1", "--exclude", "c1=other", "--accept-rest"), "both accepted and excluded"),
        (("--exclude", "c1=ugly", "--accept-rest"), "give one of the reasons face_left"),
    ],
)
def test_a_signature_needs_a_decision_for_every_case(tmp_path: Path, arguments: tuple[str, ...], message: str) -> None:
    gather(tmp_path)
    with pytest.raises(DeidentificationError, match=message):
        sign(tmp_path, *arguments)
    assert not (tmp_path / "data" / "reviews" / "mine.json").exists()


@pytest.mark.parametrize("digest", ["0" * 12, "short"])
def test_a_signature_needs_the_digits_of_the_first_page(tmp_path: Path, digest: str) -> None:
    gather(tmp_path)
    with pytest.raises(DeidentificationError, match="does not match"):
        sign(tmp_path, "--accept-rest", digest=digest if digest != "short" else shown_digest(tmp_path)[:11])


def test_sheets_that_are_older_than_the_data_cannot_be_signed(tmp_path: Path) -> None:
    gather(tmp_path)
    gather(tmp_path, new_sheets=False, note="Another note.")
    with pytest.raises(DeidentificationError, match="older than the data"):
        sign(tmp_path, "--accept-rest")


@pytest.mark.parametrize("path", ["deidentified/mine/sub-c1/text/note-01.txt", "slices/mine/sub-c2/png/t1w-z+001.png"])
def test_a_file_that_somebody_changed_by_hand_cannot_be_signed(tmp_path: Path, path: str) -> None:
    gather(tmp_path)
    (tmp_path / "data" / path).write_text("something else", encoding="utf-8")
    with pytest.raises(DeidentificationError, match="1 files are not those that were shown"):
        sign(tmp_path, "--accept-rest")


def test_a_case_that_was_excluded_since_does_not_hinder_the_signature(tmp_path: Path) -> None:
    gather(tmp_path)
    gone = tmp_path / "data" / "deidentified" / "mine" / "sub-gone"
    write_text(gone / "text" / "note-01.txt", "A note of a case that the table excludes.")
    write_case(gone / "case.json", CaseRecord(benchmark="mine", case_id="gone", patient_id="p9", stage="deidentify"))
    assert sign(tmp_path, "--accept-rest") == 0
    assert gather(tmp_path).state == "passed"


def test_a_leak_fails_the_audit_and_no_signature_helps(tmp_path: Path) -> None:
    audit = gather(tmp_path, leaks=1)
    assert (audit.state, audit.covered) == ("failed", {})
    with pytest.raises(DeidentificationError, match="the audit failed"):
        sign(tmp_path, "--accept-rest")
    with pytest.raises(DeidentificationError, match="2 identifying values"):
        require_covered(audit, [])


def test_a_reason_is_counted_by_its_kind_and_every_check_has_a_description() -> None:
    assert kind_of_reason("the face could not be located (the template does not fit the scan)") == "face_not_located"
    assert kind_of_reason("no usable series among 5 files") == "no_usable_series"
    assert kind_of_reason("something new") == "other"
    assert describe_check("faces_removed") == DESCRIPTIONS["faces_removed"]
    assert describe_check("something_new") == OTHER


@pytest.mark.parametrize(
    ("reason", "kind"),
    [
        (
            "series-01: text remains in the pixels after it was hidden: look at the scan, and exclude the case or its series",
            "burned_in_text",
        ),
        ("note 1 of 2 is not where it was listed; put it back, or list the cases again (nmb cases list)", "file_moved"),
        ("file 3 of 9 is not where it was listed; put it back, or list the cases again (nmb cases list)", "file_moved"),
    ],
)
def test_the_kind_of_a_reason_is_that_of_its_sentence(reason: str, kind: str) -> None:
    assert kind_of_reason(reason) == kind
