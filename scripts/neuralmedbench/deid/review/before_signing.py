"""Checks before a signature: the sheets show the current data, and excluded cases are entered in the case table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from neuralmedbench.config.benchmark import BenchmarkConfig
from neuralmedbench.deid.audit import AuditRules, covered_files
from neuralmedbench.deid.review.sheet import stages_of
from neuralmedbench.deid.review.signature import reviewed_files
from neuralmedbench.deid.review.write import current_files, stage_folders
from neuralmedbench.errors import DeidentificationError
from neuralmedbench.files.cases import case_table, read_audit, read_case_table, read_pictures, write_case_table
from neuralmedbench.files.digests import sha256_of
from neuralmedbench.records.case import State
from neuralmedbench.records.review import ExcludeReason, ReviewedFiles

TABLE_WORDS = "review"
"""Prefix of the reason in the case table."""


def read_decisions(entries: Sequence[str], config: BenchmarkConfig) -> dict[str, ExcludeReason]:
    """Read `CASE=REASON` entries; DeidentificationError for an unknown reason, or a benchmark without cases."""
    if entries and not config.has_cases:
        message = "single pictures cannot be excluded here: take them out of the table of the data set, and run the pipeline again"
        raise DeidentificationError(message)
    excluded: dict[str, ExcludeReason] = {}
    for entry in entries:
        case, _, reason = entry.partition("=")
        if reason not in {known.value for known in ExcludeReason}:
            message = f"--exclude {case}: give one of the reasons {', '.join(known.value for known in ExcludeReason)}, as CASE=REASON"
            raise DeidentificationError(message)
        excluded[case] = ExcludeReason(reason)
    return excluded


def check_up_to_date(sheets: ReviewedFiles, config: BenchmarkConfig, config_folder: Path, data: Path) -> None:
    """Refuse a signature if the sheets do not show the current data.

    Parameters
    ----------
    sheets : ReviewedFiles
        Files shown in the sheets.
    config : BenchmarkConfig
        The benchmark.
    config_folder, data : Path
        Folders of the configuration and of the data.

    Raises
    ------
    DeidentificationError
        If the audit failed, the sheets are older than the data, or a file differs from its record.
    """
    name = sheets.benchmark
    folder = data / "deidentified" / name
    audit = read_audit(folder / "audit.json")
    if audit.state == "failed":
        message = f"{name}: the audit failed ({audit.reason}); a signature cannot change that"
        raise DeidentificationError(message)
    if config.has_cases:
        rows = read_case_table(case_table(config_folder, name))
        cases = [row.case_id for row in rows if not row.exclude]
        now = current_files(
            AuditRules(benchmark=name, profile=config.profile, subjects=config.subjects, views=config.view_rules), cases, data
        )
        changed = _changed_files(name, list(now.cases), data)
    else:
        pictures = [picture for picture in read_pictures(folder / "pictures.json").pictures if picture.state is State.OK]
        now = reviewed_files(name, config.profile, {picture.image_id: picture.sha256 for picture in pictures})
        changed = sum(sha256_of(folder / picture.path) != picture.sha256 for picture in pictures)
    # the records must be those of the sheets, and the files those of the records
    if now.digest != sheets.digest:
        message = f"{name}: the sheets are older than the data: run the pipeline again, and look at what changed"
        raise DeidentificationError(message)
    if changed:
        message = f"{name}: {changed} files are not those that were shown: they were changed by hand; run their stage again"
        raise DeidentificationError(message)


def _changed_files(benchmark: str, cases: Sequence[str], data: Path) -> int:
    """Count covered files and chosen slices that are missing or differ from their records."""
    changed = 0
    for case in cases:
        stages = stages_of(case, stage_folders(data, benchmark))
        expected = {stages.clean.folder / path: digest for path, digest in covered_files(stages.clean.case).items()}
        expected |= {stages.cut.folder / entry.path: entry.sha256 for entry in stages.cut.case.slices}
        changed += sum(not path.exists() or sha256_of(path) != digest for path, digest in expected.items())
    return changed


def exclude_cases(table: Path, excluded: Mapping[str, ExcludeReason]) -> None:
    """Enter excluded cases and their reasons in the case table, so that later stages skip them."""
    if excluded:
        rows = read_case_table(table)
        why = {case: f"{TABLE_WORDS}: {reason.value.replace('_', ' ')}" for case, reason in excluded.items()}
        write_case_table(table, [replace(row, exclude=why.get(row.case_id, row.exclude)) for row in rows])
