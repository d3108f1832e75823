"""The examinations of a case, and which of them a request in free words asks for; by words, without a model, in English.

A case holds one examination for each sequence and plane of its pictures, for each group of record entries and for each section of its notes.
A request is matched to at most one. What the case does not hold is said not to be there, and a request that names nothing is told so:
nothing is released on a guess.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence

from neuralmedbench.records.case import Sequence as Scan
from neuralmedbench.records.examinations import wording
from neuralmedbench.records.examinations.inventory import (
    SHORTEST_PART,
    TITLE_FILLERS,
    TITLE_WORDS,
    EvidenceKind,
    Examination,
    RequestMatch,
    RequestOutcome,
    entry_names,
    group_of,
    heading_of,
    kinds_of,
    singular,
    title_of,
)
from neuralmedbench.records.vocabulary import normal_form


def match_request(request: str, held: Sequence[Examination]) -> RequestMatch:
    """Find the examination that a request in free words asks for.

    Parameters
    ----------
    request : str
        The request; it may begin with one of `REQUEST_KINDS` and a colon.
    held : sequence of Examination
        What the case holds, in the order of the case.

    Returns
    -------
    RequestMatch
        If the request names several, the first of them that the case holds. Of a scan whose plane is not named, the first in the order of
        the case. If a kind is stated, only examinations of that kind and those that may hold the same are considered. A plane, a contrast agent or a sequence that is asked for and not held is `absent`, and nothing else is given for it.

    Examples
    --------
    >>> flair = Examination(name="FLAIR, axial", kind=EvidenceKind.PICTURES, sequence="FLAIR", plane="axial")
    >>> match_request("Please show the FLAIR to look for lesions.", [flair]).outcome, match_request("MR angiography", [flair]).outcome
    (<RequestOutcome.GIVEN: 'given'>, <RequestOutcome.ABSENT: 'absent'>)
    """
    kind, said = wording.kind_of_request(request)
    return _match_kind(kind, said, held) if kind else _match_words(request, held)


NOT_CONSIDERED = Examination(name="", kind=EvidenceKind.NOTE)
"""Stands for an examination that a request cannot mean, so that places stay those of the case."""
REQUEST_KINDS = tuple(wording.KINDS)
"""Kinds that a request may begin with (`CT: without contrast`), the same for every case."""
OF_PICTURES, OTHER_IMAGING = ("MRI", "CT"), "other imaging"


def _match_kind(kind: str, said: str, held: Sequence[Examination]) -> RequestMatch:
    """Match a request whose kind is stated: its words are compared with the examinations of that kind and of those near to it.

    Sections of notes are given by their kind alone if the words are not understood; scans, values and reports only if they are named.
    """
    rules = wording.KINDS[kind]
    near = {kind, *rules.get("near", ())}
    if kind == wording.ANY_KIND or (kind == OTHER_IMAGING and wording.names_sequence(said)):
        return _match_words(said, held)
    if wording.contradicts(kind, said):
        return RequestMatch(RequestOutcome.UNCLEAR)
    if kind in OF_PICTURES:
        elsewhere = wording.is_of_body(said)
        meant = _considered(
            held,
            lambda one: (
                not (elsewhere and one.kind is EvidenceKind.PICTURES)
                and not wording.is_of_other_modality(kind, title_of(one))
                and (not kinds_of(one) or bool(kinds_of(one) & near))
            ),
        )
        return _match_first(said, meant, kind)
    texts = _considered(held, lambda one: one.kind is not EvidenceKind.PICTURES)
    match = _match_first(said, _considered(texts, lambda one: not kinds_of(one) or bool(kinds_of(one) & near)))
    of_kind = [place for place, one in enumerate(held) if kind in kinds_of(one)]
    of_kind += [place for place, one in enumerate(held) if kinds_of(one) & near & set(wording.ORGANS) and _shared(said, one)]
    named = _named_elsewhere(kind, said, texts)
    if of_kind and rules.get("whole") and (match.place is None or match.place != named):
        match = RequestMatch(RequestOutcome.GIVEN, _closest(kind, said, of_kind, held, match.place))
    elif match.place is None and of_kind and not wording.rare_words(wording.VAGUE.sub(" ", normal_form(said))):
        match = RequestMatch(RequestOutcome.GIVEN, of_kind[0])
    if match.place is None:
        match = RequestMatch(RequestOutcome.ABSENT if named is None else RequestOutcome.GIVEN, named)
    return match


VALUES = frozenset({"blood tests", "other laboratory tests", wording.SPINAL_FLUID})


def _named_elsewhere(kind: str, said: str, texts: Sequence[Examination]) -> int | None:
    """Return the examination whose title or entry a request names, of whatever kind; of values only those of the fluid asked for."""
    words = normal_form(wording.plain_request(said))
    report = wording.ELSEWHERE.search(words)
    if kind == wording.SPINAL_FLUID:
        allowed = _considered(texts, lambda one: kind in kinds_of(one))
    else:
        whole = wording.KINDS[kind].get("whole")
        barred = VALUES if whole else {wording.SPINAL_FLUID}
        # a group of entries of no kind has values
        allowed = _considered(
            texts, lambda one: not kinds_of(one) & barred and not (whole and one.kind is EvidenceKind.RECORD and not kinds_of(one))
        )
    place = _of_entries(report[0] if report else words, allowed)[0]
    return _of_words(words, allowed) if place is None and len(wording.rare_words(words)) > 1 else place


def _considered(held: Sequence[Examination], is_meant: Callable[[Examination], bool]) -> list[Examination]:
    """Return what a case holds with a placeholder for each examination that a request cannot mean."""
    return [one if is_meant(one) else NOT_CONSIDERED for one in held]


def _match_first(said: str, held: Sequence[Examination], modality: str = "") -> RequestMatch:
    """Match the first sentence, behind which the reasons stand, unless it is a statement itself; else all of them.

    `modality` is that of a scan, which the words need not repeat.
    """
    first, whole = (
        text if wording.names_scan(text) or not modality else f"{modality} {text}" for text in (wording.SENTENCES.split(said)[0], said)
    )
    if not wording.STATEMENT.search(first.casefold()):
        match = _match_words(first, held)
        if match.place is not None or wording.names_sequence(first):
            return match
    return _match_words(whole, held)


def _closest(kind: str, said: str, places: Sequence[int], held: Sequence[Examination], matched: int | None) -> int:
    """Return the examination of a kind that is closest to a request, or the one that its words matched if that has more of them.

    First counts how many rare words of the request a text has; then if its title has words of the kind, if it is of no other kind, and if it
    was matched.
    """
    own = set(kind.split()) - TITLE_WORDS - wording.POLITE_WORDS

    def closeness(place: int) -> tuple[int, int, bool, bool, int]:
        one = held[place]
        return _shared(said, one), len(own & set(heading_of(one).split())), kinds_of(one) == {kind}, place == matched, -place

    return max(places if matched is None else {*places, matched}, key=closeness)


def _shared(said: str, one: Examination) -> int:
    """Return how many rare words of a request the text of an examination has."""
    text = normal_form(one.text)
    return sum(_is_in(word, text) or _is_in(f"{word}s", text) for word in wording.rare_words(said))


def _match_words(request: str, held: Sequence[Examination]) -> RequestMatch:
    """Match a request without a kind."""
    if wording.EVERYTHING.match(normal_form(request)):
        return RequestMatch(RequestOutcome.UNCLEAR)
    entries = tuple(
        sorted({word for one in held for name in entry_names(one) for word in name.split() if len(word) >= wording.MISSPELT_FROM})
    )
    said = [sentence for sentence in wording.SENTENCES.split(wording.without_reason(request)) if re.search(r"[^\W\d_]", sentence)]
    plains = [wording.plain_request(sentence, entries) for sentence in said]
    named = wording.named_scan(" ".join(plains))
    sentences = [
        (wording.with_scan(wording.wanted(plain), named) if named else wording.wanted(plain), "?" in sentence, number == len(said))
        for number, (sentence, plain) in enumerate(zip(said, plains, strict=True), start=1)
    ]
    sentences = [row for row in sentences if row[0]] or sentences
    outcome = None
    for sentence, asks, last in sorted(
        sentences, key=lambda row: (wording.is_wish(row[0]) or row[1], len(row[0].split()) <= wording.SHORT or row[2]), reverse=True
    ):
        if outcome is RequestOutcome.UNCLEAR or (outcome is not None and not (asks or wording.is_wish(sentence))):
            continue
        found = _match_sentence(sentence, held)
        if found is not None and found.outcome is RequestOutcome.GIVEN:
            return found
        vague = wording.VAGUE.search(normal_form(sentence)) and (asks or last or wording.is_wish(sentence))
        outcome = outcome or (found.outcome if found else RequestOutcome.UNCLEAR if vague else None)
    plain = " ".join(sentence for sentence, _, _ in sentences)
    if (
        outcome is not RequestOutcome.UNCLEAR
        and (place := _by_name(normal_form(plain), held)) is not None
        and not wording.names_scan(plain)
    ):
        return RequestMatch(RequestOutcome.GIVEN, place)
    return RequestMatch(
        outcome
        or (RequestOutcome.UNCLEAR if wording.VAGUE.search(normal_form(plain)) or not wording.rare_words(plain) else RequestOutcome.ABSENT)
    )


def _match_sentence(sentence: str, held: Sequence[Examination]) -> RequestMatch | None:
    """Match one sentence; the wish may stand behind its reason."""
    wish = wording.WISH.split(sentence)
    behind = sentence.partition(",")[2].strip() if wording.REASON.match(sentence) else ""
    asked = wish[-1].strip() if len(wish) > 1 else ""
    for text in ("" if wording.REASON.match(asked) else asked, behind, sentence):
        for part in (wording.REASON.split(text, maxsplit=1)[0], text):
            if part and (found := _match(part, held)) is not None:
                return found
    return None


def _match(text: str, held: Sequence[Examination]) -> RequestMatch | None:
    """Match a part of a request; None if it names no examination."""
    if wording.EITHER.search(text) and not wording.ELSEWHERE.search(normal_form(text)):
        return RequestMatch(RequestOutcome.UNCLEAR)
    named = absent = unclear = False
    last, agent = "", False
    for part in wording.PARTS.split(text):
        words = normal_form(part)
        if not words:
            continue
        scan = wording.scan_of(f"{words} with contrast" if agent and not wording.WITHOUT.search(words) else words, last)
        agent = scan is None and bool(wording.WITH.search(wording.WITHOUT.sub(" ", words)))
        place = None
        if wording.NOT_HEAD.search(words) and not (scan is None and wording.ELSEWHERE.search(words)):
            place = None if scan else _of_entries(words, held)[0]
            absent = named = absent or not unclear
        elif named and absent and not set(words.split()) - wording.MODALITIES:
            continue  # how it would be made: angiography, CT or MR
        elif elsewhere := wording.ELSEWHERE.search(words):
            place = None if scan else _of_text(words, held, groups=("eeg", "nerve conduction"))[0]
            place = _of_words(elsewhere[0], held) if place is None else place
            absent = named = True
        elif scan == "MRI":
            last, unclear = scan, True
        elif scan is not None:
            place = _picture(scan, words, text, held)
            last, absent, named = scan, True, True
        elif not (named or unclear):
            place, known = _of_text(words, held)
            absent |= known
        if place is not None:
            return RequestMatch(RequestOutcome.GIVEN, place)
    if absent or named:
        return RequestMatch(RequestOutcome.ABSENT)
    return RequestMatch(RequestOutcome.UNCLEAR) if unclear else None


def _picture(scan: str, words: str, text: str, held: Sequence[Examination]) -> int | None:
    wanted = (Scan.SWI, Scan.T2STARW) if scan == "blood" else (scan,)
    planes = [plane for plane, pattern in wording.PLANES.items() if re.search(pattern, words)]
    planes = planes or [plane for plane, pattern in wording.PLANES.items() if re.search(pattern, normal_form(text))]
    for sequence in wanted:
        for place, one in enumerate(held):
            if one.kind is EvidenceKind.PICTURES and one.sequence == sequence and (not planes or one.plane in planes):
                return place
    return None


def _of_text(words: str, held: Sequence[Examination], groups: Collection[str] = tuple(wording.ASKED_BY)) -> tuple[int | None, bool]:
    """Return the note or group of entries that words ask for, and whether they name one that is known."""
    texts = [(place, one) for place, one in enumerate(held) if one.kind is not EvidenceKind.PICTURES]
    place, meant = _of_entries(words, held)
    if place is not None:
        return place, True
    if meant:  # a value that the record does not have: only a note may tell
        groups = [name for name in groups if name in wording.WORDS["sections"]]
    asked = {name: match.start() for name in groups if (match := re.search(wording.ASKED_BY[name], words))}
    for name in sorted(asked, key=lambda name: (asked[name], [*wording.ASKED_BY].index(name))):
        of_group = [(place, one) for place, one in texts if group_of(one) == name]
        of_group = of_group or [(place, one) for place, one in texts if wording.OF_SECTION.get(name, name) in kinds_of(one)]
        if name == wording.FURTHER:  # notes without a heading, and those whose heading is of a history, before reports
            histories = [(place, one) for place, one in of_group if wording.ANY_HISTORY in kinds_of(one)]
            of_group = histories or [(place, one) for place, one in texts if group_of(one) == "past history"] or of_group
        if of_group:
            told = [
                place
                for place, one in of_group
                if wording.OTHER_PEOPLE.search(words) and wording.OTHER_PEOPLE.search(normal_form(one.text))
            ]
            return (told or [of_group[0][0]])[0], True
    found = _of_words(words, held)
    return found, bool(asked or meant) or found is not None


def _of_entries(words: str, held: Sequence[Examination]) -> tuple[int | None, bool]:
    """Return the note or group whose title or entry words name, by its own words or by synonyms, and whether they name one that is known."""
    texts = [(place, one) for place, one in enumerate(held) if one.kind is not EvidenceKind.PICTURES]
    # an entry by its name, before the group of entries or the section that would hold it
    fluid = next((place for place, one in texts if group_of(one) == wording.SPINAL_FLUID), None)
    if fluid is not None and re.search(wording.ASKED_BY[wording.SPINAL_FLUID], words):
        return fluid, True
    meant = [entry for pattern, entry in wording.SYNONYMS if re.search(pattern, words)]

    def holds(one: Examination) -> bool:
        return any(entry and re.search(entry, name) for entry in meant for name in (*entry_names(one), title_of(one)))

    if (place := _by_title(words, held)) is not None and held[place].kind is EvidenceKind.RECORD and meant and not holds(held[place]):
        place = None  # a group that may have such a value, and has not the one that is named
    if place is not None or (place := _by_name(words, held)) is not None:
        return place, True
    return next((place for place, one in texts if holds(one)), None), bool(meant)


def _by_name(words: str, held: Sequence[Examination]) -> int | None:
    near = {place: max((_nearness(words, name) for name in entry_names(one)), default=0) for place, one in enumerate(held)}
    best = max(near.values(), default=0)
    return next((place for place, value in near.items() if value == best), None) if best else None


def _by_title(words: str, held: Sequence[Examination]) -> int | None:
    """Return the note or group of entries all of whose title stands in a request, the longest title first."""
    said = {singular(word) for word in normal_form(words).split()}
    found = [
        (len(title), -place)
        for place, one in enumerate(held)
        if (title := title_of(one)) and {singular(word) for word in title.split()} - TITLE_FILLERS <= said
    ]
    return -max(found)[1] if found else None


def _nearness(words: str, name: str) -> int:
    """Return how much of the name of an entry a request holds: all of it, its initials, or one long word of it in short; 0 if none."""
    initials = "".join(word[0] for word in name.split())
    said = {singular(word) for word in words.split()}
    if name and {singular(word) for word in name.split()} - NAME_FILLERS <= said:
        return len(name)
    if len(initials) > 1 and initials in words.split():
        return len(initials)
    first = " ".join(name.split()[:2])
    if " " in first and len(first) >= LONG_NAME and re.search(rf"\b{re.escape(first)}\b", words):
        return len(first)
    rare = wording.rare_words(words)
    return (
        len(rare)
        if rare and all(any(part.startswith(word) and len(word) >= SHORTEST_PART for part in name.split()) for word in rare)
        else 0
    )


LONG_NAME = 8
"""Letters from which the first two words of a name stand for it: `Taenia solium` of `Taenia solium immunoblot`."""
NAME_FILLERS = frozenset(("in", "of", "serum", "plasma", "blood", "total"))


def _of_words(words: str, held: Sequence[Examination]) -> int | None:
    """Return the first note or group of entries that holds all rare words of a request."""
    rare = wording.rare_words(words)
    if not rare:
        return None
    # the record before the notes
    for place, one in sorted(enumerate(held), key=lambda pair: pair[1].kind is EvidenceKind.NOTE):
        if one.kind is not EvidenceKind.PICTURES and all(_is_in(word, normal_form(one.text)) for word in rare):
            return place
    return None


def _is_in(word: str, text: str) -> bool:
    return bool(re.search(rf"\b{re.escape(word)}" + ("" if len(word) > SHORTEST_PART else r"\b"), text))


def offered_requests() -> tuple[str, ...]:
    """Return the requests that people choose from where nothing can match their own words: the same for every case."""
    planes = ("", *(f", {plane}" for plane in wording.PLANES))
    of_scans = wording.WORDS["offered"]["scans of the head"]
    return tuple(
        f"{name}{plane}"
        for names in wording.WORDS["offered"].values()
        for name in names
        for plane in (planes if names is of_scans else ("",))
    )
