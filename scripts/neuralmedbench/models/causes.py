"""Why a server refused a call, and what to do about it: one of a fixed list, recognised in the server's message.

The message itself is never passed on: it may repeat the prompt, and with it a patient's record, or a key.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from neuralmedbench.records.responses import is_by_another_model

MOST_CHARACTERS = 2000
"""Of a message that are searched: what is wrong stands first, what it repeats of the prompt after it."""
READ_KEYS = frozenset(
    {"message", "msg", "error", "errors", "detail", "code", "type", "status", "reason", "param", "loc", "metadata", "raw"}
    | {"details", "violations", "quotaId", "quotaMetric"}
)
"""Keys of a reply that say what is wrong; others, such as pydantic's `input`, repeat the request."""


@dataclass(frozen=True)
class Cause:
    """A reason why servers refuse calls.

    Attributes
    ----------
    words : str
        The reason, as it is shown and stored.
    step : str
        What to do about it.
    phrases : tuple of str
        Regular expressions of messages that give it, in lower case.
    of_all : bool
        True if it does not depend on what is asked, so that every call is refused.
    """

    words: str
    step: str
    phrases: tuple[str, ...] = ()
    of_all: bool = False

    def is_given_by(self, text: str) -> bool:
        """Return whether a message in lower case gives this reason."""
        return any(re.search(phrase, text) for phrase in self.phrases)


