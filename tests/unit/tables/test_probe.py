"""Probes: a server that changed silently is detected, one that did not is not."""

from __future__ import annotations

import hashlib
import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from aiohttp import web

from conftest import ROOT
from fixtures.models import Server, model_config, reply, running_server
from fixtures.scoring import differential, vocabulary
from fixtures.tables import item
from neuralmedbench.cli.run import compare_answers as command
from neuralmedbench.errors import ConfigError, DataError, DeidentificationError, ProviderError
from neuralmedbench.estimates.intervals import IntervalSettings
from neuralmedbench.files.cases import write_audit
from neuralmedbench.files.tables import write_records
from neuralmedbench.models import retry
from neuralmedbench.models.engine import answer_requests
from neuralmedbench.models.ledger import read_ledger
from neuralmedbench.models.model_run import ModelRun
from neuralmedbench.records.case import Audit
from neuralmedbench.records.items import Family, Gold, Item, Level, Runner
from neuralmedbench.records.requests import Request, RequestTurn
from neuralmedbench.tables.probe import FIRST_REPEAT, ITEMS, ProbeResult, ProbeTarget, fixed_requests, probe_model

FAST = IntervalSettings(resamples=400)
NAMES = ("glioblastoma", "meningioma", "brain abscess")
BEFORE, AFTER = (0.8, 0.1, 0.1), (0.2, 0.2, 0.6)
FREE = {"usd_per_million_prompt_tokens": 0, "usd_per_million_completion_tokens": 0, "dated": "x"}


class Changing(Server):
    """A model whose answers are drawn from a distribution, determined by text and seed of the request."""

    def __init__(self) -> None:
        super().__init__()
        self.chances = BEFORE
        self.served = "m-2026-05-01"
        self.fails = ""

    async def handle(self, request: web.Request) -> web.StreamResponse:
        body = await request.json()
        self.bodies.append(body)
        question = body["messages"][-1]["content"]
        question = question if isinstance(question, str) else json.dumps(question)
        if self.fails and self.fails in question:
            return web.json_response({"error": {"message": "no"}}, status=400)
        draw = int(hashlib.sha256(f"{question}|{body.get('seed')}".encode()).hexdigest()[:8], 16) / 2**32
        first = NAMES[sum(draw >= sum(self.chances[:place]) for place in (1, 2))]
        return web.json_response({**reply(differential(first)), "model": self.served})


def questions(count: int = 22) -> dict[str, Item]:
    items = [
        item("b", f"case{number:02d}", f"p{number % 12}", Family.DIFFERENTIAL_DIAGNOSIS, level=Level.DIRECT, runner=Runner.OPEN)
        for number in range(count)
    ]
    return {one.item_id: one for one in items}


def request_of(one: Item, *, samples: int = 3, arm: str = "full") -> Request:
    return Request(
        item_id=one.item_id, case_id=one.case_id, patient_id=one.patient_id, benchmark="b", arm=arm, strategy="direct", request_id=f"{one.item_id}/{arm}",
        runner=one.runner, system="You are a neurologist.", turns=(RequestTurn(text=f"What is it? ({one.item_id}, {arm})"),),
        answer_schema="", samples=samples,
    )  # fmt: skip


class Bench:
    """A model behind a server, its ledger, and the requests."""

    def __init__(self, root: Path, server: Changing) -> None:
        self.server = server
        self.items = questions()
        self.gold = {name: Gold(item_id=name, answer="glioblastoma") for name in self.items}
        self.requests = [request_of(one) for one in self.items.values()]
        self.place = ProbeTarget(
            benchmark="b",
            model=model_config(api_base=server.address, seed=1, temperature=1.0, max_attempts=1),
            destinations=("local",),
            ledger=root / "ledger" / "m.jsonl",
            checks=root / "ledger" / "drift" / "m.jsonl",
        )

    def with_model(self, **changes: Any) -> None:
        self.place = replace(self.place, model=self.place.model.model_copy(update=changes))

    def run(self) -> None:
        answer_requests(
            self.requests, ModelRun(self.place.model, ledger=self.place.ledger, destinations=("local",), max_failed_fraction=None)
        )

    def check(self, **changes: Any) -> ProbeResult:
        return probe_model(self.requests, self.items, self.gold, self.place, vocabulary=vocabulary(), settings=FAST, **changes)

    def asked_again(self, **changes: Any) -> tuple[ProbeResult, list[str]]:
        """Return the result of a probe, and the texts of its questions."""
        before = len(self.server.bodies)
        result = self.check(**changes)
        return result, [json.dumps(body["messages"][-1]["content"]) for body in self.server.bodies[before:]]


