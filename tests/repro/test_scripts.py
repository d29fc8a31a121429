"""Scripts, sizes, fingerprints and pruning: the pure side of a repro."""

import ast
import itertools
import os

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from debug_spyre.examine.call import Call, Program, Tensor, Word, call_from_json, call_to_json
from debug_spyre.examine.typed_call import read_call
from debug_spyre.repro.extraction import prune
from debug_spyre.repro.same_fault import Fingerprint, agree, of_answer, of_failure, stable_words
from debug_spyre.repro.script import MOST_LINES, Fault, count_lines, host_script, script, storage_script
from debug_spyre.repro.simpler import simplifications, variants, with_fills
from debug_spyre.repro.sizes import (
    Place,
    parts_to_try,
    places,
    resize,
    says,
    sizes_above,
    sizes_to_try,
    threshold_in_words,
    tied,
    value_at,
    without_first,
)
from debug_spyre.repro.writing import contiguous, written
from debug_spyre.vocabulary.errors import UsageError
from debug_spyre.vocabulary.evidence import Failure, Kind

EXAMPLES = int(80 * float(os.environ.get("DEBUG_SPYRE_FUZZ", "1")))
MEAN = Call("aten.mean.dim", (Tensor((8, 513)), (-1,), True), {"dtype": Word("torch.float16")})


def host_part(text):
    """What the script does before it touches the device, executed for real."""
    lines = [
        l
        for l in text.splitlines()
        if not l.startswith(("import torch_spyre", "got", "scale", "rtol", "close", "wrong", "print", "raise"))
    ]
    names = {}
    exec(compile("\n".join(lines), "repro.py", "exec"), names)
    return names


def test_a_script_is_short_needs_torch_and_the_backend_only_and_says_its_contract():
    text = script(Program(MEAN), Fault())
    assert count_lines(text) <= MOST_LINES
    assert "exec(" not in text
    imports = [n for n in ast.walk(ast.parse(text)) if isinstance(n, (ast.Import, ast.ImportFrom))]
    assert {a.name for n in imports for a in n.names} == {"torch", "torch_spyre"}
    assert "exit status 0: the fault shows; 3: it does not; other: something else" in text
    assert host_part(text)["want"].shape == (8, 1)


def test_an_error_s_script_tells_the_error_from_another_one_and_from_none():
    text = script(Program(MEAN), Fault(words='does not "support'))
    assert "SystemExit(0 if" in text
    assert count_lines(text) <= MOST_LINES
    ast.parse(text)


def test_an_in_place_op_leaves_the_host_s_input_alone():
    text = script(Program(Call("aten.mul_.Tensor", (Tensor((2, 4)), Tensor((2, 4))))), Fault())
    assert "a.clone()" in text
    names = host_part(text)
    assert not names["a"].equal(names["want"])


def test_the_same_tensor_twice_is_made_once():
    x = Tensor((4, 4))
    text = script(Program(Call("aten.mul.Tensor", (x, x))), Fault())
    assert text.count("torch.randn") == 1
    assert "(a.to(" in text


@pytest.mark.parametrize(
    "tensor",
    [
        Tensor((3, 5)),
        Tensor((5, 3), stride=(1, 5)),
        Tensor((2, 5, 3), stride=(15, 1, 5)),
        Tensor((4, 8), stride=(0, 1)),
        Tensor((4, 8), stride=(16, 1), offset=8),
        Tensor((4, 8), stride=(16, 1)),
        Tensor((2, 3, 4), stride=(40, 8, 1), offset=44),
        Tensor((5,), offset=7),
        Tensor((2, 3, 4), stride=(4, 8, 1)),
        Tensor((3, 4), fill="nan"),
        Tensor((3, 4), fill="inf", dtype="float32"),
        Tensor((3, 4), fill="spread"),
        Tensor((3, 4), fill="last"),
        Tensor((2, 2), fill="values", values=(1.5, float("inf"), float("nan"), -0.0)),
        Tensor((2, 2), stride=(1, 2), fill="values", values=(1, 2, 3, 4), dtype="int64"),
        Tensor((), fill="values", values=(True,), dtype="bool"),
        Tensor((4, 8), stride=(16, 2), offset=7),
        Tensor((), dtype="float32"),
        Tensor((0, 4)),
        Tensor((6,), dtype="int64", high=9),
        Tensor((6, 2), dtype="bool"),
        Tensor((3, 4), fill="ones"),
        Tensor((3, 4), fill="arange", dtype="float32"),
        Tensor((3, 4), dtype="float8_e4m3fn"),
    ],
)
def test_a_tensor_is_made_with_its_shape_strides_offset_and_type(tensor):
    import torch

    words = written(tensor)
    made = eval(words.base + words.view, {"torch": torch})
    assert tuple(made.shape) == tensor.shape
    assert str(made.dtype) == f"torch.{tensor.dtype}"
    if tensor.numel:
        assert made.stride() == (tensor.stride or contiguous(tensor.shape))
        assert made.storage_offset() == tensor.offset


