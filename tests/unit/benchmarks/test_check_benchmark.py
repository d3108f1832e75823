from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from conftest import ROOT
from fixtures.imports import imported, put, put_pairs
from fixtures.items import write_csv
from neuralmedbench.cli.benchmark import check_benchmark
from neuralmedbench.config.benchmark import BenchmarkConfig
from neuralmedbench.errors import ConfigError, DataError
from neuralmedbench.files.json_files import write_lines
from neuralmedbench.files.raw_folder import RawFile, RawIndex, write_raw_index
from neuralmedbench.files.tables import write_records
from neuralmedbench.files.templates import Templates
from neuralmedbench.prompts.assemble import CaseMaterial, assemble
from neuralmedbench.records.items import Disclosure, Family, Gold, Item, ReferenceValue, Runner
from neuralmedbench.records.questions import ANSWERS, DISCLOSURES, IMAGE_COLUMNS, IMAGES, QUESTIONS, ImportedQuestion
from neuralmedbench.records.requests import LONG_PROMPT, Request
from neuralmedbench.records.value_rules import values_schema


def run(folder: Path, benchmark: str) -> str:
    places = ["--config", str(folder / "config"), "--data", str(folder / "data")]
    vocabulary = ["--vocabulary", str(ROOT / "config/vocabulary/neurology.yaml")]
    assert check_benchmark.main(["--benchmark", benchmark, *places, *vocabulary]) == 0
    return (folder / "data" / "checks" / f"{benchmark}.html").read_text(encoding="utf-8")


@pytest.fixture
def own(tmp_path: Path) -> Path:
    """Write a local benchmark with three cases and no results."""
    (tmp_path / "scans").mkdir()
    (tmp_path / "key").write_text("0" * 64)
    values = {"title": "Mine", "kind": "scans", "axis": "depth", "source": str(tmp_path / "scans"), "key_file": str(tmp_path / "key")}
    put(tmp_path, {"config/benchmarks/mine.yaml": yaml.safe_dump({**values, "answers": str(tmp_path / "answers.csv")})})
    cases = [f"{case}\tp{case[0]}\t{'0' * 64}\t\t{mark}" for case, mark in (("a1", ""), ("a2", ""), ("b1", "true"))]
    write_csv(tmp_path / "config/benchmarks/mine.cases.tsv", "case_id\tpatient_id\tsource_sha256\tsequence_overrides\texclude", *cases)
    write_csv(tmp_path / "answers.csv", "case_id,diagnosis,findings", "a1,glioblastoma,Ring of contrast", "b1,the odd disease,")
    return tmp_path


def test_a_benchmark_of_which_nothing_is_made_is_checked_by_its_tables(own, capsys):
    page = run(own, "mine")
    output = capsys.readouterr().out
    assert "cases: 3 listed, 1 excluded, 1 patients" in output
    assert "answers with findings: 1" in output
    assert "look at this: 1 cases have no answer and are not scored: a2" in output
    assert (
        "look at this: 1 of 2 diagnoses are not in the vocabulary: `rubric` does not grade their answers, which count as missing." in output
    )
    assert "(docs/graders.md): the odd disease" in output
    assert "de-identification: not run" in output
    assert "the odd disease" in page
    assert "<script" not in page


def test_long_notes_are_said_before_a_prompt_is_made(own, capsys):
    for case, letters in (("a1", LONG_PROMPT + 1), ("a2", 50)):
        folder = own / "data" / "raw" / "mine" / case
        put(own, {f"data/raw/mine/{case}/letter.txt": "x" * letters})
        note = RawFile(path=(folder / "letter.txt").as_posix(), sha256="")
        write_raw_index(folder / "files.json", RawIndex(case_id=case, patient_id="p", files=(), notes=(note,)))
    run(own, "mine")
    said = "1 of 2 cases' notes have more than 100,000 characters (the longest 100,001): take out the notes that are none, or set `max_case_words`"
    assert f"look at this: {said}" in capsys.readouterr().out


