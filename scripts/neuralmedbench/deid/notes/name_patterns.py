"""Patterns of persons' names in clinical English; the patient's own names are searched apart (io/identity.py)."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

from neuralmedbench.deid.notes.redaction import COVER_NAME
from neuralmedbench.files.eponyms import EPONYMS
from neuralmedbench.files.identity import GENERIC, ORDINARY
from neuralmedbench.files.words import word_set

PARTICLE = r"(?:[Vv]an|[Vv]on|[Dd]e|[Dd]er|[Dd]en|[Dd]el|[Dd]ella|[Dd]i|[Dd]a|[Dd]os|la|le|el|al|ten|ter|zu|bin|ibn|O['’]|Mc|Mac)"
CAPITAL = r"[^\W\d_a-zß-öø-ÿ][^\W\d_]*(?:['’-][^\W\d_]+)*"
"""A word that starts with a capital letter, in any Latin spelling."""
PROPER = r"[^\W\d_a-zß-öø-ÿ][^\W\d_A-ZÀ-ÖØ-Þ][^\W\d_]+(?:['’-][^\W\d_]+)*"
"""A capitalised word of at least three letters that is no abbreviation."""
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
"""A name beside its title in a table of two columns."""
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
ROLE_BEHIND = re.compile(
    rf"(?<![\w'’])(?P<value>(?-i:{NAME}))[ ]?\((?:wife|husband|son|daughter|mother|father|brother|sister|partner|neighbour|friend|niece|nephew|carer)\)",
    re.IGNORECASE,
)
SUFFIXED_NAME = re.compile(
    rf"(?<![\w'’])(?P<value>{NAME}(?:, {NAME})?)(?=,? (?:MD|M\.D\.|PhD|FRCR|FRCP|DO|MBBS|RN|PA-C|NP|PGY-?\d|DPT|OT|SLP|[Cc]onsultant|(?:consultant )?[Nn]eurologist|[Rr]adiologist|staff nurse)\b)"
)
INVERTED_NAME = re.compile(
    r"(?:^|(?<=\n)|(?<=: )|(?<=- ))(?P<value>[A-Z][A-Z'’-]{2,}, ?(?:[A-Z]\.?(?![\w])|[A-Z][a-z]+(?: [A-Z]\.?(?!\w))?))(?=[\s,.;/]|$)"
)
"""`MONTGOMERY, Q.` and `HADDAD, Layla` where a line or a field starts."""
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
"""Two capitalised words that do something; counts when neither is a word of medicine."""
INITIALLED_NAME = re.compile(rf"(?<![\w.&/])(?P<value>(?:[A-Z]\.[ -]?){{1,3}}(?:{PARTICLE}[ ])*{PROPER})(?!\w)")
ROLE_NAME = re.compile(
    rf"\b(?:PCP|GP|[Aa]ttending|[Cc]onsultant|[Rr]egistrar|[Cc]arer|[Ee]scort|[Pp]hysician|[Tt]herapist|[Ss]urgeon|[Aa]ssistant|[Oo]perator|[Aa]naesthetist|[Aa]nesthesiologist|[Pp]er|[Cc]olleague|-old(?:[ ](?:boy|girl|man|woman|male|female|infant))?)[ ](?P<value>{PROPER})(?!\w)"
)
LISTED_NAME = re.compile(
    rf"(?:^|(?<=\n))[ \t]*(?:[-*•–]|\d{{1,2}}[.)])[ ]+(?P<value>{PROPER}[ ](?:[A-Z]\.?[ ])?{PROPER})(?=[ ]*(?:,|\n|$|\())|(?<=\t)(?P<also>{PROPER}[ ](?:[A-Z]\.?[ ])?{PROPER})(?=[ ]*(?:\t|\n|$))"
)
"""Two capitalised words that open an item of a list or fill a cell of a table; counts when neither is a word of medicine."""
PAIR = re.compile(rf"(?<=[a-z,(] )(?P<value>{PROPER}(?:[ ][A-Z]\.)?[ ]{PROPER})(?![\w'’]|[ ]{PROPER})")
"""Two capitalised words within a sentence; counts when neither is a word of medicine."""
PRESENTED_NAME = re.compile(
    rf"(?<![\w'’-])(?P<value>{PROPER}(?:[ ][A-Z]\.?)?(?:[ ]{PROPER})?[ ](?:{PARTICLE}[ ])*{PROPER})(?=,? \(?(?:aged?\b|\d{{1,3}}[ -]?(?:y\b|yo\b|yrs?\b|years?\b|year-old|y/o|[MF]\b)"
    r"|born\b|DOB\b|MRN\b|was (?:born|an? (?:in|out)patient|admitted|seen|referred|brought)|is (?:an?|my) |presents\b|presented\b|returns\b|attended\b|came\b|lives\b))"
)
"""Two or three capitalised words before words that present a person."""
_BESIDE = rf"(?:(?:[A-Z]\.[ -]?){{1,3}}|[A-Z]{{1,2}}(?!\w)|{PARTICLE})"
BEFORE_NAME = re.compile(rf"(?<![\w.&/])(?P<value>{_BESIDE}(?:[ ]{_BESIDE})*(?:[ ]|(?<=['’])))(?={COVER_NAME})")
AFTER_NAME = re.compile(
    rf"(?<={COVER_NAME})[ ](?P<last>[A-Z]\b)(?=[ ]*(?:\n|$|[ ][ ]|[,;)\t]))|(?<={COVER_NAME}),? (?P<value>(?:[A-Z]\.-?){{1,3}}(?!\w))|(?<={COVER_NAME}), (?P<also>[A-Z]\b)(?=[ ]?(?:\d|[\n;,)]|$))"
)
JOINED_NAME = re.compile(rf"(?<={COVER_NAME})(?P<value>-{CAPITAL})|(?<!\w)(?P<before>{CAPITAL}-)(?={COVER_NAME})")
BETWEEN_NAMES = re.compile(rf"(?<={COVER_NAME})(?P<value>[ ](?:[A-Z]\.?|{PARTICLE}|[A-Z]\.? {PARTICLE})[ ])(?={COVER_NAME})")
"""Initials and particles that touch a name that was found."""
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
"""Words that are written with capitals in notes and name nobody."""
MEDICAL_ENDING = re.compile(
    r"(?:itis|omas?|osis|asis|pathy|aemia|emia|algia|plegia|paresis|trophy|tion|sion|ment|plasia|otomy|ectomy|graphy|scopy|cysts?|ical|nial|ular|eral|ous|itic|atic|otic|emic|enic"
    r"|ysm|injury|gravis|atosis|lysis|ural|bral|inal|dural|ynal|oid|onal|cephalus|ity|ities|bolic|ocal|glial|plasms?|asts?ases|tases|teri?al|ebri|signal|matter|infarcts?|douloureux|Attack|Ventricle|Disease|Disorder)\b",
    re.IGNORECASE,
)
"""How words of diseases end that are written with capitals."""


@cache
def given_names() -> frozenset[str]:
    """Give common given names of many countries, in lower case; those that are words or eponyms are not among them."""
    words = word_set(Path(__file__).with_name("given_names.txt").read_text(encoding="utf-8"))
    return words - EPONYMS - ORDINARY - GENERIC


GIVEN_NAME = re.compile(
    rf"(?<![\w'’-])(?P<value>(?P<given>{CAPITAL})(?:[ ](?:[A-Z]\.?[ ])?(?:{PARTICLE}[ ])*{PROPER})?(?:[ ]{PROPER})?)(?!\w)"
)
"""A capitalised word, perhaps with more behind it; counts when the first is a given name."""
OTHER_SCRIPT = re.compile(r"[^\W\d_A-Za-zªµºÀ-ɏͰ-ϿḀ-ỿﬀ-ﬆ]{2,}(?:[ ·][^\W\d_A-Za-zªµºÀ-ɏͰ-ϿḀ-ỿ]+)*")
"""Words in a script other than Latin (single Greek letters are symbols): nothing here can tell what they say."""
