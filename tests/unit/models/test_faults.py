"""Every failure of a call, with the exact number of calls: nothing is lost, nothing is paid for twice.

For killed processes see `test_ended_processes.py`, for a full disk `test_storage.py`.
"""

from __future__ import annotations

import random
import socket
import ssl
import time
from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

import pytest

from fixtures.models import WAIT_S, model_config, picture, request, running_server
from neuralmedbench.errors import ProviderError
from neuralmedbench.models import calls, causes, rate_limits, retry
from neuralmedbench.models.console import log_served_models
from neuralmedbench.models.engine import answer_requests
from neuralmedbench.models.ledger import read_ledger
from neuralmedbench.models.model_run import ModelRun
from neuralmedbench.records.requests import RequestTurn
from neuralmedbench.records.responses import MISSING_STATES, ResponseState

pytestmark = pytest.mark.slow

ATTEMPTS = 3


@pytest.fixture
def server():
    with running_server() as running:
        yield running


@pytest.fixture
def waits(monkeypatch):
    """Waits between attempts: recorded, and skipped."""
    found = []

    async def pause(seconds, stop):
        found.append(seconds)

    monkeypatch.setattr(retry, "interruptible_sleep", pause)
    # the pause of the group is as long; see `test_rate_limits.py`
    monkeypatch.setattr(rate_limits.RateLimits, "pause", lambda *_: None)
    return found


@pytest.fixture
def ask(server, waits, tmp_path):
    """Return a function that asks the server, with one ledger for the whole test."""

    def asking(requests, **changes):
        destinations = changes.pop("destinations", ("local",))
        given = {"api_base": server.address, "max_attempts": ATTEMPTS, "timeout_s": 30, "concurrency": 1, "seed": 1} | changes
        return answer_requests(
            requests,
            ModelRun(
                model_config(**given), ledger=tmp_path / "m.jsonl", destinations=destinations, max_failed_fraction=None, root=tmp_path
            ),
        )

    asking.ledger = tmp_path / "m.jsonl"
    return asking


class Fault(NamedTuple):
    """A server's behaviour, and its expected effect.

    The recorded error; and whether the call is retried, may have been charged all the same, takes until the deadline of an attempt, or
    shows that all other calls would fail as well, so that none is made.
    """

    mode: str
    error: str = ""
    again: bool = True
    perhaps_paid: bool = False
    slow: bool = False
    of_all: bool = False


FAULTS = [
    Fault("408", "(408)"),
    Fault("409", "(409)"),
    Fault("429", "(429)"),
    Fault("429-bare", "(429)"),
    Fault("500", "(500)"),
    Fault("502", "(502)"),
    Fault("503", "(503)"),
    Fault("529", "(529)"),
    Fault("400", "(400)", again=False),
    Fault("401", "(401)", again=False, of_all=True),
    Fault("402", "(402)", again=False, of_all=True),
    Fault("403", "(403)", again=False),
    Fault("404", "(404)", again=False, of_all=True),
    Fault("422", "(422)", again=False),
    Fault("hang", "Timeout (no status)", perhaps_paid=True, slow=True),
    Fault("trickle", "Timeout (no status)", perhaps_paid=True, slow=True),
    Fault("cut", perhaps_paid=True),
    Fault("cut-body", perhaps_paid=True),
    Fault("html", perhaps_paid=True),
    Fault("half-json", perhaps_paid=True),
    Fault("200", causes.ERROR_REPLY.words, perhaps_paid=True),
    Fault("other-json", causes.NO_CHOICES.words, perhaps_paid=True),
    Fault("no-choices", causes.NO_CHOICES.words, perhaps_paid=True),
]
ONE_DOLLAR_A_CALL = {
    "prices": {"usd_per_million_prompt_tokens": 0, "usd_per_million_completion_tokens": 1000, "dated": "x"},
    "max_tokens": 1000,
}


