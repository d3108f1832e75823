"""Vision-language models with random weights, made from a seed: their answers mean nothing, the way to them is the real one."""

from __future__ import annotations

import io
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

LLAVA_TEMPLATE = (
    "{% for m in messages %}{{ m['role'] }}: {% for p in m['content'] %}"
    "{% if p['type'] == 'image' %}<image>{% else %}{{ p['text'] }}{% endif %}{% endfor %}\n{% endfor %}assistant:"
)
GEMMA_TEMPLATE = LLAVA_TEMPLATE.replace("<image>", "<boi>")
WORDS = ["head and brain", "What is the most likely diagnosis?", "the left middle cerebral artery", "system user assistant"]


@dataclass(frozen=True)
class Size:
    """Size of a LLaVA: of its text model and of its picture model; pictures are square. A large spread of the weights makes probabilities differ."""

    hidden: int
    inner: int
    layers: int
    heads: int
    vocabulary: int
    eye_hidden: int
    eye_inner: int
    eye_layers: int
    eye_heads: int
    picture: int
    patch: int = 14
    positions: int = 4096
    spread: float = 0.02


SIZES = {
    "tiny": Size(64, 128, 2, 4, 0, 32, 64, 3, 2, 56, spread=0.15),
    "small": Size(512, 1376, 8, 8, 8000, 256, 1024, 6, 4, 112),
    "7b": Size(4096, 11008, 32, 32, 32064, 1024, 4096, 24, 16, 336),  # as LLaVA 1.5: Vicuna 7B and CLIP ViT-L of 336 px
}


def tokenizer(*special: str, **named: str) -> Any:
    """Make a tokenizer that knows all bytes: no text is unknown to it."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    words = Tokenizer(models.BPE())
    words.pre_tokenizer, words.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
    tokens = ["<pad>", "<s>", "</s>", *special, *named.values()]
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    words.train_from_iterator(
        WORDS, trainers.BpeTrainer(vocab_size=320, special_tokens=tokens, initial_alphabet=alphabet, show_progress=False)
    )
    more = {"extra_special_tokens": named} if named else {}
    return PreTrainedTokenizerFast(tokenizer_object=words, pad_token="<pad>", bos_token="<s>", eos_token="</s>", **more)


def llava(size: Size = SIZES["tiny"], *, seed: int = 0, device: str = "cpu", dtype: str = "float32") -> tuple[Any, Any]:
    """Make a LLaVA and its processor; the weights are drawn where they shall compute."""
    import torch
    from transformers import CLIPImageProcessor, CLIPVisionConfig, LlamaConfig, LlavaConfig, LlavaForConditionalGeneration, LlavaProcessor

    torch.manual_seed(seed)
    words = tokenizer("<image>")
    vision = CLIPVisionConfig(
        hidden_size=size.eye_hidden,
        intermediate_size=size.eye_inner,
        num_hidden_layers=size.eye_layers,
        num_attention_heads=size.eye_heads,
        image_size=size.picture,
        patch_size=size.patch,
    )
    text = LlamaConfig(
        vocab_size=size.vocabulary or len(words),
        hidden_size=size.hidden,
        intermediate_size=size.inner,
        num_hidden_layers=size.layers,
        num_attention_heads=size.heads,
        num_key_value_heads=size.heads,
        max_position_embeddings=size.positions,
        initializer_range=size.spread,
        bos_token_id=1,
        eos_token_id=2,
        pad_token_id=0,
    )
    config = LlavaConfig(vision_config=vision, text_config=text, image_token_id=words.convert_tokens_to_ids("<image>"))
    before = torch.get_default_dtype()
    torch.set_default_dtype(getattr(torch, dtype))
    try:
        with torch.device(device):
            model = LlavaForConditionalGeneration(config)
    finally:
        torch.set_default_dtype(before)
    processor = LlavaProcessor(
        image_processor=CLIPImageProcessor(size={"shortest_edge": size.picture}, crop_size={"height": size.picture, "width": size.picture}),
        tokenizer=words,
        patch_size=size.patch,
        vision_feature_select_strategy="default",
        num_additional_image_tokens=1,
        chat_template=LLAVA_TEMPLATE,
    )
    return model, processor


def gemma3(*, seed: int = 0) -> tuple[Any, Any]:
    """Make a tiny Gemma 3 (the class of MedGemma) and its processor; its text layers look 24 tokens back, one of them at all."""
    import torch
    from transformers import (
        Gemma3Config,
        Gemma3ForConditionalGeneration,
        Gemma3ImageProcessor,
        Gemma3Processor,
        Gemma3TextConfig,
        SiglipVisionConfig,
    )

    torch.manual_seed(seed)
    words = tokenizer(image_token="<image>", boi_token="<boi>", eoi_token="<eoi>")
    text = Gemma3TextConfig(
        vocab_size=len(words),
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=3,
        num_attention_heads=2,
        num_key_value_heads=1,
        head_dim=16,
        sliding_window=24,
        layer_types=["sliding_attention", "full_attention", "sliding_attention"],
        initializer_range=0.15,
        tie_word_embeddings=False,
        bos_token_id=1,
        eos_token_id=2,
        pad_token_id=0,
    )
    vision = SiglipVisionConfig(
        hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=2, image_size=56, patch_size=14
    )
    config = Gemma3Config(
        tie_word_embeddings=False,
        text_config=text,
        vision_config=vision,
        mm_tokens_per_image=4,
        image_token_index=words.convert_tokens_to_ids("<image>"),
        boi_token_index=words.convert_tokens_to_ids("<boi>"),
        eoi_token_index=words.convert_tokens_to_ids("<eoi>"),
    )
    processor = Gemma3Processor(
        image_processor=Gemma3ImageProcessor(size={"height": 56, "width": 56}),
        tokenizer=words,
        chat_template=GEMMA_TEMPLATE,
        image_seq_length=4,
    )
    return Gemma3ForConditionalGeneration(config), processor


BUILDERS = {"llava": llava, "gemma3": gemma3}
_SAVED: dict[str, Path] = {}


def weights_folder(kind: str, parent: Path) -> Path:
    """Give a folder with a tiny model as people keep them; made once a test run."""
    if kind not in _SAVED:
        folder = parent / kind
        for part in BUILDERS[kind]():
            part.save_pretrained(folder)
        _SAVED[kind] = folder
    return _SAVED[kind]


def picture_bytes(seed: int, width: int = 56, height: int = 56) -> bytes:
    """Give a grey picture of noise as PNG."""
    from PIL import Image

    file = io.BytesIO()
    Image.fromarray(np.random.default_rng(seed).integers(0, 256, (height, width), dtype=np.uint8)).save(file, "PNG")
    return file.getvalue()
