"""Whatever lies in a folder, every file has one fate: used, or set aside with a reason that names nobody."""

from __future__ import annotations

import re
import tempfile
from functools import cache
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from fixtures.deid import head_voxels, write_nifti_file
from fixtures.raw import Stack, ball, ingest, make_slice, write_enhanced, write_mosaic, write_series
from neuralmedbench.ingest.listing import find_cases

NAMES = ("Vandermeer", "48213371")


@cache
def pool() -> tuple[tuple[str, bytes], ...]:
    """Contents of all kinds of files, with a name that each could have."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        files = [
            *write_series(folder / "a", Stack(slices=4)),
            *write_series(folder / "b", Stack(slices=4), series=2, voxels=ball(4) + 1, SeriesDescription="Vandermeer T2", EchoTime=100),
            *write_series(folder / "c", Stack(slices=4), series=3),
            *write_series(folder / "d", Stack(slices=3), series=4, SeriesDescription="localizer"),
            write_enhanced(folder / "enhanced", Stack(slices=4), series=5),
            write_mosaic(folder / "mosaic", SeriesNumber=6, SeriesInstanceUID="1.2.6"),
            write_nifti_file(folder / "48213371_T1w.nii.gz", head_voxels((8, 9, 6))),
            write_nifti_file(folder / "48213371_seg.nii.gz", (head_voxels((8, 9, 6)) > 0).astype("uint8")),
        ]
        report = make_slice(ball(1)[0], (0, 0, 0), 1, 9, SOPClassUID="1.2.840.10008.5.1.4.1.1.88.33", Modality="SR")
        report.save_as(folder / "report", enforce_file_format=True)
        contents = [(path.name, path.read_bytes()) for path in [*files, folder / "report"]]
    odd = [
        ("x.bval", b"0 1000"),
        ("y.json", b"{}"),
        ("empty.dcm", b""),
        ("z.zip", b"PK\x03\x04"),
        ("letter", b"Vandermeer"),
        ("q.nii", b"Vandermeer"),
    ]
    return (*contents, *odd)


@settings(max_examples=15)
@given(data=st.data())
def test_every_file_of_a_case_is_used_or_set_aside_with_a_reason(data: st.DataObject) -> None:
    chosen = data.draw(st.lists(st.sampled_from(range(len(pool()))), min_size=1, max_size=14, unique=True))
    cuts = data.draw(st.lists(st.floats(0.05, 1.0), min_size=len(chosen), max_size=len(chosen)))
    spoilt = data.draw(st.sets(st.sampled_from(chosen), max_size=3))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        paths = []
        for number, (which, cut) in enumerate(zip(chosen, cuts, strict=True)):
            title, content = pool()[which]
            paths.append(folder / "raw" / f"{number:02d}_{title}")
            paths[-1].parent.mkdir(exist_ok=True)
            paths[-1].write_bytes(content[: int(len(content) * cut)] if which in spoilt else content)
        case = ingest(folder, paths)
        assert [fate.file for fate in case.fates] == list(range(1, len(paths) + 1))
        ids = {series.series_id for series in case.series}
        for fate in case.fates:
            if fate.fate == "used":
                assert set(fate.reason.split(", ")) <= ids
            else:
                assert fate.fate == "set_aside"
                assert re.fullmatch(r"[^\n\r\t]{5,200}", fate.reason)
        assert {one for fate in case.fates if fate.fate == "used" for one in fate.reason.split(", ")} == ids
        told = " ".join([case.reason, *(fate.reason for fate in case.fates)])
        assert not any(word in told for word in (*NAMES, name))
        if any(fate.fate == "used" for fate in case.fates):
            found = find_cases(folder / "raw")
            owned = [scan.path for one in found.cases for scan in one.scans] + [note for one in found.cases for note in one.notes]
            assert sorted([*owned, *found.left_out]) == sorted(paths)
