"""Published files import by yaml alone, with the numbers that were counted by hand, and give the rates of the authors' rules."""

from __future__ import annotations

import csv
import json
import os
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from fixtures.imports import imported, picture_bytes, put
from fixtures.scoring import RESPONSE, vocabulary
from neuralmedbench.benchmarks.item_set import BenchmarkItems
from neuralmedbench.prompts.conversations import start_and_facts
from neuralmedbench.records.items import Runner
from neuralmedbench.records.questions import ImportRecord
from neuralmedbench.scoring.scores import score_responses

REAL = Path(os.environ.get("NMB_REAL_BENCHMARKS", ""))
pytestmark = pytest.mark.skipif(not os.environ.get("NMB_REAL_BENCHMARKS"), reason="NMB_REAL_BENCHMARKS names no folder of real benchmarks")


def passed(made: BenchmarkItems, texts: dict[str, str]) -> dict[str, bool]:
    """Score one answer per item, by its id without the benchmark."""
    items, gold = {item.item_id: item for item in made.items}, {row.item_id: row for row in made.gold}
    rows = [replace(RESPONSE, item_id=f"b/{name}", runner=items[f"b/{name}"].runner, text=text) for name, text in texts.items()]
    return {row.item_id.removeprefix("b/"): bool(row.passed) for row in score_responses(rows, items, gold, [], vocabulary=vocabulary())}


def constant(made: BenchmarkItems, letter: str) -> float:
    """Return the rate of a model that always gives one letter."""
    found = passed(made, {item.item_id.removeprefix("b/"): letter for item in made.items})
    return sum(found.values()) / len(found)


@pytest.fixture(scope="module")
def hard(tmp_path_factory: pytest.TempPathFactory) -> tuple[ImportRecord, BenchmarkItems]:
    """Import the hard questions."""
    return imported("medagentsbench", REAL / "medagentsbench", tmp_path_factory.mktemp("hard"))


def test_the_hard_questions_come_in_from_the_repository_itself_and_all_are_asked(hard: tuple[ImportRecord, BenchmarkItems]) -> None:
    record, made = hard
    assert (record.found, record.imported, record.refused) == (594, 594, ())
    folders = Counter(item.tags[0].removeprefix("folder:") for item in made.items)
    assert folders == {"medbullets": 89, "mmlu": 73, "afrimedqa": 32, "pubmedqa": 100, "mmlu-pro": 100, "medqa": 100, "medmcqa": 100}
    assert not [item.item_id for item in made.items if "n/a" in {option.casefold() for option in item.options}]
    assert sum(len(item.options) < 5 for item in made.items if item.tags == ("folder:afrimedqa",)) == 14
    repeated = [item for item in made.items if len({" ".join(option.split()).casefold() for option in item.options}) < len(item.options)]
    assert len(repeated) == 4
    same = Counter((item.notes, item.question, item.options) for item in made.items)
    assert sum(count - 1 for count in same.values()) == 20


@pytest.mark.parametrize(
    "model",
    ["o3-mini", "gpt-4o", *(pytest.param(name, marks=pytest.mark.long) for name in ("DeepSeek-R1", "gpt-4o-mini", "claude-3-5-sonnet"))],
)
def test_published_answers_to_the_hard_questions_have_the_rate_of_the_authors_rule(
    hard: tuple[ImportRecord, BenchmarkItems], model: str
) -> None:
    """Their rule: the predicted letter is the key."""
    _, made = hard
    answers, right = {}, {}
    for path in (REAL / "medagentsbench" / "output").glob(f"*/{model}-*.json"):
        if path.name.startswith(f"{model}-{path.parent.name}-"):  # gpt-4o-mini is another model
            for row in json.loads(path.read_text(encoding="utf-8")):
                name = f"{path.parent.name}-{row['realidx']}"
                answers[name], right[name] = str(row["predicted_answer"]), row["predicted_answer"] == row["answer_idx"]
    assert len(answers) == 594
    assert passed(made, answers) == right
    assert sum(right.values()) == {"o3-mini": 180, "DeepSeek-R1": 208, "gpt-4o": 129, "gpt-4o-mini": 79, "claude-3-5-sonnet": 75}[model]


def test_the_pairs_come_in_from_the_layout_of_the_authors_script(tmp_path: Path) -> None:
    """It writes data/images beside data/dataset.json; the pictures are not in the repository, so small distinct ones stand for them."""
    table = (REAL / "mediconfusion" / "data" / "dataset.json").read_bytes()
    rows = json.loads(table)
    names = sorted({row[f"im_{place}_local"] for row in rows.values() for place in (1, 2)})
    pictures = {f"data/images/{name}.jpg": picture_bytes(number, "JPEG", (64, 48)) for number, name in enumerate(names)}
    put(tmp_path / "set", {"data/dataset.json": table, **pictures})
    record, made = imported("mediconfusion", tmp_path / "set", tmp_path, part=False)
    assert (record.found, record.imported, record.images, record.refused) == (352, 352, 228, ())
    assert {row.item_id: row.choice for row in made.gold} == {
        f"b/{key}-{place}": row[f"im_{place}_correct"] for key, row in rows.items() for place in (1, 2)
    }
    assert set(Counter(item.pair_id for item in made.items).values()) == {2}
    assert constant(made, "A") == 0.5