DAY_LIMIT = Cause(
    "the provider's quota for the day is used up",
    "run `nmb run retry` when it is renewed, or ask the provider for a higher one",
    (r"per[_ -]?day\b|perday|\((?:rpd|tpd)\)|\bdaily (?:\w+ )?(?:limit|quota)|daily_?limit",),
    of_all=True,
)
MINUTE_LIMIT = Cause(
    "the provider's limit for a short time is reached",
    "nothing has to be paid: run `nmb run retry`, with `rate_limits` in config.yaml or a lower `concurrency` in its yaml if it happens often",
    (
        r"per[_ -]?min(?:ute)?\b|perminute|per[_ -]?second\b|\((?:rpm|tpm)\)|rate[_ ]limit|resource[_ ](?:has been )?exhausted|try again in \d",
    ),
)
NO_CREDIT = Cause(
    "the credit or the quota of the key is used up",
    "top up the account, or wait until the quota is renewed",
    (
        r"insufficient[_ ](?:quota|balance|credits?|funds)",
        r"exceeded your (?:current |monthly )?quota",
        r"credit balance is too low",
        r"billing (?:hard )?limit|billing[_ ]not[_ ]active|billing account",
        r"requires more credits|payment required|out of credits|spending limit",
    ),
    of_all=True,
)
BAD_KEY = Cause(
    "the key is refused",
    "check the variable that `api_key_env` in its yaml names, or name one there",
    (
        r"(?:invalid|incorrect|missing|wrong|expired|no)[_ -](?:\w+ )?(?:x-)?api[_ -]?key",
        r"api[_ -]?key[_ ](?:is |was |has )?(?:not valid|invalid|required|expired|missing|not found)",
        r"(?:provide|pass|supply|include) an api key",
        r"authentication_error|authenticationerror|invalid (?:authentication|authorization|bearer|token|credentials)",
        r"(?:account|organi[sz]ation|access)\b[^.]{0,40} (?:deactivated|disabled|suspended|terminated|banned)",
        r"(?:no|missing) (?:auth|bearer|authorization|authentication)",
        r"\bunauthori[sz]ed\b|\bunauthenticated\b",
    ),
    of_all=True,
)
NOT_PERMITTED = Cause(
    "the key, or the country, is not permitted to use the model",
    "ask the provider for access, or take another model",
    (
        r"unsupported_country|country, region,? or territory|user location is not supported",
        r"permission[_ ]?denied|permission_error|do(?:es)? not have (?:access|permission)|must be verified to use|access[_ ]?den(?:y|ied)",
    ),
    of_all=True,
)
FILTERED = Cause(
    "the provider's content filter refused it",
    "ask the provider to relax its filter for medical pictures, or take another model",
    (
        r"content[_ ]filter|content management policy|content[_ ]policy|responsibleaipolicy|prohibited_content",
        r"data_?inspection_?failed|inappropriate content|(?:our|the) safety system|usage polic(?:y|ies)|flagged (?:as|by|for)",
        r"violat\w+ (?:our|the|\w+'s) (?:\w+ )?polic(?:y|ies)|usage guidelines|moderation[_ ]blocked|guardrail|safety_check|content exists risk",
        r"blocked by (?:\w+ )?safety|(?:input|output|prompt|text|new_) ?sensitive\b|敏感内容",
    ),
)
TOO_MANY_PICTURES = Cause(
    "too many pictures",
    "lower `max_images` in its yaml, or raise the server's limit (vLLM: --limit-mm-per-prompt)",
    (
        r"at most \d+ (?:image|picture|multi-?modal)",
        r"too many (?:images|pictures|image)",
        r"(?:single|one|\d+) images? (?:per|in each|in a) (?:message|request|prompt)",
        r"(?:maximum|max|limit)[^.]{0,20} of (?:\d+ )?images",
        r"number of (?:input )?images[^.]{0,60}(?:exceed|greater|more|limit|larger|at most)",
        r"(?:more than|up to|only supports?) (?:one|\d+) images|image count \d+ exceeds|\d+ images, exceeding",
        r"limit[-_]mm[-_]per[-_]prompt",
    ),
)
NO_PICTURES = Cause(
    "the model or its server takes no pictures",
    "serve a model with vision, and its vision part with it (llama.cpp: --mmproj), or write `max_images: 0` in its yaml",
    (
        r"(?:does not|doesn't|do not|cannot) (?:currently )?(?:support|accept|handle|process)[^.]{0,30}(?:image|vision|multi-?modal)",
        r"(?:image|vision|multi-?modal)(?:s|_url)?(?: (?:input|inputs|content|data|requests))? (?:is|are) (?:not|only) (?:currently )?supported",
        r"support image input|not a (?:multi-?modal|vision)|mmproj|not compiled for multimodal|vision add-on is not",
        r"unmarshal array into go struct|unknown variant `?image_url|(?:invalid|unsupported) content type[^.]{0,5}[. ]+image_url",
        r"content (?:must|should) be a (?:valid )?string",
    ),
)
TOO_LARGE_PICTURE = Cause(
    "a picture is too large or too small",
    "write `max_picture_px` in the model's yaml (pictures that are larger are scaled down), or raise the server's limit",
    (
        r"image exceeds \d+(?:\.\d+)? ?[kmg]i?b|image dimensions exceed",
        r"(?:image|picture)(?: size| file| dimensions?)? (?:is |are )?too (?:large|big|small)",
        r"(?:height|width|pixels?|image size)\b[^.]{0,40}(?:exceeds? (?:the )?(?:max|allowed|limit)|must be (?:larger|smaller) than)",
        r"decompression bomb|absolute aspect ratio",
    ),
)
BAD_PICTURE = Cause(
    "a picture cannot be read there",
    "pictures are sent as PNG in data URLs: see whether the server takes these",
    (
        r"(?:could not|cannot|unable to|failed to) (?:process|identify|load|decode|read|open|fetch)[^.]{0,20} image",
        r"(?:unsupported|invalid|corrupt(?:ed)?|broken)[_ ](?:input )?image",
        r"image (?:format|type|media type|data)[^.]{0,40}(?:not (?:supported|valid)|invalid|unsupported)",
        r"mime[ _]type|(?:illegal|invalid|incorrect) base64|not represent a valid image|image (?:is not|provided is not) valid",
    ),
)
TOO_LARGE_BODY = Cause(
    "the request has more bytes than the server takes",
    "lower `max_images` in its yaml, or raise the limit there, or of a proxy before it (nginx: client_max_body_size)",
    (
        r"(?:entity|payload|content|body|request body) (?:is |was )?too (?:large|big)|request_too_large",
        r"request exceeds the maximum size|length limit exceeded|payload size exceeds",
    ),
)
NOT_A_CHAT_MODEL = Cause(
    "the model is not offered for chat",
    "take a model that chats",
    (
        r"not a chat model|only supported in v1/responses|not supported in the v1/chat|not available on this endpoint",
        r"does not support (?:chat|generate)\b",
    ),
    of_all=True,
)
TEMPLATE = Cause(
    "the server's chat template refuses the conversation",
    "start the server with a chat template that takes a system message and pictures (vLLM: --chat-template, llama.cpp: --jinja)",
    (
        r"roles must alternate|system role (?:is )?not supported|developer instruction is not enabled",
        r"chat[_ ]template|jinja|template error|error in applying[^.]{0,20} template",
    ),
)
NO_MEMORY = Cause(
    "the server lacks memory",
    "free memory there, or take a smaller model, a shorter context, fewer or smaller pictures",
    (r"requires more (?:system )?memory|out of memory|insufficient (?:system )?memory|failed to allocate",),
)
TOO_LONG = Cause(
    "the prompt and the longest answer are too long for the model",
    "lower `max_images` or `max_tokens` in its yaml, or give the server more context (vLLM: --max-model-len, llama.cpp: -c, Ollama: num_ctx)",
    (
        r"context[_ ](?:length|window|size)[^.]{0,10}(?:exceeded|has been exceeded)|exceed_context_size",
        r"(?:maximum|available|max|exceeds? the|model(?:'s)?) context[ _](?:length|window|size)",
        r"exceed context window",
        r"(?:prompt|input|request|message|conversation)s? (?:is|are)? ?too long",
        r"token count[^.]{0,40}exceeds|must have less than \d+ (?:input )?tokens|too many (?:input |total |prompt )?tokens",
        r"(?:tokens|max_new_tokens.) must be <= \d+",
        r"reduce the length of|exceeds the model limit|longer than the maximum|max_model_len|max_total_tokens",
        r"exceeds? (?:the )?(?:model's )?(?:maximum|max|limit)[^.]{0,40}tokens",
    ),
)
NO_MODEL = Cause(
    "the server does not know the model",
    "write in `id` of its yaml a name that the server lists (curl API_BASE/models)",
    (
        r"\b(?:models?|deployment)\b.{0,100}?(?:does not exist|not exist|not found|not loaded|is not (?:a valid|available|recogni[sz]ed))",
        r"model_not_found|deploymentnotfound|not a valid model|(?:unknown|no such|invalid|unrecogni[sz]ed) model\b",
        r"failed to load model|no models? (?:is |are )?loaded|model is unloaded|try pulling it|no endpoints found",
    ),
    of_all=True,
)
NO_PATH = Cause(
    "the server knows neither this address nor the model",
    "write in `api_base` the address that ends in /v1, and in `id` a name that the server lists (curl API_BASE/models)",
    of_all=True,
)
ERROR_REPLY = Cause(
    "the reply holds an error instead of an answer in `choices`",
    "see the server's own log for the error, or ask it one question by hand",
)
NO_CHOICES = Cause(
    "the reply has no answer in `choices`",
    "see whether `api_base` is the address of a chat server with the OpenAI protocol (it ends in /v1), and what the server's own log says",
)
LIMITS, LIMITED = (DAY_LIMIT, MINUTE_LIMIT), frozenset({403, 429, 503})
"""Limits of time, and the statuses that may mean them: Google says `check your plan and billing` of a minute's limit, too."""
BEFORE_PARAMETERS = (NO_CREDIT, BAD_KEY, FILTERED, TOO_MANY_PICTURES)
AFTER_PARAMETERS = (
    *(NO_PICTURES, TOO_LARGE_PICTURE, BAD_PICTURE, TOO_LARGE_BODY, NOT_A_CHAT_MODEL, TEMPLATE, NO_MEMORY, TOO_LONG, NO_MODEL),
    NOT_PERMITTED,
)
OF_STATUS = {401: BAD_KEY, 402: NO_CREDIT, 404: NO_PATH, 413: TOO_LARGE_BODY}
"""What a status means if the message says nothing that is known."""

