"""Ask servers on this machine that have a hidden limit, and report how much of it a run uses and how many of its calls are refused.

Run on purpose (`python perf/hidden_limits.py`), never a test. The engine, its transport and its ledger are the real ones, in a process of its
own; the server (`tests/fixtures/hidden_limit.py`) keeps the books. Of 90 s the share of the limit is that of the last 60, the refusals are those of
all. A limit of calls in flight allows limit / latency calls a second, by the latency that the server had. `group` are two runs at once that name
one group, `apart` two that know nothing of each other: no process can see the calls of the other, so both are measured, not judged.
"""

from __future__ import annotations

import argparse
import math
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "scripts"), str(ROOT / "tests")]

MOST = 64
SETTLED_S, END_S = 30.0, 90.0
LEAST_SHARE, MOST_REFUSED = 0.9, 0.02


@dataclass(frozen=True)
class Setting:
    """A server: kind and size of its limit, mean and spread of its latency, what it says with a refusal; and the runs that ask it."""

    kind: str
    limit: int
    latency_s: float
    spread: float
    retry_after_s: float | None
    runs: int = 1
    group: bool = False

    def __str__(self) -> str:
        says = "" if self.retry_after_s is None else f"{self.retry_after_s:g} s"
        runs = "one" if self.runs == 1 else "group" if self.group else "apart"
        return f"{self.kind:>9} {self.limit:5} {self.latency_s:7g} {self.spread:6g} {says:>11} {runs:>5}"


ALONE = (
    Setting("in flight", 10, 0.5, 0, 1),
    Setting("in flight", 10, 0.5, 0.5, None),
    Setting("in flight", 20, 1, 0.5, 1),
    Setting("in flight", 30, 2, 0, None),
    Setting("in flight", 4, 1, 0.5, None),
    Setting("bucket", 10, 0.2, 0, None),
    Setting("bucket", 20, 2, 0.5, 1),
    Setting("sliding", 20, 0.5, 0.5, None),
    Setting("sliding", 50, 0.2, 0, 1),
    Setting("fixed", 50, 0.2, 0.5, None),
    Setting("fixed", 5, 1, 0, 1),
    Setting("in flight", 1000, 1, 0.5, None),
)
TOGETHER = tuple(
    Setting(kind, 20, 1, 0.5, retry_after_s, 2, group=group)
    for kind in ("in flight", "sliding")
    for retry_after_s in (1, None)
    for group in (True, False)
)


def ask(folder: Path, address: str, name: str, number: int, *, group: bool) -> None:
    """Ask until the process is interrupted."""
    from fixtures.models import model_config, request
    from neuralmedbench.config.pipeline import RateLimit
    from neuralmedbench.errors import InterruptedRunError
    from neuralmedbench.models.engine import answer_requests
    from neuralmedbench.models.model_run import ModelRun, RunLimits

    changes = {"rate_limit_group": "g"} if group else {}
    model = model_config(name, id=f"openai/{name}", api_base=address, concurrency=MOST, max_attempts=10, timeout_s=60, **changes)
    control = RunLimits(None, {"g": RateLimit()} if group else {}, folder / "spending")
    run = ModelRun(model, ledger=folder / f"{name}.jsonl", destinations=["local"], max_failed_fraction=None, root=folder, control=control)
    with suppress(InterruptedRunError):
        answer_requests([request(f"i{place}") for place in range(number)], run)


def measure(setting: Setting) -> str:
    """Ask one server, and return the row."""
    from fixtures.hidden_limit import HiddenLimit, LimitedServer
    from fixtures.models import running_server

    server = LimitedServer(HiddenLimit(setting.kind, setting.limit), setting.latency_s, setting.spread, setting.retry_after_s)
    most = MOST * setting.runs / setting.latency_s
    number = math.ceil(2 * END_S * min(most, setting.limit / (setting.latency_s if setting.kind == "in flight" else 1)))
    with tempfile.TemporaryDirectory() as folder, running_server(server):
        words = [folder, server.address, str(number), *(["group"] if setting.group else [])]
        command = [sys.executable, __file__, "--ask"]
        asking = [subprocess.Popen([*command, f"m{place}", *words], stderr=subprocess.DEVNULL) for place in range(setting.runs)]
        try:
            while not server.books:
                time.sleep(0.1)
            begin = time.monotonic()
            time.sleep(END_S)
            if any(process.poll() is not None for process in asking):
                message = f"{setting}: a run ended before its time"
                raise SystemExit(message)
        finally:
            for process in asking:
                process.send_signal(signal.SIGINT)
                process.wait()
    return row(setting, [(at - begin, took, name) for at, took, name in server.books], [at - begin for at in server.refused])


def row(setting: Setting, answered: Sequence[tuple[float, float, str]], refused: Sequence[float]) -> str:
    """Return the figures of a setting, with `misses` where they miss the aim."""
    settled = [(took, name) for at, took, name in answered if SETTLED_S <= at < END_S]
    latency_s = sum(took for took, _ in settled) / len(settled)
    best = min(MOST * setting.runs, setting.limit) / latency_s if setting.kind == "in flight" else setting.limit
    share = len(settled) / (END_S - SETTLED_S) / best
    n_refused, n_answered = sum(at < END_S for at in refused), sum(at < END_S for at, _, _ in answered)
    part = n_refused / (n_refused + n_answered)
    least = min(Counter(name for _, name in settled).values()) / len(settled) if setting.runs > 1 else math.nan
    misses = setting.runs == 1 and (share < LEAST_SHARE or part > MOST_REFUSED)
    return (
        f"{setting} {share:9.3f} {part:8.3f} {n_refused:5} {'' if math.isnan(least) else f'{least:.2f}':>10}{'  misses' if misses else ''}"
    )


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--at-once", type=int, default=4, help="servers asked at the same time")
    parser.add_argument("--only", choices=["alone", "together"], help="one run a server, or two")
    parser.add_argument("--ask", nargs="*", help=argparse.SUPPRESS)
    args = parser.parse_args(argv)
    if args.ask:
        name, folder, address, number, *group = args.ask
        ask(Path(folder), address, name, int(number), group=bool(group))
        return 0
    settings = [*(ALONE if args.only != "together" else ()), *(TOGETHER if args.only != "alone" else ())]
    print("     kind limit latency spread Retry-After  runs  of limit  refused calls lesser run")
    with ThreadPoolExecutor(args.at_once) as pool:
        rows = []
        for made in pool.map(measure, settings):
            print(made, flush=True)
            rows.append(made)
    return int(any(made.endswith("misses") for made in rows))


if __name__ == "__main__":
    raise SystemExit(main())
