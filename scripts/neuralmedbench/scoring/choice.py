r"""Read which option a model chose, in the forms that models really write: `(C)`, `\boxed{C}`, `The answer is C.`, `{"answer": "C"}`."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from typing import NamedTuple

from neuralmedbench.records.questions import LETTERS
from neuralmedbench.records.vocabulary import normal_form
from neuralmedbench.scoring.spelling import latin_letters

MARKER = re.compile(
    r"""
      (?P<boxed>\\boxed\s*\{)
    | ["'](?:[a-z]{1,20}[_ ]?){0,2}(?:answer|choice|option|réponse|respuesta|antwort|resposta|risposta|ответ)(?:[_ ]?(?:choice|letter|option|key|label|text))?["']\s*:\s*(?P<quote>["'])
    | (?<![^\W_])(?:answer|choice|option)(?:_(?:choice|letter|option))?(?![a-z])[\s*_`"]*
      (?:is|are|(?:would|should|must)(?:\s+most)?(?:\s+likely)?\s+be|:|=)
    | (?P<said>\b(?:option|choice|answer)\s+(?=\(?[A-J]\)?\s+(?:is|would\s+be)\s+(?:correct|right)\b))
    | \b(?:option|choice|answer)\s+(?=\(?[A-J]\)?\s+(?:is|would\s+be)\s+(?:the\s+)?(?:correct|right|best|most\s+(?:likely|appropriate)))
    | \bI(?:'d|'ll|\s+would|\s+will)?\s+(?:choose|select|pick|go\s+with)\b
    | <(?:final_)?answer>
    | (?:答案|答え|回答|正答|正解|정답|답)[\s:：是为は은이]*
    | \b(?:antwort|respuesta|réponse|risposta|resposta|odpowiedź|ответ|відповідь|απάντηση|الإجابة|الجواب|پاسخ|תשובה|उत्तर|คำตอบ)
      (?:\s+(?:correct[ae]?|corret[ao]|corrett[ao]|exacte|final[ae]?|definitiva|richtige?|правильный|верный))?[\s*_`]*[:=—–]
    | \bje\s+choisis\b | \bc['’]est\s+(?:donc\s+)?la\s+(?=[A-J]\b)
    | \b(?:antwort|option|respuesta|opción|resposta|opção|alternativa|risposta|opzione|réponse|proposition)
      (?:\s+(?!(?:no|não|non|nicht|keine?|ne|nunca)\b)[^\W\d_]{1,20}){0,3}\s+(?:es|será|é|è|est|ist)\b
    | (?:选项|選項)\s*(?=[A-J]\s*(?:是|为|為)\s*(?:正确|正確|最)) | (?:故选|故選|应选|應選|答案选|答案選)[择擇]?[\s:：]*
    | ^[^\S\n]*+[>\#*_`]*+[^\S\n]*+(?:final\s+)?answer[^\S\n]*+[*_`]*+[^\S\n]*+$
    """,
    re.IGNORECASE | re.VERBOSE | re.MULTILINE,
)
"""Words before a choice; the last marker that is followed by a readable choice counts."""

NOT_MEANT = re.compile(
    r"(?:(?:\b(?:not|never|if|whether|unless)|n't)\s+(?:(?:the|an?|my|its)\s+)?(?:(?:only|single|correct|right|best|final|appropriate|most|likely)\s+){0,2}"
    r"|\b(?:each|every|other|wrong|incorrect|remaining)\s+"
    r"|(?:^|[.!?]\s)\s*(?:if|had|were)\s+(?!(?:i|you|we|one|forced|only)\b)[^.!?\n]{1,100},\s+(?:the\s+)?(?:correct\s+|right\s+|best\s+)?(?=\S*$))$",
    re.IGNORECASE | re.MULTILINE,
)
"""Before a marker that introduces no choice: `are not the correct answer:`, `if the answer is`, `each option:`, `If she were pregnant, the answer`."""
HEADING = re.compile(r"\bwhy\b[^\n.]*$", re.IGNORECASE)
"""Before a marker at the end of its line: the heading of a list of reasons."""
LONGEST_BEFORE = 140
"""Characters before a marker that are looked at for such words."""
NEXT_QUESTION = re.compile(r"^[\s*#_]{0,20}(?:question|options|choices)\s*\d{0,3}\s*[*_]{0,3}:", re.IGNORECASE | re.MULTILINE)
"""A model that goes on asks itself another question."""
MAX_MARKERS, MAX_CONTENT = 20, 2000
"""How many markers are tried, from the last, and how many characters after each are read."""

IN_WORD = r"[^\W\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]"
"""A letter or digit of a word; Chinese, Japanese and Korean stand next to a letter without a space."""

BEFORE = re.compile(
    r"(?:[\s*_`\"'“”$(（\[{<>:：=#-]|\\[(\[]|\\(?:boxed|text|textbf|mathrm|mathbf)\b"
    r"|\b(?:most|likely|probably|therefore|thus|clearly|definitely|hence|indeed|option|choice|letter|answer|the|is)\b"
    r"|\b(?:donc|proposition|opción|opção|opzione|alternativa|letra|lettera|lettre|antwort|la|el|die|l['’]|a(?=\s+(?:letra|alternativa|opção|[*_(]{0,3}[B-J]\b)))\s)*",
    re.IGNORECASE,
)
"""Characters and words between a marker and its letter."""

LETTER = re.compile(rf"([A-Za-z])(?!{IN_WORD}|['-]\w)")
AFTER = re.compile(r"[^\S\n]*[*_`\"'“”$)）\]}>.．。:：,，、; \t-]*")
"""Characters after a letter, in its line."""

UNDECIDED = re.compile(r"(?:not|neither|none|either|both|unclear|unknown|uncertain|impossible)\b", re.IGNORECASE)
DENIED = re.compile(
    rf"""
    (?<!\w)
    (?: (?:not|rather\s+than|instead\s+of|nicht|keine?|statt|не|no(?:\s+es)?|não(?:\s+é)?(?:\s+a)?|pas|non(?:\s+è)?|plutôt\s+que|anziché)\s+
        (?:(?:[Oo]ption|opción|opção|opzione|alternativa|Antwort|la|el|die)\s+){{0,2}}
      | (?:不是|并非|並非|而非)\s*
      | (?=[(（]?[A-J][)）]?\s*(?:ではな|じゃな)) )
    [(（]?([A-J])[)）]?(?!{IN_WORD}|['-]\w)
    """,
    re.VERBOSE,
)
"""A letter that an answer denies: `not B`, `rather than (C)`, `nicht B`, `no la B`, `不是B`, `Bではなく`."""
REJECTED = re.compile(
    r"\?\s*\S|(?:(?:is|was|est|es|é|è|ist)\s+)(?:not|false|wrong|incorrect|untrue|faux|fausse|falsch|fals[ao]|incorrect[aeo])\b"
    r"|(?:no|non|nein|não|false|wrong|faux|fausse|falsch)\s*(?:[.,;!]|$)",
    re.IGNORECASE,
)
"""What follows a letter that is not chosen: `E is false`, `A? No`, `E: no.`"""
WITHDRAWN = re.compile(
    r"(?:^|[.!?]\s)[\s*_]{0,20}(?:no,\s+)?(?:wait|hold\s+on|actually|correction|scratch\s+that|on\s+second\s+thought|attendez|en\s+fait|moment|warte|espera|aspetta)\b(.*)",
    re.IGNORECASE | re.DOTALL | re.MULTILINE,
)
"""Words that take an answer back, and what follows them."""
TAKEN_BACK = re.compile(
    r"\btake\s+(?:that|it|this)\s+back\b|\b(?:[A-J]|that|it)\)?\s+(?:cannot|can't|can\s+not)\s+be\s+(?:right|correct)\b", re.IGNORECASE
)
"""In what follows such words: the same letter is taken back."""
SEVERAL = re.compile(
    r"\b(?:[Cc]orrect|[Rr]ight|[Bb]est|[Tt]he|[Mm]y)\s+(?:answers|choices|options)\s+(?:are|would\s+be)[\s:*_`(]{0,6}(?:both\s+)?(?:option\s+)?"
    r"([A-J])\b[^\n]{0,200}?(?:\band\b|&|,)[\s*_`(]{0,5}(?:option\s+)?(?!\1)[A-J](?:\b(?![.)]?\s?['\w])|[.):*])"
)
"""Two answers in a sentence that announces several."""
GOES_ON = re.compile(r"(?:because|since|as|due|given|is|would)\b", re.IGNORECASE)
"""If one of these words follows `A`, it is the letter: after the article they make no sense."""

SENTENCE = re.compile(r"[^\n]*?(?=[.!?](?:\s|$)|\n|\Z)")
ADJACENT = re.compile(
    rf"[\s,/&+*)(]*(?:(?:\b(?:or|and|oder|und|ou|et|o|y|e)\b|和|或|及|与|と|や|또는|와|과)\s*)?(?:(?:option|la|a|opción|opção|alternativa|letra)\s+)*\(?([A-J])\)?(?!{IN_WORD}|['-]\w)(?!\s+[a-z0-9])"
)
"""A letter directly after the first one, or joined to it by `or`, `and`, a comma..."""
ALONE = rf"(?<!{IN_WORD})(?<!['-])([A-J])(?!{IN_WORD}|['-]\w)"
"""A capital letter that is no part of a word."""
OTHER = re.compile(rf"{ALONE}(?!\s+[a-z0-9]|选项|選項|不|错|錯|은|는|は|が)")
"""A letter later in the sentence. Before a lower-case word (`A选项`) it does not count: it is the subject of a reason (`A is less likely`), the article
or the pronoun I."""

OTHER_LETTER = re.compile(rf"{ALONE}(?!\s+(?!is\b|est\b|es\b|ist\b|é\b|è\b)[a-z0-9])")
"""The same where the letter may be what is said to be right."""

LINE_LETTER = re.compile(r"(?:(?:the\s+)?(?:[Oo]ption|[Cc]hoice|[Aa]nswer)\s+)?([A-J])[*_`]{0,3}\s?[.):\]}．）、][*_`\s]*(.*)")
"""A letter at the beginning of a line, with a sign that no article or pronoun has."""
ANOTHER = re.compile(r"(?:\b(?i:or|and|versus|vs)\b|/)\.?\s*(?:[Oo]ption\s+)?\(?([A-J])(?:[.)\]:]|\s*$)")
"""A second letter in such a line: `B. meningioma or C. abscess`."""

STATED = re.compile(r"(?<=\w)[ \t:：*_`]{1,8}([A-J][.):])")
"""A letter within a line, behind a word."""

CLOSING = re.compile(r"\b(?:is|as)\s+[(\"'*]{0,3}([A-J])[)\"'*.!]{0,4}$")
ARTICLE = re.compile(r"(?:an?|the)\s+", re.IGNORECASE)
DENIAL = re.compile(
    r"n't\b|\b(?:not?|never|neither|nor|none|unlikely|less|least|exclud\w*|if|unless|whether|wrong|incorrect)\b", re.IGNORECASE
)
DENIAL_ELSEWHERE = re.compile(
    r"\b(?:não|nunca|menos|descart\w*|exclu\w*|nicht|keine?|weniger|ausge\w*|pas|moins|non(?!-)|meno)\b", re.IGNORECASE
)
"""The same in other languages, where a sentence is not known to be English."""
MAX_SENTENCE = 40
"""Longest sentence that may end in its letter, in words."""

FEWEST_WORDS, ALIKE, UNLIKE = 4, 0.75, 0.4
"""Words behind a letter repeat another option: at least this many, this like it (2 x common words in order / all words), and this unlike the own."""

YES_NO, OR_MAYBE = frozenset({"yes", "no"}), frozenset({"yes", "no", "maybe"})
OPENING = re.compile(
    r"""
    [\s*_`"'“#>-]{0,20}
    (?: (?P<word>yes|no)[*_`"'”]{0,3}(?:\s?(?:[,;:!—–…]|\.\.\.)|\s-|\.(?!\d|\s?\d)|\s*\Z|\s*\n)
      | (?P<yes>yes)[*_`]{0,3}\s+(?=(?:there|it|this|that|these|those|the|he|she|they|we|i)\b)
      | (?P<no>no)[*_`]{0,3}\s+(?=(?:there|it|he|she|they|we|i)\b)
    )
    (?![\s,.*_:;—–-]{0,8}(?:yes|no|maybe|and\s+no|or|if|unless|provided|\d)\b)
    """,
    re.IGNORECASE | re.VERBOSE,
)
"""Yes or No at the very beginning, with a sign or a clause behind it: not the determiner (`No lesion is seen`), `No. 5` or `Yes and no`; not `Yes, if`."""
REVERSAL = re.compile(
    r"""
      (?:^|[.!?;:\n—–])[\s*_`"'“#>-]{0,20}(?P<alone>yes|no|maybe)[*_`"'”]{0,3}(?=\s?[,.;:!—–]|\s*$)
    | \b(?:answer|conclusion|verdict|response)\b[^.\n]{0,80}?\b(?P<named>yes|no|maybe)\b
    | \b(?:so|thus|therefore|hence|overall|actually|finally|rather|instead|meant|say|but|and|or)\b[\s,:*"'“]{1,5}
      (?:it(?:'s|\s+is)\s)?(?P<drawn>yes|no|maybe)\b(?=[*_"'”]{0,3}\s?(?:[.,;:!]|$))
    | \b(?P<withdrawn>wait\s?[,.]|correction\s?:|on\s+second\s+thought|scratch\s+that|I\s+(?:was|am)\s+(?:wrong|mistaken)
        |(?:sentence|statement|answer)\s(?:above\s)?is\s(?:incorrect|wrong|false)|different\sanswer)
    """,
    re.IGNORECASE | re.VERBOSE | re.MULTILINE,
)
"""A later yes, no or maybe that answers the question, and words that take an answer back."""
OFFERED = re.compile(r"(?:\(|\b(?i:option)\s)([A-J])\b")
"""A letter that can only be that of an option."""

WHOLE = re.compile(r"(?:the\s+)?(?:option\s+|choice\s+)?([A-Za-z])(?!\w|['-]\w)(.*)", re.IGNORECASE)
LATIN = "\u024f"
"""The last accented Latin letter; the normal form removes accents from letters up to this one."""
SIGNS = " \t*_`\"'“”$()[]{}<>.:,;（）：。，、．"


class Choice(NamedTuple):
    """The letter of an option (empty: none was recognised), and True if the words behind the letter are those of another option."""

    letter: str = ""
    contradicted: bool = False


def read_choice(text: str, options: Sequence[str]) -> Choice:
    """Read the chosen option.

    No choice is read if the last marker is followed by two letters or by a letter that is not offered. Without a marker the whole text,
    its first line or its last line must be a choice and nothing else, or begin with a letter and a full stop, bracket or colon, where no
    other line begins with another letter: letters within prose are never read. Where the options are yes and no, an opening `Yes, ...` is
    read if nothing behind it says otherwise in words.
    """
    plain = latin_letters(text, options)
    denied = set[str]()
    opened, behind = _opened(plain, options)
    # the last marker first: models repeat their answer at the end
    marked = list(_marked(plain))
    for place, (content, marker) in reversed(list(enumerate(marked))):
        choice = _chosen(content, options)
        if choice is not None:
            if _is_of_another(choice, marker, marked[:place], plain, options):
                return Choice()
            word = _words_of(content[_length(BEFORE, content) :], options)
            withdrawn = WITHDRAWN.search(content)
            others = set(OTHER_LETTER.findall(withdrawn[1] if withdrawn else "")) & set(LETTERS[: len(options)]) - {choice.letter}
            others |= {choice.letter} if withdrawn and TAKEN_BACK.search(withdrawn[1]) else set()
            return Choice() if choice.letter in denied or others or (opened and word not in {"", opened}) else choice
        denied |= set(DENIED.findall(content[: _length(BEFORE, content) + 40].partition("\n")[0]))
    if SEVERAL.search(plain) or (opened and _reversed(opened, behind, options)):
        return Choice()
    choice = _unmarked(plain, options) or _leading(plain, options)
    choice = choice if choice.letter else _closing(plain, options)
    choice = choice if choice.letter else Choice(_stated(plain, options))
    choice = choice if choice.letter else Choice(opened)
    return Choice() if choice.letter in denied else choice


def _is_of_another(
    choice: Choice, marker: re.Match[str], before: Sequence[tuple[str, re.Match[str]]], text: str, options: Sequence[str]
) -> bool:
    """Return True if a marked letter may be that of another option or question, as another one was named before it.

    `Option E is correct ...` behind an answer may explain another option, and an answer behind `Options:` another question.
    """
    others = [(found.letter, other.end()) for content, other in before if (found := _chosen(content, options)) and found.letter]
    if first := _begins(text.lstrip(SIGNS + "#>-•\n").partition("\n")[0], options):
        others.append((first, 0))
    said = marker["said"] is not None
    return any(letter != choice.letter and (said or NEXT_QUESTION.search(text, end, marker.start())) for letter, end in others)


def _opened(text: str, options: Sequence[str]) -> tuple[str, str]:
    """Return the letter of the option yes or no with which a text opens, and the text behind it; empty for questions with other options."""
    forms = [_form(option) for option in options]
    match = OPENING.match(text) if YES_NO <= set(forms) <= OR_MAYBE and len(forms) == len(set(forms)) else None
    word = (match["word"] or match["yes"] or match["no"]).lower() if match else ""
    return (LETTERS[forms.index(word)], text[match.end() :]) if match else ("", "")


def _reversed(opened: str, behind: str, options: Sequence[str]) -> bool:
    """Return True if the text behind an opening yes or no gives another answer, or takes the answer back."""
    words = {word.lower() for found in REVERSAL.finditer(behind) for word in found.groups() if word}
    letters = set(OFFERED.findall(behind)) & set(LETTERS[: len(options)])
    return bool(words - {_form(options[LETTERS.index(opened)])} or letters - {opened})


def _marked(text: str) -> Iterator[tuple[str, re.Match[str]]]:
    """Yield the text after each of the last markers (within its braces or quotes, or all that follows), and the marker."""
    for marker in deque(MARKER.finditer(text), maxlen=MAX_MARKERS):
        rest = text[marker.end() : marker.end() + MAX_CONTENT]
        before = text[max(0, marker.start() - LONGEST_BEFORE) : marker.start()]
        if NOT_MEANT.search(before) or (HEADING.search(before) and rest.lstrip(" *_")[:1] == "\n"):
            continue
        rest = rest.lstrip()
        if marker["boxed"]:
            yield re.sub(r"\\[a-z]+\s*|[{}]", "", _inside(rest)), marker
        elif marker["quote"]:
            yield rest.partition(marker["quote"])[0], marker
        else:
            yield rest, marker


def _inside(text: str) -> str:
    """Return the text up to the matching closing brace."""
    depth = 1
    for place, sign in enumerate(text):
        depth += (sign == "{") - (sign == "}")
        if depth == 0:
            return text[:place]
    return text


def _chosen(content: str, options: Sequence[str]) -> Choice | None:
    """Return the choice after a marker; without a letter if it is not a single offered option, None if nothing there names an option."""
    # the option's own words, or words that refuse to choose
    content = content[_length(BEFORE, content) :]
    if named := _words_of(content, options):
        return Choice(named)
    if DENIED.match(content):
        return None
    if UNDECIDED.match(content):
        return Choice()
    letter = LETTER.match(content)
    if letter is None or _is_prose(letter, content, options):
        return None
    name, rest = letter[1].upper(), content[letter.end() :]
    words = rest[_length(AFTER, rest) :]
    if name not in LETTERS[: len(options)] or _second(name, words, options) or _rejects(name, words, options):
        return Choice()
    return Choice(name, _contradicts(name, words, options))


def _contradicts(name: str, words: str, options: Sequence[str]) -> bool:
    """Return True if the words behind a letter are those of another option, and not merely the beginning of its own."""
    named = _words_of(words, options) or _nearly(name, words, options)
    own, other = (_form(options[LETTERS.index(letter)]) if letter else "" for letter in (name, named))
    return named not in {"", name} and not own.startswith(other)


def _nearly(name: str, words: str, options: Sequence[str]) -> str:
    """Return the letter of the option that the first line of `words` repeats with few changes, if its own option has little in common with it."""
    line = _form(words.partition("\n")[0]).split()
    if len(line) < FEWEST_WORDS:
        return ""
    alike = {
        letter: SequenceMatcher(None, line, _form(option).split(), autojunk=False).ratio()
        for letter, option in zip(LETTERS, options, strict=False)
    }
    nearest = max(alike, key=lambda letter: alike[letter])
    return nearest if alike[nearest] >= ALIKE and alike[name] <= UNLIKE else ""


def _is_prose(letter: re.Match[str], content: str, options: Sequence[str]) -> bool:
    """Return True for a small letter followed by prose, the article A and the pronoun I."""
    rest = content[letter.end() :]
    between = _length(AFTER, rest)
    words = rest[between:]
    if letter[1].islower() and rest[:1] not in {")", "]", "."} and words.partition("\n")[0].strip():
        return True
    name = letter[1].upper()
    alone = name in "AI" and words[:1].isalnum() and rest[:between].isspace()
    return alone and not _option_length(name, words, options) and not GOES_ON.match(words)


def _second(name: str, words: str, options: Sequence[str]) -> bool:
    """Return True if another letter is named besides a letter: directly, later in the sentence, or alone in the next line."""
    words = DENIED.sub("", words[_option_length(name, words, options) :])
    if adjacent := ADJACENT.match(words.partition("\n")[0]):
        return adjacent.group(1) != name
    sentence = words[: _length(SENTENCE, words)]
    following = next((line for line in words.split("\n")[1:] if line.strip()), "")
    return bool(set(OTHER.findall(sentence)) & set(LETTERS[: len(options)]) - {name}) or _whole(following, options) not in {"", name}


def _rejects(name: str, words: str, options: Sequence[str]) -> bool:
    """Return True if the words behind a letter say that it is not the answer, and are not those of its option."""
    return bool(REJECTED.match(words)) and not _option_length(name, words, options)


def _option_length(name: str, words: str, options: Sequence[str]) -> int:
    """Return the length of an option's text if `words` begin with it; 0 otherwise."""
    place = LETTERS.find(name)
    option = options[place] if place < len(options) else ""
    return len(option) if option and words[: len(option)].casefold() == option.casefold() else 0


def _length(pattern: re.Pattern[str], text: str) -> int:
    match = pattern.match(text)
    return match.end() if match else 0


def _words_of(text: str, options: Sequence[str]) -> str:
    """Return the letter of the only option whose text is the first line, or the part before its first comma, bracket or full stop."""
    line = text.partition("\n")[0]
    return _named(line, options) or _named(re.split(r"[,;:(<]|[.!?](?:\s|$)", line, maxsplit=1)[0], options)


def _named(text: str, options: Sequence[str]) -> str:
    """Return the letter of the option with this text, if it is exactly one; a single offered letter is never an option's text."""
    form = _form(text)
    if len(form) == 1 and form.upper() in LETTERS[: len(options)]:
        return ""
    named = [letter for letter, option in zip(LETTERS, options, strict=False) if _form(option) == form]
    return named[0] if form and len(named) == 1 else ""


def _form(text: str) -> str:
    """Return the normal form plus letters of other scripts, which it drops: options may be Korean or Chinese."""
    return f"{normal_form(text)} {''.join(sign for sign in text.casefold() if sign > LATIN and sign.isalnum())}".strip()


def _unmarked(text: str, options: Sequence[str]) -> Choice | None:
    """Return the choice of a text that is a choice as a whole, or whose first or last line is the only choice among its lines."""
    if letter := _whole(" ".join(text.split()), options):
        return Choice(letter)
    read = [_whole(line, options) for line in text.splitlines() if line.strip(SIGNS + "#>-")]
    named = set(read) - {""}
    return Choice(named.pop()) if len(named) == 1 and (read[0] or read[-1]) else None


def _leading(text: str, options: Sequence[str]) -> Choice:
    """Return the choice of a text whose first or last line begins with a letter, whatever words follow; no other line names another."""
    lines = [line.lstrip(SIGNS + "#>-•") for line in text.splitlines() if line.strip(SIGNS + "#>-•")]
    begun = [match if (match := LINE_LETTER.match(line)) and match[1] in LETTERS[: len(options)] else None for line in lines]
    named = {match[1] for match in begun if match} | {letter for line in lines if (letter := _whole(line, options))}
    match = next((match for match in (*begun[:1], *begun[-1:]) if match), None)
    if match is None or named != {match[1]}:
        return Choice()
    words = match[2]
    if ADJACENT.match(words) or ANOTHER.search(words) or UNDECIDED.match(words) or _rejects(match[1], words, options):
        return Choice()
    return Choice(match[1], _contradicts(match[1], words, options))


def _closing(text: str, options: Sequence[str]) -> Choice:
    """Return the choice of a single short sentence that ends in `is D` or in `is` and an option's words, and names no other option."""
    line = text.strip()
    if "\n" in line or len(line.split()) > MAX_SENTENCE:
        return Choice()
    if match := CLOSING.search(line):
        alone = set(OTHER.findall(line)) <= {match[1]} and match[1] in LETTERS[: len(options)]
        return Choice(match[1]) if alone else Choice()
    before, _, words = line.rpartition(" is ")
    words = words[_length(BEFORE, words) :]
    named = _named(ARTICLE.sub("", words, count=1), options) or _named(words, options)
    others = [_form(option) for letter, option in zip(LETTERS, options, strict=False) if letter != named]
    clear = not DENIAL.search(line) and not any(other and f" {other} " in f" {_form(before)} " for other in others)
    return Choice(named) if before and named and clear else Choice()


def _stated(text: str, options: Sequence[str]) -> str:
    """Return the letter of the only option that a text states with its letter and its own words, in any language; empty if it states several.

    A statement stands in a line of its own below one that ends in a colon (`The most likely diagnosis is:`), or ends a sentence
    (`I favour **C. Abscess**.`). Two such lines below each other are a list, as are lines that begin with a sign.
    """
    lines = [line.lstrip(SIGNS + "#>-•") for line in text.splitlines() if line.strip(SIGNS + "#>-•")]
    begun = [match[1] if (match := LINE_LETTER.match(line)) else "" for line in lines]
    own = [_begins(line, options) for line in lines]
    following = ["".join(begun[place + 1 :])[:1] for place in range(len(lines))]
    below = {
        letter
        for place, letter in enumerate(own)
        if letter and place and lines[place - 1].rstrip(" *_").endswith((":", "："))
        if not begun[place - 1] and not any(begun[place + 1 : place + 2])
        if (not following[place] or letter + following[place] not in LETTERS) and not _denies(lines[place - 1])
    }
    others = {letter for letter in begun if letter}
    if below:
        return below.pop() if len(below) == 1 and others <= below else ""
    opening, within = (
        {
            letter
            for line in some
            for match in STATED.finditer(line)
            if (letter := _begins(line[match.start(1) :], options)) and not _denies(line[: match.start()])
        }
        for some in (lines[:1], lines)
    )
    if len(within) == 1 and set(own) | others <= within | {""}:
        return within.pop()
    return opening.pop() if len(opening) == 1 and others <= opening else ""


def _denies(text: str) -> bool:
    """Return True if the last sentence of a text denies what comes next."""
    sentence = re.split(r"[.!?]\s", text)[-1]
    return bool(DENIAL.search(sentence) or DENIAL_ELSEWHERE.search(sentence))


def _begins(text: str, options: Sequence[str]) -> str:
    """Return the letter with which a text begins, if the words of its own option follow."""
    match = LINE_LETTER.match(text)
    form = _form(options[LETTERS.index(match[1])]) if match and match[1] in LETTERS[: len(options)] else ""
    return match[1] if match and form and f"{_form(match[2])} ".startswith(f"{form} ") else ""


def _whole(line: str, options: Sequence[str]) -> str:
    """Return the letter of a line that is a letter, a letter with its option's text, or an option's text."""
    match = WHOLE.fullmatch(line.lstrip(SIGNS + "#>-•"))
    name = match.group(1).upper() if match else ""
    if match and name in LETTERS[: len(options)] and _form(match.group(2)) in {"", _form(options[LETTERS.index(name)])}:
        return name
    return _named(line, options)
