"""Each line of the doctor has both sides, a remedy where it is not ok, and none needs the card or torch."""

import fcntl
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from debug_spyre.host.spyre_variables import compile_cache
from debug_spyre.surface.io import doctor_checks as dc
from debug_spyre.surface.io.doctor_checks import State

ROOT = Path(__file__).parents[2]


@pytest.fixture
def checkout(tmp_path, monkeypatch):
    monkeypatch.delenv("VIRTUAL_ENV", raising=False)
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path / "inductor"))
    folder = tmp_path / "checkout"
    packages = folder / ".venv/lib/python3.12/site-packages"
    (packages / "torch_spyre/ops").mkdir(parents=True)
    (packages / "torch_spyre/ops/eager.py").write_text("import torch\n\ndef lower_flip(x):\n    return x\n")
    (packages / "torch_spyre/_C.so").write_bytes(b"\x7fELF\0\0spyre_flip_kernel\0")
    (packages / "torch-2.13.0.dist-info").mkdir()
    record = packages / "torch_spyre-0.0.1.dist-info"
    record.mkdir()
    (record / "METADATA").write_text("Version: 0.0.1\n")
    (record / "direct_url.json").write_text(json.dumps({"url": "file:///src/torch-spyre", "dir_info": {}}))
    (folder / ".venv/bin").mkdir()
    (folder / ".venv/bin/python").symlink_to(sys.executable)
    subprocess.run(["git", "init", "-q"], cwd=folder, check=True)
    return folder


def lines(checkout):
    return {check.name: check for check in reversed(dc.examine(checkout)[0])}


def doctor(*words, cwd, **env):
    return subprocess.run(
        [sys.executable, "-m", "debug_spyre", "doctor", *words],
        capture_output=True,
        text=True,
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": str(ROOT / "scripts"), **env},
    )


def test_every_line_that_is_not_ok_has_a_remedy(checkout, monkeypatch):
    monkeypatch.setenv("DEBUG_SPYRE_DEVICES", "")
    for check in dc.examine(checkout)[0]:
        assert check.state is State.OK or check.remedy or check.name in {"device"}, check


def test_no_card_is_a_failure_and_a_free_one_is_not(checkout, monkeypatch, tmp_path):
    monkeypatch.setenv("DEBUG_SPYRE_DEVICES", "")
    assert lines(checkout)["card"].state is State.FAIL
    device = tmp_path / "device"
    device.touch()
    monkeypatch.setenv("DEBUG_SPYRE_DEVICES", str(device))
    found = lines(checkout)
    assert found["card"].state is State.OK
    assert found["device"].state in {State.OK, State.WARN}
    assert found["lock"].state is State.OK


def test_a_card_held_by_another_process_is_named(checkout, monkeypatch, tmp_path):
    device = tmp_path / "device"
    device.touch()
    monkeypatch.setenv("DEBUG_SPYRE_DEVICES", str(device))
    code = "import sys,time; f=open(sys.argv[1],'r+'); print('open',flush=True); time.sleep(60)"
    holder = subprocess.Popen([sys.executable, "-c", code, str(device)], stdout=subprocess.PIPE, text=True)
    try:
        holder.stdout.readline()
        found = lines(checkout)["device"]
        assert found.state is State.FAIL
        assert str(holder.pid) in found.text
    finally:
        holder.kill()
        holder.wait()


def test_a_held_lock_is_a_warning_with_its_holder(checkout, monkeypatch, tmp_path):
    device = tmp_path / "device"
    device.touch()
    monkeypatch.setenv("DEBUG_SPYRE_DEVICES", str(device))
    path = dc.lock_path(str(device))
    with path.open("w") as stream:
        fcntl.flock(stream, fcntl.LOCK_EX)
        assert lines(checkout)["lock"].state is State.WARN
    assert lines(checkout)["lock"].state is State.OK


def test_a_local_build_is_warned_of_and_says_what_undoes_it(checkout):
    (checkout / "uv.lock").write_text(
        '[[package]]\nname = "torch-spyre"\nversion = "1"\nsource = { git = "https://x/y#abcdef1234567" }\n'
    )
    found = lines(checkout)["torch-spyre"]
    assert found.state is State.WARN
    assert "local build of file:///src/torch-spyre" in found.text
    assert "abcdef123456" in found.text
    assert "--no-sync" in found.remedy


IMPORTS = ("from torch_spyre._C import fill_tensor\n", "from . import _C\n", "import torch_spyre._C\n")


@pytest.mark.parametrize("line", IMPORTS)
def test_a_package_without_its_compiled_part_is_a_failure(checkout, line):
    package = checkout / ".venv/lib/python3.12/site-packages/torch_spyre"
    (package / "__init__.py").write_text(line)
    assert "compiled part" not in lines(checkout)
    (package / "_C.so").unlink()
    found = lines(checkout)["compiled part"]
    assert found.state is State.FAIL and "no compiled _C" in found.text and "pip install" in found.remedy


def test_a_python_without_what_the_fallbacks_call_is_a_failure(checkout, monkeypatch):
    file = checkout / ".venv/lib/python3.12/site-packages/torch_spyre/ops/fallbacks.py"
    seen = dc.provenance(checkout)
    for version, state in (("3.11.7", State.FAIL), ("3.12.1", None)):
        monkeypatch.setattr(dc, "provenance", lambda _checkout, version=version: {**seen, "python": version})
        file.write_text("import warnings\nwarnings.warn('x')\n")
        assert "python" not in lines(checkout)
        file.write_text("import warnings\nwarnings.warn('x', skip_file_prefixes=('a',))\n")
        found = lines(checkout).get("python")
        assert (found and found.state) == state
        assert found is None or "every fallback raises TypeError" in found.text


