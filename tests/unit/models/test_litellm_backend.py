"""One call of a model behind an API: the request sent, and the meaning of a reply."""

from __future__ import annotations

import asyncio
import json
import math
import os
import re
from pathlib import Path

import pytest
from aiohttp import web

from fixtures.models import PNG, Server, model_config, reply, running_server
from neuralmedbench.config.load import load_model
from neuralmedbench.errors import ConfigError
from neuralmedbench.models import causes
from neuralmedbench.models.api.backend import ApiBackend, check_parameters
from neuralmedbench.models.api.chat import PictureEncoder
from neuralmedbench.models.api.replies import readable_by_litellm
from neuralmedbench.models.api.through_litellm import sent_parameters
from neuralmedbench.models.call_keys import strict_schema
from neuralmedbench.models.protocol import Call, Message, MessageImage
from neuralmedbench.models.retry import CallError
from neuralmedbench.records.responses import MOST_TOKENS, is_only_thoughts

ASKED = (Message("system", "You are a neurologist."), Message("user", "What is it?"))
SCHEMA = {
    "type": "object",
    "properties": {"side": {"enum": ["left", "right", None]}, "confidence": {"type": "number", "minimum": 0}, "note": {"type": "string"}},
    "required": ["side", "confidence"],
}


class Scripted(Server):
    """Returns the replies of a list, one per request to any path, the last one repeatedly. A pair is a status and a body."""

    path = "/{path:.*}"

    def __init__(self, *replies):
        super().__init__()
        self.replies = list(replies)

    async def handle(self, asked):
        self.bodies.append(await asked.json())
        self.headers.append(dict(asked.headers))
        said = self.replies.pop(0) if len(self.replies) > 1 else self.replies[0]
        status, said = said if isinstance(said, tuple) else (200, said)
        return web.Response(text=said if isinstance(said, str) else json.dumps(said), status=status, content_type="application/json")


def choices(*texts, **changes):
    """Return a reply with several choices, highest index first."""
    whole = reply("")
    rows = [
        {**whole["choices"][0], "index": number, "message": {"role": "assistant", "content": text}} for number, text in enumerate(texts)
    ]
    return {**whole, "choices": rows[::-1], **changes}


def ended(reason, text="half"):
    return reply(text, reason)


def call(*repeats, seed=None, schema=None, messages=ASKED):
    return Call(messages, repeats or (0,), seed, schema)


def ask(server, asked=None, **changes):
    """Make one call."""

    async def making():
        backend = ApiBackend(model_config(**{"api_base": server.address, **changes}))
        try:
            return await backend.answer(asked or call())
        finally:
            await backend.close()

    return asyncio.run(making())


@pytest.fixture
def answers():
    """Return a function that makes one call to a server with these replies, and returns the answers and the bodies sent."""

    def asking(*replies, asked=None, **changes):
        with running_server(Scripted(*replies)) as server:
            return ask(server, asked, **changes), server.bodies

    return asking


def test_several_samples_come_in_one_call_and_their_tokens_count_once(answers):
    found, bodies = answers(choices("a", "b", "c"), asked=call(4, 5, 6, seed=10), native_n=True, temperature=1.0)
    assert [body["n"] for body in bodies] == [3]
    assert bodies[0]["seed"] == 14
    assert [answer.text for answer in found] == ["a", "b", "c"]
    assert [(answer.prompt_tokens, answer.completion_tokens) for answer in found] == [(100, 10), (0, 0), (0, 0)]


def test_fewer_samples_than_were_asked_for_are_given_as_they_are_and_none_is_made_up(answers):
    found, bodies = answers(choices("a", "b"), asked=call(0, 1, 2, 3, 4, seed=0), native_n=True)
    assert [(body.get("n"), body["seed"]) for body in bodies] == [(5, 0)]
    assert [answer.text for answer in found] == ["a", "b"]


def test_more_samples_than_were_asked_for_are_left_out(answers):
    found, _ = answers(choices("a", "b", "c"), asked=call(0, 1, seed=0), native_n=True)
    assert [answer.text for answer in found] == ["a", "b"]


def test_one_sample_is_asked_for_without_n(answers):
    _, bodies = answers(reply("a"), native_n=True)
    assert "n" not in bodies[0]


@pytest.mark.parametrize("reason", ["error", "insufficient_system_resource", "network_error", "abort"])
def test_an_answer_that_broke_off_because_the_provider_failed_is_no_answer(answers, reason):
    """litellm reports these finish reasons as `stop`: half an answer would be scored."""
    with pytest.raises(CallError, match="BrokeOff") as failure:
        answers(ended(reason))
    assert failure.value.may_pass_later
    assert failure.value.status is None, "it may have been charged"


