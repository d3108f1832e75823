"""Small items, gold, responses and a vocabulary for the tests of scoring and ratings."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

from conftest import ROOT
from neuralmedbench.files.vocabulary import read_vocabulary
from neuralmedbench.records.items import Axis, Family, Gold, Item, Lesion, Level, Runner
from neuralmedbench.records.responses import Response, ResponseState
from neuralmedbench.records.vocabulary import Vocabulary

VOCABULARY_FILE = ROOT / "config" / "vocabulary" / "neurology.yaml"

ITEM = Item(
    item_id="demo/c1/differential_diagnosis",
    case_id="c1",
    patient_id="p1",
    benchmark="demo",
    axis=Axis.DEPTH,
    family=Family.DIFFERENTIAL_DIAGNOSIS,
    level=Level.COMPLEX,
    runner=Runner.OPEN,
    question="What is the most likely diagnosis?",
)
LESION_ITEM = replace(ITEM, item_id="demo/c1/lesion_recognition", family=Family.LESION_RECOGNITION)
PICTURE_ITEM = replace(ITEM, item_id="demo/img-000001", axis=Axis.BREADTH, family=Family.CLASSIFICATION, runner=Runner.STRUCTURED)

GOLD = Gold(item_id=ITEM.item_id, answer="glioblastoma", aliases=("malignant brain tumour of glial cells",))
LESION_GOLD = Gold(
    item_id=LESION_ITEM.item_id,
    answer="glioblastoma",
    lesion=Lesion(location="frontal lobe", side="left", behaviour={"FLAIR": "hyperintense"}),
)

RESPONSE = Response(
    item_id=ITEM.item_id,
    case_id="c1",
    patient_id="p1",
    benchmark="demo",
    arm="full",
    strategy="direct",
    model="fusion",
    revision="1",
    repeat=0,
    request_id="r",
    runner="open",
    state=ResponseState.OK,
)


@cache
def vocabulary() -> Vocabulary:
    """Give the vocabulary of the project."""
    return read_vocabulary(VOCABULARY_FILE)


def differential(*candidates: str, findings: str = "A mass.", rationale: str = "It fits.", confidence: str = "0.7") -> str:
    """Write an answer in the form that open items ask for."""
    lines = "\n".join(f"{rank}. {name}" for rank, name in enumerate(candidates, start=1))
    return f"DIFFERENTIAL:\n{lines}\nFINDINGS: {findings}\nRATIONALE: {rationale}\nCONFIDENCE: {confidence}"


def checklist(*candidates: str, evidence: str = "| for: its signal | against: its age", **sections: str) -> str:
    """Write a checklist in the form that open items ask for; a section is changed by its name, and left out when it is empty."""
    told = {
        "SEEN": "MRI; FLAIR, DWI; axial",
        "LOCATION": "frontal lobe",
        "SIDE": "left",
        "FINDINGS": "A mass.",
        "DIFFERENTIAL": "".join(f"\n{rank}. {name} {evidence}" for rank, name in enumerate(candidates, start=1)),
        "CONFIDENCE": "0.7",
        "MISSING": "a biopsy",
        "RATIONALE": "It fits.",
        **sections,
    }
    return "\n".join(f"{name}:{'' if text.startswith(chr(10)) else ' '}{text}" for name, text in told.items() if text)


def lesion_answer(lesion: str, location: str = "", side: str = "none") -> str:
    """Write an answer in the form that lesion items ask for."""
    return f"LESION: {lesion}\nLOCATION: {location}\nSIDE: {side}\nFINDINGS: As said.\nCONFIDENCE: 0.5"


def answered(text: str, item: Item = ITEM, **changes: Any) -> Response:
    """Make a response to an item."""
    return replace(RESPONSE, item_id=item.item_id, runner=item.runner.value, text=text, **changes)
