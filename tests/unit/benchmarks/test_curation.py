from __future__ import annotations

import csv
import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from conftest import NMB, ROOT
from neuralmedbench.benchmarks.curation import CurationEvidence, Decision, curate, read_decisions, read_scores, write_curated_yaml
from neuralmedbench.benchmarks.question_items import read_questions
from neuralmedbench.config.load import load_benchmark
from neuralmedbench.config.mappings import CurationConfig, load_curation
from neuralmedbench.errors import ConfigError, DataError
from neuralmedbench.files.json_files import write_lines
from neuralmedbench.files.tables import write_records
from neuralmedbench.records.items import Disclosure, Family, Gold, Lesion, Runner
from neuralmedbench.records.questions import ImportedQuestion, QuestionImage, QuestionTurn
from neuralmedbench.records.scores import Score

IMAGE = QuestionImage(file="a.png")


def question(name: str, **changes: Any) -> ImportedQuestion:
    """Return a complete question with its own case."""
    base: dict[str, Any] = {
        "question_id": name,
        "runner": Runner.OPEN,
        "family": Family.DIFFERENTIAL_DIAGNOSIS,
        "question": "Which disease?",
        "text": "A man.",
        "images": (IMAGE,),
    }
    return ImportedQuestion(**{**base, **changes})


def gold(name: str, **changes: Any) -> Gold:
    """Return a complete structured gold."""
    base: dict[str, Any] = {
        "answer": "stroke",
        "differentials": ("tumour",),
        "findings": ("a bright insula",),
        "rationale": ("sudden onset",),
    }
    return Gold(item_id=name, **{**base, **changes})


def score(name: str, *, passed: bool | None = True, **changes: Any) -> Score:
    """Return one scored answer of the model `easy`."""
    base: dict[str, Any] = {
        **dict.fromkeys(("case_id", "patient_id", "axis", "family", "level", "runner", "text_sha256", "state", "parse_status"), "x"),
        "benchmark": "b",
        "arm": "full",
        "strategy": "direct",
        "model": "easy",
        "revision": "1",
        "repeat": 0,
        "missing": False,
        "scored": True,
        "lesion_shown": None,
        "passed": passed,
    }
    return Score(item_id=f"b/{name}", **{**base, **changes})


def removed(questions: list[ImportedQuestion], evidence: CurationEvidence, **settings: Any) -> dict[str, str]:
    """Curate, and return the reason of every removed question."""
    return {row.question_id: row.reason for row in curate(questions, evidence, CurationConfig.model_validate(settings)).removed}


def test_completeness_asks_for_text_pictures_and_an_answer():
    turns = (QuestionTurn(reveal="A man.", question="?"),)
    questions = [
        question("whole"),
        question("told-in-turns", text="", turns=turns, runner=Runner.DIALOGUE),
        question("no-text", text=""),
        question("no-picture", images=()),
        question("no-gold"),
    ]
    evidence = CurationEvidence(gold={name: gold(name) for name in ("whole", "told-in-turns", "no-text", "no-picture")})
    assert removed(questions, evidence, stages=["completeness"]) == {
        "no-text": "no text",
        "no-picture": "no images",
        "no-gold": "no answer",
    }
    assert removed(questions, evidence, stages=["completeness"], needs=["answer"]) == {"no-gold": "no answer"}


def test_a_case_is_kept_when_more_than_half_of_enough_experts_say_so():
    votes = {"kept": "kkd", "tie": "kd", "dropped": "ddk", "few": "k"}
    decisions = [
        Decision(case_id=case, expert=str(place), keep=vote == "k") for case, word in votes.items() for place, vote in enumerate(word)
    ]
    questions = [question("q", case_id="kept"), *(question(name) for name in ("tie", "dropped", "few", "none"))]
    assert removed(questions, CurationEvidence(gold={}, decisions=decisions), stages=["experts"], min_experts=2) == {
        "tie": "dropped by 1 of 2 experts",
        "dropped": "dropped by 2 of 3 experts",
        "few": "1 expert decisions, 2 needed",
        "none": "0 expert decisions, 2 needed",
    }


def test_ground_truth_has_to_fill_its_schema():
    lesion = Lesion(location="insula", side="left", behaviour={})
    rows = [
        gold("whole"),
        gold("lesion", findings=(), lesion=lesion),
        gold("bare", differentials=(), rationale=()),
        gold("unseen", findings=()),
        gold("rounds"),
    ]
    dialogue = question("rounds", runner=Runner.DIALOGUE, turns=(QuestionTurn(reveal="", question="?"),))
    questions = [*(question(row.item_id) for row in rows[:-1]), dialogue, question("absent")]
    evidence = CurationEvidence(gold={row.item_id: row for row in rows})
    assert removed(questions, evidence, stages=["ground_truth"]) == {
        "bare": "ground truth without differentials, rationale",
        "unseen": "ground truth without findings_or_lesion",
        "absent": "no ground truth",
    }
    assert removed([dialogue], evidence, stages=["ground_truth"], ground_truth=["turn_leaders"]) == {
        "rounds": "ground truth without turn_leaders"
    }


