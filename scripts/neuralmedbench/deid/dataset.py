"""Describe the de-identified cases of a benchmark as one BIDS data set: description and participants."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import astuple, fields
from pathlib import Path

from neuralmedbench.files.bids import OLDEST, Participant, describe_participant, write_description
from neuralmedbench.files.json_files import write_json
from neuralmedbench.records.case import CaseRecord, State
from neuralmedbench.runtime.atomic_write import write_tsv

IGNORED = ("audit*", "review*", "score*", "**/case.json", "**/text", "**/text/**", "**/review", "**/review/**", "**/review.zip")
"""Files that are not part of BIDS: records, the audit, cleaned notes, and files for the reviewer."""
COLUMNS = ("participant_id", "patient_id", *(one.name for one in fields(Participant)), "state")
ABOUT = """
De-identified head scans of the benchmark {benchmark}: headers cleaned, faces removed in native space, names and dates replaced.
One case of the benchmark is one participant; cases of one patient share `patient_id`, a pseudonym.
What was removed stands in audit.json, as counts. Folders `text` hold the cleaned notes and records, `review` what a reviewer looked at.
CT and susceptibility-weighted scans lie in folders of their own, because core BIDS has none for them; the validator passes over these.
"""


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
    rows = [
        (f"sub-{case.case_id}", case.patient_id, *astuple(describe_participant(case, place)), case.state.value)
        for case, place in sorted(cases, key=lambda one: one[0].case_id)
    ]
    write_tsv(folder / "participants.tsv", [COLUMNS, *rows])
    columns = {
        "patient_id": {"Description": "Pseudonym of the patient; cases of one patient share it."},
        "age": {"Description": f"Age at the scan, from the health record; {OLDEST} and more is written as {OLDEST}+.", "Units": "year"},
        "state": {
            "Description": "`quarantined` when the case was kept back and has no scans.",
            "Levels": {state.value: state.name.lower() for state in State},
        },
        "scanner": {"Description": "Manufacturer and model, as kept in the sidecars; `several` where the scans of a case differ."},
        "field_strength": {"Description": "Field strength, as stated in the sidecars.", "Units": "T"},
        "sex": {"Description": "Sex, from the health record.", "Levels": {"F": "female", "M": "male", "O": "other"}},
    }
    write_json(folder / "participants.json", columns)
