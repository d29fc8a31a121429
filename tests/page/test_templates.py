"""The templates are found in a checkout, in an installed skill and in a wheel; compiled ones are kept safely."""

import os
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from debug_spyre.page.io import page

PACKAGE = Path(page.__file__).parents[2]
CODE = (
    "import sys; sys.path.insert(0, sys.argv[1]); from pathlib import Path; from debug_spyre.page.io import page; from debug_spyre.session.io.workspace import Folder\n"
    "from debug_spyre.vocabulary.errors import DebugSpyreError\n"
    "try: page.render(Folder(Path(sys.argv[2]))); print(page.templates_folder())\n"
    "except DebugSpyreError as error: print(error.what, error.next); sys.exit(int(error.status))"
)


@pytest.fixture
def copied(tmp_path):
    """The package under another roof, without templates."""
    scripts = tmp_path / "skill/scripts"
    shutil.copytree(PACKAGE, scripts / "debug_spyre", ignore=shutil.ignore_patterns("__pycache__", "bundle"))
    return scripts


def run(scripts, folder, **env):
    base = {k: v for k, v in os.environ.items() if k != "XDG_CACHE_HOME"}
    return subprocess.run(
        [sys.executable, "-c", CODE, str(scripts), str(folder.path)], capture_output=True, text=True, env=base | env
    )


@pytest.mark.parametrize("place", ["skill/templates", "skill/scripts/debug_spyre/bundle/templates"])
def test_templates_are_found_where_the_skill_or_the_wheel_has_them(copied, story, tmp_path, place):
    shutil.copytree(page.templates_folder(), tmp_path / place)
    folder = story.realistic(tmp_path / "logs", ending="shut").folder
    done = run(copied, folder)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.strip() == str(tmp_path / place)
    assert folder.html.exists()


def test_missing_templates_are_said_with_what_to_do(copied, story, tmp_path):
    folder = story.realistic(tmp_path / "logs", ending="shut").folder
    done = run(copied, folder)
    assert done.returncode == 69
    assert "templates are missing" in done.stdout and "install" in done.stdout
    assert not folder.html.exists()


def test_compiled_templates_are_kept_and_give_the_same_page(story, tmp_path):
    folder = story.realistic(tmp_path / "logs", ending="shut").folder
    scripts, cache = PACKAGE.parent, tmp_path / "cache"
    env = {"XDG_CACHE_HOME": str(cache), "PYTHONDONTWRITEBYTECODE": "1"}
    assert run(scripts, folder, **env).returncode == 0
    first = folder.html.read_bytes()
    kept = list((cache / "debug-spyre/templates").iterdir())
    assert kept
    assert run(scripts, folder, **env).returncode == 0
    assert folder.html.read_bytes() == first
    for path in kept:
        path.write_bytes(b"damaged")
    assert run(scripts, folder, **env).returncode == 0
    assert folder.html.read_bytes() == first


def test_a_cache_that_others_can_write_is_not_used(story, tmp_path):
    folder = story.realistic(tmp_path / "logs", ending="shut").folder
    place = tmp_path / "cache/debug-spyre/templates"
    place.mkdir(parents=True)
    place.chmod(0o777)
    assert (
        run(PACKAGE.parent, folder, XDG_CACHE_HOME=str(tmp_path / "cache"), PYTHONDONTWRITEBYTECODE="1").returncode == 0
    )
    assert list(place.iterdir()) == []
    assert stat.S_IMODE(place.stat().st_mode) == 0o777


def test_the_pages_style_and_script_match_the_policy(pages):
    import base64
    import hashlib
    import re

    html = pages["shut"].html.read_text(encoding="utf-8")
    policy = re.search(r'Content-Security-Policy" content="([^"]+)"', html).group(1)
    for tag, directive in (("style", "style-src"), ("script", "script-src")):
        body = re.search(rf"<{tag}>(.*?)</{tag}>", html, flags=re.S).group(1)
        digest = base64.b64encode(hashlib.sha256(body.encode()).digest()).decode()
        assert f"{directive} 'sha256-{digest}'" in policy
