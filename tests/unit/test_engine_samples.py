"""How the engine hands samples to a backend: together where it takes several, each once, and never lost by somebody else's error."""

from __future__ import annotations

import asyncio

import pytest

from models_fixtures import model_config, picture, request
from neuralmedbench.errors import DataError
from neuralmedbench.models import engine
from neuralmedbench.models.engine import answer_requests
from neuralmedbench.models.ledgers.ledger import read_ledger
from neuralmedbench.models.protocol import Answer, Call
from neuralmedbench.models.registry import Opened
from neuralmedbench.records.requests import RequestTurn


class Backend:
    """A backend that counts; its answers say which sample they are."""

    def __init__(self, *, several: bool, in_flight: int) -> None:
        self.several, self.in_flight = several, in_flight
        self.calls: list[Call] = []
        self.now = self.most = 0

    async def answer(self, call: Call) -> tuple[Answer, ...]:
        self.calls.append(call)
        self.now += 1
        self.most = max(self.most, self.now)
        await asyncio.sleep(0.01)
        self.now -= 1
        words = call.messages[-1].text
        return tuple(
            Answer(f"{words} {repeat}", prompt_tokens=0 if place else 100, completion_tokens=0 if place else 7)
            for place, repeat in enumerate(call.repeats)
        )

    def stop(self) -> None:
        pass

    async def close(self) -> None:
        pass


@pytest.fixture
def ask(monkeypatch, tmp_path):
    """Give a function that asks a backend."""

    def asking(backend, requests, **changes):
        monkeypatch.setattr(engine, "open_backend", lambda *_: Opened(backend))
        return answer_requests(
            requests,
            model_config(backend="transformers", id="data/weights/m", **changes),
            name="m",
            ledger=tmp_path / "m.jsonl",
            destinations=("local",),
            max_failed_fraction=None,
            root=tmp_path,
        )

    return asking


def test_a_backend_that_takes_several_samples_is_asked_once_for_a_conversation(ask):
    backend = Backend(several=True, in_flight=4)
    rows = ask(backend, [request("a", samples=3), request("b", samples=3)])
    assert sorted(call.repeats for call in backend.calls) == [(0, 1, 2), (0, 1, 2)]
    assert [row.text for row in rows] == [f"What is it? ({item}) {repeat}" for item in "ab" for repeat in range(3)]
    assert sum(row.attempts for row in rows) == len(backend.calls)
    assert sum(row.prompt_tokens for row in rows) == 200


def test_only_the_samples_that_are_missing_are_asked_for(ask, tmp_path):
    whole = ask(Backend(several=True, in_flight=4), [request("a", samples=4)])
    lines = (tmp_path / "m.jsonl").read_text().splitlines(keepends=True)
    (tmp_path / "m.jsonl").write_text("".join([lines[0], lines[3]]))
    again = Backend(several=True, in_flight=4)
    rows = ask(again, [request("a", samples=4)])
    assert [call.repeats for call in again.calls] == [(1, 2)]
    assert [row.text for row in rows] == [row.text for row in whole]


def test_the_later_turns_of_a_dialogue_are_calls_of_their_own(ask):
    """After the first answer every sample has another history."""
    backend = Backend(several=True, in_flight=4)
    rows = ask(backend, [request("a", RequestTurn(text="First."), RequestTurn(text="Second."), samples=2)])
    assert sorted(call.repeats for call in backend.calls) == [(0,), (0, 1), (1,)]
    assert [row.turns for row in rows] == [(f"First. {number}", f"Second. {number}") for number in range(2)]


def test_no_more_calls_are_under_way_than_the_backend_takes(ask):
    backend = Backend(several=False, in_flight=3)
    rows = ask(backend, [request(f"i{number}", samples=2) for number in range(10)])
    assert (len(rows), len(backend.calls), backend.most) == (20, 20, 3)


def test_answers_that_are_under_way_are_kept_when_a_picture_is_not_the_one_of_the_audit(ask, tmp_path):
    """They were paid for."""
    wrong = RequestTurn(text="Look.", images=(picture(tmp_path, 1),))
    (tmp_path / wrong.images[0].path).write_bytes(b"another picture")
    backend = Backend(several=False, in_flight=4)
    with pytest.raises(DataError, match="not the picture that the prompt was made with"):
        ask(backend, [request("a"), request("b"), request("c", wrong), *(request(f"d{number}") for number in range(20))])
    kept = {entry.item_id for entry in read_ledger(tmp_path / "m.jsonl").values()}
    assert {"b/a", "b/b"} <= kept
    assert len(kept) == len(backend.calls) < 10


@pytest.mark.parametrize(
    ("limit", "expected"),
    [({}, 0), ({"longest_side_px": 4}, 1), ({"longest_side_px": 8}, 0), ({"shortest_side_px": 7}, 1), ({"shortest_side_px": 8}, 0)],
)
def test_pictures_that_the_provider_shrinks_are_counted(ask, tmp_path, limit, expected):
    shown = RequestTurn(text="Look.", images=(picture(tmp_path, 1),))  # 8 x 8
    changes = {"provider_downscale": limit} if limit else {}
    (row,) = ask(Backend(several=False, in_flight=1), [request("a", shown)], **changes)
    assert (row.images_sent, row.images_downscaled) == (1, expected)