def test_the_challenge_filter_removes_what_half_of_the_pool_solves_and_what_it_was_not_asked():
    easy = [score("both"), score("one"), score("mostly"), score("mostly", repeat=1, passed=False), score("none", passed=False)]
    easy += [score("none", arm="findings_disclosed"), score("none", strategy="cot"), score("lost", passed=None, missing=True)]
    hard = [score(name, passed=name == "both", model="hard") for name in ("both", "one", "mostly", "none", "lost")]
    evidence = CurationEvidence(gold={}, scores={"easy": easy, "hard": hard})
    questions = [question(name) for name in ("both", "one", "mostly", "none", "lost")]
    settings = {"stages": ["challenge"], "pool": ["easy", "hard"]}
    reasons = {
        "both": "solved by 2 of 2: easy, hard",
        "one": "solved by 1 of 2: easy",
        "mostly": "solved by 1 of 2: easy",
        "lost": "no scored answer of easy",
    }
    assert removed(questions, evidence, **settings) == reasons
    assert set(removed(questions, evidence, **settings, max_solved=1)) == {"both", "lost"}
    assert set(removed(questions, evidence, **settings, solved_from=0.6)) == {"both", "one", "lost"}
    result = curate(questions, evidence, CurationConfig.model_validate(settings))
    assert [(row.model, row.revision, row.questions, row.solved) for row in result.pool] == [("easy", "1", 4, 3), ("hard", "1", 5, 1)]
    assert [(row.question_id, row.solved_by, row.pool) for row in result.kept] == [("none", 0, 2)]


def test_a_question_goes_by_the_first_stage_that_objects_and_every_stage_counts_what_came():
    questions = [question("a", text=""), question("b"), question("c", exemplar=True)]
    result = curate(questions, CurationEvidence(gold={"a": gold("a")}), CurationConfig(stages=("completeness", "ground_truth")))
    assert [(row.stage, row.entered, row.removed) for row in result.stages] == [("completeness", 2, 2), ("ground_truth", 0, 0)]
    with pytest.raises(ConfigError, match="the stage challenge needs reference models; name them under `pool`"):
        curate(questions, CurationEvidence(gold={}), CurationConfig(stages=("challenge",)))


def table(path: Path, *rows: dict[str, str]) -> Path:
    """Write a table of decisions."""
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    return path


ROW = {"case_id": "a", "expert": "e1", "decision": "keep", "complexity": "4"}


@pytest.mark.parametrize(
    ("rows", "error", "message"),
    [
        ([{**ROW, "case_id": "z"}], DataError, "line 2, column case_id: no such case among the questions"),
        ([{**ROW, "decision": "maybe"}], DataError, "line 2, column decision: expected keep or drop"),
        ([{**ROW, "complexity": "6"}], DataError, "line 2, column complexity: expected a number from 1 to 5, or nothing"),
        ([{**ROW, "expert": " "}], DataError, "line 2, column expert: expected the expert's pseudonym"),
        ([ROW, ROW], DataError, "line 3: this expert has decided about this case before; keep one row"),
        ([{**ROW, "desision": "keep"}], ConfigError, "unknown column 'desision'; did you mean 'decision'"),
        ([{"case_id": "a", "expert": "e"}], ConfigError, "the column 'decision' is missing"),
    ],
)
def test_a_decision_that_cannot_be_read_is_told_by_its_line(tmp_path, rows, error, message):
    with pytest.raises(error, match=message):
        read_decisions(table(tmp_path / "decisions.csv", *rows), ["a"])


def test_scores_of_an_earlier_revision_do_not_count_for_the_pool(tmp_path):
    put_yaml(tmp_path / "config" / "models" / "easy.yaml", {"title": "E", "backend": "builtin", "id": "text", "revision": "2"})
    write_records(tmp_path / "easy.parquet", Score, [score("a")], key=lambda row: row.item_id)
    with pytest.raises(DataError, match="the reference model easy has no scores of its current revision"):
        read_scores(tmp_path, tmp_path / "config", ["easy"])
    write_records(tmp_path / "easy.parquet", Score, [score("a"), score("a", revision="2")], key=lambda row: row.revision)
    assert [row.revision for row in read_scores(tmp_path, tmp_path / "config", ["easy"])["easy"]] == ["2"]


