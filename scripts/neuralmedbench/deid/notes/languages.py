"""Which language a note is written in: names are only recognised where something knows the language."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter

from neuralmedbench.files.identity import fold
from neuralmedbench.files.words import word_set

LATIN_SHARE = 0.6
"""Less Latin than this is a note in another script; single words of it are replaced in an English note."""
FEW_WORDS, ENGLISH_SHARE = 12, 0.07
"""A note of this many words in which fewer than this part are English words is in a language that is not known here."""
STOP_WORDS = {
    "en": word_set("""
        the and of with was is in to for on no at not has had her his she he from by a an or were been patient left right seen year old day days two
        since after pain normal admission admitted discharge discharged note notes clinic ward home history headache weakness scan letter referred
        follow up review reviewed wife husband brought found arm leg side sided known last well better worse sent name address hospital phone call
        called today night shift family months weeks week years hours daily dose given taken report reported findings exam examination reactive
        pupils equal changed upset spoke skin intact air room balance walks goes returns score test lesion lesions load contrast without technique
        comparison impression brain head heart rate blood pressure weight arrived work car ambulance insurance visit serial lot present onset seizure
        first doing plan removal per bed turned afebrile neck supple met criteria opening cells protein sodium glucose platelets
        physician accepting needs sending site page transfer staff pt complains denies states noted seizure alert oriented awake
        stable follows moves drinks sleeps eats smokes lives alone tolerated consent family aware unwell fever rash vision speech gait tone power
        lab sheet spec specimen coll collected req urea creat creatinine potassium calcium prot ferritin haemoglobin hemoglobin wbc rbc plt crp tsh inr
        copies bands pos neg verified result results values units range high low pending
        rm adm hosp phoned swallow fail fluct transport sick off wt
        voided hrly obs assist unsteady orders wants update handoff drain cannula
        summary both symptoms unchanged visit this that which who when will may
    """),
    "de": word_set(
        "der die das und mit war ist von zu den im nicht ein eine auf bei wurde für seit patientin keine links rechts nach aus wegen kopfschmerzen"
    ),
    "fr": word_set("le la les et de des du avec est un une dans pour pas sur au qui patiente depuis était sans gauche droite vu ans"),
    "es": word_set("el la los las y de del con es un una en para no por su que se paciente desde sin izquierdo derecho años dolor"),
    "it": word_set("il la gli e di del della con è un una in per non che si paziente da era senza sinistra destra anni dolore"),
    "nl": word_set("de het een en van met was is in niet op bij voor zij hij patiënt sinds werd geen links rechts zonder jaar hoofdpijn"),
    "pt": word_set("o a os as e de do da com é um uma em para não por que se paciente desde sem esquerda direita anos dor"),
    "sv": word_set("och att det som en på är av för med den till inte har de ett om var sedan utan vänster höger patienten"),
    "da": word_set("og at det som en på er af for med den til ikke har de et om var siden uden venstre højre patienten"),
    "pl": word_set("i w z na nie się do że jest od po przez bez pacjent pacjentka lewej prawej był była oraz"),
    "cs": word_set("a v na se je že z s do o pro po od bez pacient pacientka vlevo vpravo byl byla"),
    "tr": word_set("ve bir bu ile için de da olarak hasta sol sağ olan var yok sonra değil"),
    "fi": word_set("ja on ei se että oli hän potilas vasen oikea mutta kun joka ovat"),
    "hu": word_set("a az és egy hogy nem is van volt beteg bal jobb után meg"),
    "ro": word_set("și de la în cu nu este o un pe din pentru pacient pacienta stânga dreapta fără"),
}
SCRIPTS = {
    "CYRILLIC": ("ru", "uk", "bg", "sr"), "GREEK": ("el",), "ARABIC": ("ar", "fa", "ur"), "HEBREW": ("he",), "HANGUL": ("ko",), "HIRAGANA": ("ja",),
    "KATAKANA": ("ja",), "CJK": ("zh", "ja"), "DEVANAGARI": ("hi", "mr"), "THAI": ("th",),
}  # fmt: skip
"""Languages by the script of their letters, as Unicode names it; the first is taken unless a model for another one is there."""


def languages_of(text: str) -> tuple[str, ...]:
    """Languages that a note may be in.

    Parameters
    ----------
    text : str
        The note.

    Returns
    -------
    tuple of str
        Codes (ISO 639-1): one for a known Latin language, several for a script that several share, none when it cannot be told. A note in
        English of which a line is in another language counts as that language.

    Examples
    --------
    >>> languages_of("Der Patient wurde mit Kopfschmerzen in die Klinik gebracht und ist seit gestern nicht ansprechbar")
    ('de',)
    """
    letters = [letter for letter in text if letter.isalpha()]
    if not letters:
        return ("en",)
    if sum(fold(letter).isascii() for letter in letters) < LATIN_SHARE * len(letters):
        scripts = Counter(unicodedata.name(letter, " ").split(" ")[0] for letter in letters if not fold(letter).isascii())
        if "HIRAGANA" in scripts or "KATAKANA" in scripts:
            return ("ja",)
        return SCRIPTS.get(scripts.most_common(1)[0][0], ())
    foreign = [language for line in re.split(r"\n+|(?<=[.!?])\s+", text) if (language := _foreign(_words(line), least=3, margin=2))]
    if foreign:
        return (foreign[0],)
    words = _words(text)
    if other := _foreign(words, least=2, margin=1):
        return (other,)
    english = sum(word in STOP_WORDS["en"] for word in words)
    return ("en",) if len(words) < FEW_WORDS or english >= ENGLISH_SHARE * len(words) else ()


def _words(text: str) -> list[str]:
    return re.findall(r"[^\W\d_]+", text.casefold())


def _foreign(words: list[str], *, least: int, margin: int) -> str:
    """Give the other language of which there are at least `least` function words, and more than `margin` times those of English."""
    hits = {language: sum(word in stop for word in words) for language, stop in STOP_WORDS.items()}
    different = {language: len(stop & set(words)) for language, stop in STOP_WORDS.items()}
    best = max((language for language in STOP_WORDS if language != "en"), key=lambda language: hits[language])
    return best if different[best] >= least and hits[best] > margin * hits["en"] else ""
