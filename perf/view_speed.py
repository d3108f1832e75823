"""Measure the CPU time of a view of a scan of 256 x 256 x 256 voxels once the volume is open: `python perf/view_speed.py`."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

import numpy as np
import SimpleITK as sitk

from neuralmedbench.config.imaging import SlicesConfig
from neuralmedbench.files.cases import read_case, write_case
from neuralmedbench.files.json_files import write_json
from neuralmedbench.imaging.views import ViewService, list_views
from neuralmedbench.records.case import CaseRecord, Sequence, Series
from neuralmedbench.records.views import VIEW_WINDOWS, SliceView, ViewRules

SIDE = 256
LIMIT_MS = 50.0
RULES = ViewRules(planes=("axial", "coronal", "sagittal"), windows=VIEW_WINDOWS, zooms=(1, 2, 4))


def make_case(folder: Path) -> CaseRecord:
    """Write a normalised case with one scan: noise in a ball."""
    grid = np.indices((SIDE, SIDE, SIDE), dtype=np.float32) - SIDE / 2
    ball = (grid**2).sum(axis=0) < (0.4 * SIDE) ** 2
    voxels = np.random.default_rng(7).normal(100, 20, ball.shape).astype(np.float32) * ball
    volumes = folder / "volumes"
    volumes.mkdir(parents=True)
    sitk.WriteImage(sitk.GetImageFromArray(voxels), str(volumes / "series-01.nii"))
    sitk.WriteImage(sitk.GetImageFromArray(ball.astype(np.uint8)), str(volumes / "series-01_brain.nii"))
    write_json(volumes / "series-01_rigid.json", np.eye(4).tolist())
    scan = Series(
        series_id="series-01",
        path="volumes/series-01.nii",
        modality="MR",
        sequence=Sequence.T1W,
        volume_sha256="1" * 64,
        window=(0.0, 200.0),
    )
    write_case(folder / "case.json", CaseRecord(benchmark="speed", case_id="c1", patient_id="p1", stage="normalise", series=(scan,)))
    return read_case(folder / "case.json")


def main() -> int:
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        folder = root / "data/normalised/speed/sub-c1"
        case = make_case(folder)
        worst = 0.0
        for policy in (
            SlicesConfig(policy="uniform", per_sequence=1, field_of_view_mm=230.0),
            SlicesConfig(policy="uniform", per_sequence=1, field_of_view_mm=230.0, sent_px=512, side_marker=True),
        ):
            (scan,) = list_views(case, folder, RULES, policy)
            service = ViewService(lambda _: None, root)
            views = [
                SliceView(scan=scan, plane=plane, number=number, window=window, zoom=zoom)
                for plane in RULES.planes
                for number in range(100, 150, 5)
                for window, zoom in (("own", 1), ("dark", 2))
            ]
            service(views[0])
            times = []
            for view in views[1:]:
                start = time.process_time()
                service(view)
                times.append(1000 * (time.process_time() - start))
            how = f"{policy.sent_px or 'native'} px, {'with' if policy.side_marker else 'without'} letters"
            print(f"{how}: {np.mean(times):.1f} ms CPU a view, at most {max(times):.1f} ms ({len(times)} views)")
            worst = max(worst, float(np.mean(times)))
    print("met" if worst < LIMIT_MS else "missed", f"the limit of {LIMIT_MS:.0f} ms")
    return int(worst >= LIMIT_MS)


if __name__ == "__main__":
    raise SystemExit(main())
