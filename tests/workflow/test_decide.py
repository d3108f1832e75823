"""`nmb run decide`: two models are asked patients in batches, and asking stops when their comparison is decided."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
import yaml
from aiohttp import web

from conftest import NMB
from fixtures.imports import put_yes_no
from fixtures.models import Server, reply, running_server

pytestmark = pytest.mark.workflow

QUESTIONS, BATCH = 60, 20
BENCHMARK = {
    "title": "Yes or no",
    "kind": "text",
    "axis": "breadth",
    "source": "data/raw/yesno",
    "questions": "data/questions/yesno",
    "subjects": "public",
    "samples": 1,
}
STATED = {"stated_on": "2026-01-31", "benchmark": "yesno", "first": "sharp", "second": "dull", "margin": 0.2, "batch": BATCH}


class Both(Server):
    """Serves two models: `sharp` is always right, `dull` always says no, which is right of every second question."""

    async def handle(self, request: web.Request) -> web.StreamResponse:
        body = await request.json()
        self.bodies.append(body)
        found = re.search(r"Is finding (\d+) there", str(body["messages"]))
        assert found
        right = "No" if int(found[1]) % 2 else "Yes"
        return web.json_response(reply(f"ANSWER: {right if body['model'].startswith('sharp') else 'No'}"))


def decide(project: Path, *words: str) -> subprocess.CompletedProcess[str]:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return subprocess.run(
        [*NMB, "run", "decide", "--configfiles", "config/yesno.yaml", *words],
        cwd=project,
        env={**os.environ, "PATH": path},
        capture_output=True,
        text=True,
        check=False,
        timeout=900,
    )


@pytest.mark.long
def test_asking_stops_when_the_comparison_is_decided_and_goes_on_where_it_is_not(project: Path) -> None:
    put_yes_no(project / "downloaded", project / "data", count=QUESTIONS)
    with running_server(Both()) as server:
        for name in ("sharp", "dull"):
            model = {
                "title": name,
                "backend": "litellm",
                "id": f"openai/{name}",
                "api_base": server.address,
                "revision": "1",
                "max_tokens": 64,
            }
            (project / f"config/models/{name}.yaml").write_text(yaml.safe_dump(model), encoding="utf-8")
        (project / "config/benchmarks/yesno.yaml").write_text(yaml.safe_dump(BENCHMARK), encoding="utf-8")
        run = {"benchmarks": ["yesno"], "models": ["sharp", "dull"], "graders": ["rubric"], "comparison": STATED}
        (project / "config/yesno.yaml").write_text(yaml.safe_dump(run), encoding="utf-8")
        done = decide(project, "--cores", "2")
        shown = done.stdout + done.stderr
        assert done.returncode == 0, shown
        looks = [line for line in done.stdout.splitlines() if " at all looks together" in line]
        assert len(looks) == 1, shown
        assert looks[0].startswith(f"{BATCH} patients of {QUESTIONS}: sharp minus dull ")
        assert looks[0].endswith("decided: sharp is better")
        # 40 patients were not asked, and nobody twice
        assert Counter(body["model"] for body in server.bodies) == {"sharp": BATCH, "dull": BATCH}
        asked = len(server.bodies)
        again = decide(project, "--cores", "2")
        assert again.returncode == 0, again.stdout + again.stderr
        assert len(server.bodies) == asked, "the answers are in the ledger"
        # the same model under another name differs from itself nowhere: all patients are asked, and they are alike within the margin or not decided
        twin = {**STATED, "second": "twin", "margin": 0.05}
        (project / "config/yesno.yaml").write_text(yaml.safe_dump({**run, "comparison": twin}), encoding="utf-8")
        model = {
            "title": "twin",
            "backend": "litellm",
            "id": "openai/sharp-twin",
            "api_base": server.address,
            "revision": "1",
            "max_tokens": 64,
        }
        (project / "config/models/twin.yaml").write_text(yaml.safe_dump(model), encoding="utf-8")
        done = decide(project, "--cores", "2")
        assert done.returncode == 3, done.stdout + done.stderr
        looks = [line for line in done.stdout.splitlines() if " at all looks together" in line]
        assert [line.split()[0] for line in looks] == ["20", "40", "60"]
        assert all(line.endswith("; not decided") for line in looks)
