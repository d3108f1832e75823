"""More invented identifiers of a simulated patient, made out of the record number so that no two patients share one."""

from __future__ import annotations

import datetime as dt
import unicodedata

from neuralmedbench.demo.identity import PhantomIdentity

ORDINALS = {1: "st", 2: "nd", 3: "rd", 21: "st", 22: "nd", 23: "rd", 31: "st"}
KINDS = {
    "name": (
        "family given name physician operator colleague relative relative_upper relative_lower initials initials_bare family_upper"
        " given_upper file_label family_broken given_possessive original_script"
    ),
    "place": "address street town zip hospital elsewhere",
    "date": (
        "scanned scanned_iso scanned_slash day_before month_before born weekday_ordinal dotted dotted_short dashed month_day_year"
        " slash_short the_ordinal iso_time compact"
    ),
    "phone": "phone",
    "fax": "fax",
    "email": "email second_email",
    "ssn": "ssn",
    "record_number": "mrn accession",
    "plan": "plan",
    "account": "account",
    "licence": "licence",
    "vehicle": "plate",
    "device": "implant",
    "url": "url",
    "ip": "ip",
    "biometric": "voiceprint",
    "photo": "photo",
    "other": "trial",
}
"""Placeholders of the notes by the 18 kinds of HIPAA's Safe Harbor; an age over 89 counts as a date, as there."""
KIND_OF = {word: kind for kind, words in KINDS.items() for word in words.split()}


def numbers(who: PhantomIdentity) -> dict[str, str]:
    """Give numbers that a hospital file holds beside the record number; addresses and lines are those reserved for examples."""
    mrn, letters = who.mrn, who.given[0] + who.family[0]
    family = ascii_lower(who.family)
    return {
        "fax": f"+44 1632 960{mrn[-3:]}",
        "ssn": f"9{mrn[:2]}-5{mrn[2]}-{mrn[-4:]}",
        "plan": f"BCX{mrn[::-1]}",
        "account": f"{mrn[4:]}-{mrn[:4]}-07",
        "licence": f"D{mrn[1]}{mrn[3]}-{mrn[2:7]}-R",
        "plate": f"{ascii_lower(letters).upper()}-{mrn[2:5]}-Z{mrn[-1]}",
        "implant": f"PMK-{mrn[-5:]}Q",
        "url": f"https://portal.example.org/{family}/{mrn[:5]}",
        "ip": f"192.0.2.{int(mrn[-3:]) % 254 + 1}",
        "voiceprint": f"VPRINT-{mrn[1:6]}",
        "photo": f"{family}_face_{mrn[-4:]}.jpg",
        "trial": f"SUBJ-{mrn[3:8]}",
        "zip": f"9{mrn[-4:]}",
        "second_email": f"{family}{mrn[-3:]}@mail.example.com",
    }


def dates(who: PhantomIdentity) -> dict[str, str]:
    """Give the spellings of dates that hospitals write; each is another day around the scan."""
    days = [who.scanned + dt.timedelta(days=shift) for shift in (12, -41, -6, 3, 9, 1, 19, -2, 26)]
    return {
        "weekday_ordinal": f"{days[0]:%A}, {days[0]:%b} {ordinal(days[0].day)}",
        "dotted": f"{days[1]:%d.%m.%Y}",
        "dotted_short": f"{days[2].day}.{days[2].month}.{days[2]:%y}",
        "dashed": f"{days[3]:%d-%b-%Y}",
        "month_day_year": f"{days[4]:%B} {ordinal(days[4].day)}, {days[4].year}",
        "slash_short": f"{days[5].day}/{days[5].month}/{days[5]:%y}",
        "the_ordinal": f"the {ordinal(days[6].day)} of {days[6]:%B}",
        "iso_time": f"{days[7].isoformat()}T09:12",
        "compact": f"{days[8]:%Y%m%d}",
    }


def further_words(who: PhantomIdentity) -> dict[str, str]:
    """Give every placeholder of the planted lines that `PhantomIdentity.words` does not have."""
    return {
        **numbers(who),
        **dates(who),
        "town": who.town,
        "colleague": who.colleague,
        "relative": who.relative,
        "relative_upper": who.relative.upper(),
        "relative_lower": who.relative.lower(),
        "elsewhere": who.elsewhere,
        "initials": who.initials,
        "initials_bare": who.initials.replace(".", ""),
        "family_upper": who.family.upper(),
        "given_upper": who.given.upper(),
        "family_broken": f"{who.family[:4]}-\n{who.family[4:]}",
        "given_possessive": f"{who.given}'s",
        "original_script": who.original_script,
        "file_label": f"{who.family.upper()}-{who.given.upper()}",
    }


def ordinal(day: int) -> str:
    """Write a day as `1st`, `2nd`..."""
    return f"{day}{ORDINALS.get(day, 'th')}"


def ascii_lower(text: str) -> str:
    """Letters of a name as an e-mail address has them."""
    return "".join(letter for letter in unicodedata.normalize("NFKD", text).casefold() if letter.isascii() and letter.isalnum())
