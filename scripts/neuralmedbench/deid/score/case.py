"""Watch the cleaning of a simulated patient and score it against the answer key; of everybody else nothing is watched."""

from __future__ import annotations

from pathlib import Path

from neuralmedbench.deid.score.files import score_files
from neuralmedbench.deid.score.headers import HeaderScorer
from neuralmedbench.deid.score.notes import score_note, score_record
from neuralmedbench.deid.score.pixels import score_lost_pixels, score_pixels
from neuralmedbench.deid.score.tally import Tally, write_score
from neuralmedbench.deid.values import DateShift
from neuralmedbench.files import dicom
from neuralmedbench.files.answer_key import read_answer_key
from neuralmedbench.files.nifti import Volume
from neuralmedbench.records.answer_key import SeriesKey
from neuralmedbench.records.case import CaseRecord


class Watch:
    """Sees the scans of a case on their way; this one looks at nothing."""

    def cleaned(self, raw: Path, cleaned: Path) -> None:
        """See the DICOM files of a series before and after their headers were cleaned."""

    def converted(self, raw: Path, volume: Volume) -> None:
        """See a scan after burned-in text was hidden, and before its face is removed."""

    def finish(self, case: CaseRecord, source: Path, out: Path) -> None:
        """See the finished case: `case` is as this stage leaves it."""


NOBODY = Watch()


class Scorer(Watch):
    """Scores a simulated patient.

    Parameters
    ----------
    answer_key : Path
        `answer_key.json` beside the raw files of the phantom.
    patient_id : str
        The pseudonym that has to stand in the headers.
    dates : DateShift
        How dates are changed.
    """

    def __init__(self, answer_key: Path, patient_id: str, dates: DateShift) -> None:
        self._key = read_answer_key(answer_key)
        self._tally = Tally()
        self._headers = HeaderScorer(self._key, patient_id, dates, self._tally)
        self._compared: set[str] = set()

    def cleaned(self, raw: Path, cleaned: Path) -> None:
        """Score every header of a series."""
        self._headers.score_series(raw, cleaned)

    def converted(self, raw: Path, volume: Volume) -> None:
        """Score every picture of a series."""
        rules = self._rules_of(raw)
        if rules is not None:
            self._compared.add(rules.series_uid)
            score_pixels(raw, volume, rules, self._tally)

    def finish(self, case: CaseRecord, source: Path, out: Path) -> None:
        """Score what is shareable, and write `score.json`.

        Parameters
        ----------
        case : CaseRecord
            The case as this stage leaves it.
        source, out : Path
            Folder of the ingested case, and of the de-identified one.
        """
        self._headers.finish()
        for lost in self._key.series:
            if lost.series_uid not in self._compared:
                score_lost_pixels(lost, self._tally)
        for number, key in enumerate(self._key.notes, start=1):
            name = f"text/note-{number:02d}.txt"
            shown = (out / name).read_text(encoding="utf-8") if (out / name).is_file() else ""
            score_note((source / name).read_text(encoding="utf-8"), shown, key, self._tally)
        record = (out / case.record).read_text(encoding="utf-8") if case.record else ""
        score_record(record, self._key.record_go, self._key.record_stay, self._tally)
        passed = {rules.series_uid: series for series in case.series if (rules := self._rules_of(source / "series" / series.series_id))}
        score_files(self._key, out, passed, self._tally)
        write_score(out, self._tally.score(case.case_id))

    def _rules_of(self, raw: Path) -> SeriesKey | None:
        paths = sorted(raw.glob("*.dcm"))
        if not paths:
            return None
        uid = dicom.text(dicom.read_dicom(paths[0]), "SeriesInstanceUID")
        return next((rules for rules in self._key.series if rules.series_uid == uid), None)


def watch_of(answer_key: Path | None, patient_id: str, dates: DateShift) -> Watch:
    """Give the scorer of a simulated patient, or the watch that looks at nothing when there is no answer key."""
    return NOBODY if answer_key is None else Scorer(answer_key, patient_id, dates)
