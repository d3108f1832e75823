"""Slots: the profile limits remote models and models that compute here, and nothing else."""

from __future__ import annotations

from typing import Any

import pytest

from neuralmedbench.config.model import ModelConfig
from neuralmedbench.models.destinations import resources_of


@pytest.mark.parametrize(
    ("settings", "taken"),
    [
        ({"backend": "builtin", "id": "text"}, {}),
        ({"backend": "transformers", "id": "data/weights/some"}, {}),
        ({"backend": "server", "id": "data/weights/some", "server": {"engine": "vllm"}}, {"gpu": 1}),
        ({"backend": "litellm", "id": "openai/some"}, {"api_slots": 1}),
        ({"backend": "litellm", "id": "openai/some", "api_base": "https://models.example.org/v1"}, {"api_slots": 1}),
        ({"backend": "litellm", "id": "openai/some", "api_base": "http://127.0.0.1:8000/v1"}, {}),
        ({"backend": "litellm", "id": "nobody/knows"}, {"api_slots": 1}),
    ],
)
def test_a_model_takes_the_slot_of_where_it_computes(settings: dict[str, Any], taken: dict[str, int]) -> None:
    assert resources_of(ModelConfig(title="Some model", revision="1", **settings).named("some")) == taken


def test_a_grader_that_asks_no_model_takes_none() -> None:
    assert resources_of(None) == {}
