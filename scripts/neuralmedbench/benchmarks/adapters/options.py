"""Read the options of a choice, the right option and pictures, in the forms that data sets use."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from neuralmedbench.benchmarks.adapters.paths import ABSENT, at_path, listed
from neuralmedbench.benchmarks.adapters.rows import MAX_NAME, cell_text
from neuralmedbench.benchmarks.source_folder import RowError, SourceFolder, decoded
from neuralmedbench.errors import DataError
from neuralmedbench.records.arm_changes import by_digest
from neuralmedbench.records.questions import LETTERS
from neuralmedbench.records.words import LONGEST_ANSWER, counted, quote

LETTERED = re.compile(r"^[ \t]*\(?([A-J])\s*[.):]\s*", re.MULTILINE)
LETTERED_SMALL = re.compile(r"^[ \t]*\(?([a-j])\s*[.):]\s*", re.MULTILINE)
NAMED = re.compile(r"(?:(?:option|choice|answer)[ _-]*)?\(?([A-J])[.):]?", re.IGNORECASE)
NUMBERED = frozenset({"id", "idx", "index", "key", "label", "letter", "no", "number", "option"})
"""Keys of an option whose numbers say which option it is."""
FEWEST_OPTIONS = 2
LEADING = re.compile(r"\(?([A-Ja-j])\s*(?:[.):]+(.*))?", re.DOTALL)
BASE64 = re.compile(r"data:|iVBORw0K|/9j/|R0lGOD|UklGR|SUkqA|TU0AK|Qk[0-2]")
"""First letters of a picture in base64: PNG, JPEG, GIF, WebP, TIFF, BMP."""


def options_at(row: Mapping[str, Any], column: str) -> tuple[str, ...]:
    """Read the options of a column or path, in the order of the letters or numbers that stand beside their texts.

    `options.text` reads `[{letter: B, text: ...}, ...]`, `options.*` and `options.*.text` objects by letter. DataError, with the column, for
    letters with a gap.

    Examples
    --------
    >>> options_at({"options": [{"letter": "B", "text": "x"}, {"letter": "A", "text": "y"}]}, "options.text")
    ('y', 'x')
    """
    above, _, last = column.rpartition(".")
    # `*` takes the values of an object by its keys
    tops = (above.removesuffix(".*"), above) if last == "*" or above.endswith(".*") else (above,)
    entries = next((value for top in tops if above and (value := at_path(row, top)) is not ABSENT), ABSENT)
    texts = at_path(row, column)
    objects = [entry for entry in listed(texts) if isinstance(entry, Mapping)] if isinstance(listed(texts), list | tuple) else []
    if objects:
        keys = ", ".join(map(str, objects[0]))
        message = f"the column {column!r} holds objects (keys {keys}); name the key of their texts, as in `{column}.<key>`"
        raise DataError(message)
    try:
        names = _names_of(listed(entries), last)
        return _in_order(names, texts) if isinstance(texts, list | tuple) and len(names) == len(texts) > 0 else options_of(texts)
    except DataError as error:
        message = f"the column {column!r}: {error}"
        raise DataError(message) from None


def _names_of(entries: Any, text: str) -> list[str]:
    """Return the letters or numbers of options: keys of an object, or what another key than `text` has in every entry of a list; else none."""
    if isinstance(entries, Mapping):
        columns = {"key": list(entries)}
    elif isinstance(entries, list | tuple) and entries and all(isinstance(entry, Mapping) for entry in entries):
        columns = {key: [entry.get(key) for entry in entries] for key in entries[0] if key != text}
    else:
        return []
    for key, values in columns.items():
        names = [str(value).strip() for value in values]
        letters = [match[1].upper() for name in names if (match := NAMED.fullmatch(name))]
        # other numbers are the ids of a database
        if len(letters) == len(names) or (str(key).lower() in NUMBERED and set(names) in _numbers(len(names))):
            return letters or names
    return []


def _numbers(count: int) -> tuple[set[str], set[str]]:
    return {str(number) for number in range(count)}, {str(number) for number in range(1, count + 1)}


def options_of(value: Any) -> tuple[str, ...]:
    """Read the options of a cell without their letters: a list, a mapping of letters or numbers to texts, JSON of either, or lines `A. ...`.

    DataError for any other form or a gap in the letters; missing options at the end are dropped.
    """
    if isinstance(value, str) and value.strip()[:1] in {"[", "{"}:
        value = listed(value)
        if isinstance(value, str):
            message = "the options begin like JSON but are invalid"
            raise DataError(message)
    if isinstance(value, Mapping):
        return _in_order([str(key).strip().upper() for key in value], value.values())
    if isinstance(value, list | tuple):
        return _without_letters(without_empty_end([cell_text(text) for text in value]))
    # text before the first letter, then letters and texts in turn
    pieces = _lettered(cell_text(value)).split(cell_text(value))
    if len(pieces) < 3 or pieces[0].strip():
        message = f"the options are in an unknown form ({type(value).__name__}); expected a list, letters with texts, or lines 'A. ...'"
        raise DataError(message)
    letters = [letter.upper() for letter in pieces[1::2]]
    if order_of(letters) != list(range(len(letters))):
        raise DataError(_in_another_order(letters))
    return tuple(text.strip() for text in pieces[2::2])


def order_of(names: Sequence[str]) -> list[int]:
    """Return the places of options in the order of their letters, or of their numbers from 0 or 1; DataError for a gap or a repeated one.

    Examples
    --------
    >>> order_of(["C", "A", "B"]), order_of(["1", "0"])
    ([1, 2, 0], [1, 0])
    """
    numbers = [int(name) if name.isdecimal() else LETTERS.find(name) if len(name) == 1 else -1 for name in names]
    # numbers from 0 or 1 stand for letters
    first = min(min(numbers, default=0), 1) if all(name.isdecimal() for name in names) else 0
    if sorted(numbers) != list(range(first, first + len(names))) or len(names) > len(LETTERS):
        # keys may be texts of the set, which are not repeated
        shown = f": {', '.join(names)}" if all(len(name) < 3 for name in names) else ""
        message = f"the letters of the options are not A, B, C... without a gap{shown}"
        raise DataError(message)
    return sorted(range(len(names)), key=numbers.__getitem__)


def _in_order(names: Sequence[str], texts: Iterable[Any]) -> tuple[str, ...]:
    found = [cell_text(text) for text in texts]
    return tuple(without_empty_end([found[place] for place in order_of(names)]))


def without_empty_end(texts: Sequence[str]) -> list[str]:
    """Drop empty texts at the end, with which tables of mixed sets pad short rows."""
    count = max((place for place, text in enumerate(texts, start=1) if text), default=0)
    return list(texts[:count])


def _lettered(text: str) -> re.Pattern[str]:
    """Return the pattern of letters before options: capital or small ones, as the first option has it."""
    return LETTERED if LETTERED.match(text) else LETTERED_SMALL


def _in_another_order(letters: Sequence[str]) -> str:
    return f"the options begin with the letters {', '.join(letters)}; expected {', '.join(sorted(letters))}, or texts without letters"


def _without_letters(texts: Sequence[str]) -> tuple[str, ...]:
    """Remove the letters if every option begins with its own; DataError if they begin with A, B, C... in another order."""
    found = [_lettered(texts[0]).match(text) for text in texts] if texts else []
    letters = [match[1].upper() for match in found if match]
    if len(letters) == len(texts) > 1 and letters != sorted(letters) == list(LETTERS[: len(letters)]):
        raise DataError(_in_another_order(letters))
    if all(match and match[1].upper() == letter for match, letter in zip(found, LETTERS, strict=False)):
        return tuple(text[match.end() :].strip() for match, text in zip(found, texts, strict=True) if match)
    return tuple(texts)


def letter_of(value: Any, options: Sequence[str]) -> str:
    """Return the letter of the right option: the cell has the letter (`B`, `(B)`, `B. text`) or the whole text of one option.

    RowError, which quotes no more than a short value, if it matches no option or several.
    """
    _require_options(options)
    text = cell_text(value)
    same = [letter for letter, option in zip(LETTERS, options, strict=False) if _plain(option) == _plain(text)]
    if len(same) == 1 and text:
        return same[0]
    if len(same) > 1:
        message = "the text of the right answer is repeated among the options"
        raise DataError(message)
    found = LEADING.fullmatch(text)
    place = LETTERS.find(found[1].upper()) if found and not same else -1
    # a letter is followed by that option's text or by nothing: "C. difficile" is not a letter
    if found and 0 <= place < len(options) and _plain(found[2] or "") in {"", _plain(options[place])}:
        return LETTERS[place]
    message = f"the right answer is not one of {LETTERS[0]} to {LETTERS[max(len(options) - 1, 0)]}, nor the text of an option"
    letters = re.sub(r"[\s,;/&+]|\band\b", "", text).upper()
    if 1 < len(letters) <= len(options) and len(set(letters)) == len(letters) and set(letters) <= set(LETTERS[: len(options)]):
        message += f"; found {len(letters)} letters: a question with several right answers has `runner: structured` and `rule: letters`"
    if _plain(text) in {"true", "false"}:
        message += '; found true or false: with `fixed_options: ["true", "false"]` it is one of them'
    raise RowError(message if ";" in message else f"{message}; correct the answer of that row", quote(text, LONGEST_ANSWER))


def _require_options(options: Sequence[str]) -> None:
    if len(options) < FEWEST_OPTIONS:
        message = f"the row has {counted(len(options), 'option')}, and a choice needs {FEWEST_OPTIONS} or more; correct its options, or leave the row out"
        raise RowError(message)


def numbered_letter(value: Any, options: Sequence[str], *, first: int) -> str:
    """Return the letter of an option by its number, counted from `first`; DataError if there is no such option."""
    _require_options(options)
    text = cell_text(value)
    place = int(text) - first if text.isdecimal() else -1
    if not 0 <= place < len(options):
        message = f"the right answer is not a number from {first} to {len(options) - 1 + first}"
        is_letter = LEADING.fullmatch(text) is not None and not text.isdecimal()
        message += "; for letters leave `first_number` out" if is_letter else "; correct the answer of that row"
        raise RowError(message, quote(text, LONGEST_ANSWER))
    return LETTERS[place]


def digest_order(question_id: str, options: Iterable[str]) -> tuple[str, ...]:
    """Order options by a digest of question and option: the same in every run, with the right one at no fixed position."""
    return tuple(sorted(options, key=lambda option: by_digest(question_id, _plain(option))))


def _plain(text: str) -> str:
    return " ".join(text.split()).casefold()


def picture_cells(value: Any, folder: str) -> list[str | bytes]:
    """Return the pictures of a cell: paths, which get the folder, base64, or bytes; none for an empty cell."""
    if isinstance(value, str) and value.strip()[:1] in {"[", "{"}:
        value = listed(value)
        if isinstance(value, str):
            message = "a list of pictures begins like JSON but is invalid"
            raise DataError(message)
    entries = value if isinstance(value, list | tuple) else [value]
    return [_picture_cell(entry, folder) for entry in entries if entry is not None and entry != ""]


def _picture_cell(entry: Any, folder: str) -> str | bytes:
    if isinstance(entry, Mapping):
        keys = ", ".join(sorted(map(str, entry)))
        message = f"a picture is an object with the keys {keys}; name one of them in `columns`, as in `image.bytes`"
        raise DataError(message)
    if isinstance(entry, bytes):
        return entry
    name = cell_text(entry)
    # below a folder that the mapping names, a path with a slash in front is a path too
    return f"{folder}/{name.lstrip('/')}" if folder and not _is_base64(name) else name


def _is_base64(text: str) -> bool:
    return len(text) > MAX_NAME or BASE64.match(text) is not None


def picture_content(file: str | bytes, source: SourceFolder, table: Path) -> Path | bytes:
    """Return the file of a picture in the folder or beside its table, or its bytes; DataError if it is not there or no base64."""
    if isinstance(file, bytes):
        return file
    return decoded(file) if _is_base64(file) else source.picture(file, beside=table)
