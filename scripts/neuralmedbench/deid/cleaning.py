"""What the cleaning of one case works with: the policy of its benchmark, its patient's rules, and what is found on the way."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path

from neuralmedbench.deid.burned_in.hide import PicturePolicy
from neuralmedbench.deid.faces.locate import Head
from neuralmedbench.deid.headers.rules import ALL_OPTIONS, HeaderRules
from neuralmedbench.deid.notes.name_model import NameModel
from neuralmedbench.deid.score.case import NO_OBSERVER, Observer, observer_of
from neuralmedbench.deid.values import DateShift, parse_day
from neuralmedbench.files.identity import Identity, identity_pattern, read_identity
from neuralmedbench.files.pseudonyms import date_shift_days
from neuralmedbench.records.case import CaseRecord


@dataclass(frozen=True)
class TextRules:
    """What a benchmark asks of its texts.

    Attributes
    ----------
    cut : tuple of str
        Headings of the parts of notes that are cut out because they hold the answer.
    model : NameModel or None
        Recognises names beside the patterns.
    """

    cut: tuple[str, ...] = ()
    model: NameModel | None = None


@dataclass(frozen=True, kw_only=True)
class CleaningPolicy:
    """How the cases of a benchmark are de-identified.

    Attributes
    ----------
    key : bytes
        Secret of the pseudonyms.
    profile : str
        `pseudonymised` (dates shifted) or `safe_harbor` (years only).
    options : tuple of str
        Options of DICOM PS3.15 that hold, by code.
    texts : TextRules
        What is cut out of notes, and a model of names.
    burned_in : str
        `hide` text that is burned into pixels, or `drop` a series or picture that shows any; `keep` is for pictures alone.
    subjects : str
        Whose data it is: `phantom`, `public` or `patient`; see `reported_checks`.
    """

    key: bytes
    profile: str
    options: tuple[str, ...] = ALL_OPTIONS
    texts: TextRules = TextRules()
    burned_in: PicturePolicy = "hide"
    subjects: str = "patient"

    def rules_of(self, patient_id: str, identity: Identity) -> HeaderRules:
        """Give the rules of a patient (by pseudonym): all cases of a patient share them, and with them the shift of dates."""
        safe_harbor = self.profile == "safe_harbor"
        shifted = not safe_harbor and "113107" in self.options
        dates = DateShift(date_shift_days(self.key, patient_id), years_only=not shifted, emptied=not (shifted or safe_harbor))
        return HeaderRules(self.key, patient_id, dates, identity_pattern(identity), self.options)


@dataclass(kw_only=True)
class Cleaning:
    """One case on its way: where it lies, by which rules it is cleaned, and what was found so far.

    Attributes
    ----------
    case : CaseRecord
        The ingested case.
    source, out : Path
        Its folder, and the folder of the de-identified case.
    rules : HeaderRules
        Key, pseudonym, dates and options of the patient.
    identity : Identity
        The patient's own values: none of them may be left.
    texts, burned_in
        As in `CleaningPolicy`.
    observer : Observer
        Compares a phantom with its answer key on the way; of patients it sees nothing.
    checks : Counter
        How often each check found or changed something.
    excluded : dict of str to str
        Why series are left out, by series id.
    heads : list of Head
        Scans of the case whose face was located for sure: the next ones may follow them.
    """

    case: CaseRecord
    source: Path
    out: Path
    rules: HeaderRules
    identity: Identity = field(default_factory=Identity)
    texts: TextRules = TextRules()
    burned_in: PicturePolicy = "hide"
    observer: Observer = NO_OBSERVER
    checks: Counter[str] = field(default_factory=Counter)
    excluded: dict[str, str] = field(default_factory=dict)
    heads: list[Head] = field(default_factory=list)

    @property
    def scan_day(self) -> date | None:
        """Day of the scan; None when no header and no person tells it."""
        return parse_day(self.identity.scan_date)


def begin_cleaning(case: CaseRecord, source: Path, out: Path, policy: CleaningPolicy, answer_key: Path | None = None) -> Cleaning:
    """Read who the patient is, and put together what the cleaning of the case needs; a phantom comes with its answer key."""
    identity = read_identity(source / "identity.json")
    rules = policy.rules_of(case.patient_id, identity)
    return Cleaning(
        case=case,
        source=source,
        out=out,
        rules=rules,
        identity=identity,
        texts=policy.texts,
        burned_in=policy.burned_in,
        observer=observer_of(answer_key, case.patient_id, rules.dates),
    )
