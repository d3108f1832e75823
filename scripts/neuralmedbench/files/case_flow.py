"""Outcome of each listed case: one row per case for the case flow of the report."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from neuralmedbench.files.cases import CaseRow, read_case
from neuralmedbench.records.case import CaseRecord, NoHead, State

MIN_PATIENTS = 10
"""With fewer cases of patients a share means little: a run then stops only if no case is left."""
PHANTOM = "phantom"
"""Quality number of a case whose headers or file names say that it is one."""
NO_HEAD = re.compile("|".join(re.escape(reason).replace(r"\{\}", ".+") for reason in NoHead))
"""Matches the start of such a reason."""


def counts_as_patient(case: CaseRecord) -> bool:
    """Return whether a case counts for the largest share of quarantined ones: neither a phantom nor without any head scan."""
    if case.state is State.OK:
        return True
    if case.quality.get(PHANTOM):
        return False
    return case.quarantined_by != "ingest" or not case.raw_files or not all(NO_HEAD.match(reason) for reason in case.raw_files)


def stopping_share(patients: int, allowed: float) -> str:
    """State from which share of quarantined cases a run stops."""
    if patients < MIN_PATIENTS:
        return f"a run stops if no case is left (from {MIN_PATIENTS} cases of patients on: if more than {allowed:.0%} are quarantined)"
    return (
        f"a run stops if more than {math.floor(allowed * patients + 1e-9)} of {patients} cases of patients are quarantined ({allowed:.0%})"
    )


def case_outcome(row: CaseRow, case: CaseRecord | None) -> dict[str, Any]:
    """Return the outcome of one case.

    Parameters
    ----------
    row : CaseRow
        Its row of the case table.
    case : CaseRecord or None
        The case after its last stage; None if the table excludes it.

    Returns
    -------
    dict
        `case_id`, `patient_id`, `state`, `quarantined_by`, `reason`, `excluded`, the sequences of its pictures (`sequences`), reasons for
        excluded series (`set_aside`), and counts of raw files (`raw_files`).
    """
    outcome: dict[str, Any] = {"case_id": row.case_id, "patient_id": row.patient_id, "state": State.OK.value, "quarantined_by": ""}
    if case is None:
        return outcome | {"reason": row.exclude, "sequences": [], "set_aside": [], "raw_files": {}, "excluded": True}
    sequences = {entry.sequence.value for entry in case.slices} | {entry.sequence for entry in case.pictures if entry.state is State.OK}
    outcome |= {"state": case.state.value, "quarantined_by": case.quarantined_by, "raw_files": case.raw_files}
    return outcome | {
        "reason": case.reason,
        "sequences": sorted(sequences),
        "set_aside": sorted(case.set_aside.values()),
        "excluded": False,
    }


def flow_of_cases(table: Sequence[CaseRow], folder: Path) -> list[dict[str, Any]]:
    """Return the outcome of every case of a table, sorted by case id; `folder` has `sub-<case>/case.json` of the last stage."""
    rows = sorted(table, key=lambda row: row.case_id)
    return [case_outcome(row, None if row.exclude else read_case(folder / f"sub-{row.case_id}" / "case.json")) for row in rows]
