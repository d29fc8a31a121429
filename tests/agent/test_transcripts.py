"""One investigation by the mission's prose and with our command, counted the same way."""

import importlib.util
import json
from pathlib import Path

import pytest

HERE = Path(__file__).parent
spec = importlib.util.spec_from_file_location("documented", HERE / "test_documented_commands.py")
documented = importlib.util.module_from_spec(spec)
spec.loader.exec_module(documented)


def transcript(name):
    return json.loads((HERE / f"data/transcript-{name}.json").read_text(encoding="utf-8"))


def counted(calls):
    """(calls, characters written, characters read)."""
    written = sum(len(str(value)) for call in calls for value in call["input"].values())
    return len(calls), written, sum(len(call["output"]) for call in calls)


def test_ours_costs_a_fifth_of_the_writing_and_a_third_of_the_reading(record_property):
    prose, ours = counted(transcript("prose")), counted(transcript("ours"))
    for name, before, now in zip(("calls", "written", "read"), prose, ours, strict=True):
        record_property(name, f"{before} -> {now}")
        print(f"{name}: {before} by the prose, {now} with ours, ratio {now / before:.2f}")
    assert ours[0] < prose[0]
    assert ours[1] <= prose[1] / 5
    assert ours[2] <= prose[2] / 3


def test_both_are_the_same_investigation():
    """Same probe, same scripts, same edit of the source, same verdicts, same end."""
    both = [json.dumps(transcript(name), ensure_ascii=False) for name in ("prose", "ours")]
    probe = "tests/test_rms_norm.py::test_rms_norm[1-256-compilation_NONE-device_spyre]"
    for text in (
        probe,
        "for width in (64, 96, 128, 160, 192, 256, 320):",
        'layer._target_device = torch.device(\\"cpu\\")',
        "squares = (small * small).split(128, dim=-1)",
        "widths up to 128 are right, from 192 on the mean covers only the first half of the row",
        "the same elements differ by the same amounts with a fresh cache",
        "a person decides whether the split mean goes in",
    ):
        for name, whole in zip(("prose", "ours"), both, strict=True):
            assert text.lower() in whole.lower(), (name, text)
    edits = [
        [c["input"] for c in transcript(n) if c["tool"] == "Edit" and c["input"]["file_path"].endswith("rms_norm.py")]
        for n in ("prose", "ours")
    ]
    assert edits[0] == edits[1]


@pytest.mark.parametrize("call", [c for c in transcript("ours") if c["input"].get("command", "").startswith("debug-spyre")],
                         ids=lambda c: c["input"]["command"][:60])  # fmt: skip
def test_our_commands_are_ones_that_the_parsers_take(call):
    documented.parse(documented.words_of(call["input"]["command"].partition(" <<")[0]))


def test_the_outputs_name_no_machine():
    for name in ("prose", "ours"):
        text = (HERE / f"data/transcript-{name}.json").read_text(encoding="utf-8")
        for word in ("/root", "/work/", "/tmp/agent", "pyenv"):
            assert word not in text, (name, word)
