"""Which examination a request means, on requests that others wrote without sight of the rules."""

from __future__ import annotations

import csv
import json
from collections import Counter

import pytest

from conftest import ROOT
from neuralmedbench.records.examinations.inventory import (
    EvidenceKind,
    Examination,
    RequestOutcome,
    group_of_entry,
    section_of_note,
    unique_names,
)
from neuralmedbench.records.examinations.matching import REQUEST_KINDS, match_request, offered_requests
from neuralmedbench.records.examinations.wording import kind_of_request

WORDS = ROOT / "tests" / "words"
CASES = json.loads((WORDS / "examinations.json").read_text(encoding="utf-8"))


def held(case: str) -> list[Examination]:
    """Give what a case holds."""
    found = []
    for unit in CASES[case]["units"].values():
        source, _, said = unit.partition(": ")
        if source == "pictures":
            sequence, plane = said.split(", ")
            found.append(Examination(name=said, kind=EvidenceKind.PICTURES, sequence=sequence, plane=plane))
        elif source == "note":
            found.append(Examination(name=section_of_note(said), kind=EvidenceKind.NOTE, text=said))
        else:
            name = source.removeprefix("record, ") if source != "record" else said.partition(":")[0]
            found.append(Examination(name=name, kind=EvidenceKind.RECORD, text="\n".join(said.split("; "))))
    return found


