"""A hundred secrets in four positions through a real session: none in page, twin, answers, patch or bundle.

The runs, the page, the patch and the bundle are real; detect-secrets judges beside our own list of what was planted.
"""

import pytest
from detect_secrets import SecretsCollection
from detect_secrets.settings import transient_settings
from tests.gate.conftest import folder, interpreter, place, repository
from tests.vocabulary.test_planted_secrets import ORDINARY, PLANTED, positions

from debug_spyre.escalation.io.bundle import plan_bundle, private_of_this_host, write_bundle
from debug_spyre.escalation.io.handover import gather
from debug_spyre.page.io import page
from debug_spyre.page.page_context import OLDER
from debug_spyre.session.io.workspace import all_evidence
from debug_spyre.tree.io.snapshot import snapshot

__all__ = ["folder", "interpreter", "place", "repository"]

JUDGES = (
    "AWSKeyDetector", "AzureStorageKeyDetector", "BasicAuthDetector", "DiscordBotTokenDetector", "GitHubTokenDetector", "GitLabTokenDetector",
    "JwtTokenDetector", "NpmDetector", "OpenAIDetector", "PrivateKeyDetector", "PypiTokenDetector", "SendGridDetector", "SlackDetector",
    "StripeDetector", "TwilioKeyDetector",
)  # fmt: skip
TEXTS = [(text, hidden) for secret, form in PLANTED for _, text, hidden in positions(secret, form)]
HIDDEN = sorted({hidden for _, hidden in TEXTS})
# the first tests print, one raises, and a name carries one: outputs, digests, results and evidence have them all
LEAK = """\
import pytest
TEXTS = {texts!r}
@pytest.mark.parametrize("n", range({count}))
def test_leak(n):
    print(TEXTS[n])
    raise AssertionError("left: " + TEXTS[n])
"""


def judged(path):
    with transient_settings({"plugins_used": [{"name": name} for name in JUDGES]}):
        found = SecretsCollection()
        found.scan_file(str(path))
    return [(secret.type, secret.line_number, secret.secret_value) for _, secret in found]


def test_the_judge_finds_what_is_not_masked(tmp_path):
    """Else it would prove nothing."""
    (tmp_path / "x.txt").write_text("\n".join(text for text, _ in TEXTS[::5]))
    assert len(judged(tmp_path / "x.txt")) >= 10


@pytest.fixture
def session(place, interpreter, monkeypatch):
    """A session that was opened in this checkout, with the leaking tests in it."""
    from tests.gate.conftest import Story

    from debug_spyre.session import events as ev

    monkeypatch.setenv("DEBUG_SPYRE_PYTHON", str(interpreter[0]))
    monkeypatch.delenv("CLAUDECODE", raising=False)
    chosen = [text for text, _ in TEXTS]
    (place.checkout / "tests/test_leak.py").write_text(LEAK.format(texts=chosen, count=len(chosen)))
    story = Story(members=("tests/test_leak.py::test_leak[0]",))
    place.tell(story)
    assert isinstance(story.events[0], ev.SessionOpened)
    snapshot(place.checkout, place.folder.path)
    return place


@pytest.mark.long
def test_nothing_planted_leaves_the_session(session, tmp_path):
    at = ("--session", session.folder.stem)
    answers = []

    def call(*words):
        status, out, err = session.run(*words, *at)
        answers.append(out + err)
        return status

    assert call("run", "--as", "baseline", "--tb=short", "tests/test_leak.py") == 1
    for n, (text, _) in enumerate(TEXTS[:: len(TEXTS) // 12]):
        call("note", "finding", text)
        call("hypothesis", "add", f"row {n} {text}", "--test", f"c {text}")
    call("note", "experiment", "by hand", "--command", TEXTS[0][0], "--conclusion", TEXTS[5][0])
    for words in (
        ["status"],
        ["status", "--json"],
        ["hypothesis", "list"],
        ["validate"],
        ["close", "resolved", "--check"],
        ["cluster", "list"],
    ):
        call(*words)
    lines = "".join(f"S{n} = {text!r}\n" for n, (text, _) in enumerate(TEXTS))
    (session.checkout / "spyre_inference/ops.py").write_text(f"def rms(x):\n    return x * 2\n{lines}")
    (session.checkout / "spyre_inference/ordinary.py").write_text(
        "".join(f"T{n} = {t!r}\n" for n, t in enumerate(ORDINARY))
    )
    assert call("revert") == 0
    html = page.render(session.folder)
    state = session.session
    issue, entries = gather(session.folder, state, all_evidence(session.folder, state))
    bundle, archive = write_bundle(plan_bundle(entries, private=private_of_this_host()), tmp_path / "bundle")
    (tmp_path / "answers.txt").write_text("\n".join(answers))
    seen = [
        html,
        session.folder.markdown,
        tmp_path / "answers.txt",
        *session.folder.path.glob("*.patch"),
        *bundle.rglob("*"),
    ]
    seen += [x for x in [session.folder.path / OLDER] if x.exists()]
    files = [f for f in seen if f.is_file()]
    assert len(files) > 8 and archive.exists() and issue
    leaks = {}
    for file in files:
        text = file.read_text(errors="replace")
        found = [secret for secret in HIDDEN if secret in text]
        around = [text[max(text.index(secret) - 60, 0) : text.index(secret) + len(secret) + 10] for secret in found[:4]]
        leaks |= {file.name: around} if found else {}
    assert leaks == {}
    told = {f.name: found for f in files if (found := judged(f))}
    assert told == {}
    patch = next(f for f in files if f.suffix == ".patch").read_text()
    for text in ORDINARY:
        assert f" = {text!r}\n" in patch, "ordinary text is unharmed"