@settings(max_examples=EXAMPLES, deadline=None)
@given(
    st.lists(st.integers(1, 6), min_size=1, max_size=4),
    st.integers(0, 5),
    st.booleans(),
    st.sampled_from(["float16", "bfloat16", "int64", "bool"]),
)
def test_property_a_call_survives_its_json_and_its_script_runs(shape, offset, swap, dtype):
    stride = contiguous(tuple(shape))
    if swap and len(shape) > 1:
        shape, stride = [*shape[:-2], shape[-1], shape[-2]], (*stride[:-2], stride[-1], stride[-2])
    call = Call("aten.clone.default", (Tensor(tuple(shape), dtype, stride, offset),), {"memory_format": None})
    assert call_from_json(call_to_json(call)) == call
    assert tuple(host_part(script(Program(call), Fault()))["want"].shape) == tuple(shape)


@settings(max_examples=EXAMPLES, deadline=None)
@given(st.integers(2, 5000).flatmap(lambda n: st.tuples(st.just(n), st.integers(1, n))))
def test_property_the_smallest_failing_size_is_found_in_few_batches(case):
    start, threshold = case
    known, batches = {}, 0
    while batch := sizes_to_try(known, start):
        batches += 1
        assert batches < 12
        assert not set(batch) & set(known)
        known |= {size: size >= threshold for size in batch}
    assert min([s for s, shows in known.items() if shows] + [start]) == threshold
    if known:
        words = threshold_in_words({**known, start: True})
        assert (f"fails from {threshold} " in words) or threshold == 1


def test_sizes_that_are_no_multiple_of_a_stick_are_named():
    known = {s: s % 64 != 0 for s in (1, 2, 63, 64, 65, 128, 129, 192)}
    assert "no multiple of 64" in threshold_in_words(known)
    small = {1: False, 2: True, 63: True, 64: False, 65: True, 128: False}
    assert threshold_in_words(small) == "fails at sizes that are no multiple of 64 (smallest tried: 2, fine at 1 too)"
    wide = {1: False, 2: True, 64: True, 65: True, 128: False, 192: True, 256: False}
    assert "no multiple of 128" in threshold_in_words(wide)
    assert sizes_above({}, 2) == (63, 64, 65, 128, 129, 192)
    assert sizes_above({256: True}, 130) == (192,)


def test_a_fault_that_comes_and_goes_is_not_called_a_threshold():
    assert "not a simple threshold" in threshold_in_words({5: True, 6: False, 7: True, 9: True})


def test_places_change_together_and_keep_the_order_of_a_view():
    call = Call("aten.mm.default", (Tensor((4, 8)), Tensor((8, 6), stride=(1, 8))))
    assert places(call)[Place(tensor=1, dim=0)] == 8
    smaller = resize(Program(call), (Place(tensor=0, dim=1), Place(tensor=1, dim=0)), 3).call
    assert smaller.args == (Tensor((4, 3)), Tensor((3, 6), stride=(1, 3)))
    named = Call("aten.native_layer_norm.default", (Tensor((4, 8)), (8,), None, None, 1e-5))
    narrow = resize(Program(named), (Place(tensor=0, dim=1), Place(path=("args", 1, 0))), 3).call
    assert narrow.args[:2] == (Tensor((4, 3)), (3,))
    assert Place(path=("args", 4)) not in places(named)


