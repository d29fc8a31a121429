"""Makes the README's picture, docs/log.png: the realistic session with its run in flight, as a reader sees it."""

import importlib.util
import sys
import tempfile
from pathlib import Path

from debug_spyre.page.io import page

HERE = Path(__file__).parent
TARGET = HERE.parents[1] / "docs/log.png"
WIDTH, HEIGHT = 1360, 990


def _load(name):
    spec = importlib.util.spec_from_file_location(f"picture_{name}", HERE / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def main(target=TARGET):
    story, chromium = _load("story"), _load("chromium")
    with tempfile.TemporaryDirectory() as scratch:
        told = story.realistic(Path(scratch))
        page.render(told.folder)
        browser = chromium.Browser(chromium.find_chromium())
        try:
            tab = browser.open("about:blank", width=WIDTH, height=HEIGHT)
            seen = f"{int(told.now.timestamp() * 1000)} + 12000"  # twelve seconds after the last event
            tab.call(
                "Page.addScriptToEvaluateOnNewDocument", source=f"(() => {{ const t = {seen}; Date.now = () => t; }})()"
            )
            tab.go(told.folder.html.as_uri())
            browser.pump(0.5)
            tab.shoot(target)
        finally:
            browser.close()
    print(f"{target}: {Path(target).stat().st_size:,} bytes")


if __name__ == "__main__":
    main(*sys.argv[1:])
