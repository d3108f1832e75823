"""The audit: a pass token that only clean, and for patients signed, data gets."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import gather_audit
import sign_review
from neuralmedbench.deid.coverage import require_covered
from neuralmedbench.errors import DeidentificationError
from neuralmedbench.io.cases import CaseRow, read_audit, write_case, write_case_table
from neuralmedbench.io.files import write_text
from neuralmedbench.records.case import Audit, CaseRecord, Sequence, Series, State

PIXEL = bytes.fromhex(
    "89504e470d0a1a0a0000000d49484452000000010000000108000000003a7e9b550000000a49444154789c6360000000020001e221bc330000000049454e44ae426082"
)


def write_cases(folder: Path, *, note: str = "A note with <script>.", leaks: int = 0) -> None:
    """Write one de-identified case and one that was kept back."""
    good = folder / "sub-c1"
    write_text(good / "anat" / "sub-c1_T1w.nii.gz", "voxels")
    write_text(good / "text" / "note-01.txt", note)
    (good / "review").mkdir(exist_ok=True)
    (good / "review" / "series-01.png").write_bytes(PIXEL)
    series = Series(series_id="series-01", path="anat/sub-c1_T1w.nii.gz", modality="MR", sequence=Sequence.T1W)
    base = CaseRecord(benchmark="mine", case_id="c1", patient_id="p1", stage="deidentify")
    write_case(
        good / "case.json",
        CaseRecord(**{**base.__dict__, "series": (series,), "notes": ("text/note-01.txt",), "checks": {"leaks": leaks, "dates": 3}}),
    )
    bad = {**base.__dict__, "case_id": "c2", "state": State.QUARANTINED, "quarantined_by": "ingest", "reason": "no usable series"}
    (folder / "sub-c2").mkdir(exist_ok=True)
    write_case(folder / "sub-c2" / "case.json", CaseRecord(**bad))


def write_table(path: Path) -> Path:
    """Write the case table: the two cases, and one that a person excluded."""
    rows = [
        CaseRow(case_id=case, patient_id=f"p{case}", source_sha256="0", sequence_overrides={}, exclude=why)
        for case, why in (("c2", ""), ("c1", ""), ("gone", "withdrawn"))
    ]
    write_case_table(path, rows)
    return path


def gather(tmp_path: Path, subjects: str, **settings: object) -> Audit:
    folder = tmp_path / "deidentified" / "mine"
    write_cases(folder, **settings)  # type: ignore[arg-type]
    table = write_table(tmp_path / "mine.cases.tsv")
    arguments = [
        "--benchmark",
        "mine",
        "--profile",
        "pseudonymised",
        "--subjects",
        subjects,
        "--table",
        str(table),
        "--folder",
        str(folder),
    ]
    out = [
        "--signed",
        str(tmp_path / "reviews" / "mine.json"),
        "--out-review",
        str(folder / "review.html"),
        "--out",
        str(folder / "audit.json"),
    ]
    assert gather_audit.main([*arguments, *out]) == 0
    return read_audit(folder / "audit.json")


def sign(tmp_path: Path, digest: str) -> int:
    return sign_review.main(["--benchmark", "mine", "--reviewer", "AB", "--digest", digest, "--data", str(tmp_path)])


def shown_digest(tmp_path: Path) -> str:
    found = re.search(r"--digest ([0-9a-f]{12})", (tmp_path / "deidentified" / "mine" / "review.html").read_text(encoding="utf-8"))
    assert found
    return found[1]


@pytest.mark.parametrize("subjects", ["phantom", "public"])
def test_phantoms_and_public_data_pass_by_themselves(tmp_path: Path, subjects: str) -> None:
    audit = gather(tmp_path, subjects)
    assert (audit.state, audit.leaks, audit.checks) == ("passed", 0, {"dates": 3})
    assert list(audit.covered.values()) == ["c1"]
    assert audit.flow == {"listed": 2, "passed": 1, "quarantined_ingest": 1, "quarantined_deidentify": 0}
    require_covered(audit, audit.covered)


def test_patients_wait_for_a_signature_and_a_change_makes_it_void(tmp_path: Path) -> None:
    audit = gather(tmp_path, "patient")
    assert audit.state == "pending"
    with pytest.raises(DeidentificationError, match=r"review\.html.*sign with the command"):
        require_covered(audit, [])
    with pytest.raises(DeidentificationError, match="not that of the data"):
        sign(tmp_path, "0" * 12)
    assert sign(tmp_path, shown_digest(tmp_path)) == 0
    assert gather(tmp_path, "patient").state == "passed"
    changed = gather(tmp_path, "patient", note="Another note.")
    assert (changed.state, "sign it again" in changed.reason) == ("pending", True)


def test_a_case_that_was_excluded_since_does_not_hinder_the_signature(tmp_path: Path) -> None:
    gather(tmp_path, "patient")
    gone = tmp_path / "deidentified" / "mine" / "sub-gone"
    write_text(gone / "text" / "note-01.txt", "A note of a case that the table excludes.")
    write_case(gone / "case.json", CaseRecord(benchmark="mine", case_id="gone", patient_id="p9", stage="deidentify"))
    assert sign(tmp_path, shown_digest(tmp_path)) == 0
    assert gather(tmp_path, "patient").state == "passed"


def test_a_leak_fails_the_audit_and_no_signature_helps(tmp_path: Path) -> None:
    audit = gather(tmp_path, "patient", leaks=2)
    assert (audit.state, audit.covered) == ("failed", {})
    with pytest.raises(DeidentificationError, match="failed"):
        sign(tmp_path, shown_digest(tmp_path))
    with pytest.raises(DeidentificationError, match="2 identifying values"):
        require_covered(audit, [])


def test_what_the_audit_does_not_cover_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DeidentificationError, match="1 scans or pictures are not covered"):
        require_covered(gather(tmp_path, "public"), ["f" * 64])


def test_the_review_sheet_shows_texts_escaped_and_loads_nothing(tmp_path: Path) -> None:
    gather(tmp_path, "patient")
    page = (tmp_path / "deidentified" / "mine" / "review.html").read_text(encoding="utf-8")
    assert "A note with &lt;script&gt;." in page
    assert "<script" not in page
    assert "data:image/png;base64," in page
    assert not re.search(r"""(?:src|href)=["']?https?:""", page)
