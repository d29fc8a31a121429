"""Whatever kills a renderer, a reader sees a whole page; renderers at once end with the newest one."""

import os
import random
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

from debug_spyre.page.io import page
from debug_spyre.session import events as ev
from debug_spyre.session.io.journal import Journal

SCRIPTS = Path(page.__file__).parents[3]
RENDER = "import sys; sys.path.insert(0, sys.argv[1]); from pathlib import Path; from debug_spyre.page.io import page; from debug_spyre.session.io.workspace import Folder\n"
FOREVER = RENDER + "f = Folder(Path(sys.argv[2]))\nwhile True: page.render(f); print('x', flush=True)"
APPENDING = RENDER + (
    "from debug_spyre.session.io.journal import Journal; from debug_spyre.session import events as ev\n"
    "f = Folder(Path(sys.argv[2]))\n"
    "for n in range(12): Journal(f.path).append(ev.NextNoted(text=f'{sys.argv[3]}-{n}')); page.render(f)"
)


def start(code, *words):
    return subprocess.Popen([sys.executable, "-c", code, str(SCRIPTS), *map(str, words)], stdout=subprocess.PIPE)


def test_a_renderer_killed_at_any_moment_leaves_a_whole_page(story, strict, tmp_path):
    folder = story.realistic(tmp_path, ending="shut").folder
    page.render(folder)
    whole = folder.html.read_bytes()
    chance = random.Random(5)
    for _ in range(8):
        process = start(FOREVER, folder.path)
        process.stdout.readline()
        time.sleep(chance.random() * 0.12)
        process.send_signal(signal.SIGKILL)
        process.wait()
        process.stdout.close()
        assert folder.html.read_bytes() == whole
        strict.check(folder.html.read_text(encoding="utf-8"))
    page.render(folder)
    assert folder.html.read_bytes() == whole


def test_a_renderer_killed_between_two_states_leaves_the_old_page_or_the_new(story, tmp_path):
    folder = story.realistic(tmp_path, ending="shut").folder
    page.render(folder)
    allowed = {folder.html.read_bytes()}
    process = start(FOREVER, folder.path)
    process.stdout.readline()
    for number in range(4):
        Journal(folder.path).append(ev.NextNoted(text=f"next {number}"))
        process.stdout.readline()
        process.stdout.readline()
    process.kill()
    process.wait()
    process.stdout.close()
    seen = folder.html.read_bytes()
    page.render(folder)
    allowed.add(folder.html.read_bytes())
    assert seen in allowed


def test_writers_and_renderers_at_once_never_show_half_and_end_with_the_newest(story, strict, tmp_path):
    folder = story.realistic(tmp_path, ending="shut").folder
    page.render(folder)
    stop, looked, faults = threading.Event(), [], []

    def watch():
        while not stop.is_set():
            text = folder.html.read_text(encoding="utf-8")
            looked.append(text.count("</html>"))
            if not text.rstrip().endswith("</html>"):
                faults.append(len(text))
            time.sleep(0.005)

    watcher = threading.Thread(target=watch)
    watcher.start()
    writers = [start(APPENDING, folder.path, name) for name in ("one", "two", "three")]
    assert [w.wait() for w in writers] == [0, 0, 0]
    for writer in writers:
        writer.stdout.close()
    stop.set()
    watcher.join()
    assert faults == [] and len(looked) > 10
    text = strict.check(folder.html.read_text(encoding="utf-8")).text
    assert all(f"{name}-11" in text for name in ("one", "two", "three"))
    assert not [p for p in tmp_path.iterdir() if p.name.startswith(".")]


def test_a_stopped_renderer_does_not_stop_the_others(story, tmp_path, monkeypatch):
    folder = story.realistic(tmp_path, ending="shut").folder
    hold = start(
        "import fcntl, os, sys, time; fcntl.flock(os.open(sys.argv[2], os.O_RDONLY), fcntl.LOCK_EX); print('x', flush=True); time.sleep(60)",
        folder.path,
    )
    hold.stdout.readline()
    monkeypatch.setattr(page, "PATIENCE", 0.3)
    page.render(folder)
    assert folder.html.exists()
    hold.kill()
    hold.wait()
    hold.stdout.close()


def test_a_full_disk_leaves_the_old_page(story, tmp_path):
    folder = story.realistic(tmp_path, ending="shut").folder
    page.render(folder)
    before = folder.html.read_bytes()
    Journal(folder.path).append(ev.NextNoted(text="more"))
    limit = "import resource, signal; signal.signal(signal.SIGXFSZ, signal.SIG_IGN); resource.setrlimit(resource.RLIMIT_FSIZE, (20000, 20000))\n"
    code = (
        limit
        + RENDER
        + "from debug_spyre.vocabulary.errors import DebugSpyreError\ntry: page.render(Folder(Path(sys.argv[2])))\nexcept DebugSpyreError as e: print(e.what, e.next); sys.exit(69)"
    )
    process = start(code, folder.path)
    said = process.communicate()[0].decode()
    assert process.returncode == 69, said
    assert "cannot write" in said
    assert folder.html.read_bytes() == before
    assert not [p for p in (*tmp_path.iterdir(), *folder.path.iterdir()) if p.name.startswith(".")]


def test_no_home_no_cache_and_a_read_only_skill_still_render(story, tmp_path):
    folder = story.realistic(tmp_path, ending="shut").folder
    page.render(folder)
    before = folder.html.read_bytes()
    environment = {k: v for k, v in os.environ.items() if k not in {"HOME", "XDG_CACHE_HOME"}} | {
        "PYTHONDONTWRITEBYTECODE": "1"
    }
    done = subprocess.run(
        [sys.executable, "-c", RENDER + "page.render(Folder(Path(sys.argv[2])))", str(SCRIPTS), str(folder.path)],
        env=environment,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert folder.html.read_bytes() == before
