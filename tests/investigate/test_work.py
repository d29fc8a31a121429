"""The steps of an investigation on disk: done once, taken up, never mixed with those of another tree."""

import pytest

from debug_spyre.investigate.io.matrix import Work
from debug_spyre.vocabulary.errors import RefusedError


def work(folder, minutes=5.0):
    made = Work(folder, folder, minutes, lambda _folder: None)
    made.load()
    return made


def test_a_step_is_done_once_also_by_a_later_process(tmp_path):
    done = []
    for _ in range(2):
        assert work(tmp_path).once("k1/session", lambda: done.append(1) or "stem") == "stem"
    assert done == [1]


def test_steps_of_another_tree_are_not_gone_on_with(tmp_path):
    work(tmp_path).check_under({"the tree": "a", "torch-spyre": "x"})
    work(tmp_path).check_under({"the tree": "a", "torch-spyre": "x"})
    with pytest.raises(RefusedError, match="the tree changed") as refused:
        work(tmp_path).check_under({"the tree": "b", "torch-spyre": "x"})
    assert refused.value.next


def test_what_the_budget_leaves_out_is_named_once_and_a_resumed_call_has_its_own_minutes(tmp_path):
    spent = work(tmp_path, minutes=1e-9)
    assert not spent.has_time("shadow in context") and not spent.has_time("shadow in context")
    assert spent.left_out == ["shadow in context"]
    spent.save()
    again = work(tmp_path)
    assert again.has_time("shadow in context") and again.seconds >= 0


def test_a_torn_state_file_begins_anew(tmp_path):
    (tmp_path / "investigation.json").write_text('{"known": {"matrix"')
    assert work(tmp_path).known == {}
