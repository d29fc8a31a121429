"""The card has each limitation or not, as it is told; each difference shows by a small script."""

import warnings

import pytest

pytestmark = pytest.mark.slow  # of the stand-in itself

REGISTERED = {"advanced_indexing", "boolean_index_put", "index_add", "index_copy_fallback", "embedding_fallback"}
WORKS, REFUSED, WARNS, WRONG = "works", "refused", "warns", "wrong"


def outcome(work, expected):
    """How a piece of work ends."""
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        try:
            result = work()
        except (RuntimeError, NotImplementedError):
            return REFUSED
    if not result.cpu().equal(expected):
        return WRONG
    return WARNS if any("falling back" in str(w.message) or "intermediate" in str(w.message) for w in seen) else WORKS


def cases(torch):
    """name -> (what to do, what a card without the limitation gives, how it ends on a card that has it)."""
    x = torch.arange(8 * 64, dtype=torch.float16).view(8, 64) % 7
    wide = torch.arange(64 * 64, dtype=torch.float16).view(64, 64) % 5
    big = torch.tensor([1, 2**40 + 3])
    ints = torch.arange(64, dtype=torch.int32)
    there = lambda t: t.to("spyre")  # noqa: E731
    graph = lambda fn, *args: torch.compile(fn)(*map(there, args))  # noqa: E731
    rows = torch.tensor([1, 3])
    a4, b4 = (torch.ones(2, 2, 4, 64, dtype=torch.float16), torch.ones(2, 1, 64, 64, dtype=torch.float16))
    return {
        "transpose_contiguous": (lambda: there(wide).t().contiguous(), wide.t().contiguous(), REFUSED),
        "combined_to": (lambda: x.float().to("spyre", torch.float16), x, REFUSED),
        "d2d_cast_via_cpu": (lambda: there(x).to(torch.float32), x.float(), WARNS),
        "fp16_only": (lambda: there(x.float()) + 1, x.float() + 1, REFUSED),
        "fp32_matmul": (lambda: there(x.float()) @ there(wide.float()), x.float() @ wide.float(), REFUSED),
        "matmul_out_1": (lambda: there(x) @ there(wide[:, :1].contiguous()), x @ wide[:, :1], REFUSED),
        "broadcast_4d_matmul": (
            lambda: graph(torch.ops.spyre.batched_matmul, a4, b4),
            torch.matmul(a4, b4),
            REFUSED,
        ),
        "int64_downcast": (lambda: there(big), big, WRONG),
        "int64_constants": (
            lambda: graph(lambda t: t + torch.full((64,), 3, dtype=torch.int64, device="spyre"), ints.long()),
            ints.long() + 3,
            REFUSED,
        ),
        "int32_storage_offset": (lambda: there(ints)[8:24] + 0, ints[8:24], WRONG),
        "fp16_storage_offset": (lambda: there(x.view(-1))[8:24] * 2, x.view(-1)[8:24] * 2, REFUSED),
        "row_slices_in_graph": (
            lambda: graph(lambda t: t[8:24] + 1, wide[:, :1].contiguous()),
            wide[8:24, :1] + 1,
            REFUSED,
        ),
        "single_index": (lambda: torch.index_select(there(x), 0, there(rows[:1])), x[1:2], REFUSED),
        "unaligned_width": (lambda: there(x[:, :60].contiguous()) @ there(wide[:60]), x[:, :60] @ wide[:60], REFUSED),
        "span_256mb": (
            lambda: torch.index_select(
                torch.empty(2**20 + 1, 128, dtype=torch.float16, device="spyre").zero_(), 0, there(rows)
            ),
            torch.zeros(2, 128, dtype=torch.float16),
            REFUSED,
        ),
    }


NAMES = [
    "transpose_contiguous",
    "combined_to",
    "d2d_cast_via_cpu",
    "fp16_only",
    "fp32_matmul",
    "matmul_out_1",
    "broadcast_4d_matmul",
    "int64_downcast",
    "int64_constants",
    "int32_storage_offset",
    "fp16_storage_offset",
    "row_slices_in_graph",
    "single_index",
    "unaligned_width",
    "span_256mb",
]


@pytest.fixture
def limits(torch):
    from torch_spyre import limits

    return limits