@pytest.mark.parametrize(
    ("reason", "state"),
    [
        ("stop", "ok"),
        ("end_turn", "ok"),
        ("length", "truncated"),
        ("max_tokens", "truncated"),
        ("model_length", "truncated"),
        ("model_context_window_exceeded", "truncated"),
        ("content_filter", "refused"),
        ("refusal", "refused"),
        ("SAFETY", "refused"),
        (None, "ok"),
    ],
)
def test_every_providers_word_for_the_end_of_an_answer_gives_its_state(answers, reason, state):
    ((answer,), _) = answers(ended(reason))
    assert answer.state == state


def test_what_a_filter_did_not_let_through_is_refused_and_not_asked_again(answers):
    error = {"error": {"message": "The response was filtered", "code": "content_policy_violation", "type": "invalid_request_error"}}
    ((answer,), bodies) = answers((400, error))
    assert (answer.state, answer.text, len(bodies)) == ("refused", "", 1)


def test_a_refusal_is_kept_in_its_own_words(answers):
    said = reply("")
    said["choices"][0]["message"] = {"role": "assistant", "content": None, "refusal": "I cannot help with that."}
    ((answer,), _) = answers(said)
    assert (answer.state, answer.text) == ("refused", "I cannot help with that.")


NO_CHOICES = f"EmptyReply (200): {causes.NO_CHOICES.words}"
ERROR_REPLY = f"ErrorReply (200): {causes.ERROR_REPLY.words}"


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        ("<html>gateway</html>", "Unreadable"),
        ('{"id": "1", "choices": [{"mess', "Unreadable"),
        ({}, NO_CHOICES),
        ({"detail": "maintenance"}, NO_CHOICES),
        (choices(), NO_CHOICES),
        ({**reply("x"), "choices": None}, NO_CHOICES),
        ({**reply("x"), "choices": "none"}, NO_CHOICES),
        ({"error": {"message": "upstream failed", "code": 502}}, ERROR_REPLY),
        ({"error": "upstream failed"}, ERROR_REPLY),
        ({"object": "error", "message": "upstream failed", "type": "InternalServerError", "code": 50000}, ERROR_REPLY),
        ({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}, ERROR_REPLY),
        ({**reply("x"), "error": {"message": "upstream failed"}}, ERROR_REPLY),
    ],
)
def test_nonsense_with_status_200_is_no_answer_and_perhaps_paid(answers, body, kind):
    with pytest.raises(CallError, match=f"^{re.escape(kind)}") as failure:
        answers(body)
    assert failure.value.may_pass_later
    assert failure.value.perhaps_paid


@pytest.mark.parametrize(
    ("message", "text"),
    [
        ({"content": "Glioblastoma.", "reasoning_content": "The lesion looks like an abscess."}, "Glioblastoma."),
        ({"content": "<think>Is it an abscess?</think>\n\nGlioblastoma."}, "Glioblastoma."),
        ({"content": "The tag <think> is no reasoning here."}, "The tag <think> is no reasoning here."),
    ],
)
def test_reasoning_is_never_the_answer(answers, message, text):
    said = reply("")
    said["choices"][0]["message"] = {"role": "assistant", **message}
    ((answer,), _) = answers(said)
    assert (answer.text, answer.state) == (text, "ok")


@pytest.mark.parametrize(
    ("message", "text"),
    [
        ({"content": "<think>Is it an abscess? It may be, because"}, "<think>Is it an abscess? It may be, because"),
        ({"content": "<think>An abscess.</think>\n"}, "<think>An abscess.</think>"),
        ({"content": "", "reasoning_content": "An abscess."}, "<think>An abscess.</think>"),
    ],
)
def test_reasoning_without_an_answer_is_kept_and_is_no_refusal(answers, message, text):
    said = reply("")
    said["choices"][0]["message"] = {"role": "assistant", **message}
    ((answer,), _) = answers(said)
    assert (answer.text, answer.state) == (text, "ok")
    assert is_only_thoughts(answer.text)


def test_reasoning_up_to_the_limit_is_cut_off_and_is_not_kept(answers):
    said = reply("<think>Is it an abscess?", "length")
    ((answer,), _) = answers(said)
    assert (answer.text, answer.state) == ("", "truncated")


