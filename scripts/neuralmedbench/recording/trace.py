"""Trace one cell of a table to its files, code, requests and prompts, and recompute plain rates from the scores."""

from __future__ import annotations

import math
import shlex
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path

from neuralmedbench.config.arms import load_arms
from neuralmedbench.config.load import load_benchmark
from neuralmedbench.config.run_names import results_of
from neuralmedbench.files.digests import sha256_of
from neuralmedbench.files.tables import read_by_item, read_records
from neuralmedbench.models.ledger import read_ledger
from neuralmedbench.recording.finished_runs import TableCell
from neuralmedbench.recording.metadata import METADATA, Link, RowScope, code_lines, read_metadata, upstream_links
from neuralmedbench.records.arm_changes import as_asked
from neuralmedbench.records.items import DIAGNOSES, Gold, Item, Runner, Strategy
from neuralmedbench.records.responses import Response
from neuralmedbench.records.results import BOUNDS, PASS1_PATIENTS
from neuralmedbench.records.scores import CORE_DIAGNOSIS, MAIN_CONDITION, ParseStatus, Score
from neuralmedbench.scoring.explain_reading import why_unread
from neuralmedbench.tables.outcomes import DIRECT, can_pass

CANDIDATES = frozenset({Runner.OPEN, Runner.DIALOGUE})
SAMPLES = 5
"""Samples of an item behind pass@5."""
GRADES = (MAIN_CONDITION, CORE_DIAGNOSIS, "rubric")


def _sequence(item: Item, gold: Gold) -> str:
    """Return the sequence of an item's pictures, `several_sequences`, or that of the reference if the pictures have none."""
    sequences = {image.sequence for image in item.images} - {"", "unknown"}
    if sequences:
        return sequences.pop() if len(sequences) == 1 else "several_sequences"
    return gold.fields.sequence or "" if gold.fields else ""


PARTS: dict[str, Callable[[Item, Gold], str]] = {
    "all": lambda _item, _gold: "all",
    "family": lambda item, _gold: str(item.family),
    "level": lambda item, _gold: str(item.level),
    "diagnosis": lambda _item, gold: gold.answer,
    "lesion_shown": lambda item, _gold: str(item.lesion_shown).lower(),
    "sequence": _sequence,
}
"""Slices of the tables that follow from an item and its reference: for each, a function that returns the value of an item."""


@dataclass(frozen=True)
class ItemTrace:
    """The answers of one model to one item under one arm: expected number, scores and responses."""

    item: Item
    expected: int
    scores: tuple[Score, ...]
    responses: tuple[Response, ...]

    @property
    def passed(self) -> int:
        """Number of answers that pass."""
        return sum(row.passed is True for row in self.scores)

    @property
    def missing(self) -> int:
        """Number of missing answers: no answer, or no grade."""
        return max(self.expected - sum(row.passed is not None and not row.missing for row in self.scores), 0)


def read_answers(
    benchmark: str,
    model: str,
    *,
    arm: str = "full",
    strategy: str = DIRECT,
    part: tuple[str, str] = ("all", "all"),
    root: Path = Path(),
    results: str = "results",
) -> list[ItemTrace]:
    """Read the answers of one model, current revision, to the items of a slice that have a reference; sorted by item id.

    `part` is a slice of `PARTS` and its value.
    """
    gold = read_by_item(root / f"data/gold/{benchmark}.parquet", Gold)
    items = read_records(root / f"data/items/{benchmark}.parquet", Item)
    all_responses = read_records(root / f"{results}/responses/{benchmark}/{model}.parquet", Response)
    current = all_responses[0].revision if all_responses else ""  # the table starts with the current revision
    scores, responses = defaultdict[str, list[Score]](list), defaultdict[str, list[Response]](list)
    samples: dict[str, int] = defaultdict(lambda: 1)
    for score in read_records(root / f"{results}/scores/{benchmark}/{model}.parquet", Score):
        if (score.arm, score.strategy, score.revision) == (arm, strategy, current):
            scores[score.item_id].append(score)
            if strategy != Strategy.SELF_CONSISTENCY:  # the vote leaves one answer per item, numbered as the winning sample
                samples[score.runner] = max(samples[score.runner], score.repeat + 1)
    for response in all_responses:
        if (response.arm, response.strategy, response.revision) == (arm, strategy, current):
            responses[response.item_id].append(response)
    return [
        ItemTrace(item, samples[item.runner], tuple(scores[item.item_id]), tuple(responses[item.item_id]))
        for item in sorted(items, key=lambda item: item.item_id)
        if item.item_id in gold
        and can_pass(item, gold[item.item_id])
        and PARTS[part[0]](item, gold[item.item_id]) == part[1]
        # under other arms and strategies, only some items are asked
        and ((arm, strategy) == ("full", DIRECT) or item.item_id in scores)
    ]


