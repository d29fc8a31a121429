"""Every rule matches its example, first; what no rule knows is listed; the user's own rules come first."""

import pytest

from debug_spyre.triage.block import Block
from debug_spyre.triage.io.logs_reader import all_rules
from debug_spyre.triage.judging import judge
from debug_spyre.triage.rules import RULES
from debug_spyre.vocabulary.errors import BadInputError
from debug_spyre.vocabulary.evidence import Kind, Stage

BY_KIND = {
    "hang": Kind.TIMEOUT,
    "host-memory": Kind.CRASH,
    "process-died": Kind.CRASH,
    "tracer-recursion": Kind.COMPILE,
}


KERNEL = (
    "/x/torch_spyre/ops/eager.py:253: in dispatch",
    "/x/torch/_dynamo/external_utils.py:69: in inner",
    "/x/torch/_compile.py:54: in inner",
)


def failure_of(text, *, captured=(), kind=None, rules=RULES, frames=("tests/test_a.py:3: in test_a",), mocked=None):
    block = Block(title="test_a", nodeid="tests/test_a.py::test_a", number=1)
    for line in frames:
        block.feed(line)
    if mocked:
        block.feed(f"    {mocked}")
    for line in text.split("\n"):
        block.feed(f"E   {line}")
    if captured:
        block.feed("----------------------------- Captured stderr call -----------------------------")
        for line in captured:
            block.feed(line)
    return judge(block, source="log.txt", kind=kind, rules=rules)


@pytest.mark.parametrize("rule", RULES, ids=lambda r: r.id)
def test_each_rule_is_the_first_that_matches_its_example(rule):
    mocked = rule.example if rule.where == "mock" else None
    text = (
        "AssertionError: Tensor-likes are not close!\nMismatched elements: 4 / 4 (100.0%)" if mocked else rule.example
    )
    if ": " not in text.split("\n")[0][:60] and not text.startswith("["):
        text = f"RuntimeError: {text}"
    outside = {"outside": ("spyre_inference/layers.py:9: in forward",), "kernel": KERNEL}.get(rule.where, ())
    failure = failure_of(
        text, kind=BY_KIND.get(rule.id), mocked=mocked, frames=("tests/test_a.py:3: in test_a", *outside)
    )
    assert failure.rule == rule.id
    assert failure.stage is rule.stage
    assert failure.reason == rule.reason


def test_recursion_of_eager_kernels_is_told_from_any_other():
    text = "RecursionError: maximum recursion depth exceeded while calling a Python object"
    assert failure_of(text, frames=("tests/test_a.py:3: in test_a", *KERNEL)).rule == "eager-forms"
    assert (
        failure_of(text, frames=("tests/test_a.py:3: in test_a", "spyre_inference/layers.py:9: in forward")).rule
        is None
    )


def test_rule_ids_are_unique():
    assert len({r.id for r in RULES}) == len(RULES)


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("Unsupported: Spyre backend does not support: type conversion from torch.int64 to torch.float16", "codegen-type-conversion"),
        ("RuntimeError: Spyre backend does not support dtype Double", "no-dtype"),
        ("Unsupported: Spyre backend does not support: something entirely new", "backend-unsupported"),
        ('RuntimeError: {"category":"software","description":"The SPYRE_DEVICES environment variable must include","name":"RAS::CONFIGURATION::IncorrectSpyreDevicesVar"}', "setting"),
        ("ValueError: SENCORES must be one of 1, 2, 4, 8, 16, 32", "setting"),
        ("ModuleNotFoundError: No module named 'vllm.attention.layer'", "moved-api"),
    ],
)  # fmt: skip
def test_texts_that_look_alike_are_told_apart(text, rule):
    assert failure_of(text).rule == rule


def test_a_lower_case_module_name_is_no_environment_variable():
    text = "torch_spyre._inductor.errors.Unsupported: Spyre backend does not support: Unexpected stick expression: expected Mod"
    assert failure_of(text).rule == "layout-stick-expression"


def test_busy_is_no_hardware_error():
    busy = (
        '{"errno":"Device or resource busy","name":"RAS::VFIO::DeviceOpenFail","description":"address was not found"}'
    )
    failure = failure_of(f"RuntimeError: {busy}")
    assert (failure.stage, failure.tags) == (Stage.ENVIRONMENT, ("card-busy",))
    other = failure_of("RuntimeError: " + busy.replace("Device or resource busy", "No such device"))
    assert other.rule == "device-open"


def test_a_message_type_that_does_not_matter_is_no_cause():
    line = '[x]  ERRR 24.01.2026 04:30:54 [ ras_base.hpp: 94] {"category":"software","name":"RAS::VFMSG::UnsupportedMessageType"}'
    failure = failure_of("RuntimeError: shapes differ", captured=[line])
    assert failure.rule is None
    assert "device-error" not in failure.tags


