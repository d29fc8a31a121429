"""The list of sessions, and prune: only old closed sessions and runs of no session go, and nothing else."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from debug_spyre import cli
from debug_spyre.host.files import sweep
from debug_spyre.page.io import page
from debug_spyre.session import events as ev
from debug_spyre.session.io.workspace import Folder, session_folders


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
        "import os, sys; sys.path.insert(0, sys.argv[1]); from pathlib import Path; from debug_spyre.host import files\n"
        "files.os.replace = lambda *a: os.kill(os.getpid(), 9)\n"
        "files.write_atomically(Path(sys.argv[2]), 'text')"
    )
    scripts = str(Path(page.__file__).parents[3])
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


# -- triages and probes of limits


@pytest.fixture
def triages(logs):
    """Makes a triage of so many days ago, whose files have 1000 bytes each."""

    def make(name, days, *, files=("full-matrix.txt", "runs/r1/job.json", "triage.json")):
        folder = logs / "triage" / name if name != "limits" else logs / name
        for file in files:
            (folder / file).parent.mkdir(parents=True, exist_ok=True)
            (folder / file).write_bytes(b"x" * 1000)
            os.utime(folder / file, (time.time() - days * 86400,) * 2)
        return folder

    return make


def prune(capsys, *words):
    capsys.readouterr()
    assert cli.main(["prune", "--json", *words]) == 0
    return json.loads(capsys.readouterr().out)


def open_on(logs, triage, *, closed=False):
    """A session that was opened on the triage: its run's output by hard link, its path as the source."""
    folder = logs / "debug-20260801-101010-opened"
    folder.mkdir()
    lines = [
        {"kind": "session_opened", "stem": folder.name, "slug": "opened", "symptom": "s", "members": [],
         "checkout": "/c", "source": str(triage)},
    ]  # fmt: skip
    lines += [{"kind": "session_closed", "status": "resolved"}] if closed else []
    head = {"v": 1, "at": "2026-08-01T10:10:10.000Z", "by": "t"}
    text = "".join(json.dumps({**head, "seq": n, **line}) + "\n" for n, line in enumerate(lines, start=1))
    (folder / "journal.jsonl").write_text(text)
    os.link(triage / "full-matrix.txt", folder / "full-matrix.txt")
    return folder


def test_prune_takes_old_triages_and_probes_of_limits_and_says_their_bytes(logs, triages, capsys):
    old, young = triages("20260601-101010-ab12", 40), triages("20260701-101010-cd34", 3)
    mine, probes = triages("by hand", 40), triages("limits", 40, files=("journal.jsonl", "r1.txt", "runs/r1/job.json"))
    (logs / "limits.json").write_text("{}")
    elsewhere = logs.parent / "elsewhere"
    elsewhere.mkdir()
    link = logs / "triage/20260601-101010-ef56"
    link.symlink_to(elsewhere)
    said = prune(capsys, "--older", "30", "--dry-run")
    assert [(r["folder"], r["days"], r["bytes"]) for r in said["runs"]] == [
        ("triage/20260601-101010-ab12", 40, 3000),
        ("limits", 40, 3000),
    ]
    assert old.is_dir() and probes.is_dir()
    done = prune(capsys, "--older", "30")
    assert done["runs"] == said["runs"]
    assert done["bytes"] == said["bytes"] >= 6000
    assert not old.exists() and not probes.exists()
    assert young.is_dir() and mine.is_dir() and elsewhere.is_dir() and link.is_symlink()
    assert (logs / "limits.json").is_file()  # the answers are kept
    assert prune(capsys, "--older", "30")["runs"] == []


def test_prune_says_in_words_what_it_removed(logs, triages, capsys):
    triages("20260601-101010-ab12", 40)
    assert cli.main(["prune", "--older", "30", "--dry-run"]) == 0
    said = capsys.readouterr().out
    assert "would remove triage/20260601-101010-ab12  silent 40 days, 3 kB" in said
    assert "1 folder of runs, " in said.splitlines()[-1] and " bytes; " in said.splitlines()[-1]


def test_a_triage_stays_while_a_session_that_was_opened_on_it_is_open(logs, triages, capsys):
    old = triages("20260601-101010-ab12", 40)
    session = open_on(logs, old)
    assert prune(capsys, "--older", "30")["runs"] == []
    with (session / "journal.jsonl").open("a") as stream:  # who refers to what is not known any more
        stream.write("not json\n")
    assert prune(capsys, "--older", "30")["runs"] == []
    assert old.is_dir()


def test_what_a_closed_session_shares_by_hard_link_is_no_gain_while_it_stays(logs, triages, capsys):
    old = triages("20260601-101010-ab12", 40)
    session = open_on(logs, old, closed=True)
    young = (time.time() - 86400,) * 2
    text = (session / "journal.jsonl").read_text().replace("2026-08-01", time.strftime("%Y-%m-%d"))
    (session / "journal.jsonl").write_text(text)
    os.utime(session / "journal.jsonl", young)
    before = prune(capsys, "--older", "30", "--dry-run")
    (found,) = before["runs"]
    shared = before["bytes"]
    assert found["bytes"] == 3000
    os.unlink(session / "full-matrix.txt")
    assert prune(capsys, "--older", "30", "--dry-run")["bytes"] == shared + 1000


def test_what_goes_with_all_its_names_is_counted_once(logs, triages, capsys):
    old = triages("20260601-101010-ab12", 40)
    alone = prune(capsys, "--older", "0", "--dry-run")["bytes"]
    session = open_on(logs, old, closed=True)
    whole = alone + (session / "journal.jsonl").stat().st_size
    done = prune(capsys, "--older", "0")
    assert (done["bytes"], old.exists(), session.exists()) == (whole, False, False)


@pytest.mark.parametrize("name", ["20260601-101010-ab12", "limits"])
def test_a_run_that_goes_on_keeps_its_folder(logs, triages, capsys, name):
    """Its supervisor holds the lock of job.json, however old its last word is."""
    folder = triages(name, 40)
    code = "import fcntl, sys; f = open(sys.argv[1]); fcntl.flock(f, fcntl.LOCK_EX); print(1, flush=True); input()"
    argv = [sys.executable, "-c", code, str(folder / "runs/r1/job.json")]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as minding:
        minding.stdout.readline()
        assert prune(capsys, "--older", "0")["runs"] == []
        assert (folder / "full-matrix.txt").is_file()
        minding.communicate(b"\n")
    assert len(prune(capsys, "--older", "0")["runs"]) == 1
    assert not folder.exists()


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
