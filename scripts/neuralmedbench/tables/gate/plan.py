"""How many patients the margins of an update need, before anything is asked."""

from __future__ import annotations

import datetime
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from neuralmedbench.config.load import load_model, load_readiness
from neuralmedbench.config.model import ModelConfig
from neuralmedbench.config.readiness import Margin
from neuralmedbench.config.run_names import how_to_make
from neuralmedbench.errors import ConfigError, DataError
from neuralmedbench.estimates.noninferiority import MOST_PATIENTS, Changes, patients_needed
from neuralmedbench.files.tables import read_records
from neuralmedbench.files.vocabulary import read_vocabulary
from neuralmedbench.models.life import life_lines
from neuralmedbench.records.items import Gold, Item
from neuralmedbench.records.scores import ParseStatus, Score, response_key
from neuralmedbench.records.words import counted, percent, points
from neuralmedbench.runtime.append_log import read_log
from neuralmedbench.tables.answers import gather_answers
from neuralmedbench.tables.gate.looks import UpdateLook, level_after
from neuralmedbench.tables.gate.verdict import NO_MARGIN
from neuralmedbench.tables.outcomes import DIRECT, FULL, Key, headline
from neuralmedbench.tables.readiness import JUDGES, Member, ModelAnswers, known_groups, patient_rates

POWER = 0.8
"""Chance that an update which changes nothing is approved."""


@dataclass(frozen=True, kw_only=True)
class PatientsNeeded:
    """How many patients one margin needs.

    Attributes
    ----------
    changes : Changes
        How much patients are expected to change without any change of the model.
    measured : bool
        Whether this comes from repeated answers, and is not assumed.
    here : int
        Patients of the benchmark who can be judged.
    alone, together : int or None
        Patients needed for this margin to be shown, and for all of them, in `POWER` of updates that change nothing; None: above all limits.
    """

    margin: Margin
    changes: Changes
    measured: bool
    here: int
    alone: int | None
    together: int | None


def plan_margins(
    margins: Sequence[Margin], changes: Mapping[tuple[str, str], Changes], here: Mapping[tuple[str, str], int], level: float, assumed: float
) -> list[PatientsNeeded]:
    """Count the patients that each margin needs.

    Parameters
    ----------
    margins : sequence of Margin
        The margins.
    changes : mapping of (str, str) to Changes
        Of the margins for which they were measured, by group and kind.
    here : mapping of (str, str) to int
        Patients of the benchmark who can be judged.
    level : float
        Error of the look.
    assumed : float
        Share of patients who change, for the other margins.

    Returns
    -------
    list of PatientsNeeded
        For all margins together each gets its part of what may fail, whatever they have to do with each other (Bonferroni).
    """
    found = []
    for margin in margins:
        key = margin[:2]
        own = changes.get(key, Changes(assumed, assumed))
        alone, together = (
            patients_needed(margin.margin, own, level, power) for power in (POWER, 1 - (1 - POWER) / len(margins))
        )  # fmt: skip
        found.append(
            PatientsNeeded(margin=margin, changes=own, measured=key in changes, here=here.get(key, 0), alone=alone, together=together)
        )
    return found


def patients_here(items: Iterable[Item], answers: ModelAnswers, member: Member, kind: str) -> int:
    """Count the patients of a group whose answers could be judged for a kind of error, by judging a complete answer to each item."""
    made = [_complete_answer(item) for item in items if item.item_id in answers.gold and member(answers.gold[item.item_id].answer)]
    judged = replace(answers, scores=made, hallucinated={response_key(row): False for row in made})
    return len(patient_rates(judged, JUDGES[kind]))


def _complete_answer(item: Item) -> Score:
    fields = {"lesion": "lesion", "location": "", "side": "left"}
    return Score(
        item_id=item.item_id,
        case_id=item.case_id,
        patient_id=item.patient_id,
        benchmark=item.benchmark,
        axis=item.axis,
        family=item.family,
        level=item.level,
        runner=item.runner,
        arm=FULL,
        strategy=DIRECT,
        model="",
        revision="",
        repeat=0,
        text_sha256="",
        state="ok",
        parse_status=ParseStatus.STRICT,
        missing=False,
        scored=True,
        lesion_shown=item.lesion_shown,
        passed=True,
        confidence=1.0,
        fields=fields,
    )


def changes_of_repeats(answers: ModelAnswers, member: Member, kind: str) -> Changes | None:
    """Measure how much patients change without any change of the model: the first half of each item's repeats against the second half.

    None if no item was asked twice. Halves differ more than whole sets of answers do, so this asks for too many patients rather than too few.
    """
    items = [answers.items[name] for name in sorted(answers.items)]
    gaps: dict[str, list[float]] = defaultdict(list)
    for rows in gather_answers(items, {"": answers.scores}).of(Key("")).by_item():
        verdicts = [JUDGES[kind](row, answers) for row in rows if member(answers.gold[row.item_id].answer)]
        values = [verdict for verdict in verdicts if verdict is not None]
        if half := len(values) // 2:
            gaps[rows[0].patient_id].append(float(np.mean(values[:half]) - np.mean(values[half : 2 * half])))
    if not gaps:
        return None
    means = np.array([np.mean(values) for values in gaps.values()])
    return Changes(float(np.abs(means).mean()), float((means**2).mean()))