@pytest.fixture
def bench(tmp_path, monkeypatch):
    monkeypatch.setattr(retry, "FIRST_WAIT_S", 0.01)
    with running_server(Changing()) as server:
        yield Bench(tmp_path, server)


def test_a_model_that_answers_as_before_shows_no_sign_of_a_change(bench):
    bench.run()
    before = bench.place.ledger.read_bytes()
    drift = bench.check()
    assert not drift.changed
    assert drift.lines[0].startswith(
        "m on b, revision 1, 20 items asked again: No change was shown after Holm’s correction for 3 tests; pass@1 of m on b: "
    )
    assert "20 items of 12 patients in both" in drift.lines[0]
    assert "No more answers differ than repeats do." in drift.lines[0]
    assert not any(line.startswith("Served as") for line in drift.lines)
    assert len(bench.server.bodies) == 22 * 3 + 20 * 3
    assert bench.place.ledger.read_bytes() == before


def test_a_server_that_silently_changed_is_found(bench):
    bench.run()
    bench.server.chances, bench.server.served = AFTER, "m-2026-06-01"
    drift = bench.check()
    assert drift.changed
    assert drift.lines[0].startswith(
        "m on b, revision 1, 20 items asked again: Yes, after Holm’s correction for 3 tests: pass@1 of m on b changed by −"
    )
    assert drift.lines[1].startswith("Changed sides: b/case")
    assert drift.lines[2] == "Served as m-2026-05-01 before, as m-2026-06-01 now."


def test_another_version_under_the_same_name_is_a_change_however_it_answers(bench):
    bench.run()
    bench.server.served = "m-2026-06-01"
    drift = bench.check()
    assert drift.changed
    assert drift.lines[-1] == "Served as m-2026-05-01 before, as m-2026-06-01 now."
    bench.server.served = ""  # a server that does not name its model says nothing of it
    assert not bench.check().changed


def test_answers_of_another_model_are_a_change_and_are_compared_with_nothing(bench):
    bench.run()
    bench.server.served = "m-3.5-lite"
    drift = bench.check()
    assert drift.changed
    assert "60 of 60 answers were answered by another model: m-3.5-lite, not m" in drift.lines[0]
    assert "pass@1" not in drift.lines[0]
    bench.with_model(served_as=("m-3.5-lite",))
    assert "pass@1" in bench.check().lines[0], "one line of the yaml says that it is the same model"


def test_what_another_model_answered_is_nothing_to_compare_with(bench):
    bench.server.served = "m-3.5-lite"
    bench.run()
    bench.server.served = "m"
    with pytest.raises(DataError, match="its ledger holds no complete answers"):
        bench.check()


def test_every_check_asks_the_same_items_under_repeats_that_were_never_used(bench):
    bench.run()
    rounds = []
    for number in range(3):
        before = len(bench.server.bodies)
        bench.check()
        bodies = bench.server.bodies[before:]
        rounds.append({body["messages"][-1]["content"] for body in bodies})
        assert {body["seed"] for body in bodies} == {1 + FIRST_REPEAT + 3 * number + sample for sample in range(3)}
    assert rounds[0] == rounds[1] == rounds[2]
    assert len(rounds[0]) == ITEMS
    entries = read_ledger(bench.place.checks).values()
    assert len(entries) == 3 * ITEMS * 3
    assert {entry.repeat for entry in entries} == set(range(FIRST_REPEAT, FIRST_REPEAT + 9))
    assert not {entry.key for entry in entries} & set(read_ledger(bench.place.ledger))


