"""revert takes back what the session did and nothing else; a patch holds no secret and still applies."""

import os
import random
import subprocess

import pytest
from tests.gate.conftest import Story, git, state_of

from debug_spyre.tree.changes import mask_patch
from debug_spyre.tree.io.revert import revert
from debug_spyre.tree.io.snapshot import snapshot, tree_digest
from debug_spyre.tree.io.test_code import patch_since

TOKEN = "ghp_" + "a1B2" * 9
OTHERS = [
    ".env", "notes of a person.md", "data/out.bin", "report.csv", "spyre_inference/.env", "tests/id_rsa", "deploy.key",
    "debug2.log", "build/lib.o", "credentials.json", "tests/.env.local", "Makefile.local",
]  # fmt: skip


def put(checkout, name, text):
    (checkout / name).parent.mkdir(parents=True, exist_ok=True)
    (checkout / name).write_text(text)


def test_files_of_a_person_or_another_program_stay_and_are_named(repository, folder):
    tree = snapshot(repository, folder)
    put(repository, "spyre_inference/ops.py", "fixed = 1\n")
    put(repository, "spyre_inference/made_for_the_fix.py", "x = 1\n")
    for name in OTHERS:
        put(repository, name, f"mine, {TOKEN}\n")
    done = revert(repository, tree, folder)
    assert [c.name for c in done.changes] == ["spyre_inference/made_for_the_fix.py", "spyre_inference/ops.py"]
    for name in OTHERS:
        assert (repository / name).read_text() == f"mine, {TOKEN}\n", name
    ignored = {"debug2.log", "build/lib.o"}  # not even looked at
    assert {c.name for c, _ in done.left} == set(OTHERS) - ignored
    assert all(why for _, why in done.left)
    assert TOKEN.encode() not in done.patch.read_bytes()
    assert not (repository / "spyre_inference/made_for_the_fix.py").exists()


def test_what_a_person_wrote_into_a_file_that_git_does_not_track_stays_and_a_deleted_one_comes_back(repository, folder):
    put(repository, "todo.txt", "one\n")
    tree = snapshot(repository, folder)
    put(repository, "notes by hand.txt", "mine, longer now\n")
    os.unlink(repository / "todo.txt")
    done = revert(repository, tree, folder)
    assert (repository / "notes by hand.txt").read_text() == "mine, longer now\n"
    assert (repository / "todo.txt").read_text() == "one\n"
    assert [c.name for c, _ in done.left] == ["notes by hand.txt"]


@pytest.mark.parametrize("seed", range(15))
def test_property_others_never_lose_a_byte_and_the_sessions_part_comes_back(repository, folder, seed):
    chance = random.Random(seed)
    tree, before = snapshot(repository, folder), state_of(repository)
    theirs = {name: f"{chance.random()}\n" for name in chance.sample(OTHERS, chance.randint(1, 6))}
    ours = chance.sample(["spyre_inference/new.py", "tests/test_new.py", "tests/data/x.json", "helper.py"], 2)
    writes = [*theirs.items(), *((name, "y = 2\n") for name in ours), ("spyre_inference/ops.py", "z = 3\n")]
    chance.shuffle(writes)
    for name, text in writes:
        put(repository, name, text)
    if chance.random() < 0.5:
        git(repository, "add", ours[0])
    done = revert(repository, tree, folder)
    after = state_of(repository)
    assert {n: t for n, t in after[0].items() if os.fsdecode(n) not in theirs} == before[0]
    assert {name: (repository / name).read_text() for name in theirs} == theirs
    git(repository, "apply", str(done.patch))
    assert all((repository / name).read_text() == "y = 2\n" for name in ours)


def test_a_path_that_the_caller_names_is_kept_and_is_in_no_patch(repository, folder):
    tree = snapshot(repository, folder)
    put(repository, "spyre_inference/ops.py", "fixed = 1\n")
    put(repository, "tests/of_a_person/test_mine.py", "def test_mine(): pass\n")
    done = revert(repository, tree, folder, keep=["tests/of_a_person"])
    assert (repository / "tests/of_a_person/test_mine.py").exists()
    assert b"test_mine" not in done.patch.read_bytes()
    assert [(c.name, why) for c, why in done.left] == [("tests/of_a_person/test_mine.py", "as asked")]


