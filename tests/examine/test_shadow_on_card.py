"""shadow and its corner cases, and the search for conditions on the simulated card, each in a process of its own."""

import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import drawn_faults
import pytest

FACTOR = int(os.environ.get("DEBUG_SPYRE_FUZZ", "1"))
CORNERS = """
import torch
torch.manual_seed(0)
def card(*shape): return torch.randn(*shape).half().to("spyre")
x = card(6, 128)
y = x * 2                                  # plain
x.add_(1)                                  # in-place
x[2:].mul_(0.5)                            # in-place through a view
out = torch.empty(6, 128, dtype=torch.float16, device="spyre")
torch.mul(x, x, out=out)                   # out=
torch.add(out, out, out=out)               # out= that is an input too
(x.t() + 1).sum()                          # strided input
(x[1:, 64:] * 3).cpu()                     # offset
x[0:1].expand(6, 128).exp()                # expanded
torch.cat([x, y])                          # list of tensors
x[:0] * 2                                  # zero size
torch.empty(3, device="spyre").normal_()   # random
torch.cumsum(x, -1)                        # fallback
x.mean(-1, keepdim=True) + 1.5             # scalar
(x > 0).sum()
x.sum().item()
"""


@pytest.fixture
def shadowed(tmp_path):
    """Runs a script or test file under the shadow; returns (report, process)."""

    def run(text, fault="", test=False, settings=None):
        name = tmp_path / ("test_it.py" if test else "script.py")
        name.write_text(textwrap.dedent(text), encoding="utf-8")
        words = (
            ["-m", "pytest", "-q", "-p", "debug_spyre_shadow", "-p", "no:cacheprovider", str(name)]
            if test
            else ["-m", "debug_spyre_shadow", str(name)]
        )
        env = drawn_faults.environment(
            tmp_path, fault, DEBUG_SPYRE_SHADOW=json.dumps({"root": str(tmp_path), **(settings or {})})
        )
        done = subprocess.run([sys.executable, *words], cwd=tmp_path, env=env, capture_output=True, text=True)
        return json.loads((tmp_path / "shadow.json").read_text(encoding="utf-8")), done

    return run


def ops(report):
    return {(o["op"].split(".")[1], int(o["site"].rpartition(":")[2])): o for o in report["ops"]}


def test_healthy_corner_cases_name_no_op(shadowed):
    report, done = shadowed(CORNERS)
    assert done.returncode == 0, done.stderr
    assert report["suspect"] is None and not any(o["off"] or o["slightly_off"] for o in report["ops"])
    seen = {o["op"].split(".")[1] for o in report["ops"] if o["checked"]}
    assert seen >= {"mul", "add_", "mul_", "add", "exp", "cat", "cumsum", "mean", "gt", "sum", "_to_copy"}
    reasons = {reason for o in report["ops"] for reason in o["unchecked"]}
    assert "random" in reasons and "its contents are undefined" in reasons
    assert [f["op"] for f in report["fallbacks"]] == ["aten.cumsum.default"]
    assert report["transfers"]["h2d"]["count"] >= 1 and report["transfers"]["d2h"]["bytes"] >= 2
    assert all(o["site"].startswith("script.py:") for o in report["ops"])


@pytest.mark.parametrize(
    ("fault", "name"),
    [
        ("dropped_offset:op=mul", "mul_"),
        ("wrong_overload:op=mul:form=out", "mul"),
        ("partial_reduction:op=mean:width=64", "mean"),
    ],
)
def test_the_first_wrong_op_is_named(shadowed, tmp_path, fault, name):
    report, _ = shadowed(CORNERS, fault)
    suspect = report["suspect"]
    assert suspect["op"].split(".")[1] == name
    call = json.loads((tmp_path / "suspect/call.json").read_text(encoding="utf-8"))["call"]
    assert call["op"] == suspect["op"]
    assert (tmp_path / "suspect/tensors.safetensors").stat().st_size > 100


