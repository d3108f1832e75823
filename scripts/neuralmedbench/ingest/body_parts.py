"""Parts of the body other than the head, as headers name them."""

from __future__ import annotations

import re

from neuralmedbench.ingest.sequences import plain_words

PARTS = {
    "knee": "knees?|patella|knie|genou|rodilla|ginocchio",
    "spine": "[ctls]{1,2}spine|spine|cervical|thoracic|dorsal|lumbar|sacral|sacrum|coccyx|[bhl]ws|columna|rachis|wirbelsaule",
    "chest": "chest|thorax|torax|thorakal|lungs?|heart|cardiac|breasts?|mamma|sternum|ribs?|mediastinum|(?:o?e)sophagus|aorta",
    "abdomen": "abdomen|abd|abdo|liver|leber|kidneys?|renal|pancreas|spleen|stomach|gallbladder|biliary|bowel|colon",
    "pelvis": "pelvis|pelv|becken|bassin|bladder|prostate|uterus|rectum|hips?|hufte|hanche|cadera",
    "shoulder or arm": "shoulders?|schulter|epaule|hombro|clavicle|scapula|humerus|elbows?|forearms?|wrists?|hands?|main|mano|fingers?|thumbs?|arms?",
    "leg": "legs?|thighs?|femur|tibia|calf|calves|ankles?|f[eo]{2}t|fuss|pied|toes?|heels?|extremity",
}
"""Our word for each part, and words of BodyPartExamined (DICOM PS3.16 CID 4030 and common others), without spaces, in lower case."""
BESIDE = "left|right|upper|lower|both|and|to"
ANY = "|".join((*PARTS.values(), BESIDE))


def other_part(text: str) -> str:
    """Return our word for the part of the body that BodyPartExamined names; empty for the head, several parts with it, and unknown words.

    Examples
    --------
    >>> [other_part(text) for text in ("LSPINE", "RIGHT KNEE", "CHESTABDPELVIS", "HEADNECK", "BRAIN", "")]
    ['spine', 'knee', 'chest', '', '', '']
    """
    words = re.sub(r"[^a-z]", "", plain_words(text))
    return next((part for part, names in PARTS.items() if re.fullmatch(rf"(?:{BESIDE})*(?:{names})(?:{ANY})*", words)), "")
