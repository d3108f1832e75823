"""Models and graders that were another model in the middle of a run: what their provider served under one name."""

from __future__ import annotations

from neuralmedbench.config.load import without_places
from neuralmedbench.records.served import Served, served_by
from neuralmedbench.tables.calls import GRADER
from neuralmedbench.tables.rows import Cells
from neuralmedbench.tables.study import BenchmarkStudy, Study


def mixed_rows(study: Study) -> list[tuple[str, str, list[Served]]]:
    """Find who was served as more than one model.

    Parameters
    ----------
    study : Study
        The run.

    Returns
    -------
    list of (str, str, list of Served)
        Benchmark, model (or `grader <name>`: over the answers of all models, which one grader should measure alike), and what was served.
    """
    found = []
    for name, benchmark in study.benchmarks.items():
        for model, responses in benchmark.responses.items():
            found.append((name, model, served_by((row.served_model, row.fingerprint, row.called_on) for row in responses)))
        for grader, config in study.all_graders.items():
            if config.model is not None:
                found.append((name, f"{GRADER}{grader}", _of_grader(benchmark, grader)))
    return [row for row in found if len({one.name for one in row[2]}) > 1]


def _of_grader(benchmark: BenchmarkStudy, grader: str) -> list[Served]:
    grades = [grade for (_, one), rows in benchmark.grades.items() if one == grader for grade in rows]
    calls = {(grade.model, grade.item_id, grade.text_sha256): (grade.served_model, grade.fingerprint, grade.called_on) for grade in grades}
    return served_by(calls.values())


def served_badges(study: Study) -> list[Cells]:
    """Warn in a few words; nothing when every model was one model throughout."""
    who = sorted({_title(study, model) for _, model, _ in mixed_rows(study)})
    return [{"name": "Served models", "state": "warn", "text": f"changed within the run: {', '.join(who)}"}] if who else []


def served_statements(study: Study) -> list[str]:
    """Say in words who was served as what; nothing when every model was one model throughout."""
    rows = mixed_rows(study)
    if not rows:
        return []
    told = "; ".join(f"{_title(study, model)} on {study.benchmarks[name].config.title}: {_words(served)}" for name, model, served in rows)
    return [
        (
            f"Served models: a provider answered under one name with more than one model ({told}). The score of such a model is that of a "
            "mixture, and a grader that changed did not measure all answers alike."
        )
    ]


def _title(study: Study, who: str) -> str:
    if who.startswith(GRADER):
        return f"{GRADER}{study.all_graders[who.removeprefix(GRADER)].title}"
    return study.models[who].title


def _words(served: list[Served]) -> str:
    counts: dict[str, int] = {}
    for one in served:
        counts[one.name] = counts.get(one.name, 0) + one.answers
    return ", ".join(f"{count:,} answers by {without_places(name)}" for name, count in counts.items())
