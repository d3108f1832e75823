"""Kill jobs whose server is their own, every other time with its supervisor, and count orphans and questions asked again.

Run on purpose (`python perf/server_kills.py`), never a test. The server is a program that behaves like vLLM (`tests/stand_in/vllm.py`), with
a child in a session of its own that ignores SIGTERM; `tests/fixtures/own_servers.py` explains what counts as an orphan.
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
    from fixtures.own_servers import kill_rounds

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args(argv)
    with tempfile.TemporaryDirectory() as folder:
        found = kill_rounds(Path(folder), args.kills, args.seed)
    print(json.dumps(asdict(found), indent=1))
    return 0 if found.answers == found.questions and not found.asked_again and not found.orphans else 1


if __name__ == "__main__":
    raise SystemExit(main())
