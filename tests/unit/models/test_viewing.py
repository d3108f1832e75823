"""A model that looks through a scan: the pictures it is sent, what is repeated, and what is kept of it."""

from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from fixtures.models import model_config, request
from fixtures.viewing import BRIGHT_SLICE, VIEWER, Scripted, action, final, show, write_scan
from neuralmedbench.config.model import ModelConfig
from neuralmedbench.errors import DeidentificationError
from neuralmedbench.imaging.views import ViewService
from neuralmedbench.models import engine
from neuralmedbench.models.conversation import next_messages
from neuralmedbench.models.forecast import forecast_calls
from neuralmedbench.models.ledger import read_ledger
from neuralmedbench.models.model_run import ModelRun
from neuralmedbench.models.protocol import Call
from neuralmedbench.models.registry import BackendHandle
from neuralmedbench.models.replay import rebuild
from neuralmedbench.models.samples import SampleWalk
from neuralmedbench.prompts.coverage import check_view
from neuralmedbench.records.case import Audit
from neuralmedbench.records.requests import Request, RequestTurn
from neuralmedbench.records.responses import Response
from neuralmedbench.records.views import ViewRules, ViewScan

RULES = ViewRules(planes=("axial",), windows=("own", "dark"), zooms=(1, 2))


def looks(reply: Callable[[np.ndarray | None, int], str]) -> Scripted:
    """Give a model whose `reply` sees the last picture, or None, and the number of the call in its conversation."""

    def answer(call: Call) -> str:
        pictures = [np.asarray(Image.open(io.BytesIO(image.png))) for image in call.messages[-1].images]
        return reply(pictures[-1] if pictures else None, sum(message.role == "assistant" for message in call.messages))

    return Scripted(answer)


def scroll(picture: np.ndarray | None, number: int) -> str:
    """Look at every third slice, from the lowest, until something is bright."""
    bright = picture is not None and (picture > 200).any()
    return final("stroke") if bright else show("FLAIR", 3 * number + 3)


def at_once(_: np.ndarray | None, __: int) -> str:
    return final("stroke")


@pytest.fixture
def scan(tmp_path: Path) -> ViewScan:
    return write_scan(tmp_path)


@pytest.fixture
def model() -> ModelConfig:
    return model_config(api_base="http://127.0.0.1:9/v1", max_attempts=1)


def looking(scan: ViewScan) -> Request:
    viewer = replace(VIEWER, scans=(scan,), zooms=(1, 2))
    return replace(request("i1", RequestTurn(text="Look.")), strategy="viewer", viewer=viewer)


def service(root: Path, state: str = "passed", rules: ViewRules | None = RULES) -> ViewService:
    covered = {"1" * 64: "c1"}
    audit = Audit(benchmark="b", profile="pseudonymised", kind="patient", state=state, covered=covered, views=rules)
    return ViewService(lambda view: check_view(audit, view), root)


def ask(root: Path, scan: ViewScan, model: ModelConfig, backend: Scripted, monkeypatch: pytest.MonkeyPatch, **run: object) -> Response:
    monkeypatch.setattr(engine, "open_backend", lambda *_: BackendHandle(backend))
    settings = {"views": service(root), "ledger": root / "m.jsonl", "destinations": ("local",), "max_failed_fraction": 0, **run}
    (row,) = engine.answer_requests([looking(scan)], ModelRun(model, root=root, **settings))
    return row


def test_a_model_that_scrolls_gets_the_slices_that_it_asks_for(tmp_path, scan, model, monkeypatch) -> None:
    backend = looks(scroll)
    row = ask(tmp_path, scan, model, backend, monkeypatch)
    # slices 3, 6, 9, 12 and 15 (BRIGHT_SLICE), then the answer
    assert len(backend.calls) == BRIGHT_SLICE // 3 + 1
    assert (row.state, row.text, len(row.call_keys)) == ("ok", final("stroke"), 6)
    assert row.images_sent == 5
    last = backend.calls[-1].messages
    labels = [image.label for message in last for image in message.images]
    assert labels[-1] == "View 5: FLAIR, axial, slice 15 of 24, z = +70 mm"
    assert [message.text for message in last if message.role == "user"][1:] == [f"Views left: {left}." for left in (5, 4, 3, 2, 1)]
    # the pictures are those of the volume: the cube is bright and 5 pixels wide
    shown = np.asarray(Image.open(io.BytesIO(last[-1].images[0].png)))
    assert (shown.shape, (shown == 255).sum()) == ((40, 40), 25)


def test_a_model_that_answers_at_once_looks_at_nothing(tmp_path, scan, model, monkeypatch) -> None:
    backend = looks(at_once)
    row = ask(tmp_path, scan, model, backend, monkeypatch)
    assert (len(backend.calls), row.images_sent, row.text) == (1, 0, final("stroke"))


