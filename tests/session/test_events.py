"""The journal's lines: what is written is read back, what is no event is refused, what is newer is kept."""

import dataclasses
import json
import os
import typing

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from debug_spyre.session import events as ev
from debug_spyre.vocabulary.codec import shape_of

EXAMPLES = int(60 * float(os.environ.get("DEBUG_SPYRE_FUZZ", "1")))
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**40), 2**40) | st.floats(allow_nan=False, allow_infinity=False) | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=5,
)


def strategy_for(hint):
    origin = typing.get_origin(hint)
    if hint is typing.Any:
        return JSON
    if origin is tuple:
        return st.lists(strategy_for(typing.get_args(hint)[0]), max_size=3).map(tuple)
    if origin is dict:
        return st.dictionaries(TEXT, strategy_for(typing.get_args(hint)[1]), max_size=3)
    if origin is not None:
        return st.one_of(*(strategy_for(option) for option in typing.get_args(hint)))
    return {
        str: TEXT,
        int: st.integers(-(2**50), 2**50),
        float: st.floats(allow_nan=False, allow_infinity=False),
        bool: st.booleans(),
        type(None): st.none(),
    }[hint]


def events():
    def build(cls):
        hints = typing.get_type_hints(cls)
        return st.builds(cls, **{f.name: strategy_for(hints[f.name]) for f in dataclasses.fields(cls)})

    return st.one_of(*(build(cls) for cls in ev.KINDS.values()))


@settings(max_examples=EXAMPLES, suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(events())
def test_property_every_event_survives_its_line(event):
    line = ev.to_line(event)
    assert "\n" not in line
    assert len(line.splitlines()) == 1
    back = ev.from_line(line)
    assert ev.to_line(back) == line
    assert type(back) is type(event)


@settings(max_examples=EXAMPLES, deadline=None)
@given(st.text(max_size=60))
def test_property_text_that_is_no_event_is_refused_and_never_crashes(text):
    with pytest.raises(ev.EventFormatError):
        ev.from_line(text)


@pytest.mark.parametrize("kind", ev.KINDS)
def test_a_missing_or_mistyped_field_is_named(kind):
    cls = ev.KINDS[kind]
    required = [n for n, (_, needed) in shape_of(cls).items() if needed]
    assert required, "every kind says something"
    base = {"v": 1, "seq": 1, "at": "2026-01-01T00:00:00Z", "by": "agent", "kind": kind}
    with pytest.raises(ev.EventFormatError, match=required[0]):
        ev.from_line(json.dumps(base))
    wrong = base | {name: {"no": "field"} if shape_of(cls)[name][0] is not dict else 3 for name in required}
    with pytest.raises(ev.EventFormatError):
        ev.from_line(json.dumps(wrong))


@pytest.mark.parametrize("change", [{"kind": "from_the_future"}, {"v": 2}], ids=["unknown kind", "newer version"])
def test_newer_events_are_kept_as_they_are(change):
    data = {"v": 1, "seq": 4, "at": "2026-01-01T00:00:00Z", "by": "x", "kind": "next_noted", "text": "t", "more": [1]}
    event = ev.from_line(json.dumps(data | change))
    assert isinstance(event, ev.UnknownEvent)
    assert json.loads(ev.to_line(event)) == data | change


def test_unknown_keys_of_a_known_event_are_ignored():
    event = ev.from_line('{"v":1,"seq":1,"at":"t","by":"b","kind":"next_noted","text":"x","colour":"red"}')
    assert event == ev.NextNoted(seq=1, at="t", by="b", text="x")


def test_lone_surrogates_from_test_output_do_not_break_the_line():
    line = ev.to_line(ev.NextNoted(text="bad \udcff byte"))
    assert line.encode("utf-8")
    assert ev.from_line(line).text == "bad ? byte"


def test_a_line_nested_beyond_reason_is_a_damaged_line():
    with pytest.raises(ev.EventFormatError):
        ev.from_line('{"a":' * 100_000)
