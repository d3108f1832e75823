"""Pictures beyond what a provider documents are known before anything is sent, and the advice that is given acts."""

from __future__ import annotations

import hashlib
import io
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from fixtures.models import model_config, request
from neuralmedbench.errors import ConfigError
from neuralmedbench.models.call_keys import call_key
from neuralmedbench.models.causes import TOO_LARGE_PICTURE
from neuralmedbench.models.conversation import PromptMessage, load_messages, next_messages
from neuralmedbench.models.engine import answer_requests
from neuralmedbench.models.forecast import forecast_calls
from neuralmedbench.models.model_run import ModelRun
from neuralmedbench.models.picture_limits import beyond_limits, limits_of, refused_pictures
from neuralmedbench.models.token_estimates import Estimator, png_size
from neuralmedbench.records.requests import RequestImage, RequestTurn
from neuralmedbench.records.responses import ResponseState

FOUND = Path(os.environ.get("NMB_FOUND_INPUTS", ""))
CLAUDE = model_config(backend="litellm", id="anthropic/claude-opus-5-5")


def pictures(root: Path, count: int, side: int) -> tuple[RequestImage, ...]:
    """Write flat pictures of a width of `side` and half of its height."""
    images = []
    for number in range(count):
        stream = io.BytesIO()
        Image.new("L", (side, side // 2), number).save(stream, format="PNG")
        path = root / f"{side}-{number}.png"
        path.write_bytes(stream.getvalue())
        images.append(RequestImage(path=path.name, sha256=hashlib.sha256(stream.getvalue()).hexdigest(), label=f"Picture {number}"))
    return tuple(images)


def asked(images: tuple[RequestImage, ...]) -> tuple[PromptMessage, ...]:
    return (PromptMessage("user", "What is seen?", images),)


def test_the_plan_names_items_and_limit_with_source_and_date_and_a_step(tmp_path: Path) -> None:
    many = request("many", RequestTurn(text="What is seen?", images=pictures(tmp_path, 22, 2100)))
    few = request("few", RequestTurn(text="What is seen?", images=pictures(tmp_path, 2, 2100)))
    (line,) = forecast_calls([many, few], CLAUDE, {}, root=tmp_path).pictures
    assert line.startswith(
        "anthropic refuses 1 item (b/many): a picture of 2100 px, at most 2000 px a side from 21 pictures on (platform.claude.com"
    )
    assert ", 2026-11-28); they are not asked; write max_picture_px: 2000, or max_images: 20 in its yaml" in line
    assert forecast_calls([many], CLAUDE.model_copy(update={"max_picture_px": 2000}), {}, root=tmp_path).pictures == []
    assert forecast_calls([many], CLAUDE.model_copy(update={"max_images": 20}), {}, root=tmp_path).pictures == []


def test_what_the_plan_says_will_be_refused_is_skipped_with_its_cause_and_nothing_is_sent(tmp_path: Path, capsys: Any) -> None:
    many = request("many", RequestTurn(text="What is seen?", images=pictures(tmp_path, 22, 2100)))
    model = CLAUDE.model_copy(update={"api_key_env": None, "max_cost_usd": 1.0})
    assert forecast_calls([many], model, {}, root=tmp_path).calls == 0
    run = ModelRun(model, ledger=tmp_path / "m.jsonl", destinations=("api.anthropic.com",), max_failed_fraction=None, root=tmp_path)
    (row,) = answer_requests([many], run)
    refused = "pictures that anthropic refuses: at most 2000 px a side from 21 pictures on; write max_picture_px: 2000, or max_images: 20 in its yaml"
    assert (row.state, row.error, row.attempts) == (ResponseState.SKIPPED, refused, 0)
    assert f"m: 1 request not asked, {refused}" in capsys.readouterr().err
    with pytest.raises(ConfigError, match=r"They are 1 of 1 answers, more than max_failed_fraction 0\.05; nothing was sent"):
        answer_requests([many], replace(run, max_failed_fraction=0.05))


def test_the_bytes_of_a_scaled_picture_are_measured_before_it_is_refused(tmp_path: Path) -> None:
    noise = Image.effect_noise((3000, 3000), 90)
    stream = io.BytesIO()
    noise.save(stream, format="PNG")
    (tmp_path / "noise.png").write_bytes(stream.getvalue())
    image = RequestImage(path="noise.png", sha256=hashlib.sha256(stream.getvalue()).hexdigest(), label="Picture 1")
    assert "at most 5.0 MB" in refused_pictures(CLAUDE, asked((image,)), tmp_path)
    assert refused_pictures(CLAUDE.model_copy(update={"max_picture_px": 800}), asked((image,)), tmp_path) == ""


def test_a_model_of_a_long_context_takes_as_many_pictures_as_its_provider_says_of_these() -> None:
    limits = limits_of(CLAUDE.model_copy(update={"context_tokens": 1_000_000}))
    assert limits is not None
    assert (limits.problem([(500, 1_000)] * 600), limits.problem([(500, 1_000)] * 601)[0]) == (("", ""), "601 pictures, at most 600")


@pytest.mark.parametrize(
    ("count", "side", "bytes_each", "problem", "step"),
    [
        (101, 500, 1_000, "101 pictures, at most 100", "max_images: 100"),
        (1, 9_000, 1_000, "a picture of 9000 px, at most 8000 px a side", "max_picture_px: 8000"),
        (1, 3_000, 5_900_000, "a picture of 7.9 MB, at most 5.0 MB", "a smaller max_picture_px"),
        (20, 1_900, 1_500_000, "pictures of 40.0 MB, at most 32.0 MB", "a smaller max_picture_px or max_images"),
        (20, 2_100, 1_000, "", ""),
        (100, 2_000, 1_000, "", ""),
    ],
)
def test_each_limit_of_a_provider(count: int, side: int, bytes_each: int, problem: str, step: str) -> None:
    limits = limits_of(CLAUDE)
    assert limits is not None
    assert limits.problem([(side, bytes_each)] * count) == (problem, step)


def test_limits_are_those_of_a_known_provider_and_not_of_an_own_server() -> None:
    assert limits_of(model_config(backend="litellm", id="openai/gpt-6")) is not None
    assert limits_of(model_config(backend="litellm", id="openai/qwen", api_base="http://127.0.0.1:8000/v1")) is None
    assert limits_of(model_config(backend="litellm", id="somebody/model")) is None
    assert limits_of(model_config(backend="builtin", id="fusion")) is None


def test_a_larger_picture_is_scaled_down_before_it_is_sent_and_others_stay_byte_for_byte(tmp_path: Path) -> None:
    large, small = pictures(tmp_path, 1, 2100) + pictures(tmp_path, 1, 300)
    ((sent, kept),) = (message.images for message in load_messages(asked((large, small)), tmp_path, 1000))
    assert png_size(sent.png) == (1000, 500)
    assert kept.png == (tmp_path / small.path).read_bytes()
    assert load_messages(asked((large,)), tmp_path)[0].images[0].png == (tmp_path / large.path).read_bytes()


def test_the_scaled_picture_is_another_question_and_a_text_is_not(tmp_path: Path) -> None:
    scaled = CLAUDE.model_copy(update={"max_picture_px": 1000})
    with_pictures, words = asked(pictures(tmp_path, 1, 2100)), asked(())
    assert call_key(scaled, with_pictures, 0) != call_key(CLAUDE, with_pictures, 0)
    assert call_key(scaled, words, 0) == call_key(CLAUDE, words, 0)
    assert Estimator(scaled, tmp_path).prompt_at_most(with_pictures) < Estimator(CLAUDE, tmp_path).prompt_at_most(with_pictures)


def test_the_advice_after_a_refusal_is_the_setting_that_acts() -> None:
    assert "max_picture_px" in TOO_LARGE_PICTURE.step


@pytest.mark.skipif(not os.environ.get("NMB_FOUND_INPUTS"), reason="NMB_FOUND_INPUTS names no folder of inputs")
def test_many_large_pictures_of_a_found_question() -> None:
    root = FOUND / "10-many-large-pictures" / "set" / "pictures"
    images = tuple(RequestImage(path=path.name, sha256=path.stem, label=path.stem) for path in sorted(root.glob("*.png")))
    messages = next_messages(request("1", RequestTurn(text="Is anything seen?", images=images)), [], None)
    assert messages is not None
    (line,) = beyond_limits(CLAUDE, [("1", messages)], root)
    assert "refuses 1 item (1): a picture of 2100 px, at most 2000 px a side from 21 pictures on" in line
    assert beyond_limits(CLAUDE.model_copy(update={"max_picture_px": 2000}), [("1", messages)], root) == []
