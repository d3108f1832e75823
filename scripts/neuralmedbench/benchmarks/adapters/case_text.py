"""The case and the rounds of a mapped question: text columns, conversations, dialogues, and the question that closes a text.

Objects of any depth become text: a line for every value below the readable names of its keys, without keys that are left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any

from neuralmedbench.benchmarks.adapters.paths import ABSENT, at_path, joined_text, listed, statements
from neuralmedbench.benchmarks.adapters.rows import cell_text
from neuralmedbench.benchmarks.answer_leaks import LeakTerm, term_spans
from neuralmedbench.config.mapping_sections import ConversationMapping, FieldMapping, RoundMapping, TextMapping, column_of
from neuralmedbench.config.mappings import MappingConfig
from neuralmedbench.errors import DataError
from neuralmedbench.records.questions import QuestionTurn
from neuralmedbench.records.vocabulary import normal_form

SENTENCE = re.compile(r"""[.!?。？！]["'”’)\]]*(?=\s)|[。？！]["'”’)\]]*(?=\S)|\n+""")
"""Ends of sentences; Chinese ones need no following space."""
SHORT = re.compile(
    r"(?:^|[\s(])(?:[A-Z]|e\.g|i\.e|vs|cf|approx|ca|no|fig|figs|dr|mr|mrs|ms|prof|st|resp|incl|max|min|temp|hr|wt|yr|yrs|mo|wk|sec|lab)\.$",
    re.IGNORECASE,
)
"""Abbreviations whose full stop does not end a sentence, and initials."""
ASKS = re.compile(r"""[?？]["'”’)\]]*\s*$""")
MAX_DEPTH = 50
"""Deeper objects are refused: no person wrote them."""
CAMEL = re.compile(r"[a-z]{2,}(?:[A-Z][a-z]+)+")
"""Names such as `timeAtOnset`; `HbA1c` and `pH` are no such names."""


def paths_of_case(mapping: MappingConfig) -> list[str]:
    """Return the columns of conversations and dialogues."""
    named = [mapping.facts, mapping.rounds_in, mapping.conversation.column if mapping.conversation else ""]
    for one in () if mapping.rounds_in else mapping.rounds:
        named += [*map(column_of, one.text), one.question, *(one.images.columns if one.images else ())]
        for value in one.fields.values():
            named += columns_of_value(value)
    return named


def columns_of_value(value: FieldMapping) -> list[str]:
    """Return the columns of a value that every row needs."""
    return [value.column, value.low, value.high, *(value.rules.columns if value.rules else ())]


def text_of(mapping: MappingConfig, row: Mapping[str, Any]) -> str:
    """Return the text columns of a row, joined by empty lines."""
    texts = [(_heading(entry), _cell(row, entry, mapping.join)) for entry in mapping.text]
    return "\n\n".join(f"{heading}:\n{text}" if mapping.headings else text for heading, text in texts if text)


def _heading(entry: str | TextMapping) -> str:
    return entry if isinstance(entry, str) else readable(entry.column.rpartition(".")[2])


def shown_objects(mapping: MappingConfig, row: Mapping[str, Any]) -> list[tuple[TextMapping, Any]]:
    """Return the objects of a row that are written as text, in `text` and in the rounds."""
    shown = [(entry, row) for entry in mapping.text]
    shown += [(entry, cells) for one, cells, _ in round_cells(mapping, row) for entry in one.text]
    found = [(entry, at_path(cells, entry.column)) for entry, cells in shown if isinstance(entry, TextMapping)]
    return [(entry, value) for entry, value in found if value is not ABSENT]


def round_cells(mapping: MappingConfig, row: Mapping[str, Any]) -> list[tuple[RoundMapping, Mapping[str, Any], tuple[str | int, ...]]]:
    """Return the description of each round, its cells, and their place in the row."""
    if not mapping.rounds_in:
        return [(one, row, ()) for one in mapping.rounds]
    value = at_path(row, mapping.rounds_in)
    rounds = listed(value) if value is not ABSENT else None
    place = tuple(mapping.rounds_in.split(".")) if mapping.rounds_in not in row else (mapping.rounds_in,)
    cells = [(number, one) for number, one in enumerate(rounds if isinstance(rounds, list | tuple) else ()) if isinstance(one, Mapping)]
    return [(mapping.rounds[0], one, (*place, number)) for number, one in cells]


def conversation_of(mapping: ConversationMapping, row: Mapping[str, Any]) -> tuple[str, str]:
    """Return the last message, which is the question, and the earlier ones with their speakers."""
    messages = listed(row[mapping.column])
    if not isinstance(messages, list | tuple) or not messages or not all(isinstance(one, Mapping) for one in messages):
        message = f"the column {mapping.column!r} is not a list of messages"
        raise DataError(message)
    said = [(cell_text(one.get(mapping.role)), joined_text(one, mapping.content, "\n")) for one in messages]
    if said[-1][0].casefold() == "assistant":
        message = "the last message of the conversation is the assistant's"
        raise DataError(message)
    before = [f"{role.capitalize()}: {words}" if role else words for role, words in said[:-1]]
    return said[-1][1], "\n\n".join(("Conversation so far:", *before)) if before else ""


def rounds_of(mapping: MappingConfig, row: Mapping[str, Any], text: str, asked: str, *, pictures: int) -> tuple[QuestionTurn, ...]:
    """Return the rounds of a dialogue, with all pictures in the first; none for other runners."""
    if mapping.runner == "choice":
        return ()
    if mapping.facts:
        facts = facts_of(mapping, row)
        return (QuestionTurn(reveal="\n".join(filter(None, (text, *facts))), question=asked, images=tuple(range(pictures))),)
    if mapping.rounds_in:
        rounds = listed(row[mapping.rounds_in])
        if not isinstance(rounds, list | tuple) or not rounds or not all(isinstance(one, Mapping) for one in rounds):
            message = f"the column {mapping.rounds_in!r} is not a list of rounds"
            raise DataError(message)
    described = round_cells(mapping, row)
    turns = [(reveal_of_round(one, cells, mapping.join), question_of_round(one, cells, mapping.join)) for one, cells, _ in described]
    if not all(question for _, question in turns):
        message = "the question of a round is empty"
        raise DataError(message)
    first = "\n\n".join(filter(None, (text, turns[0][0]))) if turns else ""
    return tuple(
        QuestionTurn(reveal=reveal if place else first, question=question, images=() if place else tuple(range(pictures)))
        for place, (reveal, question) in enumerate(turns)
    )


def facts_of(mapping: MappingConfig, row: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the facts: a list, numbered statements, or the lines of a text; DataError if there are none."""
    value = listed(row[mapping.facts])
    lines = value if isinstance(value, list | tuple) else cell_text(value).splitlines()
    if not (facts := statements(value) if len(statements(value)) > 1 else statements(list(lines))):
        message = "the dialogue has no facts"
        raise DataError(message)
    return facts


def reveal_of_round(one: RoundMapping, cells: Mapping[str, Any], join: str) -> str:
    """Return what a round reveals."""
    return "\n\n".join(filter(None, (_cell(cells, entry, join) for entry in one.text)))


def question_of_round(one: RoundMapping, cells: Mapping[str, Any], join: str) -> str:
    """Return the question of a round."""
    return "\n".join(filter(None, (_cell(cells, one.question, join) if one.question else "", one.ask)))


def without_words(text: str, words: Sequence[str]) -> str:
    """Remove words of a data set's own from a question, such as marks of a tokenizer."""
    for one in words:
        text = text.replace(one, "")
    return text.strip() if words else text


def _cell(cells: Mapping[str, Any], entry: str | TextMapping, join: str) -> str:
    column = column_of(entry)
    value = at_path(cells, column)
    value = None if value is ABSENT else value
    return joined_text({column: value}, column, join) if isinstance(entry, str) else object_text(entry, value)


def vignette_and_lead_in(text: str) -> tuple[str, str]:
    """Split an examination question into the vignette and the lead-in.

    The lead-in starts at the last run of sentences with a question mark, or at the last sentence if there is none, and includes all that
    follows.

    Examples
    --------
    >>> vignette_and_lead_in("A man of 60 falls. Dr. Who sees a tremor. What is it? Which drug helps?")
    ('A man of 60 falls. Dr. Who sees a tremor.', 'What is it? Which drug helps?')
    >>> vignette_and_lead_in("Which lobe is affected? Fluid is bright.")
    ('', 'Which lobe is affected? Fluid is bright.')
    """
    sentences = _sentences(text.strip())
    asking = [place for place, sentence in enumerate(sentences) if ASKS.search(sentence)]
    first = asking[-1] if asking else len(sentences) - 1
    while first > 0 and first - 1 in asking:
        first -= 1
    return "".join(sentences[:first]).strip(), "".join(sentences[first:]).strip()


def _sentences(text: str) -> list[str]:
    """Split a text after every sentence; the parts joined are the text."""
    # a candidate end counts unless the full stop belongs to an abbreviation or a lower-case letter follows
    cuts, begin = [0], 0
    for found in SENTENCE.finditer(text):
        before, after = text[begin : found.end()], text[found.end() :].lstrip()
        # a lower-case letter continues the sentence, as in "approx. two weeks"
        if before.strip() and after and not ("." in found[0] and (SHORT.search(before.rstrip()) or after[0].islower())):
            cuts.append(found.end())
            begin = found.end()
    return [text[start:end] for start, end in zip(cuts, [*cuts[1:], len(text)], strict=True)]


def object_text(entry: TextMapping, value: Any) -> str:
    r"""Write an object as text, in the order of the file; DataError if it holds bytes or is too deep.

    Empty values are left out, with keys that have no other. Keys lose their underscores; booleans are `yes` and `no`.

    Examples
    --------
    >>> tests = {"Chest_X-Ray": "Normal.", "Blood": {"WBC": 9, "CRP": None}, "Seen": ["Rash", {"Site": "arm"}], "Other": {}}
    >>> print(object_text(TextMapping(column="Tests", leave_out=("Blood.CRP",)), tests))
    Chest X-Ray: Normal.
    Blood:
      WBC: 9
    Seen:
      - Rash
      - Site: arm
    """
    return "\n".join(_lines(listed(value), entry, ()))


def readable(key: str) -> str:
    """Return the name of a key as words.

    Examples
    --------
    >>> readable("Chest_X-Ray"), readable("timeAtOnset"), readable("HbA1c")
    ('Chest X-Ray', 'time at onset', 'HbA1c')
    """
    if CAMEL.fullmatch(key):
        key = re.sub(r"(?=[A-Z])", " ", key).lower()
    return " ".join(key.replace("_", " ").split())


def object_parts(entry: TextMapping, value: Any) -> Iterator[tuple[str, str]]:
    """Yield the path and the words of everything that is written: of each key, and of each value that is no object or list."""
    for path, one, keyed in _nodes(listed(value), ()):
        if not is_left_out(entry.leave_out, path) and _lines(one, entry, path):
            if keyed:
                yield ".".join(path), readable(path[-1])
            if not isinstance(one, Mapping | list | tuple):
                yield ".".join(path), _words(one)


def object_paths(value: Any) -> set[str]:
    """Return the paths of all keys of an object; entries of lists have the path of their list."""
    return {".".join(path) for path, _, keyed in _nodes(listed(value), ()) if keyed}


def is_left_out(leave_out: Sequence[str], path: Sequence[str]) -> bool:
    """Return True if `leave_out` has a key or one of those above it."""
    return any(_pattern(one).fullmatch(".".join(path[:end])) for one in leave_out for end in range(1, len(path) + 1))


def paths_with_answer(entry: TextMapping, value: Any, terms: Sequence[LeakTerm]) -> set[str]:
    """Return the paths where a written object has a term of the answer as whole words."""
    return {path for path, words in object_parts(entry, value) if term_spans(words, terms)}


def paths_of_copies(entry: TextMapping, value: Any, terms: Sequence[LeakTerm]) -> set[str]:
    """Return the paths where a written object has a term of the answer and nothing else."""
    names = {term.words for term in terms}
    return {path for path, words in object_parts(entry, value) if tuple(normal_form(words).split()) in names}


@cache
def _pattern(path: str) -> re.Pattern[str]:
    parts = ["(?:.+[.])?" if part == "**" else re.escape(part).replace(r"\*", "[^.]*") + "[.]" for part in path.split(".")]
    return re.compile("".join(parts).removesuffix("[.]"))


def _nodes(value: Any, path: tuple[str, ...], *, keyed: bool = False, depth: int = 0) -> Iterator[tuple[tuple[str, ...], Any, bool]]:
    """Yield the path and value of every key, and of every entry of a list, which has the path of the list and is not `keyed`."""
    yield path, value, keyed
    if depth > MAX_DEPTH:  # refused when it is written
        return
    if isinstance(value, Mapping):
        for key, one in value.items():
            yield from _nodes(one, (*path, str(key)), keyed=True, depth=depth + 1)
    elif isinstance(value, list | tuple):
        for one in value:
            yield from _nodes(one, path, depth=depth + 1)


def _lines(value: Any, entry: TextMapping, path: tuple[str, ...], depth: int = 0) -> list[str]:
    if depth > MAX_DEPTH:
        message = f"the column {entry.column!r} has more than {MAX_DEPTH} levels of objects; leave out what is below {path[0]!r}"
        raise DataError(message)
    if isinstance(value, Mapping):
        lines = []
        for key, one in value.items():
            below = (*path, str(key))
            if not is_left_out(entry.leave_out, below):
                lines += _headed(readable(str(key)), one, _lines(one, entry, below, depth + 1))
        return lines
    if isinstance(value, list | tuple):
        blocks = [_lines(one, entry, path, depth + 1) for one in value]
        return [line for block in blocks if block for line in (f"- {block[0]}", *(f"  {line}" for line in block[1:]))]
    if isinstance(value, bytes):
        message = f"the column {entry.column!r}: {'.'.join(path)!r} holds bytes where text was expected; add it to `leave_out`"
        raise DataError(message)
    return [line.strip() for line in _words(value).splitlines() if line.strip()]


def _words(value: Any) -> str:
    return ("no", "yes")[value] if isinstance(value, bool) else cell_text(value)


def _headed(name: str, value: Any, lines: Sequence[str]) -> list[str]:
    """Return lines below their heading, or one line of text behind it."""
    if not lines or not name:
        return list(lines)
    if len(lines) == 1 and not isinstance(value, Mapping | list | tuple):
        return [f"{name}: {lines[0]}"]
    return [f"{name}:", *(f"  {line}" for line in lines)]