def recount(name: str, answers: Sequence[ItemTrace]) -> float | int | None:
    """Recompute one number; None for an unknown name.

    A rate is the mean over items of the share of expected answers that pass, or over patients of the mean of each one's items.
    """
    expected, missing = sum(one.expected for one in answers), sum(one.missing for one in answers)
    counts = {
        "expected": expected,
        "missing": missing,
        "n_items": len(answers),
        "n_patients": len({one.item.patient_id for one in answers}),
        **{state: sum(row.state == state for one in answers for row in one.scores) for state in ("refused", "truncated")},
    }
    if name in counts:
        return counts[name]
    if name == "missing_fraction":
        return missing / max(expected, 1)
    shares: dict[str, list[float]] = {
        "pass1": [one.passed / one.expected for one in answers],
        "pass1_strict": [
            sum(row.passed is True and row.parse_status == ParseStatus.STRICT for row in one.scores) / one.expected for one in answers
        ],
        # bounds of pass@1: all missing answers pass, or none does
        "best_case": [(one.passed + one.missing) / one.expected for one in answers],
        "candidates5": [
            sum(bool(row.in_candidates) for row in _known_scores(one)) / one.expected
            for one in _of_differentials(answers)
            if not any(row.in_candidates is None for row in _known_scores(one))
        ],
    }
    shares["worst_case"] = shares["pass1"]
    of_patients: dict[str, list[float]] = defaultdict(list)
    for one, share in zip(answers, shares["pass1"], strict=True):
        of_patients[one.item.patient_id].append(share)
    shares[PASS1_PATIENTS] = [math.fsum(own) / len(own) for own in of_patients.values()]
    if missing >= expected:  # without any answer a rate is unknown, not 0
        shares = {}
    # grades: the mean of an item first, then over items
    if name in GRADES:
        grades = [[value for row in one.scores if not row.missing and (value := getattr(row, name)) is not None] for one in answers]
        shares[name] = [math.fsum(values) / len(values) for values in grades if values]
    values = shares.get(name, [])
    return math.fsum(values) / len(values) if values else None


def _known_scores(answers: ItemTrace) -> list[Score]:
    return [row for row in answers.scores if row.passed is not None and not row.missing]


def _of_differentials(answers: Sequence[ItemTrace]) -> list[ItemTrace]:
    """Return the items that both readings of pass@5 count, as `Outcomes.differential_items` does."""
    asked = [one for one in answers if one.item.runner in CANDIDATES and one.item.family in DIAGNOSES]
    return [one for one in asked if one.expected >= SAMPLES] or asked


Groups = dict[tuple[str, str, str, str], list[ItemTrace]]
"""Answers by benchmark, model, arm and strategy."""

SHORT = 16
"""Hexadecimal digits shown of a request or call: enough to find it."""