def test_tokens_that_the_provider_does_not_count_are_not_taken_for_none(answers):
    """Counted as 0 they would cost nothing, and the money cap would never be reached."""
    ((answer,), _) = answers({name: value for name, value in reply("a").items() if name != "usage"})
    assert (answer.prompt_tokens, answer.completion_tokens) == (None, None)


@pytest.mark.parametrize(
    ("usage", "tokens"),
    [
        ({"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10}, (7, 3, None)),
        ({"prompt_tokens": 7.0, "completion_tokens": 3.0}, (7, 3, None)),
        ({"prompt_tokens": 7, "completion_tokens": 3, "cost": 0.1, "total_tokens_per_sec": 9.5, "queue_time": "x"}, (7, 3, None)),
        ({"prompt_tokens": 7, "completion_tokens": 3, "prompt_tokens_details": {"cached_tokens": "x"}}, (7, 3, None)),
        ({"prompt_tokens": 7, "completion_tokens": 3, "completion_tokens_details": {"reasoning_tokens": -1.5}}, (7, 3, None)),
        ({"input_tokens": 7, "output_tokens": 3}, (7, 3, None)),
        ({"prompt_tokens": None, "completion_tokens": None, "input_tokens": 7, "output_tokens": 3}, (7, 3, None)),
        ({"total_tokens": 10}, (None, None, 10)),
        ({"prompt_tokens": 7, "total_tokens": 10}, (7, 3, None)),
        ({"completion_tokens": 3, "total_tokens": 10}, (7, 3, None)),
        ({"prompt_tokens": 7, "completion_tokens": 0, "total_tokens": 7}, (7, None, None)),
        ({"prompt_tokens": 0, "completion_tokens": 3}, (None, 3, None)),
        ({"prompt_tokens": 7}, (7, None, None)),
        *(
            (usage, (None, None, None))
            for usage in (
                {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0},
                {"prompt_tokens": None, "completion_tokens": None},
                {"prompt_tokens": -7, "completion_tokens": 3},
                {"prompt_tokens": 7, "completion_tokens": -3000000},
                {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": -10},
                {"input_tokens": -7, "output_tokens": 3},
                {"prompt_tokens": 7.5, "completion_tokens": 3},
                {"prompt_tokens": "7", "completion_tokens": "3"},
                {"prompt_tokens": "seven", "completion_tokens": 3},
                {"prompt_tokens": True, "completion_tokens": 3},
                {"prompt_tokens": math.nan, "completion_tokens": 3},
                {"prompt_tokens": math.inf, "completion_tokens": 3},
                {"prompt_tokens": {"text": 7}, "completion_tokens": 3},
                {"prompt_tokens": 7, "completion_tokens": MOST_TOKENS + 1},
                {"prompt_tokens": 7, "completion_tokens": 2**70},
                {},
                None,
                "7 and 3",
                [7, 3],
                10,
            )
        ),
    ],
)
def test_a_count_of_tokens_is_believed_only_where_it_can_be_true_and_the_answer_is_kept_whatever_it_is(answers, usage, tokens):
    """Taken at face value, 0 would cost nothing and a negative count would return money; an unreadable one would discard a paid answer."""
    ((answer,), bodies) = answers({**reply("a"), "usage": usage})
    assert (answer.text, answer.state, len(bodies)) == ("a", "ok", 1)
    assert (answer.prompt_tokens, answer.completion_tokens, answer.total_tokens) == tokens


def test_a_number_of_thousands_of_digits_is_no_count(answers):
    ((answer,), _) = answers(json.dumps(reply("a")).replace('"prompt_tokens": 100', f'"prompt_tokens": {"9" * 5000}'))
    assert (answer.text, answer.prompt_tokens, answer.completion_tokens) == ("a", None, None)


def test_an_answer_in_which_nothing_is_written_may_have_no_tokens(answers):
    ((answer,), _) = answers({**reply("", "content_filter"), "usage": {"prompt_tokens": 7, "completion_tokens": 0, "total_tokens": 7}})
    assert (answer.state, answer.prompt_tokens, answer.completion_tokens) == ("refused", 7, 0)


@pytest.mark.parametrize(
    "logprobs", [{"content": [{"token": "a", "logprob": "x", "top_logprobs": []}]}, {"content": [{"token": "a"}]}, {"content": "x"}, "x", 7]
)
def test_an_answer_is_kept_whose_tokens_have_probabilities_that_cannot_be_read(answers, logprobs):
    said = choices("a", "b")
    said["choices"][0]["logprobs"] = logprobs
    found, bodies = answers(said, asked=call(0, 1, seed=0), native_n=True, logprobs=True)
    assert [(answer.text, answer.token_logprobs) for answer in found] == [("a", ()), ("b", ())]
    assert (found[0].prompt_tokens, len(bodies)) == (100, 1)


def test_an_answer_in_parts_is_joined_and_not_asked_again(answers):
    said = reply("a")
    said["choices"][0]["message"]["content"] = [{"type": "text", "text": "1. gli"}, {"type": "text", "text": "oma"}]
    ((answer,), bodies) = answers(said)
    assert (answer.text, len(bodies)) == ("1. glioma", 1)


def test_a_reply_whose_statistics_can_be_read_reaches_litellm_byte_for_byte():
    said = reply("a")
    said["choices"][0]["logprobs"] = {"content": [{"token": "a", "logprob": -0.5, "bytes": None, "top_logprobs": []}]}
    for one in (said, claude("end_turn", {"type": "text", "text": "a"}), gemini({"text": "a"}), {"error": {"message": "no"}}, ["x"], "x"):
        body = json.dumps(one, indent=1).encode()
        assert readable_by_litellm(body) is body
    assert readable_by_litellm(b"<html>") == b"<html>"


CLAUDE, GEMINI = "anthropic/claude-sonnet-4-20250514", "gemini/gemini-2.5-pro"


def claude(reason, *blocks):
    usage = {"input_tokens": 7, "output_tokens": 3}
    return {"id": "1", "type": "message", "role": "assistant", "model": "c", "content": blocks, "stop_reason": reason, "usage": usage}


def gemini(*parts, reason="STOP"):
    usage = {"promptTokenCount": 7, "candidatesTokenCount": 3, "totalTokenCount": 10}
    rows = [{"content": {"role": "model", "parts": parts}, "finishReason": reason, "index": 0}] if parts else []
    blocked = {} if parts else {"promptFeedback": {"blockReason": reason}}
    return {"candidates": rows, "usageMetadata": usage, "modelVersion": "g", **blocked}


@pytest.mark.parametrize(
    ("model_id", "said", "text", "state"),
    [
        (CLAUDE, claude("end_turn", {"type": "text", "text": "Glioma"}), "Glioma", "ok"),
        (CLAUDE, claude("end_turn", {"type": "thinking", "thinking": "?", "signature": "s"}, {"type": "text", "text": "A"}), "A", "ok"),
        (CLAUDE, claude("max_tokens", {"type": "text", "text": "Gli"}), "Gli", "truncated"),
        (CLAUDE, claude("model_context_window_exceeded", {"type": "text", "text": "Gli"}), "Gli", "truncated"),
        (CLAUDE, claude("refusal", {"type": "text", "text": "No."}), "No.", "refused"),
        (CLAUDE, claude("refusal"), "", "refused"),
        (GEMINI, gemini({"text": "Glioma"}), "Glioma", "ok"),
        (GEMINI, gemini({"text": "An abscess?", "thought": True}, {"text": "Glioma"}), "Glioma", "ok"),
        (GEMINI, gemini({"text": "Gli"}, reason="MAX_TOKENS"), "Gli", "truncated"),
        (GEMINI, gemini({"text": "Gli"}, reason="SAFETY"), "", "refused"),
        (GEMINI, gemini(reason="PROHIBITED_CONTENT"), "", "refused"),
    ],
)
def test_the_replies_of_other_providers_mean_the_same(answers, model_id, said, text, state):
    ((answer,), bodies) = answers(said, id=model_id)
    assert (answer.text, answer.state, len(bodies)) == (text, state, 1)
    assert (answer.prompt_tokens, answer.completion_tokens) == (7, 3)
    assert answer.served_model == ("c" if model_id == CLAUDE else "g")


@pytest.mark.parametrize("bad", ["x", -7, 7.5, "7", 2**70, None])
@pytest.mark.parametrize("place", ["usage", "prompt", "cache or thoughts"])
def test_usage_of_other_providers_that_cannot_be_true_is_not_known_and_costs_no_answer(answers, bad, place):
    names = {
        CLAUDE: ("usage", "input_tokens", "cache_read_input_tokens"),
        GEMINI: ("usageMetadata", "promptTokenCount", "thoughtsTokenCount"),
    }
    for model_id, said in ((CLAUDE, claude("end_turn", {"type": "text", "text": "A"})), (GEMINI, gemini({"text": "A"}))):
        usage, prompt, further = names[model_id]
        said[usage] = bad if place == "usage" else said[usage] | {prompt if place == "prompt" else further: bad}
        ((answer,), _) = answers(said, id=model_id)
        # an absent count may still be known from the total, or not matter
        counted = bad is None and (place == "cache or thoughts" or (place == "prompt" and model_id == GEMINI))
        assert (answer.text, answer.prompt_tokens) == ("A", 7 if counted else None)


def test_a_structured_answer_of_a_provider_that_gives_it_as_a_tool_is_an_answer(answers):
    given = {"type": "tool_use", "id": "t", "name": "json_tool_call", "input": {"side": "left"}}
    ((answer,), bodies) = answers(claude("tool_use", given), id=CLAUDE, asked=call(schema=SCHEMA), structured_output="json_schema")
    assert (json.loads(answer.text), answer.state) == ({"side": "left"}, "ok")
    assert bodies[0]["tools"][0]["input_schema"]["required"] == ["side", "confidence", "note"]


def test_half_an_answer_of_gemini_is_none(answers):
    with pytest.raises(CallError, match="BrokeOff"):
        answers(gemini({"text": "Gli"}, reason="MALFORMED_RESPONSE"), id=GEMINI)


def test_log_probabilities_are_asked_for_and_kept(answers):
    said = reply("Glioma")
    tokens = [{"token": token, "logprob": logprob, "top_logprobs": []} for token, logprob in (("Gli", -0.25), ("oma", -1.5))]
    said["choices"][0]["logprobs"] = {"content": tokens}
    ((answer,), bodies) = answers(said, logprobs=True)
    assert bodies[0]["logprobs"] is True
    assert answer.token_logprobs == (-0.25, -1.5)
    ((answer,), bodies) = answers(reply("Glioma"))
    assert "logprobs" not in bodies[0]
    assert answer.token_logprobs == ()


def test_a_schema_is_sent_in_the_form_that_the_yaml_names_and_only_where_there_is_one(answers):
    _, bodies = answers(reply("{}"), asked=call(schema=SCHEMA), structured_output="json_schema")
    sent = bodies[0]["response_format"]
    assert sent == {"type": "json_schema", "json_schema": {"name": "answer", "strict": True, "schema": strict_schema(SCHEMA)}}
    _, bodies = answers(reply("{}"), asked=call(schema=SCHEMA), structured_output="json_object")
    assert bodies[0]["response_format"] == {"type": "json_object"}
    for settings in ({"asked": call(), "structured_output": "json_schema"}, {"asked": call(schema=SCHEMA)}):
        _, bodies = answers(reply("{}"), **settings)
        assert "response_format" not in bodies[0]


def test_a_strict_schema_names_the_type_of_every_place_and_requires_every_key():
    strict = strict_schema({**SCHEMA, "properties": {**SCHEMA["properties"], "list": {"type": "array", "items": SCHEMA, "minItems": 1}}})
    assert strict["required"] == ["side", "confidence", "note", "list"]
    assert strict["additionalProperties"] is False
    assert strict["properties"]["side"] == {"type": ["string", "null"], "enum": ["left", "right", None]}
    assert strict["properties"]["confidence"] == {"type": "number"}
    assert strict["properties"]["note"] == {"type": ["string", "null"]}
    assert strict["properties"]["list"]["type"] == ["array", "null"]
    assert strict["properties"]["list"]["items"]["additionalProperties"] is False
    assert strict_schema(strict) == strict


def test_further_parameters_are_sent_as_they_are(answers):
    _, bodies = answers(reply("a"), parameters={"top_k": 5, "repetition_penalty": 1.1, "stop": "END"}, temperature=0.7, top_p=0.9)
    wanted = {"top_k": 5, "repetition_penalty": 1.1, "stop": "END", "temperature": 0.7, "top_p": 0.9, "max_tokens": 1024, "model": "m"}
    assert bodies[0] == {**wanted, "messages": [{"role": message.role, "content": message.text} for message in ASKED]}


THINKING = {
    "vllm": {"chat_template_kwargs": {"enable_thinking": False}},
    "anthropic": {"thinking": {"type": "enabled", "budget_tokens": 512}, "output_config": {"effort": "low"}},
    "gemini": {"thinkingConfig": {"thinkingBudget": 0}},
    "openrouter": {"reasoning": {"effort": "high", "exclude": True}},
}


@pytest.mark.parametrize("form", THINKING)
@pytest.mark.parametrize("further", [{}, {"top_k": 5}])
@pytest.mark.parametrize("model_id", ["openai/m", "hosted_vllm/m"])
def test_sections_that_set_thinking_reach_a_server_unchanged(answers, model_id, further, form):
    """Litellm refuses `thinking` for `openai/`, and makes a `reasoning_effort` of it for `hosted_vllm/`."""
    _, bodies = answers(reply("a"), id=model_id, parameters=THINKING[form] | further)
    assert {name: bodies[0][name] for name in THINKING[form] | further} == THINKING[form] | further


def test_anthropic_gets_its_thinking_as_a_section():
    asked = {"max_tokens": 1024, **THINKING["anthropic"]}
    assert sent_parameters("claude-opus-4-5", "anthropic", asked) == asked


@pytest.mark.skipif("NMB_FOUND_INPUTS" not in os.environ, reason="needs NMB_FOUND_INPUTS")
@pytest.mark.parametrize("name", ["anthropic", "vllm"])
def test_the_files_that_were_sent_in_are_read(name):
    model = load_model(Path(os.environ["NMB_FOUND_INPUTS"], "18-nested-parameters", f"{name}.yaml"))
    assert check_parameters(model), "asked without litellm, which would change it"
    assert all(isinstance(value, dict) for value in model.parameters.values())


@pytest.mark.parametrize("model_id", ["openai/o3", "openai/gpt-5"])
def test_reasoning_models_get_their_limit_under_its_new_name(answers, model_id):
    _, bodies = answers(reply("a"), id=model_id, max_tokens=77, parameters={"reasoning_effort": "low"})
    assert (bodies[0]["max_completion_tokens"], bodies[0]["reasoning_effort"]) == (77, "low")
    assert "max_tokens" not in bodies[0]


@pytest.mark.parametrize(
    ("changes", "key"),
    [
        ({"id": "anthropic/claude-sonnet-4-20250514", "seed": 1}, "`seed`"),
        ({"id": "anthropic/claude-sonnet-4-20250514", "logprobs": True}, "`logprobs`"),
        ({"id": "anthropic/claude-sonnet-4-20250514", "native_n": True}, "`native_n`"),
        ({"id": "openai/o3", "temperature": 0.2}, "`temperature`"),
        ({"id": "openai/gpt-5", "temperature": 0.2, "native_n": True}, "a call of `temperature` \\("),
        ({"parameters": {"n": 3}}, "`parameters: n`"),
        ({"parameters": {"api_base": "https://example.org"}}, "`parameters: api_base`"),
        ({"parameters": {"mock_response": "x"}}, "`parameters: mock_response`"),
        ({"parameters": {"fallbacks": "x"}}, "`parameters: fallbacks`"),
        ({"parameters": {"drop_params": True}}, "`parameters: drop_params`"),
    ],
)
def test_a_parameter_that_is_not_taken_is_refused_by_its_key_before_anything_is_sent(answers, changes, key):
    with pytest.raises(ConfigError, match=key):
        answers(reply("a"), **changes)


@pytest.mark.parametrize(
    "settings", [{"temperature": 0.3}, {"top_p": 0.8}, {"seed": 4321}, {"max_tokens": 77}, {"parameters": {"top_k": 55}}]
)
@pytest.mark.parametrize(
    "model_id",
    ["openai/m", "openai/o3", "hosted_vllm/m", "mistral/m", "openrouter/a/m", "xai/grok-4", "deepseek/deepseek-chat", CLAUDE, GEMINI],
)
def test_a_parameter_is_sent_or_refused_but_never_dropped(answers, model_id, settings):
    said = {CLAUDE: claude("end_turn", {"type": "text", "text": "A"}), GEMINI: gemini({"text": "A"})}.get(model_id, reply("A"))
    ((key, value),) = settings.items()
    value, key = (value["top_k"], "parameters: top_k") if key == "parameters" else (value, key)
    wanted = str(value)
    try:
        found = json.dumps(answers(said, id=model_id, asked=call(seed=settings.get("seed")), **settings)[1])
    except ConfigError as error:
        wanted, found = f"`{key}`", str(error)
    assert wanted in found


def test_samples_and_turns_share_one_encoded_picture_and_forget_it_after_them():
    encoder = PictureEncoder(recent=1)
    held = encoder.url(MessageImage("", PNG, "a"))
    assert encoder.url(MessageImage("", PNG, "a")) is held
    encoder.url(MessageImage("", PNG + b"1", "b"))
    assert encoder.url(MessageImage("", PNG, "a")) is held, "a call still holds it"
    size = math.ceil(len(PNG) / 3) * 4
    assert len(held) == len("data:image/png;base64,") + size
