"""Files of a BIDS data set beside its scans: description, README, ignored patterns, and `participants.tsv` with age, sex and scanner."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from neuralmedbench.files.json_files import read_json, write_json
from neuralmedbench.records.case import CaseRecord
from neuralmedbench.runtime.atomic_write import write_text

UNKNOWN = "n/a"
OLDEST = 89
"""BIDS writes this and every higher age as `89+`; HIPAA requires it from 90 on."""
SEXES = {"f": "F", "female": "F", "w": "F", "m": "M", "male": "M", "o": "O", "other": "O"}
SEVERAL = "several"
BIDS_VERSION = "1.10.0"
NOT_BIDS = ("ct", "swi")
"""Folders of scans without a place in core BIDS; their names follow its style."""


@dataclass(frozen=True)
class Participant:
    """What is known of a case; every value is text as in `participants.tsv`, `n/a` if unknown.

    Attributes
    ----------
    age : str
        Whole years, `89+` for 89 and more.
    sex : str
        `F`, `M` or `O`.
    scanner : str
        Manufacturer and model as kept in the sidecars; `several` if the scans of the case differ.
    field_strength : str
        Tesla, as stated; `several` if the scans differ.
    """

    age: str = UNKNOWN
    sex: str = UNKNOWN
    scanner: str = UNKNOWN
    field_strength: str = UNKNOWN


def describe_participant(case: CaseRecord, folder: Path) -> Participant:
    """Read a de-identified case: age and sex from its cleaned record, the scanner from the sidecars of its scans."""
    sidecars = [read_json(folder / name) for name in sorted(case.files) if name.endswith(".json") and (folder / name).is_file()]
    scans = [one for one in sidecars if isinstance(one, dict)]
    return Participant(
        *_age_and_sex(case, folder),
        _one_of(" ".join(str(one[name]) for name in ("Manufacturer", "ManufacturersModelName") if one.get(name)) for one in scans),
        _one_of(f"{float(one['MagneticFieldStrength']):g}" if _is_number(one.get("MagneticFieldStrength")) else "" for one in scans),
    )


def read_participants(path: Path) -> dict[str, Participant]:
    """Read `participants.tsv` by case; a column that an earlier version did not write is unknown."""
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file, delimiter="\t"))
    names = [one.name for one in fields(Participant)]
    return {row["participant_id"].removeprefix("sub-"): Participant(*(row.get(name) or UNKNOWN for name in names)) for row in rows}


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _one_of(values: Iterable[str]) -> str:
    known = sorted({value.strip() for value in values} - {""})
    return UNKNOWN if not known else known[0] if len(known) == 1 else SEVERAL


def _age_and_sex(case: CaseRecord, folder: Path) -> tuple[str, str]:
    """Read age in whole years, top-coded, and `F`, `M` or `O` from the cleaned record of a case; `n/a` if absent."""
    if not case.record or not (folder / case.record).is_file():
        return UNKNOWN, UNKNOWN
    with (folder / case.record).open(encoding="utf-8", newline="") as file:
        values = {row["variable"].strip().lower(): row["value"] for row in csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE)}
    years = re.match(r"\s*(\d{1,3})", values.get("age", ""))
    age = UNKNOWN if years is None else f"{OLDEST}+" if int(years[1]) >= OLDEST else str(int(years[1]))
    return age, SEXES.get(values.get("sex", "").strip().lower(), UNKNOWN)


def write_trace_gradients(stem: Path, b_value: float | None) -> None:
    """Write `stem`.bval (s/mm2) and `stem`.bvec of a trace image, which has no direction."""
    write_text(stem.with_name(f"{stem.name}.bval"), f"{b_value or 0:g}\n")
    write_text(stem.with_name(f"{stem.name}.bvec"), "0\n0\n0\n")


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
