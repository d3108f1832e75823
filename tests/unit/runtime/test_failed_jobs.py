"""What stopped a run: one line for each failed job, from the logs."""

from __future__ import annotations

from pathlib import Path

import pytest

from neuralmedbench.runtime.failed_jobs import failures, print_failures

SNAKEMAKE = """Shell command: python scripts/build_items.py &> {folder}/items.log
[Mon Nov 23 18:11:43 2026]
Error in rule build_items:
    message: None
    jobid: 0
    input: data/slices/mine/slices.parquet
    output: data/items/mine.parquet
    log: {folder}/items.log (check log file(s) for error details)
    shell:
        python scripts/build_items.py
        (command exited with non-zero exit code)
Error in rule cut_slices:
    message: None
    jobid: 3
    log: {folder}/absent.log (check log file(s) for error details)
    shell:
        python scripts/cut_slices.py
Finished jobid: 2 (Rule: cut_slices)
"""


def test_each_failed_job_has_a_line_with_the_error_of_its_log(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "items.log").write_text("a warning\nDataError: the answers table has 1 rows\n\n", encoding="utf-8")
    (tmp_path / "snakemake.log").write_text(SNAKEMAKE.format(folder=tmp_path), encoding="utf-8")
    assert failures(tmp_path / "snakemake.log") == [
        f"build_items ({tmp_path}/items.log): DataError: the answers table has 1 rows",
        f"cut_slices ({tmp_path}/absent.log): no message; run again with --debug",
    ]
    print_failures([str(tmp_path / "snakemake.log")])
    assert capsys.readouterr().err.splitlines()[1:3] == ["This stopped the run:", failures(tmp_path / "snakemake.log")[0]]


@pytest.mark.parametrize("text", ["", "Finished jobid: 2 (Rule: cut_slices)\n", "Error in rule"])
def test_a_log_without_failed_jobs_names_none(tmp_path: Path, text: str) -> None:
    (tmp_path / "snakemake.log").write_text(text, encoding="utf-8")
    assert failures(tmp_path / "snakemake.log") == []
