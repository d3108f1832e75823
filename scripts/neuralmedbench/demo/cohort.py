"""The twelve invented patients of the demo, each described by one file in `patients/`."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from pydantic import Field, TypeAdapter, ValidationError
from pydicom.uid import generate_uid

from neuralmedbench.demo.brain import BrainShape, PhantomLesion
from neuralmedbench.demo.identity import Part, PhantomIdentity, derived_values, fill_note, planted_templates
from neuralmedbench.errors import ConfigError
from neuralmedbench.files.json_files import place_of_fault
from neuralmedbench.files.pseudonyms import case_pseudonym, patient_pseudonym
from neuralmedbench.files.yaml_text import load_yaml
from neuralmedbench.records.answer_key import NoteKey

FOLDER = Path(__file__).with_name("patients")
TINY = ("stroke", "meningioma")
"""The patients of the benchmark `demo-tiny`."""
SHORT = frozenset({"initials", "initials_bare", "zip", "family_broken", "given_possessive"})
"""Planted values that a shareable file may contain by chance."""


class PhantomRecordRow(Part):
    """One row of the health record."""

    variable: str
    value: str
    unit: str = ""
    days_from_scan: int = 0


class PhantomAnswer(Part):
    """The reference answer; its keys are columns of answers.csv."""

    icd10: str = ""
    aliases: tuple[str, ...] = ()
    differentials: tuple[str, ...] = ()
    findings: tuple[str, ...]
    lesion_location: str = ""
    lesion_side: str = ""
    lesion_behaviour: dict[str, str] = Field(default_factory=dict)
    rationale: tuple[str, ...]
    must_not: tuple[str, ...] = ()
    harmful: tuple[str, ...] = ()
    turn_leaders: tuple[str, ...] = ()
    essential: tuple[str, ...] = ()


class Cut(Part):
    """One picture for the breadth benchmark: sequence, plane and position (MNI, mm)."""

    sequence: str
    plane: str
    at: float


@dataclass(frozen=True, kw_only=True)
class Patient:
    """One invented patient."""

    key: str
    seed: int
    diagnosis: str
    level: str
    diagnosis_class: str
    subclass: str
    focal: bool
    identity: PhantomIdentity
    series: tuple[str, ...]
    extra: str
    shape: BrainShape
    lesions: tuple[PhantomLesion, ...]
    answer: PhantomAnswer
    record: tuple[PhantomRecordRow, ...]
    notes: tuple[str, ...]
    cuts: tuple[Cut, ...]
    burned_series: str = ""

    @property
    def study_uid(self) -> str:
        """StudyInstanceUID."""
        return generate_uid(entropy_srcs=["neuralmedbench demo", self.key, "study"])

    @property
    def lesions_shown(self) -> bool:
        """True if the disease is focal in the pictures, not a change of the whole brain's shape."""
        return any(lesion.main for lesion in self.lesions)

    def keyed_notes(self) -> list[tuple[str, NoteKey]]:
        """Fill the patient's identity into the clinical notes; return each with its key of what must be removed and kept."""
        return [fill_note(self.identity, template) for template in planted_templates(self.identity, self.notes)]

    def written(self) -> list[str]:
        """Return the clinical notes as in the raw files."""
        return [text for text, _ in self.keyed_notes()]

    def planted(self) -> list[str]:
        """List the strings planted in headers, file names, notes or record, by which every shareable file is searched for leaks.

        Strings that are also ordinary words, such as a name that is also a disease's, are left out.
        """
        identity, words = self.identity, self.identity.words()
        days = (f"{identity.scanned:%Y%m%d}", f"{identity.born():%Y%m%d}")
        headers = {*identity.in_headers(), identity.family.upper(), identity.physician.split()[-1], *days}
        texts = "\n".join(self.written())
        # dates and derived values only if a note contains them
        dates = ("scanned", "scanned_iso", "scanned_slash", "day_before", "month_before", "born")
        derived = (name for name in derived_values(identity) if name not in SHORT)
        return sorted({*headers, *(words[name] for name in (*dates, "email", *derived) if words[name] in texts)} - {""})

    def case_id(self, key: bytes) -> str:
        """Return the pseudonym of the case under a key."""
        return case_pseudonym(key, self.identity.mrn, self.study_uid)

    def patient_id(self, key: bytes) -> str:
        """Return the pseudonym of the patient under a key."""
        return patient_pseudonym(key, self.identity.mrn)


@cache
def _adapter() -> TypeAdapter[Patient]:
    return TypeAdapter(Patient)


def read_patient(path: Path) -> Patient:
    """Read one patient's file; ConfigError if a key is missing or unknown, or a value does not fit."""
    value: dict[str, Any] = load_yaml(path.read_text(encoding="utf-8"))
    try:
        return _adapter().validate_python({"key": path.stem} | value)
    except ValidationError as error:
        message = f"{path.name}: {place_of_fault(error)}: {error.errors()[0]['msg']}"
        raise ConfigError(message) from None


@cache
def read_cohort() -> tuple[Patient, ...]:
    """Read all patients, sorted by key."""
    return tuple(read_patient(path) for path in sorted(FOLDER.glob("*.yaml")))


def find_patient(case_id: str, key: bytes) -> Patient:
    """Return the patient with a case id.

    Raises
    ------
    ConfigError
        If no patient of the demo has this id under this key.
    """
    for patient in read_cohort():
        if patient.case_id(key) == case_id:
            return patient
    message = f"case {case_id} is not a case of the demo; the demo's case ids are valid only with the key file config/demo.key"
    raise ConfigError(message)
