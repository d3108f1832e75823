"""The line that says how far a run is: text from its state, without reading or writing anything."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from neuralmedbench.runtime.job_progress import JobProgress, duration

STAGES = {
    "generate_phantom": "make phantoms of {benchmark}",
    "gather_answers": "gather reference answers of {benchmark}",
    "simulate_ratings": "simulate ratings",
    "cut_demo_pictures": "cut pictures of {benchmark}",
    "ingest_case": "read scans of {benchmark}",
    "ingest_pictures": "read pictures of {benchmark}",
    "deidentify_case": "de-identify scans of {benchmark}",
    "deidentify_pictures": "check and clean pictures of {benchmark}",
    "describe_scans": "describe scans of {benchmark}",
    "normalise_case": "normalise scans of {benchmark}",
    "cut_slices": "cut slices of {benchmark}",
    "gather_slices": "gather slices of {benchmark}",
    "list_views": "list the slices of {benchmark} that models may ask for",
    "build_review": "prepare what a person may review of {benchmark}",
    "gather_audit": "audit what may be sent of {benchmark}",
    "build_items": "build items of {benchmark}",
    "alter_pictures": "alter pictures of {benchmark}",
    "assemble_prompts": "write prompts of {benchmark}",
    "find_answer_leaks": "look for answers in the prompts of {benchmark}",
    "run_inference": "ask {model} on {benchmark}",
    "plant_errors": "plant errors for the graders of {benchmark}",
    "grade_responses": "grade {model} on {benchmark} by {grader}",
    "decide_jury": "decide the jury on {model}, {benchmark}",
    "embed_similarity": "compare texts of {benchmark}",
    "score_responses": "score {model} on {benchmark}",
    "import_ratings": "import ratings",
    "bundle_cases": "bundle cases of {benchmark}",
    "build_tables": "compute tables",
    "compare_published": "compare with {paper}",
    "describe_benchmark": "describe {benchmark}",
    "draw_figures": "draw figures",
    "record_provenance": "record provenance",
    "build_report": "build the report",
    "export_results": "write the exports",
}
"""Rules in words; a test compares them with the rules. Cases are counted, never named."""
ASKING = frozenset({"run_inference", "grade_responses"})
WAITING, RUNNING, DONE, FAILED = "waiting", "running", "done", "failed"
FEWEST_ANSWERS, SHORTEST_S = 10, 5.0
"""Below these the time left is not estimated. (Our rule.)"""


Place = tuple[str, str, str]


@dataclass(frozen=True, kw_only=True)
class RunningJob:
    """A job that was started: its rule, wildcards, and time of a monotonic clock."""

    rule: str
    wildcards: Mapping[str, str]
    since: float

    @property
    def stage(self) -> str:
        """What the job does, in words; jobs of several cases have the same."""
        words = STAGES.get(self.rule, self.rule.replace("_", " "))
        for name, value in self.wildcards.items():
            words = words.replace(f"{{{name}}}", value)
        return words

    def asks(self, progress: JobProgress) -> bool:
        """Return whether this job reports that progress."""
        return self.rule in ASKING and self.place == (progress.benchmark, progress.model, progress.grader)

    @property
    def place(self) -> Place:
        """Benchmark, model and grader; empty where the job has none."""
        benchmark, model, grader = (self.wildcards.get(name, "") for name in ("benchmark", "model", "grader"))
        return benchmark, model, grader


@dataclass
class RunState:
    """How far a run is; times of a monotonic clock.

    Attributes
    ----------
    phase : str
        What is done while no job runs.
    done, total, failed : int
        Jobs.
    of_rule, done_of_rule : Counter
        Jobs planned and done, by rule.
    running : dict
        Running jobs by Snakemake's number.
    asks : dict
        State of each planned job that asks a model, by benchmark, model and grader.
    """

    started: float
    phase: str = "read the configuration"
    done: int = 0
    total: int = 0
    failed: int = 0
    of_rule: Counter[str] = field(default_factory=Counter)
    done_of_rule: Counter[str] = field(default_factory=Counter)
    running: dict[int, RunningJob] = field(default_factory=dict)
    asks: dict[Place, str] = field(default_factory=dict)

    def start(self, number: int, job: RunningJob) -> None:
        """Count a job as running."""
        self.running[number] = job
        self._note(job, RUNNING)

    def end(self, number: int, *, failed: bool = False) -> RunningJob | None:
        """Count a job as done or failed; None if it was counted before."""
        job = self.running.pop(number, None)
        if job and failed:
            self.failed += 1
        elif job:
            self.done_of_rule[job.rule] += 1
        if job:
            self._note(job, FAILED if failed else DONE)
        return job

    def _note(self, job: RunningJob, state: str) -> None:
        if job.rule in ASKING and job.place in self.asks:
            self.asks[job.place] = state

    def steps(self) -> list[tuple[str, int, int, int]]:
        """Return the planned rules in words, in the order of the stages, with their jobs: planned, done, running."""
        running = Counter(job.rule for job in self.running.values())
        return [(_words(rule), self.of_rule[rule], self.done_of_rule[rule], running[rule]) for rule in STAGES if self.of_rule[rule]]


def _words(rule: str) -> str:
    """Name a rule without what its jobs are about."""
    return re.sub(r",?(?: of| on| by| with)? \{\w+\}", "", STAGES[rule])


def terminal_line(state: RunState, progress: Sequence[JobProgress], now: float, width: int) -> str:
    """Say in one line of at most `width` characters how far a run is; what matters least is left out first."""
    parts = [*_steps(state), (3, ", ", duration(now - state.started))]
    asked, others = _asked(state, progress)
    stages = list(_stages(state, others, now, times=False))
    if asked:
        names = ", ".join(dict.fromkeys(one.asked_name for one in asked))
        parts += [(8, " | ", f"ask {names}" if len(asked) > 1 else _job_of(state, asked[0]).stage), *_answers(asked)]
    elif stages:
        parts += [(8, " | ", stages.pop(0))]
    else:
        parts += [(8, " | ", state.phase)]
    parts += [(2, " | ", stage) for stage in stages[:2]] + ([(1, ", ", f"{len(stages) - 2} more")] if len(stages) > 2 else [])
    while len(line := _joined(parts)) > width and len(parts) > 1:
        parts.remove(min(reversed(parts), key=lambda part: part[0]))
    return line if len(line) <= width else line[: max(width, 0)]


def heartbeat(state: RunState, progress: Sequence[JobProgress], now: float) -> str:
    """Say in one line for a log how far a run is and what runs for how long."""
    parts = [*_steps(state), (3, ", ", duration(now - state.started))]
    asked, others = _asked(state, progress)
    running = [_joined([(0, "", _job_of(state, one).stage), *_answers([one])]) for one in asked] + list(
        _stages(state, others, now, times=True)
    )
    return _joined([*parts, (0, " | ", " | ".join(running) or state.phase)])


Part = tuple[int, str, str]
"""Importance, separator before it, text."""


def _joined(parts: Sequence[Part]) -> str:
    return "".join(f"{before if place else ''}{text}" for place, (_, before, text) in enumerate(parts))


def _steps(state: RunState) -> list[Part]:
    parts = [(9, "", f"{state.done} of {state.total} steps")] if state.total else []
    return parts + ([(8, ", ", f"{state.failed} failed")] if state.failed else [])


def _asked(state: RunState, progress: Sequence[JobProgress]) -> tuple[list[JobProgress], list[RunningJob]]:
    """Pair running jobs with their progress; return what is being asked, and the jobs without progress."""
    asked = [one for one in progress if any(job.asks(one) for job in state.running.values())]
    return asked, [job for job in state.running.values() if not any(job.asks(one) for one in asked)]


def _job_of(state: RunState, progress: JobProgress) -> RunningJob:
    return next(job for job in state.running.values() if job.asks(progress))


def _stages(state: RunState, jobs: Sequence[RunningJob], now: float, *, times: bool) -> list[str]:
    """Name what the jobs do, the longest first; jobs of cases are counted."""
    stages = []
    for stage in dict.fromkeys(job.stage for job in sorted(jobs, key=lambda job: job.since)):
        same = [job for job in jobs if job.stage == stage]
        rule, since = same[0].rule, f" for {duration(now - min(job.since for job in same))}" if times else ""
        count = f" ({state.done_of_rule[rule]} of {state.of_rule[rule]})" if "case" in same[0].wildcards else ""
        stages.append(f"{stage}{count}{since}")
    return stages


def _answers(jobs: Sequence[JobProgress]) -> list[Part]:
    """Say how far the asking is: answers, rate, cost of the cap, time left, retries."""
    parts: list[Part] = [(7, ": ", f"{sum(job.done for job in jobs):,} of {sum(job.total for job in jobs):,} answers")]
    rate = sum(job.asked / job.seconds for job in jobs if job.seconds > 0)
    parts += [(4, ", ", f"{rate:.2g} a second" if rate < 10 else f"{rate:,.0f} a second")] if rate else []
    spent = [(job.spent_usd, job.cap_usd) for job in jobs if job.spent_usd is not None and job.cap_usd is not None]
    if len(jobs) == len(spent) == 1:
        parts += [(5, ", ", f"{money(spent[0][0])} of {money(spent[0][1])} USD")]
    elif spent:
        parts += [(5, ", ", f"{money(sum(usd for usd, _ in spent))} USD")]
    left = seconds_left(jobs)
    parts += [(6, ", ", f"about {duration(left, rough=True)} left")] if left is not None else []
    retries: Counter[str] = sum((Counter(job.retries) for job in jobs), Counter())
    if retries:
        parts += [
            (5, ", ", f"{retries.total()} retried"),
            (2, " ", f"({', '.join(f'{n} after {why}' for why, n in retries.most_common(3))})"),
        ]
    return parts


def seconds_left(jobs: Sequence[JobProgress]) -> float | None:
    """Estimate the time until the last of some jobs has its answers, from the mean rate of each; None if one cannot be estimated."""
    ends = []
    for job in jobs:
        if job.done >= job.total:
            continue
        if job.asked < FEWEST_ANSWERS or job.seconds < SHORTEST_S:
            return None
        ends.append((job.total - job.done) * job.seconds / job.asked)
    return max(ends, default=None)


def money(usd: float) -> str:
    """Write USD with cents, with more digits below one cent.

    Examples
    --------
    >>> money(5), money(0.1234), money(0.00042), money(0), money(1234.5)
    ('5.00', '0.12', '0.0004', '0.00', '1,234.50')
    """
    return f"{usd:.4f}" if 0 < usd < 0.01 else f"{usd:,.2f}"
