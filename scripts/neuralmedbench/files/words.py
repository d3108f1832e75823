"""Sets of words, what headers say of a contrast agent, and eponyms: names of persons in diseases, signs, scores and anatomy, and what distinguishes them from patients' names."""

from __future__ import annotations

import re


def word_set(*lines: str) -> frozenset[str]:
    """Return the words of some lines, in lower case."""
    return frozenset(word for line in lines for word in line.casefold().split())


NO_AGENT = re.compile(r"(?:no|none|non|not|nil|without|w/?o|nativ\w*|ohne|sans|sin|senza|off)\b.*|n|n/a|na|0+(?: ?ml)?|-|")
"""What a header says of a contrast agent where none was given; the text in lower case without accents."""
UNSTATED_AGENT = re.compile(r"unknown|unspecified|\?")
EPONYMS = word_set(
    "Alzheimer Parkinson Huntington Creutzfeldt Jakob Pick Binswanger Lewy Broca Wernicke Korsakoff Babinski Hoffmann Romberg Lhermitte Kernig ",
    "Brudzinski Horner Marcus Gunn Weber Rinne Wallenberg Millard Gubler Benedikt Guillain Barré Barre Miller Fisher Lambert Eaton Charcot Marie ",
    "Tooth Duchenne Becker Friedreich Wilson Dawson Virchow Robin Willis Sylvius Rolando Heschl Monro Luschka Magendie Meckel Dandy Walker Chiari ",
    "Arnold Bell Ramsay Hunt Todd Jackson Lennox Gastaut West Rasmussen Sturge Hippel Lindau Recklinghausen Cushing Glasgow Rankin Barthel Fazekas ",
    "Hunt Hess Fisher Hoehn Yahr Spetzler Martin Moyamoya Takayasu Behçet Behcet Sjögren Whipple Lyme Hachinski Folstein Montreal Boston Brodmann ",
    "Holmes Adie Argyll Robertson Tolosa Devic Marburg Balo Schilder Leigh Kearns Sayre Fabry Gaucher Niemann Tay Sachs Krabbe Alexander Canavan ",
    "Evans Papez Ammon Gerstmann Balint Anton Capgras Doppler Schwann Schwannoma Wada Epworth Beck Hamilton Karnofsky Aspects Troponin Hallpike Dix ",
    "Epley Meniere Ménière Brown Sequard Kennedy Foster Parinaud Steele Richardson Olszewski Percheron Heubner Galen Labbé Trolard Purkinje Golgi ",
    "Hardy Weinberg Kayser Fleischer Ashworth Norton Braden Waterlow Apgar House Brackmann Hashimoto Bickerstaff Susac Erdheim Chester Cowden Lisch ",
    "Isaacs Pompe Refsum Tangier Unverricht Lundborg Lafora Rett Dravet Landau Kleffner Panayiotopoulos Rolandic Westphal Edinger Snellen Ishihara ",
    "Hounsfield Cobb Lindegaard Koerte Rathke Blake Luria Stroop Addenbrooke Berg Tinetti Hawkins Homans Lasègue Lasegue Gowers Trendelenburg Gradenigo",
)
"""Names in diseases, signs, scores and anatomy."""
NOUNS = (
    r"(?:disease|syndrome|palsy|signs?|pupils?|aphasia|area|gyrus|encephalopathy|ataxia|chorea|dementia|bod(?:y|ies)|tests?|scores?|ratings?|questionnaire|gait|facies|scale|inventory|reflex|"
    r"phenomenon|paralysis|paresis|malformation|ganglion|fracture|index|grad(?:e|ing)|stage|criteria|cells?|fib(?:re|er)s?|duct|aqueduct|foram\w+|"
    r"rings?|fingers?|psychosis|(?:muscular )?(?:atrophy|dystrophy)|neur(?:oma|itis)|tumou?r|fibrosis|spells?|man(?:oeuvre|euver)|positive|negative|"
    r"absent|present|response|units?|level|plus|type|mutation|gene|triad|haemorrhages?|hemorrhages?|artery|vein|stroke|infarct\w*)"
)
_QUALIFIERS = (
    "no", "not", "non", "negative", "positive", "absent", "idiopathic", "atypical", "suspected", "possible", "probable", "early", "juvenile",
    "bilateral", "presumed", "familial",
)  # fmt: skip
NOT_BEFORE = "".join(rf"(?<!\b(?i:{word})[ -])" for word in _QUALIFIERS)
"""Lookbehind for words after which an eponym is a medical term: `no Babinski`, `atypical Parkinson`."""
NOT_AFTER = rf"(?!(?:['’´]s|s['’´]?)?(?:[ -](?:and|&)?[ -]?[A-Z][a-z]+){{0,2}}[ -](?i:{NOUNS})\b|[ ]?(?:\+|:[ ]*(?i:positive|negative|absent|present)))"
"""Lookahead for words before which an eponym is a medical term: `Parkinson's disease`, `Broca aphasia`, `Hunt and Hess grade`."""
AS_EPONYM = re.compile(rf"^(?:['’´]s|s['’´]?)?(?:[ -](?:and|&)?[ -]?[A-Z][a-z]+){{0,2}}[ -](?i:{NOUNS})\b")


def is_eponym(name: str) -> bool:
    """Return whether the first word of a name is an eponym."""
    return re.split(r"[ '’-]", name, maxsplit=1)[0].casefold() in EPONYMS
