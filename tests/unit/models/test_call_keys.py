from __future__ import annotations

import json
from itertools import product

from fixtures.models import model_config
from neuralmedbench.models.call_keys import KEY_VERSION, call_key
from neuralmedbench.models.conversation import PromptMessage
from neuralmedbench.records.requests import RequestImage

PICTURE = RequestImage(path="data/x.png", sha256="ab" * 32, label="Picture 1: FLAIR, axial, z = +12 mm")
CONVERSATIONS = {
    "words": (PromptMessage("system", "You are a neurologist."), PromptMessage("user", "What is it?")),
    "picture": (PromptMessage("system", "You are a neurologist."), PromptMessage("user", "What is it?", (PICTURE,))),
    "dialogue": (
        PromptMessage("user", "First."),
        PromptMessage("assistant", "Größe: ≈ 3 mm"),
        PromptMessage("user", "Second.", (PICTURE,)),
    ),
    "grader": (PromptMessage("user", "Grade: <answer>A</answer>"),),
}
MODELS = {
    "plain": {},
    "sampled": {"temperature": 1.0, "top_p": 0.9, "seed": 7, "max_tokens": 256},
    "revised": {"revision": "2"},
}


def keys():
    named = {
        f"{words} {model} {repeat}": call_key(model_config(**MODELS[model]), CONVERSATIONS[words], repeat)
        for words, model, repeat in product(CONVERSATIONS, MODELS, (0, 1))
    }
    return named | {"words plain 0 builtin": call_key(model_config(), CONVERSATIONS["words"], 0, code="0123456789abcdef")}


def test_the_keys_of_the_ledger_are_frozen(root):
    """Changing the recipe means paying for every answer again: raise KEY_VERSION, say so in the commit, rewrite the file."""
    golden = json.loads((root / "tests/golden/call_keys.json").read_text())
    assert golden == {"key_version": KEY_VERSION, "keys": keys()}
    assert len(golden["keys"]) >= 20


def test_everything_on_which_an_answer_depends_changes_the_key():
    named = keys()
    assert len(set(named.values())) == len(named)


def test_what_an_answer_does_not_depend_on_leaves_the_key_alone():
    words = CONVERSATIONS["picture"]
    other = model_config(title="Other", api_base="http://127.0.0.1:1/v1", timeout_s=5, concurrency=1, max_cost_usd=3)
    assert call_key(other, words, 0) == call_key(model_config(), words, 0)
    moved = (words[0], PromptMessage("user", "What is it?", (RequestImage(path="moved.png", sha256=PICTURE.sha256, label=PICTURE.label),)))
    assert call_key(model_config(), moved, 0) == call_key(model_config(), words, 0)
