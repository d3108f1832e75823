"""The plan: calls forecast before anything is sent, compared with those that the engine then makes."""

from __future__ import annotations

import csv
import json
import re
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from conftest import ROOT
from fixtures.models import model_config, picture, request
from fixtures.tables import item
from neuralmedbench.cli.model import plan_calls as command
from neuralmedbench.config.load import load_model_for
from neuralmedbench.errors import ConfigError
from neuralmedbench.files.tables import read_records, write_records
from neuralmedbench.files.vocabulary import read_vocabulary
from neuralmedbench.models import engine
from neuralmedbench.models.budget import Budget, account_of
from neuralmedbench.models.conversation import PromptMessage, next_messages
from neuralmedbench.models.engine import answer_requests
from neuralmedbench.models.forecast import forecast_calls
from neuralmedbench.models.ledger import new_entry, open_ledger, read_ledger
from neuralmedbench.models.model_run import ModelRun
from neuralmedbench.models.protocol import Answer, Call
from neuralmedbench.models.registry import BackendHandle
from neuralmedbench.models.samples import SampleWalk
from neuralmedbench.records.items import Family, Gold, Item, Level, Runner
from neuralmedbench.records.requests import LONG_PROMPT, Fact, Inquiry, Request, RequestTurn
from neuralmedbench.records.responses import Response, ResponseState
from neuralmedbench.records.scores import PLANTED, text_digest
from neuralmedbench.records.vocabulary import Urgency
from neuralmedbench.runtime.commands import run_command
from neuralmedbench.scoring.planted.edits import EDITS
from neuralmedbench.scoring.planted.planting import plant_errors

PRICES = {"usd_per_million_prompt_tokens": 2.5, "usd_per_million_completion_tokens": 10, "dated": "2026-11-22"}


class Counting:
    """A backend that counts its calls, and answers."""

    in_flight = 4

    def __init__(self, several: bool) -> None:
        self.several = several
        self.calls: list[Call] = []

    async def answer(self, call: Call) -> tuple[Answer, ...]:
        self.calls.append(call)
        return tuple(Answer(f"answer {repeat}", prompt_tokens=10, completion_tokens=4) for repeat in call.repeats)

    async def close(self) -> None:
        """There is nothing to close."""


@pytest.fixture
def ask(tmp_path, monkeypatch):
    """Return a function that asks a model through the engine and returns the calls made."""

    def asking(requests, model) -> list[Call]:
        backend = Counting(model.native_n)
        monkeypatch.setattr(engine, "open_backend", lambda *_: BackendHandle(backend))
        answer_requests(
            requests, ModelRun(model, ledger=tmp_path / "m.jsonl", destinations=("local",), max_failed_fraction=None, root=tmp_path)
        )
        return backend.calls

    return asking


def conversations(root: Path) -> list[Request]:
    """Requests of every form except those in which the model asks."""
    seen = RequestTurn(text="Look.", images=tuple(picture(root, number) for number in range(5)))
    dialogue = (RequestTurn(text="First."), RequestTurn(text="Second."), RequestTurn(text="Third."))
    same = RequestTurn(text="What is it?")
    return [
        request("a", samples=3),
        request("b", seen, samples=2),
        request("c", *dialogue, samples=2),
        request("d", same),
        request("e", same, samples=2),
        request("f", *dialogue),
        request("g", *dialogue[:2], RequestTurn(text="Third, seen otherwise.", images=seen.images[:1])),
        request("h", dialogue[0], dialogue[2], dialogue[1], samples=3),
    ]


@pytest.mark.parametrize("native_n", [False, True])
def test_the_plan_counts_exactly_the_calls_that_are_then_made(tmp_path, ask, native_n):
    """A forecast that is too low costs money; one that is too high stops a study."""
    model = model_config(max_images=3, native_n=native_n, api_base="http://127.0.0.1:9/v1", max_tokens=100)
    requests, ledger = conversations(tmp_path), tmp_path / "m.jsonl"
    for part in (requests[:2], requests, requests):
        before = read_ledger(ledger)
        planned = forecast_calls(part, model, before, root=tmp_path)
        calls = ask(part, model)
        assert planned.calls == len(calls)
        assert planned.answered + planned.most_completion_tokens // 100 == len(read_ledger(ledger))
        assert (planned.requests, planned.samples) == (len(part), sum(one.samples for one in part))
    assert planned.calls == planned.most_prompt_tokens == 0


