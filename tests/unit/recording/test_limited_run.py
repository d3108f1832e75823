"""`nmb run try`: what it refuses before anything is made, and what it writes."""

from __future__ import annotations

import re
import shutil
import socket
import textwrap
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml

from conftest import ROOT
from neuralmedbench.cli.main import main
from neuralmedbench.config.load import check, load_model
from neuralmedbench.config.model import ModelConfig
from neuralmedbench.config.pipeline import ComparisonConfig
from neuralmedbench.config.workflow import read_run
from neuralmedbench.errors import ConfigError
from neuralmedbench.estimates.sequential import SequentialInterval
from neuralmedbench.models.call_keys import call_key
from neuralmedbench.models.conversation import PromptMessage
from neuralmedbench.recording import stages
from neuralmedbench.recording.limited_run import _answers, _worth, add_server_model, check_server, limited_run
from neuralmedbench.recording.record import record_run
from neuralmedbench.recording.stated_comparison import ComparisonLook, comparison_run, look_line, stated_late
from neuralmedbench.records.responses import ResponseState

PAID = {"title": "P", "backend": "litellm", "id": "openai/gpt-4o", "revision": "1", "api_key_env": "NMB_NO_KEY"}
SERVER = "http://127.0.0.1:9/v1"


def write(path: str, value: object) -> None:
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    Path(path).write_text(yaml.safe_dump(value), encoding="utf-8")


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two benchmarks, a model that costs money, and a grader that asks it; no Snakemake can be started."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("NMB_NO_KEY", raising=False)
    monkeypatch.setattr(stages.subprocess, "run", lambda *_, **__: pytest.fail("something was started"))
    write("config/config.yaml", {"benchmarks": ["b", "c"], "models": ["absent"], "graders": ["llm", "rubric"], "rating_rounds": ["r01"]})
    benchmark = {"title": "B", "kind": "pictures", "axis": "depth", "source": "x", "subjects": "phantom", "private": False}
    for name in ("b", "c"):
        write(f"config/benchmarks/{name}.yaml", benchmark)
    write("config/models/paid.yaml", PAID)
    write("config/graders/rubric.yaml", {"title": "R", "kind": "rubric"})
    write("config/graders/llm.yaml", {"title": "L", "kind": "llm", "prompt": "p.j2", "model": PAID})
    Path("config/vocabulary").mkdir()
    shutil.copy(ROOT / "config/vocabulary/neurology.yaml", "config/vocabulary")
    return tmp_path


def test_a_limited_run_is_a_run_of_its_own_without_graders_that_ask(project: Path) -> None:
    add_server_model("mine", SERVER, "served-name")
    run = limited_run("mine", "", 7)
    assert (run.name, run.results, run.config.limit) == ("try-mine", "results/try-mine", 7)
    assert (list(run.benchmarks), list(run.models), list(run.graders), run.config.rating_rounds) == (["b"], ["mine"], ["rubric"], ())
    assert list(limited_run("mine", "c", 7).benchmarks) == ["c"]
    assert record_run(run, overridden=False) == "nothing was recorded: this is a limited run of 7 answers"


STATED = {"stated_on": "2026-01-31", "benchmark": "c", "first": "mine", "second": "other", "margin": 0.2, "batch": 5}


def test_a_stated_comparison_is_a_run_of_its_own_of_two_models_and_few_patients(project: Path) -> None:
    for name in ("mine", "other"):
        add_server_model(name, SERVER, name)
    with pytest.raises(ConfigError, match="no comparison is stated: write `comparison` with stated_on"):
        main(["run", "decide"])
    write("config/study.yaml", {"models": ["mine"], "graders": ["rubric"], "comparison": STATED})
    run = comparison_run(10, [Path("config/study.yaml")])
    assert (run.name, run.results, run.config.limit, run.config.limit_unit) == ("decide-c", "results/decide-c", 10, "patients")
    assert (list(run.benchmarks), list(run.models), list(run.graders)) == (["c"], ["mine", "other"], ["rubric"])
    assert (run.config.comparison.margin, run.config.comparison.batch) == (0.2, 5)
    assert record_run(run, overridden=False) == "nothing was recorded: this is a limited run of 10 patients"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"stated_on": None}, "a stated comparison has `stated_on`, `benchmark`, `first` and `second`; add what is missing"),
        ({"second": "mine"}, "`first` and `second` are the same model, mine"),
        ({"margin": 0.0}, "margin"),
    ],
)
def test_half_a_comparison_is_refused(project: Path, changes: dict[str, object], message: str) -> None:
    add_server_model("mine", SERVER, "mine")
    write("config/study.yaml", {"models": ["mine"], "graders": ["rubric"], "comparison": {**STATED, **changes}})
    with pytest.raises(ConfigError) as refused:
        main(["run", "decide", "--configfiles", "config/study.yaml"])
    assert message in "\n".join(refused.value.args)


