"""Patterns of the Safe Harbor kinds in clinical English; what a patient's own header says is searched apart (deid/notes.py)."""

from __future__ import annotations

import re

from neuralmedbench.io.identity import word_set

MONTHS = ("january", "february", "march", "april", "may", "june", "july", "august", "september", "october", "november", "december")
_MONTH = r"(?:Jan(?:uary)?|Feb(?:ruary)?|Mar(?:ch)?|Apr(?:il)?|May|June?|July?|Aug(?:ust)?|Sept?(?:ember)?|Oct(?:ober)?|Nov(?:ember)?|Dec(?:ember)?)\.?"
_WEEKDAY = r"(?:(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day,?\s+)?"
_ORDINAL = r"(?:st|nd|rd|th)?"
_PARTICLE = r"(?:van|von|de|der|den|del|della|di|da|dos|la|le|el|al|ten|ter|zu|bin|ibn|O['’]|Mc|Mac)"
_CAPITAL = r"[^\W\d_a-zß-öø-ÿ][^\W\d_]*(?:['’-][^\W\d_]+)*"
"""A word that starts with a capital letter, in any Latin spelling."""
_INITIAL = r"(?:[A-Z]\.[ ]?){1,3}"
_NAME = rf"(?:(?:{_INITIAL})?(?:{_PARTICLE}[ ])*{_CAPITAL}(?:[ ](?:{_PARTICLE}[ ])*(?:[A-Z]\.[ ]?)?{_CAPITAL}){{0,3}})"
_STREET = r"(?:Street|St|Avenue|Ave|Road|Rd|Lane|Ln|Drive|Boulevard|Blvd|Way|Court|Ct|Square|Sq|Place|Terrace|Close|Crescent|Gardens|Highway|Hwy|Parkway)"
_HOUSE = r"(?:Hospitals?|Clinics?|Medical Cent(?:er|re)|Health (?:System|Cent(?:er|re))|Infirmary|Klinikum|Krankenhaus|Ziekenhuis|Hôpital|Nursing Home|Hospice|Sanatorium)"

