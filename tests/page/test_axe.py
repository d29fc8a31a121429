"""axe-core, from the npm registry, finds nothing on the pages: light, dark, phone, print."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from debug_spyre.page.io import page

pytestmark = pytest.mark.browser
VERSION = "4.14.1"
KEPT = Path(__file__).parents[2] / ".work" / f"axe-{VERSION}"
ASK = "axe.run().then(r => JSON.stringify([r.passes.length, r.violations.map(v => [v.id, v.nodes.length, v.nodes[0].html.slice(0, 160)])]))"
SAMPLE = Path(__file__).parents[2] / "docs/sample"
LOOKS = {
    "light": {"width": 1280},
    "dark": {"width": 1280, "dark": True},
    "phone": {"width": 400},
    "print": {"width": 1000, "media": "print"},
}


@pytest.fixture(scope="session")
def axe():
    """axe-core's script."""
    script = KEPT / "node_modules/axe-core/axe.min.js"
    if not script.is_file():
        npm = shutil.which("npm")
        if npm is None:
            pytest.skip("no npm on this machine: axe-core can't be fetched")
        KEPT.mkdir(parents=True, exist_ok=True)
        words = [npm, "install", "--silent", "--no-audit", "--no-fund", "--prefix", str(KEPT), f"axe-core@{VERSION}"]
        done = subprocess.run(words, capture_output=True, text=True, timeout=120)
        if done.returncode != 0:
            pytest.skip(f"npm could not fetch axe-core: {done.stderr.strip()[-200:]}")
    return script.read_text(encoding="utf-8")


def found(tab, axe):
    tab.ask(axe + ";0")
    passes, violations = json.loads(tab.ask(ASK))
    assert passes > 10  # it looked
    return violations


@pytest.mark.parametrize("look", LOOKS)
@pytest.mark.parametrize("ending", ["investigating", "resolved", "blocked", "index"])
def test_axe_finds_no_violation(browser, axe, pages, ending, look):
    where = page.render_index(pages["resolved"].path.parent) if ending == "index" else pages[ending].html
    tab = browser.open(where.absolute().as_uri() + "?refresh=off", **LOOKS[look])
    try:
        assert found(tab, axe) == []
    finally:
        tab.close()


@pytest.mark.parametrize("look", LOOKS)
@pytest.mark.parametrize("name", ["mean-wrong", "mul-refused"])
def test_axe_finds_no_violation_on_the_finished_sample(browser, axe, name, look):
    (sample,) = SAMPLE.glob(f"*-{name}.html")  # it has causes, strips, a change, folded runs
    tab = browser.open(sample.absolute().as_uri(), **LOOKS[look])
    try:
        tab.ask("document.querySelectorAll('details').forEach((e) => { e.open = true; })")
        assert found(tab, axe) == []
    finally:
        tab.close()


def test_axe_finds_a_planted_violation(browser, axe, tmp_path):
    planted = tmp_path / "planted.html"
    planted.write_text(
        "<!doctype html><html lang=en><title>t</title><main><h1>h</h1><img src='x.png'><p>a</p></main>"
        + "<a href='#x'>x</a>" * 9
    )
    tab = browser.open(planted.as_uri(), width=800)
    try:
        tab.ask(axe + ";0")
        assert "image-alt" in tab.ask(ASK)
    finally:
        tab.close()
