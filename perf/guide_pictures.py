"""Make the pictures of the guide (`docs/pictures/`) from a finished demo run in this folder, with Chromium.

python perf/guide_pictures.py                 # after `make report`; phantoms only
python perf/guide_pictures.py --round r01     # with a packet of `make rating-round ROUND=r01`
"""

from __future__ import annotations

import argparse
import base64
import io
import json
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from PIL import Image

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "scripts")]

from fixtures.chromium import Browser, browser  # noqa: E402

WIDTH_PX, LONGEST_PX, MARGIN_PX, COLOURS = 1280, 900, 24, 128
MOST_BYTES = 150_000


def place_of(page: Browser, element: str) -> tuple[float, float, float, float]:
    """Return x, y, width and height of an element, from the top of the page."""
    script = (
        "const r = document.querySelector(%s).getBoundingClientRect(); JSON.stringify([r.x + scrollX, r.y + scrollY, r.width, r.height])"
    )
    x, y, width, height = json.loads(page.run(f"(() => {{ {(script % json.dumps(element)).replace('JSON.', 'return JSON.')} }})()"))
    return x, y, width, height


def take(page: Browser, path: Path, element: str = "") -> None:
    """Keep the first screen, or the top of an element, as PNG with few colours."""
    x, y, width, height = place_of(page, element) if element else (0, 0, WIDTH_PX, LONGEST_PX)
    x, width = max(0, x - MARGIN_PX), min(WIDTH_PX, width + 2 * MARGIN_PX)
    clip = {"x": x, "y": y, "width": width, "height": min(height, LONGEST_PX), "scale": 1}
    data = page.call("Page.captureScreenshot", format="png", captureBeyondViewport=True, clip=clip)["data"]
    path.parent.mkdir(exist_ok=True)
    picture = Image.open(io.BytesIO(base64.b64decode(data))).convert("RGB")
    for colours in (COLOURS, COLOURS // 2, COLOURS // 4, COLOURS // 8):
        picture.quantize(colours).save(path, optimize=True)
        if path.stat().st_size <= MOST_BYTES:
            break
    sys.stderr.write(f"{path.name}: {path.stat().st_size // 1000} kB, {picture.width} x {picture.height} px\n")


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--run", type=Path, default=ROOT, help="folder of the finished demo run")
    parser.add_argument("--round", help="rating round whose first packet is shown")
    parser.add_argument("--out", type=Path, default=ROOT / "docs" / "pictures")
    args = parser.parse_args(argv)
    run = args.run.resolve()
    with tempfile.TemporaryDirectory() as folder, browser(Path(folder)) as page:
        page.call("Emulation.setDeviceMetricsOverride", width=WIDTH_PX, height=LONGEST_PX, deviceScaleFactor=1, mobile=False)
        page.open(run / "results" / "report.html")
        take(page, args.out / "first-screen.png")
        take(page, args.out / "breadth-depth.png", "#axes")
        take(page, args.out / "leaderboard.png", "#leaderboard")
        page.run("document.querySelector('details.case').open = true")
        page.until("[...document.querySelectorAll('details.case[open] .case-body img')].some((picture) => picture.complete)")
        take(page, args.out / "case.png", "details.case[open]")
        page.open(sorted((run / "data" / "reviews" / "demo" / "sheets").glob("*.html"))[0])
        take(page, args.out / "review-sheet.png")
        if args.round:
            page.open(sorted((run / "data" / "ratings" / args.round).rglob("*.html"))[0])
            take(page, args.out / "rating-packet.png")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