PLAIN = ("temperature", "seed", "n", "stop", "logprobs", "reasoning", "thinking", "verbosity", "grammar")
"""Parameters whose names are everyday words: recognised where they are marked as names."""
PARAMETERS = (
    *("max_completion_tokens", "max_tokens", "top_p", "top_k", "min_p", "response_format", "top_logprobs", "reasoning_effort"),
    *("presence_penalty", "frequency_penalty", "repetition_penalty", "chat_template_kwargs", "enable_thinking", *PLAIN),
)
"""The parameters that are named if a server refuses one; no other word of its message is."""
OTHER_NAMES = {"max_new_tokens": "max_tokens", "max_output_tokens": "max_tokens", "maxoutputtokens": "max_tokens"}
YAML_KEYS = {"n": "native_n", "response_format": "structured_output", "grammar": "structured_output", "top_logprobs": "logprobs"}
RENAMED = "the server takes `max_completion_tokens` instead of `max_tokens`"
REFUSED = "the server does not take parameter `{}`, or not this value"

_NAME = "|".join(sorted((*PARAMETERS, *OTHER_NAMES), key=len, reverse=True))
_MARKED = rf"(?:['\"`](?P<{{0}}1>{_NAME})(?:\.\w+)?['\"`]|\b(?P<{{0}}2>{'|'.join(name for name in (*PARAMETERS, *OTHER_NAMES) if '_' in name)})\b)"
_FAULT = r"unsupported|unrecogni[sz]ed|unknown|invalid|unexpected|not supported|not permitted|not allowed|extra_forbidden|(?:less|greater) than the"
_AFTER = (
    r"(?:is|are|was)? ?(?:not (?:currently )?(?:supported|permitted|allowed|available|a valid)|unsupported|too large|too high|deprecated|invalid)"
    r"|does not support|cannot (?:both )?be|must be|should be|extra inputs|value of|range|> \d"
)
BLAMED = tuple(
    re.compile(pattern)
    for pattern in (
        rf"(?:{_FAULT})[^.]{{0,50}}?{_MARKED.format('a')}",
        rf"(?<!\+ )(?<!\+ .){_MARKED.format('b')}[^.]{{0,40}}?(?:{_AFTER})",
        rf"(?:^|\n|parameters?:? |arguments?:? |field:? |body[., ]+|a )(?P<c1>{_NAME})\b:? ?(?:parameter )?(?:{_AFTER})",
        rf"(?:parameter=|(?:doesn't|does not) support )(?P<d1>{_NAME})\b",
    )
)