def test_at_most_is_what_is_set_aside(tmp_path):
    model = model_config(prices=PRICES, max_cost_usd=100, max_tokens=100)
    requests = [one for one in conversations(tmp_path) if len(one.turns) == 1][:2]
    planned = forecast_calls(requests, model, {}, root=tmp_path)
    aside = Budget(model, root=tmp_path)
    reserved = [aside.reserve(next_messages(one, [], None)) for one in requests for _ in range(one.samples)]
    assert planned.most_usd == pytest.approx(sum(one.nano_usd for one in reserved) / 1e9, abs=1e-7)
    assert 0 < planned.usd < planned.most_usd


def test_later_turns_hold_the_answers_that_are_not_there_yet():
    one, three = (
        forecast_calls([request("a", *(RequestTurn(text="Say.") for _ in range(turns)))], model_config(max_tokens=1000), {})
        for turns in (1, 3)
    )
    assert three.calls == 3
    assert three.most_prompt_tokens > 3 * one.most_prompt_tokens + 3 * 1000
    assert three.prompt_tokens > 3 * one.prompt_tokens + 3 * 500


def test_where_the_model_asks_every_question_that_it_may_ask_is_counted():
    inquiry = Inquiry(
        facts=tuple(Fact(text=f"fact {number} " * 20) for number in range(9)), max_questions=4, unknown="u", left="l", closing="c"
    )
    asked = replace(request("a"), inquiry=inquiry)
    planned, plain = forecast_calls([asked], model_config(), {}), forecast_calls([request("a")], model_config(), {})
    assert (planned.calls, plain.calls) == (5, 1)
    assert planned.most_prompt_tokens > 5 * plain.most_prompt_tokens + (1 + 2 + 3 + 4) * 3 * len("fact 1 " * 20)


def test_after_ten_answers_their_length_is_the_likely_one(tmp_path, ask):
    model, later = model_config(api_base="http://127.0.0.1:9/v1", max_tokens=1000), [request(f"x{number}") for number in range(3)]
    assert forecast_calls(later, model, {}).completion_tokens == 3 * 500
    ask([request(f"i{number}") for number in range(10)], model)
    assert forecast_calls(later, model, read_ledger(tmp_path / "m.jsonl")).completion_tokens == 3 * 4


