"""The plans of the samples: what each project does, and what a reader should find in its log."""

from __future__ import annotations

import inspect
import math
import sys
from unittest import mock

import torch
import wrappers
from generate import (
    BACKEND,
    MATRIX,
    MATRIX_COUNTS,
    MATRIX_FAILS,
    MATRIX_STAGES,
    Fails,
    Sample,
    matrix,
    numbers,
    project,
    without_frames,
)

HEAD = '''
import sys, pathlib
sys.path.insert(0, str(pathlib.Path(__file__).parent))
import pytest
from close import near, compare
'''
SHORT = ["--tb=short", "tests"]
VALUE = numbers


def all_samples() -> list[Sample]:
    return [*styles(), *wrapped(), *ends(), *setups(), *backend(), *values(), *sessions(), *shared(), *others()]


def native(fails: Fails) -> Fails:
    """Native tracebacks show torch's own frame too, the line that raises."""
    if fails.frame != "compare":
        return fails
    lines, first = inspect.getsourcelines(torch.testing.assert_close)
    raising = next(n for n, line in enumerate(lines) if "raise error_metas[0]" in line)
    place = f".venv/lib/python{sys.version_info[0]}.{sys.version_info[1]}/site-packages/torch/testing/_comparison.py:{first + raising}"
    return Fails(fails.nodeid, fails.kind, fails.cluster, fails.error_class, None, place, fails.phase, fails.numbers)


def styles() -> list[Sample]:
    return [
        matrix("tb-short", SHORT),
        matrix("tb-short-v-ra", ["-v", "-rA", *SHORT]),
        matrix("tb-long", ["--tb=long", "tests"]),
        matrix("tb-auto-vv", ["-vv", "tests"]),
        matrix("tb-native", ["--tb=native", "tests"], absolute_frames=True, failures=[native(f) for f in MATRIX_FAILS]),
        matrix("tb-line-q", ["--tb=line", "-q", "tests"], absolute_frames=True),
        matrix("tb-no-ci", ["--tb=no", "tests"], failures=without_frames(MATRIX_FAILS), env={"CI": "true"}),
        matrix("xdist-v", ["-n", "2", "-v", *SHORT]),
        matrix("junit-xunit2", SHORT, junit=True),
        matrix("junit-xunit1", ["-o", "junit_family=xunit1", *SHORT], junit=True),
        matrix("results-matrix", SHORT, results=True),
        matrix("no-summary-line", ["-r", "N", "-v", *SHORT]),
    ]


def wrapped() -> list[Sample]:
    return [
        matrix("gha-colour", ["--color=yes", *SHORT], env={"FORCE_COLOR": "1"}, wrap=wrappers.github),
        matrix("gh-cli-q", ["-q", *SHORT], wrap=wrappers.github_cli),
        matrix("jenkins-crlf", SHORT, wrap=lambda log: wrappers.crlf(wrappers.jenkins(log))),
        matrix("tags-table", SHORT, wrap=lambda log: wrappers.table_after(wrappers.tags(log))),
        matrix("uv-engine", SHORT, wrap=lambda log: wrappers.uv_front(wrappers.engine(log)), fallbacks=[("aten.tril.default", "mask")], files=with_line(8)),
    ]


def with_line(_number: int) -> dict[str, str]:
    text = BACKEND["spyre_inference/layers.py"]
    found = next(n for n, line in enumerate(text.split("\n"), start=1) if "#@mask" in line)
    padded = "\n" * max(0, 8 - found) + text
    return {**project(tests__test_matrix=MATRIX), "spyre_inference/layers.py": padded}


ENDS = HEAD + '''
import faulthandler, os, signal, subprocess, time


@pytest.mark.parametrize("n", [1, 2])
def test_before(n):
    pass


def touch_device():
    END  #@end


def test_last():
    touch_device()  #@last


def test_never():
    pass
'''


def ending(name: str, what: str, args: list[str], fails: Fails, **more: object) -> Sample:
    return Sample(
        name=name,
        files=project(tests__test_end=ENDS.replace("END", what)),
        args=args,
        failures=[fails],
        stages={fails.cluster: "runtime"},
        **more,  # type: ignore[arg-type]
    )


