"""Sessions to render, a strict reader of pages, and a real browser where there is one."""

import importlib.util
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent


def _load(name):
    whole = f"page_tests_{name}"
    if whole not in sys.modules:
        spec = importlib.util.spec_from_file_location(whole, HERE / f"{name}.py")
        module = importlib.util.module_from_spec(spec)
        sys.modules[whole] = module
        spec.loader.exec_module(module)
    return sys.modules[whole]


@pytest.fixture(scope="session")
def story():
    """The module that writes sessions."""
    return _load("story")


@pytest.fixture(scope="session")
def strict():
    """The module that reads pages strictly."""
    return _load("strict")


@pytest.fixture(scope="session")
def browser():
    """One headless Chromium for all browser tests."""
    chromium = _load("chromium")
    path = chromium.find_chromium()
    if path is None:
        pytest.skip("no Chromium on this machine: apt-get install chromium")
    running = chromium.Browser(path)
    yield running
    running.close()


@pytest.fixture(scope="session")
def pages(story, tmp_path_factory):
    """Rendered sessions by their ending, in one logs folder each."""
    from debug_spyre.page.io import page

    root = tmp_path_factory.mktemp("pages")
    made = {}
    for ending in ("investigating", "shut", "resolved", "blocked"):
        folder = story.realistic(root / ending, ending=ending).folder
        page.render(folder)
        made[ending] = folder
    made["hostile"] = story.hostile(root / "hostile").folder
    page.render(made["hostile"])
    return made