def test_the_fault_counts_and_not_the_state_that_it_left():
    left = '{"code":"0x8758","name":"RAS::STREAM::StreamInErrorState","message":"m"}'
    fault = 'ERRR {"code":"0x7b1b","name":"RAS::COMPUTE::ComputeHardwareError","message":"m"}'
    assert "ComputeHardwareError" in failure_of(f"RuntimeError: {left}", captured=[fault]).cause


def test_the_backends_last_words_stand_in_the_captured_text():
    command = "torch._inductor.exc.InductorError: CalledProcessError: Command '['dxp_standalone', '-d', '/tmp/x_1']' died with <Signals.SIGABRT: 6>."
    failure = failure_of(command, captured=["  what():  DtException: Illegal ddl, file /p/ddl.cpp line 1142"])
    assert failure.kind is Kind.COMPILE
    assert failure.inner_class == "CalledProcessError"
    assert failure.cause.startswith("DtException: Illegal ddl")


def test_the_problem_block_of_a_long_message_is_the_cause():
    text = "NotImplementedError: buf1 (Pointwise): no mechanism to resolve stick incompatibility\n  Inputs:\n    buf0\n  Problem:\n    buf0 --> Out: No mechanism to gather"
    failure = failure_of(text)
    assert failure.key == "buf0 --> Out: No mechanism to gather"
    assert (
        failure.cause
        == "buf1 (Pointwise): no mechanism to resolve stick incompatibility; buf0 --> Out: No mechanism to gather"
    )
    assert failure.stage is Stage.LAYOUT


ADVICE = "Set TORCHDYNAMO_VERBOSE=1 for the internal stack trace. For even more developer context, set TORCH_LOGS"


@pytest.mark.parametrize("end", [f"\n\n{ADVICE}", f"\n{ADVICE}", "\n\nHint: something else", ""])
@pytest.mark.parametrize("where", ["\n    ", " "])
def test_a_message_of_several_lines_keeps_its_headline_and_its_problem_and_no_advice(where, end):
    text = f"RuntimeError: buf1 (Pointwise): no mechanism to resolve it\n  Inputs:\n    a\n\n  Problem:{where}a STL 0 --> Out STL 0{end}"
    assert failure_of(text).cause == "buf1 (Pointwise): no mechanism to resolve it; a STL 0 --> Out STL 0"


def test_a_comparison_under_mocks_is_a_test_bug_and_one_without_is_not():
    text = "AssertionError: Tensor-likes are not close!\nMismatched elements: 20358 / 20480 (99.4%)\nGreatest absolute difference: 8.0 at index (0,) (up to 0.1 allowed)"
    mocked = failure_of(text, mocked='with patch(_LAUNCH_JOBPLAN), patch("subprocess.run"):')
    assert (mocked.kind, mocked.stage) == (Kind.MISMATCH, Stage.TEST_BUG)
    assert failure_of(text).stage is Stage.NUMERICS


@pytest.mark.parametrize(
    ("line", "mocked"),
    [
        ("with patch(_LAUNCH_JOBPLAN), patch(_PREPARE_KERNEL):", True),
        ('with patch("subprocess.run"):', True),
        ('mocker.patch("torch_spyre.execution.kernel_runner.launch")', True),
        ('monkeypatch.setattr(torch_spyre._C, "launch", fake)', True),
        ("with patch.dict(os.environ, {'SENCORES': '1'}):", False),
        ("config = MagicMock()", False),
        ("with patch_backend_list():", False),
        ('monkeypatch.setenv("LX_PLANNING", "1")', False),
    ],
)
def test_only_replacing_the_device_path_makes_a_comparison_a_test_bug(line, mocked):
    text = "AssertionError: Tensor-likes are not close!\nMismatched elements: 4 / 4 (100.0%)"
    assert (failure_of(text, mocked=line).rule == "mocked-device") is mocked


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("assert 4 == 16", Kind.MISMATCH),
        (
            "assert torch.Size([2, 3]) == torch.Size([3, 2])\n +  where torch.Size([2, 3]) = tensor(...).shape",
            Kind.MISMATCH,
        ),
        (
            "assert False\n +  where False = <built-in method allclose of type object at 0x7f>(tensor(1), tensor(2))",
            Kind.MISMATCH,
        ),
        ("AssertionError: Tuples differ: (1, 2) != (2, 1)", Kind.MISMATCH),
        ("AssertionError: 3 != 4", Kind.MISMATCH),
        ("AssertionError: False is not true", Kind.EXCEPTION),
        ("assert -6 == 0\n +  where -6 = CompletedProcess(args=['x'], returncode=-6).returncode", Kind.EXCEPTION),
        ("AssertionError: the engine must be idle", Kind.EXCEPTION),
        ("Failed: Timeout (>5.0s) from pytest-timeout.", Kind.TIMEOUT),
        ("subprocess.TimeoutExpired: Command 'x' timed out after 5 seconds", Kind.TIMEOUT),
        ("torch._dynamo.exc.BackendCompilerFailed: backend='inductor' raised:\nUnsupported: x", Kind.COMPILE),
        ("ImportError: cannot import name 'x' from 'torch._inductor'", Kind.EXCEPTION),
    ],
)
def test_the_kind_follows_from_what_failed(text, kind):
    assert failure_of(text).kind is kind