def plan_update(
    root: Path, model: str, *, vocabulary: Path, results: Path, record: Path, assumed: float, today: datetime.date
) -> list[str]:
    """Say how many patients the margins of an update need, from the items and, where they are there, repeated answers of the revision in use.

    Parameters
    ----------
    root : Path
        The repository root.
    model : str
        The model.
    vocabulary, results, record : Path
        The vocabulary, the results of the run, and the folder of the records of looks, relative to the root.
    assumed : float
        Share of patients who change without any change of the model, where repeats do not say.
    today : date
        Day from which the model's last day is counted.

    Returns
    -------
    list of str
        Lines for the terminal.

    Raises
    ------
    ConfigError
        If no margin is stated, the share is none, or a group names an unknown diagnosis.
    DataError
        If the items are not there yet.
    """
    config, known = load_readiness(root / "config" / "readiness.yaml"), read_vocabulary(root / vocabulary)
    if not config.update.margins:
        raise ConfigError(NO_MARGIN)
    if not 0 <= assumed <= 1:
        message = f"--changes: expected a share of patients, 0 to 1, found {assumed:g}"
        raise ConfigError(message)
    benchmark, members = str(config.update.benchmark), known_groups(config, known)
    data = root / "data"
    if not (data / "gold" / f"{benchmark}.parquet").is_file():
        message = (
            f"the items of {benchmark} are not there; make them first: {how_to_make(Path('data/items', f'{benchmark}.parquet'), benchmark)}"
        )
        raise DataError(message)
    items = read_records(data / "items" / f"{benchmark}.parquet", Item)
    gold = read_records(data / "gold" / f"{benchmark}.parquet", Gold)
    path = root / results / "scores" / benchmark / f"{model}.parquet"
    asked = load_model(root / "config" / "models" / f"{model}.yaml")
    scores = _in_use(headline(read_records(path, Score)) if path.is_file() else [], asked)
    answers = ModelAnswers(
        scores=[row for row in scores if not row.missing],
        items={row.item_id: row for row in items},
        gold={row.item_id: row for row in gold},
        hallucinated={},
        vocabulary=known,
    )
    keys = [margin[:2] for margin in config.update.margins]
    here: dict[tuple[str, str], int] = {key: patients_here(items, answers, members[key[0]], key[1]) for key in keys}
    changes: dict[tuple[str, str], Changes] = {
        key: found for key in keys if (found := changes_of_repeats(answers, members[key[0]], key[1]))
    }
    planned, alpha = config.update.planned_looks, 1 - config.confidence
    log = root / record / benchmark / f"{model}.jsonl"
    looks = [UpdateLook.of(one) for one in read_log(log)]
    _, level = level_after(looks, planned, alpha)
    if level <= 0:
        return [
            f"{model} on {benchmark}: all planned looks at these patients are used up; an update needs new patients (another benchmark)"
        ]
    rows = plan_margins(config.update.margins, changes, here, level, assumed)
    head = f"{model} on {benchmark}: look {len(looks) + 1} has an error of {percent(level, 2)} ({counted(planned, 'look')} planned)"
    lines = [f"{head}; patients with whom an update that changes nothing is approved in {percent(POWER)} of cases:"]
    lines += [_line(row, config.groups[row.margin.group].title) for row in rows]
    most = None if any(row.together is None for row in rows) else max(row.together or 0 for row in rows)
    enough = all(row.together is not None and row.here >= row.together for row in rows)
    lines.append(
        "the benchmark has enough patients" if enough else f"the benchmark has too few patients{f'; {most} would do' if most else ''}"
    )
    return [*lines, *life_lines([asked], today)]


def _in_use(scores: list[Score], model: ModelConfig) -> list[Score]:
    """Keep the answers of the revision in use: that of the yaml, or the one that was current before `revision` was raised."""
    known = list(dict.fromkeys(row.revision for row in scores))
    others = [name for name in known if name != model.revision] or known
    wanted = model.reference_revision or (others[-1] if model.revision in known else known[0] if known else "")
    return [row for row in scores if row.revision == wanted]


def _line(row: PatientsNeeded, group: str) -> str:
    alone, together = (f"more than {MOST_PATIENTS:,}" if number is None else f"{number:,}" for number in (row.alone, row.together))
    source = "repeats" if row.measured else "assumed"
    return (
        f"  {row.margin.kind}, {group}, margin {points(row.margin.margin, plus='')} points: {together} for all margins together ({alone} for this one alone), {row.here} here;"
        f" a patient changes by {percent(row.changes.size, 1)} without any change of the model ({source})"
    )
