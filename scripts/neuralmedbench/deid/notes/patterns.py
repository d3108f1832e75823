"""Patterns of persons' names, places and identifying numbers in clinical English; for dates see `dates`.

They work on a text that is being redacted: replaced parts are hidden from later patterns, and their positions are recorded.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from neuralmedbench.files.identity import GENERIC, ORDINARY
from neuralmedbench.files.words import EPONYMS, word_set

COVER, COVER_NAME, COVER_ID = "\ue000", "\ue001", "\ue002"
"""Private-use characters that cover replaced letters one for one: positions stay valid, and later patterns can match next to a name or number."""
COVERS = COVER + COVER_NAME + COVER_ID
PLACEHOLDERS = (
    "[ADDRESS]", "[DATE]", "[EMAIL]", "[FILE]", "[HOSPITAL]", "[ID]", "[IP]", "[NAME]", "[PHONE]", "[PLACE]", "[SECTION CUT]", "[TEXT]",
    "[URL]",
)  # fmt: skip
"""Everything that cleaning writes in place of a value, except for shifted dates."""


@dataclass(frozen=True, order=True)
class Span:
    """A replaced part of a text: characters `start` to `end` (exclusive), its kind, and its replacement."""

    start: int
    end: int
    kind: str
    replacement: str


class Redaction:
    """The replaced parts of one text.

    Parameters
    ----------
    text : str
        The text.

    Attributes
    ----------
    text : str
        The text with replaced letters covered; as long as the given one.
    spans : list of Span
        Replaced parts in the order of detection; they do not overlap.
    """

    def __init__(self, text: str) -> None:
        self.source = self.text = re.sub(f"[{COVERS}]", " ", text)
        self.spans: list[Span] = []

    def cover(self, start: int, end: int, kind: str, replacement: str) -> None:
        """Replace a part, except for what is already covered in it."""
        cover = {"[NAME]": COVER_NAME, "[ID]": COVER_ID}.get(replacement, COVER)
        place = start
        while place < end:
            stop = next((at for at in range(place, end) if self.text[at] in COVERS), end)
            if any(letter.isalnum() for letter in self.text[place:stop]):
                self.spans.append(Span(place, stop, kind, replacement))
                self.text = self.text[:place] + cover * (stop - place) + self.text[stop:]
            place = stop + 1

    def replace(self, pattern: re.Pattern[str], kind: str, replacement: Callable[[re.Match[str]], str | None] | str) -> None:
        """Replace every match, or its group `value`, `also` or `last` where it has one; `replacement` may decline with None."""
        for match in list(pattern.finditer(self.text)):
            group: str | int = next((name for name in ("value", "also", "last") if name in pattern.groupindex and match[name]), 0)
            text = replacement if isinstance(replacement, str) else replacement(match)
            if text is not None:
                self.cover(*match.span(group), kind, text)

    def counts(self) -> Counter[str]:
        """Count the replacements by kind."""
        return Counter(span.kind for span in self.spans)

    def result(self) -> str:
        """Return the text with all replacements."""
        parts, place = [], 0
        for span in sorted(self.spans):
            parts += [self.source[place : span.start], span.replacement]
            place = span.end
        return "".join([*parts, self.source[place:]])


PARTICLE = r"(?:[Vv]an|[Vv]on|[Dd]e|[Dd]er|[Dd]en|[Dd]el|[Dd]ella|[Dd]i|[Dd]a|[Dd]os|la|le|el|al|ten|ter|zu|bin|ibn|O['’]|Mc|Mac)"
CAPITAL = r"[^\W\d_a-zß-öø-ÿ][^\W\d_]*(?:['’-][^\W\d_]+)*"
"""A word that starts with a capital letter, in any Latin spelling."""
PROPER = r"[^\W\d_a-zß-öø-ÿ][^\W\d_A-ZÀ-ÖØ-Þ][^\W\d_]+(?:['’-][^\W\d_]+)*"
"""A capitalised word of at least three letters that is not an abbreviation."""
INITIAL = r"(?:[A-Z]\.[ -]?){1,3}"
_NOT_A_NAME = r"(?!(?:MRI?|MRA|CTA?|CTP|EEG|EMG|ECG|EKG|EVD|ICU|ED|ER|GP|ENT|FAST|GCS|NIHSS|BP|HR|MD|RN|DO|PhD|FRC\w+|MB\w+|IV|LKW|DOB|MRN|ID|ISS|TIA|SAH|ICH|PT|OT|SLT|WHO|MS)\b)"
NAME = rf"(?:(?:{INITIAL})?(?:{PARTICLE}[ ])*{CAPITAL}(?:[ ]{_NOT_A_NAME}(?:{PARTICLE}[ ])*(?:[A-Z]\.[ ]?)?{CAPITAL}){{0,3}})"
_PERSON = r"(?:[Dd]rs?|DR|[Pp]rof|PROF|Mrs?|MR(?! (?i:angio|veno|spectro|perf|imag|brain|head|neck|spine|orbit|pituit|cerv|lumb|scan))|MRS|Ms|MS(?=\. )|Mme|med)\b\.?|RN|SN|Sr\.|Rev\.?|Reverend|Rabbi|Imam|Capt\.|Sgt\.?|Dame|Mx|Professor|Miss|Sir|Lady|Frau|Herr|Madame|Monsieur|Señora?|Nurse|Sister|Doctor"
TITLED_NAME = re.compile(rf"\b(?P<title>(?:(?:{_PERSON})[ ]+)+)(?P<value>{NAME})")
ROLES = (
    r"patient(?:'s)?(?: name)?|pt|client|name|surname|forename|full name|first name|last name|attending|consultant|counsell?or|radiologist|neurologist"
    r"|physician|surgeon|registrar|referr(?:er|ing physician|ed by)|signed(?: (?:by|electronically by))?|electronically signed(?: by)?|reported by|read by"
    r"|dictated by|authori[sz]ed by|transcribed by|typed by|seen by|reviewed by|discussed with|copied to|cc|GP|PCP|next of kin|nok|contact|carer|escort"
    r"|relative|attn|re|from|to|witness|interpreter|therapist|ana?esthetist|anesthesiologist|scrub(?: nurse)?|runner|circulator|operator|assistant|informant|author|secretary"
    r"|key ?worker|case ?worker|social worker|care ?coordinator|specialist nurse|name ?band(?: checked)?|(?:patient|pt) label|requested by|req|ordered by|verified by|entered by"
    r"|accompanied by|chaperone|crew|midwife|dietitian|observer|examiner|tester"
)
LABELLED_NAME = re.compile(
    rf"\b(?P<word>(?:{ROLES})\s*(?:\([^)\n]{{1,20}}\))?\s*[:|][ ]*|(?:next of kin|nok) [-–] )(?P<value>(?-i:{NAME}(?:, {NAME})?))",
    re.IGNORECASE,
)
TABLED_NAME = re.compile(rf"(?:^|(?<=\n))(?:{ROLES})\t[ ]*(?P<value>(?-i:{NAME}(?:, {NAME})?))(?=[ ]*(?:\n|$))", re.IGNORECASE)
"""A name next to its title in a two-column table."""
ADDRESSED_NAME = re.compile(
    rf"(?:^|(?<=\n)|(?<=[.:!] ))[ ]*(?:Dear|Hello|Hi|Hey|Liebe[r]?|Beste|Chère?|Best|Thanks|Cheers|Regards|Groet|(?:With )?(?:K|k)ind regards|(?:Yours )?(?:S|s)incerely|Love)"
    rf",?\s+(?P<value>{NAME})(?=[\s,.!]|$)"
)
SAID_NAME = re.compile(
    rf"\b(?i:re|regarding|concern|about|as per|per|spoke (?:to|with)|reviewed by|seen by|operated by|handed over to|informed by|consultant|signed by|signed|registered as|under"
    rf"|patient|pt|called to|phoned to|therapist|nurse|baby (?:girl|boy)|counsellor|(?:seen|came|attended|lives|here) (?:with|w/))[ ]+(?P<value>{PROPER}[ ](?:[A-Z]\.?[ ])?{PROPER}(?:[ ]{PROPER})?)\b"
    rf"|\b(?i:patient|pt|name|client|adm)[ ]+(?P<also>{PROPER}(?:, {PROPER}|[ ][A-Z]))(?=[ ]{{2}}|[\t\n,;(]|$)"
)
RELATIONS = (
    r"wife|husband|husb|hubby|spouse|son|daughter|dtr|dau|mother|father|mum|mom|dad|brother|bro|sister|sis|partner|neighbou?r|friend|roommate|colleague|carer|aunt|uncle"
    r"|niece|nephew|cousin|grandson|granddaughter|(?:daughter|son|mother|father|sister|brother)-in-law|girlfriend|boyfriend|fianc[eé]e?|stepson|stepdaughter"
)
RELATIVE_NAME = re.compile(
    rf"\b(?P<word>(?:{RELATIONS}|relative|kin|called|named|doctor called),?[ ]+)(?P<value>(?-i:{NAME}))",
    re.IGNORECASE,
)
ROLE_AFTER = re.compile(
    rf"(?<![\w'’])(?P<value>(?-i:{NAME}))[ ]?\((?:wife|husband|son|daughter|mother|father|brother|sister|partner|neighbour|friend|niece|nephew|carer)\)",
    re.IGNORECASE,
)
SUFFIXED_NAME = re.compile(
    rf"(?<![\w'’])(?P<value>{NAME}(?:, {NAME})?)(?=,? (?:MD|M\.D\.|PhD|FRCR|FRCP|DO|MBBS|RN|PA-C|NP|PGY-?\d|DPT|OT|SLP|[Cc]onsultant|(?:consultant )?[Nn]eurologist|[Rr]adiologist|staff nurse)\b)"
)
INVERTED_NAME = re.compile(
    r"(?:^|(?<=\n)|(?<=: )|(?<=- ))(?P<value>[A-Z][A-Z'’-]{2,}, ?(?:[A-Z]\.?(?![\w])|[A-Z][a-z]+(?: [A-Z]\.?(?!\w))?))(?=[\s,.;/]|$)"
)
"""`MONTGOMERY, Q.` and `HADDAD, Layla` at the start of a line or field."""
PLAIN_INVERTED = re.compile(rf"(?:^|(?<=\n)|(?<=: )|(?<=- ))(?P<value>{PROPER}, ?[A-Z]\.)(?=[\s,;/]|$)")
CARETS = re.compile(r"\b[^\W\d_]{1,60}(?:\^[^\W\d_]{0,60}){1,6}")
TYPIST = re.compile(
    rf"\b(?i:transcribed|typed|dictated|entered|checked|verified|released|authori[sz]ed)(?: by)?:?\s+(?P<value>(?!(?:by|and|in|on|at|the|as|to|for|with)\b)[a-z]{{2,4}})(?=[.\s;,/]|$)"
    rf"|\b(?i:transcribed|typed|dictated|entered|checked|verified|released|authori[sz]ed|signed)(?i: by)?:?\s+(?P<also>(?:[A-Z]\.[ -]?){{2,4}}|{_NOT_A_NAME}[A-Z]{{2,3}}\b)(?:/[a-z]{{2,4}}\b)?"
    rf"|(?<![\w.])(?P<last>(?:[A-Z]\.){{2,3}})(?=[ ]?/?[ ]?(?:RN|SN|EN|HCA|MD|NP|PA-C|OT|PT|SLP|FY\d|ST\d|SHO|CT\d)\b)"
    rf"|(?<= by ){_NOT_A_NAME}(?!US\b|LP\b)(?:[A-Z]{{2}}|(?:[A-Z]\.){{2,3}})(?=[.;,\n]|$)"
)
NICKNAMED = re.compile(rf"[\"“](?P<value>{PROPER}[\"”](?:[ ]{PROPER}){{1,2}})(?!\w)")
SAYING_NAME = re.compile(
    rf"(?<![\w'’-])(?P<value>{PROPER}(?:[ ][A-Z]\.?)?[ ]{PROPER})(?=[ ](?:reports?|complains|says|said|called|phoned|denies|agreed|agrees|consents|consented|takes|has|had|is|was|will|remains|needs|asked|feels|lives|works)\b)"
)
"""Two capitalised words followed by a verb of saying or doing; counts if neither is a medical word."""
INITIALLED_NAME = re.compile(rf"(?<![\w.&/])(?P<value>(?:[A-Z]\.[ -]?){{1,3}}(?:{PARTICLE}[ ])*{PROPER})(?!\w)")
ROLE_NAME = re.compile(
    rf"\b(?:PCP|GP|[Aa]ttending|[Cc]onsultant|[Rr]egistrar|[Cc]arer|[Ee]scort|[Pp]hysician|[Tt]herapist|[Ss]urgeon|[Aa]ssistant|[Oo]perator|[Aa]naesthetist|[Aa]nesthesiologist|[Pp]er|[Cc]olleague|-old(?:[ ](?:boy|girl|man|woman|male|female|infant))?)[ ](?P<value>{PROPER})(?!\w)"
)
LISTED_NAME = re.compile(
    rf"(?:^|(?<=\n))[ \t]*(?:[-*•–]|\d{{1,2}}[.)])[ ]+(?P<value>{PROPER}[ ](?:[A-Z]\.?[ ])?{PROPER})(?=[ ]*(?:,|\n|$|\())|(?<=\t)(?P<also>{PROPER}[ ](?:[A-Z]\.?[ ])?{PROPER})(?=[ ]*(?:\t|\n|$))"
)
"""Two capitalised words that begin a list item or fill a table cell; counts if neither is a medical word."""
PAIR = re.compile(rf"(?<=[a-z,(] )(?P<value>{PROPER}(?:[ ][A-Z]\.)?[ ]{PROPER})(?![\w'’]|[ ]{PROPER})")
"""Two capitalised words within a sentence; counts if neither is a medical word."""
PRESENTED_NAME = re.compile(
    rf"(?<![\w'’-])(?P<value>{PROPER}(?:[ ][A-Z]\.?)?(?:[ ]{PROPER})?[ ](?:{PARTICLE}[ ])*{PROPER})(?=,? \(?(?:aged?\b|\d{{1,3}}[ -]?(?:y\b|yo\b|yrs?\b|years?\b|year-old|y/o|[MF]\b)"
    r"|born\b|DOB\b|MRN\b|was (?:born|an? (?:in|out)patient|admitted|seen|referred|brought)|is (?:an?|my) |presents\b|presented\b|returns\b|attended\b|came\b|lives\b))"
)
"""Two or three capitalised words before words that introduce a person."""
_BESIDE = rf"(?:(?:[A-Z]\.[ -]?){{1,3}}|[A-Z]{{1,2}}(?!\w)|{PARTICLE})"
BEFORE_NAME = re.compile(rf"(?<![\w.&/])(?P<value>{_BESIDE}(?:[ ]{_BESIDE})*(?:[ ]|(?<=['’])))(?={COVER_NAME})")
AFTER_NAME = re.compile(
    rf"(?<={COVER_NAME})[ ](?P<last>[A-Z]\b)(?=[ ]*(?:\n|$|[ ][ ]|[,;)\t]))|(?<={COVER_NAME}),? (?P<value>(?:[A-Z]\.-?){{1,3}}(?!\w))|(?<={COVER_NAME}), (?P<also>[A-Z]\b)(?=[ ]?(?:\d|[\n;,)]|$))"
)
JOINED_NAME = re.compile(rf"(?<={COVER_NAME})(?P<value>-{CAPITAL})|(?<!\w)(?P<before>{CAPITAL}-)(?={COVER_NAME})")
BETWEEN_NAMES = re.compile(rf"(?<={COVER_NAME})(?P<value>[ ](?:[A-Z]\.?|{PARTICLE}|[A-Z]\.? {PARTICLE})[ ])(?={COVER_NAME})")
"""Initials and particles next to a detected name."""
NO_NAMES = word_set(
    "the he she it they we no not and or in on at to by of with via if is was has had who what patient mri ct eeg emg home today now team ward unit hospital clinic",
    "department service general practitioner neurology radiology surgery emergency stroke nursing family history report findings impression notes",
    "regards thanks best sincerely dear hello hi cheers love groet dr prof mr mrs ms miss mme madame professor doctor sister nurse neurologist radiologist surgeon physician psychiatrist cardiologist anaesthetist nephrologist geriatrician practice whom may all both self none unknown nil please note course technique comparison exam brain head follow plan call history physical",
)
MEDICAL_WORDS = word_set(
    "multiple sclerosis syndrome disease disorder transient ischaemic ischemic attack magnetic resonance imaging angiography venography computed tomography subarachnoid subdural",
    "intracerebral haemorrhage hemorrhage scale score test index assessment examination inventory criteria questionnaire classification battery coma outcome cognitive mini mental state",
    "status epilepticus cerebral cerebrospinal fluid brain spinal cord nerve nerves cranial motor neuron neurone neuropathy epilepsy stroke dementia bodies body aphasia palsy migraine",
    "apoplexy tremor ataxia amnesia dystonia spasm hemispasm poisoning heterotopia polymicrogyria agenesis callosum",
    "tumour tumor association society foundation national international health organisation organization guideline protocol trial study clinic memory department emergency",
    "accident intensive care unit ward theatre room bed general medical nursing home neurology neurosurgery radiology cardiology ophthalmology psychiatry physiotherapy occupational therapy",
    "speech language early warning blood pressure heart rate lumbar puncture deep vein thrombosis pulmonary embolism atrial fibrillation myocardial infarction diabetes mellitus vitamin",
    "left right acute chronic past family social drug history english type grade stage phase day week new old no normal positive negative further see please thank thanks best",
    "european american british german french dutch canadian world modified revised abbreviated beck naming trail making clock drawing functional independence measure visual analogue",
    "middle anterior posterior inferior superior artery arteries sinus territory circle lobe infarct gliosis glioblastoma meningioma schwannoma astrocytoma",
    "csf leak virus herpes simplex varicella zoster lyme borrelia covid influenza streptococcus staphylococcus tuberculosis botulinum toxin immunoglobulin plasma exchange rituximab natalizumab",
)
"""Words capitalised in notes that are not names."""
MEDICAL_ENDING = re.compile(
    r"(?:itis|omas?|osis|asis|pathy|aemia|emia|algia|plegia|paresis|trophy|tion|sion|ment|plasia|otomy|ectomy|graphy|scopy|cysts?|ical|nial|ular|eral|ous|itic|atic|otic|emic|enic"
    r"|ysm|injury|gravis|atosis|lysis|ural|bral|inal|dural|ynal|oid|onal|cephalus|ity|ities|bolic|ocal|glial|plasms?|asts?ases|tases|teri?al|ebri|signal|matter|infarcts?|douloureux|Attack|Ventricle|Disease|Disorder)\b",
    re.IGNORECASE,
)
"""Endings of capitalised names of diseases."""


@cache
def given_names() -> frozenset[str]:
    """Return common given names of many countries in lower case, without those that are ordinary words or eponyms."""
    words = word_set(Path(__file__).with_name("given_names.txt").read_text(encoding="utf-8"))
    return words - EPONYMS - ORDINARY - GENERIC


GIVEN_NAME = re.compile(
    rf"(?<![\w'’-])(?P<value>(?P<given>{CAPITAL})(?:[ ](?:[A-Z]\.?[ ])?(?:{PARTICLE}[ ])*{PROPER})?(?:[ ]{PROPER})?)(?!\w)"
)
"""A capitalised word, optionally followed by others; counts if the first is a given name."""
OTHER_SCRIPT = re.compile(r"[^\W\d_A-Za-zªµºÀ-ɏͰ-ϿḀ-ỿﬀ-ﬆ]{2,}(?:[ ·][^\W\d_A-Za-zªµºÀ-ɏͰ-ϿḀ-ỿ]+)*")
"""Words in non-Latin scripts, which no pattern covers; single Greek letters are symbols."""
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
"""A hospital named without the word: `Wexmoor General`."""
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
"""Capitalised words after `in` or `from` that are not places smaller than a state."""
EMAIL = re.compile(r"[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63}){1,6}")
URL = re.compile(
    r"(?:https?://|ftp://|www\.)[^\s<>\"')]*[^\s<>\"').,;:]|\b(?:[a-z\d-]{1,63}\.){1,6}(?:com|org|net|edu|gov|info|nl|de|fr|es|it|ie|ch|at|be|se|no|dk|ca|au|in|jp|(?:co|ac|nhs|org)\.uk)\b(?:/[^\s<>\"')]*)?",
    re.IGNORECASE,
)
FILE = re.compile(
    r"(?<![\w/.])[\w-]{1,80}\.(?:jpe?g|png|tiff?|bmp|gif|heic|nef|cr2|mp4|mov|avi|mkv|wav|mp3|m4a|pdf|docx?|xlsx?|dcm|nii(?:\.gz)?|zip|edf|bdf|eeg|csv|txt|xml|json|rtf|html?)\b",
    re.IGNORECASE,
)
UID = re.compile(r"(?<![\w.])\d{1,40}(?:\.\d{1,40}){4,30}(?![\w])")
IP_ADDRESS = re.compile(r"(?<![\d.])(?:\d{1,3}\.){3}\d{1,3}(?!\d|\.\d)|(?<![\w:])(?:[\da-fA-F]{1,4}:){7}[\da-fA-F]{1,4}(?![\w:])")
MAC_ADDRESS = re.compile(r"(?<![\w:-])(?:[\da-fA-F]{2}[:-]){5}[\da-fA-F]{2}(?![\w:-])")
SSN = re.compile(r"(?<![\d-])\d{3}-\d{2}-\d{4}(?![\d-])|(?<!\d)\d{3}\.\d{3}\.\d{3}-\d{2}(?!\d)")
PHONE = re.compile(
    r"(?<![\w+])(?:(?:\+|00)\d[\d ().-]{6,}\d|(?:1[ .-]?)?\(?\d{3}\)?[ .-]{1,2}\d{3}[ .-]\d{4}|0\d{1,4}[ -]\d{3,4}[ -]?\d{3,4})(?!\w)"
    r"|\b(?:tel(?:ephone)?|phone|(?-i:Ph|PH)|fax|mobile|mob|cell|whatsapp|pager|bleep|beeper|ext(?:ension)?|call|dial|number is)\b[ .:()#]*(?:on|no\.?|number|at)?[ .:()#x]*(?P<value>\+?\d[\d ().-]{2,}\d)"
    r"|(?<!\w)(?:x|#)(?P<also>\d{4,6})\b(?!\s*(?:mg|ml|/))",
    re.IGNORECASE,
)
LOCAL_PHONE = re.compile(
    r"(?<![\w./-])(?P<exchange>[2-9]\d{2})[-. ](?P<line>\d{4})(?![\w/-]|\.\d|[ ]?(?:mg|ml|mL|ms|mm|mcg|ug|kcal|U|IU|x)\b)"
)
_KIND = (
    r"hospital|hosp|patient|pat\.?|pathology|lab|medical record|medical card|health card|record|chart|case|NHS|insurance|ins|policy|plan|member|group|subscriber|beneficiary|medicare|medicaid"
    r"|account|acct|bank|iban|accession|order|licen[cs]e|licence|driver|driving licen[cs]e|certificate|passport|badge|employee|student|serial|lot|batch|model serial"
    r"|device|implant|pump|pacemaker|scanner|sample|specimen|barcode|wristband|band|family|trial|study|protocol|registration|plate|number plate|license plate"
    r"|vehicle|tail|flight|run|tracking|booking|social security|tax|national|identity|identification|CPF|BSN|DEA|GMC|NPI|NMC|IMEI|SN|S/N|medical|unit|file"
)
_NUMBERED = r"(?:[ ](?:id|no|nr|number|num|num\.|#)\b\.?)"
_VALUE = r"[A-Z]{0,6}[-*/ ]?\d[\dA-Z*-]{0,40}(?:[-/. ](?=[A-Z]{0,2}\d)[\dA-Z]{1,40}){0,8}(?:[ ][A-Z]{2}\b)?"
RECORD_NUMBER = re.compile(
    rf"\b(?:MRN|MR#|(?:(?:{_KIND})(?:{_NUMBERED}|[ ]?#))|(?:{_KIND})(?=[ ]?:)|accession|acc|ID(?![A-Za-z])|SSN|BSN|CPF|DEA|GMC|NPI|NMC|IMEI|IBAN|S/N|SN|serial|lot|passport|badge|certificate|medicare|medicaid"
    rf"|policy|member|account|barcode|(?:driving )?licen[cs]e|driver licen[cs]e)\s*(?:id\b|no\b\.?|nr\b\.?|number\b|ending\b|#|is\b)?[ ]*[.:#=]{{0,2}}[ \t]*(?P<value>(?=(?:[A-Z*/. -]{{0,20}}\d){{3}})(?:{_VALUE}))(?![\w])",
    re.IGNORECASE,
)
NUMBERED = re.compile(r"\b(?:no\.|number|nr\.?|num\.)[ :]{1,2}(?P<value>(?=(?:[A-Z/.-]{0,20}\d){5})[A-Z\d][A-Z\d/.-]{0,40}[A-Z\d])(?![\w])")
SPOKEN = re.compile(
    r"\b(?:(?:zero|oh|one|two|three|four|five|six|seven|eight|nine|double|triple)[ ,-]+){4,30}(?:zero|oh|one|two|three|four|five|six|seven|eight|nine)\b",
    re.IGNORECASE,
)
"""A number dictated digit by digit."""
DONATION = re.compile(r"\b[A-Z]\d{4} ?\d{2} ?\d{6}(?: ?[A-Z\d]{1,2})?\b")
"""Number of a unit of blood (ISBT 128)."""
IBAN = re.compile(r"\b[A-Z]{2}\d{2}(?: ?[A-Z\d]{4}){3,7}(?: ?[A-Z\d]{1,4})?\b")
INSURANCE = re.compile(
    r"\b(?:insurance|ins|insurer|insured(?: with| by)?|policy|plan|health card|medical card|payer)\b\.?(?: number| no\.?| id)?[ :]{1,2}"
    r"(?P<value>(?:[A-Z][\w&-]*[ ]){0,3}(?:[A-Z]{0,6}-?\d[\dA-Z-]{4,}|\d{3,}(?= \d{2}))(?:[ -][\dA-Z]*\d[\dA-Z]*)*(?:[ ][A-Z]{2})?|[A-Z]{2,}-\d{3,}(?:-[A-Z\d]+)*)\b",
    re.IGNORECASE,
)
GROUPED_NUMBER = re.compile(r"(?<![\w.,/-])\d{2,5}(?:[ -]\d{2,6}){1,4}(?![\w/-]|[.,]\d)")
"""Groups of digits; count as one number if they have enough digits."""
LETTER_AND_GROUPS = re.compile(r"(?<![\w.-])[A-Z]{1,2} \d{3} \d{3}(?![\w/%-]|[.,]\d)")
CODE = re.compile(r"(?<![\w.-])(?=[A-Z\d/-]{0,40}[A-Z])(?=(?:[A-Z/-]{0,20}\d){4})[A-Z\d]{1,40}(?:[-/][A-Z\d]{1,40}){0,8}(?![\w-])")
"""A word of capital letters and at least four digits; counts with five digits, or with four after a hyphen."""
LONG_NUMBER = re.compile(r"(?<![\w.,/])\d{6,}(?![\w/]|[.,]\d)|(?<!\w)[A-Z]{1,4}-?\d{5,}(?!\w)")
MEASURED = re.compile(r"\s*(?:cells?|copies|IU|U|mg|ug|mcg|ng|pg|[fpnmuµ]mol|ml|mL|/|per\b|x\b|%|kcal|ms\b|mm\b|Hz)")
LABORATORY = re.compile(
    r"(?:platelets?|plt|wbc|rbc|leu[ck]ocytes|ck|ferritin|bnp|pro-?bnp|copies|titre|titer|viral load|count)[ :=<>]*(?:of )?$", re.IGNORECASE
)
"""Words before (`LABORATORY`) and after (`MEASURED`) a long number that is a laboratory value."""
VEHICLE = re.compile(
    r"\b(?:plates?|registration|reg|licen[cs]e plate|number plate|car|van|tail(?: number)?|sticker|helicopter)\b\.?(?: tail| no\.?| number)?[ :]{1,2}(?P<value>(?=[A-Z -]*\d)[A-Z\d]{1,4}(?:(?:[ -][A-Z\d]{1,4}){1,2}|[A-Z\d]{1,4}))\b"
    r"|(?<!\w)(?P<also>[A-Z]{2}\d{2} [A-Z]{3}|\d[A-Z]{3}\d{3})(?!\w)"
)
BIOMETRIC = re.compile(
    r"\b(?:finger ?prints?|voice ?prints?|palm prints?|iris (?:scan|code)|retinal? (?:scan|print)|face ?id|facial template|biometric\w*)\b[^:;.\n\d]{0,40}?[: ](?P<value>[A-Z]{0,4}[- ]?\d[\dA-Z-]+(?:-[A-Z])?)",
    re.IGNORECASE,
)
STATION = re.compile(
    r"\b(?:station|workstation|work station|host|console|scanner|terminal)(?: name)?[ :]+(?P<value>(?=[A-Z-]*\d)[A-Z][A-Z\d-]{3,})\b"
)
BESIDE_NUMBER = re.compile(
    rf"(?<={COVER_ID})(?P<value>[-/.]?[A-Z\d]{{0,20}}\d[A-Z\d-]{{0,20}})(?!\w)|(?<![\w.])(?P<also>[A-Z\d-]{{0,20}}\d[A-Z\d]{{0,20}}[-/.]?)(?={COVER_ID})"
)
"""Remains of a longer number around a detected part."""
LOGIN = re.compile(
    r"\b(?:log-?in|user ?name|user|account name|handle|twitter|instagram|skype)[ :]+(?P<value>@?[\w.:-]{0,40}(?:\d|_|\.|:)[\w.:-]{0,40}\w)|(?<![\w.])@\w{3,}",
    re.IGNORECASE,
)