def trace(cell: TableCell, *, responses: int = 10, root: Path = Path(), configfiles: Sequence[str] = ()) -> str:
    """Describe the origin of a number.

    Parameters
    ----------
    cell : TableCell
        The cell.
    responses : int
        Number of items to list per model; 0 lists all.
    root : Path
        The repository root.
    configfiles : sequence of str
        Configuration files of the run, as `extra_configfiles` returns them.

    Returns
    -------
    str
        The cell and its recomputed value; the chain of files with digests; the ledgers; files written by people; the answers. Only
        hashes, ids and names of the project's own files: no text of a model or a person, and nothing from the private zone.

    Raises
    ------
    DataError
        If a table of the run is missing.
    """
    records = {made.path: made for made in read_metadata(root / METADATA)}
    results = results_of(configfiles)
    chain = upstream_links(f"{results}/tables/{cell.table}.csv", records, RowScope(cell.benchmarks, cell.models), root)
    groups = _answers(cell, root, results)
    lines = [*_head(cell, groups), "", "files, the last first (SHA-256 of the file here)"]
    for link in chain:
        if not link.name.startswith("config/"):
            lines += _lines_of_link(link, root, known=bool(records))
    lines += ["", "the ledgers", *(_ledgers(chain, groups, root, results) or ["  none"])]
    written = [f"  {link.name}\n    {_digest(link)}" for link in chain if link.name.startswith("config/")]
    lines += ["", "written by people: settings, prompts, vocabulary", *(written or ["  not recorded"])]
    for (benchmark, model, arm, strategy), answers in groups.items():
        about = f"answers of {model} to {benchmark}, arm {arm}, strategy {strategy}"
        lines += ["", about, *_listing(cell, answers, at_most=responses)]
        if answers:
            words = ["--benchmark", benchmark, "--model", model, "--item", answers[0].item.item_id, "--arm", arm]
            words += ["--strategy", strategy] if strategy != DIRECT else []
            words += ["--configfiles", *configfiles] if configfiles else []
            lines.append(f"  to read one: nmb model explain {shlex.join(words)}")
    return "\n".join(lines)


def _answers(cell: TableCell, root: Path, results: str) -> Groups:
    part = (cell.row.get("slice") or "all", cell.row.get("value_of_slice") or "all")
    # other slices need data that items and references do not have
    part = part if part[0] in PARTS else ("all", "all")
    return {
        (benchmark, model, arm, str(strategy)): read_answers(
            benchmark, model, arm=arm, strategy=strategy, part=part, root=root, results=results
        )
        for benchmark in sorted(cell.benchmarks or ())
        for model in sorted(cell.models or ())
        for arm, strategy in _asked(cell, benchmark, root / "config")
        if (root / f"{results}/scores/{benchmark}/{model}.parquet").is_file()
    }


def _asked(cell: TableCell, benchmark: str, config: Path) -> Iterator[tuple[str, str]]:
    """Yield the arms and strategies whose answers are behind a row."""
    yield from product(cell.arms or load_benchmark(config, benchmark).arms, cell.strategies)
    if cell.compares_oracle_slices:
        arms = load_arms(config, load_benchmark(config, benchmark).arms, benchmark)
        yield from ((name, DIRECT) for name, arm in arms.items() if arm.is_oracle)


def _head(cell: TableCell, groups: Groups) -> Iterator[str]:
    yield f"{cell.column} of {cell.table}, row {cell.number}: {cell.value or 'empty (not available)'}"
    yield f"  {', '.join(f'{name} {value}' for name, value in cell.keys.items())}"
    counted = _recompute(cell, groups)
    if not cell.value and cell.row.get("worst_case") and cell.row.get("missing") not in (None, "", "0"):
        lost, expected = cell.row["missing"], cell.row["expected"]
        yield f"  {lost} of {expected} answers are missing or not graded, so the rate is not known: see worst_case and best_case of the row"
    elif counted is None:
        yield "  not recomputed: not a plain rate or count of the scores"
    elif counted == cell.value:
        yield f"  recomputed from the scores: {counted}, the same"
    else:
        yield f"  recomputed from the scores: {counted}, which is NOT the number in the table"


def _recompute(cell: TableCell, groups: Groups) -> str | None:
    name = cell.column
    # only plain rates and counts of two tables are recomputed
    if cell.table == "rates":
        metric = cell.row["metric"]
        name = metric if cell.column == "value" else cell.column if metric == "pass1" and cell.column in BOUNDS else ""
        if cell.row["slice"] not in PARTS:
            return None
    elif cell.table != "leaderboard":
        return None
    if len(groups) != 1:
        return None
    number = recount(name, next(iter(groups.values())))
    return f"{number:.6f}" if isinstance(number, float) else None if number is None else str(number)