def cause_of(status: int | None, body: bytes) -> str:
    """Name the likely cause of a refused call.

    Parameters
    ----------
    status : int or None
        HTTP status of the reply.
    body : bytes
        Its body; only searched.

    Returns
    -------
    str
        Words of this module, never the server's; empty if its message is not recognised.

    Examples
    --------
    >>> cause_of(400, b'{"error": {"message": "At most 4 image(s) may be provided in one request."}}')
    'too many pictures'
    """
    text = message_of(body)
    for cause in (*(LIMITS if status in LIMITED else ()), *BEFORE_PARAMETERS):
        if cause.is_given_by(text):
            return cause.words
    if name := _blamed(text):
        return RENAMED if name == "max_tokens" and "max_completion_tokens" in text and "instead" in text else REFUSED.format(name)
    for cause in AFTER_PARAMETERS:
        if cause.is_given_by(text):
            return cause.words
    return OF_STATUS[status].words if status in OF_STATUS else ""


FINAL = re.compile(r"max_images is \d+$|^context_tokens \d+: |^no earlier answer to show")


def can_be_asked(cause: str) -> bool:
    """Return False for the cause of a missing answer, or grade, that stays missing until a configuration is changed."""
    return not is_by_another_model(cause) and not FINAL.search(cause)


def next_step(error: str) -> str:
    """Say what to do about an error that ends with words of `cause_of`, or an answer by another model; empty for others.

    Examples
    --------
    >>> next_step("BadRequestError (400): the server does not take parameter `seed`, or not this value")
    'take `seed` out of its yaml, or write another value'
    """
    if is_by_another_model(error):
        return "it does not count as its answer: correct `id` in its yaml, or, if it is the same model, add this name to `served_as`"
    if error.endswith(RENAMED):
        return "write `max_tokens_parameter: max_completion_tokens` in its yaml"
    for name in PARAMETERS:
        if error.endswith(REFUSED.format(name)):
            key = YAML_KEYS.get(name, "max_tokens" if name == "max_completion_tokens" else name)
            return f"lower `{key}` in its yaml" if key == "max_tokens" else f"take `{key}` out of its yaml, or write another value"
    return next((cause.step for cause in CAUSES if error.endswith(cause.words)), "")


CAUSES = (*LIMITS, *BEFORE_PARAMETERS, *AFTER_PARAMETERS, NO_PATH, ERROR_REPLY, NO_CHOICES)


def is_of_all(error: str) -> bool:
    """Return whether an error ends with a cause that does not depend on what is asked."""
    named = any(error.endswith(REFUSED.format(name)) for name in PARAMETERS)
    return named or error.endswith(RENAMED) or any(cause.of_all and error.endswith(cause.words) for cause in CAUSES)


def _blamed(text: str) -> str:
    for pattern in BLAMED:
        if found := pattern.search(text):
            name = next(value for value in found.groupdict().values() if value)
            return OTHER_NAMES.get(name, name)
    return ""


def message_of(body: bytes) -> str:
    """Return what a reply says is wrong, in lower case, one part a line."""
    text = body.decode("utf-8", "replace")
    try:
        parts = list(_parts(json.loads(text)))
    except (ValueError, RecursionError):
        parts = [text]
    whole = "\n".join(parts)[:MOST_CHARACTERS].lower().replace("\\n", " ").replace("\\", "").replace("’", "'")
    return "\n".join(re.sub(r"\s+", " ", line).strip() for line in whole.splitlines())


def _parts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key in value:
            if key == "loc" and isinstance(value[key], list):
                yield f"{value.get('type', '')} {'.'.join(map(str, value[key]))}: {value.get('msg', '')}"
            elif key in READ_KEYS:
                yield from _parts(value[key])
    elif isinstance(value, list):
        for entry in value:
            yield from _parts(entry)