@pytest.mark.parametrize(
    ("low", "high", "missing", "outcome", "words"),
    [
        (0.05, 0.4, 0.0, "first", "decided: mine is better"),
        (-0.4, -0.05, 0.0, "second", "decided: other is better"),
        (-0.15, 0.1, 0.0, "alike", "decided: they differ by less than 20 points"),
        (-0.05, 0.4, 0.0, "", "not decided"),
        (0.05, 0.4, 0.03, "", "not decided: 3.0 % of the answers are missing; `nmb run incomplete` says why"),
    ],
)
def test_a_look_says_what_is_decided_and_whether_it_was_stated_before(
    low: float, high: float, missing: float, outcome: str, words: str
) -> None:
    stated = ComparisonConfig.model_validate(STATED)
    look = ComparisonLook(
        comparison=stated, interval=SequentialInterval(0.1, low, high, 20), asked=20, all_patients=60, missing=missing, most_missing=0.02,
        confidence=0.95, asked_on="2026-01-31",
    )  # fmt: skip
    assert look.outcome == outcome
    assert look_line(look).startswith("20 patients of 60: mine minus other +10 points (")
    assert look_line(look).endswith(f"95 % at all looks together); {words}")
    assert stated_late(look) == ""
    assert stated_late(replace(look, asked_on="2026-01-30")).startswith("stated on 2026-01-31, after the first answer of 2026-01-30")


def test_all_reasons_why_a_model_may_not_be_tried_come_at_once_before_anything_is_made(project: Path) -> None:
    with pytest.raises(ConfigError) as refused:
        main(["run", "try", "--model", "paid"])
    lines = refused.value.args
    assert [line.partition(":")[0] for line in lines] == ["model paid", "model paid", "b"]
    assert "set max_cost_usd" in lines[0]
    assert "without prices" in lines[1]
    assert "its requests would go to api.openai.com, allowed are: local" in lines[2]
    assert not Path("data").exists()


