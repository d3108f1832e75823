"""Describe the de-identified cases of a benchmark as one BIDS data set: description and participants."""

from __future__ import annotations

import csv
import re
from collections.abc import Sequence
from pathlib import Path

from neuralmedbench.files.bids import write_description
from neuralmedbench.files.json_files import write_json
from neuralmedbench.records.case import CaseRecord, State
from neuralmedbench.runtime.atomic_write import atomic_file

IGNORED = ("audit*", "review*", "score*", "**/case.json", "**/text", "**/text/**", "**/review", "**/review/**")
"""Files that are not part of BIDS: records, the audit, cleaned notes, and files for the reviewer."""
COLUMNS = ("participant_id", "patient_id", "age", "sex", "state")
OLDEST = 89
"""BIDS writes this and every higher age as `89+`; HIPAA requires it from 90 on."""
UNKNOWN = "n/a"
ABOUT = """
De-identified head scans of the benchmark {benchmark}: headers cleaned, faces removed in native space, names and dates replaced.
One case of the benchmark is one participant; cases of one patient share `patient_id`, a pseudonym.
What was removed stands in audit.json, as counts. Folders `text` hold the cleaned notes and records, `review` what a reviewer looked at.
CT and susceptibility-weighted scans lie in folders of their own, because core BIDS has none for them; the validator passes over these.
"""
SEXES = {"f": "F", "female": "F", "w": "F", "m": "M", "male": "M", "o": "O", "other": "O"}


def write_dataset(folder: Path, benchmark: str, cases: Sequence[tuple[CaseRecord, Path]]) -> None:
    """Write the description of the data set and its participants.

    Parameters
    ----------
    folder : Path
        Root of the data set.
    benchmark : str
        Name of the benchmark.
    cases : sequence of (CaseRecord, Path)
        Every case with its folder. A quarantined case is a participant without scans, because its folder exists.
    """
    write_description(folder, f"{benchmark}, de-identified", "raw", ABOUT.format(benchmark=benchmark), IGNORED)
    with atomic_file(folder / "participants.tsv") as partial, partial.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, delimiter="\t", lineterminator="\n")
        writer.writerow(COLUMNS)
        for case, place in sorted(cases, key=lambda one: one[0].case_id):
            writer.writerow([f"sub-{case.case_id}", case.patient_id, *age_and_sex(case, place), case.state.value])
    columns = {
        "patient_id": {"Description": "Pseudonym of the patient; cases of one patient share it."},
        "age": {"Description": f"Age at the scan, from the health record; {OLDEST} and more is written as {OLDEST}+.", "Units": "year"},
        "state": {
            "Description": "`quarantined` when the case was kept back and has no scans.",
            "Levels": {state.value: state.name.lower() for state in State},
        },
        "sex": {"Description": "Sex, from the health record.", "Levels": {"F": "female", "M": "male", "O": "other"}},
    }
    write_json(folder / "participants.json", columns)


def age_and_sex(case: CaseRecord, folder: Path) -> tuple[str, str]:
    """Read age and sex from the cleaned record of a case.

    Returns age in whole years, top-coded, and `F`, `M` or `O`; `n/a` if absent.
    """
    if not case.record or not (folder / case.record).is_file():
        return UNKNOWN, UNKNOWN
    with (folder / case.record).open(encoding="utf-8", newline="") as file:
        values = {row["variable"].strip().lower(): row["value"] for row in csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE)}
    years = re.match(r"\s*(\d{1,3})", values.get("age", ""))
    age = UNKNOWN if years is None else f"{OLDEST}+" if int(years[1]) >= OLDEST else str(int(years[1]))
    return age, SEXES.get(values.get("sex", "").strip().lower(), UNKNOWN)
