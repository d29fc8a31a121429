"""The search for a condition against faults that are drawn: no card, the answers come from the drawn condition itself."""

import random

import pytest

from debug_spyre.examine.condition import Condition, Seen, Term, fitting
from debug_spyre.examine.features import feature_words, features
from debug_spyre.examine.search import Answer, Verdict, find
from debug_spyre.examine.variation import Draws, Space, drawn, key_of, one_at_a_time


def tensor(*shape, **more):
    return {"tensor": {"shape": list(shape), "dtype": "float16", "stride": None, "offset": 0, "fill": "randn", **more}}


def call(*shapes, op="aten.mul.Tensor"):
    return {"op": op, "args": [tensor(*shape) for shape in shapes], "kwargs": {}}


SPACE = Space(
    call=call((6, 320), (6, 320)),
    groups=(((0, 0), (1, 0)), ((0, 1), (1, 1))),
    forms=(("aten.mul.out", "out"), ("aten.mul_.Tensor", "in-place")),
    rank=2,
)


def result(of):
    """The shape that broadcasting gives; None where the op does not take these shapes."""
    shapes = [a["tensor"]["shape"] if isinstance(a, dict) else [] for a in of["args"]]
    rank = max(map(len, shapes))
    padded = [[1] * (rank - len(s)) + s for s in shapes]
    sizes = [{n for n in column if n != 1} or {1} for column in zip(*padded, strict=True)]
    if any(len(s) > 1 for s in sizes):
        return None
    return [{"shape": [s.pop() for s in sizes], "dtype": "float16"}]


def searched(is_wrong, seed, unseen=60):
    search = find(SPACE, seed=seed, unseen=unseen)
    made = 0
    ask = next(search)
    while True:
        answers = []
        for one in ask.calls:
            out = result(one)
            if out is None:
                answers.append(Verdict(Answer.ILLEGAL))
            elif ask.only_shapes:
                answers.append(Verdict(Answer.SHAPE, tuple(out)))
            else:
                made += 1
                answers.append(Verdict(Answer.WRONG if is_wrong(one, out) else Answer.RIGHT, tuple(out)))
        try:
            ask = search.send(answers)
        except StopIteration as end:
            return end.value, made


def drawn_term(rng):
    return rng.choice(
        [
            Term("size(0,-1)", ">", rng.randint(1, 319)),
            Term("size(out,-1)", ">", rng.randint(1, 319)),
            Term("size(0,-2)", "<=", rng.randint(6, 200)),
            Term("numel(0)", ">", rng.randint(64, 1900)),
            Term("rows(0)", ">", rng.randint(1, 5)),
            Term("form", "==", "functional"),
            Term("strided(any)", "==", False),
            Term("dtype(0)", "==", "float16"),
            Term("offset(0)", "<=", 0),
            Term("size(0,-1)", "%", 64),
        ]
    )


@pytest.mark.parametrize("seed", range(12))
def test_property_a_drawn_condition_is_right_on_calls_that_the_search_never_saw(seed):
    rng = random.Random(seed)
    terms = {t.feature: t for t in (drawn_term(rng) for _ in range(rng.choice([1, 1, 2])))}
    truth = Condition(tuple(terms.values()))
    found, made = searched(lambda one, out: truth.holds(features(one, out)), seed)
    assert found.condition is not None, (truth.words(), found.why)
    fresh = [(c, result(c)) for c in drawn(SPACE, [SPACE.call], Draws(10_000 + seed), 600)]
    judged = [(c, features(c, out)) for c, out in fresh if out is not None]
    right = [found.condition.holds(of) == truth.holds(of) for _, of in judged]
    assert len(right) > 200
    assert sum(right) >= 0.99 * len(right), f"{truth.words()} / {found.condition.words()} after {made} calls"


@pytest.mark.parametrize("seed", range(4))
def test_property_what_no_feature_knows_gets_no_condition(seed):
    import zlib

    found, _ = searched(lambda one, _out: zlib.crc32(f"{seed}{key_of(one)}".encode()) % 3 == 0, seed)
    assert found.condition is None and found.why


def test_a_healthy_op_has_no_condition():
    found, _ = searched(lambda _one, _out: False, 0)
    assert found.condition is None


def test_an_op_that_is_always_wrong_says_so_and_is_exact_without_any_right_call():
    found, _ = searched(lambda _one, _out: True, 0, unseen=30)
    assert found.condition == Condition() and found.condition.words() == "at every call that was tried"
    assert not found.is_exact, "no right call was among them"


def test_the_border_is_halved_to_the_element():
    found, _ = searched(lambda one, _out: one["args"][0]["tensor"]["shape"][-1] > 1234 % 300, 3)
    assert [t.value for t in found.condition.terms] == [1234 % 300]
    (right, wrong), *_ = found.borders
    assert right["args"][0]["tensor"]["shape"][-1] == 34 and wrong["args"][0]["tensor"]["shape"][-1] == 35


def test_the_smallest_conditions_fit_everything_seen():
    seen = [
        Seen({"size(0,-1)": n, "form": f}, n > 64 and f == "out")
        for n in (32, 64, 65, 100)
        for f in ("out", "functional")
    ]
    best = fitting(seen)[0]
    assert {t.feature for t in best.terms} == {"size(0,-1)", "form"}
    assert all(best.holds(s.features) == s.wrong for s in seen)
    assert fitting([Seen({"size(0,-1)": 5}, True), Seen({"size(0,-1)": 5}, False)]) == []


def test_the_same_seed_makes_the_same_calls():
    assert [key_of(c) for c in drawn(SPACE, [SPACE.call], Draws(5), 40)] == [
        key_of(c) for c in drawn(SPACE, [SPACE.call], Draws(5), 40)
    ]
    assert len({key_of(c) for c in one_at_a_time(SPACE)}) > 60


@pytest.mark.parametrize(
    ("term", "words"),
    [
        (Term("size(0,-1)", ">", 128), "the last dimension of argument 0 is longer than 128"),
        (Term("size(0,-1)", "!%", 64), "the last dimension of argument 0 is no multiple of 64"),
        (Term("numel(0)", ">", 1048576), "the number of elements of argument 0 is more than 1,048,576"),
        (Term("expanded(any)", "==", True), "an argument is expanded"),
        (Term("expanded(any)", "==", False), "no argument is expanded"),
        (Term("ragged64(any)", "==", True), "the last dimension of an argument is longer than 1 and no multiple of 64"),
        (Term("reduces(0,-1)", "==", True), "dimension -1 is reduced"),
        (Term("dtype(0)", "==", "float16"), "the type of argument 0 is float16"),
    ],
)
def test_terms_in_words(term, words):
    assert term.words() == words


def test_every_feature_has_words():
    one = call((4, 100), (4, 100))
    one["args"][0]["tensor"].update(stride=[1, 4], offset=7)
    found = features(one, [{"shape": [4, 100], "dtype": "float16"}])
    assert (
        found["strided(0)"] is True and found["offset(any)"] == 7 and found["rows(0)"] == 4 and found["sticks(0)"] == 8
    )
    assert all("(" not in feature_words(name) for name in found)
