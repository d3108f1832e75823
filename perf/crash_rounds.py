"""Kill runs at random moments and count lost answers and answers paid for twice: seeded rounds over all stages, both kinds of kill.

Run on purpose (`python perf/crash_rounds.py`), never a test: a round takes half a minute to minutes. `tests/fixtures/crashes.py`
explains what counts as paid for twice, and the window of time that no client can close.
"""

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "scripts"), str(ROOT / "tests")]


def parse_args(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1, help="seed of the first round; it increases by 1 per round")
    parser.add_argument("--finished", type=Path, help="finished run of config/test.yaml to start from (default: make one)")
    return parser.parse_args(argv)


def main(argv: Sequence[str] | None = None) -> int:
    from fixtures.crashes import STAGES, WINDOW_S, crash, undisturbed_run
    from fixtures.loopback import Loopback
    from fixtures.models import running_server

    args = parse_args(argv)
    places = [(stage, killed) for killed in ("group", "snakemake") for stage in STAGES]
    rounds = []
    loopback = Loopback(seed=args.seed, longest_s=1.5)
    with tempfile.TemporaryDirectory() as scratch, running_server(loopback):
        undisturbed = undisturbed_run(Path(scratch, "undisturbed"), loopback.address, finished=args.finished)
        for number in range(args.rounds):
            stage, killed = places[number % len(places)]
            start = time.perf_counter()
            with tempfile.TemporaryDirectory(dir=scratch) as folder:
                done = crash(undisturbed, Path(folder, "project"), loopback, stage=stage, killed=killed, seed=args.seed + number)
            rounds.append(done)
            print(f"{number + 1} of {args.rounds}: {done.stage}, {done.rule}, {done.killed}: ", end="", file=sys.stderr)
            print(
                "passed" if done.passed else f"FAILED {asdict(done)}", f"({time.perf_counter() - start:.0f} s)", file=sys.stderr, flush=True
            )
    figures = {
        "rounds": len(rounds),
        "passed": sum(done.passed for done in rounds),
        "by_stage": {
            f"{stage}, {killed} killed": sum((done.stage, done.killed) == (stage, killed) for done in rounds) for stage, killed in places
        },
        "job_still_at_work_when_killed": sum(done.hit for done in rounds),
        "next_run_waited_for_a_command_of_the_killed_one": sum(done.waited for done in rounds),
        "results_identical": sum(done.identical for done in rounds),
        "answers_delivered_before_a_kill": sum(done.answered for done in rounds),
        "asked_twice": sum(done.twice for done in rounds),
        "window_s": WINDOW_S,
        "delivered_in_the_window": sum(done.window for done in rounds),
        "of_these_asked_again": sum(done.window_again for done in rounds),
        "half_done_folders_left": sum(len(done.left) for done in rounds),
    }
    print(json.dumps(figures, indent=1))
    return 0 if figures["passed"] == len(rounds) else 1


if __name__ == "__main__":
    raise SystemExit(main())
