"""Where a number comes from: the files, the code, the requests and the prompts behind one cell of a table."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path

from neuralmedbench.config.load import load_benchmark
from neuralmedbench.files.digests import sha256_of
from neuralmedbench.models.ledger import read_ledger
from neuralmedbench.recording.cells import Cell
from neuralmedbench.recording.chain import Link, Subject, code_of, follow
from neuralmedbench.recording.metadata import METADATA, read_metadata
from neuralmedbench.recording.recount import DIRECT, PARTS, Answers, read_answers, recount

Groups = dict[tuple[str, str, str], list[Answers]]
"""Answers by benchmark, model and arm."""

SHORT = 16
"""Hex digits of a request or a call that are shown: enough to find it."""


def trace(cell: Cell, *, responses: int = 10, root: Path = Path()) -> str:
    """Write down where a number comes from.

    Parameters
    ----------
    cell : Cell
        The cell.
    responses : int
        So many items are listed for each model; 0 lists all.
    root : Path
        The repository root.

    Returns
    -------
    str
        The cell and its recount; the chain of files with digests; the ledgers; what people wrote; the answers. Hashes, ids and names
        of the project's own files only: nothing that a model or a person said, and nothing of the private zone.

    Raises
    ------
    DataError
        If a table of the run is not there.
    """
    records = {made.path: made for made in read_metadata(root / METADATA)}
    chain = follow(f"results/tables/{cell.table}.csv", records, Subject(cell.benchmarks, cell.models), root)
    groups = _answers(cell, root)
    lines = [*_head(cell, groups), "", "made, the last first (SHA-256 of the file that lies here)"]
    for link in chain:
        if not link.name.startswith("config/"):
            lines += _made(link, root, known=bool(records))
    lines += ["", "the ledgers", *(_ledgers(chain, groups, root) or ["  none"])]
    written = [f"  {link.name}\n    {_digest(link)}" for link in chain if link.name.startswith("config/")]
    lines += ["", "written by people: settings, prompts, vocabulary", *(written or ["  not recorded"])]
    for (benchmark, model, arm), answers in groups.items():
        lines += ["", *_listing(cell, benchmark, model, arm, answers=answers, at_most=responses)]
    return "\n".join(lines)


def _answers(cell: Cell, root: Path) -> Groups:
    part = (cell.row.get("slice") or "all", cell.row.get("value_of_slice") or "all")
    part = part if part[0] in PARTS else ("all", "all")
    return {
        (benchmark, model, arm): read_answers(benchmark, model, arm=arm, strategy=cell.row.get("strategy") or DIRECT, part=part, root=root)
        for benchmark in sorted(cell.benchmarks or ())
        for model in sorted(cell.models or ())
        for arm in cell.arms or load_benchmark(root / "config", benchmark).arms
        if (root / f"results/scores/{benchmark}/{model}.parquet").is_file()
    }


def _head(cell: Cell, groups: Groups) -> Iterator[str]:
    yield f"{cell.column} of {cell.table}, row {cell.number}: {cell.value or 'empty (not available)'}"
    yield f"  {', '.join(f'{name} {value}' for name, value in cell.keys.items())}"
    counted = _recounted(cell, groups)
    if counted is None:
        yield "  not recomputed: no plain rate or count of the scores"
    elif counted == cell.value:
        yield f"  recomputed from the scores: {counted}, the same"
    else:
        yield f"  recomputed from the scores: {counted}, which is NOT the number in the table"


def _recounted(cell: Cell, groups: Groups) -> str | None:
    name = cell.column
    if cell.table == "rates":
        name = cell.row["metric"] if cell.column == "value" else ""
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
    what = "" if link.name in link.digests else f"{len(link.digests)} files, of what sha256sum prints of them: "
    if link.changed:
        path, made = next(iter(link.changed.items()))
        more = f" (and {len(link.changed) - 1} more)" if len(link.changed) > 1 else ""
        named = "" if path == link.name else f"{path} "
        return f"{what}sha256 {link.digest}, {named}CHANGED since {made} was made{more}"
    return f"{what}sha256 {link.digest}, {'same as recorded' if link.recorded else 'not recorded'}"


def _made(link: Link, root: Path, *, known: bool) -> Iterator[str]:
    yield f"  {link.name}"
    yield f"    {_digest(link)}"
    yield from (f"    by {code}" for code in code_of(link.made, root))
    if not link.made:
        yield f"    how it was made is not recorded{'' if known else ': Snakemake has no records here, `make pull` brings them'}"
    yield from (f"    from {name}" for name in link.sources)
    if link.unnamed:
        yield f"    from {link.unnamed} files of the private zone, which are not followed"


def _ledgers(chain: Sequence[Link], groups: Groups, root: Path) -> list[str]:
    lines = []
    for link in chain:
        if link.name.startswith("results/responses/"):
            benchmark, model = Path(link.name).parent.name, Path(link.name).stem
            lines += _ledger(f"data/ledger/{benchmark}/{model}.jsonl", root)
            keys = _keys(answers for (one, other, _), answers in groups.items() if (one, other) == (benchmark, model))
            there = keys & read_ledger(root / f"data/ledger/{benchmark}/{model}.jsonl").keys()
            if keys:
                lines.append(f"    {len(there)} of the {len(keys)} calls behind the number are in it{'' if there == keys else ': NOT all'}")
        elif link.name.startswith("results/grades/"):
            grades = Path(link.name)
            lines += _ledger(f"data/ledger/{grades.parent.parent.name}/graders/{grades.parent.name}/{grades.stem}.jsonl", root)
    return lines


def _keys(groups: Iterator[list[Answers]]) -> set[str]:
    return {key for answers in groups for one in answers for row in one.responses for key in row.call_keys}


def _ledger(name: str, root: Path) -> list[str]:
    if not (root / name).is_file():
        return [] if "/graders/" in name else [f"  {name}", "    not here; `make pull` brings it"]
    return [f"  {name}", f"    sha256 {sha256_of(root / name)}, {len(read_ledger(root / name))} answers"]


def _listing(cell: Cell, benchmark: str, model: str, arm: str, *, answers: Sequence[Answers], at_most: int) -> Iterator[str]:
    strategy, expected, missing = (
        cell.row.get("strategy") or DIRECT,
        sum(one.expected for one in answers),
        sum(one.missing for one in answers),
    )
    yield f"answers of {model} to {benchmark}, arm {arm}, strategy {strategy}"
    if (cell.row.get("slice") or "all") not in PARTS:
        yield f"  of all items: those of the slice {cell.row['slice']} are not told apart here"
    passed = sum(one.passed for one in answers)
    yield f"  {len(answers)} items with a reference, {expected} answers expected, {passed} passed, {missing} missing"
    shown = answers[:at_most] if at_most else answers
    for one in shown:
        keys = [key for row in one.responses for key in row.call_keys]
        request = one.responses[0].request_id[:SHORT] if one.responses else "none"
        call = f"call {keys[0][:SHORT]} (the first of {len(keys)})" if keys else "no call"
        yield f"  {one.item.item_id}: {one.passed} of {one.expected} passed, {one.missing} missing; request {request}, {call}"
    if len(shown) < len(answers):
        yield f"  and {len(answers) - len(shown)} more items (--responses 0 lists all)"
    if shown:
        words = ["--benchmark", benchmark, "--model", model, "--item", shown[0].item.item_id, "--arm", arm]
        yield f"  to read one: python scripts/explain_request.py {shlex.join(words)}"
