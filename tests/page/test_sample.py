"""The finished sample in docs: whole, as the page and the issue are made today, and without anything of a machine."""

import hashlib
import re
from pathlib import Path

import pytest
from tests.demo.make_sample import private_words

from debug_spyre.host.templates import templates_folder

SAMPLE = Path(__file__).parents[2] / "docs/sample"
PAGES = sorted(SAMPLE.glob("*.html"))


def test_there_is_a_page_for_each_end_and_the_bundle_of_what_is_handed_over():
    assert len(PAGES) == 2 and {"issue.md", "repro.py", "repro_control.py"} <= {
        p.name for p in (SAMPLE / "bundle").iterdir()
    }


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.stem.partition("-")[2])
def test_the_page_is_drawn_as_today_and_small(page):
    """`make sample` makes it anew where style or script have changed."""
    text = page.read_text(encoding="utf-8")
    for name in ("page.css", "page.js"):
        lines = [
            line.strip()
            for line in (templates_folder() / name).read_text(encoding="utf-8").splitlines()
            if line.strip()
        ]
        assert all(line in text for line in lines), f"{name} has changed: make sample"
    assert page.stat().st_size <= 200_000
    assert not re.search(r'(?:src|href)="https?:', text)


def test_the_sums_of_the_bundle_hold_and_its_title_is_the_finding():
    bundle = SAMPLE / "bundle"
    for line in (bundle / "SHA256SUMS").read_text().splitlines():
        digest, name = line.split("  ", 1)
        assert hashlib.sha256((bundle / name).read_bytes()).hexdigest() == digest, name
    assert (bundle / "issue.md").read_text().splitlines()[0].startswith("# aten.mul")


def test_nothing_in_it_names_a_machine():
    assert private_words(SAMPLE) == []
    told = [
        p.name
        for p in SAMPLE.rglob("*")
        if p.is_file() and re.search(rb"/root/|/home/(?!USER)|/Users/", p.read_bytes())
    ]
    assert not told
