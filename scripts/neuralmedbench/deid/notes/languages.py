"""Recognise the language of a note: names are detected only in languages that patterns or a model cover.

The model is optional and local, run by Presidio without downloads.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from neuralmedbench.deid.values import DESCRIPTOR_WORDS
from neuralmedbench.errors import ConfigError
from neuralmedbench.files.identity import fold
from neuralmedbench.files.words import word_set

if TYPE_CHECKING:
    from presidio_analyzer import AnalyzerEngine

LATIN_SHARE = 0.6
"""A note with a smaller fraction of Latin letters is in another script; single words in other scripts are replaced in an English note."""
FEW_WORDS, ENGLISH_SHARE = 12, 0.07
"""A note with at least this many words and a smaller fraction of English words is in an unknown language."""
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
"""Languages by script (first word of Unicode's letter names); the first counts unless there is a model for another."""
VERB_ENDING = re.compile(r"(?:[^s]ed|ing|ly|[^aeiou]ies|[st]ays|[kt]es|alks|ives|ays|ies|nts|rts|pts|cts)$")
"""Endings of verbs that follow a name; names with such an ending are detected only by title or header."""
_PLAIN = word_set(
    "about above across again against ago all almost alone along also although always am among another any anyone anything are area around as ask asks away",
    "back bad became because become been before began being below best better between big bit blood bloods board body book born bottle bowel box breath bring but buy",
    "came can cannot care cause cell chair change check chest child children clear close cold colour come comes comma complain cough could course cramp cried cut",
    "dark dead deaf delay deny did die died diet difficult dizzy do does done door dose down drank draw dream drink drive drop drove drug dry due during",
    "each ear early easy eat edge eight either else empty end enough even ever every eye eyes face fair fall fast fat fear feed feel feels feet fell felt few fifty fifteen",
    "fine finger first fit five flat foot forty found four free from front full fully further gave get gets girl give glass go gone good got great grew ground grow had half",
    "hand hands happy hard has hat have hear heard held help here high him himself herself his hold hot how however hurt if ill inside into just keep kept kind knee knew",
    "know known large late later laugh lay lead least leave left leg legs less let level lie life lift light like limb line lip list little live load loose lose lost lot loud low lower lunch",
    "made make man many me meal mean meet met middle might mild mind minute miss mobile mood more morning most mouth move much must my myself near need never next nine none nor",
    "nose nothing now numb number off often oh ok old once one only open or other our out over own page pale paragraph period stop colon dash bracket per phone place plan play poor",
    "possible put quick quiet quite ran rang rather reach read ready real red refused rest right ring rise room round run said same sat saw say says second see seem seen self send",
    "sent set seven several severe sharp she short should show shown shut sick side sign since sit six skin sleep slept slow slur small smell so soft some soon sore speak speaks speech",
    "spell spoke stand start state stay step stick still stomach stood stroke strong such sudden sure swallow take taken takes talk tell ten test than that their them then there these",
    "they thing think thirty this those though thought three through thumb time tingle tip tired to toe together told tone tongue too took tooth top touch toward tremor tried true try",
    "turn twelve twenty twice two ulcer under until up upon upper use used usual vague verify very via visual voice void vomit wait wake walk walks want wants warm was wash watch water",
    "way weak wear week well went were wet what when where which while who whole why wide will wish with within woke woman word wore work works worse would wound write wrist wrote wrong",
    "yard year yes yesterday yet you your zero hundred ninety eighty seventy sixty eleven thirteen fourteen sixteen seventeen eighteen nineteen",
    "lady gentleman boy baby mr mrs ms dr prof male female patient client pt nok gp pcp family team ward clinic nurse doctor sister consultant registrar surgeon therapist physio",
    "ot slt snr jnr icu itu hdu ed er sob abdo neuro cardio resp renal gi gu obs vs vss bp hr rr temp sats spo2 bm bms po iv im sc prn od bd tds qds qid tid bid stat mane nocte",
    "pmh psh dh fh sh hx dx rx tx sx ix mx fx imp adv appt tel msg call ext bleep pager fax copy cc re ref",
    "today tonight tomorrow weekly daily monthly hourly eod approx inf infection sepsis uti pneumonia fever",
    "prior previous reason indication exam date order result results accession referring attending ordering requesting reading",
    "diabetic hypertensive epileptic asthmatic smoker drinker deceased alive unknown unaware present absent aware asleep awake upset anxious confused drowsy agitated unwell",
    "asthma cancer copd htn dm af mi pe dvt tia cva sah sdh ich pd ad als mnd gbs cidp cjd tb hiv hcv epilepsy migraine dementia depression schizophrenia tumor tumour seizures fits",
    "aspirin warfarin apixaban clopidogrel levodopa sinemet madopar keppra levetiracetam lamotrigine valproate dexamethasone insulin metformin statin paracetamol morphine nimodipine",
    "scan scans image images film films mri ct cta ctp dwi adc flair swi mra mrv angio angiogram contrast enhanced study report series",
    "hemorrhage haemorrhage hematoma haematoma infarct lesion mass midline shift edema oedema hydrocephalus ventricle ventricles sulci fracture bone sinus sinuses orbit orbits vertex",
    "restricted diffusion territory patent intact stable unchanged moderate marked focal diffuse subtle new acute subacute chronic",
    "dictation dictated dictating dictate transcribed typed sentence quote unquote hyphen slash point decimal stops",
    "afterwards meanwhile therefore thereafter throughout despite except including regarding",
)
COMMON = _PLAIN | STOP_WORDS["en"] | DESCRIPTOR_WORDS
"""Ordinary words of notes, which are never names by themselves: function words, verbs, body parts, drugs, diseases, ward shorthand."""
REPLACEMENTS = {"PERSON": ("name", "[NAME]"), "LOCATION": ("place", "[PLACE]"), "ORGANIZATION": ("place", "[PLACE]")}
"""Kind and replacement by entity; dates and nationalities are not taken from a model, as `two days ago` is not an identifier."""
LABELS = {
    "PER": "PERSON", "PERSON": "PERSON", "PS": "PERSON", "PATIENT": "PERSON", "STAFF": "PERSON", "DOCTOR": "PERSON", "NAME": "PERSON", "HCW": "PERSON",
    "LOC": "LOCATION", "LOCATION": "LOCATION", "GPE": "LOCATION", "FAC": "LOCATION", "LC": "LOCATION", "CITY": "LOCATION",
    "ORG": "ORGANIZATION", "ORGANIZATION": "ORGANIZATION", "OG": "ORGANIZATION", "HOSP": "ORGANIZATION", "HOSPITAL": "ORGANIZATION", "PATORG": "ORGANIZATION",
}  # fmt: skip
"""Labels of common models, mapped to Presidio's entities."""
THRESHOLD = 0.3
NO_TRANSFORMERS = (
    "ner_model: a transformers model needs torch and transformers, which the environment of this stage leaves out because few need them;"
    " copy their two lines from envs/scoring.yaml to envs/deidentify.yaml, or name a spaCy pipeline"
)


@dataclass(frozen=True)
class NameModel:
    """A loaded model.

    Attributes
    ----------
    language : str
        Code of its language.
    engine : AnalyzerEngine
        Presidio engine with the model.
    """

    language: str
    engine: AnalyzerEngine

    def find(self, text: str) -> list[tuple[int, int, str, str]]:
        """Detect names: start and end (characters), kind and replacement of each."""
        results = self.engine.analyze(text, language=self.language, entities=list(REPLACEMENTS), score_threshold=THRESHOLD)
        return sorted((one.start, one.end, *REPLACEMENTS[one.entity_type]) for one in results)


def languages_of(text: str) -> tuple[str, ...]:
    """Return the languages that a note may be in.

    Codes (ISO 639-1): one for a known language in Latin script, several for a script shared by several, none if unknown. An English note
    with a line in another language counts as that language.

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
    # a single foreign line or sentence decides, then the note as a whole
    foreign = [language for line in re.split(r"\n+|(?<=[.!?])\s+", text) if (language := _foreign(_words(line), least=3, margin=2))]
    if foreign:
        return (foreign[0],)
    words = _words(text)
    if other := _foreign(words, least=2, margin=1):
        return (other,)
    # short notes have too few function words to be judged
    english = sum(word in STOP_WORDS["en"] for word in words)
    return ("en",) if len(words) < FEW_WORDS or english >= ENGLISH_SHARE * len(words) else ()


def _words(text: str) -> list[str]:
    return re.findall(r"[^\W\d_]+", text.casefold())


def _foreign(words: list[str], *, least: int, margin: int) -> str:
    """Return the foreign language with at least `least` different function words and more than `margin` times as many as English."""
    hits = {language: sum(word in stop for word in words) for language, stop in STOP_WORDS.items()}
    different = {language: len(stop & set(words)) for language, stop in STOP_WORDS.items()}
    best = max((language for language in STOP_WORDS if language != "en"), key=lambda language: hits[language])
    return best if different[best] >= least and hits[best] > margin * hits["en"] else ""


def load_name_model(folder: Path, language: str) -> NameModel:
    """Load a model from a folder.

    Parameters
    ----------
    folder : Path
        A spaCy pipeline (`meta.json`), or a transformers model for token classification (`config.json`) with its tokenizer.
    language : str
        Code of its language (ISO 639-1).

    Returns
    -------
    NameModel
        The model, run by Presidio's AnalyzerEngine; nothing is ever downloaded.

    Raises
    ------
    ConfigError
        If the folder holds neither, the model cannot be loaded, or a required package is not installed.

    Notes
    -----
    Only the recogniser of names is registered: the patterns of deid.notes are better at everything else, and Presidio's recogniser of e-mail
    addresses would download the list of public suffixes.
    """
    if (folder / "meta.json").is_file():
        load = _spacy_engine
    elif (folder / "config.json").is_file():
        load = _transformers_engine
    else:
        message = (
            "ner_model: the folder holds neither a spaCy pipeline (meta.json) nor a transformers model (config.json); correct the path"
        )
        raise ConfigError(message)
    try:
        return NameModel(language, load(folder, language))
    except (OSError, ValueError, ImportError, RuntimeError) as error:
        if isinstance(error, ImportError) and load is _transformers_engine:
            raise ConfigError(NO_TRANSFORMERS) from None
        message = f"ner_model: the model cannot be loaded ({type(error).__name__}); check that it is complete and was made with the pinned versions"
        raise ConfigError(message) from None


def _spacy_engine(folder: Path, language: str) -> AnalyzerEngine:
    from presidio_analyzer import AnalyzerEngine, RecognizerRegistry
    from presidio_analyzer.nlp_engine import NerModelConfiguration, SpacyNlpEngine
    from presidio_analyzer.predefined_recognizers import SpacyRecognizer

    # by default Presidio ignores organisations, which here include hospitals
    settings = NerModelConfiguration(labels_to_ignore=[], model_to_presidio_entity_mapping=LABELS, low_score_entity_names=[])
    engine = SpacyNlpEngine(models=[{"lang_code": language, "model_name": folder.as_posix()}], ner_model_configuration=settings)
    engine.load()
    recogniser = SpacyRecognizer(supported_language=language, supported_entities=list(REPLACEMENTS))
    registry = RecognizerRegistry(recognizers=[recogniser], supported_languages=[language])
    return AnalyzerEngine(registry=registry, nlp_engine=engine, supported_languages=[language])


def _transformers_engine(folder: Path, language: str) -> AnalyzerEngine:
    from presidio_analyzer import AnalyzerEngine, RecognizerRegistry
    from presidio_analyzer.nlp_engine import NoOpNlpEngine
    from presidio_analyzer.predefined_recognizers.ner import HuggingFaceNerRecognizer

    recogniser = HuggingFaceNerRecognizer(
        model_name=folder.as_posix(),
        supported_language=language,
        label_mapping=LABELS,
        threshold=THRESHOLD,
        supported_entities=list(REPLACEMENTS),
        device="cpu",
    )
    engine = NoOpNlpEngine(models=[{"lang_code": language, "model_name": "none"}])
    engine.load()
    registry = RecognizerRegistry(recognizers=[recogniser], supported_languages=[language])
    return AnalyzerEngine(registry=registry, nlp_engine=engine, supported_languages=[language])
