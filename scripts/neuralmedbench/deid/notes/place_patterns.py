"""Patterns of places below a state: addresses, towns, hospitals, schools."""

from __future__ import annotations

import re

from neuralmedbench.deid.notes.name_patterns import CAPITAL, PROPER
from neuralmedbench.deid.notes.redaction import COVER_NAME
from neuralmedbench.files.words import word_set

_STREET = r"(?:Street|St|Avenue|Ave|Road|Rd|Lane|Ln|Drive|Dr|Boulevard|Blvd|Way|Court|Ct|Square|Sq|Place|Pl|Terrace|Close|Crescent|Gardens|Grove|Mews|Mansions|Row|Hill|Walk|Highway|Hwy|Parkway|Pkwy|Circle|Quay|Pike|Turnpike|Trail|Loop|Bend|Wharf|Rise|View)"
_HOUSE = (
    r"(?:Hospitals?|Clinics?|Medical Cent(?:er|re)|(?:Stroke|Cancer|Trauma|Heart|Rehabilitation|Care|Day) Cent(?:er|re)|Health (?:System|Cent(?:er|re))|Infirmary|Klinikum|Krankenhaus|Ziekenhuis|Hôpital"
    r"|Nursing Home|Care Home|Residential Home|Hospice|Sanatorium|Surgery|Medical Practice|Health Practice|School|College|Academy|Prison|Barracks|Nursery|Kindergarten|Church|Mosque|Temple|Factory|Brewery|Pharmacy|Unit|House|Lodge|Manor|Turbines|Ltd|Inc|GmbH)"
)
_TOWN = rf"{PROPER}(?:[ -](?:upon|on|under|le|la|de|sur|am|an der|aan|{PROPER})){{0,3}}"
_STATE = r"(?:A[KLRZ]|C[AOT]|D[CE]|FL|GA|HI|I[ADLN]|K[SY]|LA|M[ADEINOST]|N[CDEHJMVY]|O[HKR]|P[AR]|RI|S[CD]|T[NX]|UT|V[AT]|W[AIVY])"
_CODE = rf"(?:{_STATE} \d{{5}}(?:-\d{{4}})?|[A-Z]{{1,2}}\d[A-Z\d]? ?\d[A-Z]{{2}})"
_UNIT = r"(?:(?:Flat|Apt\.?|Apartment|Unit|Suite|No\.?|Room) ?\d+[a-zA-Z]?,? )?"
_TAIL = rf"(?:,? ?(?:{_TOWN},? )?{_CODE}\b|,[ ]{_TOWN}(?![a-z]))?"