def test_errors_do_not_propagate_from_op_to_op(shadowed):
    report, _ = shadowed(CORNERS, "scaled:op=mul:factor=2.0")
    off = {o["op"].split(".")[1].rstrip("_") for o in report["ops"] if o["off"]}
    assert off == {"mul"}
    assert report["suspect"]["again"] == "is wrong again"


def test_whether_the_failure_shows_is_known_per_test(shadowed):
    report, done = shadowed(
        """
        import torch
        def test_right(): assert (torch.ones(4).half().to("spyre") + 1).cpu().sum() == 8
        def test_wrong(): assert torch.ones(4, 256).half().to("spyre").mean(-1).cpu().sum() == 4
        """,
        "partial_reduction:op=mean:width=64",
        test=True,
    )
    assert {n.rpartition("::")[2]: o for n, o in report["outcomes"].items()} == {
        "test_right": "passed",
        "test_wrong": "failed",
    }
    assert report["suspect"]["nodeid"].endswith("test_wrong")
    assert done.returncode == 1


def test_only_skip_and_most_elements_leave_ops_out(shadowed):
    report, _ = shadowed(
        CORNERS, settings={"only": ["aten.mean.dim", "exp", "mul", "cat"], "skip": ["mul"], "max_elements": 770}
    )
    assert {o["op"] for o in report["ops"] if o["checked"]} == {"aten.mean.dim", "aten.exp.default"}
    assert any("more than 770 elements" in o["unchecked"] for o in report["ops"])


def test_the_golden_result_is_kept_where_asked(shadowed):
    report, _ = shadowed(CORNERS, "scaled:op=exp:factor=0.5", settings={"golden": True})
    golden = report["suspect"]["golden"]
    assert float(golden["actual"]) > 10 * float(golden["expected"])


def test_an_op_that_the_card_refuses_and_the_cpu_takes_is_the_suspect(shadowed):
    report, done = shadowed('import torch\nx = torch.randn(4, 4).half().to("spyre")\ntorch.sort(x)')
    assert done.returncode != 0
    assert report["suspect"]["op"].startswith("aten.sort") and "NotImplementedError" in report["suspect"]["error"]


def test_fallback_warnings_still_point_at_the_users_line(shadowed):
    _, done = shadowed('import torch\nx = torch.ones(4).half().to("spyre")\ntorch.cumsum(x, 0)\n')
    assert "script.py:3: FallbackWarning" in done.stderr


