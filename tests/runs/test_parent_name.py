"""What a command sees of its parent: a backend may leave the card alone below a parent called python."""

import sys

SAYS = "import os; print('parent', open(f'/proc/{os.getppid()}/comm').read().strip())"


def test_the_parent_of_a_command_is_not_called_python(place):
    done = place.call("exec", "--", sys.executable, "-c", SAYS)
    assert done.returncode == 0, done.stderr
    assert "parent debug-spyre" in next(place.logs.rglob("r*.txt")).read_text()
