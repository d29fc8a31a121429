"""`compare` on real files: every format, verdicts and exit statuses, and everything that can be wrong with a file."""

import json
import pickle

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from debug_spyre.cli import main
from debug_spyre.session.events import SessionOpened
from debug_spyre.session.io.journal import Journal

DTYPES = [
    torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.float8_e4m3fn, torch.float8_e5m2,
    torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8, torch.bool,
]  # fmt: skip


def answer(capsys, *words):
    status = main(["compare", *map(str, words), "--json"])
    printed = capsys.readouterr()
    data = json.loads(printed.out)
    return status, printed.err if "error" in data else data


def tensor_of(dtype, shape=(12, 70), seed=0):
    generator = torch.Generator().manual_seed(seed)
    plain = torch.randn(shape, generator=generator)
    return (plain > 0) if dtype is torch.bool else (plain * 20).to(dtype)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("suffix", [".pt", ".safetensors"])
def test_every_type_is_read_alike_from_every_file(tmp_path, capsys, dtype, suffix):
    tensor = tensor_of(dtype)
    name = tmp_path / f"it's «a» b{suffix}"
    torch.save(tensor, name) if suffix == ".pt" else save_file({"t": tensor}, name)
    other = tmp_path / "other.safetensors"
    save_file({"t": tensor}, other)
    status, data = answer(capsys, name, other)
    assert (status, data["verdict"], data["mismatched"], data["total"]) == (0, "same", 0, 840)
    assert data["dtype"] == str(dtype).removeprefix("torch.")


@pytest.mark.parametrize("dtype", [d for d in DTYPES if d is not torch.bool], ids=str)
def test_every_type_shows_its_wrong_rows(tmp_path, capsys, dtype):
    good = tensor_of(dtype)
    bad = good.clone()
    bad[1::3] = torch.full_like(good[1::3].float(), 100).to(dtype)
    torch.save({"bad": bad, "good": good}, tmp_path / "both.pt")
    status, data = answer(capsys, f"{tmp_path}/both.pt:bad", f"{tmp_path}/both.pt:good")
    assert status == 1 and data["verdict"] == "structural"
    first = data["patterns"][0]
    assert (first["kind"], first["axis"], first["period"], first["phase"]) == ("period", 0, 3, 1)
    assert any(p["kind"] == "constant" and p["factor"] == pytest.approx(100, rel=0.1) for p in data["patterns"])


def test_numpy_files_of_either_byte_order(tmp_path, capsys):
    array = np.random.default_rng(0).standard_normal((5, 7)).astype(np.float32)
    np.save(tmp_path / "little.npy", array)
    np.save(tmp_path / "big.npy", array.astype(">f4"))
    assert answer(capsys, tmp_path / "little.npy", tmp_path / "big.npy")[1]["reason"] == "bit for bit the same values"


def test_figures_equal_those_of_assert_close(tmp_path, capsys):
    expected = torch.randn(40, 30, generator=torch.Generator().manual_seed(1)).half()
    actual = expected + (torch.randn(40, 30, generator=torch.Generator().manual_seed(2)) * 0.01).half()
    with pytest.raises(AssertionError) as caught:
        torch.testing.assert_close(actual, expected)
    save_file({"a": actual, "e": expected}, tmp_path / "x.safetensors")
    _, data = answer(capsys, f"{tmp_path}/x.safetensors:a", f"{tmp_path}/x.safetensors:e")
    assert f"Mismatched elements: {data['mismatched']} / {data['total']}" in str(caught.value)
    assert f"Greatest absolute difference: {data['max_abs']}" in str(caught.value)
    assert f"at index {tuple(data['index'])}" in str(caught.value)


def test_tolerances_decide(tmp_path, capsys):
    np.save(tmp_path / "a.npy", np.full((4, 4), 1.01, np.float32))
    np.save(tmp_path / "b.npy", np.ones((4, 4), np.float32))
    assert answer(capsys, tmp_path / "a.npy", tmp_path / "b.npy")[0] == 1
    assert answer(capsys, tmp_path / "a.npy", tmp_path / "b.npy", "--rtol", "0.02")[0] == 0
    assert answer(capsys, tmp_path / "a.npy", tmp_path / "b.npy", "--atol", "0.02")[0] == 0
    assert main(["compare", "a", "b", "--rtol", "-1"]) == 64
    assert main(["compare", "a", "b", "--atol", "nan"]) == 64