def ends() -> list[Sample]:
    node = "tests/test_end.py::test_last"
    segv = 'os.kill(os.getpid(), signal.SIGSEGV)'
    return [
        ending("crash-segfault-v", segv, ["-v", "tests"], Fails(node, "crash", "c", "Segmentation fault", "end"), absolute_frames=True),
        ending("crash-segfault-dots", segv, ["tests"], Fails(node, "crash", "c", "Segmentation fault", "end"), absolute_frames=True),
        ending("crash-abort-xdist", "os.abort()", ["-n", "1", "-v", *SHORT], Fails(node, "crash", "c", "Aborted", "end"), absolute_frames=True, counts={"passed": 3, "failed": 1}),
        ending(
            "crash-dtexception-no-faulthandler",
            "os.write(2, b\"terminate called after throwing an instance of 'DtException'\\n  what():  DtException: Unsupported data format types, file /project_src/deeptools/util/convert.cpp line 2711\\n\"); os.abort()",
            ["-v", "-s", "-p", "no:faulthandler", "tests"],
            Fails(node, "crash", "c", "Aborted"),
            shell="PYTEST; true",
        ),
        ending("hang-thread-timeout", "time.sleep(60)", ["-v", "--timeout=2", "--timeout-method=thread", "tests"], Fails(node, "timeout", "c", None, "end"), absolute_frames=True),
        ending("hang-signal-timeout", "time.sleep(60)", ["-v", "--timeout=2", "--timeout-method=signal", *SHORT], Fails(node, "timeout", "c", "Failed", "end"), counts={"passed": 3, "failed": 1}),
        ending("hang-cancelled", "time.sleep(60)", ["-v", "tests"], Fails(node, "timeout", "c", None), shell="timeout -s KILL 6 PYTEST || true", wrap=wrappers.cancelled),
        Sample(
            name="green-but-killed",
            files=project(tests__test_end=ENDS.replace("END", "pass")),
            args=["-v", "tests"],
            failures=[],
            stages={},
            counts={"passed": 4},
            wrap=lambda log: log + "[stall-watcher] No new output for 300s - sending STOP to the group\n##[error]Process completed with exit code 137.\n",
        ),
    ]


SETUPS = HEAD + '''
BUSY = '{"Device":"/dev/vfio/7","category":"configuration","code":"0x332b","description":"The specified PCIe address was not found.","errno":"Device or resource busy","name":"RAS::VFIO::DeviceOpenFail","severity":"ERROR"}'


@pytest.fixture
def card():
    raise RuntimeError(BUSY)  #@busy


@pytest.fixture
def data():
    open("/data/tokens.pt")  #@data


@pytest.fixture
def late():
    yield
    raise ValueError("device handle 17 was closed twice")  #@late


@pytest.mark.parametrize("op", ["relu", "silu"])
def test_uses(card, op):
    pass


def test_reads(data):
    pass


def test_ends(late):
    pass


@pytest.mark.xfail(reason="#123", strict=True)
def test_fixed():
    pass


@pytest.mark.xfail(reason="#124")
def test_known():
    assert 0


@pytest.mark.skip(reason="needs two cards")
def test_two():
    pass


def test_no_fixture(spyre_card):
    pass


def test_mock():
    from unittest import mock
    launch = mock.Mock(name="launch")
    launch.assert_called_once()  #@mock
'''
SETUP_FAILS = [
    Fails("tests/test_setups.py::test_uses[relu]", "exception", "busy", "RuntimeError", "busy", phase="setup"),
    Fails("tests/test_setups.py::test_uses[silu]", "exception", "busy", "RuntimeError", "busy", phase="setup"),
    Fails("tests/test_setups.py::test_reads", "exception", "data", "FileNotFoundError", "data", phase="setup"),
    Fails("tests/test_setups.py::test_ends", "exception", "late", "ValueError", "late", phase="teardown"),
    Fails("tests/test_setups.py::test_fixed", "exception", "xpass", None),
]
SETUP_STAGES = {"busy": "environment", "data": "environment", "late": "environment", "xpass": "test-bug"}
SETUP_COUNTS = {"passed": 1, "failed": 1, "errors": 4, "skipped": 1, "xfailed": 1}
SETUP_ARGS = ["-v", *SHORT, "--deselect", "tests/test_setups.py::test_no_fixture", "--deselect", "tests/test_setups.py::test_mock"]