def test_the_same_sizes_of_earlier_calls_change_along():
    exp, mul = Call("aten.exp.default", (Tensor((5, 8)),)), Call("aten.mul.Tensor", (Tensor((5, 8)), Tensor((5, 8))))
    other = Call("aten.mul.Tensor", (Tensor((2, 8)), Tensor((2, 8))))
    program = Program(mul, prelude=(exp, other))
    width = (Place(tensor=0, dim=1), Place(tensor=1, dim=1))
    alike, loose = tied(program, width)
    assert {p.call for p in alike} == {0, -1}
    assert {p.call for p in loose} == {0, -1, -2}
    rows = (Place(tensor=0, dim=0), Place(tensor=1, dim=0))
    assert [{p.call for p in g} for g in tied(program, rows)] == [{0, -2}]
    smaller = resize(program, loose, 3)
    assert [t.shape for t in smaller.tensors()] == [(5, 3), (2, 3), (2, 3), (5, 3), (5, 3)]
    assert says(loose) == "a.shape[1] = b.shape[1] (and of 2 earlier calls)"
    assert value_at(smaller, width[0]) == 3


def test_equal_earlier_calls_become_a_loop_and_the_judged_call_may_be_repeated():
    exp = Call("aten.exp.default", (Tensor((1,)),))
    text = script(Program(MEAN, prelude=(exp,) * 3), Fault())
    assert "for _ in range(3):\n    torch.ops.aten.exp.default(" in text
    assert count_lines(text) <= MOST_LINES
    often = script(Program(MEAN, repeat=64), Fault())
    assert "for number in range(64):" in often and count_lines(often) <= MOST_LINES
    ast.parse(often)


def test_what_lay_on_the_cpu_in_the_call_stays_there_and_copies_to_it_stay_copies():
    up = Call("aten._to_copy.default", (Tensor((2,), host=True),), {"device": Word('torch.device("spyre")')})
    assert 'a, device=torch.device("spyre")' in script(Program(up), Fault())
    down = Call("aten._to_copy.default", (Tensor((2,)),), {"device": Word('torch.device("cpu")')})
    assert 'a.to("spyre"), device=torch.device("cpu")' in script(Program(down), Fault())
    assert "spyre" not in host_script(down) and "cpu" not in host_script(down)


def test_a_view_is_taken_on_the_device_too():
    call = Call("aten.exp.default", (Tensor((4, 8), stride=(16, 1), offset=8),))
    assert 'a.to("spyre")[:, 8:]' in script(Program(call), Fault())
    wide = Call("aten.exp.default", (Tensor((4, 8), stride=(0, 1)),))
    assert 'a.to("spyre").expand(4, 8)' in script(Program(wide), Fault())


def test_integers_are_compared_exactly_and_a_fallback_is_looked_for_in_the_warnings():
    exact = Call("aten.add.Tensor", (Tensor((2,), "int64", high=9), 1), exact=True)
    assert "wrong = got != want" in script(Program(exact), Fault())
    text = script(Program(exact), Fault(fallback=True))
    assert "FallbackWarning" in text and count_lines(text) <= MOST_LINES
    ast.parse(text)


def test_another_shape_or_type_is_told_before_any_element_is_looked_at():
    text = script(Program(MEAN), Fault(kinds=("form",)))
    assert "isclose" not in text and "(got.dtype, got.shape) != (want.dtype, want.shape)" in text
    found = of_answer({"exit": 2, "error": {"cls": "x.E", "message": "m"}, "difference": {"kinds": ["form"]}})
    assert found == Fingerprint("difference", kinds=("form",))


def test_dimensions_that_are_gone_leave_the_names_of_the_others():
    rows, width = (Place(tensor=0, dim=0),), (Place(tensor=0, dim=1), Place(tensor=1, dim=0))
    assert without_first(rows, [1, 0]) == ()
    assert says(without_first(width, [1, 0])) == "a.shape[0] = b.shape[0]"
    earlier = (Place(tensor=0, dim=0, call=-1),)
    assert without_first(earlier, [1, 0]) == earlier


