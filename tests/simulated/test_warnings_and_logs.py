"""What the card says: fallback warnings at the caller's line, vendor noise when asked, first-failure reports."""

import json
import os
import stat
import warnings
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow  # of the stand-in itself


@pytest.fixture
def fallback_warning(torch):
    from torch_spyre.ops.fallbacks import FallbackWarning

    return FallbackWarning


def test_a_fallback_names_the_overload_and_the_callers_line(fallback_warning, half):
    x = half(4, 64)
    with pytest.warns(fallback_warning) as seen:
        x.sin()  # this line
    (warning,) = seen
    assert str(warning.message) == "aten.sin.default is falling back to cpu"
    line = Path(__file__).read_text(encoding="utf-8").splitlines()[warning.lineno - 1]
    assert warning.filename == __file__ and "# this line" in line


def test_a_fallback_inside_a_torch_module_names_the_callers_line(torch, fallback_warning, half):
    layer = torch.nn.Module()
    layer.forward = lambda x: x.cos()
    x = half(4, 64)
    with pytest.warns(fallback_warning) as seen:
        layer(x)
    assert seen[0].filename == __file__


def test_the_filter_turns_a_fallback_into_an_error(fallback_warning, half):
    x = half(4, 64)
    with warnings.catch_warnings():
        warnings.simplefilter("error", fallback_warning)
        with pytest.raises(fallback_warning, match=r"aten\.cumsum\.default is falling back to cpu"):
            x.cumsum(-1)


def test_results_and_out_of_a_fallback(torch, fallback_warning, half):
    x = half(4, 64)
    with pytest.warns(fallback_warning):
        assert x.sin().cpu().equal(x.cpu().sin())
        out = torch.empty(0, dtype=torch.float16, device="spyre")
        assert torch.sin(x, out=out) is out and out.cpu().equal(x.cpu().sin())
        values, index = x.max(-1)
    assert values.cpu().equal(x.cpu().max(-1).values) and index.cpu().equal(x.cpu().max(-1).indices)


def test_cpu_work_that_gives_no_warning(torch, half):
    x = half(4, 64)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        x.fill_(2)
        x.zero_()
        x.normal_()
        x.uniform_()
        x.random_(0, 10)
        assert x[0, 0].item() in range(10)


def test_once_is_the_filter_of_the_import(card):
    script = """
    import torch
    x = torch.ones(4, dtype=torch.float16).to("spyre")
    for _ in range(3):
        x.sin()
    x.sin(); x.cos()
    """
    done = card.run(script)
    assert done.stderr.count("FallbackWarning: aten.sin.default is falling back to cpu") == 1, done.stderr
    assert done.stderr.count("FallbackWarning: aten.cos.default") == 1


def test_quiet_by_default_and_loud_when_asked_before_the_import(card):
    script = """
    import os, torch
    x = torch.ones(4, dtype=torch.float16).to("spyre")
    os.environ["DT_DEEPRT_VERBOSE"] = "1"  # too late
    x + 1
    print(os.environ["TORCH_SENDNN_LOG"], os.environ["DTLOG_LEVEL"])
    """
    quiet = card.run(script)
    assert quiet.stdout == "CRITICAL error\n" and quiet.stderr == ""
    loud = card.run(script, SPYRE_SIM_COMPILE="1", TORCH_SENDNN_LOG="INFO", DT_DEEPRT_VERBOSE="1", DTLOG_LEVEL="info")
    for word in (
        "[sendnn] [info] runtime up",
        "[sendnn] [info] compile graph",
        "deeprt(1): launch aten::add",
        "INFO  dtlog senlib",
    ):
        assert word in loud.stderr
    assert loud.stdout == "INFO info\n"


def test_a_bad_level_is_a_quiet_one(card):
    done = card.run('import torch; torch.ones(4, device="spyre", dtype=torch.float16) + 1', DT_DEEPRT_VERBOSE="loud")
    assert done.returncode == 0 and "deeprt" not in done.stderr


@pytest.mark.parametrize(
    "fault,category",
    [
        ("lowering_error:op=exp", "compile_frontend"),
        ("ras_error:op=exp", "runtime_launch"),
    ],
)
def test_a_first_failure_report_is_written_when_asked(card, fault, category, tmp_path):
    script = 'import torch; torch.ones(4, device="spyre", dtype=torch.float16).exp()'
    done = card.run(script, SPYRE_SIM_FAULTS=fault, TORCH_SPYRE_FFDC="1", TORCHINDUCTOR_CACHE_DIR=tmp_path / "cache")
    assert done.returncode == 1
    folder = tmp_path / "cache/torch-spyre/ffdc_reports"
    (file,) = folder.iterdir()
    assert file.name.startswith(f"ffdc_{category}_") and stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    report = json.loads(file.read_text(encoding="utf-8"))
    assert set(report) == {"metadata", "failure", "artifacts", "environment", "runtime", "hardware_state", "collector"}
    assert report["failure"]["category"] == category and report["runtime"]["device"] == str(card.device)
    assert file.name.endswith(f"_{report['metadata']['pid']}.json")


def test_no_report_without_the_switch_and_fifty_at_most(card, tmp_path):
    folder = tmp_path / "cache/torch-spyre/ffdc_reports"
    script = """
    import torch
    from torch_spyre.profiler import _ffdc
    x = torch.ones(4, device="spyre", dtype=torch.float16)
    for _ in range(60):
        try:
            x.exp()
        except RuntimeError:
            pass
    print(torch.spyre.get_diagnostic_report() is None)
    """
    env = {"SPYRE_SIM_FAULTS": "unimplemented:op=exp", "TORCHINDUCTOR_CACHE_DIR": tmp_path / "cache"}
    assert card.run(script, **env).stdout == "True\n"
    assert not folder.exists()
    assert card.run(script, TORCH_SPYRE_FFDC="1", **env).stdout == "False\n"
    assert len(list(folder.iterdir())) == 50


def test_an_unwritable_report_folder_does_not_hide_the_failure(card, tmp_path):
    blocked = tmp_path / "cache"
    blocked.write_text("a file, not a folder")
    script = 'import torch; torch.ones(4, device="spyre", dtype=torch.float16).exp()'
    done = card.run(
        script, SPYRE_SIM_FAULTS="unimplemented", TORCH_SPYRE_FFDC="1", TORCHINDUCTOR_CACHE_DIR=os.fspath(blocked)
    )
    assert "unimplemented operation exp" in done.stderr and "no report written" in done.stderr
