"""The largest volume of a converted series is the scan; a series of which nothing was made is refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from neuralmedbench.errors import DataError
from neuralmedbench.files import dcm2niix
from neuralmedbench.files.dcm2niix import NO_VOLUME, ConversionOutput, convert_largest
from neuralmedbench.files.nifti import Volume, write_nifti


def converted(folder: Path, *sizes: int) -> list[ConversionOutput]:
    """Write what a conversion made: cubes of these sizes; 0 is an empty file."""
    made = []
    for number, size in enumerate(sizes):
        image = folder / f"{number}.nii.gz"
        if size:
            write_nifti(image, Volume(np.ones((size,) * 3, dtype=np.int16), np.eye(4)))
        else:
            image.touch()
        made.append(ConversionOutput(image, None, None))
    return made


@pytest.mark.parametrize(("sizes", "expected"), [((3, 5, 4), "1.nii.gz"), ((0, 4), "1.nii.gz")])
def test_the_largest_volume_is_the_scan_and_an_empty_file_beside_it_is_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sizes: tuple[int, ...], expected: str
) -> None:
    monkeypatch.setattr(dcm2niix, "convert", lambda *_, **__: converted(tmp_path, *sizes))
    volume, files = convert_largest(tmp_path, tmp_path)
    assert files.image.name == expected
    assert volume.voxels.shape == (max(sizes),) * 3


def test_a_series_of_which_only_empty_files_were_made_is_refused_in_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dcm2niix, "convert", lambda *_, **__: converted(tmp_path, 0, 0))
    with pytest.raises(DataError, match=f"^{NO_VOLUME}$"):
        convert_largest(tmp_path, tmp_path)