def test_logs_are_really_tried(checkout, monkeypatch, tmp_path):
    assert lines(checkout)["logs"].state is State.OK
    blocked = tmp_path / "blocked"
    blocked.write_text("")
    monkeypatch.setenv("DEBUG_SPYRE_LOGS", str(blocked / "logs"))
    found = lines(checkout)["logs"]
    assert found.state is State.FAIL
    assert "DEBUG_SPYRE_LOGS" in found.remedy


def test_hooks_are_found_missed_and_switched_off(checkout, monkeypatch, tmp_path):
    assert lines(checkout)["hooks"].state is State.WARN
    assert lines(checkout)["hooks"].remedy == "debug-spyre install --guard"  # install alone sets none
    settings = checkout / ".claude/settings.json"
    settings.parent.mkdir(exist_ok=True)
    settings.write_text(json.dumps({"hooks": {"Stop": [{"hooks": [{"command": "x/debug-spyre/scripts/guard.py"}]}]}}))
    assert lines(checkout)["hooks"].state is State.OK
    settings.unlink()
    assert lines(checkout)["hooks"].state is State.WARN
    personal = tmp_path / "config of the client"  # where install --personal --guard writes them
    personal.mkdir()
    (personal / "settings.json").write_text(
        json.dumps({"hooks": {"Stop": [{"hooks": [{"command": "x/debug-spyre/scripts"}]}]}})
    )
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(personal))
    assert lines(checkout)["hooks"].state is State.OK
    settings.write_text(json.dumps({"disableAllHooks": True}))
    assert "switched off" in lines(checkout)["hooks"].text
    settings.write_text("{half")
    assert lines(checkout)["hooks"].state is State.WARN
    assert "mend" in lines(checkout)["hooks"].remedy


def test_the_compile_cache_is_measured(checkout, tmp_path):
    assert "not there yet" in lines(checkout)["compile cache"].text
    (tmp_path / "inductor").mkdir()
    (tmp_path / "inductor/kernel").write_bytes(b"x" * 1000)
    assert "1 files" in lines(checkout)["compile cache"].text


def test_the_cache_folder_needs_no_user_name(monkeypatch):
    monkeypatch.delenv("TORCHINDUCTOR_CACHE_DIR", raising=False)
    for name in ("LOGNAME", "USER", "LNAME", "USERNAME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("os.getuid", lambda: 987654321)
    assert compile_cache(os.environ).name == "torchinductor_uid_987654321"


def test_the_cache_folder_is_the_one_that_torch_takes(monkeypatch):
    """Its own answer, in a process of its own: for this user, for one with a slash in its name, for an unknown uid."""
    code = "import os, torch._inductor.runtime.cache_dir_utils as c\nprint(c.default_cache_dir())"
    code += "\nos.getuid = lambda: 987654321\nfor n in ('LOGNAME', 'USER', 'LNAME', 'USERNAME'): os.environ.pop(n, None)\nprint(c.default_cache_dir())"
    env = {k: v for k, v in os.environ.items() if k != "TORCHINDUCTOR_CACHE_DIR"} | {"LOGNAME": "a/b"}
    env |= {"TORCH_DEVICE_BACKEND_AUTOLOAD": "0"}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=env, check=True)
    named, unnamed = done.stdout.split()
    assert str(compile_cache(env)) == named
    monkeypatch.setattr("os.getuid", lambda: 987654321)
    assert str(compile_cache({"PATH": ""})) == unnamed


def test_a_symbol_is_found_with_its_line_also_in_the_compiled_part(checkout):
    done = doctor("--has", "lower_flip", cwd=checkout)
    assert done.returncode == 0, done.stderr
    assert "torch_spyre/ops/eager.py:3" in done.stdout
    assert "torch_spyre/_C.so" in doctor("--has", "spyre_flip_kernel", cwd=checkout).stdout


def test_a_symbol_that_did_not_land_gets_the_rebuild(checkout, hostile):
    done = doctor("--has", f"not there {hostile}", "--json", cwd=checkout)
    assert done.returncode == 1
    told = json.loads(done.stdout)
    assert told["has"] is False
    assert told["remedies"][0] == "uv cache clean torch-spyre"
    assert "--no-cache --no-build-isolation /src/torch-spyre" in told["remedies"][1]


def test_the_whole_answer_as_text_and_as_json(checkout):
    done = doctor(cwd=checkout, DEBUG_SPYRE_DEVICES="")
    assert done.returncode == 1
    assert "fail  card: no card is visible here\n      -> " in done.stdout
    told = json.loads(doctor("--json", cwd=checkout, DEBUG_SPYRE_DEVICES="").stdout)
    assert told["schema"] == 1 and told["state"] == "fail"
    assert {c["state"] for c in told["checks"]} <= {"ok", "warn", "fail"}
    assert told["provenance"]["torch_spyre"]["state"] == "local"


def test_outside_a_checkout_it_says_where_to_go(tmp_path):
    done = doctor(cwd=tmp_path)
    assert done.returncode == 69
    assert "next:" in done.stderr


def test_neither_torch_nor_the_backend_is_imported(checkout):
    code = "import sys\nfrom debug_spyre.cli import main\nmain(['doctor'])\nprint(sorted({'torch', 'torch_spyre', 'numpy', 'jinja2'} & set(sys.modules)))"
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        cwd=checkout,
        env={**os.environ, "PYTHONPATH": str(ROOT / "scripts")},
    )
    assert done.stdout.splitlines()[-1] == "[]", done.stdout + done.stderr
