"""`op --against`: two builds op by op; `op --all --json` as the source of a list that people keep by hand."""

import json

import pytest
from tests.surface.test_asking_the_registry import EAGER, KERNEL, op, write

from debug_spyre.surface.builds import Form, changes


def of(verdict, works=True):
    return {"eager": Form(verdict, works), "compiled": Form("upstream", True)}


@pytest.mark.parametrize(
    ("was", "now", "kind"),
    [
        (of("fallback"), of("kernel"), "changed"),
        (None, of("kernel"), "gained"),
        (of("kernel"), of("none", works=False), "lost"),
        (of("composite", works=False), of("composite"), "works now"),
        (of("composite"), of("composite", works=False), "no longer works"),
    ],
)
def test_a_change_has_its_kind(was, now, kind):
    before, after = ({"aten.x.default": forms} if forms else {} for forms in (was, now))
    assert kind in {change.kind for change in changes(before, after)}


def test_the_same_build_has_no_change_and_what_nobody_could_tell_is_none():
    assert changes({"a.b.default": of("composite", works=None)}, {"a.b.default": of("composite")}) == []


def test_lost_comes_first():
    before = {f"aten.{n}.default": of("kernel") for n in "ab"}
    after = {"aten.a.default": of("fallback"), "aten.b.default": of("none", works=False)}
    assert [c.kind for c in changes(before, after)] == ["lost", "changed"]


@pytest.fixture(scope="module")
def builds(tmp_path_factory):
    """An old and a new build: sigmoid lost, cumsum from a fallback to a kernel, exp gained; a handler more."""
    home = tmp_path_factory.mktemp("builds")
    old, new = write(home / "old"), write(home / "new")
    text = EAGER.replace(", aten.sigmoid.default", ", aten.cumsum.default, aten.exp.default")
    (new / "ops/eager.py").write_text(text.replace("register_fallback_default([aten.cumsum.default])", ""))
    (new / "_inductor/spyre_kernel.py").write_text(KERNEL.replace("def add(", "def sin(self, a): ...\n    def add("))
    return home, old, new


@pytest.mark.parametrize("kept", [False, True])
def test_after_an_upgrade_one_call_tells_what_changed(builds, kept):
    """Against the old folder, and against the answer that was kept of it."""
    home, old, new = builds
    given = old
    if kept:
        given = home / "kept.json"
        given.write_text(op("--all", "--json", "--package", old, home=home).stdout)
    done = op("--against", given, "--json", "--package", new, home=home)
    assert done.returncode == 0, done.stderr
    found = {(c["op"], c["mode"]): c for c in json.loads(done.stdout)["changes"]}
    assert found["aten.sigmoid.default", "eager"]["kind"] == "lost"
    assert (found["aten.cumsum.default", "eager"]["before"], found["aten.cumsum.default", "eager"]["after"]) == (
        "fallback",
        "kernel",
    )
    assert found["aten.exp.default", "eager"]["kind"] == "gained"
    assert ("aten.mm.default", "eager") not in found
    if not kept:
        assert found["aten.sin.default", "compiled"]["kind"] == "gained"  # a handler more, which no registration shows
    words = op("sigmoid", "cumsum", "--against", given, "--package", new, home=home).stdout
    assert "lost     aten.sigmoid.default eager: kernel -> none" in words
    assert "aten.exp" not in words, "only the ops that were named"


def test_a_build_is_not_different_from_itself(builds):
    home, old, _ = builds
    assert "no op changed its form" in op("--against", old, "--package", old, home=home).stdout


@pytest.mark.parametrize(
    "content", [None, "", "{}", "[]", '{"ops": [{"name": "aten.mm", "overloads": {"default": {}}}]}']
)
def test_what_is_no_build_is_said_with_the_way_on(content, builds, tmp_path):
    home, old, _ = builds
    given = tmp_path / "build"
    if content is not None:
        given.write_text(content)
    done = op("--against", given, "--package", old, home=home)
    assert done.returncode == 2 and "next:" in done.stderr and "Traceback" not in done.stderr


def test_the_list_of_ops_without_a_kernel_is_made_from_all(builds):
    """As tests of models keep it: every packet with a CPU fallback that has no kernel for that overload."""
    home, old, _ = builds
    told = json.loads(op("--all", "--json", "--package", old, home=home).stdout)
    listed = {o["name"] for o in told["ops"] if any(forms["eager"] == "fallback" for forms in o["overloads"].values())}
    assert listed == {"aten.cumsum"}
    assert all(
        o["overloads"][name]["works"]["eager"] for o in told["ops"] if o["name"] in listed for name in ("default",)
    )
