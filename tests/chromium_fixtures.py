"""A headless Chromium that a test drives: keys, files and downloads over the browser's own pipe, nothing beside the standard library."""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from select import select
from typing import Any

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
FLAGS = ("--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking", "--disable-component-update")
TIMEOUT_S = 60
HAND_OVER = (
    "import fcntl, os, sys; reading, writing = (fcntl.fcntl(int(number), fcntl.F_DUPFD_CLOEXEC, 10) for number in sys.argv[1:3]); "
    "os.dup2(reading, 3); os.dup2(writing, 4); os.execv(sys.argv[3], sys.argv[3:])"
)
"""The browser reads from 3 and writes to 4, whatever numbers the pipes have here."""


class Browser:
    """One page in one browser.

    Attributes
    ----------
    complaints : list of str
        What the page was refused by its policy, and what its scripts threw.
    asked : list of str
        Addresses of everything that was loaded.
    downloads : Path
        Where files land.
    """

    def __init__(self, to: int, back: int, downloads: Path) -> None:
        self._to, self._back, self._buffer, self._number, self._session = to, back, b"", 0, ""
        self.downloads, self._events = downloads, list[dict[str, Any]]()
        self.complaints, self.asked = list[str](), list[str]()
        downloads.mkdir(exist_ok=True)
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "DOM", "Network"):
            self.call(f"{domain}.enable")
        self.call("Browser.setDownloadBehavior", behavior="allow", downloadPath=str(downloads), eventsEnabled=True)

    def call(self, method: str, **params: object) -> dict[str, Any]:
        self._number += 1
        message = {"id": self._number, "method": method, "params": params}
        if self._session and not method.startswith(("Target.", "Browser.")):
            message["sessionId"] = self._session
        os.write(self._to, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._read()
            if answer.get("id") == self._number:
                assert "error" not in answer, answer["error"]
                return dict(answer["result"])
            self._take(answer)

    def _read(self) -> dict[str, Any]:
        while b"\0" not in self._buffer:
            ready, _, _ = select([self._back], [], [], TIMEOUT_S)
            part = os.read(self._back, 1 << 20) if ready else b""
            assert part, "the browser is gone, or waits for something that does not come"
            self._buffer += part
        one, _, self._buffer = self._buffer.partition(b"\0")
        return dict(json.loads(one))

    def _take(self, event: dict[str, Any]) -> None:
        name, params = event.get("method"), event.get("params", {})
        if name == "Runtime.exceptionThrown":
            self.complaints.append(str(params["exceptionDetails"]))
        elif name == "Log.entryAdded" and params["entry"]["level"] == "error":
            self.complaints.append(params["entry"]["text"])
        elif name == "Network.requestWillBeSent":
            self.asked.append(params["request"]["url"])
        elif name == "Page.javascriptDialogOpening":
            self.complaints.append(f"dialog: {params['type']}")
            self._number += 1
            message = {"id": self._number, "method": "Page.handleJavaScriptDialog", "params": {"accept": True}, "sessionId": self._session}
            os.write(self._to, json.dumps(message).encode() + b"\0")
        self._events.append(event)

    def wait(self, name: str, **wanted: object) -> dict[str, Any]:
        """Give the first event of a name with these parameters that was not waited for yet."""
        while True:
            for place, event in enumerate(self._events):
                params = event.get("params", {})
                if event.get("method") == name and all(params.get(key) == value for key, value in wanted.items()):
                    del self._events[: place + 1]
                    return dict(params)
            self._take(self._read())

    def open(self, path: Path) -> None:
        self.call("Page.navigate", url=path.as_uri())
        self.wait("Page.loadEventFired")

    def run(self, script: str) -> Any:
        """Evaluate a script as a person at the keyboard would start it; its value comes back."""
        result = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True, userGesture=True)
        assert "exceptionDetails" not in result, result["exceptionDetails"]
        return result["result"].get("value")

    def until(self, condition: str) -> None:
        """Wait until a condition holds in the page."""
        self.run(f"new Promise((done) => {{ const look = () => ({condition}) ? done(true) : requestAnimationFrame(look); look(); }})")

    def press(self, keys: str) -> None:
        """Press one key after the other."""
        for key in keys:
            self.call("Input.dispatchKeyEvent", type="keyDown", key=key, text=key)
            self.call("Input.dispatchKeyEvent", type="keyUp", key=key)

    def give(self, selector: str, path: Path) -> None:
        """Choose a file in an element."""
        root = self.call("DOM.getDocument")["root"]["nodeId"]
        node = self.call("DOM.querySelector", nodeId=root, selector=selector)["nodeId"]
        self.call("DOM.setFileInputFiles", files=[str(path)], nodeId=node)

    def take(self, selector: str) -> Path:
        """Click on what starts a download; the file that lands."""
        self.run(f"document.querySelector({selector!r}).click()")
        begun = self.wait("Browser.downloadWillBegin")
        self.wait("Browser.downloadProgress", guid=begun["guid"], state="completed")
        return self.downloads / str(begun["suggestedFilename"])

    def picture(self, path: Path) -> None:
        """Keep what is seen, for a person."""
        path.write_bytes(base64.b64decode(self.call("Page.captureScreenshot", captureBeyondViewport=True)["data"]))


@contextmanager
def browser(folder: Path) -> Iterator[Browser]:
    """Start a browser with a profile of its own below `folder`, and end it."""
    to_read, to = os.pipe()
    back, back_write = os.pipe()

    flags = [*FLAGS, "--remote-debugging-pipe", f"--user-data-dir={folder / 'profile'}", "about:blank"]
    command = [sys.executable, "-c", HAND_OVER, str(to_read), str(back_write), str(CHROMIUM), *flags]
    process = subprocess.Popen(command, pass_fds=(to_read, back_write), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    os.close(to_read)
    os.close(back_write)
    try:
        yield Browser(to, back, folder / "downloads")
    finally:
        os.close(to)
        os.close(back)
        process.terminate()
        process.wait(TIMEOUT_S)
