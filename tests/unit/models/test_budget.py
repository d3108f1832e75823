"""Spending caps hold over processes, runs and benchmarks, and estimates are never too low."""

from __future__ import annotations

import asyncio
import json
import math
import multiprocessing
import os
import re
import signal
import struct
from importlib.util import find_spec
from multiprocessing.connection import Connection
from multiprocessing.context import ForkProcess
from pathlib import Path

import pytest
import yaml

from fixtures.models import model_config
from neuralmedbench.config.model import ModelConfig
from neuralmedbench.errors import ConfigError
from neuralmedbench.models.budget import NANO, Budget, SpendTotals, account_of, check_paid, read_spend_log
from neuralmedbench.models.conversation import PromptMessage
from neuralmedbench.models.token_estimates import Estimator, text_tokens_at_most
from neuralmedbench.records.requests import RequestImage
from neuralmedbench.runtime.append_log import read_log

pytestmark = pytest.mark.slow

PRICES = {"usd_per_million_prompt_tokens": 0, "usd_per_million_completion_tokens": 1000, "dated": "2026-11-22"}
DIME = {"prices": PRICES, "max_tokens": 100, "max_cost_usd": 5}
"""A model whose answers cost at most 0.1 USD each."""
SAID = (PromptMessage("user", "What is it?"),)
FORK = multiprocessing.get_context("fork")
"""A process of its own costs a second of imports; the caps hold between forks as between any two processes."""


def spend(pipe: Connection, book: Path, job: tuple[str, str, str, str], dies_after: int = 0) -> None:
    """Spend as a job (name, run, cap of the run, real price) until it is refused, once it is told to begin; or die after so many calls."""
    name, run, run_cap, settled = job
    budget = Budget(model_config(name, **DIME), log=book, run=run, run_cap=float(run_cap) if run_cap else None)
    pipe.send("ready")
    pipe.recv()
    made = 0
    while (reserved := budget.reserve(SAID)) is not None:
        made += 1
        if made == dies_after:
            os.kill(os.getpid(), signal.SIGKILL)
        if settled:
            budget.settle(reserved, float(settled))
    pipe.send((made, budget.why))


def start_spending(book: Path, job: tuple[str, str, str, str], dies_after: int = 0) -> tuple[Connection, ForkProcess]:
    """Start a process that spends, and wait until it is ready."""
    here, there = FORK.Pipe()
    process = FORK.Process(target=spend, args=(there, book, job, dies_after))
    process.start()
    assert here.poll(60)
    assert here.recv() == "ready"
    return here, process


def spenders(book: Path, *jobs: tuple[str, str, str, str]) -> list[tuple[int, str]]:
    """Let jobs (name, run, cap of the run, real price) spend in parallel until each is refused; return calls made and the reason."""
    started = [start_spending(book, job) for job in jobs]
    for pipe, _ in started:
        pipe.send("go")
    assert all(pipe.poll(60) for pipe, _ in started)
    ended = [pipe.recv() for pipe, _ in started]
    for _, process in started:
        process.join(60)
    return ended


def highest(book: Path) -> tuple[float, float]:
    """Return the highest sum that an account and a run ever had in a spending log."""
    spending, most = SpendTotals(), [0, 0]
    for record in read_log(book):
        spending.add(record)
        most = [max(most[0], *spending.by_account.values()), max(most[1], *spending.by_run.values())]
    return most[0] / NANO, most[1] / NANO


def budget_of(book: Path | None, run: str = "r", run_cap: float | None = None, **changes: object) -> Budget:
    return Budget(model_config(**{**DIME, **changes}), log=book, run=run, run_cap=run_cap)


def test_three_jobs_of_one_model_make_exactly_the_calls_that_its_cap_allows(tmp_path):
    """The worst bug here: three benchmarks of one run that each apply the cap on their own spend it three times."""
    book = tmp_path / "money.jsonl"
    ended = spenders(book, *[("m", "r", "", "")] * 3)
    assert (sum(made for made, _ in ended), {why for _, why in ended}) == (50, {"max_cost_usd"})
    assert highest(book)[0] == 5.0
    assert spenders(book, ("m", "another run", "", "")) == [(0, "max_cost_usd")]