@pytest.mark.parametrize("name", NAMES)
def test_a_limitation_shows_where_the_card_has_it(torch, limits, name):
    work, expected, ending = cases(torch)[name]
    with limits.having(name):
        assert outcome(work, expected) == ending
    with limits.having("none"):
        assert outcome(work, expected) == WORKS


def test_every_limitation_is_shown_here(torch, limits):
    assert set(limits.CATALOGUE) == set(NAMES) | REGISTERED | {"recompile_per_shape"}
    assert set(cases(torch)) == set(NAMES)


@pytest.mark.parametrize("having,compiles", [("recompile_per_shape", 6), ("none", 2)])
def test_kernels_compile_per_shape_or_not(card, having, compiles):
    script = """
    import torch
    from torch_spyre import _C
    x = torch.ones(64, 64, dtype=torch.float16).to("spyre")
    for n in range(3, 9):
        assert (x[:n] + 1).cpu().sum().item() == n * 128
    print(_C.stats["compile"])
    """
    done = card.run(script, SPYRE_SIM_LIMITS=having, SPYRE_SIM_COMPILE="1")
    assert done.returncode == 0, done.stderr
    number = int(done.stdout)
    assert number >= compiles if having != "none" else number <= compiles


def test_limitations_of_registration(card):
    script = """
    import torch, warnings
    x = (torch.arange(8 * 64, dtype=torch.float16).view(8, 64) % 7)
    rows = torch.tensor([1, 3])
    def ending(name, work, expected):
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            try:
                result = work(x.to("spyre"), rows.to("spyre"))
            except NotImplementedError as error:
                print(name, "refused", "Could not run" in str(error))
                return
        fell = any("falling back" in str(w.message) for w in seen)
        print(name, "warns" if fell else "works", result.cpu().equal(expected))
    put = x.clone(); put[x > 3] = 0
    def masked(a, i):
        a[a > 3] = 0
        return a
    ending("advanced_indexing", lambda a, i: a[i], x[rows])
    ending("boolean_index_put", masked, put)
    ending("index_add", lambda a, i: a.index_add(0, i, a[:2].clone()), x.index_add(0, rows, x[:2]))
    ending("index_copy_fallback", lambda a, i: a.index_copy(0, i, a[:2].clone()), x.index_copy(0, rows, x[:2]))
    ending("index_copy_", lambda a, i: a.index_copy_(0, i, a[:2].clone()), x.index_copy(0, rows, x[:2]))
    ending("embedding_fallback", lambda a, i: torch.nn.functional.embedding(i, a), x[rows])
    """
    held = card.run(script, SPYRE_SIM_LIMITS=",".join(REGISTERED))
    assert held.stdout.split("\n")[:-1] == [
        "advanced_indexing refused True",
        "boolean_index_put refused True",
        "index_add refused True",
        "index_copy_fallback warns True",
        "index_copy_ warns True",
        "embedding_fallback warns True",
    ], held.stderr
    lifted = card.run(script, SPYRE_SIM_LIMITS="none")
    assert lifted.stdout.count("works True") == 6, lifted.stdout + lifted.stderr


def test_the_head_transpose_is_no_transpose_of_sticks(torch, limits, half):
    x = half(3, 2, 64)
    with limits.having("transpose_contiguous"):
        assert x.transpose(0, 1).contiguous().cpu().equal(x.cpu().transpose(0, 1))


@pytest.mark.parametrize(
    "text,expected",
    [
        (None, "default"),
        ("default", "default"),
        ("none", set()),
        ("fp16_only", {"fp16_only"}),
        ("fp16_only, single_index", {"fp16_only", "single_index"}),
        ("default,-span_256mb,+fp16_only", "changed"),
    ],
)
def test_the_set_is_read_from_one_text(limits, text, expected):
    changed = (set(limits.DEFAULT) - {"span_256mb"}) | {"fp16_only"}
    assert limits.parse(text) == {"default": set(limits.DEFAULT), "changed": changed}.get(
        expected if isinstance(expected, str) else "", expected
    )


def test_an_unknown_limitation_is_refused(limits):
    with pytest.raises(ValueError, match="no limitation 'nosuch'"):
        limits.parse("default,nosuch")
