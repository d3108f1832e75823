"""A text about the patients of a release, cleaned with what the headers of all of them say."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from neuralmedbench.deid.notes.clean import clean_note
from neuralmedbench.deid.release.settings import ReleaseSettings
from neuralmedbench.deid.stage import rules_of
from neuralmedbench.deid.values import DateShift, parse_day
from neuralmedbench.errors import DataError
from neuralmedbench.files.identity import Identity, identity_pattern
from neuralmedbench.files.texts import UnreadableTextError, decode_text
from neuralmedbench.runtime.atomic_write import write_text

TARGET = "notes.txt"
IGNORE = ".bidsignore"


def read_notes(path: Path) -> str:
    """Read the text; DataError when it is none (a document of a program, an unknown encoding), or cannot be read."""
    try:
        return decode_text(path.read_bytes())
    except OSError:
        message = "--notes: the text cannot be read; check the file"
    except UnreadableTextError as error:
        message = f"--notes: expected plain text, found something else ({error.reason}); save it as text in UTF-8"
    raise DataError(message) from None


def write_notes(notes: str, out: Path, people: Sequence[tuple[str, Identity]], settings: ReleaseSettings) -> Counter[str]:
    """Clean a text to `out`/notes.txt.

    Parameters
    ----------
    notes : str
        The text, see `read_notes`.
    out : Path
        Folder of the release.
    people : sequence of (str, Identity)
        Pseudonym and header values of every case. Of one patient, dates are shifted as those of the scans are; of several nobody can tell
        whose date it is, and years alone are shown.
    settings : ReleaseSettings
        Key, profile and options.

    Returns
    -------
    Counter
        What was replaced; `notes_withheld` when nothing of it may be shown: then no file is written.
    """
    patients = sorted({patient for patient, _ in people})
    known = [identity for _, identity in people]
    everyone = Identity(
        names=tuple(sorted({value for identity in known for value in identity.names})),
        places=tuple(sorted({value for identity in known for value in identity.places})),
        numbers=tuple(sorted({value for identity in known for value in identity.numbers})),
        uids=tuple(sorted({value for identity in known for value in identity.uids})),
    )
    dates = DateShift(-1, years_only=True)
    if len(patients) == 1:
        dates = rules_of(patients[0], everyone, settings.key, settings.profile, settings.options).dates
    days = {identity.scan_date for _, identity in people}
    scan_day = parse_day(next(iter(days))) if len(days) == 1 else None
    note = clean_note(notes, dates, identity_pattern(everyone), scan_day=scan_day)
    counts = Counter({f"notes_{kind}": number for kind, number in note.counts.items()})
    if note.text.strip():
        write_text(out / TARGET, note.text)
        if (out / IGNORE).exists():
            write_text(out / IGNORE, (out / IGNORE).read_text(encoding="utf-8") + f"{TARGET}\n")
    return counts