def test_saved_tensors_are_cut_to_what_the_call_needs(tmp_path):
    import torch

    file = str(tmp_path / "in'puts.pt")
    torch.save({"arg0": torch.arange(40.0).view(5, 8), "arg1": torch.arange(50.0)}, file)
    call = Call("aten.add.Tensor", (
        Tensor((5, 8), "float32", fill="file", file=file, key="arg0"),
        Tensor((5, 8), "float32", stride=(10, 1), offset=2, fill="file", file=file, key="arg1"),
    ))  # fmt: skip
    both = (Place(tensor=0, dim=0), Place(tensor=1, dim=0))
    program = resize(Program(call), both, 2)
    want = host_part(script(program, Fault()))["want"]
    assert want.tolist() == (torch.arange(40.0).view(5, 8)[:2] + torch.arange(50.0).view(5, 10)[:2, 2:]).tolist()
    made = {}
    exec(storage_script(program), made)
    assert [tuple(t.shape) for t in made["wanted"].values()] == [(2, 8), (20,)]


def test_simpler_forms_are_contiguous_native_and_of_fewer_arguments_and_dimensions():
    call = Call("aten.cat.default", ((Tensor((1, 3), "float32"), Tensor((1, 4), "float32", offset=2)), 1), {"x": 1})
    texts = {text for text, _ in simplifications(Program(call))}
    assert {"contiguous inputs", "float16", "without x=", "without tensor 0 of the list", "one dimension less"} <= texts
    native = dict(simplifications(Program(call)))["float16"].call
    assert {t.dtype for t in native.tensors()} == {"float16"}
    tight = Program(Call("aten.exp.default", (Tensor((3,), "float32"),), rtol=1e-4, scale_tol=1e-5))
    rounded = dict(simplifications(tight))["float16"].call  # else its ordinary rounding would pass for the fault
    assert rounded.rtol >= 2**-7 and rounded.scale_tol >= 2**-7
    assert not simplifications(Program(Call("aten.exp.default", (Tensor((3,)),))))
    index = Call("aten.neg.default", (Tensor((3,), "int64", low=-4, high=9),))
    assert [text for text, _ in simplifications(Program(index))] == ["integers 0", "integers below 2"]
    below_two = dict(simplifications(Program(index)))["integers below 2"]
    assert [text for text, _ in simplifications(below_two)] == ["integers 0"]
    assert not simplifications(dict(simplifications(Program(index)))["integers 0"])


def test_other_values_are_tried_where_random_ones_hide_the_fault():
    program = Program(Call("aten.exp.default", (Tensor((3,)),)))
    assert [p.call.args[0].fill for p in variants(program)] == ["randn", "last", "spread"]
    assert [p.call.args[0].fill for p in variants(program, ("lost",))][-2:] == ["nan", "inf"]
    saved = Program(Call("aten.exp.default", (Tensor((3,), fill="file", file="x.pt", key="a"),)))
    assert [p.call.args[0].fill for _, p in with_fills(saved)] == ["randn", "rand", "nan", "inf", "ones"]


@settings(max_examples=EXAMPLES, deadline=None)
@given(st.sets(st.integers(0, 40), min_size=1, max_size=5), st.integers(41, 60))
def test_property_delta_debugging_ends_with_just_the_needed_parts(needed, count):
    whole, pieces = tuple(range(count)), 2
    while True:
        fitting = [part for part in parts_to_try(whole, pieces) if needed <= set(part)]
        if fitting:
            whole, pieces = min(fitting, key=len), 2
        elif pieces >= len(whole):
            break
        else:
            pieces = min(2 * pieces, len(whole))
    assert set(whole) == needed


def test_words_are_read_as_people_type_them():
    call = read_call("aten::mean.dim", ["f16[8,513]", "[-1]", "True", "dtype=torch.float32"])
    assert call == Call("aten.mean.dim", (Tensor((8, 513)), (-1,), True), {"dtype": Word("torch.float32")})
    assert read_call("torch.ops.aten.relu", ["bf16[4,2]@1,4+3"]).args == (Tensor((4, 2), "bfloat16", (1, 4), 3),)
    assert read_call("aten.relu", ["f16[]"]).op == "aten.relu.default"