def mock_line() -> str:
    """Where the standard library raises: the last line of the method."""
    lines, first = inspect.getsourcelines(mock.NonCallableMock.assert_called_once)
    return f"/usr/lib/python{sys.version_info[0]}.{sys.version_info[1]}/unittest/mock.py:{first + len(lines) - 1}"


COLLECT = '''
from torch_spyre.ops import something_that_moved  #@moved


def test_a():
    pass
'''


def setups() -> list[Sample]:
    files = project(tests__test_setups=SETUPS)
    return [
        Sample("setup-busy-teardown-xpass", files, SETUP_ARGS, SETUP_FAILS, SETUP_STAGES, SETUP_COUNTS),
        Sample("setup-results", files, SETUP_ARGS, SETUP_FAILS, SETUP_STAGES, SETUP_COUNTS, results=True),
        Sample("setup-junit", files, SETUP_ARGS, SETUP_FAILS, SETUP_STAGES, SETUP_COUNTS, junit=True),
        Sample(
            "mock-in-test",
            files,
            [*SHORT, "-k", "mock"],
            [Fails("tests/test_setups.py::test_mock", "exception", "mock", "AssertionError", fixed=mock_line())],
            {"mock": "test-bug"},
            {"failed": 1},
        ),
        Sample(
            "collect-error",
            project(tests__test_moved=COLLECT, tests__test_matrix=MATRIX),
            [*SHORT],
            [Fails("tests/test_moved.py", "exception", "moved", "ImportError", "moved", phase="collect")],
            {"moved": "environment"},
            {"errors": 1},
        ),
        Sample(
            "conftest-error",
            {**project(tests__test_matrix=MATRIX), "tests/conftest.py": 'import os\nraise ValueError("invalid SENCORES value \'33\'")  #@conf\n'},
            [*SHORT],
            [Fails(None, "exception", "conf", "ValueError", "conf", phase="session")],
            {"conf": "environment"},
        ),
        Sample(
            "internal-error",
            {**project(tests__test_matrix=MATRIX), "conftest.py": 'def pytest_collection_modifyitems(items):\n    raise RuntimeError("Failed to initialize Spyre runtime.")  #@internal\n'},
            [*SHORT],
            [Fails(None, "exception", "internal", "RuntimeError", "internal", phase="session")],
            {"internal": "runtime"},
            {"failed": 0},
            absolute_frames=True,
        ),
    ]


INDUCTOR = HEAD + '''
import torch
from torch._inductor import graph
from torch_spyre._inductor import propagate_layouts
from torch_spyre.execution import async_compile, kernel_runner


def compiled(monkeypatch, fail):
    monkeypatch.setattr(graph.GraphLowering, "_update_scheduler", lambda self: fail())  #@patched
    torch._dynamo.reset()
    return torch.compile(lambda x: x + 1)


@pytest.mark.parametrize("size", [80, 96])
def test_layout(monkeypatch, size):
    f = compiled(monkeypatch, lambda: propagate_layouts.output_layout("buf7", [4, size]))
    f(torch.ones(size))


@pytest.mark.parametrize("n", [1, 2])
def test_abort(monkeypatch, n):
    text = "terminate called after throwing an instance of 'DtException'\\n  what():  DtException: Illegal ddl, file /p/ddl.cpp line 1142\\n"
    f = compiled(monkeypatch, lambda: async_compile.sdsc(text, f"/tmp/torchinductor_dev/inductor-spyre/sdsc_fused_add_{n}_ab{n}defgh"))
    f(torch.ones(n))


def test_other_abort(monkeypatch):
    text = "terminate called after throwing an instance of 'DtException'\\n  what():  DtException: Expect valid lower and upper bound parameters., file /p/sched.cpp line 910\\n"
    f = compiled(monkeypatch, lambda: async_compile.sdsc(text, "/tmp/torchinductor_dev/inductor-spyre/sdsc_fused_mm_0_q1u4uxx3"))
    f(torch.ones(3))


def test_dynamo():
    f = torch.compile(lambda x: x if x.sum() > 0 else -x, fullgraph=True)
    f(torch.ones(3))  #@dynamo


def test_unimplemented():
    kernel_runner.launch("sdsc_fused_erf_0", "aten.erf.default")


def test_no_kernel():
    torch.ops.aten.add.Tensor(torch.empty(2, device="meta"), torch.empty(2, device="meta")).item()  #@nokernel
'''

