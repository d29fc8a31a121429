"""The ladder climbs only the rungs whose switches the installed torch-spyre reads."""

import pytest

from debug_spyre.host.spyre_variables import switches_in


def test_a_rung_that_the_version_does_not_know_is_left_out_and_that_is_said(place):
    (place.packages / "torch_spyre").mkdir()
    (place.packages / "torch_spyre/__init__.py").write_text("import os\nos.environ.get('LX_PLANNING', '1')\n")
    place.write("test_it.py", "def test_it(): assert 0\n")
    done = place.call("ladder", "--seconds", "0.1", "test_it.py::test_it")
    assert "no-pool-planning is left out: this torch-spyre does not read HBM_POOL_PLANNING" in done.stderr
    assert (
        "validators is left out: this torch-spyre does not read SPYRE_VALIDATE_GRAPH or SPYRE_VALIDATE_OP_SPECS"
        in done.stderr
    )
    assert "no-lx-planning is left out" not in done.stderr


@pytest.mark.parametrize("content", [b"x = 'A_SWITCH'", b"\xff\xfe A_SWITCH", b""])
def test_a_switch_is_known_where_a_python_file_names_it(content, tmp_path):
    (tmp_path / "inner").mkdir()
    (tmp_path / "inner/config.py").write_bytes(content)
    (tmp_path / "notes.txt").write_text("ANOTHER")
    assert switches_in(tmp_path, ["A_SWITCH", "ANOTHER"]) == ({"A_SWITCH"} if content else set())
