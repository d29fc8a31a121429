"""Triage finds what the plans of the samples built into them; the shared samples too, where they are at hand."""

from pathlib import Path

import pytest
from scoring import score

SAMPLES = Path(__file__).parents[1] / "samples"
ANSWERS = sorted(SAMPLES.glob("*.json"))
SHARED = sorted((Path(__file__).parents[3] / "shared/sample-logs").glob("*.json"))
FLOORS = {"fields": 98.0, "clusters": 95.0, "stage": 90.0}


def test_there_is_a_corpus():
    assert len(ANSWERS) >= 40
    assert sum(p.stat().st_size for p in SAMPLES.iterdir() if p.is_file()) < 2_000_000


@pytest.mark.parametrize("answer", ANSWERS, ids=lambda p: p.stem)
def test_triage_finds_what_the_plan_says(answer):
    result = score(answer)
    assert not result.misses, "\n".join(result.misses)
    assert all(found == wanted for found, wanted in result.parts.values()), result.parts


@pytest.mark.skipif(not SHARED, reason="the shared sample logs are not here")
def test_the_shared_samples_reach_the_floors():
    totals = {}
    for answer in SHARED:
        for part, (found, wanted) in score(answer).parts.items():
            have = totals.get(part, (0, 0))
            totals[part] = (have[0] + found, have[1] + wanted)
    for part, (found, wanted) in totals.items():
        assert 100 * found >= FLOORS.get(part, 100.0) * wanted, (part, found, wanted)
