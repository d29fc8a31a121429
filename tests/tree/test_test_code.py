"""Test code is what only tests import, wherever it lies; the lines of it that move an expectation are named."""

import subprocess

import pytest

from debug_spyre.tree.changes import read_patch
from debug_spyre.tree.io.test_code import with_test_code

PATCH = b"""diff --git a/{0} b/{0}
--- a/{0}
+++ b/{0}
@@ -1 +1 @@
-EXPECTED = 1.0
+EXPECTED = 1.5
"""


def judged(checkout, name, importers, text="EXPECTED = 1.5\n"):
    for path, text in {name: text, **importers}.items():
        (checkout / path).parent.mkdir(parents=True, exist_ok=True)
        (checkout / path).write_text(text)
    subprocess.run(["git", "init", "-q", str(checkout)], check=True)
    patch = PATCH.replace(b"{0}", name.encode())
    return with_test_code(read_patch(patch), patch, checkout)


@pytest.mark.parametrize(
    ("name", "importers"),
    [
        ("plugin/golden.py", {"tests/test_a.py": "from plugin.golden import EXPECTED\n"}),
        (
            "plugin/golden.py",
            {"tests/test_a.py": "from plugin import golden\n", "tests/conftest.py": "import plugin.golden\n"},
        ),
        (
            "plugin/golden.py",
            {"plugin/checks.py": "from .golden import EXPECTED\n", "tests/test_a.py": "import plugin.checks\n"},
        ),
        ("src/plugin/values.py", {"tests/test_a.py": "def test_a():\n    from plugin.values import EXPECTED\n"}),
    ],
)
def test_source_that_only_tests_import_is_test_code(tmp_path, name, importers):
    found = judged(tmp_path, name, importers)
    assert found.tests == (name,)
    assert found.expectations == (f"{name}: -EXPECTED = 1.0", f"{name}: +EXPECTED = 1.5")


@pytest.mark.parametrize(
    "importers",
    [
        {"tests/test_a.py": "from plugin.golden import EXPECTED\n", "plugin/ops.py": "from .golden import EXPECTED\n"},
        {"plugin/model.py": "import plugin.golden\n"},
        {"tests/test_a.py": "import plugin\n"},
        {},
    ],
)
def test_source_that_the_plugin_uses_is_none(tmp_path, importers):
    found = judged(tmp_path, "plugin/golden.py", importers)
    assert found.tests == ()
    assert found.expectations == ()


def test_code_under_test_that_only_its_tests_import_is_none(tmp_path):
    importers = {"tests/test_a.py": "from plugin import ops\n"}
    assert judged(tmp_path / "a", "plugin/ops.py", importers, "def scale(x):\n    return x\n").tests == ()
    assert judged(tmp_path / "b", "plugin/ops.py", importers, "def expected(x):\n    return x\n").tests == (
        "plugin/ops.py",
    )