def deadline(fault):
    """Long enough for a call on a busy machine, short enough for a test, and needed twice at most."""
    return {"timeout_s": 1.5, "max_attempts": 2} if fault.slow else {}


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.mode)
def test_a_call_that_fails_is_missing_and_asked_for_by_the_next_run_alone(server, ask, fault):
    (good,) = ask([request("good")])
    server.modes = [fault.mode]
    tried = 1 if not fault.again else 2 if fault.slow else ATTEMPTS
    rows = ask([request("good"), request("bad")], **deadline(fault))
    assert [(row.item_id, row.state, row.attempts) for row in rows] == [
        ("b/bad", ResponseState.FAILED, tried),
        ("b/good", ResponseState.OK, 1),
    ]
    bad = rows[0]
    assert (bad.text, bad.turns, bad.call_keys, bad.cost_usd) == ("", (), (), None)
    assert bad.state in MISSING_STATES
    assert fault.error in bad.error
    assert "neurologist" not in bad.error
    assert len(server.bodies) == 1 + tried
    assert len(read_ledger(ask.ledger)) == 1
    server.modes = ["ok"]
    rows = ask([request("good"), request("bad")])
    assert [row.state for row in rows] == [ResponseState.OK, ResponseState.OK]
    assert rows[1] == good
    assert len(server.bodies) == 2 + tried
    assert ask([request("good"), request("bad")]) == rows
    assert Counter(server.answered) == {"What is it? (good)": 1, "What is it? (bad)": 1}


@pytest.mark.parametrize("fault", [fault for fault in FAULTS if fault.again], ids=lambda fault: fault.mode)
def test_a_failure_that_passes_costs_one_more_call(server, ask, waits, fault):
    server.modes = [fault.mode, "ok"]
    (row,) = ask([request("i")], **deadline(fault))
    assert (row.state, row.attempts, len(server.bodies), len(waits)) == (ResponseState.OK, 2, 2, 1)
    assert len(server.answered) == 1


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.mode)
def test_a_call_that_failed_counts_against_the_cap_only_if_it_may_have_been_charged(server, ask, fault):
    server.modes = [fault.mode]
    rows = ask([request("i0"), request("i1")], max_cost_usd=1.5, **deadline(fault) | {"max_attempts": 1}, **ONE_DOLLAR_A_CALL)
    second = ResponseState.OVER_BUDGET if fault.perhaps_paid else ResponseState.FAILED
    sent = 0 if fault.perhaps_paid or fault.of_all else 1
    assert [(row.state, row.attempts) for row in rows] == [(ResponseState.FAILED, 1), (second, sent)]
    assert len(server.bodies) == 1 + sent
    assert rows[1].error == ("max_cost_usd" if fault.perhaps_paid else rows[0].error)


def test_the_wait_grows_and_what_the_provider_asks_for_is_kept(server, ask, waits):
    server.modes = ["429-bare", "429-bare", "429", "429-date", "429-bare", "ok"]
    (row,) = ask([request("i")], max_attempts=6)
    assert (row.state, row.attempts) == (ResponseState.OK, 6)
    assert 0.25 <= waits[0] <= 0.5 <= waits[1] <= 1.0 <= waits[2] <= 2.0
    assert WAIT_S - 2 <= waits[3] <= WAIT_S
    assert 4.0 <= waits[4] <= 8.0


@pytest.mark.parametrize(
    ("mode", "state", "text"),
    [
        ("truncated", ResponseState.TRUNCATED, "answer"),
        ("filtered", ResponseState.REFUSED, ""),
        ("refusal", ResponseState.REFUSED, "I cannot help with that."),
        ("empty", ResponseState.REFUSED, ""),
        ("surrogate", ResponseState.OK, "half ?"),
    ],
)
def test_what_the_model_did_is_an_answer_and_paid_for_once(server, ask, mode, state, text):
    server.modes = [mode]
    (row,) = rows = ask([request("i")])
    assert (row.state, row.attempts) == (state, 1)
    assert row.text.startswith(text)
    assert ask([request("i")]) == rows
    assert len(server.bodies) == len(server.answered) == 1


def test_a_burst_of_500_costs_as_many_calls_as_it_has_and_no_answer(server, ask):
    server.modes = ["500"] * 12 + ["ok"]
    rows = ask([request(f"i{number}") for number in range(20)], concurrency=8, max_attempts=13)
    assert {row.state for row in rows} == {ResponseState.OK}
    assert sum(row.attempts for row in rows) == len(server.bodies) == 12 + 20
    assert set(Counter(server.answered).values()) == {1}


def test_a_storm_of_all_faults_ends_with_every_answer_paid_for_once(server, ask):
    choice, requests = random.Random(3), [request(f"i{number}", samples=2) for number in range(20)]
    modes = [fault.mode for fault in FAULTS if not fault.slow and not fault.of_all]
    server.modes = [choice.choice([*modes, *["ok"] * 10]) for _ in range(60)] + ["ok"]
    failed = []
    while not failed or failed[-1]:
        rows = ask(requests, concurrency=6)
        failed.append(sum(row.state is ResponseState.FAILED for row in rows))
        assert len(read_ledger(ask.ledger)) == len(server.answered) == 40 - failed[-1]
    assert 1 < len(failed) < 5
    assert Counter(server.answered) == {f"What is it? (i{number})": 2 for number in range(20)}