def rows() -> list[dict[str, str]]:
    with (WORDS / "examinations.tsv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))


def test_requests_of_others_are_read_as_they_were_meant_and_no_wrong_pictures_are_given() -> None:
    found: Counter[str] = Counter()
    for row in rows():
        units = held(row["case"])
        match = match_request(row["request"], units)
        wanted = row["expected"].split("|")
        given = match.place is not None
        named = f"u{match.place + 1}" if match.place is not None else {"absent": "none", "unclear": "vague"}[match.outcome]
        pictures = match.place is not None and units[match.place].kind is EvidenceKind.PICTURES
        found["right" if named in wanted else "wrong pictures" if pictures else "wrong text" if given else "not given"] += 1
    assert found["wrong pictures"] == 0
    assert found == COUNTS


COUNTS = {"right": 1677, "not given": 14, "wrong text": 17}


def test_the_requests_that_people_choose_from_reach_all_scans_of_the_invented_cases_and_most_of_the_rest() -> None:
    found: Counter[str] = Counter()
    useful: Counter[str] = Counter()
    for case in CASES:
        units = held(case)
        reached = set[int | None]()
        for request in sorted(offered_requests(), key=lambda request: -useful[request]):  # in any order, so that few are enough for most
            if not {*range(len(units))} <= reached and (place := match_request(request, units).place) not in reached:
                reached.add(place)
                useful[request] += 1
        for place, unit in enumerate(units):
            kind = "scan" if unit.kind is EvidenceKind.PICTURES else "text"
            found[f"{kind}{'' if place in reached else ', not reached'}"] += 1
    assert found == {"scan": 642, "text": 699, "text, not reached": 22}


@pytest.mark.parametrize("request_", ["examination", "neurological examination", "neurological examination: findings", "the examination"])
def test_a_note_that_begins_as_an_examination_is_one_without_a_colon_too(request_: str) -> None:
    text = "Examination, 2030-10-13\nAwake, follows no commands.\nForm fields left open: Parkinson rating."
    note = Examination(name=section_of_note(text), kind=EvidenceKind.NOTE, text=text)
    assert match_request(request_, [note]).place == 0


FLAIR = Examination(name="FLAIR, axial", kind=EvidenceKind.PICTURES, sequence="FLAIR", plane="axial")
T1, CE_T1 = (Examination(name=f"{one}, axial", kind=EvidenceKind.PICTURES, sequence=one, plane="axial") for one in ("T1w", "ceT1w"))


@pytest.mark.parametrize(
    ("request_", "place"),
    [
        ("T1; I do not need the FLAIR again", 1),
        ("After the FLAIR I want the T1 with gadolinium.", 2),
        ("FLAIR now; T1 only if this is unrevealing", 0),
        ("We've had the FLAIR, which was normal - could we have the T1?", 1),
        ("I've already looked at the T1. Show me the axial FLAIR one.", 0),
        ("T1 rather than FLAIR", 1),
    ],
)
def test_what_was_seen_or_is_not_wanted_is_not_given(request_: str, place: int) -> None:
    assert match_request(request_, [FLAIR, T1, CE_T1]).place == place


@pytest.mark.parametrize(
    ("request_", "place"),
    [
        ("previous alcohol and social history", 0),
        ("Is there an audiogram?", 1),
        ("cranial ultrasound", None),
    ],
)
def test_a_note_is_found_by_its_own_heading_or_by_what_such_a_note_holds(request_: str, place: int | None) -> None:
    notes = [
        Examination(name=section_of_note(text), kind=EvidenceKind.NOTE, text=text)
        for text in ("Social history: lives alone.", "Hearing tests of June: normal on both sides.")
    ]
    assert match_request(request_, notes).place == place


@pytest.mark.parametrize(
    ("request_", "outcome", "place"),
    [
        ("T1", RequestOutcome.GIVEN, 1),
        ("T1 with gadolinium", RequestOutcome.GIVEN, 2),
        ("sagittal FLAIR", RequestOutcome.ABSENT, None),
        ("SWI", RequestOutcome.ABSENT, None),
        ("MRI of the brain", RequestOutcome.UNCLEAR, None),
        ("", RequestOutcome.UNCLEAR, None),
    ],
)
def test_nothing_is_released_on_a_guess(request_: str, outcome: RequestOutcome, place: int | None) -> None:
    match = match_request(request_, [FLAIR, T1, CE_T1])
    assert (match.outcome, match.place) == (outcome, place)


CASE = [
    *(
        Examination(name=section_of_note(text), kind=EvidenceKind.NOTE, text=text)
        for text in ("Repeat prescriptions: warfarin.", "Bedside examination: weak arm.", "Skin and general inspection: pale patches.")
    ),
    Examination(name="blood tests", kind=EvidenceKind.RECORD, text="sodium: 138 mmol/L\nINR: 2.9"),
    FLAIR,
    T1,
    Examination(name="CT, axial", kind=EvidenceKind.PICTURES, sequence="CT", plane="axial"),
]


@pytest.mark.parametrize(
    ("request_", "given"),
    [
        ("medication: reconciliation with special attention to anticoagulants", 0),
        ("medication", 0),
        ("**Medication**: <does she take a blood thinner?>", 0),
        ("kind: neurological examination: modified Sarnat staging", 1),
        ("general examination: Wood's lamp", 2),
        ("blood tests: all results", 3),
        ("blood tests: INR", 3),
        ("blood tests: ferritin", RequestOutcome.ABSENT),
        ("cerebrospinal fluid: cells", RequestOutcome.ABSENT),
        ("MRI: axial FLAIR. The T1 was normal.", 4),
        ("MRI: T1, no contrast. The CT raised the question of a clot, so I want to see whether there is one.", 5),
        ("blood tests: complete blood count", RequestOutcome.ABSENT),
        ("cerebrospinal fluid: sodium", RequestOutcome.ABSENT),
        ("MRI: T1, sagittal cervical spine", RequestOutcome.ABSENT),
        ("CT: head and cervical spine", 6),
        ("MRI: steady-state sequence", RequestOutcome.ABSENT),
        ("MRI: epilepsy protocol", RequestOutcome.UNCLEAR),
        ("CT: without contrast", 6),
        ("CT: with contrast", RequestOutcome.ABSENT),
        ("CT: FLAIR", RequestOutcome.UNCLEAR),
        ("neurological examination: axial FLAIR", RequestOutcome.UNCLEAR),
        ("other: INR", 3),
        ("other:", RequestOutcome.UNCLEAR),
    ],
)
def test_a_stated_kind_says_which_examinations_are_considered(request_: str, given: int | RequestOutcome) -> None:
    match = match_request(request_, CASE)
    assert (match.outcome if match.place is None else match.place) == given


@pytest.mark.parametrize("kind", REQUEST_KINDS)
def test_every_kind_of_the_prompt_is_read_as_itself(kind: str) -> None:
    assert kind_of_request(f"{kind}: axial, please") == (kind, "axial, please")
    assert kind_of_request(f"- **{kind.upper()}**: axial") == (kind, "axial")


def test_entries_and_notes_are_grouped_by_their_own_words_and_names_are_unique() -> None:
    assert [group_of_entry(name) for name in ("INR", "CSF protein", "NIHSS", "audiogram")] == [
        "blood tests",
        "cerebrospinal fluid",
        "scales and bedside tests",
        "audiogram",
    ]
    assert [section_of_note(text) for text in ("Examination: weak arm.", "His wife adds that he falls.")] == [
        "examination",
        "further history",
    ]
    assert unique_names(["examination", "medication", "examination"]) == ["examination", "medication", "examination (2)"]
