"""Makes the README's picture, docs/log.png: the first screen of the finished sample, as a reader sees it."""

import importlib.util
import sys
from pathlib import Path

HERE = Path(__file__).parent
DOCS = HERE.parents[1] / "docs"
TARGET = DOCS / "log.png"
WIDTH, HEIGHT = 1280, 1000


def _load(name):
    spec = importlib.util.spec_from_file_location(f"picture_{name}", HERE / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def main(target=TARGET):
    chromium = _load("chromium")
    (sample,) = DOCS.glob("sample/*-mean-wrong.html")
    browser = chromium.Browser(chromium.find_chromium())
    try:
        tab = browser.open("about:blank", width=WIDTH, height=HEIGHT)
        later = "Date.parse(document.documentElement.dataset.updated) + 120000"  # the picture does not tell its own age
        tab.call(
            "Page.addScriptToEvaluateOnNewDocument",
            source=f"(() => {{ const now = Date.now; Date.now = () => document.documentElement ? {later} : now(); }})()",
        )
        tab.go(sample.absolute().as_uri())
        browser.pump(0.5)
        tab.shoot(target)
    finally:
        browser.close()
    print(f"{target}: {Path(target).stat().st_size:,} bytes")


if __name__ == "__main__":
    main(*sys.argv[1:])
