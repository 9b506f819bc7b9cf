#!/usr/bin/env python3
"""Opens pages in headless Chromium, and checks them as a reader would see them.

    lab/browser.py target/lab/report/*.html [--pictures FOLDER]

Checks at widths of 1280 and 400 pixels that a page is not empty, that nothing hangs over the edge (wide tables and plots scroll by themselves),
that every plot is large enough to be read and has its curves, that every figure has one, and that the console shows
no error. Exit code 1 if a check fails, 2 if there is no Chromium
(Debian's package is `chromium`). With --pictures, keeps a picture of each page at each width.

Talks to the browser over two pipes, by its own protocol (https://chromedevtools.github.io/devtools-protocol/).
"""

import argparse
import base64
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

WIDTHS = (1280, 400)
NAMES = ("chromium", "chromium-browser", "google-chrome")
# What the page says of itself: how far it hangs over, what is in it, and each plot's size, curves and name.
FACTS = """({
  over: document.documentElement.scrollWidth - document.documentElement.clientWidth,
  sections: document.querySelectorAll('section').length,
  links: document.querySelectorAll('a[href]').length,
  empty: [...document.querySelectorAll('section')].filter(s => !s.querySelector('svg, table')).map(s => s.id),
  plots: [...document.querySelectorAll('figure')].map(f => { const s = f.querySelector('svg'), b = s && s.getBoundingClientRect();
    return {name: s && s.getAttribute('aria-label'), width: b ? b.width : 0, height: b ? b.height : 0,
            right: f.getBoundingClientRect().right, curves: s ? s.querySelectorAll('path').length : 0}; }),
  undrawn: [...document.querySelectorAll('section[data-plot]')].filter(s => !s.querySelector('figure svg')).map(s => s.id),
})"""


class Browser:
    """A Chromium of this process."""

    def __init__(self, program: str, profile: str):
        # The browser reads commands from descriptor 3, and writes answers to descriptor 4.
        theirs_in, self.out = os.pipe()
        inn, theirs_out = os.pipe()
        flags = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
                 f"--user-data-dir={profile}", "--remote-debugging-pipe", "about:blank"]  # fmt: skip
        # The first pipe has the lower numbers, so that 3 is never the end that 4 is made of.
        script = 'exec "$0" "$@" 3<&"$IN" 4>&"$OUT"'
        environment = {**os.environ, "IN": str(theirs_in), "OUT": str(theirs_out)}
        self.process = subprocess.Popen(["bash", "-c", script, program, *flags], env=environment, pass_fds=(theirs_in, theirs_out),
                                        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)  # fmt: skip
        os.close(theirs_in)
        os.close(theirs_out)
        self.answers = os.fdopen(inn, "rb")
        self.count, self.left, self.events, self.session = 0, b"", [], None

    def receive(self) -> dict:
        while b"\0" not in self.left:
            more = os.read(self.answers.fileno(), 1 << 16)
            if not more:
                raise RuntimeError("the browser ended")
            self.left += more
        message, _, self.left = self.left.partition(b"\0")
        return json.loads(message)

    def ask(self, method: str, **parameters) -> dict:
        """Sends a command, and returns its result; events that come meanwhile are kept."""
        self.count += 1
        message = {"id": self.count, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.out, json.dumps(message).encode() + b"\0")
        while (answer := self.receive()).get("id") != self.count:
            self.events.append(answer)
        if "error" in answer:
            raise RuntimeError(f"{method}: {answer['error']['message']}")
        return answer["result"]

    def wait_for(self, event: str) -> None:
        while not any(message.get("method") == event for message in self.events):
            self.events.append(self.receive())

    def open(self, page: pathlib.Path) -> None:
        target = self.ask("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self.ask(f"{domain}.enable")
        self.events.clear()
        self.ask("Page.navigate", url=page.resolve().as_uri())
        self.wait_for("Page.loadEventFired")

    def at(self, width: int) -> dict:
        """Gives the window a width, and returns what the page says of itself."""
        self.ask("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=False)
        return self.ask("Runtime.evaluate", expression=FACTS, returnByValue=True)["result"]["value"]

    def errors(self) -> list[str]:
        """Returns what the console shows of errors, and exceptions."""
        found = []
        for event in self.events:
            told = event.get("params", {})
            if event.get("method") == "Runtime.exceptionThrown":
                found.append(told["exceptionDetails"]["text"])
            elif event.get("method") == "Log.entryAdded" and told["entry"]["level"] in ("error", "warning"):
                found.append(told["entry"]["text"])
            elif event.get("method") == "Runtime.consoleAPICalled" and told["type"] in ("error", "warning", "assert"):
                found.append(str(told["args"]))
        return found

    def picture(self, path: pathlib.Path) -> None:
        shot = self.ask("Page.captureScreenshot", format="png", captureBeyondViewport=False)
        path.write_bytes(base64.b64decode(shot["data"]))

    def close(self) -> None:
        try:
            self.session = None
            self.ask("Browser.close")
        except (RuntimeError, OSError):
            self.process.kill()
        self.process.wait()


def faults(facts: dict, width: int) -> list[str]:
    """Returns what is wrong with a page of a width."""
    found = []
    if facts["over"] > 0:
        found.append(f"the page hangs over by {facts['over']} pixels")
    if not (facts["sections"] or facts["links"]):
        found.append("the page is empty")
    found += [f"{section} has neither table nor plot" for section in facts["empty"]]
    found += [f"{section} has no plot" for section in facts["undrawn"]]
    for plot in facts["plots"]:
        # A plot without curves still has its axes: some ten paths.
        if plot["width"] < 600 or plot["height"] < 200 or plot["right"] > width or plot["curves"] < 10:
            found.append(f"plot {plot['name']}: {plot}")
    return [f"at {width} pixels: {fault}" for fault in found]


def check(page: pathlib.Path, pictures: pathlib.Path | None, program: str) -> list[str]:
    with tempfile.TemporaryDirectory() as profile:
        browser = Browser(program, profile)
        try:
            browser.open(page)
            found = []
            for width in WIDTHS:
                facts = browser.at(width)
                found += faults(facts, width)
                if pictures:
                    browser.picture(pictures / f"{page.stem}-{width}.png")
            found += [f"console: {text}" for text in browser.errors()]
            if not found:
                print(f"{page.name}: {facts['sections']} sections, {len(facts['plots'])} plots, nothing wrong at {WIDTHS} pixels")
            return found
        finally:
            browser.close()


def chromium() -> str | None:
    return next(filter(None, map(shutil.which, NAMES)), None)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("pages", type=pathlib.Path, nargs="+", metavar="PAGE")
    parser.add_argument("--pictures", type=pathlib.Path, metavar="FOLDER", help="keep a picture at each width")
    args = parser.parse_args()
    for page in args.pages:
        if not page.exists():
            sys.exit(f"{page} does not exist; lab/report makes it")
    program = chromium()
    if program is None:
        print("there is no Chromium here; Debian's package is chromium", file=sys.stderr)
        sys.exit(2)
    if args.pictures:
        args.pictures.mkdir(parents=True, exist_ok=True)
    found = [f"{page.name}: {fault}" for page in args.pages for fault in check(page, args.pictures, program)]
    sys.exit("\n".join(found) or None)


if __name__ == "__main__":
    main()