DEVICE = HEAD + '''
from torch_spyre.execution import kernel_runner


def test_ok():
    pass


def test_first():
    kernel_runner.ras("RAS::CBRB::ResponseTimeout", {"cb_name": "launch"})


@pytest.mark.parametrize("n", [1, 2, 3])
def test_later(n):
    kernel_runner.ras("RAS::STREAM::ErrorState", {"stream": n})
'''
BENIGN = HEAD + '''
def test_mismatch():
    import sys
    sys.stderr.write('[unspecified]  ERRR 24.01.2026 04:30:54.754880 [                  ras_base.hpp:  94] {"MessageType":19,"category":"software","message":"An unsupported message type was sent.","name":"RAS::VFMSG::UnsupportedMessageType","severity":"ERROR"}\\n')
    actual, expected = near(64, 64, 8.0)
    compare(actual, expected)  #@benign
'''


def backend() -> list[Sample]:
    file = "tests/test_backend.py"
    inductor = "torch._inductor.exc.InductorError"
    return [
        Sample(
            "inductor-wrapped",
            project(tests__test_backend=INDUCTOR),
            [*SHORT, "-q", "-k", "not dynamo and not no_kernel"],
            [
                Fails(f"{file}::test_layout[80]", "compile", "layout", inductor, "layout"),
                Fails(f"{file}::test_layout[96]", "compile", "layout", inductor, "layout"),
                Fails(f"{file}::test_abort[1]", "compile", "ddl", inductor, "abort"),
                Fails(f"{file}::test_abort[2]", "compile", "ddl", inductor, "abort"),
                Fails(f"{file}::test_other_abort", "compile", "bounds", inductor, "abort"),
                Fails(f"{file}::test_unimplemented", "exception", "gap", "RuntimeError", "launch"),
            ],
            {"layout": "layout", "ddl": "codegen", "bounds": "codegen", "gap": "codegen"},
            {"failed": 6},
        ),
        Sample(
            "device-cascade",
            project(tests__test_device=DEVICE),
            ["-v", *SHORT],
            [
                Fails("tests/test_device.py::test_first", "exception", "first", "RuntimeError", "ras"),
                *(Fails(f"tests/test_device.py::test_later[{n}]", "exception", "first", "RuntimeError", "ras") for n in (1, 2, 3)),
            ],
            {"first": "runtime"},
            {"failed": 4, "passed": 1},
        ),
        Sample(
            "benign-ras",
            project(tests__test_benign=BENIGN),
            ["-v", "--tb=long", "tests"],
            [Fails("tests/test_benign.py::test_mismatch", "mismatch", "m", frame="compare", numbers=numbers(64, 64, 8.0))],
            {"m": "numerics"},
            {"failed": 1},
        ),
    ]


