"""What de-identification shows of a case to the person who signs: small files in `review/` beside `case.json`."""

from __future__ import annotations

from collections import Counter
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from neuralmedbench.deid.headers.diff import ACTIONS
from neuralmedbench.deid.review.renderings import border_views, surface_views, upright
from neuralmedbench.files.json_files import read_json, write_json
from neuralmedbench.files.nifti import Volume
from neuralmedbench.files.small_pictures import write_levels

REVIEW = "review"
"""Folder of the pieces, of this stage and of the normalise stage."""
TOOLS = (
    "dcm2niix", "dicom-anonymizer", "nibabel", "nilearn", "numpy", "phonenumbers", "presidio-analyzer", "pydicom", "scipy", "SimpleITK", "spacy",
)  # fmt: skip
"""Packages that clean; their versions stand in the audit."""


def write_scan_pieces(folder: Path, series_id: str, volume: Volume) -> None:
    """Write what a person looks at to see whether a face or burned-in text is left in a scan.

    Parameters
    ----------
    folder : Path
        Folder of the de-identified case; `review/<series_id>_surface.png` and `review/<series_id>_border.png` appear in it.
    series_id : str
        The scan.
    volume : Volume
        Its voxels after de-identification.
    """
    voxels, sizes = upright(volume)
    write_levels(folder / REVIEW / f"{series_id}_surface.png", surface_views(voxels, sizes))
    write_levels(folder / REVIEW / f"{series_id}_border.png", border_views(voxels, sizes))


def write_header_piece(folder: Path, series_id: str, changed: Counter[tuple[str, str]]) -> None:
    """Write what became of the headers of a series, `review/<series_id>_headers.json`: by action, how many elements of which name."""
    lines = {action: {name: changed[name, action] for name, other in sorted(changed) if other == action} for action in ACTIONS}
    write_json(folder / REVIEW / f"{series_id}_headers.json", {action: names for action, names in lines.items() if names})


def write_tools_piece(folder: Path) -> None:
    """Write which versions of which packages cleaned, `review/tools.json`."""
    found: dict[str, str] = {}
    for name in TOOLS:
        try:
            found[name] = version(name)
        except PackageNotFoundError:  # not every installation has the optional ones
            continue
    write_json(folder / REVIEW / "tools.json", found)


def read_tools(folder: Path) -> dict[str, str]:
    """Read which versions of which packages cleaned a case; nothing when it does not say."""
    path = folder / REVIEW / "tools.json"
    return {str(name): str(number) for name, number in read_json(path).items()} if path.exists() else {}
