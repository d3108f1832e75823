"""All mistakes of a configuration are reported at once, by `nmb run check`, the plan and a run, before anything is sent."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from conftest import ROOT
from neuralmedbench.cli.main import main
from neuralmedbench.config.load import check, load_model
from neuralmedbench.config.pipeline import PipelineConfig
from neuralmedbench.config.workflow import read_run
from neuralmedbench.errors import ConfigError
from neuralmedbench.files.cases import CaseRow, write_case_table
from neuralmedbench.models.registry import open_backend
from neuralmedbench.recording.run_mistakes import refusals
from neuralmedbench.runtime import machine
from neuralmedbench.runtime.commands import run_command

PAID = {"title": "P", "backend": "litellm", "id": "openai/gpt-4o", "revision": "1", "api_key_env": "NMB_NO_KEY"}
PRICES = {"usd_per_million_prompt_tokens": 2.5, "usd_per_million_completion_tokens": 10, "dated": "2026-11-22"}


def write(path: str, value: object) -> None:
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    Path(path).write_text(value if isinstance(value, str) else yaml.safe_dump(value), encoding="utf-8")


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A run of one model that costs money, without mistakes."""
    monkeypatch.chdir(tmp_path)
    write("config/config.yaml", {"benchmarks": ["b"], "models": ["paid"], "graders": ["rubric"]})
    benchmark = {"title": "B", "kind": "pictures", "axis": "depth", "source": "x", "subjects": "phantom", "private": False}
    write("config/benchmarks/b.yaml", {**benchmark, "allowed_destinations": ["local", "api.openai.com"]})
    write("config/models/paid.yaml", {**PAID, "max_cost_usd": 1, "prices": PRICES})
    write("config/graders/rubric.yaml", {"title": "R", "kind": "rubric"})
    write("config/vocabulary/neurology.yaml", (ROOT / "config/vocabulary/neurology.yaml").read_text(encoding="utf-8"))
    return tmp_path


def said(capfd: pytest.CaptureFixture[str], *words: str) -> tuple[int, str]:
    code = run_command(main, [*words])
    return code, capfd.readouterr().err


def test_a_misspelt_key_is_told_with_the_files_in_which_it_may_stand(project: Path) -> None:
    write("config/study.yaml", {"benchmark": ["b"]})
    with pytest.raises(
        ConfigError, match=r"^config/config.yaml with config/study.yaml: unknown key 'benchmark'; did you mean 'benchmarks'"
    ):
        read_run([Path("config/study.yaml")])


def test_a_case_to_work_up_that_is_in_no_row_of_the_case_table_is_told(project: Path) -> None:
    benchmark = yaml.safe_load(Path("config/benchmarks/b.yaml").read_text(encoding="utf-8"))
    listed = CaseRow(case_id="c1", patient_id="p1", source_sha256="0" * 64, sequence_overrides={}, exclude="")
    write_case_table(Path("config/benchmarks/b.cases.tsv"), [listed])
    write("config/benchmarks/b.yaml", {**benchmark, "kind": "scans", "workup_cases": ["c1"]})
    assert read_run().benchmarks["b"].workup_cases == ("c1",)
    write("config/benchmarks/b.yaml", {**benchmark, "kind": "scans", "workup_cases": ["c1", "c2"]})
    with pytest.raises(ConfigError, match=r"^b: workup_cases: c2 is in no row of b.cases.tsv; correct the case id, or take it out$"):
        read_run()


