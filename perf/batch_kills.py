"""Kill runs that ask by batch, also between the upload and its note, and count what was lost or paid for twice by the server's own books.

Run on purpose (`python perf/batch_kills.py`), never a test. `tests/fixtures/batch_servers.py` speaks the three providers' batch interfaces on this
machine; `tests/fixtures/batch_kills.py` explains the moments of the kills. No provider is asked.
"""

import argparse
import json
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "scripts"), str(ROOT / "tests")]


def main(argv: Sequence[str] | None = None) -> int:
    from fixtures.batch_kills import kill_batches
    from fixtures.batch_servers import AnthropicBatches, GeminiBatches, OpenAIBatches
    from fixtures.models import running_server

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--requests", type=int, default=1000)
    parser.add_argument("--chunk", type=int, default=25, help="requests of one batch")
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args(argv)
    figures = {}
    for provider in (OpenAIBatches, AnthropicBatches, GeminiBatches):
        with tempfile.TemporaryDirectory() as folder, running_server(provider()) as server:
            server.seconds_to_end = 0.5
            found = kill_batches(server, Path(folder), number=args.requests, chunk=args.chunk, kills=args.kills, seed=args.seed)
        figures[provider.__name__] = asdict(found)
        print(provider.__name__, found, file=sys.stderr, flush=True)
    print(json.dumps(figures, indent=1))
    good = [one["answers"] == one["requests"] and not one["paid_twice"] and not one["violations"] for one in figures.values()]
    return 0 if all(good) else 1


if __name__ == "__main__":
    raise SystemExit(main())