class Trap:
    """An object whose loading would leave a trace."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return open, (str(self.path), "w")


@pytest.mark.parametrize("form", ["pt", "npy", "raw"])
def test_pickled_objects_are_refused_and_never_executed(tmp_path, capsys, form):
    trace = tmp_path / "executed"
    name = tmp_path / ("trap.npy" if form == "npy" else "trap.pt")
    if form == "pt":
        torch.save({"t": Trap(trace)}, name)
    elif form == "npy":
        np.save(name, np.array([Trap(trace)], dtype=object), allow_pickle=True)
    else:
        name.write_bytes(pickle.dumps(Trap(trace)))
    trace.unlink(missing_ok=True)
    status, text = answer(capsys, name, name)
    assert status == 2
    assert "never loaded" in text
    assert not trace.exists()


def test_a_missing_key_is_said_with_those_there_are(tmp_path, capsys):
    save_file({"yes": torch.ones(2), "also": torch.ones(2)}, tmp_path / "x.safetensors")
    status, text = answer(capsys, f"{tmp_path}/x.safetensors:no", f"{tmp_path}/x.safetensors:yes")
    assert status == 2
    assert "'no'" in text and "yes" in text and "also" in text
    status, text = answer(capsys, f"{tmp_path}/x.safetensors", f"{tmp_path}/x.safetensors:yes")
    assert status == 2 and "holds 2 tensors" in text


def test_shapes_that_differ_are_bad_input(tmp_path, capsys):
    np.save(tmp_path / "a.npy", np.ones((2, 3)))
    np.save(tmp_path / "b.npy", np.ones((3, 2)))
    status, text = answer(capsys, tmp_path / "a.npy", tmp_path / "b.npy")
    assert status == 2 and "[2, 3]" in text and "[3, 2]" in text


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("x.safetensors", b""),
        ("x.safetensors", b"\xff" * 64),
        ("x.safetensors", (2**40).to_bytes(8, "little") + b"{}"),
        ("x.safetensors", (2).to_bytes(8, "little") + b"[]"),
        ("x.safetensors", (60).to_bytes(8, "little") + b'{"t":{"dtype":"F32","shape":[9],"data_offsets":[0,36]}}     '),
        ("x.safetensors", (57).to_bytes(8, "little") + b'{"t":{"dtype":"F32","shape":[2],"data_offsets":[0,4]}}   ' + b"1234"),
        ("x.npy", b"\x93NUMPY\x01\x00garbage"),
        ("x.npy", b""),
        ("x.pt", b"PK\x03\x04 not a zip"),
        ("x.pt", b""),
        ("x.txt", b"1 2 3"),
    ],
)  # fmt: skip
def test_damaged_files_are_bad_input(tmp_path, capsys, name, content):
    path = tmp_path / name
    path.write_bytes(content)
    status, text = answer(capsys, path, path)
    assert status == 2
    assert str(path) in text and "next:" in text


def test_a_file_that_is_not_there(tmp_path, capsys):
    assert answer(capsys, tmp_path / "no.pt", tmp_path / "no.pt")[0] == 2


def test_all_nan_is_special_and_nan_on_both_sides_is_no_answer(tmp_path, capsys):
    np.save(tmp_path / "nan.npy", np.full((4, 8), np.nan, np.float32))
    np.save(tmp_path / "one.npy", np.ones((4, 8), np.float32))
    status, data = answer(capsys, tmp_path / "nan.npy", tmp_path / "one.npy")
    assert (status, data["verdict"], data["special"]["nan"]) == (1, "special", 32)
    status, data = answer(capsys, tmp_path / "nan.npy", tmp_path / "nan.npy")
    assert (status, data["verdict"]) == (1, "inconclusive")


@pytest.mark.parametrize("shape", [(0,), (3, 0, 5)])
def test_empty_tensors_are_no_success(tmp_path, capsys, shape):
    np.save(tmp_path / "e.npy", np.ones(shape, np.float32))
    status, data = answer(capsys, tmp_path / "e.npy", tmp_path / "e.npy")
    assert (status, data["verdict"], data["total"]) == (1, "inconclusive", 0)


def test_scalars_are_judged_by_their_size(tmp_path, capsys):
    for name, value in (("one", 1.0), ("half", 0.5), ("near", 1.002)):
        torch.save(torch.tensor(value).half(), tmp_path / f"{name}.pt")
    assert answer(capsys, tmp_path / "half.pt", tmp_path / "one.pt")[1]["verdict"] == "structural"
    assert answer(capsys, tmp_path / "near.pt", tmp_path / "one.pt")[1]["verdict"] == "accumulation"


def test_the_golden_result_tells_a_bad_reference_from_a_bad_device(tmp_path, capsys):
    generator = torch.Generator().manual_seed(3)
    golden = torch.randn(64, 64, generator=generator).double()
    near = (golden + 3e-3 * torch.randn(64, 64, generator=generator)).half()
    far = (golden + 6e-2 * torch.randn(64, 64, generator=generator)).half()
    for name, tensor in (("golden", golden), ("near", near), ("far", far), ("exact", golden.half())):
        torch.save(tensor, tmp_path / f"{name}.pt")
    g = ["--golden", tmp_path / "golden.pt"]
    assert answer(capsys, tmp_path / "near.pt", tmp_path / "far.pt", *g)[1]["verdict"] == "accumulation"
    _, data = answer(capsys, tmp_path / "far.pt", tmp_path / "exact.pt", *g)
    assert data["verdict"] == "inconclusive" and data["golden"]["ratio"] > 10


def test_the_layout_names_axes_and_shows_magnitudes(tmp_path, capsys):
    good = torch.randn(4, 2, 32, 64, generator=torch.Generator().manual_seed(4)).half()
    bad = good.clone()
    bad[3, :, 1::2] = 65504
    save_file({"bad": bad.reshape(8, 32, 64), "good": good.reshape(8, 32, 64)}, tmp_path / "x.safetensors")
    words = [f"{tmp_path}/x.safetensors:bad", f"{tmp_path}/x.safetensors:good"]
    layout = ["--layout", "kv_head=4,q_per_kv=2,query=32,dim=64"]
    assert main(["compare", *words, *layout]) == 1
    text = capsys.readouterr().out
    assert "every 2nd of query from 1, kv_head 3: near 65504" in text
    assert "kv_head (4): 3: 65504" in text
    assert main(["compare", *words, "--layout", "a,b"]) == 2
    assert main(["compare", *words, "--layout", "a=8,b=32,c=63"]) == 2


def test_the_picture_is_plain_svg_without_requests(tmp_path, capsys):
    good = np.random.default_rng(0).standard_normal((64, 128)).astype(np.float32)
    bad = good.copy()
    bad[:, 64:] = 0
    np.save(tmp_path / "a.npy", bad)
    np.save(tmp_path / "b.npy", good)
    target = tmp_path / "map.svg"
    _, data = answer(capsys, tmp_path / "a.npy", tmp_path / "b.npy", "--picture", target)
    svg = target.read_text(encoding="utf-8")
    assert svg.startswith("<svg") and "href" not in svg and "script" not in svg
    assert data["picture"]["rows"] == len(data["picture"]["values"])
    assert {v for row in data["picture"]["values"] for v in row} == {0, 5}


def test_text_is_short_and_json_has_the_promised_keys(tmp_path, capsys):
    good = np.random.default_rng(0).standard_normal((64, 128)).astype(np.float32)
    np.save(tmp_path / "a.npy", np.roll(good, 1, 0))
    np.save(tmp_path / "b.npy", good)
    assert main(["compare", str(tmp_path / "a.npy"), str(tmp_path / "b.npy")]) == 1
    text = capsys.readouterr().out
    assert "rolled by 1 along axis 0" in text and text.count("\n") <= 10
    _, data = answer(capsys, tmp_path / "a.npy", tmp_path / "b.npy")
    assert next(iter(data)) == "schema"
    assert set(data) >= {
        "verdict",
        "reason",
        "shape",
        "dtype",
        "mismatched",
        "total",
        "max_abs",
        "max_rel",
        "index",
        "ulp",
        "special",
        "patterns",
    }
    assert set(data["ulp"]) == {"p50", "p99", "max"} and set(data["special"]) == {"nan", "inf", "overflow", "zero"}
    keys = {"kind", "axis", "period", "phase", "start", "stop", "shift", "factor", "support", "chance", "text"}
    assert all(set(p) >= keys for p in data["patterns"]) and data["patterns"]


def test_with_log_the_answer_and_its_map_reach_the_sessions_log(tmp_path, capsys, monkeypatch):
    (tmp_path / "checkout/.git").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "checkout")
    monkeypatch.setenv("DEBUG_SPYRE_LOGS", str(tmp_path / "logs"))
    folder = tmp_path / "logs/debug-20260101-000000-rolled"
    folder.mkdir(parents=True)
    opened = SessionOpened(
        stem=folder.name, slug="rolled", symptom="rolled", members=(), checkout=str(tmp_path / "checkout")
    )
    Journal(folder).append(opened)
    good = np.random.default_rng(0).standard_normal((64, 128)).astype(np.float32)
    np.save(tmp_path / "a.npy", np.roll(good, 1, 0))
    np.save(tmp_path / "b.npy", good)
    assert main(["compare", str(tmp_path / "a.npy"), str(tmp_path / "b.npy"), "--log"]) == 1
    assert f"log: {folder}.html" in capsys.readouterr().out
    report = Journal(folder).read().events[-1]
    assert report.verb == "compare" and report.data["picture"]["values"]
    assert "rolled by 1 along axis 0" in (tmp_path / "logs" / f"{folder.name}.html").read_text(encoding="utf-8")
