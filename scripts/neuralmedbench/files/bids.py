"""Files of a BIDS data set beside its scans: description, README and ignored patterns."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from neuralmedbench.files.json_files import write_json
from neuralmedbench.runtime.atomic_write import write_text

BIDS_VERSION = "1.10.0"
NOT_BIDS = ("ct", "swi")
"""Folders of scans without a place in core BIDS; their names follow its style."""


def write_description(folder: Path, title: str, kind: str, about: str, ignored: tuple[str, ...] = ()) -> None:
    """Write `dataset_description.json`, `README` and `.bidsignore`.

    Parameters
    ----------
    folder : Path
        Root of the data set.
    title : str
        Its name.
    kind : str
        `raw` or `derivative`.
    about : str
        Text of the README.
    ignored : tuple of str
        Patterns for the validator to ignore, in addition to `NOT_BIDS`.
    """
    description: dict[str, Any] = {
        "Name": title,
        "BIDSVersion": BIDS_VERSION,
        "DatasetType": kind,
        "GeneratedBy": [
            {"Name": "neuralmedbench", "Description": "Neural-MedBench pipeline: de-identification and normalisation of head scans"}
        ],
    }
    write_json(folder / "dataset_description.json", description)
    write_text(folder / "README", about.strip() + "\n")
    # the validator checks a folder and its content separately
    below = [pattern for name in NOT_BIDS for pattern in (f"**/{name}", f"**/{name}/**")]
    write_text(folder / ".bidsignore", "\n".join([*below, *ignored]) + "\n")