def test_what_the_plan_says_is_not_possible_is_not_asked(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A key that is not set is no mistake of a run, whose other models go on; a run of this model alone has nothing to do."""
    made: list[list[str]] = []
    monkeypatch.setattr(stages, "make_files", lambda targets, *_, **__: made.append(list(targets)) or 0)
    add_server_model("mine", SERVER, "served-name")
    write("data/prompts/b.parquet", "there")  # so that no server is looked for

    class Row:
        benchmark, blocked = "b", "the environment variable X is not set"

    monkeypatch.setattr("neuralmedbench.recording.plan.plan_run", lambda _: ([Row()], []))
    monkeypatch.setattr("neuralmedbench.recording.plan.plan_lines", lambda *_: ["the plan"])
    with pytest.raises(ConfigError, match="b: the environment variable X is not set"):
        main(["run", "try", "--model", "mine"])
    assert made == [["data/prompts/b.parquet", "data/leaks/b.json"]], "the questions, no answer"


def test_a_model_without_a_yaml_file_is_one_line_or_is_written_for_a_server(project: Path) -> None:
    with pytest.raises(
        ConfigError, match=r"config/models/mine\.yaml: the file is not there; write it \(docs/add-a-model\.md\).*--api-base"
    ):
        main(["run", "try", "--model", "mine"])
    for address in ("127.0.0.1:8000", "http://me:secret@127.0.0.1/v1"):
        with pytest.raises(ConfigError) as refused:
            add_server_model("mine", address, "served-name")
        assert "secret" not in str(refused.value)
    assert not Path("config/models/mine.yaml").exists()
    assert add_server_model("mine", SERVER, "org/served-name") == Path("config/models/mine.yaml")
    model = load_model(Path("config/models/mine.yaml"))
    assert (model.id, model.api_base, model.title, model.revision) == ("openai/org/served-name", SERVER, "mine", "1"), "one name everywhere"
    assert add_server_model("mine", "", "") is None
    assert add_server_model("mine", SERVER, "other") is not None, "a wrong name is corrected by the same command"
    assert load_model(Path("config/models/mine.yaml")).id == "openai/other"
    with Path("config/models/mine.yaml").open("a") as file:
        file.write("max_images: 3\n")
    with pytest.raises(ConfigError, match="is there already"):
        add_server_model("mine", SERVER, "third")


def test_the_documented_yaml_asks_what_the_command_asks(project: Path) -> None:
    """Its answers are in the ledger then: none is paid for twice."""
    add_server_model("my-model", "http://127.0.0.1:8000/v1", "my-model")
    (text,) = re.findall(r"```yaml\n( +title: My model\n.*?)```", (ROOT / "docs/add-a-model.md").read_text(encoding="utf-8"), re.S)
    documented = check(ModelConfig, yaml.safe_load(textwrap.dedent(text)), "docs/add-a-model.md")
    messages = (PromptMessage("user", "What is it?"),)
    assert call_key(documented, messages, 0) == call_key(load_model(Path("config/models/my-model.yaml")), messages, 0)


def test_a_port_at_which_nothing_listens_is_found_before_anything_is_made(project: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{taken.getsockname()[1]}"
        with pytest.raises(ConfigError, match=rf"model mine: nothing listens at {address}: start the server, or correct `api_base`"):
            main(["run", "try", "--model", "mine", "--api-base", f"{address}/v1", "--id", "served-name"])
        assert not Path("data").exists()
        run = limited_run("mine", "", 7)
        with pytest.raises(ConfigError):
            check_server(run)
        taken.listen()
        check_server(run)
    write("data/prompts/b.parquet", "there")  # then the ledger may have the answers
    check_server(run)


@pytest.mark.parametrize("limit", [0, -1])
def test_a_limit_below_one_is_refused(project: Path, limit: int) -> None:
    with pytest.raises(ConfigError, match="at least one"):
        limited_run("paid", "", limit)


def test_a_limit_in_the_configuration_of_all_runs_is_refused(project: Path) -> None:
    """Its results would take the place of those of the whole run."""
    write("config/config.yaml", {"benchmarks": ["b"], "models": ["paid"], "graders": ["rubric"], "limit": 5})
    with pytest.raises(ConfigError, match="a limited run has a configfile and results of its own"):
        read_run()
    write("few.yaml", {"limit": 5})
    assert read_run([Path("few.yaml")]).results == "results/few"


@pytest.mark.parametrize(("cluster", "words"), [("item", "2 items"), ("patient", "2 patients")])
def test_answers_to_exam_questions_are_not_counted_as_patients(cluster: str, words: str) -> None:
    items = {name: SimpleNamespace(family="management") for name in "ab"}
    rows = [SimpleNamespace(item_id=name, patient_id=name, state="failed", error="") for name in "ab"]
    assert next(_answers(rows, items, "exam", "m", cluster)) == f"2 answers of m to exam ({words}, 1 family): 2 failed"


def test_a_run_in_which_no_answer_has_come_does_not_say_that_everything_works() -> None:
    waiting = SimpleNamespace(item_id="a", patient_id="a", state="skipped", error="handed in with batch b1, which has not ended", text="")
    assert _worth([waiting]) == "no answer has come yet"
    assert not any("could be read" in line for line in _answers([waiting], {"a": SimpleNamespace(family="f")}, "exam", "m", "item"))
    assert _worth([waiting, SimpleNamespace(state=ResponseState.OK)]).startswith("1 answer shows that everything works")
