"""Words that notes are made of, in small letters: none of them is a name where nothing but the word itself could tell."""

from __future__ import annotations

import re

from neuralmedbench.deid.notes.languages import STOP_WORDS
from neuralmedbench.deid.values import DESCRIPTOR_WORDS
from neuralmedbench.files.words import word_set

VERB_ENDING = re.compile(r"(?:[^s]ed|ing|ly|[^aeiou]ies|[st]ays|[kt]es|alks|ives|ays|ies|nts|rts|pts|cts)$")
"""How verbs end that stand behind a name; names that end so are found by their title or header alone."""
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
"""Function words, verbs, parts of the body, drugs, diseases and the shorthand of a ward."""
