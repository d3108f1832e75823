"""Serve SmolLM2 on this machine alone, run the workflow of config/real-model.yaml with it, and stop the server: `make real-model`."""

from __future__ import annotations

import argparse
import os
import subprocess
import time
import urllib.error
import urllib.request
from pathlib import Path

from neuralmedbench.config.load import read_yaml

ROOT = Path(__file__).resolve().parents[2]
CONFIG = "config/real-model.yaml"
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
    server = subprocess.Popen(
        [*map(str, command), "--device", "cpu", "--dtype", "bfloat16", *CACHE], cwd=weights.parent, env={**os.environ, **one}
    )
    end = time.monotonic() + WAIT_S
    while not answers(address):
        if server.poll() is not None or time.monotonic() > end:
            server.terminate()
            message = f"the server did not answer within {WAIT_S} s; its messages are above"
            raise SystemExit(message)
        time.sleep(1)
    return server


def answers(address: str) -> bool:
    """Return True if a server answers there."""
    try:
        with urllib.request.urlopen(f"{address}/health", timeout=5):
            return True
    except urllib.error.HTTPError:
        return True
    except OSError:
        return False


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--environment", type=Path, required=True, help="virtual environment with the packages of requirements.txt")
    parser.add_argument("--weights", type=Path, required=True, help="folder that convert.py wrote")
    parser.add_argument("--cores", default="2")
    args = parser.parse_args()
    server = serve(args.environment.resolve(), args.weights.resolve())
    try:
        command = ["snakemake", "--cores", args.cores, "--configfile", CONFIG, "--", "results/report.html"]
        return subprocess.run(command, cwd=ROOT, check=False).returncode
    finally:
        server.terminate()
        server.wait()


if __name__ == "__main__":
    raise SystemExit(main())
