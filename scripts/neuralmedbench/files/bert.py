"""Run a text encoder of BERT's architecture from its folder, with torch alone.

Importing transformers or sentence-transformers takes two to four seconds of a job that compares a few answers. The operations are those of
transformers, in its order, so that every vector is the same in all bits.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

MAX_TOKENS = 256
"""Tokens of a text that are read, with the two special ones."""


class BertEncoder:
    """A BERT model with absolute positions and GELU, in the Hugging Face layout (`config.json`, `model.safetensors`, `tokenizer.json`).

    Parameters
    ----------
    folder : Path
        Folder with the weights.

    Attributes
    ----------
    layers : int
        Number of hidden layers.
    """

    def __init__(self, folder: Path) -> None:
        from safetensors.torch import load_file
        from tokenizers import Tokenizer

        config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
        self.layers = int(config["num_hidden_layers"])
        self._heads, self._padding = int(config["num_attention_heads"]), int(config["pad_token_id"])
        self._epsilon = float(config["layer_norm_eps"])
        self._weights = load_file(folder / "model.safetensors")
        self._tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        self._tokenizer.no_padding()
        self._tokenizer.enable_truncation(MAX_TOKENS)

    def tokens(self, texts: Sequence[str]) -> list[list[int]]:
        """Return the tokens of each text, special ones included; longer texts are cut."""
        return [encoding.ids for encoding in self._tokenizer.encode_batch(list(texts))]

    def hidden_states(self, tokens: list[list[int]]) -> list[Any]:
        """Compute the hidden states of a batch.

        Parameters
        ----------
        tokens : list of list of int
            Tokens of N texts; they are padded to the longest, T.

        Returns
        -------
        list of Tensor of float32, shape (N, T, H)
            The embeddings, then the output of every layer; states of padding mean nothing.
        """
        import torch
        from torch.nn import functional

        length = max(map(len, tokens))
        ids = torch.tensor([[*row, *[self._padding] * (length - len(row))] for row in tokens])
        read = torch.tensor([[place < len(row) for place in range(length)] for row in tokens])
        mask = None if bool(read.all()) else read[:, None, None, :].expand(-1, 1, length, -1)
        with torch.inference_mode():
            embedded = self._weights["embeddings.word_embeddings.weight"][ids] + self._weights["embeddings.token_type_embeddings.weight"][0]
            states = [self._norm("embeddings", embedded + self._weights["embeddings.position_embeddings.weight"][:length])]
            for layer in range(self.layers):
                name, state = f"encoder.layer.{layer}", states[-1]
                query, key, value = (
                    self._linear(f"{name}.attention.self.{part}", state).view(*state.shape[:2], self._heads, -1).transpose(1, 2)
                    for part in ("query", "key", "value")
                )
                seen = functional.scaled_dot_product_attention(query, key, value, attn_mask=mask).transpose(1, 2).reshape(state.shape)
                state = self._norm(f"{name}.attention.output", self._linear(f"{name}.attention.output.dense", seen) + state)
                wide = functional.gelu(self._linear(f"{name}.intermediate.dense", state))
                states.append(self._norm(f"{name}.output", self._linear(f"{name}.output.dense", wide) + state))
        return states

    def _linear(self, name: str, values: Any) -> Any:
        from torch.nn import functional

        return functional.linear(values, self._weights[f"{name}.weight"], self._weights[f"{name}.bias"])

    def _norm(self, name: str, values: Any) -> Any:
        from torch.nn import functional

        weight, bias = self._weights[f"{name}.LayerNorm.weight"], self._weights[f"{name}.LayerNorm.bias"]
        return functional.layer_norm(values, (values.shape[-1],), weight, bias, self._epsilon)