def test_what_is_asked_again_does_not_depend_on_what_else_is_asked(bench):
    bench.run()
    _, first = bench.asked_again()
    bench.requests = [request_of(one, arm=arm) for one in reversed(bench.items.values()) for arm in ("no_image", "full")]
    assert sorted(bench.asked_again()[1]) == sorted(first)


def test_fewer_items_are_the_first_of_the_fixed_ones(bench):
    bench.run()
    few, all_of_them = (bench.asked_again(count=count)[1] for count in (5, ITEMS))
    assert (len(few), len(all_of_them)) == (5 * 3, ITEMS * 3)
    assert set(few) < set(all_of_them)


def test_only_single_questions_with_all_of_their_answers_are_asked_again(bench):
    whole, other, talk, part = list(bench.items.values())[:4]
    bench.requests = [request_of(whole), request_of(other, arm="no_image"), replace(request_of(talk), runner="dialogue"), request_of(part)]
    bench.server.fails = part.item_id
    bench.run()
    bench.server.fails = ""
    _, texts = bench.asked_again()
    assert len(texts) == 3
    assert all(whole.item_id in text for text in texts)
    assert fixed_requests(bench.requests, []) == []


def test_an_item_without_a_reference_is_compared_by_what_is_named_first(bench):
    bench.gold = {}
    bench.run()
    bench.server.chances = AFTER
    drift = bench.check()
    assert drift.changed
    assert "Yes, in the only test: answers of m on b differ more than repeats do." in drift.lines[0]


def test_answers_that_name_nothing_and_have_no_reference_cannot_be_compared(bench, monkeypatch):
    bench.gold, bench.requests = {}, bench.requests[:2]
    monkeypatch.setattr("test_probe.NAMES", ("not sure",) * 3)
    bench.run()
    with pytest.raises(DataError, match="nothing was read from repeated answers, before or now"):
        bench.check()


def test_one_answer_an_item_says_that_the_noise_is_not_known(bench):
    bench.requests = [request_of(one, samples=1) for one in bench.items.values()]
    bench.gold = {name: Gold(item_id=name, answer="multiple sclerosis") for name in bench.items}
    bench.run()
    bench.server.chances = AFTER
    drift = bench.check()
    assert not drift.changed
    assert "How much repeats differ is not known." in drift.lines[0]


def test_a_greedy_model_that_answers_otherwise_is_found_at_once(bench):
    bench.with_model(temperature=0.0, seed=None)
    bench.server.chances = (1, 0, 0)
    bench.requests = [request_of(one, samples=2) for one in bench.items.values()]
    bench.run()
    assert not bench.check().changed
    bench.server.chances = (0, 0, 1)
    assert bench.check().changed


def test_items_whose_answers_did_not_come_are_left_out_and_counted(bench):
    bench.run()
    _, texts = bench.asked_again()
    bench.server.fails = next(name for name in bench.items if any(name in text for text in texts))
    drift = bench.check()
    assert "19 items of " in drift.lines[0]
    assert "1 comparison leaves out items that were not the same or not answered in both" in drift.lines[0]
    bench.server.fails = "What is it?"
    with pytest.raises(ProviderError, match=r"60 of 60 answers are missing \(most often .*nothing was compared"):
        bench.check()


def test_without_its_key_nothing_is_asked_and_nothing_is_written(bench, monkeypatch):
    monkeypatch.setenv("NMB_TEST_KEY", "k")
    bench.with_model(api_key_env="NMB_TEST_KEY", prices=model_config(prices=FREE).prices, max_cost_usd=0)
    bench.run()
    monkeypatch.delenv("NMB_TEST_KEY")
    with pytest.raises(ProviderError, match="it cannot be asked: the environment variable NMB_TEST_KEY is not set"):
        bench.check()
    assert not bench.place.checks.exists()


def test_a_ledger_that_holds_nothing_of_this_revision_is_one_clear_error(bench):
    with pytest.raises(DataError, match=r"no complete answers of revision 1 .*: run the workflow first"):
        bench.check()
    bench.run()
    bench.with_model(revision="2")
    with pytest.raises(DataError, match="no complete answers of revision 2"):
        bench.check()
    assert not bench.place.checks.exists()


