"""What may not be said of one benchmark, and of one round of ratings."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence

from neuralmedbench.records.results import HIDDEN
from neuralmedbench.tables.disclosure.parts import parts_of
from neuralmedbench.tables.disclosure.sets import Crowd, Label, hidden_cells
from neuralmedbench.tables.rows import Cells
from neuralmedbench.tables.study import BenchmarkStudy, Study
from neuralmedbench.tables.suppression import Suppression


class Guard:
    """What may not be shown of one benchmark of patients who are not public."""

    def __init__(self, study: Study, benchmark: BenchmarkStudy, fewest: int) -> None:
        parts = parts_of(study, benchmark)
        crowd = Crowd(parts.patients, fewest)
        self.fewest = fewest
        self.nothing = len({*parts.patients}) < fewest or crowd.few(parts.total)
        """Whether all of it is about few patients."""
        self.small, self.companions = (set[Label](), set[Label]()) if self.nothing else hidden_cells(parts.cells, parts.total, crowd)
        self._most = _most_of_a_patient(benchmark)
        self.answers_of_a_patient = self._most["question"] * benchmark.config.samples

    def least(self, rule: Suppression, row: Cells) -> int:
        """Give the count from which a row is surely about enough patients."""
        return self.fewest * (self._most[row["unit"]] if "unit" in row else 1)

    def mark(self, rule: Suppression, row: Cells) -> str:
        """Say that a row is hidden, because few patients are behind it or because of other rows; empty when it is not."""
        labels: Sequence[Label] = rule.labels(row)
        few = f"<{self.fewest}" if rule.patients and self.least(rule, row) == self.fewest else f"<{self.fewest} patients"
        if (self.nothing and rule.whole) or not self.small.isdisjoint(labels):
            return few
        if rule.patients and 0 < (row.get(rule.patients) or 0) < self.least(rule, row):
            return few
        return HIDDEN if not self.companions.isdisjoint(labels) else ""


def _most_of_a_patient(benchmark: BenchmarkStudy) -> dict[str, int]:
    """Give the most cases, pictures and questions that one patient has: so many times fewer patients may stand behind a count of them."""
    cases = Counter(str(case["patient_id"]) for case in benchmark.flow)
    cases = cases or Counter(patient for patient, _ in {(item.patient_id, item.case_id) for item in benchmark.items})
    pictures = Counter(patient for patient, _ in {(item.patient_id, image.image_id) for item in benchmark.items for image in item.images})
    questions = Counter(item.patient_id for item in benchmark.items)
    files = cases if benchmark.flow else pictures
    counts = {"case": cases, "picture": pictures, "question": questions, "file": files, "series": files}
    return {unit: max(own.values(), default=1) for unit, own in counts.items()}


class RoundGuard:
    """What may not be shown of the rounds in which clinicians rated answers about patients who are not public."""

    def __init__(self, study: Study, benchmarks: frozenset[str], fewest: int) -> None:
        patients = {item.item_id: item.patient_id for benchmark in study.benchmarks.values() for item in benchmark.items}
        self.fewest = fewest
        self.rounds = {row.round_id for row in study.ratings if row.item_id.partition("/")[0] in benchmarks}
        self._rated: dict[tuple[object, ...], set[str]] = defaultdict(set)
        for row in study.sampled_ratings:
            self._rated[row.round_id, row.model, row.axis, row.simulated].add(patients.get(row.item_id, row.item_id))

    def mark(self, rule: Suppression, row: Cells) -> str:
        """Say that a row is hidden; empty when it is not."""
        if row["round_id"] not in self.rounds:
            return ""
        if rule.patients:
            return f"<{self.fewest}" if 0 < (row.get(rule.patients) or 0) < self.fewest else ""
        few = len(self._rated[row["round_id"], row["model"], row["axis"], row["simulated"]]) < self.fewest
        return f"<{self.fewest} patients" if few else ""