def test_host_and_cap_and_other_mistakes_of_all_files_are_reported_at_once(project: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert said(capfd, "run", "check") == (0, "no mistakes: 1 benchmark, 1 model, 1 grader\n")
    write("config/config.yaml", {"benchmarks": ["b", "c"], "models": ["paid", "other", "absent"], "graders": ["rubric", "llmm"]})
    benchmark = yaml.safe_load(Path("config/benchmarks/b.yaml").read_text(encoding="utf-8"))
    write("config/benchmarks/b.yaml", {**benchmark, "allowed_destinations": ["local"]})
    write("config/benchmarks/c.yaml", {**benchmark, "axes": "depth", "subjects": "nobody", "allowed_destination": ["local"]})
    write("config/models/paid.yaml", PAID)
    write("config/models/other.yaml", "title: [1, 2\n")
    expected = (
        "ConfigError: 9 mistakes",
        "config/benchmarks/c.yaml: unknown key 'axes'; did you mean 'axis'?",
        "config/benchmarks/c.yaml: unknown key 'allowed_destination'; did you mean 'allowed_destinations'?",
        "config/benchmarks/c.yaml: subjects: ",
        "config/models/other.yaml, line 2: not valid YAML",
        "config/models/absent.yaml: the file is not there",
        "config/graders/llmm.yaml: the file is not there",
        "model paid: it may cost money; set max_cost_usd",
        "model paid: max_cost_usd cannot be kept without prices",
        "b: model paid: its requests would go to api.openai.com, allowed are: local",
    )
    for command in (("run", "check"), ("model", "plan")):
        code, text = said(capfd, *command)
        assert code == ConfigError.exit_code == 11
        lines = [line.strip() for line in text.splitlines()]
        assert len(lines) == len(expected)
        assert all(any(line.startswith(start) for line in lines) for start in expected), text


def test_the_plan_is_shown_although_a_model_may_not_be_asked_and_ends_with_the_exit_code_of_a_mistake(
    project: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    write("config/models/paid.yaml", PAID)
    assert run_command(main, ["model", "plan"]) == ConfigError.exit_code
    shown = capfd.readouterr()
    assert "Possible now" in shown.out
    assert shown.err.startswith("ConfigError: 2 mistakes\n  model paid: it may cost money")


def test_under_replay_nothing_is_asked_and_a_grader_that_would_be_skipped_is_no_mistake(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write("config/models/paid.yaml", PAID)
    assert len(refusals(read_run())) == 2, "no cap and no prices"
    write("replay.yaml", {"replay": True})
    assert refusals(read_run([Path("replay.yaml")])) == []
    write("config/models/paid.yaml", {**PAID, "max_cost_usd": 1, "prices": PRICES})
    write("config/graders/llm.yaml", {"title": "L", "kind": "llm", "prompt": "p.j2", "model": PAID})
    write("graded.yaml", {"graders": ["rubric", "llm"]})
    run = read_run([Path("graded.yaml")])
    assert refusals(run) == [], "without its key it is skipped"
    monkeypatch.setenv("NMB_NO_KEY", "x")
    assert [line.partition(";")[0] for line in refusals(run)][:1] == ["model llm: it may cost money"]
    assert all(line.startswith("model llm: ") and "max_cost_usd" in line for line in refusals(run))


@pytest.mark.parametrize(
    ("value", "mistakes"),
    [
        ({"benchmrks": ["b"], "models": "text"}, ["unknown key 'benchmrks'; did you mean 'benchmarks'?", "models: "]),
        (
            {"benchmarks": ["b"], "models": ["t"], "replay": "so", "slices": {"per_sequence": "x", "polcy": 1}},
            ["slices.polcy", "replay", "slices.per"],
        ),
    ],
)
def test_each_place_of_a_file_is_reported_once(value: dict[str, Any], mistakes: list[str]) -> None:
    with pytest.raises(ConfigError) as caught:
        check(PipelineConfig, value, "f")
    assert len(caught.value.args) == len(mistakes)
    assert all(any(part in line for line in caught.value.args) for part in mistakes)


def test_a_value_that_fits_no_alternative_is_one_mistake(tmp_path: Path) -> None:
    write(str(tmp_path / "m.yaml"), {**PAID, "parameters": {"top_k": [1], "stop": "x"}})
    with pytest.raises(ConfigError, match=r"parameters: `top_k` takes a text, a number, true or false, found list") as caught:
        load_model(tmp_path / "m.yaml")
    assert len(caught.value.args) == 1


def test_only_sections_that_set_thinking_may_stand_in_a_call(tmp_path: Path) -> None:
    path = tmp_path / "m.yaml"
    write(str(path), {**PAID, "parameters": {"extra_body": {"model": "other"}}})
    with pytest.raises(ConfigError, match=r"`extra_body` cannot be a section; only chat_template_kwargs, .* can"):
        load_model(path)
    write(str(path), {**PAID, "parameters": {"thinking": {"type": "enabled", "tools": [1]}}})
    with pytest.raises(ConfigError, match=r"`thinking` takes a text, a number, true or false, found list"):
        load_model(path)
    write(str(path), {**PAID, "parameters": {"thinking": {"type": "a1b2c3d4e5f60718293a4b5c6d7e8f90"}}})
    with pytest.raises(ConfigError, match="may be an API key") as caught:
        load_model(path)
    assert "a1b2" not in str(caught.value)


def test_no_more_than_twenty_mistakes_are_printed() -> None:
    assert len(str(ConfigError(*map(str, range(100)))).splitlines()) == 22
    assert str(ConfigError("one")) == "one"


@pytest.mark.parametrize(
    ("name", "text", "line"),
    [
        ("nope.yaml", None, "config/nope.yaml: the file is not there"),
        ("bad.yaml", "models: [a\nb: 1\n", "config/bad.yaml, line 2: not valid YAML"),
    ],
)
def test_a_missing_or_broken_configfile_is_one_line_with_file_and_line(
    project: Path, capfd: pytest.CaptureFixture[str], name: str, text: str | None, line: str
) -> None:
    if text:
        write(f"config/{name}", text)
    code, printed = said(capfd, "run", "check", "--configfiles", f"config/{name}")
    assert (code, len(printed.splitlines())) == (11, 1)
    assert printed.startswith(f"ConfigError: {line}")


@pytest.mark.parametrize(("text", "found"), [("", "it is empty"), ("- 1\n", "found a list"), ("words\n", "found a str")])
def test_a_configfile_without_keys_is_one_line(project: Path, capfd: pytest.CaptureFixture[str], text: str, found: str) -> None:
    write("config/study.yaml", text)
    code, printed = said(capfd, "run", "check", "--configfiles", "config/study.yaml")
    assert (code, len(printed.splitlines())) == (11, 1)
    assert printed.startswith(f"ConfigError: config/study.yaml: expected keys and their values ({found})")


def test_a_configuration_in_another_encoding_is_told_as_such(project: Path, capfd: pytest.CaptureFixture[str]) -> None:
    Path("config/latin.yaml").write_text("models: [Grüße]\n", encoding="latin-1")
    code, printed = said(capfd, "run", "check", "--configfiles", "config/latin.yaml")
    assert (code, printed) == (11, "ConfigError: config/latin.yaml: not valid YAML: it is not in UTF-8; save it as UTF-8\n")


def test_make_report_checks_the_configuration_before_snakemake_reads_it() -> None:
    done = subprocess.run(["make", "-n", "report", "CONFIGFILE=config/nope.yaml"], cwd=ROOT, capture_output=True, text=True, check=True)
    commands = done.stdout.splitlines()
    checked = next(number for number, line in enumerate(commands) if line.startswith("nmb run check --configfiles config/nope.yaml"))
    assert any("snakemake --cores" in line for line in commands[checked + 1 :])


def test_answers_for_unknown_cases_are_found_before_anything_is_imaged_and_the_share_that_stops_the_run_is_stated(
    project: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    write("config/config.yaml", {"benchmarks": ["mine"], "models": ["paid"], "graders": ["rubric"], "max_quarantined_fraction": 0.3})
    settings = {"title": "M", "kind": "scans", "axis": "depth", "source": str(project), "key_file": "key", "answers": "answers.csv"}
    write("config/benchmarks/mine.yaml", {**settings, "allowed_destinations": ["local", "api.openai.com"]})
    cases = [f"c{number:02d}" for number in range(20)]
    rows = [CaseRow(case_id=case, patient_id=f"p{case}", source_sha256="", sequence_overrides={}, exclude="") for case in cases]
    write_case_table(Path("config/benchmarks/mine.cases.tsv"), rows)
    write("answers.csv", "case_id,diagnosis,established\nc00,glioma,pathology\nmrn48213371,glioma,pathology\n")
    code, text = said(capfd, "run", "check")
    assert code == ConfigError.exit_code
    assert "mine: the answers table has 1 rows whose case is not in config/benchmarks/mine.cases.tsv: rows 2 below the first line" in text
    assert "mrn48213371" not in text
    write("replay.yaml", {"replay": True})
    assert "the answers table has 1 rows" in said(capfd, "run", "check", "--configfiles", "replay.yaml")[1]
    write("answers.csv", "case_id,diagnosis,established\nc00,glioma,pathology\n")
    code, text = said(capfd, "run", "check")
    assert code == 0
    assert "mine: a run stops if more than 6 of 20 cases of patients are quarantined (30%)" in text


def test_a_model_that_cannot_be_asked_here_is_a_mistake_while_it_has_no_ledger(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a ledger it may be that nothing is left to ask."""
    monkeypatch.setattr(machine, "find_spec", lambda name: None if name in {"torch", "xllamacpp"} else object())
    free = {"revision": "1"}
    server = {"server": {"engine": "llamacpp"}}
    write("config/models/weights.yaml", {**free, "title": "weights", "backend": "transformers", "id": "data/weights/x", "batch_size": 4})
    write("config/models/served.yaml", {**free, **server, "title": "served", "backend": "server", "id": "x.gguf"})
    write("config/models/text.yaml", {**free, "title": "text", "backend": "builtin", "id": "text"})
    write("config/models/image.yaml", {**free, "title": "image", "backend": "builtin", "id": "image"})
    write("config/config.yaml", {"benchmarks": ["b"], "models": ["paid", "weights", "served", "text", "image"], "graders": ["rubric"]})
    run = read_run()
    recorded, *lacking = refusals(run)
    assert "write `backend: server`, `server:` and `  engine: transformers` (three lines) in its place" in recorded
    assert lacking == [
        "model served: not installed here: xllamacpp; `make setup EXTRAS=llamacpp` adds them",
        "model text: not installed here: torch; `make setup EXTRAS=all` adds them",
    ]
    for name in ("weights", "served"):
        write(f"data/ledger/b/{name}.jsonl", "")
    assert [line.partition(":")[0] for line in refusals(run)] == ["model text"]
    with pytest.raises(ConfigError, match="model weights: `backend: transformers` replays recorded answers and asks nothing"):
        open_backend(run.models["weights"], None)


def test_two_models_that_nobody_could_tell_apart_are_one_mistake_each(project: Path, capfd: pytest.CaptureFixture[str]) -> None:
    paid = {**PAID, "max_cost_usd": 1, "prices": PRICES}
    write("config/models/twin.yaml", {**paid, "id": "openai/gpt-4o-mini"})
    write("config/models/again.yaml", {**paid, "title": "Q", "max_cost_usd": 2})
    write("config/models/warm.yaml", {**paid, "title": "R", "temperature": 1.0})
    write("config/config.yaml", {"benchmarks": ["b"], "models": ["paid", "twin", "again", "warm"], "graders": ["rubric"]})
    code, text = said(capfd, "run", "check")
    assert (code, text.splitlines()) == (
        ConfigError.exit_code,
        [
            "ConfigError: 2 mistakes",
            "  models paid and twin are both called 'P' in the report: give one another `title`",
            "  models paid and again have the same `id` and settings, so they are one model: correct the `id` of one, or take it out of `models`",
        ],
    )


def test_mistakes_of_the_run_do_not_hide_those_of_the_files_that_it_names(project: Path, capfd: pytest.CaptureFixture[str]) -> None:
    write("config/models/paid.yaml", PAID)
    write(
        "config/myStudy.yaml", {"benchmarks": ["b", "Exam_2"], "models": ["paid", "absent"], "max_failed_fraction": 3, "grader": ["rubric"]}
    )
    code, text = said(capfd, "run", "check", "--configfiles", "config/myStudy.yaml")
    rule = "lower-case letters and digits, joined by single dots or hyphens"
    expected = (
        "ConfigError: 7 mistakes",
        "config/config.yaml with config/myStudy.yaml: unknown key 'grader'; did you mean 'graders'?",
        f"config/config.yaml with config/myStudy.yaml: benchmarks.1: 'Exam_2' cannot be a name: {rule}, such as exam-2",
        "config/config.yaml with config/myStudy.yaml: max_failed_fraction: ",
        f"myStudy.yaml: a run is called like its last configfile, so its name has {rule}, such as mystudy; rename the file",
        "config/models/absent.yaml: the file is not there",
        "model paid: it may cost money; set max_cost_usd",
        "model paid: max_cost_usd cannot be kept without prices",
    )
    lines = [line.strip() for line in text.splitlines()]
    assert code == ConfigError.exit_code
    assert len(lines) == len(expected)
    assert all(any(line.startswith(start) for line in lines) for start in expected), text


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("title: M\nbackend litellm\nid: m\n", "line 2: not valid YAML: expected `key: value`"),
        ("title: M\nday: 2024-02-30\n", "line 2: not valid YAML: a date or number that does not exist; correct it"),
        (f"title: M\nseed: {'9' * 5000}\n", "line 2: not valid YAML: a date or number that does not exist"),
        ("title: 'M\nid: m\n", "line 1: not valid YAML: its quotation mark is not closed"),
        ("title: Exam: part 2\nid: m\n", "line 1: not valid YAML: a second `: ` in a value needs quotation marks"),
        ("models: [a\nb: 1\n", "line 2: not valid YAML: the bracket that opens in line 1 is not closed before it"),
        ("prices:\n\tdated: x\n", "line 2: not valid YAML: a tab does not indent (use spaces)"),
        ("models:\n  - a\n - b\n", "line 3: not valid YAML: its indentation does not fit the lines above"),
        ("title: @m\n", "line 1: not valid YAML: a tab does not indent (use spaces), and a value that begins with a sign such as @"),
    ],
)
def test_the_line_that_is_no_yaml_is_named_with_what_is_wrong_in_it(tmp_path: Path, text: str, fault: str) -> None:
    write(str(tmp_path / "m.yaml"), text)
    with pytest.raises(ConfigError, match=re.escape(f"m.yaml, {fault}")):
        load_model(tmp_path / "m.yaml")
