"""What a person writes into the configuration about private data stands in no shell line, no param, no log and no message."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from conftest import NMB
from fixtures.deid import head_voxels, write_nifti_file
from fixtures.leak import leaks_in
from neuralmedbench.files.cases import read_case_table
from neuralmedbench.recording.metadata import METADATA

pytestmark = pytest.mark.workflow

Snakemake = Callable[..., subprocess.CompletedProcess[str]]
PLANTED = {
    "source": "quenselwing",
    "key_file": "quenselkey",
    "description": "quenselpattern",
    "heading": "quenselheading",
    "reason": "quenselreason",
    "reviewer": "quenselperson",
    "ner_model": "quenselmodel",
}


def write(project: Path, **deidentification: object) -> None:
    """Write a benchmark of own scans that has a planted value in every private key."""
    rule = {"element": "StationName", "action": "remove", "reason": PLANTED["reason"], "reviewer": PLANTED["reviewer"]}
    benchmark = {
        "title": "Mine", "kind": "scans", "axis": "depth", "source": PLANTED["source"], "key_file": PLANTED["key_file"],
        "sequence_map": [{"criteria": {"SeriesDescription": f"{PLANTED['description']}*"}, "sequence": "FLAIR"}],
        "deidentification": {"cut_sections": [PLANTED["heading"]], "elements": [rule], **deidentification},
    }  # fmt: skip
    run = {"benchmarks": ["mine"], "models": ["text"], "graders": ["rubric"]}
    (project / "config/benchmarks/mine.yaml").write_text(yaml.safe_dump(benchmark), encoding="utf-8")
    (project / "config/mine.yaml").write_text(yaml.safe_dump(run), encoding="utf-8")


def test_private_values_of_the_configuration_are_in_no_line_param_log_or_message(project: Path, run_snakemake: Snakemake) -> None:
    write_nifti_file(project / PLANTED["source"] / "p1" / "a_T1w.nii.gz", head_voxels())
    write(project)
    for words in (["--new-key", PLANTED["key_file"]], ["--benchmark", "mine"]):
        listed = subprocess.run([*NMB, "cases", "list", *words], cwd=project, capture_output=True, text=True, check=False)
        assert listed.returncode == 0, listed.stderr
    (case,) = (row.case_id for row in read_case_table(project / "config/benchmarks/mine.cases.tsv"))
    of_run = ("-p", "--configfile", "config/mine.yaml", "--")
    done = run_snakemake(project, *of_run, f"data/deidentified/mine/sub-{case}/case.json")
    assert done.returncode == 0, done.stdout + done.stderr
    write(project, ner_model=PLANTED["ner_model"])
    plan = run_snakemake(project, "-n", *of_run, "data/prompts/mine.parquet")
    assert plan.returncode == 0, plan.stdout + plan.stderr
    assert {"deidentify_case", "build_review", "gather_audit"} <= {
        line.split()[-1].rstrip(":") for line in plan.stdout.splitlines() if "rule " in line
    }
    said = done.stdout + done.stderr + plan.stdout + plan.stderr
    assert [key for key, value in PLANTED.items() if value in said] == []
    made = [path for place in (METADATA, Path("logs"), Path(".snakemake/log")) for path in (project / place).rglob("*") if path.is_file()]
    assert len(made) > 5
    assert leaks_in(made, project, list(PLANTED.values())) == []