def test_jobs_of_three_models_make_exactly_the_calls_that_the_cap_of_the_run_allows(tmp_path):
    book = tmp_path / "money.jsonl"
    ended = spenders(book, *[(name, "r", "2.5", "") for name in ("a", "b", "grader")])
    assert (sum(made for made, _ in ended), {why for _, why in ended}) == (25, {"max_run_cost_usd"})
    assert highest(book)[1] == 2.5


def test_calls_that_cost_less_than_was_set_aside_leave_room_and_the_cap_is_never_passed(tmp_path):
    book = tmp_path / "money.jsonl"
    ended = spenders(book, *[("m", "r", "", "0.04")] * 3)
    assert 120 <= sum(made for made, _ in ended) <= 123
    assert 4.8 <= highest(book)[0] <= 5.0
    assert read_spend_log(book).by_account[account_of(model_config())] == sum(made for made, _ in ended) * 0.04 * NANO


def test_the_cap_of_a_run_begins_anew_with_the_next_run_and_that_of_a_model_does_not(tmp_path):
    book = tmp_path / "money.jsonl"
    first = budget_of(book, "r1", 0.2)
    assert [first.reserve(SAID) is not None for _ in range(3)] == [True, True, False]
    assert first.why == "max_run_cost_usd"
    second = budget_of(book, "r2", 9.9, max_cost_usd=0.3)
    assert [second.reserve(SAID) is not None for _ in range(2)] == [True, False]
    assert second.why == "max_cost_usd"


def test_another_revision_has_an_account_of_its_own(tmp_path):
    book = tmp_path / "money.jsonl"
    while budget_of(book).reserve(SAID):
        pass
    assert budget_of(book, revision="2").reserve(SAID)


def test_what_a_killed_process_had_set_aside_stays_spent(tmp_path):
    book = tmp_path / "money.jsonl"
    pipe, process = start_spending(book, ("m", "r", "", ""), dies_after=7)
    pipe.send("go")
    process.join(60)
    assert process.exitcode == -signal.SIGKILL
    assert read_spend_log(book).by_account.total() == 0.7 * NANO
    assert spenders(book, ("m", "r2", "", "")) == [(43, "max_cost_usd")]


def test_a_reservation_of_which_half_a_line_was_written_was_never_given(tmp_path):
    book = tmp_path / "money.jsonl"
    budget_of(book).reserve(SAID)
    book.write_bytes(book.read_bytes()[:-9])
    later = budget_of(book)
    assert sum(later.reserve(SAID) is not None for _ in range(60)) == 50


def test_a_model_that_costs_nothing_opens_no_book(tmp_path):
    free = {**PRICES, "usd_per_million_completion_tokens": 0}
    for changes in ({"prices": None}, {"prices": free, "max_cost_usd": 0}):
        other = budget_of(tmp_path / "folder" / "money.jsonl", run_cap=0, **changes)
        reserved = other.reserve(SAID)
        other.settle(reserved, None)
        assert reserved.tokens > 100
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("price", [-3000.0, math.nan, math.inf, -math.inf])
def test_a_call_of_an_impossible_price_costs_what_was_set_aside(tmp_path, price):
    book = tmp_path / "money.jsonl"
    mine = budget_of(book)
    mine.settle(mine.reserve(SAID), price)
    assert read_spend_log(book).by_account.total() == 0.1 * NANO
    assert len(read_log(book)) == 1


def test_a_book_in_which_a_call_gave_money_back_has_no_more_room_than_its_cap(tmp_path):
    """Earlier versions logged negative usage, which left 120,000 USD for every later run."""
    book = tmp_path / "money.jsonl"
    mine = budget_of(book)
    reserved = mine.reserve(SAID)
    with book.open("a") as file:
        file.write(json.dumps({"id": reserved.id, "usd": -3000.0}) + "\n")
    assert read_spend_log(book).by_account.total() == 0.1 * NANO
    later = budget_of(book, max_cost_usd=0.2)
    assert later.reserve(SAID) is not None
    assert later.reserve(SAID) is None


