"""Until when a model is served: by its yaml, else by the price list; the day is injected."""

from __future__ import annotations

import datetime

import pytest
from aiohttp import web

import validate
from fixtures.models import Server, model_config, running_server
from neuralmedbench.config.model import ModelConfig
from neuralmedbench.models import life
from neuralmedbench.models.api.model_list import listed_last_days
from neuralmedbench.models.life import last_day, life_lines

WRITTEN = datetime.date(2026, 11, 28)
"""Day on which the shipped files were compared with the providers' lists; the real day only warns (`nmb model plan`, `make validate`)."""
LIST = {
    "gpt-x": {"litellm_provider": "openai"},
    "gpt-w-2026-01-01": {"litellm_provider": "openai", "deprecation_date": "2027-03-01"},
    "gemini/g": {"litellm_provider": "gemini", "deprecation_date": "2026-11-01"},
}


@pytest.fixture
def listed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(life, "price_list", lambda: LIST)


def hosted(name: str, model_id: str, **changes: object) -> ModelConfig:
    return model_config(name, id=model_id, **changes)


def test_the_yaml_comes_before_the_price_list_and_an_own_server_has_no_end(listed: None) -> None:
    assert last_day(hosted("a", "gemini/g")) == datetime.date(2026, 11, 1)
    assert last_day(hosted("a", "gemini/g", ends_on="2027-05-05")) == datetime.date(2027, 5, 5)
    assert last_day(hosted("a", "openai/gpt-x"), "gpt-w-2026-01-01") == datetime.date(2027, 3, 1)
    assert last_day(hosted("a", "openai/gpt-w-2026-01-01", api_base="http://127.0.0.1:1/v1")) is None


def test_what_ends_has_ended_or_is_not_listed_is_said(listed: None) -> None:
    models = [
        hosted("ended", "gemini/g"),
        hosted("ends", "openai/gpt-w-2026-01-01"),
        hosted("far", "openai/gpt-x", ends_on="2028-01-01"),
        hosted("living", "openai/gpt-x"),
        hosted("new", "openai/gpt-y"),
        hosted("own", "openai/m", api_base="http://127.0.0.1:1/v1"),
    ]
    ended, ends, new = life_lines(models, WRITTEN)
    assert ended.startswith("ended: WARNING: its provider ended it on 2026-11-01: calls fail, or another model answers them")
    assert ends == "ends: its provider serves it until 2027-03-01, 93 days from now: the last day to ask this revision"
    assert new.startswith("new: the installed price list does not know openai/gpt-y")


def test_no_shipped_file_names_a_model_that_had_ended_when_it_was_written_or_that_nobody_knows() -> None:
    lines = list(life_lines(validate.shipped_models(), WRITTEN))
    assert not [line for line in lines if "WARNING" in line or "does not know" in line], lines
    assert {line.partition(":")[0] for line in lines} == {"gpt-4o", "gpt-4o-grader", "llm"}, "of the published tables"


def test_shipped_files_send_only_parameters_that_the_price_list_knows(monkeypatch: pytest.MonkeyPatch) -> None:
    from neuralmedbench.models.api.backend import ApiBackend

    for model in validate.shipped_models():
        if model.backend == "litellm" and model.api_base is None:
            monkeypatch.setenv(str(model.api_key_env), "key")
            ApiBackend(model)


class Listing(Server):
    """Lists its models, some with the day on which they end."""

    rows = (
        {"id": "m", "object": "model", "shutdown_date": "2027-01-14"},
        {"id": "n", "object": "model", "shutdown_date": 1_800_000_000},
        {"id": "o", "object": "model", "shutdown_date": None},
    )

    def app(self) -> web.Application:
        app = web.Application()
        app.router.add_get("/v1/models", self.listing)
        return app

    async def listing(self, request: web.Request) -> web.Response:
        self.headers.append(dict(request.headers))
        return web.json_response({"object": "list", "data": list(self.rows)})


def test_the_list_of_a_server_says_until_when_its_models_are_served(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NMB_TEST_KEY", "key")
    with running_server(Listing()) as server:
        models = [hosted(name, f"openai/{name}", api_base=server.address, api_key_env="NMB_TEST_KEY") for name in ("m", "n", "o", "p")]
        days = listed_last_days(models)
        assert [headers["Authorization"] for headers in server.headers] == ["Bearer key"], "one request to each server"
    assert days == {"m": datetime.date(2027, 1, 14), "n": datetime.date(2027, 1, 15)}
    lines = list(life_lines(models[:1], WRITTEN, days))
    assert lines[0] == "m: write `ends_on: 2027-01-14` in its yaml, as its provider's list of models says"
    assert "until 2027-01-14, 47 days from now" in lines[1]
    written = models[0].model_copy(update={"ends_on": days["m"]})
    assert len(list(life_lines([written.named("m")], WRITTEN, days))) == 1


def test_a_server_that_lists_nothing_or_is_not_there_has_no_last_days() -> None:
    with running_server() as server:  # it has no list
        assert listed_last_days([hosted("m", "openai/m", api_base=server.address)]) == {}
    assert listed_last_days([hosted("m", "openai/m", api_base=server.address), hosted("g", "gemini/g")]) == {}
