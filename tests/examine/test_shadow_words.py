"""A shadow report in words."""

from debug_spyre.examine.shadow_report import argument_text, shadow_lines


def op(name="aten.mul.Tensor", **more):
    return {"op": name, "site": "plugin/x.py:3", "calls": 2, "checked": 2, "off": 0, "unchecked": {}, **more}


SUSPECT = {
    "op": "aten.mean.dim", "site": "plugin/rms.py:18", "again": "is wrong again", "error": None,
    "off": {"wrong": 4, "total": 8, "max_abs": "inf", "ratio": "inf"}, "pattern": None,
    "call": {"op": "aten.mean.dim", "args": [{"tensor": {"shape": [4, 256], "dtype": "float16", "stride": [1, 4], "offset": 8}}, [-1], True]},
}  # fmt: skip


def text(report, before=()):
    lines = shadow_lines(report, before)
    assert len(lines) <= 9
    return "\n".join(lines)


def test_the_suspect_with_its_arguments():
    said = text(
        {"outcomes": {"t": "failed"}, "ops": [op("aten.mean.dim", off=1, site="plugin/rms.py:18")], "suspect": SUSPECT}
    )
    assert "first op that differs: aten.mean.dim at plugin/rms.py:18: 4 of 8 elements" in said
    assert "f16[4,256]@1,4+8, [-1], True" in said


def test_a_failure_that_does_not_show_op_by_op_sends_to_the_ladder():
    said = text({"outcomes": {"a": "passed", "b": "failed"}, "ops": [op()], "suspect": None}, before=["a"])
    assert "0 of 1 known failures show op by op: they are compile-only" in said
    assert "1 tests fail only op by op (b)" in said


def test_nothing_checked_is_no_all_clear():
    assert "nothing can be said" in text({"outcomes": {"t": "passed"}, "ops": [op(checked=0)], "suspect": None})
    assert "no test ran" in text({"outcomes": {}, "ops": [], "suspect": None})


def test_ops_without_a_cpu_kernel_are_named_as_not_checked():
    said = text(
        {
            "outcomes": {"t": "passed"},
            "ops": [op(), op("spyre.odd.default", unchecked={"no CPU kernel": 3})],
            "suspect": None,
        }
    )
    assert "not checked (no CPU kernel): spyre.odd.default" in said


def test_an_op_that_only_the_card_refuses():
    said = text(
        {
            "outcomes": {"t": "failed"},
            "ops": [op(refused=True)],
            "suspect": {**SUSPECT, "off": None, "error": "Unsupported: no"},
        }
    )
    assert "raises on the card, not on the CPU: Unsupported: no" in said


def test_words_for_arguments():
    assert argument_text({"tensor": {"shape": [], "dtype": "bfloat16", "stride": None, "offset": 0}}) == "bf16[]"
    assert argument_text({"word": "torch.float16"}) == "torch.float16"
    assert argument_text([1, "x", None]) == "[1,'x',None]"