@pytest.mark.parametrize(
    "words",
    [
        ["mean"],
        ["aten.mean.dim", "f17[2]"],
        ["aten.mean.dim", "__import__('os')"],
        ["aten.mean.dim", "f16[2,2]@1"],
        ["aten.x.y", "a=1", "2"],
    ],
)
def test_words_of_no_known_form_are_refused_with_an_example(words):
    with pytest.raises(UsageError) as refused:
        read_call(words[0], words[1:])
    assert "repro --op" in refused.value.next


ERROR = "backend='inductor' raised:\nUnsupported: Spyre backend does not support: aten::mm: sizes [(64, 63)] are not multiples of 64\n\nSet TORCHDYNAMO_VERBOSE=1"


def test_the_stable_words_of_an_error_stand_in_it_and_have_no_numbers():
    words = stable_words(ERROR)
    assert words in ERROR
    assert "Spyre backend does not support" in words
    assert not any(c.isdigit() for c in words)


@settings(max_examples=EXAMPLES, deadline=None)
@given(st.text(max_size=120))
def test_property_stable_words_are_part_of_any_text(text):
    assert stable_words(text) in text


def test_a_fault_is_the_same_by_kind_words_and_pattern():
    shape = stable_words(ERROR)
    same = Fingerprint("error", "Unsupported", shape)
    assert agree(same, Fingerprint("error", "InductorError", shape + " anew"))[0]
    assert not agree(same, Fingerprint("error", "RuntimeError", "the card was not found at all"))[0]
    assert not agree(same, Fingerprint("difference"))[0]
    assert agree(
        Fingerprint("difference", patterns=("period",)), Fingerprint("difference", patterns=("period", "overflow"))
    )[0]
    assert not agree(Fingerprint("difference", patterns=("roll",)), Fingerprint("difference", patterns=("scale",)))[0]
    assert not agree(Fingerprint("difference", kinds=("nan",)), Fingerprint("difference", kinds=("value",)))[0]
    assert not agree(Fingerprint("fallback"), Fingerprint("difference"))[0]


def test_what_a_trial_or_a_failure_showed_becomes_a_fingerprint():
    assert of_answer({"exit": 0, "difference": {"wrong": 3, "kinds": ["nan"]}}) == Fingerprint(
        "difference", kinds=("nan",)
    )
    assert of_answer({"exit": 1, "difference": {"wrong": 0}}) is None
    assert of_answer({"exit": 2, "error": {"cls": "a.b.Unsupported", "message": ERROR}}).error_class == "Unsupported"
    assert of_answer({"exit": None, "crash": "killed"}).kind == "crash"
    failure = Failure("t", "call", Kind.MISMATCH, pattern="every 2nd row (period 2, phase 1) overflows near 65504")
    assert of_failure(failure) == Fingerprint("difference", patterns=("period", "overflow"))


SOURCE = '''
from __future__ import annotations
import os, sys
import pytest
import torch as t
from a import b as c

pytestmark = pytest.mark.spyre
LIMIT = 3
UNUSED = sys.path

@pytest.fixture
def device():
    return helper(LIMIT)

@pytest.fixture(autouse=True)
def always():
    yield c

def helper(n):
    """doc"""
    return t.zeros(n)

def other():
    return UNUSED

@pytest.mark.parametrize("x", [1, 2])
def test_it(device, x):
    assert device is not x

def test_another():
    assert other()
'''


def test_pruning_keeps_what_the_test_reaches_and_nothing_else():
    text = prune(SOURCE, "test_it")
    ast.parse(text)
    assert text.startswith("from __future__ import annotations\n")
    for kept in (
        "pytestmark",
        "LIMIT = 3",
        "def device",
        "def always",
        "def helper",
        "import torch as t",
        "from a import b as c",
        'parametrize("x"',
    ):
        assert kept in text, kept
    for gone in ("test_another", "def other", "UNUSED", "import os"):
        assert gone not in text, gone