def test_a_replay_asks_nothing_and_cuts_equal_pictures(tmp_path, scan, model, monkeypatch) -> None:
    first = ask(tmp_path, scan, model, looks(scroll), monkeypatch)
    pictures = {path: path.read_bytes() for path in (tmp_path / "data/views").rglob("*.png")}
    assert len(pictures) == 5
    for path in pictures:
        path.unlink()
    backend = looks(at_once)
    for run in ({}, {"replay": True}):
        again = ask(tmp_path, scan, model, backend, monkeypatch, **run)
        assert (again.text, again.call_keys, again.turns) == (first.text, first.call_keys, first.turns)
    assert not backend.calls
    assert {path: path.read_bytes() for path in (tmp_path / "data/views").rglob("*.png")} == pictures
    # what was cut before is enough to find the answers, and without it they are unknown, never others
    monkeypatch.chdir(tmp_path)
    entries = read_ledger(tmp_path / "m.jsonl")
    assert rebuild([looking(scan)], model, entries)[0].text == first.text
    assert forecast_calls([looking(scan)], model, entries).calls == 0
    next(iter(pictures)).unlink()
    assert rebuild([looking(scan)], model, entries) == []


def test_another_picture_is_another_question(tmp_path, scan, model, monkeypatch) -> None:
    ask(tmp_path, scan, model, looks(scroll), monkeypatch)
    darker = replace(scan, windows=("dark",))
    walk = SampleWalk(looking(darker), model, 0, views=service(tmp_path)).resume(read_ledger(tmp_path / "m.jsonl"))
    assert len(walk.entries) == 2, "the first message and slice 3, which is black, are the same; slice 6 is brighter"


@pytest.mark.parametrize("audit", [("pending", RULES), ("passed", None), ("passed", replace(RULES, windows=("dark",)))])
def test_nothing_is_shown_that_the_audit_does_not_allow(tmp_path, scan, model, monkeypatch, audit) -> None:
    backend = looks(scroll)
    with pytest.raises(DeidentificationError):
        ask(tmp_path, scan, model, backend, monkeypatch, views=service(tmp_path, *audit))
    assert not list((tmp_path / "data/views").rglob("*.png"))
    assert all(not message.images for call in backend.calls for message in call.messages)


def test_mistakes_are_answered_with_the_reason_and_the_budget_ends_it(tmp_path, scan, model, monkeypatch) -> None:
    replies = [show("FLAIR", 99), "Let me think.", action("MEASURE", sequence="FLAIR", plane="axial", slice=3, points=[[0, 0], [300, 400]])]
    backend = looks(lambda _, number: replies[number] if number < 3 else show("FLAIR", 3 + number))
    row = ask(tmp_path, scan, model, backend, monkeypatch)
    said = [message.text for message in backend.calls[-1].messages if message.role == "user"][1:]
    assert said[:3] == [
        "Not shown: FLAIR, axial, has slices 1 to 24.\n\nViews left: 5.",
        "Not shown: there is no action in JSON in your message.\n\nViews left: 4.",
        "100.0 mm.\n\nViews left: 3.",
    ]
    assert said[-1] == "Answer now."
    assert len(backend.calls) == VIEWER.max_views + 1
    assert row.text == show("FLAIR", 9), "what came after the budget is the answer, whatever it is"


def test_a_model_with_fewer_pictures_has_fewer_views(tmp_path, scan, model) -> None:
    views = service(tmp_path)
    messages = next_messages(looking(scan), [show("FLAIR", 1), show("FLAIR", 2)], 2, views)
    assert messages is not None
    assert [len(message.images) for message in messages if message.role == "user"] == [0, 1, 1]
    assert messages[-1].text == "Answer now."
    assert next_messages(looking(scan), [show("FLAIR", 1), show("FLAIR", 2), "x"], 2, views) is None


def test_two_pictures_are_compared_in_one_message(tmp_path, scan) -> None:
    both = replace(VIEWER, scans=(scan, replace(scan, name="FLAIR (2)")), zooms=(1,))
    compare = action("COMPARE", sequences=["FLAIR", "FLAIR (2)"], plane="axial", slice=12)
    messages = next_messages(replace(looking(scan), viewer=both), [compare], None, service(tmp_path))
    assert messages is not None
    assert [image.label[:18] for image in messages[-1].images] == ["View 1: FLAIR, axi", "View 2: FLAIR (2),"]


def test_the_forecast_counts_the_whole_budget(scan, model) -> None:
    assert forecast_calls([looking(scan)], model, {}).calls == VIEWER.max_views + 1
