"""The invented identity of a simulated patient: everything that de-identification has to find."""

from __future__ import annotations

import datetime as dt

from pydantic import BaseModel, ConfigDict


class Part(BaseModel):
    """A part of a patient's file; a key that is not listed is an error."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class PhantomIdentity(Part):
    """Everything about an invented person that de-identification has to find."""

    family: str
    given: str
    original_script: str = ""
    sex: str
    age: int
    mrn: str
    other_id: str
    phone: str
    email: str
    street: str
    town: str
    physician: str
    operator: str
    operator_script: str = ""
    colleague: str
    relative: str
    elsewhere: str
    hospital: str
    hospital_address: str
    station: str
    serial: str
    accession: str
    scanned: dt.date

    def born(self) -> dt.date:
        """Date of birth: the patient's age in whole years is `age` on the day of the scan."""
        return (self.scanned - dt.timedelta(days=int(self.age * 365.25) + 97 + int(self.mrn[-2:]))).replace(day=14)

    @property
    def initials(self) -> str:
        """Initials with full stops."""
        return f"{self.given[0]}.{self.family[0]}."

    def words(self) -> dict[str, str]:
        """Placeholders of notes and record."""
        day, born = self.scanned, self.born()
        return {
            "family": self.family,
            "given": self.given,
            "name": f"{self.given} {self.family}",
            "title": "Mr" if self.sex == "M" else "Ms",
            "age": str(self.age),
            "mrn": self.mrn,
            "phone": self.phone,
            "email": self.email,
            "address": f"{self.street}, {self.town}",
            "street": self.street,
            "physician": f"Dr {self.physician}",
            "operator": self.operator,
            "hospital": self.hospital,
            "accession": self.accession,
            "scanned": f"{day.day} {day:%B} {day.year}",
            "scanned_iso": day.isoformat(),
            "scanned_slash": f"{day:%d/%m/%Y}",
            "day_before": (day - dt.timedelta(days=1)).strftime("%d/%m/%Y"),
            "month_before": (day - dt.timedelta(days=30)).strftime("%d/%m/%Y"),
            "born": f"{born:%d/%m/%Y}",
        }
