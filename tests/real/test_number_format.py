"""The card's 1-6-9 numbers as tests/real_card/README.md cites them; in Python and in C++ alike. Needs no real package."""

import shutil
import subprocess

import numpy as np
import pytest
from tests.real_card import environment
from tests.real_card.spyre_standin import formats

ONE, LARGEST, SHARED = 31 << 9, 0x7FFE, 0x7FFF
PROGRAM = """
#include <cstdio>
#include <standin/numbers.h>
int main() {
  float f;
  while (std::fread(&f, 4, 1, stdin) == 1) {
    uint16_t code = standin::to_dl16(f);
    float back = standin::from_dl16(code);
    std::fwrite(&code, 2, 1, stdout);
    std::fwrite(&back, 4, 1, stdout);
  }
}
"""


def value(code):
    return float(formats.decode(np.array([code], np.uint16), formats.DL16)[0])


def code(number):
    return int(formats.to_dl16([number])[0])


def test_landmarks():
    assert value(ONE) == 1.0
    assert value(LARGEST) == 2.0**33 - 2.0**24
    assert value(1) == 2.0**-31 * (1 + 2**-9)
    assert [value(c) for c in (0, 0x8000, SHARED, 0xFFFF)] == [0.0, -0.0, np.inf, -np.inf]


def test_every_code_comes_back_and_order_is_kept():
    codes = np.arange(1 << 15, dtype=np.uint16)
    values = formats.decode(codes, formats.DL16)
    assert np.array_equal(formats.to_dl16(values), codes)
    assert np.all(np.diff(values) > 0)


def test_a_tie_goes_away_from_zero_and_less_than_a_tie_does_not():
    """Of float16 every second number is a tie."""
    codes = np.arange(1, LARGEST, dtype=np.uint16)
    low, high = (formats.decode(codes + step, formats.DL16).astype(np.float64) for step in (0, 1))
    middle = ((low + high) / 2).astype(np.float32)
    assert np.array_equal(formats.to_dl16(middle), codes + 1)
    assert np.array_equal(formats.to_dl16(-middle), (codes + 1) | 0x8000)
    assert np.array_equal(formats.to_dl16(np.nextafter(middle, np.float32(0))), codes)
    assert [code(x) for x in (65472.0, 65504.0)] == [code(65472.0), code(65536.0)]


def test_what_is_too_small_is_zero_and_what_is_too_large_is_the_shared_code():
    assert [code(x) for x in (2.0**-32, -(2.0**-40), 0.0)] == [0, 0x8000, 0]
    assert [code(x) for x in (2.0**33, -np.inf, np.nan)] == [SHARED, 0xFFFF, SHARED]


@pytest.mark.skipif(not shutil.which("g++"), reason="no g++ here")
def test_the_runtime_and_the_interpreter_agree(tmp_path):
    (tmp_path / "it.cpp").write_text(PROGRAM)
    include = environment.HOME / "include"
    words = ["g++", "-O1", "-std=c++20", f"-I{include}", "-o", str(tmp_path / "it"), str(tmp_path / "it.cpp")]
    subprocess.run(words, check=True)
    drawn = np.random.default_rng(1).integers(0, 1 << 32, 200_000, np.uint64).astype(np.uint32).view(np.float32)
    drawn = drawn[~np.isnan(drawn)]
    done = subprocess.run([str(tmp_path / "it")], input=drawn.tobytes(), capture_output=True, check=True)
    got = np.frombuffer(done.stdout, np.dtype([("code", "<u2"), ("back", "<f4")]))
    assert np.array_equal(got["code"], formats.to_dl16(drawn))
    assert np.array_equal(got["back"], formats.decode(got["code"], formats.DL16))