def test_pruning_takes_fixtures_from_conftest_too():
    text = prune(
        "def test_it(card): pass\n",
        "test_it",
        fixtures_from=["import pytest\n@pytest.fixture\ndef card(): pass\ndef no(): pass\n"],
    )
    assert "def card" in text
    assert "def no" not in text


def test_every_test_can_be_pruned_and_a_missing_one_is_said():
    for name in itertools.islice(("test_it", "test_another"), 2):
        ast.parse(prune(SOURCE, name))
    with pytest.raises(KeyError):
        prune(SOURCE, "test_missing")


def test_modules_beside_the_test_are_written_into_the_file_and_work():
    helper = '"""doc"""\nfrom __future__ import annotations\nimport math\nSCALE = 3\n\ndef scaled(x):\n    return SCALE * math.floor(x)\n'
    deeper = "from helper import scaled as s\n\ndef twice(x):\n    return s(x) * 2\n"
    source = "import helper\nfrom deeper import twice\nimport json\n\ndef test_it():\n    assert helper.scaled(2.5) == 6 and twice(1) == 6\n"
    text = prune(source, "test_it", local={"helper": helper, "deeper": deeper, "unused": "x = 1\n"})
    names = {}
    exec(compile(text, "repro_test.py", "exec"), names)
    names["test_it"]()
    assert "unused" not in text
    assert "import helper" not in text


def test_a_tensor_that_lies_on_the_card_in_another_way_is_made_so_and_the_control_needs_none_of_it():
    from debug_spyre.examine.call import Call, Layout, Program, Tensor, call_from_json, call_to_json
    from debug_spyre.repro.script import Fault, script

    layout = Layout((128, 64), (2, 64, 64), (4096, 1, 64), "SEN169_FP16", "STANDARD")
    call = Call("aten.add.Tensor", (Tensor((8, 64), stride=(64, 1), offset=512, layout=layout), 1))
    assert call_from_json(call_to_json(call)) == call
    text = script(Program(call), Fault(words="stick-aligned"))
    assert "a = torch.randn(128, 64, dtype=torch.float16)" in text
    assert "device_layout=SpyreTensorLayout([2, 64, 64], [4096, 1, 64], DataFormats.SEN169_FP16" in text
    assert "from torch_spyre._C import DataFormats, ElementArrangement, SpyreTensorLayout" in text
    compile(text, "repro.py", "exec")
    on_cpu = script(Program(call), Fault(words="stick-aligned"), device="cpu")
    assert "SpyreTensorLayout" not in on_cpu and ".as_strided((8, 64), (64, 1), 512)" in on_cpu


def test_two_refusals_are_one_fault_only_where_they_say_the_same():
    from debug_spyre.repro.same_fault import is_same_refusal

    stick = "Unsupported: Spyre backend does not support: graph input arg0_1 has a non-stick-aligned device stick coordinate (i0 + 8)"
    other = "Unsupported: Spyre backend does not support: graph input arg1_1 has a non-stick-aligned device stick coordinate (i1 + 16)"
    assert is_same_refusal(stick, other)
    assert not is_same_refusal(stick, "RuntimeError: ContextNotCreated: the runtime context has not been created")
    assert not is_same_refusal(stick, "Unsupported: no mechanism to resolve stick incompatibility")


@pytest.mark.parametrize(
    "line", ["import helper, pytest, os", "import os, helper as h, pytest", "import pytest\nimport os, helper"]
)
def test_a_module_that_is_written_in_takes_no_other_of_its_import_statement_away(line):
    used = "h" if " as h" in line else "helper"
    source = f"{line}\n@pytest.mark.parametrize('n', [1])\ndef test_it(n):\n    assert {used}.x == n and os.sep\n"
    text = prune(source, "test_it", local={"helper": "x = 1\n"})
    names = {alias.name for node in ast.parse(text).body if isinstance(node, ast.Import) for alias in node.names}
    assert names == {"pytest", "os"}
    exec(compile(text, "made", "exec"), space := {})  # noqa: S102
    space["test_it"](1)
