"""Serve SmolLM2 on this machine alone, run the workflow of config/real-model.yaml with it, and stop the server: `make real-model`."""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

from neuralmedbench.config.load import read_yaml

ROOT = Path(__file__).resolve().parents[2]
CONFIG, MODEL = "config/real-model.yaml", "smollm2"
WAIT_S = 300
"""Longest start of the server."""
CACHE = ("--continuous-batching", "--cb-num-blocks", "64", "--cb-block-size", "128", "--cb-max-batch-tokens", "1024")
"""Three requests of the demo at a time."""


def serve(environment: Path, weights: Path) -> subprocess.Popen[bytes]:
    """Start the server on the loopback port of the model's YAML file, with one thread; wait until it answers."""
    address = str(read_yaml(ROOT / "config" / "models" / "smollm2.yaml")["api_base"]).removesuffix("/v1")
    port = address.rpartition(":")[2]
    if answers(address):
        message = (
            f"port {port} is in use: end what uses it, or change `api_base` in config/models/smollm2.yaml and config/graders/smollm2.yaml"
        )
        raise SystemExit(message)
    one = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"}
    command = [environment / "bin" / "transformers", "serve", weights.name, "--host", "127.0.0.1", "--port", port]
    log = weights.parent / "server.log"
    with log.open("w", encoding="utf-8") as stream:
        # a session of its own: Ctrl-C reaches the workflow alone, which still waits for the calls in flight
        server = subprocess.Popen(
            [*map(str, command), "--device", "cpu", "--dtype", "bfloat16", *CACHE],
            cwd=weights.parent,
            env={**os.environ, **one},
            stdout=stream,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        wait_for(server, address, log)
    except BaseException:  # Ctrl-C too: it has a session of its own
        server.terminate()
        raise
    return server


def wait_for(server: subprocess.Popen[bytes], address: str, log: Path) -> None:
    end = time.monotonic() + WAIT_S
    while not answers(address):
        if server.poll() is not None or time.monotonic() > end:
            message = f"the server ended or did not answer within {WAIT_S} s; its messages are in {log}"
            raise SystemExit(message)
        time.sleep(1)


def answers(address: str) -> bool:
    """Return True if a server answers there."""
    try:
        with urllib.request.urlopen(f"{address}/health", timeout=5):
            return True
    except urllib.error.HTTPError:
        return True
    except OSError:
        return False


def run_workflow(command: list[str]) -> int:
    """Run the workflow to its end, also after Ctrl-C or a signal: it finishes the calls in flight, for which the server must be there."""
    workflow = subprocess.Popen(command, cwd=ROOT)
    signal.signal(signal.SIGTERM, lambda *_: workflow.terminate())
    while True:
        try:
            return workflow.wait()
        except KeyboardInterrupt:  # the workflow got it too
            print("waiting for the calls in flight", file=sys.stderr)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--environment", type=Path, required=True, help="virtual environment with the packages of requirements.txt")
    parser.add_argument("--weights", type=Path, required=True, help="folder that convert.py wrote")
    parser.add_argument("--cores", default="2")
    parser.add_argument("--limit", default="", help="ask only so many questions (`nmb run try`)")
    args = parser.parse_args()
    server = serve(args.environment.resolve(), args.weights.resolve())
    try:
        if args.limit:
            words = ["--model", MODEL, "--limit", args.limit, "--cores", args.cores, "--configfiles", CONFIG]
            return run_workflow([sys.executable, "-m", "neuralmedbench", "run", "try", *words])
        return run_workflow(["snakemake", "--cores", args.cores, "--configfile", CONFIG])
    finally:
        server.terminate()
        server.wait()


if __name__ == "__main__":
    raise SystemExit(main())
