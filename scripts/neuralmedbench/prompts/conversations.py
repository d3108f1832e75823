"""Conversations that the model leads: it asks for facts of a case, for one examination a turn, or for slices of its scans."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from neuralmedbench.config.benchmark import ViewerConfig
from neuralmedbench.files.templates import Templates
from neuralmedbench.prompts.parts import labelled_images
from neuralmedbench.records.arm_changes import by_digest
from neuralmedbench.records.case import Plane
from neuralmedbench.records.examinations.inventory import (
    EvidenceKind,
    Examination,
    group_of_entry,
    section_of_note,
    unique_names,
)
from neuralmedbench.records.examinations.matching import REQUEST_KINDS, match_request
from neuralmedbench.records.fact_matching import MOST_FACTS
from neuralmedbench.records.items import ESSENTIAL_SEPARATOR, Arm, Family, Item, Runner, evidence_images
from neuralmedbench.records.questions import LETTERS
from neuralmedbench.records.requests import STATEMENT, Fact, Inquiry, RequestTurn
from neuralmedbench.records.views import Viewer, ViewScan

PARAGRAPH = re.compile(r"\n\s*\n")
ENTRY = re.compile(r"[^:\n]{1,60}: \S.*")
AT_THE_START = re.compile(r"(?:age|sex|gender)\s*:", re.IGNORECASE)
"""Entries that are given with the history."""


def has_work_up(item: Item) -> bool:
    """Return True for a case that a work-up can be made of: the diagnosis is asked for, and there is a history and more to ask for."""
    asked = item.family is Family.DIFFERENTIAL_DIAGNOSIS and item.runner in (Runner.OPEN, Runner.DIALOGUE)
    history, held = examinations_of(item)
    return asked and bool(history) and bool(held)


def examinations_of(item: Item) -> tuple[str, tuple[Examination, ...]]:
    """Return what is given at the start of a work-up, and the examinations that the case holds.

    Parameters
    ----------
    item : Item
        The item, as its arm shows it.

    Returns
    -------
    str
        The first paragraph of the notes, with the age and sex of the record.
    tuple of Examination
        Sections of the notes, groups of record entries, and pictures by sequence and plane; each in the order of the case.
    """
    # the last turn of a dialogue shows the record
    reveals = [turn.reveal for turn in item.turns]
    last = reveals.pop() if reveals and _is_record(reveals[-1]) else ""
    notes = [part.strip() for text in (item.notes, *reveals) for part in PARAGRAPH.split(text) if part.strip()]
    entries = [line for text in (item.record, last) for line in text.splitlines() if line.strip()]
    start = [line for line in entries if AT_THE_START.match(line)]
    groups: dict[str, list[str]] = {}
    for line in entries:
        if line not in start:
            groups.setdefault(group_of_entry(line.partition(":")[0]), []).append(line)
    by_scan: dict[tuple[str, str], list[str]] = {}
    for image in evidence_images(item):
        by_scan.setdefault((image.sequence, image.plane), []).append(image.image_id)
    held = [
        *(Examination(name=section_of_note(text), kind=EvidenceKind.NOTE, text=text) for text in notes[1:]),
        *(Examination(name=name, kind=EvidenceKind.RECORD, text="\n".join(lines)) for name, lines in groups.items()),
        *(
            Examination(
                name=", ".join(filter(None, (sequence, plane))),
                kind=EvidenceKind.PICTURES,
                sequence=sequence,
                plane=plane,
                image_ids=tuple(ids),
            )
            for (sequence, plane), ids in by_scan.items()
        ),
    ]
    names = unique_names([one.name for one in held])
    return "\n".join([*notes[:1], *start]), tuple(replace(one, name=name) for one, name in zip(held, names, strict=True))


def _is_record(text: str) -> bool:
    return bool(text) and all(map(ENTRY.fullmatch, text.splitlines()))


def work_up_of(
    item: Item, order: str, most: int, templates: Templates, *, disclosed: str = "", sections: Sequence[str] = ()
) -> tuple[RequestTurn, Inquiry]:
    """Return the first message of a work-up, and the examinations that can follow.

    Parameters
    ----------
    item : Item
        The item, as its arm shows it.
    order : str
        `asked`: the model asks. `history`: nothing follows. `together`: all is shown at once. `random`: one a turn, in an order that a digest
        of the item fixes; `author`: those that the case's author calls essential first, in the author's order. `findings`: at once, the findings in words in place of the pictures.
    most : int
        Number of requests.
    templates : Templates
        The prompt templates.
    disclosed : str
        What the arm shows of the answer: the essential examinations, or the findings.
    sections : sequence of str
        Sections of the final answer.
    """
    history, held = examinations_of(item)
    if order == "author":
        named = [match_request(name, held).place for name in disclosed.split(ESSENTIAL_SEPARATOR)]
        leading = list(dict.fromkeys(place for place in named if place is not None))
        held, disclosed = tuple(held[place] for place in (*leading, *(place for place in range(len(held)) if place not in leading))), ""
    if order == "random":
        held = tuple(sorted(held, key=lambda one: by_digest(item.item_id, one.name)))
    images = {image.image_id: image for image in item.images}
    facts = tuple(
        Fact(
            name=one.name,
            kind=one.kind,
            text=templates.render("workup_given", examination=one.name, text=one.text, pictures=bool(one.image_ids)),
            sequence=one.sequence,
            plane=one.plane,
            images=labelled_images(item, [images[name] for name in one.image_ids]),
        )
        for one in held
    )
    at_once = order not in ("asked", "random", "author")
    closing = templates.render("workup_closing", sections=sections, ended=not at_once)
    inquiry = Inquiry(
        facts=facts,
        max_questions=min(most, len(facts)) if order in ("random", "author") else most,
        unknown=templates.render("workup_absent"),
        left=templates.render("workup_left"),
        closing=closing,
        unclear=templates.render("workup_unclear"),
        again=templates.render("workup_again"),
        fixed=order in ("random", "author"),
    )
    if not at_once:
        first = templates.render(
            "workup", history=history, questions=inquiry.max_questions, fixed=inquiry.fixed, sections=sections, kinds=REQUEST_KINDS
        )
        return RequestTurn(text=first), inquiry
    shown = (
        facts if order == "together" else tuple(fact for fact in facts if fact.kind != EvidenceKind.PICTURES) if order == "findings" else ()
    )
    texts = [templates.render("workup_start", history=history), *(fact.text for fact in shown), disclosed, closing]
    turn = RequestTurn(text="\n\n".join(filter(None, texts)), images=tuple(image for fact in shown for image in fact.images))
    return turn, replace(inquiry, facts=(), max_questions=0)


def has_viewer(item: Item, scans: Sequence[ViewScan]) -> bool:
    """Return True for a case that a model can look through: the diagnosis is asked for, and there are scans to look at."""
    return item.family is Family.DIFFERENTIAL_DIAGNOSIS and item.runner in (Runner.OPEN, Runner.DIALOGUE) and bool(scans)


def viewer_of(
    item: Item, scans: Sequence[ViewScan], rules: ViewerConfig, templates: Templates, *, sections: Sequence[str] = ()
) -> tuple[RequestTurn, Viewer]:
    """Return the first message to a model that looks through the scans, and what it can be shown; parameters as in `work_up_of`.

    All text of the case is given with the first message.
    """
    history, held = examinations_of(item)
    texts = [history, *(one.text for one in held if one.kind is not EvidenceKind.PICTURES)]
    shown = [
        {
            "name": scan.name,
            "windows": scan.windows,
            "planes": [
                {
                    "plane": plane.plane,
                    "slices": plane.slices,
                    "axis": Plane(plane.plane).axis,
                    "first": f"{round(plane.position_mm(1)):+d}",
                    "last": f"{round(plane.position_mm(plane.slices)):+d}",
                    "coarse": plane.resampled,
                }
                for plane in scan.planes
            ],
        }
        for scan in scans
    ]
    first = templates.render(
        "viewer", history="\n\n".join(filter(None, texts)), scans=shown, zooms=rules.zooms, views=rules.max_views, sections=sections
    )
    viewer = Viewer(
        scans=tuple(scans),
        zooms=rules.zooms,
        max_views=rules.max_views,
        like=item.images[0].path if item.images else "",
        wrong=templates.render("viewer_wrong"),
        measured=templates.render("viewer_measured"),
        left=templates.render("viewer_left"),
        closing=templates.render("viewer_closing", sections=sections),
    )
    return RequestTurn(text=first), viewer


ASK_ARMS = (Arm.FULL, Arm.NO_IMAGE, Arm.SHUFFLED_IMAGE)
"""Arms that make sense for the strategy `ask`, which shows nothing unasked."""

ASK_ORDERS = ("history", "together")
"""Orders of evidence of the arms of questions with options whose facts are asked for: none of them, and all at once."""

SENTENCE = re.compile(r"(?<=[.!?;])\s+(?=\S)|\n+")

ASKED_BY = "imaging image images picture pictures scan scans mri mr ct radiology neuroimaging tomography brain head"
"""Words of a question that ask for the pictures."""


def ask_applies(item: Item, arm: str, order: str = "") -> bool:
    """Return True if the strategy `ask` applies under an arm: to a dialogue with more than one sentence to reveal, or to a question with options and facts."""
    if item.runner is Runner.CHOICE:
        return bool(start_and_facts(item)[1]) and (arm in ASK_ARMS if not order else order in ASK_ORDERS)
    return item.runner is Runner.DIALOGUE and arm in ASK_ARMS and len(sentences(item)) > 1


def start_and_facts(item: Item) -> tuple[str, list[str]]:
    """Return the start of a case with options, its first paragraph, and its facts: the lines of the others, and then those of the record."""
    start, *others = [part.strip() for part in PARAGRAPH.split(item.notes) if part.strip()] or [""]
    return start, [line.strip() for part in (*others, item.record) for line in part.splitlines()] if others else []


OWN_NUMBER = re.compile(r"^\d{1,3}[.)]\s+")
"""Numbers with which a data set begins its facts."""


def with_informant(inquiry: Inquiry, templates: Templates) -> Inquiry:
    """Let a language model find the facts of an inquiry that answer a question; it gets them numbered from 1, without numbers of their own."""
    if not inquiry.facts:
        return inquiry
    facts = [OWN_NUMBER.sub("", fact.text) for fact in inquiry.facts]
    return replace(
        inquiry,
        informant=templates.render("informant", facts=facts, most=MOST_FACTS),
        correction=templates.render("informant_again", most=MOST_FACTS, number=len(facts)),
    )


def _choice_inquiry_of(item: Item, order: str, most: int, templates: Templates) -> tuple[RequestTurn, Inquiry]:
    """Return the first message of a question with options whose facts are asked for (`order` is empty), all told, or withheld (`history`).

    Pictures are shown with the start.
    """
    start, facts = start_and_facts(item)
    options = list(zip(LETTERS, item.options, strict=False))
    images = labelled_images(item, item.images)
    first = templates.render(
        "ask_choice",
        start=start,
        facts=facts if order == "together" else [],
        question=templates.question(item.question),
        options=options,
        pictures=bool(images),
        questions=0 if order else most,
    )
    inquiry = Inquiry(
        facts=() if order else tuple(Fact(text=fact, kind=STATEMENT) for fact in facts),
        max_questions=0 if order else most,
        unknown=templates.render("ask_unknown"),
        left=templates.render("ask_left"),
        closing=templates.render("ask_choice_closing"),
    )
    return RequestTurn(text=first, images=images), inquiry


def inquiry_of(
    item: Item, most: int, templates: Templates, *, order: str = "", sections: Sequence[str] = ()
) -> tuple[RequestTurn, Inquiry]:
    """Turn a dialogue of fixed rounds, or a question with options, into one in which the model asks: its first message, and the facts that it can ask for."""
    if item.runner is Runner.CHOICE:
        return _choice_inquiry_of(item, order, most, templates)
    # the first sentence is the complaint; every other one is a fact that a question can bring out
    first, *others = sentences(item)
    facts = [Fact(text=sentence) for sentence in others]
    if item.images:
        facts.append(Fact(text=templates.render("ask_pictures"), asked_by=ASKED_BY, images=labelled_images(item, item.images)))
    inquiry = Inquiry(
        facts=tuple(facts),
        max_questions=most,
        unknown=templates.render("ask_unknown"),
        left=templates.render("ask_left"),
        closing=templates.render("ask_closing", sections=sections),
    )
    return RequestTurn(text=templates.render("ask", complaint=first, questions=most, sections=sections)), inquiry


def sentences(item: Item) -> list[str]:
    """Return the sentences and lines that the rounds of a dialogue reveal, in order."""
    return [part.strip() for turn in item.turns for part in SENTENCE.split(turn.reveal) if part.strip(" -*\t")]
