"""Find the diagnoses of an answer that is not in the requested form: `Diagnosis: X`, `The most likely diagnosis is X.`, a list, JSON.

Only what commits itself is read: a name behind a label or in a sentence that calls it the diagnosis, or a list of names. Mentions are not.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from itertools import dropwhile, takewhile
from typing import Any

from neuralmedbench.records.vocabulary import normal_form
from neuralmedbench.scoring.sections import DECORATION, INLINE_NUMBER, KNOWN, NUMBERED, clean
from neuralmedbench.scoring.structured_answer import valid_text

MAX_CHARACTERS = 20_000
MAX_OBJECTS, MAX_DEPTH = 50, 3
MAX_WORDS, MAX_LIST_WORDS, MAX_BARE_WORDS, MAX_FREE_WORDS = 14, 10, 8, 60
"""Longest name behind a label, in a list, and as the whole answer; longest free answer without a label."""

# an adjective of certainty or rank, repeated at most four times: `the single most likely diagnosis`
CERTAIN = (
    r"(?:final|most[ \t]likely|most[ \t]probable|likeliest|likely|probable|primary|principal|leading|main|working|definitive|definite"
    r"|presumptive|provisional|suspected|top|best|overall|correct|single|clinical|radiological|imaging|unifying)"
)
DIAGNOSIS = r"(?:diagnosis(?:[ \t]*#?1)?|diagnoses|dx|answer)"
IS = r"(?:is|was|would[ \t]be|remains|appears[ \t]to[ \t]be|seems[ \t]to[ \t]be|must[ \t]be|should[ \t]be)"
LABEL = re.compile(
    rf"(?:(?:the|my|our|first)[ \t]+)?(?:{CERTAIN}[ \t,/-]{{1,3}}){{0,4}}(?:{DIAGNOSIS}|impression)(?:[ \t]*\([^)\n]{{0,40}}\))?[ \t]*[*_`]{{0,3}}[ \t]*"
    rf"(?:(?:[:：=]|[ \t][–—-][ \t])[ \t*_`]*(?P<rest>[^\n]*)|$)",
    re.IGNORECASE,
)
"""A line that is, or begins with, the label of a diagnosis; `Differential diagnosis` is none."""
SENTENCE = re.compile(
    rf"\b(?:(?:the|my|our)[ \t]+(?:{CERTAIN}[ \t,]{{1,3}}){{0,4}}|(?:{CERTAIN}[ \t,]{{1,3}}){{1,4}}){DIAGNOSIS}"
    rf"(?:,?[ \t]+(?:in|for|here|based|given|considering|to)\b[^.:;\n]{{0,120}}?)??,?[ \t]+{IS}\b[ \t:*_`]*(?=(?P<rest>[^\n]{{0,400}}))",
    re.IGNORECASE,
)
REVERSED = re.compile(
    rf"(?:^|(?<=[.!?]\s))(?P<rest>[A-Z][^.:;!?\n]{{2,120}}?)[ \t]+(?:is|remains|would[ \t]be|appears[ \t]to[ \t]be|seems[ \t]to[ \t]be)[ \t]+"
    rf"(?:by[ \t]far[ \t]+)?(?:the|my)[ \t]+(?:{CERTAIN}[ \t,]{{1,3}}){{1,4}}{DIAGNOSIS}",
    re.MULTILINE,
)
"""`X is the most likely diagnosis.`"""
WEAKER = re.compile(
    r"\b(?:(?:I[ \t]would|I[ \t]will|I)[ \t]diagnose(?:[ \t](?:the|this)[ \t]patient[ \t]with|[ \t](?:him|her|it)[ \t](?:with|as))?"
    r"|(?:consistent|compatible)[ \t]with[ \t]a[ \t]diagnosis[ \t]of|(?:suggests?|suggesting|supports?|indicates?|favou?rs?)[ \t](?:a|the)[ \t]diagnosis[ \t]of"
    r"|(?:the|this)[ \t]patient[ \t](?:most[ \t]likely|very[ \t]likely|likely|probably)[ \t](?:has|had|suffers[ \t]from|suffered)"
    r"|(?:this|it)[ \t]is[ \t](?:most[ \t]likely|very[ \t]likely|likely|probably))[ \t]+(?=(?P<rest>[^\n]{1,400}))",
    re.IGNORECASE,
)
"""Sentences that commit themselves less clearly; they count only if nothing clearer is there, and all of them name the same."""

NOT_THIS = re.compile(
    r"(?:\b(?:if|unless|whether|what|which|exclude|excludes|against|not)\b[^.;\n]*"
    r"|\b(?:less|least|second|third|next|other|another|alternative|alternate|former|initial|previous|prior|earlier|wrong|incorrect|differential)"
    r"[ \t,*_]{1,4}(?:(?:the|a|an|most)[ \t]+)?)$",
    re.IGNORECASE,
)
"""Words before a statement, in its sentence, after which it is a condition, a question, another rank or a denial."""
NO_NAME = re.compile(
    r"(?:not|unlikely|no longer|neither|none of|to|that|what|which|when|if|how|listed|based|as follows|the following|given|made|shown|one|the one"
    r"|used|needed|called|known|supported|confirmed|established|it|he|she|they|this|there|these|those|also|still|often|usually)\b",
    re.IGNORECASE,
)
"""Beginnings of a rest that names nothing."""
OPENING = re.compile(
    r"(?:(?:therefore|thus|hence|so|overall|of[ \t]course|in[ \t](?:conclusion|summary)|(?:based[ \t]on|given)[ \t][^,]{1,200}),?|it[ \t]is[ \t](?:most[ \t])?likely|(?:that[ \t](?:the|this)|the|this)[ \t]patient[ \t](?:most[ \t]likely[ \t]|likely[ \t]|probably[ \t])?(?:has|is[ \t]suffering[ \t]from|suffers[ \t]from|had)"
    r"|(?:this|it)[ \t]is|that[ \t]of|(?:most[ \t]|very[ \t])?(?:likely|probably)|(?:an?[ \t])?(?:case|diagnosis)[ \t]of|(?:most[ \t])?consistent[ \t]with|an?|the)[ \t]+",
    re.IGNORECASE,
)
ENDS = re.compile(
    r"(?<!\bvs)(?<!\bSt)[.!?](?=\s|$|[*_\"')])|,?[ \t](?:because|given|based[ \t]on|since|as[ \t](?:evidenced|it|the|this|there|suggested|shown|indicated|supported)|which|that|who"
    r"|characteri[sz]ed|considering|followed[ \t]by|although|though|but|however|rather[ \t]than|supported[ \t]by|is|are|was|were|has|have|would|could|should"
    r"|may|might|can)\b|,[ \t](?:an?|the|caused|with|due|most|likely|as|and[ \t]the|not|so)\b|[ \t][-–—][ \t](?!or\b|vs)|[ \t]?[|｜]|:[ \t]|:$",
    re.IGNORECASE,
)
"""Where a name ends and an explanation begins. A semicolon, `or` and `and` are no ends: who names several at once has named none."""
BRACKETED = re.compile(r"^\[[^\[\]]*\]|<[^<>]*(?:diagnosis|paragraph|for it|against it)")
"""Text that was removed (`[NAME]`), and copied words of the form."""
NAMES_NOTHING = re.compile(rf"(?:(?:{CERTAIN}|{DIAGNOSIS}|one|the|an?|and|or|of)[ \t,/-]*)+", re.IGNORECASE)
"""Words of a statement that goes in a circle: `The most likely diagnosis is the most likely one.`"""
PERCENT = re.compile(r" ?\((?:confidence|probability|likelihood)?[: ~]{0,3}\d{1,3} ?%\)", re.IGNORECASE)
VERB = re.compile(
    r"\b(?:is|are|was|were|has|have|had|shows?|showed|suggests?|should|would|could|may|might|can|must|will|do|does|did|i|you|we|please|sorry|yes)\b",
    re.I,
)
BRACKETS = re.compile(r"\([^()]*\)")
NO_BARE_NAME = re.compile(
    r"\b(?:at|all|this|that|these|those|here|there|my|your|answers?|questions?|response|form|text|words?|paragraph|sentence|continue|provide|see"
    r"|following|above|below|next|if|then|ok|okay|thanks?|hello|hi|case|notes?|pictures?|images?|scan|findings?|patient)\b",
    re.IGNORECASE,
)
"""Words of talk about the task: an answer of a few words with one of them is no name."""
HEAD = re.compile(r"[,:;|]|[ \t][-–—][ \t]")
"""What ends the first words of an entry of a list: with a verb among these it is a sentence, not a name."""
ABOUT_DIAGNOSES = re.compile(r"diagnos|differential|possib|likel|condition|cause|candidate", re.IGNORECASE)
ABOUT_OTHERS = re.compile(
    r"other|alternativ|less|additional|exclu|ruled|cannot|finding|support|speak|reason|evidence|rationale|test|exam|treat|manage|step|question|symptom|sign|feature|rule|against|fact",
    re.IGNORECASE,
)
ANSWER_HEADING = re.compile(
    r"(?:#{1,6}[ \t]*[*_]{0,3}|[*_]{2,3})[ \t]*(?:(?:my|the|final|short)[ \t]+){0,2}answer[ \t]*:?[ \t]*[*_]{0,3}[ \t]*#*", re.IGNORECASE
)
"""A line that is a heading, or in bold, and says `Answer` alone."""
LETTER = re.compile(r"[^\W\d_]")
BULLET = re.compile(r"\s*[-•*+]\s+(.*)")

FIRST_KEYS = (
    "final_diagnosis", "most_likely_diagnosis", "primary_diagnosis", "leading_diagnosis", "principal_diagnosis", "main_diagnosis",
    "predicted_diagnosis", "top_diagnosis", "working_diagnosis", "diagnosis", "dx", "final_answer", "answer", "prediction",
)  # fmt: skip
LIST_KEYS = (
    "differential", "differential_diagnosis", "differential_diagnoses", "ranked_differential", "ranked_diagnoses", "top_diagnoses",
    "diagnoses", "possible_diagnoses", "candidates",
)  # fmt: skip
RANK_KEY = re.compile(r"(?:rank|diagnosis|number)?[ _]?#?\d{1,2}|first|second|third|fourth|fifth", re.IGNORECASE)
NAME_KEYS = ("name", "diagnosis", "condition", "disease", "dx")


def stated_diagnoses(text: str, *, bare: bool) -> tuple[str, ...]:
    """Return the diagnoses that an answer in another form names, by rank; empty if it names none clearly.

    Of several statements the last one counts, as with choices. `bare` also reads an answer that is a name or a list and nothing else, which
    is only right where a diagnosis is what was asked for.
    """
    text = text[:MAX_CHARACTERS]
    if named := _of_objects(text):
        return named
    leading = _leading(text)
    listed = _listed(text, bare=bare)
    if not leading and not listed and bare:
        leading = _bare(text)
    return tuple(dict.fromkeys((*((leading,) if leading else ()), *listed)))


def leading_statement(text: str) -> str:
    """Return the diagnosis that a text calls the most likely one, in a label or a sentence; empty if it does so nowhere."""
    return _stated(text[:MAX_CHARACTERS])


def free_answer(text: str) -> str:
    """Return a free answer without its label: `The answer is X.`, JSON, the paragraph below a heading, or a text that is short enough."""
    text = text[:MAX_CHARACTERS]
    for value in _objects(text):
        words = value.get("answer") or value.get("final_answer")
        if isinstance(words, str):
            return " ".join(words.split())
    if headed := _under_heading(text):
        return headed
    stated = re.findall(r"\b(?:final[ \t]+)?answer[ \t]+is[ \t:]+([^\n]{1,400})", text, re.IGNORECASE)
    if stated and not NO_NAME.match(stated[-1]):
        return clean(stated[-1])
    has_header = any(re.match(rf"(?:{'|'.join(KNOWN)})\b", DECORATION.sub("", line), re.IGNORECASE) for line in text.splitlines())
    whole = " ".join(text.split())
    return "" if has_header or len(whole.split()) > MAX_FREE_WORDS or whole[:1] in "{[" or whole.endswith("?") else clean(whole)


def _under_heading(text: str) -> str:
    """Return the paragraph below the last heading `Answer`; empty if there is none, or it is too long to be the answer."""
    lines = [line.strip() for line in text.splitlines()]
    last = max((number for number, line in enumerate(lines) if ANSWER_HEADING.fullmatch(line)), default=None)
    following = [] if last is None else list(dropwhile(lambda line: not line, lines[last + 1 :]))
    words = " ".join(takewhile(lambda line: line and not line.startswith("#"), following))
    return clean(words) if len(words.split()) <= MAX_FREE_WORDS and not words.endswith("?") else ""


def lesion_object(text: str) -> dict[str, str]:
    """Return lesion, location and side of the first JSON object that has a lesion; empty without one."""
    for value in _objects(text[:MAX_CHARACTERS]):
        if isinstance(value.get("lesion"), str) and normal_form(value["lesion"]):
            return {name: clean(value[name]) if isinstance(value.get(name), str) else "" for name in ("lesion", "location", "side")}
    return {}


def _leading(text: str) -> str:
    if stated := _stated(text):
        return stated
    weaker = [
        _name(match["rest"]) for match in WEAKER.finditer(text) if not NOT_THIS.search(text[max(0, match.start() - 80) : match.start()])
    ]
    return weaker[0] if weaker and len({normal_form(name) for name in weaker}) == 1 else ""


def _stated(text: str) -> str:
    """Return the last name that is called the diagnosis; a sentence that was cut off gives way to an earlier one."""
    found: list[tuple[int, bool, str]] = []
    for place, rest in _labelled(text):
        found.append((place, True, _name(rest)))
    for pattern in (SENTENCE, REVERSED):
        for match in pattern.finditer(text):
            if _is_no_statement(text, match):
                continue
            rest = match["rest"].strip(" \t*_`") or _next_line(text[match.end("rest") :].split("\n"))
            whole = pattern is REVERSED or match.end("rest") < len(text) or bool(re.search(r"[.!?*\"')]", rest))
            found.append((match.start(), whole, _name(rest)))
    named = [(place, whole, name) for place, whole, name in sorted(found) if name]
    complete = [name for _, whole, name in named if whole]
    return (complete or [name for _, _, name in named] or [""])[-1]


def _is_no_statement(text: str, match: re.Match[str]) -> bool:
    """Return True if the words before a statement, in its sentence, make it a condition, a question, another rank or a denial."""
    before = text[max(0, match.start() - 200) : match.start()]
    return NOT_THIS.search(re.split(r"[.!?]\s|\n", before)[-1]) is not None


def _next_line(lines: list[str]) -> str:
    """Return the next line that is not empty, without its number; empty if it is the heading of another section."""
    following = DECORATION.sub("", next((line for line in lines[:4] if line.strip()), ""))
    return "" if LABEL.match(following) else NUMBERED.sub(r"\2", following, count=1)


def _labelled(text: str) -> Iterator[tuple[int, str]]:
    """Yield the place of each labelled line and the words behind its label, or the next line that is not empty."""
    place = 0
    lines = text.split("\n")
    for number, line in enumerate(lines):
        plain = DECORATION.sub("", line).rstrip(" \t*_`")
        match = LABEL.match(plain)
        if match and (match["rest"] is not None or match.end() == len(plain)):
            rest = (match["rest"] or "").strip(" *_`")
            yield place, NUMBERED.sub(r"\2", rest, count=1) or _next_line(lines[number + 1 :])
        place += len(line) + 1


def _name(text: str) -> str:
    """Return the name at the beginning of a statement; empty if it begins with something else."""
    plain = PERCENT.sub("", " ".join(re.sub(r"[*_`]{1,3}", "", text).split())).lstrip("\"'(, ")
    for _ in range(3):
        plain = plain[match.end() :] if (match := OPENING.match(plain)) else plain
    if NO_NAME.match(plain) or not plain or BRACKETED.search(plain) or plain.partition(":")[0].upper() in KNOWN:
        return ""
    name = clean(ENDS.split(INLINE_NUMBER.split(plain)[0], maxsplit=1)[0])
    circle = NAMES_NOTHING.fullmatch(name) or not LETTER.search(name)
    return name if normal_form(name) and not circle and "?" not in name and len(name.split()) <= MAX_WORDS else ""


def _listed(text: str, *, bare: bool) -> tuple[str, ...]:
    """Return the names of the first list that is introduced as one of diagnoses, or (`bare`) that the answer begins with."""
    lines = text.split("\n")
    for start, line in enumerate(lines):
        numbered = NUMBERED.fullmatch(DECORATION.sub("", line))
        bullet = BULLET.fullmatch(line)
        if not bullet and not (numbered and int(numbered[1]) == 1):
            continue
        before = [other for other in lines[:start] if other.strip()]
        about = before[-1] if before else ""
        introduced = bool(ABOUT_DIAGNOSES.search(about)) and not ABOUT_OTHERS.search(about)
        alone = bare and not before and (not bullet or all(BULLET.fullmatch(other) for other in lines if other.strip()))
        if not introduced and not alone:
            return ()
        names = list(_items(lines[start:], bulleted=numbered is None))
        return tuple(name for name in names if name)[:5] if names and names[0] else ()
    return ()


def _items(lines: list[str], *, bulleted: bool) -> Iterator[str]:
    """Yield the name of each entry of a list, empty for one that is a sentence or a part of the requested form."""
    expected = 1
    for line in lines:
        plain = DECORATION.sub("", line)
        numbered = NUMBERED.fullmatch(plain)
        if bulleted and not (match := BULLET.fullmatch(line)):
            if line.strip():
                return
            continue
        if not bulleted:
            if numbered is None:  # an explanation below an entry
                continue
            if int(numbered[1]) != expected:
                return
            expected += 1
        entry = clean(match[1] if bulleted else numbered[2])  # type: ignore[index]
        entry = LABEL.sub(lambda label: label["rest"] or "", entry, count=1) if LABEL.match(entry) else entry
        name = _name(entry)
        known = name.upper().partition(" ")[0] in KNOWN
        yield "" if known or VERB.search(HEAD.split(BRACKETS.sub("", entry), maxsplit=1)[0]) or len(name.split()) > MAX_LIST_WORDS else name


def _bare(text: str) -> str:
    """Return the name that is the whole answer, or that its only sentence says it is."""
    whole = " ".join(text.split())
    sentence = re.fullmatch(r"(?:it|this)[ \t]is[ \t]+(.*)", whole, re.IGNORECASE)
    plain = sentence[1] if sentence else whole
    prose = VERB.search(plain) or NO_BARE_NAME.search(plain) or re.search(r"[?:\n]|[.!;]\s", text.strip())
    return _name(plain) if not prose and len(plain.split()) <= MAX_BARE_WORDS and re.search(r"[^\W\d_]{3}", plain) else ""


def _objects(text: str) -> Iterator[dict[str, Any]]:
    """Yield the JSON objects of a text, outermost first."""
    decoder = json.JSONDecoder()
    end = 0
    for match in list(re.finditer(r"[{\[]", text))[:MAX_OBJECTS]:
        if match.start() < end:
            continue
        try:
            value, end = decoder.raw_decode(text, match.start())
        except (ValueError, RecursionError):
            continue
        value = valid_text(value)
        yield from _inner({"diagnoses": value} if isinstance(value, list) and text[:end].strip() == text.strip() else value, 0)


def _inner(value: Any, depth: int) -> Iterator[dict[str, Any]]:
    if isinstance(value, dict) and depth < MAX_DEPTH:
        yield {re.sub(r"[^a-z]+", "_", str(key).lower()).strip("_"): entry for key, entry in value.items()}
        for entry in value.values():
            yield from _inner(entry, depth + 1)
    elif isinstance(value, list) and depth < MAX_DEPTH:
        for entry in value:
            yield from _inner(entry, depth + 1)


def _of_objects(text: str) -> tuple[str, ...]:
    """Return the diagnoses of the first object with a usual key: the single one first, then the ranked ones."""
    for value in _objects(text):
        keys = [next((key for key in FIRST_KEYS if key in value), ""), next((key for key in LIST_KEYS if key in value), "")]
        names = [name for key in keys if key for name in _names(value[key]) if normal_form(name)]
        if names:
            return tuple(dict.fromkeys(names))[:5]
    return ()


def _names(value: Any) -> list[str]:
    """Return the names in a value: a text, an object with a name or with one entry per rank, or a list of these."""
    if isinstance(value, str):
        return [_name(value)]
    if isinstance(value, dict):
        lowered = {str(key).lower(): entry for key, entry in value.items()}
        single = next((lowered[key] for key in NAME_KEYS if isinstance(lowered.get(key), str)), None)
        value = [single] if single is not None else [entry for key, entry in value.items() if RANK_KEY.fullmatch(str(key))]
    return [name for entry in value if isinstance(entry, str | dict) for name in _names(entry)] if isinstance(value, list) else []
