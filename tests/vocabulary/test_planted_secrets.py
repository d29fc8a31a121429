"""A hundred planted secrets, each in four positions: plain, a colour straight before, cut short, broken over lines; ordinary text stays."""

import random
import string

import pytest

from debug_spyre.vocabulary.masking import MASK, is_secret_name, mask

CHANCE = random.Random(17)
LETTERS = string.ascii_letters + string.digits


def drawn(count, alphabet=LETTERS):
    """Random characters, a digit and a capital among them, as real tokens have."""
    return "".join(CHANCE.choice(alphabet) for _ in range(count - 3)) + "7Q9"


HEADS = {
    "ghp_": 36, "gho_": 36, "ghu_": 36, "ghs_": 36, "ghr_": 36, "github_pat_": 60, "glpat-": 20, "gldt-": 20, "glrt-": 20, "hf_": 34,
    "sk-": 40, "sk-proj-": 48, "sk-ant-api03-": 80, "sk-or-v1-": 50, "xoxb-": 40, "xoxp-": 40, "xapp-": 40, "pypi-": 80,
    "sk_live_": 24, "rk_live_": 24, "pk_test_": 24, "whsec_": 32, "hvs.": 24, "hvb.": 60, "npm_": 36, "dckr_pat_": 27,
    "nvapi-": 60, "gsk_": 50, "ya29.": 60, "shpat_": 32, "lin_api_": 40, "PMAK-": 40, "ATATT3x": 60, "AIza": 35,
}  # fmt: skip
TOKENS = [head + drawn(count) for head, count in HEADS.items() for _ in range(2)]
TOKENS += [
    "AKIA" + drawn(16, string.ascii_uppercase + string.digits),
    "ASIA" + drawn(16, string.ascii_uppercase + string.digits),
]
TOKENS += [f"SG.{drawn(22)}.{drawn(43)}", f"eyJ{drawn(20)}.eyJ{drawn(40)}.{drawn(30)}"]
FORMS = [
    "HF_TOKEN={}", "export API_KEY='{}'", "'MY_SECRET': '{}'", "db_password={}", "--password {}", "--api-key={}", "--token '{}'",
    "curl -u someone:{} https://h.example", "machine h.example login me password {}", "  login me password {}",
    '{{"auths": {{"h": {{"auth": "{}"}}}}}}', "AccountName=a;AccountKey={};x=1", "https://a.blob/x?sv=1&sig={}&se=2",
    "https://b.s3/x?X-Amz-Signature={}&y=1", "Endpoint=sb://x/;SharedAccessKey={}", "Authorization: Bearer {}",
    "//registry.example/:_authToken={}", "https://{}@git.example/r.git", "https://u:{}@git.example/r.git", "Server=s;Uid=u;Pwd={};",
    "Set-Cookie: id={}", "X-Api-Key: {}", "AWS_SECRET_ACCESS_KEY={}", "client_secret: {}", "ENCRYPTION_KEY={}", "CREDENTIALS={}",
    "passphrase={}", "aws_secret_access_key = {}",
]  # fmt: skip
PLANTED = [(token, "E   assert x == {}") for token in TOKENS] + [(drawn(32), form) for form in FORMS]


def positions(secret, form):
    middle = len(secret) // 2 + 4
    yield "plain", form.format(secret), secret
    yield "colour before", form.format(f"\x1b[31m{secret}\x1b[0m"), secret
    yield "colour before, as text", form.format("\\x1b[31m" + secret), secret
    yield "cut", form.format(secret[:middle] + "..."), secret[: middle - 1]
    yield "split", form.format(f"{secret[:middle]}\n{secret[middle:]}"), secret[:middle]


def test_there_are_a_hundred_of_them():
    assert len(PLANTED) >= 100


@pytest.mark.parametrize(("secret", "form"), PLANTED, ids=[f"{n}" for n in range(len(PLANTED))])
def test_no_planted_secret_gets_through_in_any_position(secret, form):
    for name, text, hidden in positions(secret, form):
        shown = mask(text)
        assert hidden not in shown, (name, text, shown)
        assert MASK in shown
        assert mask(shown) == shown
        if name == "split" and form.startswith("E   assert"):
            assert secret[len(secret) // 2 + 4 :] not in shown, (text, shown)


def test_a_known_value_is_masked_where_it_was_broken_or_cut():
    value = drawn(30)
    for text in (
        value,
        f"\x1b[1m{value}",
        f"{value[:12]}...",
        f"{value[:11]}\n    {value[11:]}",
        f"E   {value[:20]}\nE   {value[20:]}",
    ):
        shown = mask(f"got {text} there", (value,))
        assert value[:10] not in shown
        assert value[-10:] not in shown


ORDINARY = [
    "PYTORCH_KEY_AVERAGES=1", "TOKENIZERS_PARALLELISM=false", "VLLM_MAX_NUM_BATCHED_TOKENS=2048", "num_key_value_heads=8", "KEY_HEADS = 8",
    "docker run -u 1000:1000 image", "tests/test_a.py::test_b[tokens(64)-num_tokens=128-key(1)]", "hf_config.hidden_size = 512...",
    "hf_overrides...", "sk-learn and scikit-learn, task-runner, mask-shaped", "the keys of the dict: KeyError: 'hidden'",
    "gl-state glob-pattern glm-4-9b-chat", "xoxo", "SG.x", "device='spyre:0' strides (256, 1)", "login as root", "--token-count 5 --no-tokens",
    "x = a @ b; loss.backward()", "torch.ops.aten.mean.dim(x, [-1], True)", "https://example.test/path?page=2&size=10", "a;b;c", "-k 'token and key'",
    "Mismatched elements: 126 / 256 (49.2%)", "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08", "git rev 1a2b3c4d5e6f",
    "model.layers.0.self_attn.k_proj.weight", "uv pip install pypi-mirror...", "float16\nint64\nr12345", "e3b0c44298fc1c149afbf4c8996fb924",
    "npm_config_registry", "scan_test_cases sk_test case", "--user-data x", "assert tokens == [1, 2, 3]", "AC power; SKIP", "eyJust a word",
]  # fmt: skip


@pytest.mark.parametrize("text", ORDINARY)
def test_ordinary_text_stays_unharmed(text):
    assert mask(text) == text


def test_names_that_only_sound_secret():
    assert not is_secret_name("PYTORCH_KEY_AVERAGES")
    assert not is_secret_name("TOKENIZERS_PARALLELISM")
    for name in (
        "HF_TOKEN",
        "API_KEY",
        "APIKEY",
        "AWS_ACCESS_KEY_ID",
        "SSH_KEY_FILE",
        "MY_SECRET_X",
        "DB_PASSWORD",
        "KEY",
    ):
        assert is_secret_name(name)
