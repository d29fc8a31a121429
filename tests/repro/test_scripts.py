"""Scripts, sizes, fingerprints and pruning: the pure side of a repro."""

import ast
import itertools
import os

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from debug_spyre.core.errors import UsageError
from debug_spyre.core.evidence import Failure, Kind
from debug_spyre.core.repro.call import Call, Tensor, Word, call_from_json, call_to_json
from debug_spyre.core.repro.fingerprint import Fingerprint, agree, of_answer, of_failure, stable_words
from debug_spyre.core.repro.pruning import prune
from debug_spyre.core.repro.script import MOST_LINES, Fault, contiguous, count_lines, make, script
from debug_spyre.core.repro.shrink import Place, places, resize, sizes_to_try, threshold_in_words
from debug_spyre.core.repro.words import read_call

EXAMPLES = int(80 * float(os.environ.get("DEBUG_SPYRE_FUZZ", "1")))
MEAN = Call("aten.mean.dim", (Tensor((8, 513)), (-1,), True), {"dtype": Word("torch.float16")})


def host_part(text):
    """What the script does before it touches the device, executed for real."""
    lines = [
        l
        for l in text.splitlines()
        if not l.startswith(("import torch_spyre", "got", "scale", "wrong", "print", "raise"))
    ]
    names = {}
    exec(compile("\n".join(lines), "repro.py", "exec"), names)
    return names


def test_a_script_is_short_needs_torch_and_the_backend_only_and_says_its_contract():
    text = script(MEAN, Fault())
    assert count_lines(text) <= MOST_LINES
    assert "exec(" not in text
    imports = [n for n in ast.walk(ast.parse(text)) if isinstance(n, (ast.Import, ast.ImportFrom))]
    assert {a.name for n in imports for a in n.names} == {"torch", "torch_spyre"}
    assert "exit status 0: the fault shows; 1: it does not" in text
    assert host_part(text)["want"].shape == (8, 1)


def test_an_error_s_script_tells_the_error_from_another_one_and_from_none():
    text = script(MEAN, Fault(words='does not "support'))
    assert "SystemExit(0 if" in text
    assert count_lines(text) <= MOST_LINES
    ast.parse(text)


def test_an_in_place_op_leaves_the_host_s_input_alone():
    text = script(Call("aten.mul_.Tensor", (Tensor((2, 4)), Tensor((2, 4)))), Fault())
    assert "a.clone()" in text
    names = host_part(text)
    assert not names["a"].equal(names["want"])


def test_the_same_tensor_twice_is_made_once():
    x = Tensor((4, 4))
    text = script(Call("aten.mul.Tensor", (x, x)), Fault())
    assert text.count("torch.randn") == 1
    assert "(a.to(" in text


@pytest.mark.parametrize(
    "tensor",
    [
        Tensor((3, 5)),
        Tensor((5, 3), stride=(1, 5)),
        Tensor((2, 5, 3), stride=(15, 1, 5)),
        Tensor((4, 8), stride=(0, 1)),
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

    made = eval(make(tensor), {"torch": torch})
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
    assert tuple(host_part(script(call, Fault()))["want"].shape) == tuple(shape)


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
        words = threshold_in_words(known, start)
        assert (f"fails from {threshold} " in words) or threshold == 1


def test_sizes_that_are_no_multiple_of_a_stick_are_named():
    known = {s: s % 64 != 0 for s in (1, 2, 63, 64, 65, 128, 129, 192)}
    assert "no multiple of 64" in threshold_in_words(known, 200)


def test_a_fault_that_comes_and_goes_is_not_called_a_threshold():
    assert "not a simple threshold" in threshold_in_words({5: True, 6: False, 7: True}, 9)


def test_places_change_together_and_keep_the_order_of_a_view():
    call = Call("aten.mm.default", (Tensor((4, 8)), Tensor((8, 6), stride=(1, 8))))
    assert places(call)[Place(tensor=1, dim=0)] == 8
    smaller = resize(call, (Place(tensor=0, dim=1), Place(tensor=1, dim=0)), 3)
    assert smaller.args == (Tensor((4, 3)), Tensor((3, 6), stride=(1, 3)))
    named = Call("aten.native_layer_norm.default", (Tensor((4, 8)), (8,), None, None, 1e-5))
    assert resize(named, (Place(tensor=0, dim=1), Place(path=("args", 1, 0))), 3).args[:2] == (Tensor((4, 3)), (3,))
    assert Place(path=("args", 4)) not in places(named)


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


def test_what_a_trial_or_a_failure_showed_becomes_a_fingerprint():
    assert of_answer({"exit": 0, "difference": {"wrong": 3}}).kind == "difference"
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
