"""Nothing private survives in any file of a bundle; ordinary text stays; one placeholder per thing."""

import os
import string

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from debug_spyre.escalation.io.bundle import Entry, plan_bundle
from debug_spyre.escalation.redaction import Private, Redactor

EXAMPLES = int(100 * float(os.environ.get("DEBUG_SPYRE_FUZZ", "1")))
WORD = st.text(string.ascii_lowercase, min_size=5, max_size=10).map(lambda w: "q" + w + "z")
TOKEN = st.text(string.ascii_letters + string.digits, min_size=24, max_size=36)
ORDINARY = [
    "AssertionError: Tensor-likes are not close!",
    "Mismatched elements: 5 / 256 (2.0%)",
    "Greatest absolute difference: 0.356689453125 at index (0, 129) (up to 0.01 allowed)",
    "torch_spyre/_inductor/propagate_layouts.py:680: Unsupported: Spyre backend does not support: x",
    "torch.ops.aten.mean.dim(x, [-1], True)  # num_tokens=64, 1.2.3, 12:34:56, a::b, e:f:a",
    "device='spyre:0' strides (256, 1) :: tests/test_a.py::test_b[decode(q=1,kv=256)]",
    "loopback 127.0.0.1:8765 and [::1] and public 8.8.8.8",
]


@st.composite
def planted(draw):
    user, host = draw(WORD), draw(WORD)
    token = draw(TOKEN)
    home = f"/home/{user}"
    secrets = {
        "user": user,
        "host": host,
        "token": token,
        "home": home,
        "ip": f"10.{draw(st.integers(0, 255))}.{draw(st.integers(0, 255))}.{draw(st.integers(1, 254))}",
        "ip2": f"192.168.{draw(st.integers(0, 255))}.{draw(st.integers(1, 254))}",
        "ip6": f"fd00:{draw(st.integers(1, 65535)):x}::{draw(st.integers(1, 65535)):x}",
        "mac": ":".join(f"{draw(st.integers(0, 255)):02x}" for _ in range(6)),
        "mail": f"{user}@{host}.example",
        "github": "ghp_" + token,
        "hugging": "hf_" + token,
        "password": "pw" + token,
    }
    templates = [
        "HF_TOKEN={hugging}",
        "Authorization: Bearer {github}",
        "https://x:{password}@{host}/repo.git",
        "{home}/spyre-inference/x.py:3",
        "{user}@{host}:~$ pytest",
        "connect {ip} via {ip2} [{ip6}] {mac}",
        "mail {mail}",
        "MY_SECRET_KEY='{password}'",
        "cd /home/{user}/a && echo {token}",
        'File "/home/other{user}/b.py", line 3',
    ]
    lines = draw(st.permutations(templates + ORDINARY))
    text = "\n".join(line.format(**secrets) if line in templates else line for line in lines)
    private = Private(users=(user,), hosts=(host,), homes=(home,), secrets=(token,))
    return text, secrets, private


@settings(max_examples=EXAMPLES, deadline=None)
@given(planted())
def test_property_nothing_planted_survives_and_ordinary_text_stays(case):
    text, secrets, private = case
    plan = plan_bundle(
        [Entry("issue.md", text=text, must=True), Entry(f"logs/{secrets['user']}-baseline.txt", text=text)],
        private=private,
    )
    for name, data in plan.files:
        found = data.decode()
        for what, value in secrets.items():
            assert value not in found, f"{what} {value!r} survived in {name}"
            assert value not in name
        for line in ORDINARY:
            assert line in found, f"{line!r} was changed"


@settings(max_examples=EXAMPLES, deadline=None)
@given(planted())
def test_property_redacting_twice_changes_nothing_and_places_agree(case):
    text, _, private = case
    redactor = Redactor(private)
    once = redactor.redact(text)
    assert redactor.redact(once) == once
    assert Redactor(private).redact(text) == once


@settings(max_examples=EXAMPLES, deadline=None)
@given(st.text(max_size=200))
def test_property_any_text_is_survived(text):
    Redactor(Private(users=("ana",), hosts=("box",), homes=("/home/ana",))).redact(text)


def test_the_same_thing_has_the_same_placeholder_in_every_file():
    private = Private(users=("carmen",), hosts=("zeus9",))
    plan = plan_bundle([Entry("a", text="carmen on zeus9"), Entry("b", text="zeus9: carmen")], private=private)
    assert dict(plan.files) == {"a": b"<user-1> on <host-1>", "b": b"<host-1>: <user-1>"}
    assert plan.redactor.map == {"carmen": "<user-1>", "zeus9": "<host-1>"}


@pytest.mark.parametrize(("user", "text"), [("ana", "analysis of banana"), ("tor", "torch_spyre")])
def test_a_short_name_does_not_eat_words(user, text):
    assert Redactor(Private(users=(user,))).redact(text) == text


def test_names_that_cannot_be_hidden_are_told():
    assert Redactor(Private(users=("root", "jo"))).unhidden() == ("jo", "root")


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("ssh builder@node17:~/x", "node17"),
        ("scp ops@farm-3.zrl:/data/x .", "farm-3.zrl"),
        ("connect to worker-5.spyre.internal failed", "worker-5.spyre.internal"),
        ("db01.corp refused", "db01.corp"),
        ("http://gpuhost7:8080/v1/models", "gpuhost7"),
        ("https://artifactory.acme-labs.io/simple/", "artifactory.acme-labs.io"),
        ("svc.ns.svc.cluster.local:9000", "svc.ns.svc.cluster.local"),
    ],
)
def test_names_of_other_hosts_are_hidden(text, name):
    shown = Redactor(Private()).redact(text)
    assert name not in shown
    assert "<host-1>" in shown or "<mail-1>" in shown


@pytest.mark.parametrize(
    "text",
    [
        "https://github.com/torch-spyre/torch-spyre/issues/12",
        "https://download.pytorch.org/whl/cpu",
        "spyre://0/x torch.local(x) self.internal.value a.b.private_thing",
        "y = x@weights",
        "from torch._C import local",
    ],
)
def test_public_hosts_and_code_stay(text):
    assert Redactor(Private()).redact(text) == text
