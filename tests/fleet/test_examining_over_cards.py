"""sweep, ladder, repro and investigate over several cards: the same answers, each process on a card of its own."""

import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

SCRIPTS = Path(__file__).parents[2] / "scripts"
TESTS = """
import pytest, torch

@pytest.mark.parametrize("width", [64, 256, 320])
def test_mean(width):
    x = torch.randn(4, width).half().to("spyre")
    torch.testing.assert_close(x.mean(-1).cpu(), x.cpu().mean(-1), atol=1e-2, rtol=1e-2)
"""


@pytest.fixture
def host(tmp_path):
    """A checkout on a simulated host of three cards on which a mean is wrong beyond a width."""
    root = tmp_path / "plugin"
    (root / "tests").mkdir(parents=True)
    (root / "tests/test_it.py").write_text(textwrap.dedent(TESTS), encoding="utf-8")
    git = ["git", "-c", "user.name=n", "-c", "user.email=e@e", "-C", str(root)]
    for words in (["init", "-q"], ["add", "."], ["commit", "-qm", "start"]):
        subprocess.run([*git, *words], check=True)
    devices = [tmp_path / f"vfio-{n}" for n in range(3)]
    for device in devices:
        device.touch()
    files = os.pathsep.join(map(str, devices))
    own = {k: v for k, v in os.environ.items() if not k.startswith(("SPYRE_", "DEBUG_SPYRE", "PYTEST_", "CLAUDE"))}
    env = own | {
        "SPYRE_SIM_DEVICE": files, "DEBUG_SPYRE_DEVICES": files, "SPYRE_SIM_COMPILE": "0", "HOME": str(tmp_path),
        "DEBUG_SPYRE_LOCK_DIR": str(tmp_path / "locks"), "DEBUG_SPYRE_PYTHON": sys.executable, "PYTHONPATH": str(SCRIPTS),
        "SPYRE_SIM_FAULTS": "partial_reduction:op=mean:width=131", "TORCHINDUCTOR_CACHE_DIR": str(tmp_path / "cache"),
    }  # fmt: skip

    def call(*words):
        done = subprocess.run(
            [sys.executable, "-m", "debug_spyre", words[0], "--json", *words[1:]],
            cwd=root, env=env, capture_output=True, text=True, timeout=280,
        )  # fmt: skip
        assert done.stdout, done.stderr
        return json.loads(done.stdout), done.stderr

    call.logs = root / ".claude/skills/debug-spyre/logs"
    return call


def jobs(host, verb):
    found = [json.loads(path.read_text()) for path in sorted(host.logs.rglob("job.json"))]
    return [job for job in found if job["verb"] == verb]


def cards_of(host, verb):
    """The device of each job, which must be the one that its process was told."""
    told = [(Path(job["cards"]).name, job["env"]["SPYRE_DEVICES"]) for job in jobs(host, verb)]
    assert all(name == f"vfio-{index}" for name, index in told), told
    return {index for _, index in told}


@pytest.mark.slow
def test_sweep_shares_its_points_out_and_finds_the_same_condition(host):
    call = ("sweep", "aten.mean.dim", "f16[4,256]", "[-1]", "True")
    many, _ = host(*call, "--cards", "3")
    assert cards_of(host, "sweep") == {"0", "1", "2"}
    one, _ = host(*call, "--cards", "1")
    assert many["condition"] and many["condition"]["text"] == one["condition"]["text"], (many, one)


def test_ladder_climbs_several_rungs_at_once(host):
    node = "tests/test_it.py::test_mean[256]"
    found, said = host("ladder", node, "--cards", "3", "--rungs", "one-core,logging,caches-off")
    assert found["complete"] and [step["rung"] for step in found["steps"]][0] == "as-is", found
    assert all(step["showed"] == "mismatch" for step in found["steps"]), found
    assert len(found["steps"]) == 4 and len(cards_of(host, "ladder")) >= 2, said


@pytest.mark.long
def test_investigate_and_repro_over_cards_prove_the_cause(host):
    found, _ = host("investigate", "tests", "--cards", "3")
    (cause,) = found["causes"]
    assert cause["op"] == "aten.mean.dim" and cause["claim"] == "cause", cause
    matrix = next(job for job in jobs(host, "triage") if job["name"] == "full-matrix")
    assert len(matrix["cards"].split(",")) == 3
    assert len({job["cards"] for job in jobs(host, "investigate")}) >= 2
    assert len({job["cards"] for job in jobs(host, "repro")}) >= 2