EMAIL = re.compile(r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+")
URL = re.compile(r"(?:https?://|www\.)[^\s<>\"')]+", re.IGNORECASE)
IP_ADDRESS = re.compile(r"(?<![\d.])(?:\d{1,3}\.){3}\d{1,3}(?![\d.])")
SSN = re.compile(r"(?<!\d)\d{3}-\d{2}-\d{4}(?!\d)")
PHONE = re.compile(
    r"(?<![\w+])(?:(?:\+|00)\d[\d ().-]{6,}\d|\(?\d{3}\)?[ .-]\d{3}[ .-]\d{4})(?!\w)"
    r"|(?<=\b)(?:tel(?:ephone)?|phone|fax|mobile|cell|pager|bleep)\b[ .:()#]*(?:no\.?|number)?[ .:()#]*\d[\d ().-]{2,}\d",
    re.IGNORECASE,
)
RECORD_NUMBER = re.compile(
    r"\b(?:MRN|(?:hospital|patient|medical record|record|chart|case|NHS|insurance|policy|member|account|accession|licen[cs]e|serial)"
    r" ?(?:id|no|nr|number|#)\.?|accession|acc|ID|SSN|BSN)\s*[.:#=]?\s*(?P<value>[A-Z]{0,4}[- ]?\d[\dA-Z-]{2,})\b",
    re.IGNORECASE,
)
LONG_NUMBER = re.compile(r"(?<![\w.,/])\d{6,}(?![\w/]|[.,]\d)|(?<!\w)[A-Z]{1,4}-?\d{5,}(?!\w)")
BORN = re.compile(
    r"\b(?P<word>(?:born|date of birth|dob|d\.o\.b\.|birth ?date)(?:\s+on)?\s*[:.]?\s*)(?P<value>\d{1,4}[-./ ]\d{1,2}[-./ ]\d{1,4}"
    rf"|\d{{1,2}}{_ORDINAL} {_MONTH},? \d{{4}}|{_MONTH} \d{{1,2}}{_ORDINAL},? \d{{4}}|(?:in )?(?:{_MONTH} )?\d{{4}})",
    re.IGNORECASE,
)
NUMERIC_DATE = re.compile(r"(?<![\d/.-])(?P<a>\d{1,4})(?P<mark>[-./])(?P<b>\d{1,2})(?P=mark)(?P<c>\d{4}|\d{2})(?![\d/-]|\.\d)")
DAY_MONTH_YEAR = re.compile(rf"\b{_WEEKDAY}(?P<day>\d{{1,2}}){_ORDINAL}(?: of)? (?P<month>{_MONTH}),? (?P<year>\d{{4}})\b", re.IGNORECASE)
MONTH_DAY_YEAR = re.compile(rf"\b{_WEEKDAY}(?P<month>{_MONTH}) (?P<day>\d{{1,2}}){_ORDINAL},? (?P<year>\d{{4}})\b", re.IGNORECASE)
MONTH_YEAR = re.compile(rf"\b(?P<month>{_MONTH}),? (?P<year>\d{{4}})\b", re.IGNORECASE)
DAY_MONTH = re.compile(
    rf"\b{_WEEKDAY}(?:\d{{1,2}}{_ORDINAL}(?: of)? {_MONTH}|{_MONTH} \d{{1,2}}{_ORDINAL})(?![\w/])|\bon \d{{1,2}}[/.]\d{{1,2}}\b(?![/.]\d)"
)
ADDRESS = re.compile(
    rf"\b\d{{1,5}}[a-zA-Z]? (?:{_CAPITAL} ){{1,4}}{_STREET}\b\.?"
    rf"|\b{_CAPITAL}(?:straße|strasse|straat|laan|gracht|plein|gasse|platz|weg|dijk|kade|vägen|gatan)\s+\d{{1,4}}[a-z]?\b"
    r"|\b(?:rue|avenue|via|calle|piazza|place) (?:d[eu'] ?|des |della )?" + _CAPITAL + r"(?: " + _CAPITAL + r")?,? \d{1,4}\b"
    r"|\b[A-Z]{2} \d{5}(?:-\d{4})?\b|\b[A-Z]{1,2}\d[A-Z\d]? \d[A-Z]{2}\b|\bP\.? ?O\.? Box \d+"
)
ADDRESS_LINE = re.compile(
    r"\b(?P<word>(?:home )?address|lives at|residing at|resident of|lives in)(?P<rest>[^:;\n.]{0,24}:)?(?P<value>\s+[^;\n.]{3,80})",
    re.IGNORECASE,
)
HOUSE = re.compile(rf"\b(?:{_CAPITAL}[ ]|of[ ]|the[ ]|and[ ]|&[ ]|St\.[ ]){{1,6}}{_HOUSE}\b(?: of {_CAPITAL}| {_CAPITAL})?")
HOUSE_FIRST = re.compile(
    rf"\b(?:Hospital|Hôpital|Clínica|Clinica|Ospedale|Klinikum|Clinique|Policlinico)[ ](?:(?:de|del|della|di|du|la|San|Santa|St\.)[ ])*{_CAPITAL}(?:[ ]{_CAPITAL}){{0,3}}"
)
HOUSE_WORDS = word_set(
    "the of and General University Memory Stroke Headache Epilepsy Outpatient Local Day Neurology Movement Disorder Disorders Regional ",
    "Teaching Community District Referring Our This That Hospital Clinic Clinics Medical Center Centre Emergency MS Pain Balance Dizziness",
)
TITLED_NAME = re.compile(
    rf"\b(?P<title>(?:(?:(?:[Dd]rs?|[Pp]rof|Mrs?|Ms|Mme|med)\b\.?|Professor|Miss|Sir|Frau|Herr|Nurse|Sister|Doctor)[ ]+)+)(?P<value>{_NAME})"
)
LABELLED_NAME = re.compile(
    r"\b(?P<word>(?:patient(?:'s)?(?: name)?|name|surname|forename|attending|consultant|radiologist|neurologist|physician|referr(?:er|ing physician|ed by)"
    r"|signed(?: by)?|reported by|dictated by|authori[sz]ed by|transcribed by|seen by|reviewed by|discussed with|cc|GP|next of kin|contact|carer)"
    rf"\s*:[ ]*)(?P<value>{_NAME})",
    re.IGNORECASE,
)
RELATIVE_NAME = re.compile(
    r"\b(?P<word>(?:wife|husband|spouse|son|daughter|mother|father|brother|sister|partner|neighbour|neighbor|friend|colleague|carer|aunt|uncle|niece|nephew|called|named)"
    rf",?[ ]+)(?P<value>(?-i:{_NAME}))",
    re.IGNORECASE,
)
SUFFIXED_NAME = re.compile(rf"(?P<value>{_NAME})(?=,? (?:MD|M\.D\.|PhD|FRCR|FRCP|DO|MBBS)\b)")
AGE = re.compile(
    r"\b(?P<age>\d{2,3})(?P<rest>[- ]?(?:years?|yrs?|y)\b(?:[- /](?:old|o)\b)?|[- ]?y\.?o\.?\b| ?y/o\b)|\b(?P<word>aged?(?: of)?:?\s+)(?P<late>\d{2,3})\b",
    re.IGNORECASE,
)
SPELLED_AGE = re.compile(
    r"\bninety(?:[- ](?:one|two|three|four|five|six|seven|eight|nine))?(?=[- ]years?)|\bcentenarian\b|\bnonagenarian\b", re.IGNORECASE
)

EPONYMS = word_set(
    "Alzheimer Parkinson Huntington Creutzfeldt Jakob Pick Binswanger Lewy Broca Wernicke Korsakoff Babinski Hoffmann Romberg Lhermitte Kernig ",
    "Brudzinski Horner Marcus Gunn Weber Rinne Wallenberg Millard Gubler Benedikt Guillain Barré Barre Miller Fisher Lambert Eaton Charcot Marie ",
    "Tooth Duchenne Becker Friedreich Wilson Dawson Virchow Robin Willis Sylvius Rolando Heschl Monro Luschka Magendie Meckel Dandy Walker Chiari ",
    "Arnold Bell Ramsay Hunt Todd Jackson Lennox Gastaut West Rasmussen Sturge Hippel Lindau Recklinghausen Cushing Glasgow Rankin Barthel Fazekas ",
    "Hunt Hess Fisher Hoehn Yahr Spetzler Martin Moyamoya Takayasu Behçet Behcet Sjögren Whipple Lyme Hachinski Folstein Montreal Boston Brodmann ",
    "Holmes Adie Argyll Robertson Tolosa Devic Marburg Balo Schilder Leigh Kearns Sayre Fabry Gaucher Niemann Tay Sachs Krabbe Alexander Canavan ",
    "Evans Papez Ammon Gerstmann Balint Anton Capgras Doppler Schwann Schwannoma Wada Epworth Beck Hamilton Karnofsky Aspects Troponin Hallpike Dix ",
    "Epley Meniere Ménière Brown Sequard Kennedy Foster Parinaud Steele Richardson Olszewski Percheron Heubner Galen Labbé Trolard Purkinje Golgi",
)
"""Names that are diseases, signs, scores and places in the brain."""