def test_an_assertion_on_fallbacks_is_about_a_fallback():
    text = "assert ['aten.sin.default is falling back to cpu'] == []\n  Left contains one more item"
    failure = failure_of(text)
    assert (failure.stage, failure.key) == (Stage.FALLBACK, "aten.sin.default")


def test_a_critical_line_before_the_traceback_tells_two_causes_of_one_text_apart():
    one, other = (
        failure_of(
            "LookupError: the launch did not work", captured=[f"CRITICAL torch_spyre.runtime:runner.py:88 {text}"]
        )
        for text in ("queue 3 is gone", "fence 7 timed out")
    )
    assert (one.key, other.key) == ("queue 3 is gone", "fence 7 timed out")
    known = failure_of("LookupError: the launch did not work", captured=["CRITICAL x:y.py:8 Bundle not found: /tmp/k"])
    assert known.rule == "stale-artefacts"
    stick = failure_of(
        "LookupError: no",
        captured=["C0402 10:36:34.14 61692 torch/_inductor/scheduler.py:17] [0/0] Unexpected stick expression d0"],
    )
    assert stick.rule == "layout-stick-expression"


def test_an_engine_that_died_is_explained_by_its_own_process():
    captured = [
        "(EngineCore_DP0 pid=7) ERROR 06-02 12:00:00 [core.py:7] torch_spyre._inductor.errors.Unsupported: Spyre backend does not support: Unexpected stick expression d1",
        "(EngineCore_DP0 pid=7) Traceback (most recent call last):",
        "(EngineCore_DP0 pid=7) RuntimeError: EngineCore encountered an issue.",
    ]
    failure = failure_of("RuntimeError: Engine core initialization failed. See root cause above.", captured=captured)
    assert failure.rule == "layout-stick-expression"
    assert "Unexpected stick expression" in failure.cause
    assert failure_of("RuntimeError: Engine core initialization failed. See root cause above.").rule == "engine-core"


def test_an_unknown_text_has_no_rule_and_is_listed(read_text):
    log = (
        "=================================== FAILURES ===================================\n"
        "____________________________________ test_a ____________________________________\n"
        "tests/test_a.py:3: in test_a\n    f()\nE   LookupError: the purple elephant\n"
        "=========================== short test summary info ============================\n"
        "FAILED tests/test_a.py::test_a - LookupError: the purple elephant\n"
        "============================== 1 failed in 0.10s ===============================\n"
    )
    evidence = read_text(log)
    assert evidence.failures[0].rule is None
    assert [u.text for u in evidence.unrecognised] == ["LookupError: the purple elephant"]
    assert evidence.unrecognised[0].line == 2


RULE = '[[rule]]\nid = "elephant"\nstage = "environment"\nreason = "known"\npattern = "purple (?P<key>\\\\w+)"\ntags = ["known"]\n'


def test_the_users_rules_come_first_and_are_shown(tmp_path):
    path = tmp_path / "rules.toml"
    path.write_text(RULE)
    failure = failure_of("LookupError: the purple elephant", rules=all_rules(path))
    assert (failure.rule, failure.stage, failure.tags, failure.key) == (
        "elephant",
        Stage.ENVIRONMENT,
        ("known",),
        "elephant",
    )


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("", "no [[rule]] tables"),
        ("[[rule]\n", "TOML|Expected"),
        (RULE.replace("environment", "weather"), "weather"),
        (RULE.replace("purple (", "purple (("), "pattern"),
        (RULE + 'where = "nowhere"\n', "nowhere"),
        (RULE + 'example = "green"\n', "example"),
        (RULE.replace('id = "elephant"\n', ""), "id is missing"),
    ],
)
def test_rules_that_are_wrong_are_refused_with_the_place(tmp_path, text, what):
    path = tmp_path / "rules.toml"
    path.write_text(text)
    with pytest.raises(BadInputError) as caught:
        all_rules(path)
    assert any(part in caught.value.what for part in what.split("|")), caught.value.what
    assert caught.value.next


def test_rules_that_are_not_there_are_refused(tmp_path):
    with pytest.raises(BadInputError, match="cannot read"):
        all_rules(tmp_path / "none.toml")