VALUES = HEAD + '''
import torch
NAN, INF = float("nan"), float("inf")


def test_equal():
    torch.testing.assert_close(torch.tensor([1, 2, 3, 4]), torch.tensor([1, 2, 30, 4]), rtol=0, atol=0)  #@equal


def test_scalar():
    torch.testing.assert_close(1.5e-06, 5e-07, rtol=0.05, atol=1e-07)  #@scalar


def test_count():
    torch.testing.assert_close(4, 16, rtol=0, atol=0)  #@count


def test_shape():
    torch.testing.assert_close(torch.zeros(2, 3), torch.zeros(3, 2))  #@shape


def test_dtype():
    torch.testing.assert_close(torch.zeros(2, dtype=torch.float16), torch.zeros(2))  #@dtype


def test_nan():
    torch.testing.assert_close(torch.tensor([1.0, NAN, 1.0, NAN]), torch.ones(4))  #@nan


def test_inf():
    torch.testing.assert_close(torch.full((4,), 11.0), torch.full((4,), INF))  #@inf


def test_zero():
    torch.testing.assert_close(torch.zeros(64), torch.full((64,), 2.0))  #@zero


def test_list():
    torch.testing.assert_close([torch.zeros(2), torch.zeros(2)], [torch.zeros(2), torch.ones(2)], msg=lambda m: f"spyre vs cpu mismatch\\n\\n{m}\\n")  #@list


@pytest.mark.parametrize("shape", ["float16→float32 :: shape=(3, 65) [tail]", "x[::2] - stride 2", "a]b - c"])
def test_odd(shape):
    actual, expected = near(64, 32, 4.0)
    compare(actual, expected)  #@odd


def test_unwritten():
    torch.testing.assert_close(torch.full((4,), -1431655766), torch.arange(4))  #@unwritten
'''
VALUE_FILE = "tests/test_values.py"
VALUE_FAILS = [
    Fails(f"{VALUE_FILE}::test_equal", "mismatch", "equal", frame="equal", numbers={"mismatched": 1, "total": 4, "max_abs": 27.0, "max_rel": 0.9}),
    Fails(f"{VALUE_FILE}::test_scalar", "mismatch", "scalar", frame="scalar", numbers={"max_abs": 1.5e-06 - 5e-07, "max_rel": (1.5e-06 - 5e-07) / 5e-07}),
    Fails(f"{VALUE_FILE}::test_count", "mismatch", "count", frame="count", numbers={"max_abs": 12, "max_rel": 0.75}),
    Fails(f"{VALUE_FILE}::test_shape", "mismatch", "shape", frame="shape"),
    Fails(f"{VALUE_FILE}::test_dtype", "mismatch", "dtype", frame="dtype"),
    Fails(f"{VALUE_FILE}::test_nan", "mismatch", "nan", frame="nan", numbers={"mismatched": 2, "total": 4, "max_abs": math.nan, "max_rel": math.nan}),
    Fails(f"{VALUE_FILE}::test_inf", "mismatch", "inf", frame="inf", numbers={"mismatched": 4, "total": 4, "max_abs": math.inf, "max_rel": math.nan}),
    Fails(f"{VALUE_FILE}::test_zero", "mismatch", "zero", frame="zero", numbers={"mismatched": 64, "total": 64, "max_abs": 2.0, "max_rel": 1.0}),
    Fails(f"{VALUE_FILE}::test_list", "mismatch", "list", frame="list", numbers={"mismatched": 2, "total": 2, "max_abs": 1.0, "max_rel": 1.0}),
    *(
        Fails(f"{VALUE_FILE}::test_odd[{s}]", "mismatch", "odd", frame="compare", numbers=numbers(64, 32, 4.0))
        for s in ("float16→float32 :: shape=(3, 65) [tail]", "x[::2] - stride 2", "a]b - c")
    ),
    Fails(f"{VALUE_FILE}::test_unwritten", "mismatch", "unwritten", frame="unwritten", numbers={"mismatched": 4, "total": 4, "max_abs": 1431655769, "max_rel": math.inf}),
]
VALUE_STAGES = dict.fromkeys([f.cluster for f in VALUE_FAILS], "numerics") | {"count": "codegen", "equal": "codegen", "zero": "codegen", "list": "codegen", "unwritten": "codegen", "shape": "lowering", "dtype": "lowering"}


def values() -> list[Sample]:
    files = {**project(tests__test_values=VALUES), "pyproject.toml": "[tool.pytest.ini_options]\ndisable_test_id_escaping_and_forfeit_all_rights_to_community_support = true\n"}
    return [
        Sample("values-short", files, SHORT, VALUE_FAILS, VALUE_STAGES, {"failed": 13}),
        Sample("values-tb-no-ci", files, ["--tb=no", "-q", "tests"], without_frames(VALUE_FAILS), VALUE_STAGES, {"failed": 13}, env={"CI": "1"}),
        Sample("values-junit", files, SHORT, VALUE_FAILS, VALUE_STAGES, {"failed": 13}, junit=True),
    ]


