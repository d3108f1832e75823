"""Statements are found by words: in the same sense, in sentences, and not in lists of words.

The pairs and limits are those of the half of `tests/words/` that is for mending; the comparison was made with sight of it.
"""

from __future__ import annotations

import csv
import random
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest
import yaml

from fixtures.scoring import vocabulary
from fixtures.word_adversaries import both_signs, sentence, shuffled, word_lists
from neuralmedbench.records.words import percent
from neuralmedbench.scoring.statements import contains_statement, imaging_terms, readable

ROOT = Path(__file__).parents[3]
PATIENTS = sorted((ROOT / "scripts/neuralmedbench/demo/patients").glob("*.yaml"))


@cache
def pairs() -> list[dict[str, str]]:
    """Read the pairs that both labels agree on."""
    with (ROOT / "tests/words/statements_mend.tsv").open(encoding="utf-8", newline="") as file:
        return [row for row in csv.DictReader(file, delimiter="\t") if row["expected"] == row["second"]]


@cache
def halves() -> dict[str, int]:
    """Divide the statements in two, every other one."""
    return {statement: place % 2 for place, statement in enumerate(dict.fromkeys(row["statement"] for row in pairs()))}


@cache
def references() -> list[list[str]]:
    """Read findings and arguments of the demo: one list of sentences per reference."""
    found = [yaml.safe_load(path.read_text(encoding="utf-8"))["answer"] for path in PATIENTS]
    return [answer[part] for answer in found for part in ("findings", "rationale")]


@cache
def statements() -> list[str]:
    return [*halves(), *(statement for reference in references() for statement in reference)]


def credited(make: Callable[[str], str]) -> float:
    """Return the share of all statements that are found in a text made for each."""
    return sum(contains_statement(make(statement), statement) for statement in statements()) / len(statements())


def share(kinds: tuple[str, ...], half: int | None = None) -> float:
    of = [row for row in pairs() if row["kind"] in kinds and half in (None, halves()[row["statement"]])]
    return sum(contains_statement(row["text"], row["statement"]) for row in of) / len(of)


@pytest.mark.parametrize("half", [0, 1])
def test_paraphrases_are_found_more_often_and_opposites_hardly_ever(half: int) -> None:
    """Before, 13 % of the paraphrases were found, and 36 % of the texts that say something else."""
    assert share(("paraphrase",), half) >= 0.55
    assert share(("contradiction", "near_miss", "negation"), half) <= 0.05


def test_the_docs_state_the_measured_shares() -> None:
    found, wrong = share(("paraphrase",)), share(("contradiction", "near_miss", "negation"))
    wanted = f"{percent(found)} of 90 paraphrases and {percent(wrong)} of 90 texts"
    assert wanted in (ROOT / "docs" / "graders.md").read_text(encoding="utf-8")


def test_the_reference_states_all_of_itself() -> None:
    missed = [
        statement
        for reference in references()
        for statement in reference
        if not contains_statement(" ".join(sentence(one) for one in reference), statement)
    ]
    assert missed == []
    assert all(contains_statement(statement, statement) for statement in halves())


def test_lists_of_words_state_nothing() -> None:
    for words in word_lists(vocabulary()):
        assert credited(lambda _, words=words: words) < 0.05


def test_a_statement_and_its_denial_state_nothing() -> None:
    for number in range(4):
        assert credited(lambda statement, number=number: both_signs(statement)[number]) < 0.05


def test_shuffled_sentences_state_little() -> None:
    """Of short statements many orders make sense: `no mass effect`."""
    rng = random.Random(1)
    others = statements()
    assert credited(lambda statement: shuffled([statement], rng)) < 0.15
    assert credited(lambda statement: shuffled([statement, rng.choice(others)], rng)) < 0.1
    of_references = [(shuffled(reference, rng), statement) for reference in references() for statement in reference]
    assert sum(contains_statement(text, statement) for text, statement in of_references) < 0.05 * len(of_references)


@pytest.mark.parametrize(
    ("text", "statement"),
    [
        ("The focus is DWI bright and ADC dark.", "restricted diffusion"),
        ("Neither mass nor oedema.", "no mass"),
        ("The putamen is hyperintense on FLAIR.", "the basal ganglia are bright on FLAIR"),
        ("Both hippocampi are shrunken.", "bilateral hippocampal atrophy"),
    ],
)
def test_other_words_of_the_same_sense_are_found(text: str, statement: str) -> None:
    assert contains_statement(text, statement)


@pytest.mark.parametrize(
    ("text", "statement"),
    [
        ("The rim is thick.", "thin rim"),
        ("Both hippocampi are swollen.", "bilateral hippocampal atrophy"),
        ("The caudate is hyperintense on FLAIR.", "high FLAIR signal of the thalamus"),
        ("The rim does not enhance.", "rim enhancement"),
        ("The right hippocampus is small.", "small left hippocampus"),
        ("The basal ganglia are spared.", "the basal ganglia are involved"),
        ("There is oedema.", "mass with oedema"),
    ],
)
def test_opposites_other_structures_and_halves_are_not_found(text: str, statement: str) -> None:
    assert not contains_statement(text, statement)


@pytest.mark.parametrize(
    "text", ["Ödem zeigt sich im linken Temporallappen und fällt in der DWI auf.", "水肿位于左侧颞叶。", "Il n'y a pas de masse."]
)
def test_rules_of_english_are_not_held_against_other_languages(text: str) -> None:
    assert readable(text)


def test_every_opposite_and_implied_concept_is_a_quality_or_a_thing() -> None:
    file = yaml.safe_load((ROOT / "scripts/neuralmedbench/scoring/imaging_terms.yaml").read_text(encoding="utf-8"))
    assert {name for pair in file["opposites"] for name in pair} <= set(file["qualities"])
    assert set(file["without_quality"]) <= set(file["qualities"])
    assert {part for parts in file["implied"].values() for part in parts} <= {*file["qualities"], *file["things"]}
    assert all(phrases for section in ("things", "qualities", "without_quality") for phrases in file[section].values())
    assert imaging_terms().opposites["thin"] == {"thick"}