ADDRESS = re.compile(
    rf"\b{_UNIT}\d{{1,5}}[a-zA-Z]? (?:{CAPITAL} ){{1,4}}{_STREET}\b\.?{_TAIL}"
    rf"|\b{CAPITAL}(?:straße|strasse|straat|laan|gracht|plein|gasse|platz|weg|dijk|kade|vägen|gatan|gade|vej|gata)\s+\d{{1,4}}[a-z]?\b{_TAIL}"
    rf"|\b(?:rue|avenue|via|calle|piazza|place|rua) (?:d[eu'] ?|des |della )?{CAPITAL}(?: {CAPITAL})?,? \d{{1,4}}\b"
    rf"|\b(?:{_TOWN},? )?{_STATE} \d{{5}}(?:-\d{{4}})?\b|\b(?:{_TOWN},? )?[A-Z]{{1,2}}\d[A-Z\d]? \d[A-Z]{{2}}\b|\bP\.? ?O\.? Box \d+"
    rf"|\b\d{{4}} ?[A-Z]{{2}}[ ]{PROPER}\b"
)
POSTCODE = re.compile(
    r"\b(?:zip(?: code)?|post ?code|postal code|eircode|PLZ)[: ]+(?P<value>(?=[A-Z ]*\d)[A-Z\d]{3,5}(?:[ -][A-Z\d]{3,4})?)\b", re.IGNORECASE
)
ADDRESS_LINE = re.compile(
    r"\b(?P<word>(?:home )?address|lives at|residing at|resident of|residence)(?P<rest>[^:;\n.]{0,24}:)?\s+(?P<value>(?:(?!,? (?:tel(?:ephone)?|phone|fax|e-?mail|mobile|cell)\b)[^;\n.]|\b(?:St|Rd|Ave|Dr|Apt|No)\.){3,80})",
    re.IGNORECASE,
)
HOUSE = re.compile(
    rf"\b(?:{CAPITAL}[ ]|of[ ]|the[ ]|and[ ]|&[ ]|St\.[ ]){{1,6}}{_HOUSE}\b(?:,? of {CAPITAL}| {CAPITAL})?(?:,? (?:flat|apt\.?|apartment) \d{{1,4}}[a-z]?)?(?:, {_TOWN}(?: {_CODE})?)?"
)
HOUSE_FIRST = re.compile(
    rf"\b(?:Hospital|Hôpital|Clínica|Clinica|Ospedale|Klinikum|Clinique|Policlinico)[ ](?:(?:de|del|della|di|du|la|San|Santa|St\.)[ ])*{CAPITAL}(?:[ ]{CAPITAL}){{0,3}}"
)
NAMED_STREET = re.compile(
    rf"\b(?:{PROPER} ){{1,3}}(?:Street|Road|Avenue|Lane|Boulevard|Drive|Crescent|Terrace)\b(?! (?:[Tt]est|[Ss]afety))"
)
BARE_HOUSE = re.compile(
    rf"\b(?P<value>{PROPER} (?:General|Memorial|Royal|Regional|County|Infirmary))(?=[ ]*(?:[|,;.)\n]|$|ED\b|A&E\b|ICU\b))|(?<=\bat )(?P<also>{PROPER} (?:Imaging|Radiology|Diagnostics))(?!\w)"
)
"""A hospital that is named without the word: `Wexmoor General`."""
SAINT = re.compile(rf"\b(?P<value>St\.? {PROPER}(?:['’]s)?)(?!\w)(?! wort)")
NAMED_FROM = re.compile(rf"(?<={COVER_NAME}) (?:of|from) (?P<value>{_TOWN})(?!\w)")
PLACED = re.compile(rf"\b(?:in|from|near)[ ](?:the[ ])?(?P<value>{_TOWN}(?:, {_TOWN})?)(?!\w)")
GOING = re.compile(
    rf"\b(?i:home|back|moved|moving|transferred|discharged|repatriat\w+|flew|travel\w+|went|returned|drove)(?:[ ]\w+)?[ ]to[ ](?P<value>{_TOWN})(?!\w)"
    rf"|\b(?i:from[ ]\S+)[ ]to[ ](?P<second>{_TOWN})(?!\w)"
    rf"|\b(?:[a-z]+(?:er|or|ist|man|woman|smith)|native|citizen|[Nn]ursery:|[Ss]chool:|[Ee]mployer:|[Cc]ompany:|[Ww]ork:|[Tt]own:|[Cc]ity:|[Rr]esidence:|[Ff]ound at|[Ll]iving at|[Ss]tay(?:s|ing) at|[Rr]ehab(?:ilitation)? at|[Rr]espite at|[Tt]reated at|[Aa]dmitted at|[Ss]een at|[Ss]canned at|[Pp]re-alert(?:ed)? to|[Cc]onveyed to|[Tt]aken to|[Rr]esid(?:es|ing) at|[Ww]orks at|[Ww]orks for)[ ](?:of[ ])?(?P<third>{_TOWN}(?:,? \d*[A-Z]?[ ]?{_TOWN})*(?: \d+)?)(?!\w)"
)
HOUSE_WORDS = word_set(
    "the of and General University Memory Stroke Headache Epilepsy Outpatient Local Day Neurology Movement Disorder Disorders Regional ",
    "Teaching Community District Referring Our This That Hospital Clinic Clinics Medical Center Centre Emergency MS Pain Balance Dizziness",
    "Nursing Home Care School Surgery Primary Secondary High Infirmary Hospice Health System Vascular Neurovascular Medicine Dear Rehabilitation",
    "Imaging Radiology Diagnostics Infirmary Memorial Royal County Attorney Vital Magnetic Diffusion Perfusion Intensive Care Unit High Dependency Coronary Acute Assessment Admissions Psychiatric Inpatient Short Stay Step Down Observation Critical Neonatal",
    "Hyperacute Recovery Pharmacy House White Monitoring Telemetry Video Swallowing Hounsfield",
    "College Practice Brain Spine Cancer Sleep Eye Seizure First Nerve Muscle Neuromuscular Neuro Transfer Prison In At Church Nursery Admission",
)
NOT_TOWNS = word_set(
    "january february march april may june july august september october november december monday tuesday wednesday thursday friday saturday sunday",
    "spring summer autumn winter memory clinic emergency department hospital ward unit intensive radiology neurology outpatient theatre recovery",
    "room bed bay english french german spanish dutch arabic mandarin latin europe africa asia america england scotland wales ireland france germany",
    "spain italy portugal netherlands belgium sweden norway denmark finland poland greece turkey russia china japan india brazil mexico canada",
    "australia kenya nigeria egypt morocco iran iraq syria pakistan bangladesh vietnam thailand korea philippines indonesia alabama alaska arizona",
    "arkansas california colorado connecticut delaware florida georgia hawaii idaho illinois indiana iowa kansas kentucky louisiana maine maryland",
    "massachusetts michigan minnesota mississippi missouri montana nebraska nevada ohio oklahoma oregon pennsylvania tennessee texas utah vermont",
    "virginia wisconsin wyoming table figure section case patient cerebral spinal brain mental other status type grade stage part view both left right",
    "resus theatres recovery majors minors triage angio surgery court trauma stroke rehab rehabilitation casualty sister doctor nurse",
)
"""Capitalised words after `in` or `from` that are no place below a state."""
