"""Make the pictures of the guide (`docs/pictures/`) from a finished demo run in this folder, with Chromium.

python perf/guide_pictures.py                 # after `make report`; phantoms only
python perf/guide_pictures.py --round r01     # with a packet of `make rating-round ROUND=r01`
python perf/guide_pictures.py --unread        # asks a stand-in that answers in prose (docs/zero.md); writes config/study.yaml and its model
python perf/guide_pictures.py --first-model   # after `make real-model LIMIT=20`
"""

from __future__ import annotations

import argparse
import base64
import hashlib
import io
import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import yaml
from aiohttp import web
from PIL import Image

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "scripts")]

from fixtures.chromium import Browser, browser  # noqa: E402
from fixtures.models import Server, reply, running_server  # noqa: E402

WIDTH_PX, LONGEST_PX, MARGIN_PX, COLOURS = 1280, 900, 24, 128
MOST_BYTES = 150_000
PROSE = (
    "The images show an abnormal signal. Several conditions could look like this,"
    " and the clinical context should be considered before any conclusion is drawn."
)
DECLINED = "I cannot help with medical images."
STUDY = {"benchmarks": ["demo"], "models": ["fusion", "my-model"], "graders": ["rubric"], "rating_rounds": []}
MODEL = {"title": "My model", "backend": "litellm", "id": "openai/my-model", "revision": "1", "temperature": 1.0, "max_tokens": 1024}


class Prose(Server):
    """Answers in prose whatever it is asked; some questions it declines, and some answers break off."""

    async def handle(self, request: web.Request) -> web.StreamResponse:
        """Choose by what was asked: all samples of a question get the same."""
        body = await request.json()
        part = hashlib.sha256(json.dumps(body["messages"]).encode()).digest()[0] % 16
        if part < 3:
            return web.json_response(reply(PROSE[:60], "length"))
        return web.json_response(reply(DECLINED if part == 3 else PROSE))


def ask_prose(run: Path) -> None:
    """Run `config/study.yaml` with the stand-in as `my-model`."""
    with running_server(Prose()) as server:
        model = MODEL | {"api_base": server.address, "max_images": 32, "concurrency": 16, "open_weights": True}
        for path, content in (("config/models/my-model.yaml", model), ("config/study.yaml", STUDY)):
            (run / path).write_text(yaml.safe_dump(content, sort_keys=False), encoding="utf-8")
        subprocess.run([sys.executable, "-m", "neuralmedbench", "model", "plan", "--configfiles", "config/study.yaml"], cwd=run, check=True)
        subprocess.run([sys.executable, "-m", "snakemake", "--cores", "2", "--configfile", "config/study.yaml"], cwd=run, check=True)


def place_of(page: Browser, element: str) -> tuple[float, float, float, float]:
    """Return x, y, width and height of an element, from the top of the page."""
    script = (
        "const r = document.querySelector(%s).getBoundingClientRect(); JSON.stringify([r.x + scrollX, r.y + scrollY, r.width, r.height])"
    )
    x, y, width, height = json.loads(page.run(f"(() => {{ {(script % json.dumps(element)).replace('JSON.', 'return JSON.')} }})()"))
    return x, y, width, height


def take(page: Browser, path: Path, element: str = "", longest: int = LONGEST_PX) -> None:
    """Keep the first screen, or the top of an element, as PNG with few colours."""
    if element:  # what is far from the window is not laid out otherwise
        page.run("document.querySelectorAll('section, .case').forEach((one) => { one.style.contentVisibility = 'visible'; })")
    x, y, width, height = place_of(page, element) if element else (0, 0, WIDTH_PX, LONGEST_PX)
    x, width = max(0, x - MARGIN_PX), min(WIDTH_PX, width + 2 * MARGIN_PX)
    clip = {"x": x, "y": y, "width": width, "height": min(height, longest), "scale": 1}
    data = page.call("Page.captureScreenshot", format="png", captureBeyondViewport=True, clip=clip)["data"]
    path.parent.mkdir(exist_ok=True)
    picture = Image.open(io.BytesIO(base64.b64decode(data))).convert("RGB")
    for colours in (COLOURS, COLOURS // 2, COLOURS // 4, COLOURS // 8):
        picture.quantize(colours, method=Image.Quantize.FASTOCTREE, dither=Image.Dither.NONE).save(path, optimize=True)
        if path.stat().st_size <= MOST_BYTES:
            break
    sys.stderr.write(f"{path.name}: {path.stat().st_size // 1000} kB, {picture.width} x {picture.height} px\n")


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--run", type=Path, default=ROOT, help="folder of the finished demo run")
    parser.add_argument("--round", help="rating round whose first packet is shown")
    parser.add_argument("--unread", action="store_true", help="ask the stand-in that answers in prose, and show that run alone")
    parser.add_argument("--first-model", action="store_true", help="show the run of `make real-model LIMIT=20` alone")
    parser.add_argument("--out", type=Path, default=ROOT / "docs" / "pictures")
    args = parser.parse_args(argv)
    run = args.run.resolve()
    if args.unread:
        ask_prose(run)
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder, browser(Path(folder)) as page:
        page.call("Emulation.setDeviceMetricsOverride", width=WIDTH_PX, height=LONGEST_PX, deviceScaleFactor=1, mobile=False)
        if args.first_model:
            page.open(run / "results" / "try-smollm2" / "report.html")
            take(page, args.out / "first-model.png")
        elif args.unread:
            page.open(run / "results" / "study" / "report.html")
            take(page, args.out / "unread.png", "#leaderboard")
        else:
            show_demo(page, run, args.out)
            if args.round:
                page.open(sorted((run / "data" / "ratings" / args.round).rglob("*.html"))[0])
                take(page, args.out / "rating-packet.png")
    return 0


def show_demo(page: Browser, run: Path, out: Path) -> None:
    page.open(run / "results" / "report.html")
    take(page, out / "first-screen.png")
    take(page, out / "leaderboard.png", "#leaderboard")
    open_case(page)
    take(page, out / "case.png", "details.case[open]", 1250)  # down to the answers
    page.open(sorted((run / "data" / "reviews" / "demo" / "sheets").glob("*.html"))[0])
    take(page, out / "review-sheet.png")


def open_case(page: Browser) -> None:
    page.run("document.querySelector('details.case').open = true")
    page.run("document.querySelector('details.case').scrollIntoView()")
    page.until("document.querySelector('details.case[open] .case-results .result')")
    page.until("[...document.querySelectorAll('details.case[open] .case-body img')].some((picture) => picture.complete)")


if __name__ == "__main__":
    raise SystemExit(main())
