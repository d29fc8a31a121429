"""One cause is one cluster: parameters inside names, cut texts, frames, a process whose first failure spoils the rest."""

import pytest

from debug_spyre.triage.grouping import group
from debug_spyre.triage.nodeids import family, values_in_name
from debug_spyre.vocabulary.evidence import Severity

SUMMARY = "=========================== short test summary info ============================\n"


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("test_mean_fp32_3d_dim_2", "test_mean_fp16_2d_dim_neg1"),
        ("mean__116_spyre_float32", "mean__9_spyre_float16"),
        ("test_add_4x32_pointwise_spyre", "test_add_67x256_pointwise_spyre"),
        ("test_db_torch_cat_2_spyre__Model-3_2-24B_yaml__spyre_float16", "test_db_torch_cat_5_spyre__Model-3_2-24B_yaml__spyre_float32"),
    ],
)  # fmt: skip
def test_names_that_differ_in_dtype_and_size_are_one_family(first, second):
    assert family(f"a.py::T::{first}") == family(f"a.py::T::{second}") != family("a.py::T::test_other_2d")


def test_a_name_of_values_only_stays_itself():
    assert family("a.py::test_1") == "a.py::test"
    assert family("a.py::1_2") == "a.py::1_2"


def test_values_in_a_name_have_names():
    assert values_in_name("a.py::test_mean_fp32_3d_dim_neg1") == {
        "dtype in the name": "fp32", "rank in the name": 3.0, "dim in the name": -1.0,
    }  # fmt: skip
    assert values_in_name("a.py::test_add_4x32_x")["last dim in the name"] == 32.0


def mismatch(name, share="4 / 4 (100.0%)"):
    return (
        f"_ TestOps.{name} _\nE   AssertionError: Tensor-likes are not close!\nE   \nE   Mismatched elements: {share}\n"
        "E   Greatest absolute difference: 6.8 at index (0,) (up to 0.1 allowed)\n"
        "E   Greatest relative difference: 2.0 at index (0,) (up to 0.1 allowed)\n"
    )


def test_the_dtype_in_names_is_the_separator(read_text):
    names = [f"test_mean_fp32_{n}d" for n in (2, 3, 4)]
    passed = "".join(f"PASSED t/test_o.py::TestOps::test_mean_fp16_{n}d\n" for n in (2, 3, 4))
    text = (
        "=================================== FAILURES ===================================\n"
        + "".join(map(mismatch, names))
        + SUMMARY
        + passed
        + "".join(f"FAILED t/test_o.py::TestOps::{n} - AssertionError: Tensor-likes are not close!\n" for n in names)
        + "===== 3 failed, 3 passed in 3.0s =====\n"
    )
    (cluster,) = group(read_text(text))
    assert len(cluster.nodeids) == 3
    assert cluster.separators[0].text == "all 3 failing have dtype in the name = fp32; 0 of 3 passing do"


@pytest.mark.parametrize("cut", ["AssertionError:...", "AssertionError: Tensor-li..."])
def test_a_text_that_was_cut_joins_the_cluster_of_its_function(read_text, cut):
    text = (
        mismatch("test_a[1]").replace("TestOps.", "") + SUMMARY
        + f"FAILED t/test_o.py::test_a[1] - {cut}\nFAILED t/test_o.py::test_a[2] - {cut}\n===== 2 failed in 3.0s =====\n"
    )  # fmt: skip
    (cluster,) = group(read_text(text))
    assert (cluster.nodeids, cluster.kind) == (("t/test_o.py::test_a[1]", "t/test_o.py::test_a[2]"), "mismatch")


def test_a_cut_text_that_fits_two_clusters_joins_none(read_text):
    text = (
        mismatch("test_a[1]").replace("TestOps.", "")
        + "_ test_a[3] _\nt/test_o.py:3: in test_a\nE   AssertionError: Scalars are not close!\nE   \nE   Expected 1.5 but got nan.\n"
        + SUMMARY
        + "".join(f"FAILED t/test_o.py::test_a[{n}] - AssertionError:...\n" for n in (1, 2, 3))
        + "===== 3 failed in 3.0s =====\n"
    )
    assert sorted(len(c.nodeids) for c in group(read_text(text))) == [1, 1, 1]


def test_the_first_failure_of_a_spoilt_process_is_the_one_to_start_with(read_text):
    lines = ["test_z[c] FAILED", "test_b[c] FAILED", "test_a PASSED"]
    text = "".join(f"t/test_o.py::{line} [ 30%]\n" for line in lines) + SUMMARY
    text += "FAILED t/test_o.py::test_z[c] - RuntimeError: Host compute stream id 65 is already registered\n"
    text += "FAILED t/test_o.py::test_b[c] - RuntimeError: Host compute stream is not available\n== 2 failed, 1 passed in 1s ==\n"
    (cluster,) = group(read_text(text))
    assert cluster.probe == "t/test_o.py::test_z[c]"
    assert "test_z[c] failed first" in cluster.why


# claims only with numbers


@pytest.mark.parametrize(("expected", "got"), [("1", "0"), ("16", "4")])
def test_a_python_count_is_no_tensor(read_text, expected, got):
    text = (
        "____ test_count ____\nt/test_o.py:20: in test_count\n"
        '    self.assertEqual(torch._dynamo.utils.counters["stats"]["unique_graphs"], 1)\n'
        f"E   AssertionError: Scalars are not equal!\nE   \nE   Expected {expected} but got {got}.\nE   Absolute difference: 1\n"
        "E   Relative difference: 1.0\n"
        + SUMMARY
        + "FAILED t/test_o.py::test_count - AssertionError\n== 1 failed in 1s ==\n"
    )
    (cluster,) = group(read_text(text))
    assert cluster.severity is Severity.INCONCLUSIVE
    assert cluster.stage == "dynamo"
    assert "zero" not in f"{cluster.why} {cluster.reason} {cluster.slug}"


def test_no_zeros_are_claimed_from_a_ratio(read_text):
    text = mismatch("test_a").replace("TestOps.", "").replace("difference: 2.0", "difference: 1.0") + SUMMARY
    (cluster,) = group(read_text(text + "FAILED t/test_o.py::test_a - AssertionError\n== 1 failed in 1s ==\n"))
    assert "zero" not in f"{cluster.why} {cluster.reason} {cluster.slug}"


def test_a_critical_line_before_wrong_values_is_told(read_text):
    text = mismatch("test_a").replace("TestOps.", "") + (
        "------------------------------ Captured log call -------------------------------\n"
        "CRITICAL torch_spyre.x:x.py:4 buf0: per-core tensor span 382.812 MB exceeds hardware limit of 256.00 MB\n"
    )
    text += SUMMARY + "FAILED t/test_o.py::test_a - AssertionError\n== 1 failed in 1s ==\n"
    (cluster,) = group(read_text(text))
    assert "span 382.812 MB exceeds hardware limit" in cluster.reason
