"""Manifest of the pictures of cases without scans."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from neuralmedbench.files.cases import digest_of_files
from neuralmedbench.files.digests import sha256_of
from neuralmedbench.records.case import CaseRecord, PictureFate, PictureManifest, State


def picture_manifest(benchmark: str, stage: str, folder: Path, cases: Sequence[CaseRecord]) -> PictureManifest:
    """Gather the pictures of cases without scans.

    Parameters
    ----------
    benchmark, stage : str
        Names of the benchmark and the stage.
    folder : Path
        Folder of the manifest, with `sub-<case>/case.json` of each case.
    cases : sequence of CaseRecord
        The cases after this stage.

    Returns
    -------
    PictureManifest
        Their pictures, with paths relative to `folder`, the sums of their checks, and the digests of their records.
    """
    digests = {case.case_id: sha256_of(folder / f"sub-{case.case_id}" / "case.json") for case in cases}
    pictures = (picture for case in cases for picture in case.pictures)
    checks: Counter[str] = Counter()
    for case in cases:
        checks.update(case.checks)
    return PictureManifest(
        benchmark=benchmark,
        stage=stage,
        source_sha256=digest_of_files([case.source_sha256 for case in cases]),
        pictures=tuple(replace(one, path=f"sub-{one.case_id}/{one.path}") if one.path else one for one in pictures),
        checks={name: checks[name] for name in sorted(checks)},
        cases=digests,
    )


def count_pictures(pictures: Iterable[PictureFate]) -> dict[str, int]:
    """Count the pictures of a case for `CaseRecord.raw_files`: used ones, and the others by reason."""
    counts = Counter("used" if picture.state is State.OK else picture.reason for picture in pictures)
    return dict(sorted(counts.items()))