FALLBACKS = HEAD + '''
from spyre_inference import layers


@pytest.mark.parametrize("n", range(12))
def test_many(n):
    layers.mask(n)


@pytest.mark.parametrize("n", range(2))
def test_few(n):
    layers.positions(n)
'''


def others() -> list[Sample]:
    files = project(tests__test_fall=FALLBACKS)
    file = "tests/test_fall.py"
    error = "torch_spyre.ops.fallbacks.FallbackWarning"
    return [
        Sample("fallbacks-many", files, SHORT, [], {}, {"passed": 14}, [("aten.tril.default", "mask"), ("conversion from torch.int64 to torch.float16", "positions")]),
        Sample(
            "fallbacks-as-errors",
            files,
            [*SHORT, "-q", "-W", f"error::{error}", "-k", "few"],
            [Fails(f"{file}::test_few[{n}]", "exception", "f", error, "warn") for n in (0, 1)],
            {"f": "fallback"},
            {"failed": 2},
        ),
        matrix("captured-session", ["-q", *SHORT], files={**project(tests__test_matrix=MATRIX + NESTED)}, failures=[*MATRIX_FAILS, Fails("tests/test_matrix.py::test_nested", "mismatch", "nested", frame="compare", numbers=numbers(64, 64, 2.0))], stages={**MATRIX_STAGES, "nested": "numerics"}, counts={**MATRIX_COUNTS, "failed": 8}),
        matrix("xdist-tags", ["-n", "2", "-v", *SHORT], wrap=wrappers.tags_everywhere),
        matrix("two-builds", SHORT, files=project(tests__test_matrix=MATRIX), wrap=wrappers.after_another_build),
        script("script-traceback", "checks/run.py", SCRIPT),
        matrix("reruns", ["-v", "--reruns", "1", *SHORT]),
        matrix("subtests", ["-v", *SHORT], files=project(tests__test_sub=SUBTESTS), failures=SUB_FAILS, stages={"sub": "numerics"}, counts={"failed": 3, "passed": 1}),
        matrix("chained-group", SHORT, files=project(tests__test_chain=CHAIN), failures=CHAIN_FAILS, stages={"c": "runtime", "g": "runtime"}, counts={"failed": 2}),
    ]


SCRIPT = '''
import sys
from torch_spyre._inductor import propagate_layouts


def main():
    propagate_layouts.output_layout("buf7", [4, 80])


main()
'''


def script(name: str, path: str, text: str) -> Sample:
    """A plain script without pytest, printed by an engine process."""
    failure = Fails(None, "compile", "layout", "torch_spyre._inductor.errors.Unsupported", "layout", phase="session")
    return Sample(name, {**project(), path: text}, [], [failure], {"layout": "layout"}, shell=f"PYTHON {path}", wrap=wrappers.engine_prefix, absolute_frames=True)


NESTED = '''

def test_nested():
    print("============================= test session starts ==============================")
    print("collected 2 items")
    print("=================================== FAILURES ===================================")
    print("_________________________________ test_inner ___________________________________")
    print("E   AssertionError: inner")
    print("=========================== short test summary info ============================")
    print("FAILED tests/inner.py::test_inner - AssertionError: inner")
    print("========================= 1 failed, 1 passed in 0.10s ==========================")
    actual, expected = near(64, 64, 2.0)
    compare(actual, expected)
'''
SUBTESTS = HEAD + '''
def test_sub(subtests):
    for n in (64, 128):
        with subtests.test(msg="size", n=n):
            actual, expected = near(n, n, 4.0)
            compare(actual, expected)


def test_fine():
    pass
'''
SUB_FAILS = [Fails("tests/test_sub.py::test_sub", "mismatch", "sub", frame="compare", numbers=numbers(128, 128, 4.0))]
CHAIN = HEAD + '''
from torch_spyre.execution import kernel_runner


def test_chain():
    try:
        kernel_runner.ras("RAS::PCI::BusFence", {})
    except RuntimeError as error:
        raise ValueError("the layer failed") from error  #@chain


def test_group():
    raise ExceptionGroup("two things", [RuntimeError("SpyreStream: no flex handle for stream id 3"), ValueError("b")])  #@group
'''
CHAIN_FAILS = [
    Fails("tests/test_chain.py::test_chain", "exception", "c", "RuntimeError", "chain"),
    Fails("tests/test_chain.py::test_group", "exception", "g", "ExceptionGroup", "group"),
]