def put_yaml(path: Path, value: dict[str, Any]) -> None:
    """Write a YAML file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(yaml.safe_dump(value), encoding="utf-8")


def test_the_command_writes_the_lists_and_a_curated_benchmark_over_the_same_pictures(tmp_path):
    folder = tmp_path / "data" / "questions" / "b"
    write_lines(
        folder / "questions.jsonl",
        ImportedQuestion,
        [question("hard"), question("easy"), question("bare"), question("shown", exemplar=True)],
    )
    write_lines(folder / "answers.jsonl", Gold, [gold("hard"), gold("easy"), gold("shown")])
    write_lines(
        folder / "disclosures.jsonl",
        Disclosure,
        [Disclosure(item_id=name, arm="findings_disclosed", text="x") for name in ("hard", "easy")],
    )
    (folder / "images.csv").write_text("file_path,sha256,width,height\na.png,0,1,1\n", encoding="utf-8")
    put_yaml(tmp_path / "config" / "models" / "easy.yaml", {"title": "E", "backend": "builtin", "id": "text", "revision": "1"})
    put_yaml(tmp_path / "config" / "curation.yaml", {"pool": ["easy"]})
    put_yaml(
        tmp_path / "config" / "benchmarks" / "b.yaml", {"title": "B", "kind": "pictures", "axis": "depth", "source": "s", "questions": "q"}
    )
    (tmp_path / "scores" / "b").mkdir(parents=True)
    rows = [score("hard", passed=False), score("easy")]
    write_records(tmp_path / "scores" / "b" / "easy.parquet", Score, rows, key=lambda row: row.item_id)
    votes = table(tmp_path / "decisions.csv", *({**ROW, "case_id": name} for name in ("hard", "easy")))
    places = [f"--{name}={tmp_path / name}" for name in ("config", "data", "scores")]
    command = [*NMB, "benchmark", "curate", "--benchmark", "b", "--to", "b-curated", f"--decisions={votes}", *places]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[:4] == [
        "completeness: 3 questions, 1 removed",
        "experts: 2 questions, 0 removed",
        "ground_truth: 2 questions, 0 removed",
        "challenge: 2 questions, 1 removed",
    ]
    assert (folder / "kept.csv").read_text(encoding="utf-8") == "question_id,case_id,solved_by,pool\nhard,hard,0,1\n"
    assert (folder / "removed.csv").read_text(encoding="utf-8").splitlines()[1:] == [
        "bare,bare,completeness,no answer",
        "easy,easy,challenge,solved by 1 of 1: easy",
    ]
    record = json.loads((folder / "curation.json").read_text(encoding="utf-8"))
    assert record["pool"] == [{"model": "easy", "questions": 2, "revision": "1", "solved": 1}]
    left = read_questions(tmp_path / "data" / "questions" / "b-curated")
    assert [row.question_id for row in left.questions] == ["hard", "shown"]
    assert ([row.item_id for row in left.gold], [row.item_id for row in left.disclosures], left.files) == (
        ["hard", "shown"],
        ["hard"],
        ("a.png",),
    )
    written = yaml.safe_load((tmp_path / "config" / "benchmarks" / "b-curated.yaml").read_text(encoding="utf-8"))
    assert (written["title"], written["source"], written["questions"].rpartition("/")[2]) == ("B, curated", "s", "b-curated")
    assert load_benchmark(tmp_path / "config", "b-curated").reference_pool == ("easy",)


def test_the_shipped_settings_name_the_four_stages_and_models_that_there_are():
    config = load_curation(ROOT / "config" / "curation.yaml")
    assert config.stages == ("completeness", "experts", "ground_truth", "challenge")
    assert all((ROOT / "config" / "models" / f"{model}.yaml").is_file() for model in config.pool)


def test_a_second_curation_keeps_the_first_pool_and_a_yaml_that_hides_it_is_refused(tmp_path):
    values = {"title": "B", "kind": "text", "axis": "depth", "source": "s", "questions": "q"}
    put_yaml(tmp_path / "benchmarks" / "b.yaml", {**values, "reference_pool": ["first", "both"]})
    assert write_curated_yaml(tmp_path, "b", "b2", Path("q2"), ["both", "second"])
    assert load_benchmark(tmp_path, "b2").reference_pool == ("first", "both", "second")
    assert not write_curated_yaml(tmp_path, "b", "b2", Path("q2"), ["second"])
    with pytest.raises(ConfigError, match="`reference_pool` lacks third"):
        write_curated_yaml(tmp_path, "b", "b2", Path("q2"), ["third"])