def test_a_dialogue_that_breaks_off_keeps_its_turns_and_goes_on_with_the_next(server, ask):
    turns = tuple(RequestTurn(text=f"Turn {number}.") for number in range(3))
    server.modes = ["ok", "ok", "cut"]
    (row,) = ask([request("i", *turns)])
    assert (row.state, len(row.turns), row.text, row.attempts) == (ResponseState.FAILED, 2, "", 2 + ATTEMPTS)
    server.modes = ["ok"]
    (whole,) = ask([request("i", *turns)])
    assert (whole.state, whole.turns[:2]) == (ResponseState.OK, row.turns)
    assert Counter(server.answered) == {"Turn 0.": 1, "Turn 1.": 1, "Turn 2.": 1}


def test_samples_that_came_before_a_failure_are_not_paid_for_again(server, ask):
    """The server returns one sample of several (`n`), and fails when asked for the rest."""
    server.modes = ["ok", "500", "ok"]
    rows = ask([request("i", samples=3)], native_n=True)
    assert [row.state for row in rows] == [ResponseState.OK] * 3
    assert (len(server.bodies), len(server.answered), len(read_ledger(ask.ledger))) == (4, 3, 3)
    assert [body.get("n") for body in server.bodies] == [3, 2, 2, None]


def test_samples_that_came_before_a_failure_for_good_are_kept_and_booked(server, ask):
    server.modes = ["ok", "400"]
    rows = ask([request("i", samples=3)], native_n=True, max_cost_usd=9, **ONE_DOLLAR_A_CALL)
    assert [row.state for row in rows] == [ResponseState.OK, ResponseState.FAILED, ResponseState.FAILED]
    assert [row.attempts for row in rows] == [1, 1, 0]
    assert len(server.bodies) == 2
    assert set(read_ledger(ask.ledger)) == set(rows[0].call_keys)
    server.modes = ["ok"]
    again = ask([request("i", samples=3)], native_n=True, max_cost_usd=9, **ONE_DOLLAR_A_CALL)
    assert [row.state for row in again] == [ResponseState.OK] * 3
    assert again[0] == rows[0]


def test_the_attempts_of_a_failed_call_of_several_samples_are_counted_once(server, ask):
    server.modes = ["400"]
    rows = ask([request("i", samples=3)], native_n=True)
    assert sum(row.attempts for row in rows) == len(server.bodies) == 1


def test_a_failed_call_counts_what_it_sent(server, ask, tmp_path):
    server.modes = ["400"]
    asked = request("i", RequestTurn(text="Look.", images=(picture(tmp_path, 0), picture(tmp_path, 1))))
    (row,) = ask([asked])
    words = ["You are a neurologist.", "Look.", "Picture 1: FLAIR", "Picture 2: FLAIR"]
    assert (row.images_sent, row.characters_sent) == (2, len("".join(words)))
    server.modes = ["ok"]
    answered = ask([asked])[0]
    assert (answered.characters_sent, answered.destination, answered.called_on) == (row.characters_sent, row.destination, row.called_on)
    assert (row.destination, row.called_on) == ("local", datetime.now(UTC).date().isoformat())


def test_a_failed_call_of_two_requests_that_say_the_same_is_counted_once(server, ask):
    server.modes = ["500"]
    rows = ask([request("i"), request("i", arm="no_image")], concurrency=2)
    assert [row.state for row in rows] == [ResponseState.FAILED] * 2
    assert sum(row.attempts for row in rows) == len(server.bodies) == ATTEMPTS


def test_a_served_model_that_changes_within_a_run_stands_with_each_answer_and_in_the_log(server, ask, capsys):
    server.modes = ["ok", "ok", "other"]
    rows = ask([request(f"i{number}") for number in range(3)])
    assert [(row.served_model, row.fingerprint) for row in rows] == [("m-2026-01", "fp-7")] * 2 + [("m-2026-02", "fp-8")]
    log_served_models("m", rows)
    assert "m: served by 2 models under one name: m-2026-01, fingerprint fp-7 (2 answers, " in capsys.readouterr().err