@pytest.fixture
def project(tmp_path, monkeypatch):
    """Write the files that the command reads, and change to their folder; one of two benchmarks has no prompts yet."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("NMB_PAID", raising=False)
    monkeypatch.setenv("NMB_OTHER", "x")

    def write(path: str, value: object) -> None:
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        Path(path).write_text(yaml.safe_dump(value), encoding="utf-8")

    paid = {
        "title": "P",
        "backend": "litellm",
        "id": "openai/gpt-4o",
        "revision": "1",
        "max_tokens": 200,
        "seed": 1,
        "temperature": 1,
        "prices": PRICES,
        "max_cost_usd": 0.05,
        "rate_limit_group": "openai",
    }
    write("config/config.yaml", {"benchmarks": ["b", "later"], "models": ["text", "paid", "other"], "graders": ["rubric", "llm"]})
    write("limits.yaml", {"rate_limits": {"openai": {"requests_per_minute": 2}}, "max_run_cost_usd": 0.005})
    for name in ("b", "later"):
        allowed = ["local", "api.openai.com"]
        benchmark = {"title": "B", "kind": "pictures", "axis": "depth", "source": "x", "subjects": "phantom", "private": False}
        write(f"config/benchmarks/{name}.yaml", {**benchmark, "allowed_destinations": allowed})
    write("config/models/paid.yaml", {**paid, "api_key_env": "NMB_PAID"})
    write("config/models/other.yaml", {**paid, "title": "O", "top_p": 0.9, "api_key_env": "NMB_OTHER"})
    write("config/graders/rubric.yaml", {"title": "R", "kind": "rubric"})
    for part in ("models/text.yaml", "models/gpt-4o-grader.yaml", "graders/llm.yaml", "prompts", "vocabulary"):
        source, target = ROOT / "config" / part, Path("config", part)
        shutil.copytree(source, target) if source.is_dir() else shutil.copy(source, target)
    items = [item("b", f"c{n}", f"p{n}", Family.DIFFERENTIAL_DIAGNOSIS, level=Level.DIRECT, runner=Runner.OPEN) for n in range(3)]
    asked = [request(f"c{n}", samples=2) for n in range(3)]
    asked = [replace(one, item_id=items[n].item_id, runner="open") for n, one in enumerate(asked)]
    write_records(Path("data/prompts/b.parquet"), Request, asked, key=lambda row: row.item_id)
    write_records(Path("data/items/b.parquet"), Item, items, key=lambda row: row.item_id)
    answers = ("glioblastoma", "meningioma", "brain abscess")  # with equal answers the graders' requests would be equal, and sent once
    gold = [Gold(item_id=one.item_id, answer=answer) for one, answer in zip(items, answers, strict=True)]
    write_records(Path("data/gold/b.parquet"), Gold, gold, key=lambda row: row.item_id)
    return tmp_path


def planned(capsys, *configfiles: str, code: int = 0) -> tuple[str, dict[tuple[str, str], dict[str, str]]]:
    assert run_command(command.main, ["--configfiles", *configfiles, "--out", "plan.csv"]) == code
    with Path("plan.csv").open(encoding="utf-8", newline="") as file:
        return capsys.readouterr().out, {(row["model"], row["grader"]): row for row in csv.DictReader(file)}


def test_the_command_names_calls_money_hosts_keys_limits_and_caps_and_sends_nothing(project, capsys, monkeypatch):
    monkeypatch.setattr("socket.socket.connect", lambda *_: pytest.fail("a connection was opened"))
    said, rows = planned(capsys, "limits.yaml")
    assert list(rows) == [("text", ""), ("text", "llm"), ("paid", ""), ("paid", "llm"), ("other", ""), ("other", "llm"), (PLANTED, "llm")]
    other = rows["other", ""]
    assert (other["samples"], other["calls"], other["destination"], other["allowed"]) == ("6", "6", "api.openai.com", "True")
    assert (other["key_env"], other["key_is_set"], other["prices_dated"], other["blocked"]) == ("NMB_OTHER", "True", "2026-11-22", "")
    assert (other["group"], other["least_minutes"]) == ("openai", "3.0")
    assert 0 < float(other["usd"]) < float(other["most_usd"])
    assert rows["text", ""]["destination"] == "local"
    assert rows["paid", ""]["blocked"] == "the environment variable NMB_PAID is not set"
    assert "blocked: the environment variable NMB_PAID is not set" in said
    assert "later: it has no prompts yet; `snakemake --cores 8 --configfile limits.yaml -- data/prompts/later.parquet` makes them" in said
    Path("data/prompts/b.parquet").rename("b.parquet")
    both = planned(capsys, "limits.yaml")[0]
    assert (
        "b, later: they have no prompts yet; `snakemake --cores 8 --configfile limits.yaml -- data/prompts/b.parquet data/prompts/later.p"
        in both
    )
    assert "rate limit group openai: 2 requests per minute; these calls take at least 3 minutes" in said
    assert "max_run_cost_usd 0.0050 is less than" in said
    assert re.search(r"Possible now: \d+ calls, [\d.]+ USD, at most 0\.0050 USD", said), "no more than the cap of the run"
    assert "Nothing was sent." in said
    assert not Path("data/spending").exists()


def test_a_long_prompt_is_said_for_each_model_that_is_to_be_asked(project, capsys):
    assert "characters" not in planned(capsys, "limits.yaml")[0]
    first, *others = read_records(Path("data/prompts/b.parquet"), Request)
    long = replace(first, turns=(*first.turns, RequestTurn(text="x" * LONG_PROMPT)))
    write_records(Path("data/prompts/b.parquet"), Request, [long, *others], key=lambda row: row.item_id)
    assert "b, other: 1 of 3 prompts have more than 100,000 characters (the longest 100," in planned(capsys, "limits.yaml")[0]


def test_graders_are_planned_from_the_answers_that_are_there_and_those_that_are_to_come(project, capsys, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "x")
    said, rows = planned(capsys, "limits.yaml")
    assert rows["other", "llm"]["calls"] == "6"
    assert "b, llm on other: 6 answers of its model are still to come" in said
    states = {(0, 0): "ok", (0, 1): "ok", (1, 0): "refused", (1, 1): "over_budget"}
    asked = read_records(Path("data/prompts/b.parquet"), Request)
    answers = [response(asked[number], repeat, ResponseState(state)) for (number, repeat), state in states.items()]
    write_records(Path("results/responses/b/other.parquet"), Response, answers, key=lambda row: (row.item_id, row.repeat))
    said, rows = planned(capsys, "limits.yaml")
    assert rows["other", "llm"]["calls"] == "4"  # one for two equal answers, none for the refused one, three that are to come
    assert "b, llm on other: 3 answers of its model are still to come" in said


def response(asked: Request, repeat: int, state: ResponseState) -> Response:
    return Response(
        item_id=asked.item_id, case_id=asked.case_id, patient_id=asked.patient_id, benchmark="b", arm=asked.arm, strategy=asked.strategy,
        model="other", revision="1", repeat=repeat, request_id="r", runner="open", state=state, text="the same answer",
    )  # fmt: skip


def test_a_new_revision_says_how_many_answers_of_the_old_ones_stay(project, capsys):
    model = load_model_for(Path("config"), "b", "other")
    asked = read_records(Path("data/prompts/b.parquet"), Request)
    walks = [SampleWalk(one, model, 0) for one in asked]
    with open_ledger(Path("data/ledger/b/other.jsonl")) as ledger:
        for walk in walks:
            ledger.add(new_entry(walk.request, model, walk.messages, key=walk.key, repeat=0, turn=0, state="ok", text="x"))
    assert "these calls are of revision" not in planned(capsys, "limits.yaml")[0], "the calls that are left are of the same revision"
    path = Path("config/models/other.yaml")
    path.write_text(path.read_text(encoding="utf-8").replace("revision: '1'", "revision: '2'"), encoding="utf-8")
    said, rows = planned(capsys, "limits.yaml")
    assert rows["other", ""]["answered"] == "0"
    assert "b, other: these calls are of revision 2; 3 answers of revision 1 stay in the ledger and are compared with it" in said


def test_what_was_spent_leaves_less_of_a_cap(project, capsys):
    said, _ = planned(capsys, "limits.yaml")
    assert "other: max_cost_usd" not in said
    model = model_config(**yaml.safe_load(Path("config/models/other.yaml").read_text()))
    budget = Budget(model.named("other"), log=Path("data/spending/money.jsonl"), run="r")
    budget.settle(budget.reserve((PromptMessage("user", "?"),)), 0.0499)
    said, _ = planned(capsys, "limits.yaml")
    assert "other: max_cost_usd 0.0500 leaves 0.0001 USD (0.0499 spent so far)" in said
    assert "USD, at most 0.0001 USD" in said
    assert account_of(model.named("other")) == "other openai/gpt-4o 1"


def test_a_destination_that_is_not_allowed_is_said_and_its_money_is_not_added(project, capsys):
    Path("config/benchmarks/b.yaml").write_text(
        Path("config/benchmarks/b.yaml").read_text().replace("- api.openai.com\n", ""), encoding="utf-8"
    )
    said, rows = planned(capsys, "limits.yaml", code=ConfigError.exit_code)
    assert rows["other", ""]["allowed"] == "False"
    assert "api.openai.com (not allowed)" in said
    assert "Possible now: 6 calls, 0.00 USD" in said
    assert "Including blocked calls:" in said


def test_members_of_a_jury_are_counted_and_the_jury_asks_nothing(project, capsys):
    for name in ("first", "second"):
        model = {"title": name, "backend": "litellm", "id": f"openai/{name}", "revision": "1", "api_base": "http://127.0.0.1:9/v1"}
        grader = {"title": name, "kind": "llm", "prompt": "config/prompts/grader-v3.j2", "model": model}
        Path(f"config/graders/{name}.yaml").write_text(yaml.safe_dump(grader), encoding="utf-8")
    Path("config/graders/jury.yaml").write_text(
        yaml.safe_dump({"title": "J", "kind": "jury", "members": ["first", "second"]}), encoding="utf-8"
    )
    Path("jury.yaml").write_text(yaml.safe_dump({"models": ["text"], "graders": ["jury", "first"]}), encoding="utf-8")
    _, rows = planned(capsys, "jury.yaml")
    assert {name: rows[name]["calls"] for name in rows if name[1]} == {
        ("text", "first"): "6", ("text", "second"): "6", (PLANTED, "first"): "51", (PLANTED, "second"): "51",
    }  # fmt: skip


def test_planted_errors_are_planned_for_every_grader_that_asks_a_model(project, capsys):
    """Three patients: right and wrong answer, negation, rival, padding of both, and an injection; ranks need a second diagnosis."""
    said, rows = planned(capsys, "limits.yaml")
    items = {row.item_id: row for row in read_records(Path("data/items/b.parquet"), Item)}
    gold = {row.item_id: row for row in read_records(Path("data/gold/b.parquet"), Gold)}
    vocabulary = read_vocabulary(Path("config/vocabulary/neurology.yaml"))
    texts = {(row.item_id, row.text) for row in plant_errors(items.values(), gold, vocabulary=vocabulary, urgency=Urgency(), patients=6)}
    assert len(texts) == 18
    assert rows[PLANTED, "llm"]["calls"] == str(18 + 3 * 3 * len(EDITS)), "until answers are graded, every edit may be made of them"
    assert "llm on planted errors" in said
    for patients, in_answers, calls in ((0, 3, 0), (1, 0, 6), (6, 0, 18), (6, 1, 18 + 3 * len(EDITS))):
        checks = f"grader_checks: {{items_per_edit: {patients}, answers_per_edit: {in_answers}}}\n"
        Path("few.yaml").write_text(checks, encoding="utf-8")
        assert planned(capsys, "limits.yaml", "few.yaml")[1][PLANTED, "llm"]["calls"] == str(calls)


def test_a_grader_of_an_earlier_run_is_not_planned_to_be_tested_unless_the_configuration_says_so(project, capsys, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "x")
    earlier = Path("data/ledger/b/graders/other/llm.jsonl")
    earlier.parent.mkdir(parents=True)
    earlier.write_text("{}\n", encoding="utf-8")
    said, rows = planned(capsys, "limits.yaml")
    assert (PLANTED, "llm") not in rows
    assert "b, llm on other: 6 answers of its model are still to come" in said
    assert "not tested with planted errors: it graded answers before it was tested" in said
    Path("few.yaml").write_text("grader_checks: {items_per_edit: 6, answers_per_edit: 0}\n", encoding="utf-8")
    assert planned(capsys, "limits.yaml", "few.yaml")[1][PLANTED, "llm"]["calls"] == "18"


def test_the_plan_says_what_a_switch_to_another_version_of_a_grader_costs(project, capsys, monkeypatch):
    """Answers that another grader of the task, or the same one under another revision, has graded; not those of another task."""
    monkeypatch.setenv("OPENAI_API_KEY", "x")
    asked = read_records(Path("data/prompts/b.parquet"), Request)
    answers = [replace(response(one, 0, ResponseState.OK), text=f"{one.item_id} is this") for one in asked]
    write_records(Path("results/responses/b/other.parquet"), Response, answers, key=lambda row: row.item_id)
    shipped = yaml.safe_load(Path("config/graders/llm.yaml").read_text(encoding="utf-8"))
    for name, changes in {"llm-new": {"prompt": "config/prompts/grader-v3.j2"}, "steps": {"task": "reasoning"}}.items():
        Path(f"config/graders/{name}.yaml").write_text(yaml.safe_dump(shipped | changes), encoding="utf-8")
    ledgers = Path("data/ledger/b/graders/other")
    ledgers.mkdir(parents=True)
    for name in ("llm", "steps"):
        lines = [{"key": f"{name} {row.item_id}", "state": "ok", "text": "{}", "item_id": row.item_id} for row in answers[:2]]
        text = [json.dumps({**line, "strategy": text_digest(row.text)}) for line, row in zip(lines, answers, strict=False)]
        (ledgers / f"{name}.jsonl").write_text("\n".join(text) + "\n", encoding="utf-8")
    Path("new.yaml").write_text(yaml.safe_dump({"models": ["other"], "graders": ["llm-new"]}), encoding="utf-8")
    said, _ = planned(capsys, "limits.yaml", "new.yaml")
    (line,) = [line for line in said.splitlines() if line.startswith("switch to ")]
    assert line.startswith("switch to llm-new: llm graded these answers before; grading them again takes 2 calls, about ")
    assert re.search(r"about 0\.\d\d USD, at most 0\.\d\d USD; the run list with llm in its place asks none of them$", line)
    said, _ = planned(capsys, "limits.yaml")
    (line,) = [line for line in said.splitlines() if line.startswith("switch to ")]
    assert "switch to llm: it with another prompt, model or settings graded these answers before" in line


def test_a_price_that_nobody_knows_is_said_and_a_model_that_may_cost_money_names_the_lines_that_end_it(project, capsys, monkeypatch):
    monkeypatch.setenv("NMB_PAID", "k")
    paid, other, benchmark = (Path("config", part) for part in ("models/paid.yaml", "models/other.yaml", "benchmarks/b.yaml"))
    unpriced = {name: value for name, value in yaml.safe_load(paid.read_text()).items() if name != "prices"}
    paid.write_text(yaml.safe_dump(unpriced))
    own = {name: value for name, value in unpriced.items() if name not in ("api_key_env", "max_cost_usd")}
    other.write_text(yaml.safe_dump(own | {"title": "O", "api_base": "http://gpu.example.org/v1"}))
    allowed = {"allowed_destinations": ["api.openai.com", "http://gpu.example.org"]}
    benchmark.write_text(yaml.safe_dump(yaml.safe_load(benchmark.read_text()) | allowed))
    Path("config/config.yaml").write_text(yaml.safe_dump({"benchmarks": ["b"], "models": ["paid", "other"], "graders": []}))
    said, rows = planned(capsys, "limits.yaml", code=ConfigError.exit_code)
    assert "Possible now: 6 calls, 0.00 USD, at most 0.00 USD, and 1 of unknown price" in said
    assert "blocked: model paid: max_cost_usd cannot be kept without prices; add to its yaml" in said
    assert (rows["other", ""]["usd"], rows["other", ""]["blocked"]) == ("", "")


def test_a_layout_is_planned_for_the_models_that_name_it_alone_and_one_that_nobody_names_is_said(project, capsys):
    for folder in ("arms", "layouts"):
        shutil.copytree(ROOT / "config" / folder, Path("config") / folder)
    path = Path("config/benchmarks/b.yaml")
    path.write_text(path.read_text(encoding="utf-8") + "arms: [full, layout-qwen3vl, layout-claude]\n", encoding="utf-8")
    table = Path("data/prompts/b.parquet")
    asked = read_records(table, Request)
    laid_out = [
        replace(row, arm=f"layout-{name}", layout=name, turns=(replace(row.turns[0], after=f"In {name}?"),))
        for row in asked
        for name in ("qwen3vl", "claude")
    ]
    write_records(table, Request, [*asked, *laid_out], key=lambda row: (row.item_id, row.arm))
    model = Path("config/models/other.yaml")
    model.write_text(model.read_text(encoding="utf-8") + "layout: qwen3vl\n", encoding="utf-8")
    said, rows = planned(capsys, "limits.yaml")
    assert (rows["other", ""]["calls"], rows["text", ""]["calls"], rows["paid", ""]["calls"]) == ("12", "6", "6")
    assert "b: no model is asked in the arm layout-claude; write `layout: claude` in the yaml of a model of that family" in said
    assert "layout-qwen3vl;" not in said
