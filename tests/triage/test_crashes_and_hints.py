"""Dumps of crashed workers belong to the tests that name them; hints of a message are no finding of their own."""

import pytest

from debug_spyre.triage.carriers import looks_like
from debug_spyre.vocabulary.evidence import Kind, Stage
from test_rules import failure_of

HEAD = "============================= test session starts ==============================\n"
LINE = "_" * 31 + " tests/test_a.py " + "_" * 32 + "\n"


def stack(function, line):
    return (
        "Current thread 0x00007f5dfd85fb80 (most recent call first):\n"
        f'  File "/p/torch_spyre/ops/eager.py", line {line} in copy_from\n'
        f'  File "/p/tests/test_a.py", line 8 in {function}\n\n'
    )


def crashed(*nodeids):
    blocks = "".join(
        f"{LINE}[gw{n}] linux -- Python 3.12.12 /p/bin/python\nworker 'gw{n}' crashed while running '{nodeid}'\n"
        for n, nodeid in enumerate(nodeids)
    )
    lines = "".join(f"FAILED {nodeid}\n" for nodeid in nodeids)
    return (
        "=================================== FAILURES ===================================\n"
        f"{blocks}=========================== short test summary info ============================\n{lines}"
        f"========================= {len(nodeids)} failed in 2.40s ==========================\n"
    )


def test_lines_of_other_workers_between_those_of_a_dump_do_not_end_it(read_text):
    text = (
        f"{HEAD}2 workers [3 items]\n\n[gw0] [ 33%] PASSED tests/test_a.py::test_a[4] Fatal Python error: \n"
        "tests/test_a.py::test_a[5] Aborted\n\n\nThread 0x00007f5dfc5ff6c0 (most recent call first):\n"
        'tests/test_a.py::test_a[6]   File "/p/execnet/gateway_base.py", line 534 in read\n\n'
        f"{stack('test_a', 10)}[gw1] node down: Not properly terminated\n{crashed('tests/test_a.py::test_a[5]')}"
    )
    (failure,) = read_text(text).failures
    assert failure.kind is Kind.CRASH
    assert failure.error_class == "Aborted"
    assert failure.innermost_frame == "/p/torch_spyre/ops/eager.py:10"


@pytest.mark.parametrize("order", [("test_silent", "test_loud"), ("test_loud", "test_silent")])
def test_a_dump_goes_to_the_test_that_it_names(read_text, order):
    text = f"{HEAD}2 workers [2 items]\n\nFatal Python error: Aborted\n\n{stack('test_loud', 10)}"
    evidence = read_text(text + crashed(*(f"tests/test_a.py::{name}" for name in order)))
    found = {f.nodeid.rsplit("::", 1)[-1]: (f.error_class, f.innermost_frame) for f in evidence.failures}
    assert found == {"test_loud": ("Aborted", "/p/torch_spyre/ops/eager.py:10"), "test_silent": (None, None)}


def test_a_hint_that_names_a_setting_is_no_wrong_setting():
    text = (
        "torch._dynamo.exc.Unsupported: Dynamo recompile limit exceeded\n"
        "  Explanation: attempted to recompile too often, exceeding the recompile_limit cache size limit\n"
        "  Hint: To monitor recompilations, enable TORCH_LOGS=recompiles. If recompilations are expected, raise the limit."
    )
    assert failure_of(text).rule == "recompile-limit"


@pytest.mark.parametrize(
    ("text", "stage"),
    [
        ("KeyError: 'AIU_WORLD_RANK_0'", Stage.ENVIRONMENT),
        ("ValueError: VLLM_PLUGINS=spyre_next is not a known plugin", Stage.ENVIRONMENT),
        ("RuntimeError: FLEX_COMPUTE=SENTINEL is not supported on this system", Stage.ENVIRONMENT),
        ("AssertionError: ValueError not raised", Stage.TEST_BUG),
    ],
)
def test_settings_and_errors_that_do_not_come_have_their_stage(text, stage):
    assert failure_of(text).stage is stage


def mismatch(text, largest, relative):
    return failure_of(
        f"AssertionError: {text}\n\nMismatched elements: 128 / 128 (100.0%)\n"
        f"Greatest absolute difference: {largest} at index (0, 0) (up to 1e-05 allowed)\n"
        f"Greatest relative difference: {relative} at index (0, 0) (up to 0.001 allowed)"
    )


@pytest.mark.parametrize(
    ("text", "largest", "relative", "stage"),
    [
        ("Tensor-likes are not close!", 2.5, 1.0, Stage.CODEGEN),
        ("Tensor-likes are not equal!", 7, 3.5, Stage.CODEGEN),
        ("Tensor-likes are not close!", 3.1, 183.9, Stage.NUMERICS),
        ("Tensor-likes are not equal!", 0.0005, 0.001, Stage.NUMERICS),
    ],
)
def test_zeros_and_unequal_exact_values_are_no_rounding(text, largest, relative, stage):
    assert mismatch(text, largest, relative).stage is stage


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        ("self.assertTrue(torch.allclose(a, b))", Kind.MISMATCH),
        ("self.assertFalse(torch.isnan(a).any())", Kind.MISMATCH),
        ("self.assertTrue(card.is_open)", Kind.EXCEPTION),
    ],
)
def test_a_bare_truth_is_a_comparison_where_its_line_compares(line, kind):
    text = "AssertionError: False is not true" if "True(" in line else "AssertionError: True is not false"
    assert failure_of(text, mocked=line).kind is kind


def test_a_list_of_warnings_is_a_fallback_where_the_test_looks_for_them():
    text = "assert not [<warnings.WarningMessage object at 0x7fa5b3dabbd0>]"
    looks = "assert not [w for w in seen if issubclass(w.category, FallbackWarning)]"
    assert failure_of(text, mocked=looks).stage is Stage.FALLBACK
    assert failure_of(text, mocked="assert not seen").stage is not Stage.FALLBACK


@pytest.mark.parametrize("worker", ["worker 'gw0'", "Slave 'gw0'"])
@pytest.mark.parametrize("name", ["tests/test_a.py::test_a[5]", "tests/test_a.py::test_x['q' </script> ☃]"])
@pytest.mark.parametrize("dump", ["", f"Fatal Python error: Aborted\n\n{stack('test_a', 10)}"])
def test_a_worker_that_died_names_its_test_where_the_text_ends_before_the_failures(read_text, worker, name, dump):
    evidence = read_text(f"{HEAD}2 workers [2 items]\n\n{dump}{worker} crashed while running '{name}'\n")
    (failure,) = evidence.failures
    assert (failure.kind, failure.nodeid) == (Kind.CRASH, name)
    assert failure.innermost_frame == ("/p/torch_spyre/ops/eager.py:10" if dump else None)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (f"{HEAD}platform linux -- Python 3.12.1, pytest-9.0.2, pluggy-1.6.0\n", "the beginning of a run of pytest"),
        (f"{HEAD}[gw1] node down: Not properly terminated\n[gw0] node down: x\n", "whose workers died (gw0, gw1)"),
        ("all is well\n", "neither pytest nor unittest wrote"),
    ],
)
def test_a_run_without_an_outcome_is_called_what_it_is(text, says):
    assert says in looks_like(text.encode(), text.splitlines())
