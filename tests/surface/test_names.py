"""An op is found however its name was written, and a name that is none gets near ones."""

import os

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from debug_spyre.surface.names import OpName, from_path, from_schema_name, names_in, near, parse

FUZZ = int(os.environ.get("DEBUG_SPYRE_FUZZ", "1"))


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("mm", "aten.mm"),
        ("mm.out", "aten.mm.out"),
        ("aten.mm", "aten.mm"),
        ("aten.mm.out", "aten.mm.out"),
        ("aten::mm", "aten.mm"),
        ("aten::mm.out", "aten.mm.out"),
        ("torch.ops.aten.mm", "aten.mm"),
        ("torch._ops.ops.aten.mm.out", "aten.mm.out"),
        ("torch.ops.spyre.unfold", "spyre.unfold"),
        ("'aten::mm'", "aten.mm"),
        ("`aten.mm.*`", "aten.mm"),
        ("torch.mm", "aten.mm"),
        ("torch.Tensor.copy_", "aten.copy_"),
        ("F.layer_norm", "aten.layer_norm"),
        ("torch.nn.functional.gelu", "aten.gelu"),
        ("<OpOverload(op='aten.mm', overload='default')>", "aten.mm.default"),
        ("<OpOverloadPacket(op='aten.mm')>", "aten.mm"),
        ("_c10d_functional.all_reduce.default", "_c10d_functional.all_reduce.default"),
        ("aten.sin.default is falling back to cpu", "aten.sin.default"),
        (
            "a/b c.py:12: FallbackWarning: aten.arange.start_step is falling back to cpu\n  x = torch.arange(3)",
            "aten.arange.start_step",
        ),
        (
            "(EngineCore pid=3) x.py:1: FallbackWarning: torch.ops.spyre.reshape_via_cpu is falling back to cpu",
            "spyre.reshape_via_cpu",
        ),
        ("FallbackWarning: spyre::max_dim_int64_fallback is falling back to cpu", "spyre.max_dim_int64_fallback"),
        ("FallbackWarning: conversion from torch.int64 to torch.float16 is falling back to cpu", "spyre.to_dtype_cpu"),
        (
            "NotImplementedError: Could not run 'aten::sort.values_stable' with arguments from the 'spyre' backend.",
            "aten.sort.values_stable",
        ),
    ],
)
def test_any_spelling_gives_the_normal_form(text, name):
    found = parse(text)
    assert found is not None
    assert str(found[0]) == name


@pytest.mark.parametrize("text", ["", " ", "-", "no name", "a b", "1x", "::", "aten::", "mm!", "x::y::z w"])
def test_what_is_no_name_is_none(text):
    assert parse(text) is None


def test_hostile_texts_are_no_names_and_do_no_harm(hostile):
    found = parse(hostile)
    assert found is None or found[0].packet.isidentifier()


WORDS = st.from_regex(r"[a-z_][a-z0-9_]{0,12}", fullmatch=True)


@settings(max_examples=100 * FUZZ)
@given(ns=st.sampled_from(["aten", "spyre", "prims"]), packet=WORDS, overload=st.none() | WORDS)
def test_property_the_normal_form_reads_back_as_itself(ns, packet, overload):
    name = OpName(ns, packet, overload)
    assert parse(str(name)) == (name, True)
    assert parse(f"torch.ops.{name}") == (name, True)
    tail = f"{packet}.{overload}" if overload else packet
    assert parse(f"{ns}::{tail}") == (name, True)
    assert from_path(f"torch.ops.{name}") == name
    assert from_schema_name(f"{ns}::{tail}") == OpName(ns, packet, overload or "default")


@settings(max_examples=300 * FUZZ)
@given(st.text(max_size=60))
def test_property_no_text_breaks_the_reader(text):
    found = parse(text)
    assert found is None or (found[0].ns.isidentifier() and found[0].packet.isidentifier())


def test_near_names_come_nearest_first_and_across_namespaces():
    known = ["aten.gelu", "spyre.gelu", "aten.glu", "aten.mm", "aten.mv"]
    assert near(OpName("spyre", "gellu"), known)[:2] == ["aten.gelu", "spyre.gelu"]
    assert set(near(OpName("aten", "mn"), known)) >= {"aten.mm", "aten.mv"}
    assert near(OpName("aten", "qqqqqqqq"), known) == []


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("torch.special.expit", "aten.special_expit"),
        ("torch.nn.SiLU", "aten.silu"),
        ("nn.LayerNorm", "aten.layer_norm"),
        ("nn.Embedding", "aten.embedding"),
        ("Tensor.__add__", "aten.add"),
        ("Tensor.__radd__", "aten.add"),
        ("Tensor.__getitem__", "aten.index.Tensor"),
        ("operator.matmul", "aten.matmul"),
        ("torch.linalg.vector_norm", "aten.linalg_vector_norm"),
        ("torch.fft.rfft", "aten.fft_rfft"),
        ("Tensor.float", "aten.to.dtype"),
        ("x.half()", "aten.to.dtype"),
        ("x.item", "aten.item"),
        ("F.cross_entropy", "aten.cross_entropy_loss"),
        ("sdpa", "aten.scaled_dot_product_attention"),
        ("torch.add(x, y)", "aten.add"),
        ("torch.ops.vllm.spyre_convert", "vllm.spyre_convert"),
        ("Could not run 'aten::max' with arguments from the 'spyre' backend", "aten.max.default"),
        ("Could not run 'aten::max.dim' with arguments from the 'spyre' backend", "aten.max.dim"),
    ],
)
def test_pythons_names_and_errors_mean_the_op_behind(text, name):
    assert str(parse(text)[0]) == name


def test_a_logs_lines_name_their_ops():
    log = (
        "w.py:3: FallbackWarning: silu.default is falling back to cpu\n"
        "E  NotImplementedError: Could not run 'aten::max' with arguments from the 'spyre' backend\n"
        "  torch.ops.aten.mm.default(x)  /usr/lib/aten.py spyre::copy_from_d2d spyre::copy_from_d2d\n"
    )
    assert names_in(log) == {"silu.default": 1, "aten::max.default": 1, "aten.mm.default": 1, "spyre::copy_from_d2d": 1}
