"""The list of sessions, and prune: only old closed sessions go, and nothing else."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from debug_spyre import cli
from debug_spyre.core import events as ev
from debug_spyre.edge import page
from debug_spyre.edge.files import sweep
from debug_spyre.edge.workspace import Folder, session_folders


@pytest.fixture
def checkout(tmp_path, monkeypatch):
    (tmp_path / ".git").mkdir()
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def logs(checkout, pages, story):
    folder = checkout / ".claude/skills/debug-spyre/logs"
    folder.mkdir(parents=True)
    for ending, stem in (
        ("investigating", "debug-20260730-141205-wide"),
        ("resolved", "debug-20260729-101010-index"),
        ("blocked", "debug-20260728-101010-softmax"),
    ):
        copy = story.fresh_copy(pages[ending].path, folder, stem)
        text = (
            copy.journal.path.read_text().replace(story.STEM, stem).replace("rmsnorm-wide-hidden-mismatch", stem[22:])
        )
        copy.journal.path.write_text(text)
        page.render(copy)
    return folder


def test_all_sessions_are_listed_with_what_they_are_about(logs, strict):
    html = page.render_index(logs).read_text(encoding="utf-8")
    found = strict.check(html)
    assert {
        "debug-20260730-141205-wide.html",
        "debug-20260729-101010-index.html",
        "debug-20260728-101010-softmax.html",
    } <= set(found.links)
    assert "3 sessions, 1 investigating" in found.text
    assert "RMSNorm on the card is wrong" in found.text
    assert "Now: post-fix-matrix, 37 of 60 done, 2 failing" in found.text
    assert "What it was: The mean's cross-core reduction" in found.text
    assert "12 members" in found.text and "f8d4f43b91" in found.text
    assert html.index("debug-20260730") < html.index("debug-20260729") < html.index("debug-20260728")


def test_the_list_is_the_same_bytes_again(logs):
    first = page.render_index(logs).read_bytes()
    assert page.render_index(logs).read_bytes() == first


def test_a_session_that_cannot_be_read_is_listed_as_such(logs, strict):
    broken = logs / "debug-20260727-101010-broken"
    broken.mkdir()
    (broken / "journal.jsonl").write_text("not json <b>\n")
    found = strict.check(page.render_index(logs).read_text(encoding="utf-8"))
    assert "unreadable" in found.text and "4 sessions" in found.text


def test_an_empty_list_says_how_to_begin(tmp_path, strict):
    found = strict.check(page.render_index(tmp_path).read_text(encoding="utf-8"))
    assert "No session was opened" in found.text and "debug-spyre triage" in found.text


def test_render_and_index_print_absolute_paths(logs, capsys):
    assert cli.main(["render", "--all"]) == 0
    out = capsys.readouterr().out.splitlines()
    assert out[-1] == str(logs / "index.html") and len(out) == 4
    assert cli.main(["render", "--session", "wide", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {
        "schema": 1,
        "pages": [str(logs / "debug-20260730-141205-wide.html")],
    }
    assert cli.main(["index", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["sessions"] == 3


def test_one_damaged_journal_keeps_no_other_page_from_being_written(logs, capsys):
    event = '{"v":1,"seq":9,"at":"t","by":"b","kind":"session_closed","status":"%s"}\n'
    damaged = ("debug-20260730-141205-wide", event % "finished"), ("debug-20260729-101010-index", "not json\n")
    for stem, line in damaged:
        with (logs / stem / "journal.jsonl").open("a") as stream:
            stream.write(line)
    assert cli.main(["render", "--all"]) == 2
    told = capsys.readouterr()
    assert told.out.splitlines() == [str(logs / "debug-20260728-101010-softmax.html"), str(logs / "index.html")]
    assert "finished" in told.err and "damaged" in told.err
    assert cli.main(["render", "--session", "wide"]) == 2


def test_what_a_killed_writer_left_is_swept_an_hour_later_and_nothing_else(logs):
    folder = logs / "debug-20260730-141205-wide"
    old = time.time() - 4000
    left = [logs / ".index.html.abcd1234.part", folder / ".log.md.abcd1234.part"]
    spared = [logs / ".mine", logs / "x.part", folder / ".stop-holds"]
    for path in (*left, *spared):
        path.write_text("x")
        os.utime(path, (old, old))
    young = logs / ".index.html.efgh5678.part"
    young.write_text("x")
    os.utime(logs / "index.html", (old, old))
    page.render(Folder(folder))
    assert not any(path.exists() for path in left)
    assert all(path.exists() for path in (*spared, young))


def test_a_killed_write_leaves_a_name_that_is_swept(tmp_path):
    code = (
        "import os, sys; sys.path.insert(0, sys.argv[1]); from pathlib import Path; from debug_spyre.edge import files\n"
        "files.os.replace = lambda *a: os.kill(os.getpid(), 9)\n"
        "files.write_atomically(Path(sys.argv[2]), 'text')"
    )
    scripts = str(Path(page.__file__).parents[2])
    assert subprocess.run([sys.executable, "-c", code, scripts, str(tmp_path / "a page")]).returncode == -9
    (left,) = tmp_path.iterdir()
    os.utime(left, (1, 1))
    sweep(tmp_path)
    assert not list(tmp_path.iterdir())


def test_index_without_any_session_is_a_plain_no(checkout, capsys):
    assert cli.main(["index"]) == 64
    assert "next:" in capsys.readouterr().err
    assert list(checkout.iterdir()) == [checkout / ".git"]


def test_prune_removes_old_closed_sessions_and_nothing_else(logs, capsys):
    keep = [logs / "notes.txt", logs / "debug-own-folder", logs / "triage", logs / "debug-20260101-000000-link"]
    keep[0].write_text("mine")
    keep[1].mkdir()
    keep[2].mkdir()
    outside = logs.parent / "elsewhere"
    outside.mkdir()
    (outside / "journal.jsonl").write_bytes((logs / "debug-20260729-101010-index/journal.jsonl").read_bytes())
    keep[3].symlink_to(outside)
    assert cli.main(["prune", "--older", "1", "--dry-run"]) == 0
    said = capsys.readouterr().out
    assert "would remove debug-20260729-101010-index" in said and "would remove 2 closed sessions" in said
    assert len(session_folders(logs)) == 4
    assert cli.main(["prune", "--older", "1", "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert [s["stem"] for s in data["sessions"]] == ["debug-20260728-101010-softmax", "debug-20260729-101010-index"]
    assert (
        not (logs / "debug-20260729-101010-index").exists() and not (logs / "debug-20260729-101010-index.html").exists()
    )
    assert (logs / "debug-20260730-141205-wide.html").exists() and (logs / "debug-20260730-141205-wide").is_dir()
    assert all(path.exists() for path in keep) and (outside / "journal.jsonl").exists()
    assert "debug-20260729" not in (logs / "index.html").read_text()


def test_prune_spares_what_is_young(logs, capsys):
    assert cli.main(["prune", "--older", "90000d"]) == 0
    assert "removed 0 closed sessions" in capsys.readouterr().out
    assert len(session_folders(logs)) == 3


@pytest.mark.parametrize("days", ["soon", "-1", "nan", "1e9", ""])
def test_prune_takes_only_days(logs, capsys, days):
    assert cli.main(["prune", "--older", days]) == 64
    assert "days" in capsys.readouterr().err
    assert len(session_folders(logs)) == 3


def test_the_list_follows_the_sessions_by_itself(tmp_path, story, strict):
    told = story.Story(tmp_path)
    story.opened(told)
    page.render(told.folder)
    index = tmp_path / "index.html"
    assert "1 session, 1 investigating" in strict.check(index.read_text()).text
    told.add(ev.HypothesisAdded(number=1, text="x", test="y"))
    index.write_text("as it was")
    page.render(told.folder)
    assert index.read_text() == "as it was"  # not with each small change
    told.add(ev.SessionClosed(status="blocked", next_action="decide this"))
    page.render(told.folder)
    assert "Next: decide this" in strict.check(index.read_text()).text


def test_a_fault_of_the_list_is_not_the_pages(tmp_path, story):
    told = story.Story(tmp_path)
    story.opened(told)
    (tmp_path / "index.html").mkdir()
    assert page.render(told.folder).is_file()
