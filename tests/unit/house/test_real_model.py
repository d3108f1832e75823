"""`make real-model`: its server outlives Ctrl-C until the workflow has ended, and writes to a log of its own."""

from __future__ import annotations

import os
import runpy
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pytest

from conftest import ROOT

SERVER = """#!{python}
import sys
from http.server import BaseHTTPRequestHandler, HTTPServer
print("serving", flush=True)
HTTPServer(("127.0.0.1", int(sys.argv[sys.argv.index("--port") + 1])), BaseHTTPRequestHandler).serve_forever()
"""
WORKFLOW = """#!{python}
import pathlib, signal, sys, time, urllib.error, urllib.request
stop = []
signal.signal(signal.SIGINT, lambda *_: stop.append(1))
signal.signal(signal.SIGTERM, lambda *_: stop.append(1))
pathlib.Path("{here}/started").touch()
while not stop:
    time.sleep(0.05)
time.sleep(1)  # a call in flight
try:
    urllib.request.urlopen("http://127.0.0.1:{port}/health")
except urllib.error.HTTPError:  # it answers
    pathlib.Path("{here}/answered").touch()
sys.exit(7)
"""
RUN = """import runpy, sys
from neuralmedbench.config import load
load.read_yaml = lambda *_: {{"api_base": "http://127.0.0.1:{port}/v1"}}
sys.argv = ["run.py", "--environment", "{here}", "--weights", "{here}/smollm2"]
runpy.run_path("{script}", run_name="__main__")
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_run_finishes_its_calls_before_the_server_goes(tmp_path: Path, number: signal.Signals) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    (tmp_path / "bin").mkdir()
    values = {"python": sys.executable, "port": port, "here": tmp_path, "script": ROOT / "tests" / "real_model" / "run.py"}
    for name, text in (("transformers", SERVER), ("snakemake", WORKFLOW)):
        (tmp_path / "bin" / name).write_text(text.format(**values), encoding="utf-8")
        (tmp_path / "bin" / name).chmod(0o755)
    environment = os.environ | {"PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}", "PYTHONPATH": str(ROOT / "scripts")}
    run = subprocess.Popen(
        [sys.executable, "-c", RUN.format(**values)], env=environment, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    end = time.monotonic() + 60
    while not (tmp_path / "started").exists() and run.poll() is None and time.monotonic() < end:
        time.sleep(0.1)
    if number is signal.SIGINT:  # a terminal sends it to every process in its foreground
        os.killpg(run.pid, number)
    else:
        run.send_signal(number)
    _, errors = run.communicate(timeout=60)
    assert (run.returncode, (tmp_path / "answered").exists()) == (7, True), errors
    assert "serving" in (tmp_path / "server.log").read_text(encoding="utf-8")
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port), timeout=5)


def test_connections_go_to_the_servers_in_turn_and_one_that_is_starting_is_waited_for() -> None:
    code = runpy.run_path(str(ROOT / "tests" / "real_model" / "run.py"))
    first, second, port = code["free_ports"](3)
    program = (
        "import http.server, sys, time\n"
        "class Handler(http.server.BaseHTTPRequestHandler):\n"
        "    def do_GET(self):\n"
        "        self.send_response(200); self.end_headers(); self.wfile.write(sys.argv[1].encode())\n"
        "time.sleep(float(sys.argv[2]))\n"
        "http.server.HTTPServer(('127.0.0.1', int(sys.argv[1])), Handler).serve_forever()\n"
    )
    servers = [subprocess.Popen([sys.executable, "-c", program, str(own), wait]) for own, wait in ((first, "0"), (second, "1"))]
    try:
        code["Relay"](code["listen"](port), list(zip((first, second), servers, strict=True)))
        socket.create_connection(
            ("127.0.0.1", port)
        ).close()  # the question whether anything listens takes a turn and is answered by nobody
        seen = []
        for _ in range(4):
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=60) as reply:
                seen.append(int(reply.read()))
        assert seen == [second, first, second, first]
    finally:
        for server in servers:
            server.kill()
            server.wait()
    with pytest.raises(SystemExit, match="is in use: end what uses it"):
        code["listen"](port)