def test_the_verb_names_what_it_leaves(place):
    place.tell(Story())
    put(place.checkout, "spyre_inference/ops.py", "fixed = 1\n")
    put(place.checkout, "of a person.md", "mine\n")
    status, out, _ = place.run("revert", "--session", place.folder.stem)
    assert status == 0
    assert "left as it is: of a person.md (no test sees it" in out
    status, data = place.json("revert", "--session", place.folder.stem)
    assert (status, [x["path"] for x in data["left"]]) == (0, ["of a person.md"])
    assert (place.checkout / "of a person.md").exists()


SECRETS = {
    "a token": f'TOKEN_OF_BOT = "{TOKEN}"\n',
    "a token in a call": f"login('{TOKEN}')\n",
    "a quoted password": "password = 'hunter2x3'\n",
    "an address": "url = 'https://bob:s3cr3tpw@host.internal/x'\n",
    "a key": "KEY = '''\n-----BEGIN RSA PRIVATE KEY-----\nMIIEabc\n123\n-----END RSA PRIVATE KEY-----\n'''\nlast = 1\n",
    "a json web token": "jwt = 'eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.c2lnbmF0dXJlMTIz'\n",
}
PLAIN = ["hunter2x3", TOKEN, "s3cr3tpw", "MIIEabc", "eyJhbGciOiJIUzI1NiJ9.eyJ"]


@pytest.mark.parametrize("text", SECRETS.values(), ids=SECRETS)
def test_a_secret_in_source_is_not_in_the_patch_which_still_applies(repository, folder, text):
    tree, before = snapshot(repository, folder), state_of(repository)
    put(repository, "spyre_inference/ops.py", f"def rms(x):\n    return x * 2\n{text}\nend = 1\n")
    whole = (repository / "spyre_inference/ops.py").read_bytes()
    done = revert(repository, tree, folder)
    assert state_of(repository) == before
    patch = done.patch.read_text()
    assert not [s for s in PLAIN if s in patch]
    assert done.masked == ("spyre_inference/ops.py",)
    git(repository, "apply", str(done.patch))
    put_on = (repository / "spyre_inference/ops.py").read_text()
    assert "return x * 2" in put_on and "end = 1" in put_on and "[masked]" in put_on
    kept = subprocess.run(
        ["git", "cat-file", "blob", git(repository, "hash-object", "--stdin", input=whole).decode().strip()],
        cwd=repository, env={**os.environ, "GIT_OBJECT_DIRECTORY": str(folder / "tree/objects")}, capture_output=True, check=True,
    )  # fmt: skip
    assert kept.stdout == whole, "nothing that was written over is lost"


def test_a_file_with_a_secret_in_a_line_that_has_to_stay_is_left_out_and_the_rest_applies(repository, folder):
    put(repository, "spyre_inference/old.py", f'T = "{TOKEN}"\nx = 1\n')
    tree, before = snapshot(repository, folder), state_of(repository)
    put(repository, "spyre_inference/old.py", "x = 1\n")
    put(repository, "spyre_inference/ops.py", "y = 1\n")
    done = revert(repository, tree, folder)
    assert state_of(repository) == before
    assert TOKEN not in done.patch.read_text()
    git(repository, "apply", str(done.patch))
    assert (repository / "spyre_inference/ops.py").read_text() == "y = 1\n"


def test_a_masked_patch_is_not_told_as_leading_to_the_tree_that_was_measured(place):
    place.tell(Story())
    put(place.checkout, "spyre_inference/ops.py", f'T = "{TOKEN}"\n')
    patched = tree_digest(place.checkout)
    status, out, _ = place.run("revert", "--session", place.folder.stem)
    assert status == 0
    assert "holds a secret" in out and TOKEN not in out
    assert place.session.reverts[-1].patched is None
    assert patched not in str(place.session.reverts)


CODE = """\
token: str = other
self.secret_key = secret_key
api_key = os.environ["API_KEY"]
num_tokens = 64
CACHE_KEY = (a, b)
password = getpass("Password: ")
key = "aten.mm"
key_averages = prof.key_averages()
tokens = tokenizer("text", return_tensors="pt")
assert token == "expected"
KEYS = {"token": "str", "key": "value"}
x = sk_live if hf_hub else gl
KEY_WORD = "passthrough"
credential = f"{user}:{secret}"
"""


def test_ordinary_code_about_tokens_and_keys_stays_as_it_is(repository, folder):
    tree = snapshot(repository, folder)
    put(repository, "spyre_inference/ops.py", CODE)
    raw = patch_since(repository, tree, folder)
    assert mask_patch(raw).text == raw
    done = revert(repository, tree, folder)
    git(repository, "apply", str(done.patch))
    assert (repository / "spyre_inference/ops.py").read_text() == CODE
