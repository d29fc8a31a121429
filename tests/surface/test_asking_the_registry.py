"""`op` runs a package's own registration in a child process; packages that can't be run are read as text, and it is said."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

INIT = """
import torch
def _autoload():
    torch.utils.rename_privateuse1_backend("spyre")
    import torch_spyre.ops.eager
    import torch_spyre._inductor.lowering
"""
EAGER = """
import torch
from torch_spyre._C import fill_tensor
aten = torch.ops.aten
fallback_ops = []
def register_fallback_default(ops):
    for op in ops:
        fallback_ops.append(op)
        torch.library.register_kernel(op.name(), ["spyre"])(lambda *a, **k: None)
def register_torch_compile_kernel(ops):
    for op in ops:
        torch.library.register_kernel(op.name(), ["spyre"])(lambda *a, **k: None)
register_torch_compile_kernel([aten.mm.default, aten._softmax.default, aten.silu.out, aten.sigmoid.default])
register_fallback_default([aten.cumsum.default])

@torch.library.register_kernel("aten::fill_.Scalar", ["spyre"])
def filled(self, value):
    return fill_tensor(self, value)
"""
LOWERING = """
from contextlib import contextmanager
import torch
import torch._inductor.lowering as lowering
def lower_add(a, b):
    return None
@contextmanager
def enable_spyre_lowerings():
    lowering.lowerings[torch.ops.aten.add.Tensor] = lower_add
    lowering.lowerings[torch.ops.aten.mm.default] = lower_add
    lowering.lowerings[torch.ops.aten.clamp.default] = lower_add
    yield
"""
KERNEL = """
class TinyOpFuncs:
    def add(self, a, b): ...
    def reduction(self, dtype, src, reduction_type, value):
        if reduction_type in ["any", "xor_sum"]:
            return None