def test_the_cases_of_mediq_are_shown_as_words_and_their_facts_can_be_asked_for(tmp_path: Path) -> None:
    rows = {str(row["id"]): row for row in map(json.loads, (REAL / "mediq" / "data" / "all_craft_md.jsonl").open(encoding="utf-8"))}
    record, made = imported("mediq-craft-md", REAL / "mediq", tmp_path / "1", part=False)
    assert (record.found, record.imported) == (140, 140)
    for item, gold in zip(made.items, made.gold, strict=True):
        row = rows[item.item_id.removeprefix("b/")]
        assert (item.notes.splitlines(), gold.choice) == ([sentence.strip() for sentence in row["context"]], row["answer_idx"])
    for letter in "ABCD":
        assert constant(made, letter) == sum(row["answer_idx"] == letter for row in rows.values()) / 140
    record, made = imported("mediq-craft-md-ask", REAL / "mediq", tmp_path / "2", part=False)
    assert (record.imported, {item.runner for item in made.items}) == (140, {Runner.DIALOGUE})
    for item in made.items:
        assert len(item.turns[0].reveal.splitlines()) == 1 + len(rows[item.item_id.removeprefix("b/")]["facts"])
    record, made = imported("mediq-craft-md-choice-ask", REAL / "mediq", tmp_path / "3", part=False)
    assert record.imported == 140
    for item, gold in zip(made.items, made.gold, strict=True):
        row = rows[item.item_id.removeprefix("b/")]
        start, facts = start_and_facts(item)
        assert (start, len(facts), gold.choice) == (" ".join(row["context"][0].split()), len(row["facts"]), row["answer_idx"])


@pytest.mark.parametrize(("name", "count", "letter", "share"), [("true-false", 120, "A", 0.608), ("choice", 29, "C", 0.448)])
def test_the_keys_of_the_caregiving_half_have_their_counted_shares(
    tmp_path: Path, name: str, count: int, letter: str, share: float
) -> None:
    record, made = imported(f"adrd-bench-{name}", REAL / "adrd-bench", tmp_path, part=False)
    assert (record.found, record.imported) == (count, count)
    assert constant(made, letter) == pytest.approx(share, abs=0.0005)


def test_the_index_of_the_knowledge_half_is_counted_and_its_absent_sets_are_refused_by_name(tmp_path: Path) -> None:
    table = (REAL / "adrd-bench" / "ADRD_Unified_QA" / "ADRD_Unified.json").read_bytes()
    bullets = [
        {"question": f"A man falls. Why {n}?", **{f"op{letter}": letter for letter in "abcde"}, "answer_idx": "E"} for n in range(300)
    ]
    with (put(tmp_path / "set", {"ADRD_Unified.json": table, "medbullets/x": ""}) / "medbullets" / "op5.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, list(bullets[0]))
        writer.writeheader()
        writer.writerows(bullets)
    record, made = imported("adrd-bench-knowledge", tmp_path / "set", tmp_path, part=False)
    assert (record.found, record.imported) == (1438, 9)
    assert made.items[0].item_id == "b/medbullets-op5-55"
    assert made.items[0].question == "Why 55?"
    assert Counter(row.reason.split()[3].partition("/")[0] for row in record.refused)["medmcqa"] == 1193


def test_an_answer_to_medec_has_the_flag_and_the_sentence_of_the_authors_script(tmp_path: Path) -> None:
    """Their rule: flag and sentence number are compared as text; "NA" as corrected sentence means that there is no error (286 notes)."""
    (table,) = (REAL / "medec").glob("*.csv")
    with table.open(encoding="utf-8-sig", newline="") as file:
        rows = {row["Text ID"]: row for row in csv.DictReader(file) if row["Text"]}
    record, made = imported("medec", REAL / "medec", tmp_path, part=False)
    assert (record.found, record.imported) == (597, 597)
    assert sum(row["Corrected Sentence"] == "NA" for row in rows.values()) == 286
    # a model that always finds the error in the first sentence, and one that finds it where it is in every second note
    for answer in (lambda row, _: (1, 0), lambda row, number: (row["Error Flag"], row["Error Sentence ID"]) if number % 2 else (0, -1)):
        stated = {name: tuple(map(str, answer(row, number))) for number, (name, row) in enumerate(rows.items())}
        texts = {
            name: json.dumps({"flag": int(flag), "sentence": int(line), "rewrite": "x", "confidence": 1})
            for name, (flag, line) in stated.items()
        }
        official = {name: stated[name] == (row["Error Flag"], row["Error Sentence ID"]) for name, row in rows.items()}
        assert passed(made, texts) == official
