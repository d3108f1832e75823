"""One ingested case to a BIDS case that identifies nobody."""

from __future__ import annotations

import shutil
from collections import Counter
from dataclasses import replace
from pathlib import Path

from neuralmedbench.deid.burned_in.hide import Policy, checks_told
from neuralmedbench.deid.headers.rules import ALL_OPTIONS, HeaderRules
from neuralmedbench.deid.leaks import count_leaks
from neuralmedbench.deid.review.pieces import write_tools_piece
from neuralmedbench.deid.scans import clean_scans
from neuralmedbench.deid.score.case import observer_of
from neuralmedbench.deid.texts import TextRules, clean_texts
from neuralmedbench.deid.values import DateShift, parse_day
from neuralmedbench.errors import DataError, DeidentificationError
from neuralmedbench.files.identity import Identity, identity_pattern, read_identity
from neuralmedbench.files.pseudonyms import date_shift_days
from neuralmedbench.records.case import CaseRecord
from neuralmedbench.runtime.atomic_write import sweep

OUTPUTS = ("anat", "dwi", "swi", "ct", "text", "review")


def deidentify_case(
    case: CaseRecord,
    source: Path,
    out: Path,
    key: bytes,
    profile: str,
    *,
    options: tuple[str, ...] = ALL_OPTIONS,
    texts: TextRules | None = None,
    burned_in: Policy = "hide",
    subjects: str = "patient",
    answer_key: Path | None = None,
) -> CaseRecord:
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
    options : tuple of str
        Options of DICOM PS3.15 that hold, by code.
    texts : TextRules, optional
        What is cut out of notes, and a model of names.
    burned_in : str
        `hide` text that is burned into pixels, or `drop` a series that shows any.
    subjects : str
        Whose data it is: `phantom`, `public` or `patient`; see `checks_told`.
    answer_key : Path, optional
        `answer_key.json` of a phantom: what was planted in it. Its cleaning is scored, and the counts are written.

    Returns
    -------
    CaseRecord
        The case with BIDS names, cleaned texts and the counts of every check.

    Raises
    ------
    DataError
        If no series can be converted with the geometry of its raw positions.
    DeidentificationError
        If a face cannot be located, text is left in the pixels, or an identifying value in any file; nothing is left in `out` then.
    """
    empty_outputs(out)
    identity = read_identity(source / "identity.json")
    rules = rules_of(case.patient_id, identity, key, profile, options)
    checks: Counter[str] = Counter()
    watch = observer_of(answer_key, case.patient_id, rules.dates)
    aside: dict[str, str] = {}
    try:
        series = clean_scans(case, source, out, rules, checks, aside=aside, watch=watch, burned_in=burned_in)
        write_tools_piece(out)
        notes, record = clean_texts(case, source, out, rules, parse_day(identity.scan_date), checks=checks, texts=texts)
        if not identity.names:
            checks["notes_without_known_names"] += len(notes)
        leaks = count_leaks(out, identity)
        if leaks:
            message = f"{leaks} identifying values are left after cleaning: the case is kept back; report the kind of file, never the value"
            raise DeidentificationError(message)
    except (DataError, DeidentificationError):
        empty_outputs(out)
        raise
    counts = {**checks_told(checks, subjects), "leaks": 0}
    done = replace(case, series=series, set_aside=aside, notes=notes, record=record, checks=counts)
    watch.finish(done, source, out)
    return done


def rules_of(patient_id: str, identity: Identity, key: bytes, profile: str, options: tuple[str, ...]) -> HeaderRules:
    """Give the rules of a patient: the pseudonym stands for the patient, all cases of a patient share it, and with it the shift.

    Parameters
    ----------
    patient_id : str
        Pseudonym.
    identity : Identity
        The patient's values, searched for in what is kept.
    key : bytes
        Secret of the pseudonyms.
    profile : str
        `pseudonymised` or `safe_harbor`.
    options : tuple of str
        Options of DICOM PS3.15, by code.
    """
    safe_harbor = profile == "safe_harbor"
    shifted = not safe_harbor and "113107" in options
    dates = DateShift(date_shift_days(key, patient_id), years_only=not shifted, emptied=not (shifted or safe_harbor))
    return HeaderRules(key, patient_id, dates, identity_pattern(identity), options)


def empty_outputs(out: Path) -> None:
    """Remove what this stage wrote before, and what a killed run of it left half-done."""
    sweep(out)
    for name in OUTPUTS:
        shutil.rmtree(out / name, ignore_errors=True)