def test_fuzz_conditions_of_drawn_faults_are_right_on_unseen_calls(tmp_path):
    """A draw or two; `python tests/examine/drawn_conditions.py 100` for the long form."""
    count = "1" if FACTOR == 1 else "100"
    script = Path(drawn_faults.__file__).with_name("drawn_conditions.py")
    env = {k: v for k, v in os.environ.items() if k != "TORCH_DEVICE_BACKEND_AUTOLOAD"}
    done = subprocess.run(
        [sys.executable, "-W", "ignore", str(script), count, "2"], env=env, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("key", ["CompositeExplicitAutograd", "PrivateUse1"])
def test_an_op_that_is_code_around_other_ops_is_looked_into(shadowed, key):
    report, done = shadowed(
        f"""
        import torch
        library = torch.library.Library("layer", "FRAGMENT")
        library.define("wrapped(Tensor x, Tensor(a!) out) -> ()")
        def wrapped(x, out):
            out.copy_(x.mean(-1, keepdim=True) * x)
        library.impl("wrapped", wrapped, "{key}")
        x = torch.randn(4, 200).half().to("spyre")
        out = torch.empty_like(x)
        torch.ops.layer.wrapped(x, out)
        assert abs(float((out.cpu() - x.cpu().mean(-1, keepdim=True) * x.cpu()).abs().max())) < 1e-2
        """,
        "partial_reduction:op=mean:width=64",
    )
    assert done.returncode != 0, "the fault does not show"
    assert report["suspect"]["op"] == "aten.mean.dim"
    assert report["suspect"]["site"] == "script.py:6"
    assert not [o for o in report["ops"] if o["op"].startswith("layer.")]


COPIES = """
import json, sys
import torch
from debug_spyre_points import is_legal, run_point
x = {"tensor": {"shape": [3, 70], "dtype": "float32", "host": sys.argv[1] == "h2d"}}
there = 'torch.device("spyre")' if sys.argv[1] == "h2d" else 'torch.device("cpu")'
call = {"op": "aten._to_copy.default", "args": [x], "kwargs": {"dtype": {"word": "torch.float16"}, "device": {"word": there}}}
print(is_legal(call), json.dumps(run_point(call)))
"""


@pytest.mark.parametrize("way", ["h2d", "d2h"])
@pytest.mark.parametrize("has_fault", [True, False])
def test_a_point_of_a_copy_goes_the_way_that_the_call_went(tmp_path, way, has_fault):
    env = drawn_faults.environment(tmp_path, f"clobbered_cast:way={way}" if has_fault else "")
    done = subprocess.run([sys.executable, "-c", COPIES, way], env=env, cwd=tmp_path, capture_output=True, text=True)
    legal, _, answer = done.stdout.strip().splitlines()[-1].partition(" ")
    assert legal == "True", done.stderr
    assert json.loads(answer)["wrong"] is has_fault, done.stdout + done.stderr


def test_what_ran_when_the_process_died_is_on_disk_and_nothing_is_left_of_an_ordinary_end(shadowed, tmp_path):
    _, done = shadowed(CORNERS)
    assert done.returncode == 0 and not list(tmp_path.glob("flight*"))
    _, done = shadowed(CORNERS.replace("x.sum().item()", "x.contiguous().cpu(); import os; os._exit(9)"))
    now = json.loads((tmp_path / "flight.now").read_text())
    assert now["op"] == "aten._to_copy.default" and now["site"].startswith("script.py:")
    calls = [json.loads(line) for line in (tmp_path / "flight.jsonl").read_text().splitlines()]
    assert [c["number"] for c in calls] == list(range(len(calls)))
    assert calls[now["number"]]["call"]["op"] == now["op"]
    copy = calls[now["number"]]["call"]  # of the shape and type that x had when it was brought to the card
    assert copy["kwargs"]["device"] == {"word": 'torch.device("cpu")'} and not copy["args"][0]["tensor"]["host"]


REDUCED = """
import json, sys
from debug_spyre_points import judged_point
op, dtype, draws, lengths = sys.argv[1], sys.argv[2], int(sys.argv[3]), map(int, sys.argv[4:])
spec = lambda *shape: {"tensor": {"shape": list(shape), "dtype": dtype, "low": 0, "high": 2}}
arguments = lambda n: [spec(1, n), spec(n, 4)] if op == "aten.mm.default" else [spec(1, n), [-1], True]
judged = lambda n, draw: judged_point({"op": op, "args": arguments(n)}, key=str(draw))["verdict"]
print(json.dumps({n: [judged(n, draw) for draw in range(draws)] for n in lengths}))
"""


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("op", ["aten.mean.dim", "aten.sum.dim_IntList", "aten.mm.default"])
@pytest.mark.parametrize("has_fault", [True, False])
def test_half_of_a_long_reduction_left_out_is_seen_in_every_draw(tmp_path, op, dtype, has_fault):
    """One result of thousands of terms: the half may be near the whole by chance, and rounding grows with the length."""
    lengths = (130, 768, 8192)
    fault = f"partial_reduction:op={op.split('.')[1]}:width=128" if has_fault else ""
    env = drawn_faults.environment(tmp_path, fault)
    words = [sys.executable, "-W", "ignore", "-c", REDUCED, op, dtype, "12", *map(str, lengths)]
    done = subprocess.run(words, env=env, cwd=tmp_path, capture_output=True, text=True)
    verdicts = json.loads(done.stdout.strip().splitlines()[-1])
    assert verdicts == {str(length): ["wrong" if has_fault else "right"] * 12 for length in lengths}, done.stderr
