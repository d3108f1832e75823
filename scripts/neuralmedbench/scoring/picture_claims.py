"""Find statements about what pictures show, in answers to requests that may have had none; in English, by words, without a model.

A sentence counts if it says what a picture of this patient shows: by the scan and what is seen on it, by its signal, or by the appearance of a
structure of the head. What was not supplied, would be shown, or is inferred does not count. `docs/metrics.md` has the measured sensitivity
and specificity on words that were not made for it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from neuralmedbench.records.scores import Prediction
from neuralmedbench.records.thoughts import without_thoughts
from neuralmedbench.records.vocabulary import normal_form


def _words(text: str) -> str:
    """Return a pattern of whole words; `*` stands for any ending."""
    return r"\b(?:" + "|".join(word.replace("*", r"\w*") for word in text.split()) + r")\b"


SCAN = re.compile(
    r"\b(?:x ray|mr image\w*|post ?contrast)\b|"
    + _words(
        "mr mri ct cta mra mrv pet spect t1 t1w t2 t2w flair dwi adc swi gre diffusion susceptibility precontrast gadolinium sequences scan scans"
        " slice slices image images imaging neuroimaging picture pictures radiograph* tomogra* angiogra* ultrason* ultrasound echocardiogra*"
        " sonogra* venogra* myelogra* absorptiometry"
    )
)
SHOWING = re.compile(
    _words(
        "show* reveal* demonstrat* display* depict* disclos* detect* visuali* confirm* find* found appear* look* indicat* seen visible evident evidence"
        " identif* noted normal unremarkable compatible feature* abnormal* lesion* mass* signal cyst* collection area*"
    )
)
SIGNAL = re.compile(
    r"\b(?:hyper|hypo|iso)(?:intens|dens|attenuat|echo)\w*|\b(?<!contrast )enhanc\w*|\brestrict\w* diffusion|\bdiffusion restrict\w*"
    r"|\b(?:low adc|mass effect|midline shift|dural tail|high density|low density|low attenuation|filling defect|sign is (?:present|seen|absent))\b"
    r"|\bno (?:\w+ ){1,4}sign\b|"
    + _words("unenhanc* nonenhanc* blooming microbleed* microhemorrhage* hemosiderin signal restrict restricts restricting")
)
STRUCTURE = re.compile(
    _words(
        "ventricle* ventricular* periventricular sulc* gyr* cistern* cortex cortical subcortical juxtacortical lobe lobes lobar hemisphere* matter"
        " thalam* putam* putamina caudate lentiform striat* pallid* ganglia insula* hippocamp* amygdal* callosum splen* capsule* pons pontine"
        " midbrain medulla* brainstem cerebell* vermis peduncle* aqueduct* sella* suprasellar pituitar* chiasm* dura* mening* subdural epidural"
        " extradural subarachnoid falx tentori* convexit* parenchym* axial skull calvari* clivus sinus carotid mca aca pca basilar vertebral artery"
        " territory frontal parietal temporal occipital orbit* postrema mammillary periaqueductal internal auditory porus supratentorial"
        " infratentorial cord disc u"
    )
)
APPEARANCE = re.compile(
    _words(
        "lesion* mass masses tumor* neoplasm* cyst cysts cystic nodul* hemorrhage* hematoma* bleed* clot* edema* edematous infarct* swelling swollen"
        " atroph* dilat* enlarg* efface* effacement displac* compress* herniat* spared sparing spares involve* preserved untouched focus foci plaque*"
        " calcif* thicken* narrow* widen* expanded flared erosion destruction remodeled stenosis occlu* tapers symmetric* asymmetric* diffuse*"
        " confluent patent intact bright dark white dense hydrocephalus demyelinat* necro* abnormality shift collection"
    )
)
PICTURE = r"(?:images?|imaging|neuroimaging|pictures?|scans?|slices?|photos?|screenshots?|radiograph\w*|mri|ct|sequences?|visuals?)"
GIVEN = (
    r"(?:(?:provid|suppli|suppl|availab|attach|includ|given|submit|upload|receiv|shar|sent|shown|present|perform|accompan|access|acquired|report)\w*"
    r"|come through|came through)"
)
ABSENT = re.compile(
    "|".join(
        (
            rf"\b(?:no|not|without|none|any|dont|didnt)\b(?: \w+){{0,5}}? {PICTURE}(?: \w+){{0,5}}? {GIVEN}",
            rf"\b{PICTURE}(?: \w+){{0,3}}? (?:not|wasnt|werent|isnt|arent|didnt|never|cannot)(?: \w+){{0,2}}? (?:{GIVEN}|seen|view\w*|assess\w*|evaluat\w*)",
            rf"\b(?:no|without|dont see any|there is no|cant see any) (?:\w+ ){{0,2}}{PICTURE}(?: (?:data|stud\w+|findings?|results?|here))?$",
            r"\b(?:cannot|cant|unable to|not able to|couldnt|could not)(?: \w+)? (?:see|view|access|open|process|read|describe|interpret|display)\b",
            r"\b(?:please|could you) (?:provide|attach|send|upload|share)\b",
            rf"\b{PICTURE}(?: \w+){{0,3}}? (?:blank|black|empty|missing|absent|unavailable|unsupported)\b",
            rf"\b(?:blank|black|empty|missing|unsupported) {PICTURE}\b",
            r"\btext based\b",
        )
    )
)
"""Says that pictures were not supplied, or cannot be read."""
HYPOTHETICAL = re.compile(
    _words(
        "would should could might may will can recommend* consider* need* require* pending await* obtain* order* indicated if suggest* likely"
        " probabl* suspect* presum* infer* expect* locali* points typically typical usually commonly often generally"
    )
)
"""What follows in the sentence is no observation."""
INFERRED = re.compile(r"\b(?:consistent|compatible|in keeping) with\b")
CLINICAL = re.compile(
    _words(
        "exam examination reflex* gait weakness power strength sensation symptom* complain* he she his her history known previous* prior ago palp* skin"
        " rash pulse headache* seizure* patient* disease syndrome disorder"
    )
)
"""The structure of the head in such a sentence was examined or affected, not seen."""
OTHER_USES = re.compile(r"\bclinical picture\b|\bdays? (?:before|after|of) the scan\b")
SENTENCE = re.compile(r"(?<=[.!?;])\s+|\n+|\s\|\s")


def describes_picture(text: str, *, structures: bool = True, names: Iterable[str] = ()) -> bool:
    """Return True if a sentence of a text says what a picture of the patient shows.

    Parameters
    ----------
    text : str
        Any text.
    structures : bool
        False to count only scans with what is seen on them, and signals: a reason may place a lesion by the symptoms.
    names : iterable of str
        Diagnoses that the text may name; `subdural haematoma` as a name is no observation.

    Examples
    --------
    >>> describes_picture("FLAIR shows a bright area in the left insula.")
    True
    >>> describes_picture("No pictures were supplied. MRI would show a bright area in the left insula.")
    False
    """
    forms = sorted((form for name in names if (form := normal_form(name))), key=len, reverse=True)
    return any(_describes(sentence, structures=structures, names=forms) for sentence in _sentences(text))


def _sentences(text: str) -> list[str]:
    return [OTHER_USES.sub("", normal_form(sentence)) for sentence in SENTENCE.split(text)]


def _describes(sentence: str, *, structures: bool, names: Sequence[str]) -> bool:
    if ABSENT.search(sentence):
        return False
    stated = HYPOTHETICAL.split(sentence, maxsplit=1)[0]
    if SIGNAL.search(stated) or (SCAN.search(stated) and SHOWING.search(stated)):
        return True
    seen = INFERRED.split(stated, maxsplit=1)[0]
    for name in names:
        seen = seen.replace(name, "")
    return structures and bool(STRUCTURE.search(seen) and APPEARANCE.search(seen) and not CLINICAL.search(seen))


def claims_pictures(text: str) -> bool:
    """Return True if a text about what was shown (SEEN of a checklist) names a scan, and does not say that it was absent."""
    present = (sentence for sentence in _sentences(text) if not ABSENT.search(sentence))
    return any(SCAN.search(HYPOTHETICAL.split(sentence, maxsplit=1)[0]) for sentence in present)


def describes_unsent(prediction: Prediction, text: str, *, labelled: bool) -> bool:
    """Return True if an answer to a request without picture content describes some (a mirage).

    Parameters
    ----------
    prediction : Prediction
        The parsed answer.
    text : str
        The answer; it is read as a whole if it has neither SEEN nor FINDINGS.
    labelled : bool
        True if blank pictures with labels were sent: then SEEN may name what the labels say.
    """
    names = prediction.differential
    if not prediction.seen and not prediction.findings:
        return describes_picture(without_thoughts(text), names=names)
    return describes_picture(prediction.findings, names=names) or (not labelled and claims_pictures(prediction.seen))


def argues_from_picture(prediction: Prediction) -> bool | None:
    """Return True if an answer names what a picture shows as the reason for its first diagnosis; None if it gives no reason."""
    reasons = [prediction.rationale, *(row.speaks_for for row in prediction.evidence[:1])]
    return any(describes_picture(reason, structures=False) for reason in reasons) if any(reasons) else None