@pytest.fixture
def nobody():
    """The address of a port that is reserved and not listening."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{taken.getsockname()[1]}/v1"


def test_a_server_that_nobody_runs_is_a_failure_after_all_attempts_and_costs_nothing(ask, waits, nobody):
    (row,) = ask([request("i")], api_base=nobody)
    assert (row.state, row.attempts, len(waits)) == (ResponseState.FAILED, ATTEMPTS, ATTEMPTS - 1)
    assert (row.destination, row.called_on, row.images_sent, row.characters_sent) == ("", "", 0, 0)
    assert not read_ledger(ask.ledger)
    rows = ask([request("i0"), request("i1")], api_base=nobody, max_cost_usd=1.5, max_attempts=1, **ONE_DOLLAR_A_CALL)
    assert [row.state for row in rows] == [ResponseState.FAILED, ResponseState.FAILED]


def test_a_server_that_nobody_runs_ends_the_run_after_its_first_calls_and_costs_nothing(nobody, tmp_path, capsys):
    requests = [request(f"i{number}") for number in range(300)]
    model = model_config(api_base=nobody, max_attempts=20, concurrency=8)
    run = ModelRun(model, ledger=tmp_path / "m.jsonl", destinations=("local",), max_failed_fraction=0.05)
    begun = time.monotonic()
    with pytest.raises(ProviderError) as stopped:
        answer_requests(requests, run)
    assert time.monotonic() - begun < 6  # a second of attempts, the rest a busy machine
    assert str(stopped.value) == (
        f"model m: nothing answers at {nobody.removesuffix('/v1')} (ConnectionRefused (no status)); start the server, or correct `api_base` in its"
        " yaml, and run the same command again: nothing was sent, and all 300 answers are still asked for"
    )
    said = capsys.readouterr().err
    assert said.count("local cannot be reached; start the server or correct `api_base`; no more calls are made") == 1
    assert not read_ledger(run.ledger)
    assert not list(tmp_path.glob(".*.failed"))
    with running_server() as server:  # it is started, and the same command asks for everything
        rows = answer_requests(requests, replace(run, model=model_config(api_base=server.address, concurrency=8)))
    assert (len(rows), len(server.answered)) == (300, 300)


def test_a_host_whose_name_nobody_knows_is_named_as_the_cause(ask):
    (row,) = ask([request("i")], api_base="https://nobody.invalid/v1", destinations=("nobody.invalid",))
    assert row.error == "UnknownHost (no status)"


def test_a_server_that_was_reached_may_be_away_for_longer(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(calls.time, "monotonic", lambda: now[0])
    fresh, known, absent = (calls.Reachability(900) for _ in range(3))
    known.note(sent=True)
    for reach in (fresh, known, absent):
        reach.note(sent=False, nobody=reach is not fresh)
    now[0] = 2
    assert (fresh.lost, known.lost, absent.lost) == (False, False, True)
    now[0] = 60
    assert (fresh.lost, known.lost) == (True, False)
    now[0] = 1000
    assert known.lost
    known.note(sent=True)
    assert not known.lost


def test_retries_are_counted_by_cause_in_the_log(server, ask, capsys):
    server.modes = ["429", "ok", "500", "429", "ok"]
    ask([request("a"), request("b")])
    said = capsys.readouterr().err
    assert "m: 3 retries: 2 after RateLimitError (429), 1 after InternalServerError (500)" in said
    assert "ok 2, 3 retried" in said
    ask([request("a")])
    assert "retr" not in capsys.readouterr().err


@pytest.fixture(scope="module")
def self_signed(tmp_path_factory):
    """A self-signed certificate."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key, name = ec.generate_private_key(ec.SECP256R1()), x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "127.0.0.1")])
    now = datetime.now(UTC)
    made = x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key()).serial_number(1)
    made = made.not_valid_before(now - timedelta(days=1)).not_valid_after(now + timedelta(days=1)).sign(key, hashes.SHA256())
    path = tmp_path_factory.mktemp("tls") / "server.pem"
    private = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    path.write_bytes(private + made.public_bytes(serialization.Encoding.PEM))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(path)
    return context


@pytest.mark.parametrize("model_id", ["openai/m", "hosted_vllm/m", "mistral/m"])
@pytest.mark.parametrize("variables", [{}, {"SSL_VERIFY": "False"}], ids=["plain", "SSL_VERIFY=False"])
def test_a_host_whose_certificate_nobody_vouches_for_is_sent_nothing(ask, self_signed, monkeypatch, model_id, variables):
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    with running_server(tls=self_signed) as strange:
        rows = ask([request("i0"), request("i1")], api_base=strange.address, id=model_id, max_cost_usd=1.5, **ONE_DOLLAR_A_CALL)
        assert strange.bodies == []
    assert [(row.state, row.text, row.attempts) for row in rows] == [(ResponseState.FAILED, "", 1)] * 2
    assert not read_ledger(ask.ledger)