def _digest(link: Link) -> str:
    if link.absent:
        return f"{len(link.absent)} of {len(link.absent) + len(link.digests)} files are not here"
    what = "" if link.name in link.digests else f"{len(link.digests)} files, digest of their sha256sum listing: "
    if link.changed:
        path, made = next(iter(link.changed.items()))
        more = f" (and {len(link.changed) - 1} more)" if len(link.changed) > 1 else ""
        named = "" if path == link.name else f"{path} "
        return f"{what}sha256 {link.digest}, {named}CHANGED since {made} was made{more}"
    return f"{what}sha256 {link.digest}, {'same as recorded' if link.recorded else 'not recorded'}"


def _lines_of_link(link: Link, root: Path, *, known: bool) -> Iterator[str]:
    yield f"  {link.name}"
    yield f"    {_digest(link)}"
    yield from (f"    by {code}" for code in code_lines(link.made, root))
    if not link.made:
        yield f"    how it was made is not recorded{'' if known else ': Snakemake has no records here, `nmb run pull` brings them'}"
    yield from (f"    from {name}" for name in link.sources)
    if link.unnamed:
        yield f"    from {link.unnamed} files in the private zone, which are not followed"


def _ledgers(chain: Sequence[Link], groups: Groups, root: Path, results: str) -> list[str]:
    lines = []
    for link in chain:
        if link.name.startswith(f"{results}/responses/"):
            benchmark, model = Path(link.name).parent.name, Path(link.name).stem
            lines += _ledger(f"data/ledger/{benchmark}/{model}.jsonl", root)
            # calls that the number depends on must be in the ledger
            keys = _keys(answers for (one, other, *_), answers in groups.items() if (one, other) == (benchmark, model))
            present = keys & read_ledger(root / f"data/ledger/{benchmark}/{model}.jsonl").keys()
            if keys:
                lines.append(
                    f"    {len(present)} of the {len(keys)} calls behind the number are in it{'' if present == keys else ': NOT all'}"
                )
        elif link.name.startswith(f"{results}/grades/"):
            grades = Path(link.name)
            lines += _ledger(f"data/ledger/{grades.parent.parent.name}/graders/{grades.parent.name}/{grades.stem}.jsonl", root)
    return lines


def _keys(groups: Iterator[list[ItemTrace]]) -> set[str]:
    return {key for answers in groups for one in answers for row in one.responses for key in row.call_keys}


def _ledger(name: str, root: Path) -> list[str]:
    if not (root / name).is_file():
        return [] if "/graders/" in name else [f"  {name}", "    not here; `nmb run pull` brings it"]
    return [f"  {name}", f"    sha256 {sha256_of(root / name)}, {len(read_ledger(root / name))} answers"]


def _listing(cell: TableCell, answers: Sequence[ItemTrace], *, at_most: int) -> Iterator[str]:
    expected, missing = sum(one.expected for one in answers), sum(one.missing for one in answers)
    if (cell.row.get("slice") or "all") not in PARTS:
        yield f"  all items: those of the slice {cell.row['slice']} cannot be selected here"
    passed = sum(one.passed for one in answers)
    yield f"  {len(answers)} items with a reference, {expected} answers expected, {passed} passed, {missing} missing"
    shown = answers[:at_most] if at_most else answers
    for one in shown:
        keys = [key for row in one.responses for key in row.call_keys]
        request = one.responses[0].request_id[:SHORT] if one.responses else "none"
        call = f"call {keys[0][:SHORT]} (the first of {len(keys)})" if keys else "no call"
        yield f"  {one.item.item_id}: {one.passed} of {one.expected} passed, {one.missing} missing; request {request}, {call}"
        unread = Counter(why_unread(row.text, as_asked(one.item, row.arm)) for row in one.scores if row.parse_status == ParseStatus.FAILED)
        yield from (f"    {number} not read: {why}" for why, number in sorted(unread.items()) if why)
    if len(shown) < len(answers):
        yield f"  and {len(answers) - len(shown)} more items (--responses 0 lists all)"
