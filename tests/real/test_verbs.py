"""The verbs on the real package that have no file of their own: doctor, op, limits, sweep, investigate, and a session from a genuine
refusal of the layout pass to a verified bundle. Nothing is planted."""

import json
import re
import subprocess
import zipfile
from pathlib import Path

import pytest

REFUSED = """
import torch
def test_silu_of_halves():
    x = torch.ones(4, 100).half()
    f = lambda x: torch.nn.functional.silu(x[..., :50]) * x[..., 50:]
    torch.compile(f, dynamic=False)(x.to("spyre"))
def test_int32():
    x = torch.arange(64, dtype=torch.int32)
    assert torch.equal((x.to("spyre") + 1).cpu(), x + 1)
def test_good():
    x = torch.ones(4, 64).half().to("spyre")
    assert (x + x).cpu().sum() == 512
"""
LIMITS = {  # asked of torch alone, one by one, in test_limits_say_what_a_script_without_us_shows
    "fp32-matmul": "x = torch.ones(64, 64).to('spyre'); x @ x",
    "int64-downcast": "assert torch.tensor([2**40 + 5]).to('spyre').cpu()[0] == 2**40 + 5",
    "transpose-contiguous": "x = torch.arange(4096).remainder(100).view(64, 64).half(); assert torch.equal(x.to('spyre').t().contiguous().cpu(), x.t())",
}
KERNELS = """
import json, sys, torch
torch.ones(1).to("spyre")
def has(name):
    try:
        return torch._C._dispatch_has_kernel_for_dispatch_key(name, "PrivateUse1")
    except RuntimeError:
        return None
print(json.dumps({name: has(name) for name in json.load(open(sys.argv[1]))}))
"""


def test_doctor_sees_the_package_the_card_and_the_revision(bench):
    told = bench.json("doctor")
    checks = {row["name"]: row for row in told["checks"]}
    assert told["exit"] == 0 and not [row for row in checks.values() if row["state"] == "fail"], checks
    assert str(bench.device) in checks["card"]["text"] and checks["device"]["text"] == "free"
    head = subprocess.run(
        ["git", "-C", str(bench.package.package.parent), "rev-parse", "HEAD"], capture_output=True, text=True
    ).stdout.strip()
    assert head[:12] in checks["torch-spyre"]["text"], "the package lies in a checkout: doctor knows its commit"
    assert "toolchain" not in checks or checks["toolchain"]["state"] == "ok", checks["toolchain"]


def test_op_agrees_with_the_dispatcher_on_every_overload(bench):
    told = bench.json("op", "--all")
    said = {
        op["name"].replace(".", "::", 1) + ("" if overload == "default" else f".{overload}"): how["eager"]
        for op in told["ops"]
        for overload, how in op["overloads"].items()
    }
    assert len(said) > 300
    names = bench.write("names.json", json.dumps(sorted(said)))
    script = bench.write("kernels.py", KERNELS)
    words = [str(bench.package.python), str(script), str(names)]
    done = subprocess.run(words, env=bench.env, cwd=bench.checkout, capture_output=True, text=True)
    there = json.loads(done.stdout.splitlines()[-1])

    def packet(name):  # what has no kernel itself may be reached through its out= or functional form
        return name.partition(".")[0].rstrip("_")

    reached = {packet(n) for n, found in there.items() if found}
    own = {"kernel", "fallback", "decomposition", "custom-op"}
    missed = {n: how for n, how in said.items() if how not in own and there[n]}
    invented = {n: how for n, how in said.items() if how in own and there[n] is False and packet(n) not in reached}
    assert (missed, {n for n in invented if n.startswith("aten::")}) == ({}, set()), invented


@pytest.mark.parametrize("limit", LIMITS)
def test_limits_say_what_a_script_without_us_shows(bench, limit):
    done = bench.call("limits", limit, "--probe")
    plain = bench.python(f"import torch\n{LIMITS[limit]}\n")
    wanted = "holds" if plain.returncode else "lifted"
    assert f"probed: {wanted}" in done.stdout, done.stdout + plain.stderr[-500:]


@pytest.mark.timeout(1800)
def test_sweep_says_that_a_genuine_refusal_shows_whatever_the_sizes(bench):
    """abs on int64 is refused, whatever the sizes and views."""
    for _ in range(4):
        done = bench.call("sweep", "aten.abs.default", "i64[4,64]", timeout=900)
        if done.returncode != 79:
            break
    assert done.returncode == 1, done.stdout + done.stderr
    assert "aten.abs is refused at every call that was tried" in done.stdout, done.stdout
    assert "abs on DataFormats.IEEE_INT32" in done.stdout


@pytest.mark.timeout(1800)
def test_investigate_finds_both_causes(bench):
    bench.write("test_it.py", REFUSED)
    told = bench.json("investigate", "--minutes", "6", "test_it.py")
    assert told["exit"] == 1 and told["matrix"]["counts"]["passed"] == 1, json.dumps(told)[:2000]
    text = json.dumps(told["causes"])
    assert "no supported output layout" in text or "stick-aligned storage_offset" in text
    assert "add on DataFormats.IEEE_INT32" in text


@pytest.mark.timeout(1800)
def test_a_session_goes_from_a_genuine_refusal_to_a_verified_bundle(bench):
    bench.write("test_it.py", REFUSED)
    git = ["git", "-c", "user.name=n", "-c", "user.email=n@example.org", "-C", str(bench.checkout)]
    subprocess.run([*git, "add", "-A"], check=True)
    subprocess.run([*git, "commit", "-q", "-m", "start"], check=True)
    node = "test_it.py::test_silu_of_halves"
    triaged = bench.json("triage", "test_it.py")
    number = next(c["id"] for c in triaged["clusters"] if "no supported output layout" in json.dumps(c))
    assert bench.call("open", "silu", "--cluster", number).returncode == 0
    assert bench.call("run", "--as", "baseline", node).returncode == 1
    assert (
        bench.call(
            "hypothesis", "add", "the layout pass refuses halves of 50", "--test", "debug-spyre shadow"
        ).returncode
        == 0
    )
    assert bench.call("hypothesis", "start", "1").returncode == 0
    shadowed = bench.call("shadow", node)
    assert "aten.mul.Tensor" in shadowed.stdout and "stick-aligned storage_offset" in shadowed.stdout
    assert (
        bench.call("hypothesis", "conclude", "1", "confirmed", "the compiled halves have no output layout").returncode
        == 0
    )
    repro = bench.json("repro", "--times", "2")
    assert repro["verified"], repro
    assert bench.call("repro", "--cpu").returncode == 0
    done = bench.call("escalate")
    assert done.returncode == 0, done.stdout + done.stderr
    (bundle,) = (bench.checkout / ".claude/skills/debug-spyre/logs").rglob("*.zip")
    checked(bundle, bench, Path(repro["script"]).name)
    closed = bench.call("close", "blocked", "--next", "send the bundle to the torch-spyre team")
    assert closed.returncode == 0, closed.stdout + closed.stderr


def checked(bundle, bench, script):
    """The bundle names the fault and the revision, hides this machine, and its script shows the fault where it is unpacked."""
    there = bench.checkout.parent / "elsewhere"
    with zipfile.ZipFile(bundle) as packed:
        packed.extractall(there)
    issue = next(there.rglob("issue.md")).read_text()
    assert "no supported output layout" in issue and re.search(r"[0-9a-f]{12}", issue)
    assert str(bench.checkout.parent) not in issue
    place = next(there.rglob(script))
    done = subprocess.run(
        [str(bench.package.python), place.name], cwd=place.parent, env=bench.env, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
