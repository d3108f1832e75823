"""Export normalised cases as a BIDS derivative: standard names, unchanged voxels."""

from __future__ import annotations

import gzip
from pathlib import Path

from neuralmedbench.files.bids import write_trace_gradients
from neuralmedbench.files.json_files import write_json
from neuralmedbench.imaging.scans import brain_path, copy_path, read_rigid
from neuralmedbench.records.case import CaseRecord, Sequence, Series, State
from neuralmedbench.runtime.atomic_write import atomic_file

ABOUT = """
Normalised head scans of the benchmark {benchmark}, made from its de-identified scans.
desc-preproc: native grid with its axes in the order L, P, S; the bias field is taken out of T1, T2, FLAIR and PD. Never skull-stripped.
space-reference_desc-preproc: resampled to 2 mm in the space of the case's reference scan, for overlays and measurements only.
desc-brain_mask: brain of the reference scan. Sidecars hold the rigid transform, the display window and the quality numbers.
"""


def export_case(normalised: CaseRecord, source: Path, raw: CaseRecord, out: Path) -> int:
    """Write one case under the names of BIDS derivatives.

    Parameters
    ----------
    normalised : CaseRecord
        The normalised case, the reference first.
    source : Path
        Its folder.
    raw : CaseRecord
        The de-identified case, whose BIDS names are kept.
    out : Path
        Root of the derivative data set.

    Returns
    -------
    int
        Number of volumes written; 0 for a quarantined case.
    """
    if normalised.state is not State.OK:
        return 0
    names = {series.series_id: series.path.removesuffix(".nii.gz") for series in raw.series}
    folder, written = out / f"sub-{normalised.case_id}", 0
    reference = names[normalised.series[0].series_id]
    for number, series in enumerate(normalised.series):
        head, suffix = names[series.series_id].rsplit("_", 1)
        about = _about(series, normalised.case_id, names, read_rigid(source, series).tolist())
        volume = source / series.path
        scan = {
            "_desc-preproc": (volume, {}),
            "_space-reference_desc-preproc": (copy_path(volume), {"SpatialReference": _uri(normalised.case_id, reference)}),
        }
        for entities, (path, more) in scan.items():
            _write(folder / f"{head}{entities}_{suffix}", path, about | more)
            written += 1
        if series.sequence is Sequence.DWI:
            # by BIDS inheritance they apply to both volumes; the validator refuses names with `desc-`
            write_trace_gradients(folder / f"{head}_{suffix}", series.b_value)
        if number == 0:
            mask = {"Type": "Brain", "Sources": about["Sources"], "Description": "Brain of the reference scan, on its grid."}
            _write(folder / f"{head}_desc-brain_mask", brain_path(volume), mask)
            written += 1
    return written


def _about(series: Series, case_id: str, names: dict[str, str], rigid: list[list[float]]) -> dict[str, object]:
    return {
        "Description": "Axes in the order L, P, S; intensities as the stage `normalise` left them.",
        "SkullStripped": False,
        "Sources": [_uri(case_id, names[series.series_id])],
        "RigidFromReference": rigid,
        "DisplayWindow": list(series.window or ()),
        "Quality": series.quality,
        "Flags": list(series.flags),
    }


def _uri(case_id: str, name: str) -> str:
    return f"bids:raw:sub-{case_id}/{name}.nii.gz"


def _write(stem: Path, volume: Path, sidecar: dict[str, object]) -> None:
    """Compress a volume without time and name in the gzip header, so that equal volumes give equal bytes."""
    with atomic_file(stem.with_name(f"{stem.name}.nii.gz")) as partial:
        partial.write_bytes(gzip.compress(volume.read_bytes(), compresslevel=6, mtime=0))
    write_json(stem.with_name(f"{stem.name}.json"), sidecar)
