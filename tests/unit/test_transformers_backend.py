"""Needs transformers: a tiny LLaVA with random weights, made from a seed, answers in words that mean nothing."""

from __future__ import annotations

import pytest
from PIL import Image

from models_fixtures import model_config, request
from neuralmedbench.errors import ProviderError
from neuralmedbench.io.files import sha256_of
from neuralmedbench.models.engine import answer_requests
from neuralmedbench.records.requests import RequestImage, RequestTurn
from neuralmedbench.records.responses import ResponseState

TEMPLATE = (
    "{% for m in messages %}{{ m['role'] }}: {% if m['content'] is string %}{{ m['content'] }}{% else %}{% for p in m['content'] %}"
    "{% if p['type'] == 'image' %}<image>{% else %}{{ p['text'] }}{% endif %}{% endfor %}{% endif %}\n{% endfor %}assistant:"
)


@pytest.fixture(scope="module")
def weights(tmp_path_factory):
    """A folder with a vision-language model of 0.2 million random weights."""
    import torch
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import (
        CLIPImageProcessor,
        CLIPVisionConfig,
        LlamaConfig,
        LlavaConfig,
        LlavaForConditionalGeneration,
        LlavaProcessor,
        PreTrainedTokenizerFast,
    )

    torch.manual_seed(0)
    words = Tokenizer(models.BPE())
    words.pre_tokenizer, words.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
    special = ["<pad>", "<s>", "</s>", "<image>"]
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    words.train_from_iterator(["head and brain"], trainers.BpeTrainer(vocab_size=300, special_tokens=special, initial_alphabet=alphabet))
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=words, pad_token="<pad>", bos_token="<s>", eos_token="</s>")
    vision = CLIPVisionConfig(
        hidden_size=32, intermediate_size=64, num_hidden_layers=3, num_attention_heads=2, image_size=56, patch_size=14
    )
    text = LlamaConfig(
        vocab_size=len(tokenizer), hidden_size=64, intermediate_size=128, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2
    )
    config = LlavaConfig(vision_config=vision, text_config=text, image_token_id=tokenizer.convert_tokens_to_ids("<image>"))
    folder = tmp_path_factory.mktemp("weights")
    LlavaForConditionalGeneration(config).save_pretrained(folder)
    LlavaProcessor(
        image_processor=CLIPImageProcessor(size={"shortest_edge": 56}, crop_size={"height": 56, "width": 56}),
        tokenizer=tokenizer,
        patch_size=14,
        vision_feature_select_strategy="default",
        num_additional_image_tokens=1,
        chat_template=TEMPLATE,
    ).save_pretrained(folder)
    return folder


@pytest.fixture
def ask(weights, tmp_path):
    """Give a function that asks the tiny model."""

    def asking(requests, ledger="m.jsonl", **changes):
        config = model_config(backend="transformers", id=str(weights), max_tokens=12, **changes)
        return answer_requests(
            requests, config, name="m", ledger=tmp_path / ledger, destinations=("local",), max_failed_fraction=0, root=tmp_path
        )

    return asking


def looking(root, *shades):
    """Give a turn that shows plain grey pictures."""
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


def test_a_folder_that_is_absent_or_holds_no_model_is_told(tmp_path):
    for folder in (tmp_path / "none", tmp_path):
        with pytest.raises(ProviderError, match="model m"):
            answer_requests(
                [],
                model_config(backend="transformers", id=str(folder)),
                name="m",
                ledger=tmp_path / "m.jsonl",
                destinations=("local",),
                max_failed_fraction=None,
            )
