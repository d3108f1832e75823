"""What is checked before a signature counts: the sheets are as new as the data, the case table knows who was taken out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from neuralmedbench.config.benchmark import BenchmarkConfig
from neuralmedbench.deid.audit import AuditRules, covered_files
from neuralmedbench.deid.review.sheet import stages_of
from neuralmedbench.deid.review.signature import reviewed_files
from neuralmedbench.deid.review.write import shown_now, stage_folders
from neuralmedbench.errors import DeidentificationError
from neuralmedbench.files.cases import read_audit, read_case_table, read_pictures, write_case_table
from neuralmedbench.files.digests import sha256_of
from neuralmedbench.records.case import State
from neuralmedbench.records.review import ExcludeReason, ReviewedFiles

TABLE_WORDS = "review"
"""How the reason begins that stands in the case table."""


def read_decisions(entries: Sequence[str], config: BenchmarkConfig) -> dict[str, ExcludeReason]:
    """Read `CASE=REASON` entries; DeidentificationError for a reason that is not known, or a benchmark that has no cases."""
    if entries and not config.has_cases:
        message = "single pictures cannot be taken out here: take them out of the table of the data set, and run the pipeline again"
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
    """Refuse a signature under sheets that do not show the data as they are now.

    Parameters
    ----------
    sheets : Shown
        What the sheets show.
    config : BenchmarkConfig
        The benchmark.
    config_folder, data : Path
        Folders of the configuration and of the data.

    Raises
    ------
    DeidentificationError
        If the audit failed, the sheets are older than the data, or a file is not the one that its record names.
    """
    name = sheets.benchmark
    folder = data / "deidentified" / name
    audit = read_audit(folder / "audit.json")
    if audit.state == "failed":
        message = f"{name}: the audit failed ({audit.reason}); a signature cannot change that"
        raise DeidentificationError(message)
    if config.has_cases:
        rows = read_case_table(config_folder / "benchmarks" / f"{name}.cases.tsv")
        cases = [row.case_id for row in rows if not row.exclude]
        now = shown_now(AuditRules(benchmark=name, profile=config.profile, subjects=config.subjects), cases, data)
        changed = _changed_files(name, list(now.cases), data)
    else:
        pictures = [picture for picture in read_pictures(folder / "pictures.json").pictures if picture.state is State.OK]
        now = reviewed_files(name, config.profile, {picture.image_id: picture.sha256 for picture in pictures})
        changed = sum(sha256_of(folder / picture.path) != picture.sha256 for picture in pictures)
    if now.digest != sheets.digest:
        message = f"{name}: the sheets are older than the data: run the pipeline again, and look at what changed"
        raise DeidentificationError(message)
    if changed:
        message = f"{name}: {changed} files are not those that were shown: somebody changed them by hand; run their stage again"
        raise DeidentificationError(message)


def _changed_files(benchmark: str, cases: Sequence[str], data: Path) -> int:
    """Count covered files and chosen pictures that are gone or not what the records say."""
    changed = 0
    for case in cases:
        stages = stages_of(case, stage_folders(data, benchmark))
        expected = {stages.clean.folder / path: digest for path, digest in covered_files(stages.clean.case).items()}
        expected |= {stages.cut.folder / entry.path: entry.sha256 for entry in stages.cut.case.slices}
        changed += sum(not path.exists() or sha256_of(path) != digest for path, digest in expected.items())
    return changed


def exclude_cases(table: Path, excluded: Mapping[str, ExcludeReason]) -> None:
    """Write why a reviewer took cases out into the case table, so that they run no further."""
    if excluded:
        rows = read_case_table(table)
        why = {case: f"{TABLE_WORDS}: {reason.value.replace('_', ' ')}" for case, reason in excluded.items()}
        write_case_table(table, [replace(row, exclude=why.get(row.case_id, row.exclude)) for row in rows])