def test_several_samples_of_one_call_are_several_answers_and_one_prompt():
    priced = {**PRICES, "usd_per_million_prompt_tokens": 1}
    one, five = (budget_of(None, prices=priced).reserve(SAID, samples) for samples in (1, 5))
    assert five.tokens - one.tokens == 400
    assert five.nano_usd - one.nano_usd == 0.4 * NANO
    assert budget_of(None, parameters={"n": 3}).reserve(SAID).nano_usd == 0.3 * NANO


def test_an_attempt_that_may_have_been_charged_is_paid_for_beside_the_next_one(tmp_path):
    book = tmp_path / "money.jsonl"
    tight = budget_of(book, max_cost_usd=0.2)
    reserved = tight.reserve(SAID)
    assert [tight.reserve_retry(reserved), tight.reserve_retry(reserved)] == [True, False]
    tight.settle(reserved, 0.01)
    assert read_spend_log(book).by_account.total() == round(0.11 * NANO)


def test_a_call_waits_for_what_those_under_way_leave_before_it_is_refused(tmp_path):
    async def run() -> list[bool]:
        tight = budget_of(tmp_path / "money.jsonl", max_cost_usd=0.25)

        async def call() -> bool:
            if (reserved := await tight.reserve_in_turn(SAID)) is None:
                return False
            await asyncio.sleep(0)
            tight.settle(reserved, 0.04)
            return True

        return await asyncio.gather(*(call() for _ in range(8)))

    made = asyncio.run(run())
    assert (made.count(True), made.count(False)) == (4, 4)  # 4 x 0.04 leave 0.09, which is less than one call may cost
    assert highest(tmp_path / "money.jsonl")[0] <= 0.25


def test_on_a_full_disk_nothing_is_asked_and_what_was_asked_stays_booked(tmp_path, monkeypatch):
    book = tmp_path / "money.jsonl"
    mine = budget_of(book)
    reserved = mine.reserve(SAID)

    def full(*_: object) -> int:
        raise OSError(28, os.strerror(28))

    monkeypatch.setattr(os, "write", full)
    mine.settle(reserved, 0.01)
    with pytest.raises(OSError, match="No space"):
        mine.reserve(SAID)
    monkeypatch.undo()
    assert read_spend_log(book).by_account.total() == 0.1 * NANO


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"api_key_env": "K"}, "set max_cost_usd"),
        ({"prices": PRICES}, "set max_cost_usd"),
        ({"api_key_env": "K", "max_cost_usd": 1}, "without prices"),
        ({"prices": PRICES, "max_cost_usd": 1, "max_tokens": None}, "any length"),
    ],
)
def test_a_refusal_names_the_lines_of_the_yaml_that_end_it(changes, message):
    with pytest.raises(ConfigError, match=message) as refused:
        check_paid(model_config(**changes))
    lines = re.findall(r"`([^`]+)`", str(refused.value))
    assert lines
    for line in lines:
        ModelConfig.model_validate({**model_config(**changes).model_dump(), **yaml.safe_load(line)})
    check_paid(model_config(**{"max_cost_usd": 1, "prices": PRICES, **changes, **yaml.safe_load(lines[-1])} | {"prices": PRICES}))


def test_a_paid_model_whose_answers_are_limited_under_another_name_keeps_its_cap():
    changes = {**DIME, "max_tokens": None, "parameters": {"max_completion_tokens": 300}}
    check_paid(model_config(**changes))
    assert budget_of(None, **changes).reserve(SAID).nano_usd == 0.3 * NANO