SHARED = HEAD + '''

@pytest.fixture(scope="session")
def engine():
    print('(EngineCore_DP0 pid=77) ERROR 07-01 10:00:00 [core.py:891] RuntimeError: {"errno":"Device or resource busy","name":"RAS::VFIO::DeviceOpenFail"}')
    raise RuntimeError("Engine core initialization failed. See root cause above. Failed core proc(s): {}")  #@engine


@pytest.mark.parametrize("n", [1, 2, 3])
def test_uses(engine, n):
    pass


def test_plain():
    pass
'''
WORKERS = HEAD + '''
import os


@pytest.mark.parametrize("n", range(4))
def test_quiet(n):
    if n in (1, 2):
        os._exit(9)


def test_loud():
    os.abort()  #@loud
'''
UNIT = """
def span(op):
    return op.size > 64  #@span


def walk(op):
    for _ in op.args:  #@walk
        pass
"""
UNITS = HEAD + '''
from unittest.mock import Mock
from torch_spyre._inductor import unit


def test_span():
    unit.span(Mock())


@pytest.mark.parametrize("n", [1, 2])
def test_walk(n):
    unit.walk(Mock())
'''


def shared() -> list[Sample]:
    one, two, three = "tests/test_shared.py", "tests/test_workers.py", "tests/test_units.py"
    return [
        Sample(
            "shared-fixture-busy",
            project(tests__test_shared=SHARED),
            SHORT,
            [Fails(f"{one}::test_uses[{n}]", "exception", "busy", "RuntimeError", "engine", phase="setup") for n in (1, 2, 3)],
            {"busy": "environment"},
            {"passed": 1, "errors": 3},
        ),
        Sample(
            "crash-two-kinds-xdist",
            project(tests__test_workers=WORKERS),
            ["-n", "2", "-q", "--max-worker-restart=6", "tests"],
            [
                *(Fails(f"{two}::test_quiet[{n}]", "crash", "quiet", None) for n in (1, 2)),
                Fails(f"{two}::test_loud", "crash", "loud", "Aborted", None, "/work/plugin/tests/test_workers.py:17"),
            ],
            {"quiet": "runtime", "loud": "runtime"},
            {"passed": 2, "failed": 3},
        ),
        Sample(
            "mock-in-unit",
            {**project(tests__test_units=UNITS), "torch_spyre/_inductor/unit.py": UNIT},
            ["tests"],
            [
                Fails(f"{three}::test_span", "exception", "span", "TypeError", "span"),
                *(Fails(f"{three}::test_walk[{n}]", "exception", "walk", "TypeError", "walk") for n in (1, 2)),
            ],
            {"span": "test-bug", "walk": "test-bug"},
            {"failed": 3},
        ),
        Sample(
            "node-id-not-found",
            project(tests__test_units=UNITS),
            ["tests/test_gone.py::test_x", "-v"],
            [Fails(None, "exception", "gone", "UsageError", phase="session")],
            {"gone": "environment"},
            {},
        ),
    ]


def sessions() -> list[Sample]:
    node = "tests/test_end.py::test_last"
    files = {**project(tests__test_end=ENDS.replace("END", "os.kill(os.getpid(), signal.SIGSEGV)"), tests__test_setups=SETUPS)}
    busy = [f for f in SETUP_FAILS if f.cluster == "busy"]
    return [
        Sample(
            "two-sessions-crash-then-busy",
            files,
            [],
            [Fails(node, "crash", "crash", "Segmentation fault", None, "/work/plugin/tests/test_end.py:16"), *(Fails(f.nodeid, f.kind, "crash", f.error_class, f.frame, phase="setup") for f in busy)],
            {"crash": "runtime"},
            {"errors": 2},
            shell="PYTEST -v tests/test_end.py; PYTEST -v --tb=short tests/test_setups.py -k uses",
        ),
    ]
