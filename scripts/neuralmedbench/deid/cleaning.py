"""State of the cleaning of one case: the policy of its benchmark, the rules of its patient, and the results so far."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path

from neuralmedbench.config.deidentification import ElementRule, actions_by_tag
from neuralmedbench.config.load import load_benchmark
from neuralmedbench.deid.burned_in.hide import PicturePolicy
from neuralmedbench.deid.faces.locate import Head
from neuralmedbench.deid.headers.rules import ALL_OPTIONS, HeaderRules, Option
from neuralmedbench.deid.notes.languages import NameModel, load_name_model
from neuralmedbench.deid.review.accepted import read_accepted_leaks
from neuralmedbench.deid.score.case import NO_OBSERVER, Observer, observer_of
from neuralmedbench.deid.values import DateShift, parse_day
from neuralmedbench.files.identity import Identity, identity_pattern, read_identity
from neuralmedbench.files.pseudonyms import date_shift_days, read_key
from neuralmedbench.records.case import CaseRecord
from neuralmedbench.records.review import AcceptedIdentityLeak


@dataclass(frozen=True)
class TextRules:
    """How the texts of a benchmark are cleaned.

    Attributes
    ----------
    cut : tuple of str
        Headings of sections that are cut from notes because they hold the answer.
    model : NameModel or None
        Recognises names in addition to the patterns.
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
        Codes of the options of DICOM PS3.15 that apply.
    texts : TextRules
        Sections to cut from notes, and a model that recognises names.
    burned_in : str
        `hide` text that is burned into pixels, or `drop` a series or picture that shows any; `keep` is for pictures only.
    subjects : str
        Kind of subjects: `phantom`, `public` or `patient`; see `reported_checks`.
    accepted : tuple of AcceptedIdentityLeak
        Identifying values that a person accepted, of all cases.
    elements : sequence of ElementRule
        Own rules for single elements of headers.
    """

    key: bytes
    profile: str
    options: tuple[str, ...] = ALL_OPTIONS
    texts: TextRules = TextRules()
    burned_in: PicturePolicy = "hide"
    subjects: str = "patient"
    accepted: tuple[AcceptedIdentityLeak, ...] = ()
    elements: Sequence[ElementRule] = ()

    def rules_of(self, patient_id: str, identity: Identity) -> HeaderRules:
        """Return the rules of a patient (by pseudonym); all cases of a patient share them, including the shift of dates."""
        safe_harbor = self.profile == "safe_harbor"
        shifted = not safe_harbor and Option.DATES in self.options
        dates = DateShift(date_shift_days(self.key, patient_id), years_only=not shifted, emptied=not (shifted or safe_harbor))
        return HeaderRules(self.key, patient_id, dates, identity_pattern(identity), self.options, actions_by_tag(self.elements))


def cleaning_policy(folder: Path, benchmark: str) -> CleaningPolicy:
    """Return the policy of a benchmark, with its key and what a person accepted; `folder` is that of the configuration."""
    config = load_benchmark(folder, benchmark)
    rules = config.deidentification
    model = load_name_model(Path(rules.ner_model), rules.ner_language) if rules.ner_model else None
    return CleaningPolicy(
        key=read_key(config.key_file),
        profile=config.profile,
        options=config.header_options,
        texts=TextRules(rules.cut_sections, model),
        burned_in=rules.burned_in,
        subjects=config.subjects,
        elements=rules.elements,
        accepted=read_accepted_leaks(folder, benchmark).accepted,
    )


@dataclass(kw_only=True)
class Cleaning:
    """One case being cleaned: its folders, its rules and the results so far.

    Attributes
    ----------
    case : CaseRecord
        The ingested case.
    source, out : Path
        Folder of the ingested case, and folder of the de-identified case.
    rules : HeaderRules
        Key, pseudonym, dates and options of the patient.
    identity : Identity
        The patient's identifiers, none of which may remain.
    texts, burned_in
        As in `CleaningPolicy`.
    accepted : tuple of AcceptedIdentityLeak
        Identifying values that a person accepted in this case.
    observer : Observer
        Scores a phantom against its answer key; does nothing for patients.
    checks : Counter
        Number of detections or changes by check.
    excluded : dict of str to str
        Reason for each excluded series, by series id.
    heads : list of Head
        Scans of the case with a trusted fit, for use by the following scans.
    """

    case: CaseRecord
    source: Path
    out: Path
    rules: HeaderRules
    identity: Identity = field(default_factory=Identity)
    texts: TextRules = TextRules()
    burned_in: PicturePolicy = "hide"
    accepted: tuple[AcceptedIdentityLeak, ...] = ()
    observer: Observer = NO_OBSERVER
    checks: Counter[str] = field(default_factory=Counter)
    excluded: dict[str, str] = field(default_factory=dict)
    heads: list[Head] = field(default_factory=list)

    @property
    def scan_day(self) -> date | None:
        """Day of the scan; None if neither a header nor a person states it."""
        return parse_day(self.identity.scan_date)


def begin_cleaning(case: CaseRecord, source: Path, out: Path, policy: CleaningPolicy, answer_key: Path | None = None) -> Cleaning:
    """Read the patient's identifiers and set up the cleaning of a case; `answer_key` is given for a phantom."""
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
        accepted=tuple(row for row in policy.accepted if row.case_id == case.case_id),
        observer=observer_of(answer_key, case.patient_id, rules.dates),
    )
