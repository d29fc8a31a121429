"""Secrets don't get through: variables, headers, addresses, tokens by their shape; ordinary text stays."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from debug_spyre.vocabulary.masking import MASK, is_secret_name, mask, mask_environment, mask_words, secret_values

SECRET = "s3cr3tValue0123456789"


@pytest.mark.parametrize(
    "text",
    [
        f"HF_TOKEN={SECRET}",
        f"export GITHUB_TOKEN='{SECRET}'",
        f'"AWS_SECRET_ACCESS_KEY": "{SECRET}"',
        f"'API_KEY': '{SECRET}'",
        f"MY_PASSWORD = {SECRET}",
        f"db_password={SECRET}",
        f"api-key: {SECRET}",
        f"client_secret={SECRET}",
        f"HF_HOME={SECRET}",
        f"Authorization: Bearer {SECRET}",
        f"authorization: Basic {SECRET}==",
        f"{{'Authorization': 'token {SECRET}'}}",
        f"curl -H 'X-Api-Key: {SECRET}'",
        f"Cookie: session={SECRET}",
        f"sent bearer {SECRET}",
        f"https://user:{SECRET}@example.test/simple",
        f"git+https://{SECRET}:x-oauth@example.test/r.git",
        "ghp_" + SECRET,
        "github_pat_" + SECRET,
        "hf_" + SECRET,
        "sk-" + SECRET,
        "sk-proj-" + SECRET,
        "glpat-" + SECRET,
        "AKIA" + "ABCDEFGHIJKLMNOP",
        "xoxb-" + SECRET,
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0." + SECRET,
        f"-----BEGIN RSA PRIVATE KEY-----\n{SECRET}\n-----END RSA PRIVATE KEY-----",
        f"-----BEGIN OPENSSH PRIVATE KEY-----\n{SECRET} cut off",
    ],
)
def test_secrets_are_masked_wherever_they_stand(text):
    for around in ("{}", "before {} after", "E   {}\nnext line"):
        shown = mask(around.format(text))
        assert SECRET not in shown and "ABCDEFGHIJKLMNOP" not in shown, shown
        assert MASK in shown
        assert mask(shown) == shown


@pytest.mark.parametrize(
    "text",
    [
        "tests/test_x.py::test_x[tokens(64)-num_tokens=128-key(1)]",
        "num_tokens=64, key_heads=8, tokenizer: fast",
        "KeyError: 'hidden'",
        "E   AssertionError: assert key == value",
        "hf_config.hidden_size = 512; hf_hub_download",
        "spyre://0 and https://example.test/path:80@x",
        "a mask-shaped disk-like task-runner",
        "torch.ops.spyre.masked_fill is falling back to cpu",
        "Mismatched elements: 126 / 256 (49.2%)",
    ],
)
def test_ordinary_output_is_left_as_it_is(text):
    assert mask(text) == text


def test_a_key_whose_beginning_was_cut_off_is_masked_up_to_its_end():
    shown = mask(f"abc\n{SECRET}\n{SECRET}==\n-----END RSA PRIVATE KEY-----\nafter")
    assert shown == f"{MASK}\nafter" and mask(shown) == shown


def test_values_of_secret_variables_are_masked_where_they_stand_alone():
    values = secret_values({"HF_TOKEN": "plain-looking", "PATH": "/usr/bin", "API_KEY": "abc"})
    assert values == ("plain-looking",)
    assert mask("got plain-looking from there", values) == f"got {MASK} from there"


def test_the_environment_keeps_its_names():
    shown = mask_environment({"HF_TOKEN": "x y", "LEVEL": "info", "GIT_KEY": ""})
    assert shown == {"HF_TOKEN": MASK, "LEVEL": "info", "GIT_KEY": ""}


def test_a_secret_after_its_option_or_with_spaces_is_masked():
    words = mask_words(["run", "--token", "abc def", "--api-key=zzz", "HF_TOKEN=a b", "-k", "token", "tokens=1"])
    assert words == ["run", "--token", MASK, f"--api-key={MASK}", f"HF_TOKEN={MASK}", "-k", "token", "tokens=1"]


@pytest.mark.parametrize(
    ("name", "secret"),
    [("HF_HUB", True), ("MY_KEY_ID", True), ("passwd", True), ("PATH", False), ("SPYRE_DEVICES", False)],
)
def test_names_tell_which_variables_are_secret(name, secret):
    assert is_secret_name(name) is secret


pieces = st.sampled_from(
    [
        "HF_TOKEN=",
        "'",
        '"',
        " ",
        "\n",
        "abc",
        "://u:p@h",
        "Authorization: ",
        "Bearer ",
        MASK,
        "=",
        ":",
        "sk-",
        "KEY",
        "x" * 20,
        "password",
    ]
)


@given(st.lists(pieces | st.text(max_size=6), max_size=12).map("".join))
def test_property_masking_twice_changes_nothing_more(text):
    once = mask(text)
    assert mask(once) == once


@given(
    st.sampled_from(["API_TOKEN", "HF_X", "DB_PASSWORD", "S3_KEY"]),
    st.sampled_from(["=", ": ", '": "', "': '"]),
    st.text(max_size=30),
    st.text(max_size=30),
)
def test_property_a_named_secret_never_survives(name, middle, before, after):
    quote = middle[-1] if middle[-1] in "'\"" else ""
    shown = mask(f"{before}\n{quote}{name}{middle}{SECRET}{quote} {after}")
    assert SECRET not in shown
