"""Reading lists and sentences of answers that are not in the requested form: what names diagnoses is read, and nothing else."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from fixtures.scoring import ITEM
from neuralmedbench.records.questions import LETTERS
from neuralmedbench.records.scores import ParseStatus
from neuralmedbench.records.vocabulary import normal_form
from neuralmedbench.scoring.choice import read_choice
from neuralmedbench.scoring.lists import introduces, list_from, mark_of
from neuralmedbench.scoring.parse import parse_answer

FOUND = Path(os.environ.get("NMB_FOUND_ANSWERS", ""))
given = pytest.mark.skipif(not os.environ.get("NMB_FOUND_ANSWERS"), reason="NMB_FOUND_ANSWERS names no folder of answers")

INTRODUCTIONS = (
    "Potential diagnoses:",
    "## Differential Diagnosis",
    "**Differential Diagnosis (ranked, with supporting features):**",
    "Based on the imaging findings, the top differential diagnoses are:",
    "Based on the symptoms provided here are some potential diseases to consider:",
    "Given the symptoms, several genetic disorders could be considered:",
    "Top 5 differential diagnoses (with reasoning):",
    "The patient's symptoms could be caused by the following conditions:",
    "This is not a definitive diagnosis, but the following conditions are possible:",
    "I have compiled a list of diseases that may explain the symptoms. Here are my findings:",
    "## Possible diagnoses\n\nAfter some thought:",
    "Here's a list of potential diseases, along with symptoms that match or do not match the patient's:",
    "Certainly, here are five diseases that align with these symptoms.",
    "Based on the symptoms provided, the patient may have:",
    "Sure! Based on the patient's symptoms, here is the list:",
)
MARKS = (
    *("{}. ", "{}) ", "({}) ", "#{} ", "#{}: ", "+{}. ", "+{} ", "\\+{}. ", "(+{}) ", "+{}\n", "- +{}. ", "{}. (+1) "),
    *("- ", "* ", "• ", "### {}. ", "### +{}. ", "{}: ", "Disease {}: ", "{}. Disease name: "),
)
EXPLANATIONS = (
    ": a ring that enhances",
    " - a ring that enhances",
    " – it enhances",
    " (60 %)",
    " (60-70%): a ring",
    " (+1): a ring",
    ", given the ring",
)
DENIED = (
    "Here are tests to exclude other diseases:",
    "Differential diagnoses that were ruled out:",
    "Diagnoses that were excluded:",
    "Less likely diagnoses:",
    "Recommended tests to confirm the diagnosis:",
    "Findings that support this diagnosis:",
    "Symptoms of these conditions include:",
    "Treatment of the most likely condition:",
    "A definitive diagnosis requires further evaluation:",
    "To narrow the differential, I would ask these questions:",
    "The patient has a serious condition.",
    "The diagnosis is supported by:",
    "Based on the images, I can identify the following:",
    "The differential must cover entities that can produce:",
    "Early diagnosis is essential for:",
)


def read(text: str) -> list[str]:
    return [name.lower() for name in parse_answer(text, ITEM).differential]


def listed(mark: str, *entries: str) -> str:
    return "\n".join(mark.format(rank) + entry for rank, entry in enumerate(entries, start=1))


@pytest.mark.parametrize("introduction", INTRODUCTIONS)
@pytest.mark.parametrize("mark", MARKS)
def test_a_list_behind_an_introduction_that_names_diagnoses_is_read(introduction: str, mark: str) -> None:
    text = (
        f"{introduction}\n\n{listed(mark, '**Glioblastoma**: a ring', 'Chiari malformation type I', 'Abscess')}\n\nMore tests are needed."
    )
    assert read(text) == ["glioblastoma", "chiari malformation type i", "abscess"]
    assert parse_answer(text, ITEM).parse_status is ParseStatus.REPAIRED


@pytest.mark.parametrize("explanation", EXPLANATIONS)
@pytest.mark.parametrize("name", ["Glioblastoma{}", "**Glioblastoma**{}", "**Glioblastoma{}**", "Most likely: Glioblastoma{}"])
def test_an_entry_is_a_name_whatever_explains_it(name: str, explanation: str) -> None:
    text = f"Possible diagnoses:\n{listed('{}. ', name.format(explanation), 'Abscess')}"
    assert read(text) == ["glioblastoma", "abscess"]


@pytest.mark.parametrize("mark", ["{}. ", "+{}. ", "**{}.** ", "- "])
@pytest.mark.parametrize("bullet", ["    * ", "  - ", "    1. "])
def test_what_stands_below_an_entry_is_no_candidate(mark: str, bullet: str) -> None:
    below = f"\n\n{bullet}**Symptoms in common:** headache\n{bullet.replace('1', '2')}Bone marrow biopsy\n"
    assert read(f"Potential diagnoses:\n\n{listed(mark, 'Glioblastoma' + below, 'Abscess' + below)}") == ["glioblastoma", "abscess"]


def test_bullets_at_the_margin_below_a_number_are_no_candidates() -> None:
    entries = "+1. **Glioblastoma:** a tumour.\n\n* **Symptoms in common:** headache\n* MRI\n\n+2. **Abscess:** pus.\n\n* MRI"
    assert read(f"## Potential Diagnoses:\n\n{entries}") == ["glioblastoma", "abscess"]


@pytest.mark.parametrize(
    "text",
    [
        " +1. Glioblastoma: a tumour. Type 2. It grows. +2. Abscess: pus.",
        "Possible diagnoses: 1) Glioblastoma 2) Abscess",
        "Possible diseases:\n\n\\n\\n+1. Glioblastoma:\nA tumour.\n\n\\n\\n+2. Abscess:\nPus.",
        "Possible diagnoses:\n\n**Glioblastoma**\nA tumour.\n\n**Abscess**\nPus.\n\n**Next steps**\nMRI",
        "## Possible diagnoses\n### Glioblastoma\nA tumour.\n### Abscess\nPus.\n### Recommended tests\nMRI",
        "Possible diagnoses:\n\n**Glioblastoma:** a tumour.\n**Abscess:** pus.\n\n**Evidence:** a ring.",
        "**Differential diagnosis:**\n- Glioblastoma\n  - a ring\n  - biopsy\n- Abscess\n  - fever",
        "DIFFERENTIAL: Glioblastoma\nAbscess\n- a ring",
        "The imaging shows:\n1. A ring\n2. Oedema\n\nThe following diagnoses should be considered:\n1. Glioblastoma\n2. Abscess",
        "Diagnoses:\n1. Glioblastoma\n2. Abscess\n\nNext steps:\n1. MRI\n2. Biopsy\n3. PET",
        "Glioblastoma\nAbscess",
    ],
)
def test_lists_in_other_shapes_are_read(text: str) -> None:
    assert read(text) == ["glioblastoma", "abscess"]


@pytest.mark.parametrize("introduction", DENIED)
@pytest.mark.parametrize("mark", ["{}. ", "- ", "### {}. "])
def test_a_list_of_something_else_or_of_denied_diagnoses_is_none(introduction: str, mark: str) -> None:
    text = f"{introduction}\n\n{listed(mark, 'Glioblastoma', 'Abscess')}"
    assert (read(text), parse_answer(text, ITEM).parse_status) == ([], ParseStatus.FAILED)


def test_headings_of_a_discussion_and_groups_of_diseases_are_no_candidates() -> None:
    assert read("## Differential Diagnosis\n### 1. Infectious Lesions\nFever.\n### 2. Neoplasms\nA ring.") == []
    assert read("## Differential Diagnosis\n### Overview\nA ring.\n### Imaging findings\nOedema.") == []
    assert read("## Possible diagnoses\n### Bipolar disorder\nMania.\n### Crohn's disease\nFever.") == [
        "bipolar disorder",
        "crohn's disease",
    ]


@pytest.mark.parametrize(
    "sentence",
    [
        "I believe that {} is the most likely diagnosis.",
        "Based on these images, I believe that {} is the most likely diagnosis.",
        "I think {} is the most likely diagnosis.",
        "Taken together, I would say that {} is the most likely diagnosis.",
        "Considering the ring enhancement, the oedema and the restricted diffusion, a {} is the most likely diagnosis.",
        "The ring suggests that {} is the leading diagnosis.",
        "{} emerges as the most plausible diagnosis.",
        "The final diagnosis is likely to be {}. However, a biopsy is needed.",
        "My leading consideration is {}.",
        "{} is favored over metastasis.",
        "I favor {} over metastasis.",
        "I suspect {}.",
        "Findings are most in keeping with {}.",
        "The appearances are consistent with {}.",
        "These features are typical of {}.",
        "This is a classic case of {}.",
        "A ring-enhancing mass, classic for {}.",
        "The mass is highly suspicious for {}.",
        "The patient is most likely suffering from {}.",
        "**Impression:**\n1. A mass with a ring, most consistent with {}.\n2. Sinusitis.",
        "Impression:\n1. No hemorrhage.\n2. Findings consistent with {}.",
        "1. Neuromyelitis optica\n2. {}\n\nOf these, I believe that {} is the most likely diagnosis.",
        "{}. This condition is characterised by a ring.",
    ],
)
def test_a_sentence_that_commits_itself_is_read(sentence: str) -> None:
    assert read(sentence.format("glioblastoma", "glioblastoma"))[0] == "glioblastoma"


@pytest.mark.parametrize(
    "sentence",
    [
        "I do not believe that glioblastoma is the most likely diagnosis.",
        "I doubt that glioblastoma is the most likely diagnosis.",
        "It is unlikely that glioblastoma is the leading diagnosis.",
        "Findings are not consistent with glioblastoma.",
        "Findings are consistent with the patient's history.",
        "The most likely diagnosis is examined in depth.",
        "The most likely diagnosis is a complex, multisystem disorder.",
        "Findings are most consistent with glioblastoma. They are highly suggestive of abscess.",
    ],
)
def test_a_denial_and_a_sentence_that_names_nothing_are_not_read(sentence: str) -> None:
    assert read(sentence) == []


@pytest.mark.parametrize(
    "text",
    [
        "1. Most likely diagnosis: {}\n2. Other possible conditions:\n- Abscess\n3. Recommended tests:\n- MRI",
        "**1. Most Likely Diagnosis:**\n\n* **{}:** a ring.\n\n**2. Tests:**\n* MRI",
        "Here is my assessment of diagnosis, tests and urgency:\n\n1. **Potential Diagnosis:**\n   - {}\n\n2. **Recommended Actions:**\n   - MRI",
        "1. Potential Diagnosis:\nThe combination of headache and a ring suggests a possibility of {}.\n\n2. Actions:\n- MRI",
        "1. **Possible diagnosis:**\n   * **Most Likely:** {}\n\n3. Urgency: high. Early diagnosis is essential for:\n   * Survival",
        "**Final Diagnosis:**\nBased on age, scan and course, the final diagnosis is:\n\n**{}**\n\nTreatment plan:\n\nThe patient will require surgery.",
        "I would make the following final diagnosis:\n\n**{}**\n\nDifferential diagnosis:\n\nAbscess\nManagement: surgery",
        "I would make a final diagnosis of {}.",
        "**Final Diagnosis: {}**\n\n**Why this is the most likely diagnosis**\nA ring.",
        "**Final Diagnosis:** {}\n\n### Differential Diagnosis (Ruled Out):\n1. Abscess - no fever\n2. Lymphoma",
        "**Final Diagnosis:** {} due to a mutation of the promoter in the setting of an earlier irradiation of the whole head and neck",
        "Final Diagnosis: {}\n\nWhile the diagnosis is already highly probable, surgery must not wait.",
        "{} is the most likely diagnosis based on the ring, and surgery is urgent.",
        "While {} is the most likely diagnosis, a biopsy is needed.",
        "I am fairly confident that {} is the most likely diagnosis.",
        "Abscess is possible, but {} is the most likely diagnosis.",
        "The most likely initial diagnosis is {}.",
        "Diagnosis: {}\n\nIn cases where the diagnosis is uncertain after a biopsy, repeat it.",
    ],
)
def test_the_sections_of_a_prompt_and_sentences_about_a_diagnosis_leave_it_as_it_was_named(text: str) -> None:
    assert read(text.format("Glioblastoma"))[0] == "glioblastoma"


@pytest.mark.parametrize("name", ["Essential tremor", "Critical illness polyneuropathy", "Clinically isolated syndrome"])
def test_a_name_that_begins_like_a_remark_is_a_name(name: str) -> None:
    assert read(f"Most likely diagnosis: {name}") == [name.lower()]


def test_the_rows_of_a_table_of_diagnoses_are_its_list_and_other_tables_are_none() -> None:
    table = "| # | {} | Why |\n|---|---|---|\n| 1 | **Glioblastoma** | a ring |\n| 2 | Abscess | fever |"
    assert read(f"**Three plausible diagnoses**\n\n{table.format('Diagnosis')}") == ["glioblastoma", "abscess"]
    assert read(f"**Recommended tests**\n\n{table.format('Test')}") == []
    assert read(f"**Diagnoses that were excluded**\n\n{table.format('Diagnosis')}") == []


def test_an_introduction_that_says_what_follows_is_read_from_there() -> None:
    entries = listed("{}. ", "Glioblastoma", "Abscess")
    assert read(f"Given the findings, here are three possible diagnoses, ranked by the evidence:\n\n{entries}") == [
        "glioblastoma",
        "abscess",
    ]
    assert read(f"These diagnoses, from most to least likely:\n\n{entries}") == ["glioblastoma", "abscess"]
    assert read(f"The disease has several signs, including:\n\n{entries}") == []
    assert read(f"**Important Considerations:**\n\n{entries}") == []


def test_a_long_discussion_whose_statements_compete_is_unread_unless_it_ends_with_one() -> None:
    body = "Some cases look different, and all of this has to be weighed with care before anybody decides. " * 50
    first, second = "The most likely diagnosis is abscess.", "The leading diagnosis is lymphoma."
    assert read(f"A mass.\n\n{body}\n\n{first}\n\n{second}\n\n{body}") == []
    assert read(f"A mass.\n\n{body}\n\n{first}\n\n{first}\n\n{body}") == ["abscess"]
    assert read(f"A mass.\n\n{first}\n\n{body}\n\n{body}\n\n{second}") == ["lymphoma"]


def test_of_a_long_discussion_only_its_ends_commit_themselves_less_clearly() -> None:
    body = "Some cases look different, and all of this has to be weighed with care before anybody decides. " * 20
    weak = "These features are typical of abscess."
    assert read(f"A mass.\n\n{body}\n\n{weak}\n\n{body}") == []
    assert read(f"A mass.\n\n{body}\n\n{weak}") == ["abscess"]
    assert read(f"{weak}\n\n{body}\n\n{body}") == ["abscess"]


def test_what_is_called_most_likely_is_not_repeated_in_its_list() -> None:
    text = "Possible diagnoses:\n1. Abscess\n2. Glioblastoma (+2)\n\nGlioblastoma (+2) seems to be the most likely diagnosis."
    assert read(text) == ["glioblastoma", "abscess"]
    assert len(read(f"Diagnoses:\n{listed('{}. ', *'abcdef')}\n\nThe most likely diagnosis is glioma.")) <= 5


def test_an_apology_above_a_list_is_no_refusal_and_advice_below_it_neither() -> None:
    listing = "Possible conditions are:\n1. glioblastoma\n2. abscess"
    assert read(f"I'm sorry to hear of your symptoms. As an AI language model I can suggest this. {listing}") == ["glioblastoma", "abscess"]
    assert read(f"{listing}\n\nI cannot replace a doctor.") == ["glioblastoma", "abscess"]
    refused = parse_answer(f"I'm sorry, but I cannot make a diagnosis. {listing}", ITEM)
    assert (refused.differential, refused.abstained) == ((), True)


def test_a_number_in_a_sentence_is_no_mark() -> None:
    for line in ("1.5 cm mass", "3-year-old girl", "12 days of fever", "-5 dB", "2,000 cells"):
        assert not mark_of(line).number
        assert not mark_of(line).kind


def test_a_list_ends_where_its_numbers_begin_again() -> None:
    lines = ["1. glioma", "  1. a ring", "2. abscess", "", "Next:", "1. MRI"]
    assert list_from(lines, [mark_of(line) for line in lines], 0) == (["glioma", "abscess"], 4)
    assert introduces(["The diagnosis is clear.", "", "Let me continue:"]) is None


@pytest.mark.parametrize("sign", [" ", "*", "#", "- ", "1. ", "\n", "is the most likely diagnosis ", "# possible diagnoses\n", "1. 2. "])
def test_a_hostile_answer_takes_no_time(sign: str) -> None:
    parse_answer(sign * (100_000 // len(sign)), ITEM)


def rows(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (FOUND / name).read_text(encoding="utf-8").splitlines()]


@given
def test_published_lists_of_six_models_are_read() -> None:
    """At most 10 % unread and 2 % misread; a closing sentence that calls another one the most likely puts it first."""
    unread, misread = 0, 0
    answers = rows("dxgpt-lists/answers.jsonl")
    for row in answers:
        names = [normal_form(name) for name in parse_answer(row["answer"], ITEM).differential]
        unread += not names
        misread += bool(names) and normal_form(row["first_of_list"]) not in names[:2]
        assert not any(word in name.split() for name in names for word in ("symptom", "symptoms", "biopsy", "examination", "i"))
    assert (len(answers), unread, misread) == (80, 0, 0)


@given
def test_sentences_in_the_shape_of_published_ones_are_read() -> None:
    for row in rows("phrases/phrases.jsonl"):
        names = [normal_form(name) for name in parse_answer(row["text"], ITEM).differential]
        assert names[0] == normal_form(row["first"])
        assert normal_form(row.get("second", "")) in ("", *names[1:2])


@given
def test_letters_in_the_shape_of_published_ones_are_read() -> None:
    for row in json.loads((FOUND / "letters-made-up" / "answers.json").read_text(encoding="utf-8")):
        assert read_choice(row["text"], row["options"])[0] == row["letter"]
        assert row["letter"] in LETTERS
