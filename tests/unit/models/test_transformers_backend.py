"""Needs transformers: a tiny LLaVA with random weights from a seed; its answers are gibberish."""

from __future__ import annotations

import json
import re
import shutil

import pytest
from PIL import Image
from safetensors.torch import load_file, save_file

from fixtures.models import model_config, request
from fixtures.weights import weights_folder
from neuralmedbench.errors import ConfigError, ProviderError
from neuralmedbench.files.digests import sha256_of
from neuralmedbench.models.engine import answer_requests
from neuralmedbench.models.local.backend import TransformersBackend
from neuralmedbench.models.model_run import ModelRun
from neuralmedbench.records.requests import RequestImage, RequestTurn
from neuralmedbench.records.responses import ResponseState

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def weights(tmp_path_factory):
    """A folder with a vision-language model of 0.2 million random weights."""
    return weights_folder("llava", tmp_path_factory.mktemp("weights"))


@pytest.fixture
def ask(weights, tmp_path):
    """Return a function that asks the tiny model."""

    def asking(requests, ledger="m.jsonl", **changes):
        config = model_config(**{"backend": "transformers", "id": str(weights), "max_tokens": 12, **changes})
        return answer_requests(
            requests, ModelRun(config, ledger=tmp_path / ledger, destinations=("local",), max_failed_fraction=0, root=tmp_path)
        )

    return asking


def looking(root, *shades):
    """Return a turn with plain grey pictures."""
    images = []
    for shade in shades:
        path = root / f"g{shade}.png"
        Image.new("L", (56, 56), shade).save(path)
        images.append(RequestImage(path=path.name, sha256=sha256_of(path), label="Picture."))
    return RequestTurn(text="What is it?", images=tuple(images))


def test_a_model_with_open_weights_answers_a_dialogue_with_pictures(ask, tmp_path):
    (row,) = ask([request("i1", RequestTurn(text="First."), looking(tmp_path, 10, 200))])
    assert row.state in {ResponseState.OK, ResponseState.TRUNCATED}
    assert len(row.turns) == 2
    assert row.served_model == "LlavaForConditionalGeneration"
    assert row.prompt_tokens > 32


def test_the_pictures_reach_the_model(ask, tmp_path):
    texts = {ask([request("i1", looking(tmp_path, shade))], temperature=1.0, seed=1)[0].text for shade in (0, 90, 255)}
    assert len(texts) > 1


def test_samples_differ_and_are_the_same_after_an_interrupted_run(ask, tmp_path):
    turn = looking(tmp_path, 128)
    whole = ask([request("i1", turn, samples=4)], temperature=1.0, seed=3)
    lines = (tmp_path / "m.jsonl").read_text().splitlines(keepends=True)
    (tmp_path / "half.jsonl").write_text("".join(lines[:2]))
    resumed = ask([request("i0"), request("i1", turn, samples=4)], ledger="half.jsonl", temperature=1.0, seed=3)
    assert len({row.text for row in whole}) > 1
    assert [row.text for row in resumed if row.item_id == "b/i1"] == [row.text for row in whole]


def test_temperature_zero_gives_one_answer_for_all_samples(ask, tmp_path):
    rows = ask([request("i1", looking(tmp_path, 128), samples=3)], temperature=0.0)
    assert len({row.text for row in rows}) == 1


def test_a_run_in_batches_gives_what_every_request_gives_alone(ask, tmp_path):
    turns = [looking(tmp_path, shade) for shade in (0, 60, 120)]
    requests = [request(f"i{place}", *turns[:place], RequestTurn(text="And so?" * place), samples=2) for place in range(4)]
    settings = {"temperature": 1.0, "seed": 3, "batch_size": 3, "logprobs": True}
    together = {(row.item_id, row.repeat): row.text for row in ask(requests, **settings)}
    alone = [row for place in (2, 0, 3, 1) for row in ask([requests[place]], ledger=f"{place}.jsonl", **settings)]
    assert {(row.item_id, row.repeat): row.text for row in alone} == together
    entries = [json.loads(line) for line in (tmp_path / "m.jsonl").read_text().splitlines()]
    assert len(entries) == 2 * 7  # dialogues with equal first rounds share their first answers
    assert all(len(entry["token_logprobs"]) == entry["completion_tokens"] > 0 for entry in entries)
    assert {entry["fingerprint"] for entry in entries} == {entries[0]["fingerprint"]}
    assert re.fullmatch(r"CLIPImageProcessor\w* (float32 cpu|b?float\d+ cuda)", entries[0]["fingerprint"])


def test_gemma_3_is_loaded_from_a_folder_too(ask, tmp_path, tmp_path_factory):
    folder = weights_folder("gemma3", tmp_path_factory.mktemp("weights"))
    (row,) = ask([request("i1", looking(tmp_path, 10, 200))], id=str(folder))
    assert row.served_model == "Gemma3ForConditionalGeneration"
    assert row.state in {ResponseState.OK, ResponseState.TRUNCATED}


def test_settings_that_local_weights_do_not_take_are_refused(weights):
    for changes, words in (({"max_tokens": None}, "max_tokens"), ({"parameters": {"reasoning_effort": "low"}}, "model m: parameters")):
        with pytest.raises(ConfigError, match=words):
            TransformersBackend(model_config(backend="transformers", id=str(weights), **changes))


def test_a_folder_that_is_absent_or_holds_no_model_is_told(tmp_path):
    for folder in (tmp_path / "none", tmp_path):
        with pytest.raises(ProviderError, match="model m"):
            answer_requests(
                [request("i1")],
                ModelRun(
                    model_config(backend="transformers", id=str(folder)),
                    ledger=tmp_path / "m.jsonl",
                    destinations=("local",),
                    max_failed_fraction=None,
                ),
            )


def break_file(folder):
    path = folder / "model.safetensors"
    path.write_bytes(path.read_bytes()[:5000])


def drop_tensor(folder):
    path = folder / "model.safetensors"
    tensors = load_file(path)
    del tensors[sorted(tensors)[0]]
    save_file(tensors, path, metadata={"format": "pt"})


def drop_template(folder):
    (folder / "chat_template.jinja").unlink()


@pytest.mark.parametrize(
    ("damage", "words"), [(break_file, "cannot load"), (drop_tensor, "1 of its tensors"), (drop_template, "no chat template")]
)
def test_weights_that_are_not_whole_are_refused_before_anything_is_asked(weights, tmp_path, damage, words):
    folder = tmp_path / "copy"
    shutil.copytree(weights, folder)
    damage(folder)
    with pytest.raises(ProviderError, match=f"model m: .*{words}"):
        TransformersBackend(model_config(backend="transformers", id=str(folder)))