"""


def write(folder, *, init=INIT):
    package = folder / "torch_spyre"
    for name, text in {
        "__init__.py": init, "ops/__init__.py": "", "ops/eager.py": EAGER, "_inductor/__init__.py": "",
        "_inductor/lowering.py": LOWERING, "_inductor/spyre_kernel.py": KERNEL,
    }.items():  # fmt: skip
        (package / name).parent.mkdir(parents=True, exist_ok=True)
        (package / name).write_text(text)
    return package


def op(*words, home, env=None):
    environment = {
        **os.environ, "PYTHONPATH": str(ROOT / "scripts"), "HOME": str(home), "XDG_CACHE_HOME": str(home / "cache"),
        "DEBUG_SPYRE_PYTHON": sys.executable, **(env or {}),
    }  # fmt: skip
    return subprocess.run(
        [sys.executable, "-m", "debug_spyre", "op", *map(str, words)],
        capture_output=True,
        text=True,
        cwd=home,
        env=environment,
    )


@pytest.fixture(scope="module")
def told(tmp_path_factory):
    home = tmp_path_factory.mktemp("asked")
    names = (
        "mm clamp.default add_.Tensor mm.out silu.default silu.out cumsum fill_.Scalar nonzero any.dim softmax.int add.Tensor sin sigmoid special_expit pow_.Tensor max.out"
    ).split()
    done = op(*names, "--json", "--package", write(home), home=home)
    assert done.returncode == 0, done.stderr
    data = json.loads(done.stdout)
    return {f"{o['name']}.{o['overload']}" if o["overload"] else o["name"]: o["modes"] for o in data["ops"]} | {
        "how": data["package"]["how"]
    }


@pytest.mark.parametrize(
    ("name", "eager", "works", "compiled", "compiled_works"),
    [
        ("aten.mm", "kernel", True, "lowering", True),  # torch's decomposition is for some arguments only
        ("aten.mm.out", "none", False, "lowering", True),  # functionalised
        ("aten.clamp.default", "none", False, "upstream", None),  # torch's decomposition beats a lowering
        ("aten.add_.Tensor", "none", False, "lowering", True),
        ("aten.silu.default", "kernel", True, "upstream", None),  # by silu.out
        ("aten.silu.out", "kernel", True, "upstream", None),
        ("aten.cumsum", "fallback", True, "fallback", True),
        ("aten.fill_.Scalar", "kernel", True, "upstream", None),
        ("aten.nonzero", "none", False, "fallback", False),  # Inductor's own list, and nothing to call
        ("aten.any.dim", "none", False, "none", False),  # a reduction kind that the code generator refuses
        ("aten.softmax.int", "composite", True, "composite", None),
        ("aten.special_expit", "composite", True, "composite", None),
        ("aten.add.Tensor", "none", False, "lowering", True),
        ("aten.sin", "none", False, "none", False),  # no handler
        ("aten.sigmoid", "kernel", True, None, None),
    ],
)
def test_each_kind_is_what_the_registry_says(name, eager, works, compiled, compiled_works, told):
    modes = told[name]
    assert (modes["eager"]["verdict"], modes["eager"]["works"]) == (eager, works)
    assert modes["eager"]["source"] == modes["compiled"]["source"] == "registry"
    if compiled is not None:
        assert modes["compiled"]["verdict"] == compiled
    if compiled_works is not None:
        assert modes["compiled"]["works"] == compiled_works


def test_forms_are_matched_by_signature_and_not_by_name(told):
    assert "aten.pow.Tensor_Tensor" in told["aten.pow_.Tensor"]["compiled"]["why"]
    assert "aten.max.other" in told["aten.max.out"]["compiled"]["why"]


def test_a_composite_names_its_leaves(told):
    assert {"op": "aten._softmax.default", "verdict": "kernel"} in told["aten.softmax.int"]["eager"]["leaves"]
    assert told["aten.special_expit"]["eager"]["leaves"] == [{"op": "aten.sigmoid.default", "verdict": "kernel"}]


def test_the_place_is_the_ops_own_line_in_the_list(told):
    line = (
        EAGER.splitlines().index(
            "register_torch_compile_kernel([aten.mm.default, aten._softmax.default, aten.silu.out, aten.sigmoid.default])"
        )
        + 1
    )
    assert f"torch_spyre/ops/eager.py:{line}" in told["aten.mm"]["eager"]["why"]


def test_the_answer_says_that_a_stand_in_took_the_compiled_parts_place(told):
    assert "stand-in for the compiled part" in told["how"]


@pytest.mark.parametrize(
    ("init", "said"),
    [
        ("raise ImportError('no library')\ndef _autoload(): ...\n", "no library"),
        ("import os\ndef _autoload(): os.abort()\n", "signal 6"),
        ("def _autoload():\n    import time; time.sleep(1000)\n", "hung for 5 s"),
        ("", "no _autoload"),
    ],
)
def test_a_package_that_cannot_be_run_is_read_and_that_is_said(init, said, tmp_path):
    done = op(
        "mm",
        "--json",
        "--package",
        write(tmp_path, init=init),
        home=tmp_path,
        env={"DEBUG_SPYRE_ASK_SECONDS": "5" if "sleep" in init else "200"},
    )
    data = json.loads(done.stdout)
    assert said in data["package"]["how"]
    assert data["ops"][0]["modes"]["eager"] == {
        **data["ops"][0]["modes"]["eager"],
        "verdict": "kernel",
        "source": "text",
        "works": None,
    }


def test_without_a_cache_that_can_be_written_the_answer_is_the_same(tmp_path):
    package = write(tmp_path)
    (tmp_path / "cache").write_text("a file, so nothing can be kept")
    data = json.loads(op("mm", "--json", "--package", package, home=tmp_path).stdout)
    assert data["ops"][0]["modes"]["compiled"]["source"] == "registry"


def test_an_overload_that_is_not_there_is_said_with_those_that_are(tmp_path):
    done = op("aten.mm.Scalar", "--package", write(tmp_path), home=tmp_path)
    assert done.returncode == 1
    assert "no overload 'Scalar'" in done.stdout
    assert "default" in done.stdout


def test_a_part_that_cannot_be_imported_makes_no_wrong_answer(tmp_path):
    """Half of a registration would read as ops without a kernel."""
    package = write(tmp_path)
    (package / "ops/fallbacks.py").write_text("import torch\nraise ImportError('half')\n")
    data = json.loads(op("sigmoid", "--json", "--package", package, home=tmp_path).stdout)
    assert "half" in data["package"]["how"]
    assert data["ops"][0]["modes"]["eager"]["source"] == "text"
    assert data["ops"][0]["modes"]["eager"]["verdict"] == "kernel"


def test_an_op_of_the_plugin_is_found_in_the_checkout(tmp_path):
    """torch-spyre's registration has it not; vLLM's call in the plugin's source says where it is."""
    checkout = tmp_path / "checkout"
    (checkout / ".git").mkdir(parents=True)
    (checkout / "plugin").mkdir()
    (checkout / "plugin/ops.py").write_text(
        "from vllm.utils import direct_register_custom_op\ndef register():\n    direct_register_custom_op(\n"
        "        op_name='convert_it',\n        op_func=f,\n    )\n"
    )
    (tmp_path / "cache").mkdir()
    environment = {
        **os.environ,
        "PYTHONPATH": str(ROOT / "scripts"),
        "XDG_CACHE_HOME": str(tmp_path / "cache"),
        "DEBUG_SPYRE_PYTHON": sys.executable,
    }
    words = [
        sys.executable,
        "-m",
        "debug_spyre",
        "op",
        "torch.ops.vllm.convert_it",
        "convert_it",
        "--json",
        "--package",
        str(write(tmp_path)),
    ]
    done = subprocess.run(words, capture_output=True, text=True, cwd=checkout, env=environment)
    told = json.loads(done.stdout)
    assert done.returncode == 0 and [o["name"] for o in told["ops"]] == ["vllm.convert_it"]
    assert told["ops"][0]["modes"]["compiled"]["verdict"] == "custom-op"
    assert (told["ops"][0]["sites"][0]["file"], told["ops"][0]["sites"][0]["line"]) == ("plugin/ops.py", 4)
