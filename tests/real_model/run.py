"""Serve SmolLM2 on this machine alone, run the workflow of config/real-model.yaml with it, and stop the server: `make real-model`."""

from __future__ import annotations

import argparse
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from itertools import cycle
from pathlib import Path
from threading import Thread

from neuralmedbench.config.load import read_yaml

ROOT = Path(__file__).resolve().parents[2]
CONFIG, MODEL = "config/real-model.yaml", "smollm2"
WAIT_S = 300
"""Longest start of a server."""
SERVERS = 2
"""Two servers with one thread each: one server gains nothing from a second thread (a token of so small a model is many short operations) and
little from more requests at a time (on a CPU it attends to the texts of all of them together)."""
CACHE = ("--continuous-batching", "--cb-num-blocks", "64", "--cb-block-size", "128", "--cb-max-batch-tokens", "512")
"""Up to four requests of the demo at a time."""


def serve(environment: Path, weights: Path, ports: Sequence[int]) -> list[subprocess.Popen[bytes]]:
    """Start one server a port, with one thread each; all write to one log."""
    one = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"}
    with log_of(weights).open("w", encoding="utf-8") as stream:
        command = [environment / "bin" / "transformers", "serve", weights.name, "--host", "127.0.0.1"]
        settings = ["--device", "cpu", "--dtype", "bfloat16", *CACHE]
        # sessions of their own: Ctrl-C reaches the workflow alone, which still waits for the calls in flight
        return [
            subprocess.Popen(
                [*map(str, command), "--port", str(port), *settings],
                cwd=weights.parent,
                env={**os.environ, **one},
                stdout=stream,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
            for port in ports
        ]


def log_of(weights: Path) -> Path:
    return weights.parent / "server.log"


class Relay:
    """Hands each connection to a server in turn; one that is still starting is waited for, while the workflow makes the cases."""

    def __init__(self, listener: socket.socket, servers: Sequence[tuple[int, subprocess.Popen[bytes]]]) -> None:
        self._listener, self._servers = listener, cycle(servers)
        Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            client, _ = self._listener.accept()
            Thread(target=self._join, args=(client, *next(self._servers)), daemon=True).start()

    def _join(self, client: socket.socket, port: int, process: subprocess.Popen[bytes]) -> None:
        end = time.monotonic() + WAIT_S
        with client, suppress(OSError):
            if not client.recv(1, socket.MSG_PEEK):
                return  # only looked whether anything listens
            while True:
                try:
                    server = socket.create_connection(("127.0.0.1", port))
                    break
                except OSError:
                    if process.poll() is not None or time.monotonic() > end:
                        return
                    time.sleep(0.5)
            with server:
                back = Thread(target=pump, args=(server, client), daemon=True)
                back.start()
                pump(client, server)
                back.join()


def pump(source: socket.socket, target: socket.socket) -> None:
    """Copy what arrives until it ends, and end the other side."""
    with suppress(OSError):
        while part := source.recv(1 << 16):
            target.sendall(part)
    with suppress(OSError):
        target.shutdown(socket.SHUT_WR)


def listen(port: int) -> socket.socket:
    """Listen at the port that the model's YAML file names."""
    try:
        return socket.create_server(("127.0.0.1", port))
    except OSError:
        message = (
            f"port {port} is in use: end what uses it, or change `api_base` in config/models/smollm2.yaml and config/graders/smollm2.yaml"
        )
        raise SystemExit(message) from None


def free_ports(number: int) -> list[int]:
    """Find ports of the loopback address that nothing uses."""
    with ExitStack() as stack:
        return [stack.enter_context(socket.create_server(("127.0.0.1", 0))).getsockname()[1] for _ in range(number)]


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
    address = str(read_yaml(ROOT / "config" / "models" / "smollm2.yaml")["api_base"]).removesuffix("/v1")
    ports = free_ports(min(SERVERS, max(1, int(args.cores))))
    listener, servers = listen(int(address.rpartition(":")[2])), list[subprocess.Popen[bytes]]()
    try:
        servers += serve(args.environment.resolve(), args.weights.resolve(), ports)
        Relay(listener, list(zip(ports, servers, strict=True)))
        if args.limit:
            words = ["--model", MODEL, "--limit", args.limit, "--cores", args.cores, "--configfiles", CONFIG]
            return run_workflow([sys.executable, "-m", "neuralmedbench", "run", "try", *words])
        return run_workflow(["snakemake", "--cores", args.cores, "--configfile", CONFIG])
    finally:
        if any(server.poll() is not None for server in servers):
            print(f"a server ended; its messages are in {log_of(args.weights)}", file=sys.stderr)
        for server in servers:
            server.terminate()
        for server in servers:
            server.wait()


if __name__ == "__main__":
    raise SystemExit(main())
