"""One ingested case to a BIDS case that identifies nobody."""

from __future__ import annotations

import shutil
from collections import Counter
from dataclasses import replace
from pathlib import Path

from neuralmedbench.deid.headers import HeaderRules
from neuralmedbench.deid.leaks import count_leaks
from neuralmedbench.deid.scans import clean_scans
from neuralmedbench.deid.texts import clean_texts
from neuralmedbench.deid.values import DateShift, parse_day
from neuralmedbench.errors import DataError, DeidentificationError
from neuralmedbench.io.identity import identity_pattern, read_identity
from neuralmedbench.io.partial import sweep
from neuralmedbench.io.pseudonyms import date_shift_days
from neuralmedbench.records.case import CaseRecord

OUTPUTS = ("anat", "dwi", "swi", "ct", "text", "review")


def deidentify_case(case: CaseRecord, source: Path, out: Path, key: bytes, profile: str) -> CaseRecord:
    """De-identify one case.

    Parameters
    ----------
    case : CaseRecord
        The ingested case.
    source : Path
        Folder that holds it, with `identity.json`.
    out : Path
        Folder to fill; scans, texts and review pictures that it held before are replaced.
    key : bytes
        Secret of the pseudonyms.
    profile : str
        `pseudonymised` (dates shifted) or `safe_harbor` (years only).

    Returns
    -------
    CaseRecord
        The case with BIDS names, cleaned texts and the counts of every check.

    Raises
    ------
    DataError
        If no series can be converted with the geometry of its raw positions.
    DeidentificationError
        If a face cannot be located, or an identifying value is left in any file; nothing is left in `out` then.
    """
    empty_outputs(out)
    identity = read_identity(source / "identity.json")
    pattern = identity_pattern(identity)
    # the pseudonym stands for the patient: all cases of a patient share it, and with it the shift
    dates = DateShift(date_shift_days(key, case.patient_id), years_only=profile == "safe_harbor")
    rules = HeaderRules(key, case.patient_id, dates, pattern)
    checks: Counter[str] = Counter()
    try:
        series = clean_scans(case, source, out, rules, checks)
        notes, record = clean_texts(case, source, out, rules, parse_day(identity.scan_date), checks=checks)
        if not identity.names:
            checks["notes_without_known_names"] += len(notes)
        leaks = count_leaks(out, identity)
        if leaks:
            message = f"{leaks} identifying values are left after cleaning: the case is kept back; report the kind of file, never the value"
            raise DeidentificationError(message)
    except (DataError, DeidentificationError):
        empty_outputs(out)
        raise
    return replace(case, series=series, notes=notes, record=record, checks={**{name: checks[name] for name in sorted(checks)}, "leaks": 0})


def empty_outputs(out: Path) -> None:
    """Remove what this stage wrote before, and what a killed run of it left half-done."""
    sweep(out)
    for name in OUTPUTS:
        shutil.rmtree(out / name, ignore_errors=True)