def test_an_answer_for_an_unknown_case_and_an_absent_key_are_refused_in_one_line(own):
    write_csv(own / "answers.csv", "case_id,diagnosis", "zz,glioblastoma")
    with pytest.raises(DataError, match="1 rows whose case is not in"):
        run(own, "mine")
    (own / "key").unlink()
    with pytest.raises(ConfigError, match="mine: key_file is not there"):
        run(own, "mine")


def test_the_page_shows_one_prompt_of_every_runner_and_arm_with_every_text_escaped(tmp_path, capsys):
    _, made = imported("mediconfusion", put_pairs(tmp_path / "set", 2), tmp_path)
    values = {"title": "T", "kind": "pictures", "axis": "control", "source": "x", "questions": "q", "subjects": "public"}
    values |= {"arms": ["full", "no_image"], "samples": 1}
    config = BenchmarkConfig.model_validate(values)
    values["arms"].append("no_text")  # after the prompts were made
    items = [Item(**{**vars(item), "question": "<b>Which</b> side?"}) for item in made.items]
    put(tmp_path, {"config/benchmarks/b.yaml": yaml.safe_dump(values)})
    write_records(tmp_path / "data/items/b.parquet", Item, items, key=lambda row: row.item_id)
    write_records(tmp_path / "data/gold/b.parquet", Gold, made.gold[:3], key=lambda row: row.item_id)
    requests = assemble(items, CaseMaterial(), config, Templates(ROOT / "config/prompts"))
    requests = [replace(requests[0], system="x" * LONG_PROMPT), *requests[1:]]
    write_records(tmp_path / "data/prompts/b.parquet", Request, requests, key=lambda row: (row.item_id, row.arm))
    page = run(tmp_path, "b")
    output = capsys.readouterr().out
    assert page.count("choice, arm full, strategy direct") == 1
    assert page.count("choice, arm no_image, strategy direct") == 1
    assert "&lt;b&gt;Which" in page
    assert "<b>Which" not in page
    assert "items without an answer: 1" in output
    assert "look at this: arm no_text: no request" in output
    assert f"look at this: 1 of {len(requests)} prompts have more than 100,000 characters" in output


def test_a_reference_of_a_value_that_lost_its_limit_is_named_in_one_line(tmp_path, capsys):
    """A person corrects answers.jsonl by hand; the check says what no answer can meet before anything is made."""
    config = {"title": "Mine", "kind": "text", "axis": "breadth", "source": "raw", "subjects": "public", "questions": str(tmp_path / "q")}
    put(tmp_path, {"config/benchmarks/mine.yaml": yaml.safe_dump(config)})
    schema = values_schema([("answer", "number", "")])
    asked = ImportedQuestion(
        question_id="one", runner=Runner.STRUCTURED, family=Family.QUESTION_ANSWERING, question="How much?", answer_schema=schema
    )
    limits = {"one": {"low": 9.5, "high": 10.5}, "two": {"low": 9.5}}
    gold = [
        Gold(item_id=name, answer="10", values=(ReferenceValue(field="answer", rule="number", value="10", **own),))
        for name, own in limits.items()
    ]
    (tmp_path / "q").mkdir()
    write_lines(tmp_path / "q" / QUESTIONS, ImportedQuestion, [replace(asked, question_id=name) for name in limits])
    write_lines(tmp_path / "q" / ANSWERS, Gold, gold)
    write_lines(tmp_path / "q" / DISCLOSURES, Disclosure, [])
    write_csv(tmp_path / "q" / IMAGES, ",".join(IMAGE_COLUMNS))
    run(tmp_path, "mine")
    output = capsys.readouterr().out
    assert "references of values: number 2" in output
    assert "look at this: two: answer: a number needs both limits (`low` and `high`, or `within`); correct it in answers.jsonl" in output
    assert "look at this: one" not in output
