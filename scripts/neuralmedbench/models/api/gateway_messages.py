"""Recognise the error message of a gateway that comes in place of an answer, with status 200.

Only words that no model would give as an answer count: `Timeout`, `Overloaded` or `Error in the urea cycle` may be one.
"""

from __future__ import annotations

import re
from http import HTTPStatus

from neuralmedbench.records.json_objects import json_value

LONGEST, HEAD = 600, 80
"""Characters of the longest message, and of its beginning, in which it says what is wrong; a page in HTML may be longer."""
FAILURES = {status.value: status.phrase for status in HTTPStatus if status >= HTTPStatus.BAD_REQUEST}
STATUS = rf"[45]\d\d[:,]?\s+(?:{'|'.join(FAILURES.values())}|gateway time-?out)\b"
ENDS = r"(?=\W*\Z|\s*[^\w\s]|\s*\n|\s+please\b)"
"""Behind the words of a status: in an answer the sentence goes on."""
LABEL = r"[\[(<*]*(?:(?:api|http|llm|gateway|proxy|provider|request|server|upstream|cloudflare)[ _-]?)?error[\])>*]*(?: code)?:?"
TECHNICAL = re.compile(
    rf"\b(?:(?:bad gateway|too many (?:concurrent )?requests|request entity too large|internal[ _]?server[ _]?error|proxy error|gateway time-?out"
    rf"|service (?:is )?(?:temporarily |currently )?unavailable){ENDS}|(?:overloaded|server)_error|no healthy upstream"
    r"|upstream (?:connect|request|server|prematurely|time)|disconnect/reset before headers|failed to proxy"
    r"|(?:servers?|service|engine|endpoint|api|model|provider) (?:is |are |was )?(?:(?:currently|temporarily|now) )+(?:overloaded|unavailable|busy|at capacity)"
    r"|(?:servers?|service|engine|endpoint|api|model) (?:is |are )?(?:overloaded|at capacity)|service is busy|high (?:demand|load|traffic)\. please"
    r"|rate[ -]?limited\Z|request was throttled|throttlingexception|resource[_ ](?:has been )?exhausted|deadline[_ ]exceeded|rate[ _-]?limit(?:[ _](?:has been|is|was))?[ _](?:exceeded|reached|error)"
    r"|exceeded your current quota|quota exceeded for|(?:request|api call|call|read|upstream|endpoint request) timed[ -]out"
    r"|connection (?:reset by peer|refused|aborted|timed out)|max retries exceeded with|socket hang up|waiting for upstream|failed to connect to"
    r"|unable to reach the (?:\w+ )?(?:server|backend|upstream)|connection to the (?:model|server|upstream) failed|server disconnected without"
    r"|no available (?:channel|server|backend|instance)|上游|请稍后再试"
    r"|model (?:\S+ )?is (?:currently |still )?loading|loading model|econn(?:reset|refused|aborted)|etimedout|httpsconnectionpool|httpconnectionpool|fetch failed|failed with status(?: code)? [45]\d\d"
    r"|(?:error|problem) (?:has )?occurred (?:while|when|during) (?:\w+ ){0,2}(?:processing|handling|generating|calling|requests?)\b"
    r"|error (?:while |when )?(?:processing|generating|handling) (?:your |the |a )?(?:request|response)|failed to generate (?:a |the )?(?:response|completion)"
    r"|error communicating with|a timeout occurred|(?:gateway|the operation) timed out)",
    re.IGNORECASE,
)
"""What is wrong, at the beginning of a message."""
WHOLE = re.compile(
    rf"(?:{LABEL}\s*|sorry,? )?(?:(?:an? )?(?:unexpected|unknown|internal) error (?:has )?(?:occurred|encountered)|something went wrong"
    r"|(?:unexpected )?(?:server|upstream|proxy|gateway) (?:error|timeout)|provider returned error|(?:stream|request|gateway) time-?out"
    r"|(?:connection|network|backend) error)(?:[.!,:]? (?:please )?try again(?: later)?)?[.!]*"
    rf"|{LABEL} ?time(?:d )?-?out[.!]*|(?:rate limit|internal server|service unavailable) ?error",
    re.IGNORECASE,
)
"""Messages that say no more than this."""
NUMBERED = re.compile(
    rf"(?:(?:an? )?{LABEL}\s*|http(?:/[\d.]+| error| status)?:?\s*|status(?: code)?:?\s*)?{STATUS}{ENDS}"  # `HTTP/1.1 502 Bad Gateway`
    rf"|[45]\d\d (?:server|client) error: |(?:{LABEL}|http(?: status)?|upstream:|status(?: code)?:?)\s*[1-5]\d\d\d?\s*(?:[.!]?\Z|[-:({{\[]|upstream\b)"  # `Error code: 529 - {...}`
    r"|error:[^\n]{0,60}\b(?:rate limit|upstream|quota)\b",
    re.IGNORECASE,
)
"""How a message with a status begins."""
CLASS = re.compile(
    r"(?:\w+\.)+\w*(?:Error|Exception|Timeout)\b|(?:API\w*|Rate\w*|Timeout|Read\w*|Connect\w*|Internal\w*|Service\w*|BadGateway|BadRequest"
    r"|Overloaded|HTTP\w*|Value|Key|Type|Runtime|JSONDecode)(?:Error|Exception)\b"
)
"""The class of an error in a program, as in `litellm.Timeout: ...`."""
PAGE = re.compile(r"(?:<!doctype html[^>]*>\s*)?<html\b.{0,2000}?<title>([^<]*)</title>", re.IGNORECASE | re.DOTALL)
ENVELOPE = frozenset(
    {
        "error",
        "errors",
        "detail",
        "details",
        "message",
        "msg",
        "code",
        "status",
        "statusCode",
        "type",
        "title",
        "param",
        "object",
        "success",
    }
    | {"request_id", "requestId", "trace_id", "timestamp", "path"}
)
"""Keys of an error in JSON; an answer in JSON has others."""
WORDS = ("error", "detail", "message", "msg", "title", "type")


def is_gateway_message(text: str) -> bool:
    """Return True if a text is the error message of a gateway and not an answer.

    Examples
    --------
    >>> is_gateway_message("Service Unavailable"), is_gateway_message("Error in the urea cycle")
    (True, False)
    """
    text = text.strip()
    if page := PAGE.match(text):
        return _says_so(page[1].strip())
    if len(text) > LONGEST:
        return False
    value = json_value(text)
    if not isinstance(value, dict) or not value or not set(value) <= ENVELOPE:
        return _says_so(text)
    if isinstance(value.get("error"), dict):
        return "message" in value["error"]
    parts = value["errors"] if isinstance(value.get("errors"), list) else [value]
    has_status = value.get("success") is False or any(value.get(name) in [*FAILURES] for name in ("code", "status", "statusCode"))
    words = [part[name].strip() for part in parts if isinstance(part, dict) for name in WORDS if isinstance(part.get(name), str)]
    return any(has_status or line in FAILURES.values() or _says_so(line) for line in words)


def _says_so(text: str) -> bool:
    begins = NUMBERED.match(text) or CLASS.match(text) or TECHNICAL.search(text[:HEAD])
    return bool(begins or WHOLE.fullmatch(text))
