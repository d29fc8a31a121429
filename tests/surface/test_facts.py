"""Dated facts: each is told where it says, has its commit, and a tree that contradicts it is noticed."""

import re

import pytest
from tests.surface.check_facts import ROOT, read_facts, stale

FACTS = read_facts()


@pytest.mark.parametrize("fact", FACTS, ids=lambda f: f.id)
def test_a_fact_is_told_where_it_says_and_has_its_commit(fact):
    file, words = fact.told
    assert words in (ROOT / file).read_text(encoding="utf-8")
    assert re.fullmatch(r"[0-9a-f]{7,40}", fact.commit)
    assert re.fullmatch(r"2026-\d\d-\d\d", fact.date)


def tree(folder, fact, text):
    path = folder / fact.file
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return {fact.of: folder}


@pytest.mark.parametrize("fact", [f for f in FACTS if not f.there], ids=lambda f: f.id)
def test_what_must_not_be_there_is_noticed_when_it_comes_back(fact, tmp_path):
    literal = fact.shown.split("|")[0].replace("\\", "")
    assert list(stale([fact], tree(tmp_path, fact, "nothing of it\n"))) == []
    assert [f for f, _ in stale([fact], tree(tmp_path, fact, f"x = {literal}\n"))] == [fact]


@pytest.mark.parametrize("fact", [f for f in FACTS if f.there], ids=lambda f: f.id)
def test_what_is_gone_is_noticed(fact, tmp_path):
    assert [f for f, _ in stale([fact], tree(tmp_path, fact, "nothing of it\n"))] == [fact]
    (tmp_path / fact.file).unlink()
    assert "is gone" in next(iter(stale([fact], {fact.of: tmp_path})))[1]
