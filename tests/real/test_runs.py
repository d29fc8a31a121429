"""run, triage and ladder on the real package."""

import json

FAILING = """
import torch
def test_slice():
    x = torch.ones(256).half()
    torch.compile(lambda a: a[32:96] + 1, dynamic=False)(x.to("spyre"))
def test_silu_of_halves():
    x = torch.ones(4, 100).half()
    f = lambda x: torch.nn.functional.silu(x[..., :50]) * x[..., 50:]
    torch.compile(f, dynamic=False)(x.to("spyre"))
def test_good():
    x = torch.ones(4, 64).half().to("spyre")
    assert (x + x).cpu().sum() == 512
"""


def test_fallbacks_as_errors_run_and_name_the_op(bench):
    bench.write(
        "test_it.py",
        """
        import torch
        def test_falls_back():
            torch.cumsum(torch.ones(4, 64).half().to("spyre"), -1)
        def test_does_not():
            x = torch.ones(4, 64).half().to("spyre")
            assert (x + x).cpu().sum() == 512
        """,
    )
    told = bench.json("run", "--fallback-as-error", "test_it.py")
    assert told["exit"] == 1, told
    said = json.dumps(told["failures"])
    assert told["status"] == "failed" and "test_falls_back" in said and "aten.cumsum" in said
    assert "test_does_not" not in said


def test_clusters_have_the_headlines_of_the_packages_own_errors(bench):
    bench.write("test_it.py", FAILING)
    told = bench.call("triage", "test_it.py")
    assert "no mechanism to resolve stick incompatibility" in told.stdout
    assert "no supported output layout found" in told.stdout
    assert "TORCHDYNAMO_VERBOSE" not in told.stdout


def test_the_ladder_does_not_take_another_error_for_the_same_failure(bench):
    bench.write("test_it.py", FAILING)
    told = bench.json("ladder", "--rungs", "op-by-op,eager,aot_eager", "test_it.py::test_silu_of_halves")
    assert told["steps"][0]["showed"] == "error" and "no supported output layout" in told["steps"][0]["detail"]
    assert told["conclusion"].startswith("not decided") and "stick-aligned storage_offset" in told["conclusion"], told
