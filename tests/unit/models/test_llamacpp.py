"""llama.cpp itself, with a tiny model that sees: pictures, schemas, context and shared prompts go through the real engine."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

import pytest

from fixtures.models import model_config
from neuralmedbench.config.model import ModelConfig
from neuralmedbench.errors import ProviderError
from neuralmedbench.models.causes import next_step
from neuralmedbench.models.protocol import Answer, Backend, Call, Message, MessageImage
from neuralmedbench.models.registry import open_backend
from neuralmedbench.models.retry import CallError
from neuralmedbench.models.server import llamacpp

pytest.importorskip("xllamacpp")
pytest.importorskip("gguf")

from fixtures.gguf_models import CONTEXT, PICTURE_TOKENS, picture_bytes, write_models

pytestmark = pytest.mark.slow

SCHEMA = {"type": "object", "properties": {"side": {"enum": ["left", "right"]}}, "required": ["side"], "additionalProperties": False}


def model_of(weights: Path, *arguments: str, **changes: object) -> ModelConfig:
    section = {"engine": "llamacpp", "arguments": ["--ctx-size", str(CONTEXT), *arguments], "machine_arguments": ["--parallel", "2"]}
    settings = {"backend": "server", "id": str(weights), "temperature": 0.0, "max_tokens": 64, "logprobs": True, "server": section}
    return model_config(**{**settings, **changes})


@pytest.fixture(autouse=True, scope="module")
def own_place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Give this file locks and messages of its own."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tempfile, "tempdir", str(tmp_path_factory.mktemp("servers")))
        yield


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    return write_models(tmp_path_factory.mktemp("gguf"))


@pytest.fixture(scope="module")
def loop() -> Iterator[asyncio.AbstractEventLoop]:
    made = asyncio.new_event_loop()
    yield made
    made.close()


@pytest.fixture(scope="module")
def engine(files: tuple[Path, Path], loop: asyncio.AbstractEventLoop) -> Iterator[Backend]:
    """A server that sees."""
    weights, vision = files
    backend = open_backend(model_of(weights, "--mmproj", str(vision), structured_output="json_schema"), None).backend
    assert backend is not None
    yield backend
    loop.run_until_complete(backend.close())


@pytest.fixture
def ask(engine: Backend, loop: asyncio.AbstractEventLoop):
    def asking(words: str, *pictures: int, **changes: object) -> Answer:
        images = tuple(MessageImage("Picture.", png, sha256(png).hexdigest()) for png in map(picture_bytes, pictures))
        call = replace(Call((Message("user", words, images),), (0,), None), **changes)
        return loop.run_until_complete(engine.answer(call))[0]

    return asking


def test_each_picture_takes_its_tokens_and_changes_what_the_model_says(ask):
    alone, first, second, both = (ask("What is it?", *pictures) for pictures in ((), (1,), (2,), (1, 2)))
    assert first.prompt_tokens - alone.prompt_tokens > PICTURE_TOKENS
    assert both.prompt_tokens - first.prompt_tokens == PICTURE_TOKENS + len("Picture.")
    assert second.prompt_tokens == first.prompt_tokens
    assert first.token_logprobs != second.token_logprobs
    assert first.fingerprint.startswith("llamacpp ")


def test_a_second_question_on_the_same_pictures_finds_the_first_part_in_the_cache(ask):
    first = ask("A case with two pictures. What is it?", 3, 4)
    again = ask("A case with two pictures. What is it?", 3, 4)
    assert again.cached_tokens > 2 * PICTURE_TOKENS
    assert again.text == first.text


def test_a_schema_is_kept_also_by_a_model_of_random_weights(ask):
    assert json.loads(ask("Which side?", 1, schema=SCHEMA).text)["side"] in {"left", "right"}


def test_a_prompt_that_is_longer_than_the_context_is_refused_with_its_cause(ask):
    with pytest.raises(CallError, match="too long for the model") as error:
        ask("word " * CONTEXT)
    assert "lower `max_images` or `max_tokens`" in next_step(str(error.value))


def test_without_its_part_that_sees_a_model_is_refused_before_the_first_patient(files, tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))  # the other server holds the lock of its place
    with pytest.raises(ProviderError, match=r"refuses a first question: .*takes no pictures"):
        open_backend(model_of(files[0], name="blind"), None)


def test_a_context_that_requests_would_share_is_refused():
    words = ["--model", "w", "--alias", "m", "--host", "127.0.0.1", "--port", "1", "--parallel", "2"]
    done = subprocess.run([sys.executable, llamacpp.__file__, *words], capture_output=True, text=True, check=False)
    assert "--parallel above 1 needs --ctx-size" in done.stderr
