"""The environment in which the real torch_spyre is tried: is it whole, and our runtime built for it."""

import json
import os
import shutil
import subprocess
import sysconfig
from dataclasses import dataclass
from pathlib import Path

HOME = Path(__file__).resolve().parent
ASK = """
import importlib.util, json, sys, sysconfig
told = {"python": sys.version.split()[0], "include": sysconfig.get_path("include")}
for name in ("torch", "torch_spyre", "pytest", "numpy", "jinja2", "pytest_timeout"):
    spec = importlib.util.find_spec(name)
    told[name] = spec.origin if spec else None
if told["torch"]:
    import importlib.metadata as m
    told["torch_version"] = m.version("torch")
    try:
        told["wanted"] = [r for r in m.requires("torch_spyre") or [] if r.split("~")[0].split("=")[0].split(">")[0].strip() == "torch"]
    except m.PackageNotFoundError:
        told["wanted"] = []
print(json.dumps(told))
"""
LOAD = "import torch; x = torch.ones(4, 64, dtype=torch.float16).to('spyre'); print('sum', float((x + x).cpu().sum()))"


class Unusable(Exception):
    """One line: what is wrong, and what to do."""


@dataclass(frozen=True)
class RealPackage:
    """A Python in which torch_spyre runs on our runtime."""

    python: Path
    package: Path
    runtime: Path
    said: dict

    def variables(self, device, **more):
        """The environment of a process on the card that this file stands for."""
        gone = ("SPYRE_", "TORCH_SPYRE", "DEBUG_SPYRE", "PYTEST_", "CLAUDE")
        env = {k: v for k, v in os.environ.items() if not k.startswith(gone) and k != "PYTHONPATH"}
        libraries = [str(self.runtime), *filter(None, [env.get("LD_LIBRARY_PATH")])]
        env |= {"LD_LIBRARY_PATH": os.pathsep.join(libraries), "AIU_WORLD_SIZE": "1"}
        env |= {
            "PATH": os.pathsep.join([str(HOME / "bin"), env.get("PATH", os.defpath)])
        }  # doctor looks for the compiler there
        env |= {
            "SPYRE_STANDIN_DEVICE": str(device),
            "DEBUG_SPYRE_DEVICES": str(device),
            "DEBUG_SPYRE_PYTHON": str(self.python),
        }
        return env | {key: str(value) for key, value in more.items()}


def real_package(python, work):
    """Look at the environment, build the runtime in `work`, run one op.

    Raises:
        Unusable: with one line.
    """
    found = shutil.which(str(python))
    if found is None:
        raise Unusable(
            f"PY={python} is no program that can be run; give the Python of an environment with the real torch_spyre"
        )
    said = _asked(found)
    package = _package(found, said)
    runtime = _runtime(Path(work), said["include"])
    real = RealPackage(Path(os.path.abspath(found)), package, runtime, said)
    done = _run([found, "-c", LOAD], real.variables(Path(work) / "card"))
    if done.returncode or "sum 512.0" not in done.stdout:
        last = next((line for line in reversed(done.stderr.splitlines()) if line.strip()), "no message")
        raise Unusable(
            f"{package} does not load or gives a wrong sum on the stand-in: {last[:300]}; see tests/real_card/README.md"
        )
    return real


def _run(words, env=None):
    return subprocess.run(words, capture_output=True, text=True, timeout=600, env=env)


def _asked(python):
    done = _run([python, "-c", ASK], {**os.environ, "TORCH_DEVICE_BACKEND_AUTOLOAD": "0"})
    try:
        return json.loads(done.stdout.splitlines()[-1])
    except (ValueError, IndexError):
        raise Unusable(f"{python} does not answer as Python does (exit {done.returncode}); give a Python") from None


def _package(python, said):
    missing = [name for name in ("torch", "pytest", "numpy", "jinja2") if not said[name]]
    if missing:
        raise Unusable(f"{python} has no {', '.join(missing)}; install it there")
    if not said["torch_spyre"]:
        raise Unusable(f"{python} has no torch_spyre; tests/real_card/README.md says what an environment needs")
    package = Path(said["torch_spyre"]).parent
    if (package / "faults").is_dir() and (package / "_C.py").is_file():
        raise Unusable(f"{package} is the simulated card, not the real package; give an environment with the real one")
    if not any(package.glob("_C*.so")):
        raise Unusable(
            f"{package} is half made: no compiled _C in it; compile it against tests/real_card/include first"
        )
    for part in ("ops/eager.py", "execution/async_compile.py", "_inductor/codegen/bundle.py"):
        if not (package / part).is_file():
            raise Unusable(f"{package} is of another era: no {part}; the stand-in serves trees of August 2026")
    for wanted in said.get("wanted", []):
        base = wanted.partition("~=")[2].strip()
        if base and said["torch_version"].split(".")[:2] != base.split(".")[:2]:
            raise Unusable(
                f"torch {said['torch_version']} is installed and this torch_spyre wants torch~={base}; install that one"
            )
    return package


def _runtime(work, include):
    """Our own libflex: what lies in src/, built for this Python."""
    compiler = os.environ.get("CXX") or shutil.which("g++") or shutil.which("c++")
    if not compiler:
        raise Unusable("no C++ compiler is here; install g++, or set CXX")
    work.mkdir(parents=True, exist_ok=True)
    library, sources = work / "libflex.so", sorted((HOME / "src").glob("*.cpp"))
    parts = [*sources, *(HOME / "include").rglob("*.h*")]
    if library.exists() and library.stat().st_mtime > max(p.stat().st_mtime for p in parts):
        return work
    flags = ["-O2", "-Wall", "-fPIC", "-std=c++20", "-shared", f'-DSPYRE_STANDIN_HOME="{HOME}"']
    made = work / "libflex.so.new"
    done = _run([compiler, *flags, f"-I{HOME / 'include'}", f"-I{include}", "-o", str(made), *map(str, sources)])
    if done.returncode:
        raise Unusable(f"our runtime does not compile: {done.stderr.strip().splitlines()[0][:300]}")
    made.replace(library)
    return work


def default_work():
    """Where the runtime is built: one folder a Python version, outside the checkout's files."""
    return HOME.parents[1] / ".work/real" / sysconfig.get_platform()
