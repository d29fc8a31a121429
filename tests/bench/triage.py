"""`triage --from` over generated terminal logs of 1, 10 and 100 MB: seconds and peak memory of the whole process.

Budget: 100 MB with 10,000 failures in 10 s and 500 MB, and linear.
"""

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

SCRIPTS = Path(__file__).parents[2] / "scripts"
SIZES = ((1, 100), (10, 1_000), (100, 10_000))
BUDGET_SECONDS, BUDGET_MB = 10.0, 500

HEAD = "============================= test session starts ==============================\n"
MISMATCH = """tests/test_wide.py:{line}: in test_wide
    torch.testing.assert_close(actual, expected, atol=0.01, rtol=0.01)
E   AssertionError: Tensor-likes are not close!
{blank}
E   Mismatched elements: {wrong} / {total} (50.0%)
E   Greatest absolute difference: 4.5 at index (0, {wrong}) (up to 0.01 allowed)
E   Greatest relative difference: 12.25 at index (0, 3) (up to 0.01 allowed)
"""
COMPILE = """tests/test_wide.py:{line}: in test_wide
    f(x)
.venv/lib/python3.12/site-packages/torch/_inductor/compile_fx.py:1048: in _compile_fx_inner
    raise InductorError(e, currentframe()).with_traceback(
torch_spyre/_inductor/pass_utils.py:582: in check_stick_expr
    raise Unsupported(
E   torch._inductor.exc.InductorError: Unsupported: Spyre backend does not support: Unexpected stick expression Mod(d{wrong}, 71): expected Mod(var, 64)
----------------------------- Captured stderr call -----------------------------
W0814 00:44:07.760000 20472 .venv/lib/python3.12/site-packages/torch/_inductor/utils.py:1479] [0/1] on error, temporary cache dir kept at /tmp/x
"""
LOG_LINES = "".join(
    f"DEBUG    torch.__trace:utils.py:{n} graph dump of node {n} with layout FixedLayout('cpu', torch.float16)\n"
    for n in range(40)
)


def write_log(path, megabytes, failures):
    """A verbose session: per failure two passing tests, a failure text and captured log until the size is reached."""
    fill = max(0, megabytes * 1_000_000 // failures - 1_000)
    captured = "------------------------------ Captured log call -------------------------------\n"
    filler = (
        captured + LOG_LINES * (fill // len(LOG_LINES)) + LOG_LINES[: fill % len(LOG_LINES)].rpartition("\n")[0] + "\n"
    )
    with path.open("w", encoding="utf-8") as out:
        out.write(HEAD + f"collected {failures * 3} items\n\n")
        for n in range(failures * 3):
            word = "FAILED" if n % 3 == 2 else "PASSED"
            out.write(f"tests/test_wide.py::test_wide[hidden{n}-float16] {word} [ 50%]\n")
        out.write("\n=================================== FAILURES ===================================\n")
        for n in range(2, failures * 3, 3):
            out.write(f"________________________ test_wide[hidden{n}-float16] _________________________\n")
            out.write((MISMATCH if n % 2 else COMPILE).format(line=n, wrong=n, total=2 * n, blank="E   "))
            out.write(filler)
        out.write("=========================== short test summary info ============================\n")
        for n in range(2, failures * 3, 3):
            out.write(f"FAILED tests/test_wide.py::test_wide[hidden{n}-float16] - AssertionError: Tensor-l...\n")
        out.write(f"================ {failures} failed, {failures * 2} passed in 1568.20s (0:26:08) ================\n")


def measure(path):
    """(seconds, of them on a processor, peak MB) of the command as a process of its own."""
    begun = time.perf_counter()
    command = [sys.executable, "-m", "debug_spyre", "triage", "--from", str(path), "--json"]
    with open(os.devnull, "w") as nothing:
        process = subprocess.Popen(
            command, cwd=path.parent, env={**os.environ, "PYTHONPATH": str(SCRIPTS)}, stdout=nothing, stderr=nothing
        )
        _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0, process.returncode
    return time.perf_counter() - begun, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def main():
    print(f"{'size MB':>8} {'failures':>9} {'seconds':>8} {'cpu s':>7} {'peak MB':>8} {'s per 10 MB':>12}")
    for megabytes, failures in SIZES:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "log.txt"
            write_log(path, megabytes, failures)
            size = path.stat().st_size / 1e6
            seconds, busy, peak = measure(path)
        print(f"{size:8.1f} {failures:9d} {seconds:8.2f} {busy:7.2f} {peak:8.0f} {10 * busy / size:12.2f}")
    print(f"budget for the last: {BUDGET_SECONDS:g} s, {BUDGET_MB} MB")


if __name__ == "__main__":
    main()
