"""The labelled notes of `note_corpus.yaml`, and how well a cleaner did on them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import yaml

from neuralmedbench.files.identity import Identity

CORPUS = Path(__file__).parent / "note_corpus.yaml"
MARKUP = re.compile(r"\[\[(?P<kind>[a-z]+):(?P<gone>[^\]]*)\]\]|\(\((?P<kept>(?:[^()]|\([^()]*\))*)\)\)")
TITLES = re.compile(r"\b(?:Dr|Prof|Mrs?|Ms|Miss|Mme|Madame|Frau|Sister|Nurse|RN|MD|FRCR|PhD|Baby girl)\b")
"""Words beside a name that name nobody: whether they are removed is not asked."""
Place = tuple[int, int]


@dataclass(frozen=True)
class LabelledNote:
    """One note: its text without markup, where its identifiers stand by kind, and where the medicine stands that has to stay."""

    name: str
    half: str
    text: str
    identity: Identity
    gone: tuple[tuple[str, int, int], ...]
    kept: tuple[Place, ...]


def read_corpus(half: str) -> list[LabelledNote]:
    """Read one part of the corpus: `open`, `held_out` or `hard`."""
    entries = yaml.safe_load(CORPUS.read_text(encoding="utf-8"))["notes"]
    return [_labelled(entry) for entry in entries if entry["half"] == half]


def _labelled(entry: dict[str, object]) -> LabelledNote:
    source = str(entry["text"])
    text, gone, kept, place = "", [], [], 0
    for match in MARKUP.finditer(source):
        text += source[place : match.start()]
        start = len(text)
        text += match["gone"] if match["kind"] else match["kept"]
        if match["kind"]:
            gone.append((match["kind"], start, len(text)))
        else:
            kept.append((start, len(text)))
        place = match.end()
    values = {
        name: tuple(map(str, entry.get(key) or ())) for name, key in (("names", "patient"), ("numbers", "numbers"), ("places", "places"))
    }
    return LabelledNote(str(entry["id"]), str(entry["half"]), text + source[place:], Identity(**values), tuple(gone), tuple(kept))


@dataclass
class NoteScore:
    """Counts over some notes; an identifier counts as removed only when each of its letters and digits is."""

    wanted: Counter[str] = field(default_factory=Counter)
    removed: Counter[str] = field(default_factory=Counter)
    replaced: int = 0
    rightly: int = 0
    kept: int = 0
    kept_whole: int = 0
    faults: list[str] = field(default_factory=list)

    @property
    def recall(self) -> float:
        """Share of the identifiers that were removed whole."""
        return self.removed.total() / self.wanted.total()

    @property
    def precision(self) -> float:
        """Share of the replaced parts that touch an identifier."""
        return self.rightly / max(1, self.replaced)

    def table(self) -> str:
        """Lines for a person: recall by kind, all, precision, medicine kept."""
        lines = [f"{kind:10} {self.removed[kind]:3} of {self.wanted[kind]:3}" for kind in sorted(self.wanted)]
        lines.append(f"{'recall':10} {self.removed.total():3} of {self.wanted.total():3} = {self.recall:.3f}")
        lines.append(f"{'precision':10} {self.rightly:3} of {self.replaced:3} = {self.precision:.3f}")
        return "\n".join([*lines, f"{'medicine':10} {self.kept_whole:3} of {self.kept:3} kept"])


def score_notes(notes: Iterable[LabelledNote], clean: Callable[[LabelledNote], Sequence[Place]]) -> NoteScore:
    """Score a cleaner that says which parts of a note (start, end) it replaces."""
    score = NoteScore()
    for note in notes:
        parts = list(clean(note))
        covered = {place for start, end in parts for place in range(start, end)}
        for kind, start, end in note.gone:
            score.wanted[kind] += 1
            titles = {place for match in TITLES.finditer(note.text, start, end) for place in range(*match.span())}
            if all(place in covered or place in titles or not note.text[place].isalnum() for place in range(start, end)):
                score.removed[kind] += 1
            else:
                score.faults.append(f"{note.name}: left of {kind}: {note.text[start:end]}")
        for start, end in parts:
            rightly = any(start < last and first < end for _, first, last in note.gone)
            score.replaced += 1
            score.rightly += rightly
            if not rightly:
                score.faults.append(
                    f"{note.name}: wrongly replaced: {note.text[start:end]} in {note.text[max(0, start - 20) : end + 20]!r}"
                )
        for start, end in note.kept:
            whole = not any(place in covered for place in range(start, end))
            score.kept += 1
            score.kept_whole += whole
            if not whole:
                score.faults.append(f"{note.name}: not kept: {note.text[start:end]}")
    return score