TEXTS = {
    "English": "The patient is a 54-year-old man with progressive gait difficulty and urinary urgency. ",
    "shorthand": "T2/FLAIR hyperintensity, L MCA; DWI b1000+; ADC 0.42e-3; NIHSS 14; CHA2DS2-VASc 5 ",
    "Chinese": "患者男性,五十四岁,进行性步态障碍、尿急和轻度认知减退十八个月。",
    "Japanese": "左中大脳動脈領域に急性期脳梗塞を認める。",
    "Korean": "좌측 중대뇌동맥 영역의 급성기 뇌경색이 관찰된다.",
    "Arabic": "يظهر التصوير بالرنين المغناطيسي احتشاءً حادًا",
    "rare characters": "".join(map(chr, range(0x3400, 0x3500))),
    "emoji": "".join(map(chr, range(0x1F300, 0x1F380))),
    "noise": "".join(chr(33 + number * 37 % 94) for number in range(300)),
}


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_no_text_has_more_tokens_than_are_set_aside(text, monkeypatch):
    tokenizers = Path(find_spec("litellm").origin).parent / "litellm_core_utils" / "tokenizers"  # files that need no network
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(tokenizers))
    tiktoken = pytest.importorskip("tiktoken")
    assert len(tiktoken.get_encoding("cl100k_base").encode(text, disallowed_special=())) <= text_tokens_at_most(text)


def tiles(width: int, height: int) -> int:
    """Count tiles of 512 px by OpenAI's rule: scale into 2048 px, then the shorter side to 768 px."""
    factor = min(1, 2048 / max(width, height))
    factor *= 768 / min(width * factor, height * factor)
    return math.ceil(width * factor / 512) * math.ceil(height * factor / 512)


PUBLISHED = {
    "openai tiles": lambda w, h: 85 + 170 * min(8, tiles(w, h)),
    "openai patches": lambda w, h: 2.46 * math.ceil(w / 32) * math.ceil(h / 32),
    "anthropic area": lambda w, h: w * h / 750,
    "anthropic patches": lambda w, h: math.ceil(w / 28) * math.ceil(h / 28),
    "google tiles": lambda w, h: 258 * math.ceil(w / 768) * math.ceil(h / 768),
    "google ultra high": lambda w, h: 2240,
    "qwen": lambda w, h: (math.ceil(w / 28) + 1) * (math.ceil(h / 28) + 1),
    "pixtral": lambda w, h: math.ceil(w / 16) * math.ceil(h / 16),
    "internvl": lambda w, h: 13 * 256,
}


def picture(root: Path, width: int, height: int) -> RequestImage:
    path = root / f"{width}x{height}.png"
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + struct.pack(">I4sII", 13, b"IHDR", width, height))
    return RequestImage(path=path.name, sha256=path.stem, label="")


@pytest.mark.parametrize("rule", PUBLISHED)
@pytest.mark.parametrize("size", [(64, 64), (512, 512), (1024, 768), (2048, 2048), (3000, 500)])
def test_no_picture_has_more_tokens_than_are_set_aside(tmp_path, rule, size):
    said = (PromptMessage("user", "", (picture(tmp_path, *size),)),)
    assert PUBLISHED[rule](*size) <= Estimator(model_config(), tmp_path).prompt_at_most(said)


def test_the_model_that_counts_pictures_33_times_has_a_rule_of_its_own(tmp_path):
    said = (PromptMessage("user", "", (picture(tmp_path, 2048, 2048),)),)
    assert Estimator(model_config(id="openai/gpt-4o-mini"), tmp_path).prompt_at_most(said) >= 2833 + 8 * 5667


def test_a_picture_that_the_provider_shrinks_counts_as_shrunk_and_one_that_is_not_there_as_large(tmp_path):
    large, gone = picture(tmp_path, 4096, 2048), RequestImage(path="gone.png", sha256="g", label="")
    at_most = [
        Estimator(model_config(provider_downscale=limit), tmp_path).prompt_at_most((PromptMessage("user", "", (image,)),))
        for image, limit in ((large, None), (large, {"longest_side_px": 1024}), (gone, None))
    ]
    assert at_most[0] > at_most[2] > at_most[1] > 3400
