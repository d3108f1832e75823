"""The review of a complete run: every case has its sheet, the audit explains its counts, and data of patients wait for a person."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from conftest import NMB
from neuralmedbench.deid.audit import OTHER
from neuralmedbench.files.cases import read_audit, read_case

pytestmark = pytest.mark.workflow

Snakemake = Callable[..., subprocess.CompletedProcess[str]]
PROMPTS = ("--configfile", "config/test.yaml", "--", "data/prompts/demo-tiny.parquet")
MAX_SHEET_BYTES = 450_000


def test_every_case_has_a_sheet_of_moderate_size_with_all_its_pictures(finished_run: Path) -> None:
    cases = sorted((finished_run / "data" / "slices" / "demo-tiny").glob("sub-*/case.json"))
    assert len(cases) == 2
    for path in cases:
        sheet = finished_run / "data" / "reviews" / "demo-tiny" / "sheets" / f"{path.parent.name}.html"
        text = sheet.read_text(encoding="utf-8")
        series = len(read_case(path).series)
        # preview, surface, rim, planes, chosen pictures of every series, and a checkerboard of every series but the reference
        assert text.count("data:image/png;base64,") == 6 * series - 1
        assert f"{series} are used" in text
        assert sheet.stat().st_size < MAX_SHEET_BYTES
        links = re.findall(r'href="([^"]+\.png)"', text)
        assert len(links) == len(read_case(path).slices)
        assert all((sheet.parent / link).is_file() for link in links)


def test_every_check_of_the_audit_has_words_and_the_tools_have_versions(finished_run: Path) -> None:
    audit = read_audit(finished_run / "data" / "deidentified" / "demo-tiny" / "audit.json")
    assert [check for check, words in audit.looked_for.items() if words == OTHER] == []
    assert set(audit.looked_for) == set(audit.checks)
    assert {"pydicom", "dcm2niix", "SimpleITK"} <= set(audit.tools)


def test_patients_data_stop_at_the_gate_until_a_person_signed_and_go_on_without_the_case_that_was_taken_out(
    finished_run: Path, run_snakemake: Snakemake, tmp_path: Path
) -> None:
    folder = tmp_path / "project"
    shutil.copytree(finished_run, folder)
    config = folder / "config" / "benchmarks" / "demo-tiny.yaml"
    config.write_text(config.read_text().replace("subjects: phantom", "subjects: patient"))
    # the scans are not de-identified again: the same files, now of patients
    cases = [path.relative_to(folder).as_posix() for path in sorted((folder / "data/deidentified/demo-tiny").glob("sub-*/case.json"))]
    touched = run_snakemake(folder, "--configfile", "config/test.yaml", "--touch", "--", *cases)
    assert touched.returncode == 0, touched.stderr[-2000:]
    stopped = run_snakemake(folder, *PROMPTS)
    assert stopped.returncode != 0
    assert "demo-tiny: de-identification waits for a person: open data/reviews/demo-tiny/review.html" in stopped.stdout + stopped.stderr

    page = (folder / "data" / "reviews" / "demo-tiny" / "review.html").read_text(encoding="utf-8")
    digits = re.search(r"--digest ([0-9a-f]{12})", page)
    assert digits
    kept, taken_out = sorted(json.loads((folder / "data" / "reviews" / "demo-tiny" / "review.json").read_text())["cases"])
    command = [*NMB, "deid", "sign", "--benchmark", "demo-tiny", "--reviewer", "AB", "--digest", digits[1]]
    undecided = subprocess.run([*command, "--accept", kept], cwd=folder, capture_output=True, text=True, check=False)
    assert "1 cases are undecided" in undecided.stderr
    signed = subprocess.run(
        [*command, "--accept", kept, "--exclude", f"{taken_out}=poor_pictures"], cwd=folder, capture_output=True, text=True, check=False
    )
    assert signed.returncode == 0, signed.stderr

    done = run_snakemake(folder, *PROMPTS)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
    audit = read_audit(folder / "data" / "deidentified" / "demo-tiny" / "audit.json")
    assert (audit.state, set(audit.covered.values())) == ("passed", {kept})
    flow = {
        row["case_id"]: row["reason"] for row in json.loads((folder / "data" / "slices" / "demo-tiny" / "flow.json").read_text())["cases"]
    }
    assert flow == {kept: "", taken_out: "review: poor pictures"}