def test_a_check_goes_nowhere_the_benchmark_does_not_allow_and_spends_no_more_than_the_cap(bench):
    bench.run()
    bench.place = replace(bench.place, destinations=("api.example.org",))
    with pytest.raises(ConfigError, match=r"allowed are: api\.example\.org"):
        bench.check()
    bench.place = replace(bench.place, destinations=("local",))
    dear = {"usd_per_million_prompt_tokens": 1e6, "usd_per_million_completion_tokens": 1e6, "dated": "x"}
    bench.with_model(prices=model_config(prices=dear).prices, max_cost_usd=0.5)
    asked = len(bench.server.bodies)
    with pytest.raises(ProviderError, match="most often max_cost_usd"):
        bench.check()
    assert len(bench.server.bodies) == asked


@pytest.fixture
def project(bench, tmp_path, monkeypatch):
    """Write the files that the command reads, and go there."""
    monkeypatch.chdir(tmp_path)

    def write(path: str, value: object) -> None:
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        Path(path).write_text(yaml.safe_dump(value), encoding="utf-8")

    write("config/config.yaml", {"benchmarks": ["b"], "models": ["m"], "statistics": {"resamples": 400}})
    write(
        "config/benchmarks/b.yaml",
        {"title": "B", "kind": "pictures", "axis": "depth", "source": "x", "subjects": "phantom", "private": False},
    )
    write("config/models/m.yaml", bench.place.model.model_dump(mode="json", exclude_none=True))
    write("config/graders/rubric.yaml", {"title": "Rubric", "kind": "rubric"})
    Path("config/vocabulary").mkdir()
    shutil.copy(ROOT / "config" / "vocabulary" / "neurology.yaml", "config/vocabulary")
    write_records(Path("data/prompts/b.parquet"), Request, bench.requests, key=lambda row: row.item_id)
    write_records(Path("data/items/b.parquet"), Item, bench.items.values(), key=lambda row: row.item_id)
    write_records(Path("data/gold/b.parquet"), Gold, bench.gold.values(), key=lambda row: row.item_id)
    audit = Audit(benchmark="b", profile="pseudonymised", kind="phantom", state="passed", checks={}, covered={})
    write_audit(Path("data/deidentified/b/audit.json"), audit)
    bench.place = ProbeTarget.of("b", "m")
    bench.run()
    return bench


def test_the_command_says_it_in_plain_lines_and_by_its_exit_code(project, capsys):
    arguments = ["--probe", "m", "--benchmark", "b", "--configfiles", "config/config.yaml"]
    assert command.main(arguments) == 0
    assert "No change was shown" in capsys.readouterr().out
    project.server.chances = AFTER
    assert command.main(arguments) == 3
    assert "pass@1 of m on b changed by" in capsys.readouterr().out
    asked = len(project.server.bodies)
    assert command.main([*arguments, "--items", "3"]) in (0, 3)
    assert len(project.server.bodies) == asked + 3 * 3
    with pytest.raises(ConfigError, match="1 or more are possible, not 0"):
        command.main([*arguments, "--items", "0"])
    assert Path("data/ledger/b/drift/m.jsonl").is_file()
    with pytest.raises(SystemExit):
        command.parse_args(["--help"])
    assert "3: a change was detected" in capsys.readouterr().out


def test_the_command_asks_nothing_without_a_passed_audit_or_under_replay(project):
    arguments = ["--probe", "m", "--benchmark", "b"]
    asked = len(project.server.bodies)
    audit = Audit(benchmark="b", profile="pseudonymised", kind="patient", state="pending", checks={}, covered={})
    write_audit(Path("data/deidentified/b/audit.json"), audit)
    with pytest.raises(DeidentificationError):
        command.main(arguments)
    Path("replay.yaml").write_text("replay: true\n", encoding="utf-8")
    with pytest.raises(ConfigError, match="allows no calls"):
        command.main([*arguments, "--configfiles", "replay.yaml"])
    assert len(project.server.bodies) == asked
