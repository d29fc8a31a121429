"""Does the skill load by itself? Asks the real model with each query of data/triggers.json; needs a key of your own."""

import argparse
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
QUERIES = json.loads((HERE / "data/triggers.json").read_text(encoding="utf-8"))


def client_kit():
    spec = importlib.util.spec_from_file_location("client_kit", HERE / "client_kit.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def fired(events):
    """The model called the skill, seen in the client's events."""
    for event in events:
        for part in (event.get("message") or {}).get("content") or []:
            if isinstance(part, dict) and part.get("type") == "tool_use" and part.get("name") == "Skill":
                if "debug-spyre" in json.dumps(part.get("input")):
                    return True
    return False


def ask(binary, checkout, home, query, env):
    """One query, two turns at most; the events."""
    command = [str(binary), "-p", query, "--output-format", "stream-json", "--verbose", "--max-turns", "2"]
    command += ["--permission-mode", "plan"]
    surroundings = {"PATH": os.environ["PATH"], "HOME": str(home), "CLAUDE_CONFIG_DIR": str(home / ".claude"), **env}
    done = subprocess.run(command, cwd=checkout, env=surroundings, capture_output=True, text=True, timeout=180)
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=3)
    runs = parser.parse_args().runs
    key = os.environ.get("ANTHROPIC_API_KEY")
    if not key:
        print("ANTHROPIC_API_KEY is not set: this asks the real model", file=sys.stderr)
        return 69
    kit = client_kit()
    wrong = 0
    with tempfile.TemporaryDirectory() as folder:
        checkout = kit.make_checkout(Path(folder) / "spyre-inference")
        home = Path(folder) / "home"
        (home / ".claude").mkdir(parents=True)
        install = [str(ROOT / "scripts/debug-spyre"), "install", str(checkout)]
        subprocess.run(
            install, check=True, capture_output=True, env={**os.environ, "DEBUG_SPYRE_PYTHON": sys.executable}
        )
        for query in QUERIES:
            env = {"ANTHROPIC_API_KEY": key}
            hits = sum(fired(ask(kit.find_client(), checkout, home, query["query"], env)) for _ in range(runs))
            right = (hits / runs >= 0.5) == query["fires"]
            wrong += not right
            print(f"{'ok   ' if right else 'WRONG'} {hits}/{runs} wanted {query['fires']!s:5} {query['query'][:90]}")
    print(f"{len(QUERIES) - wrong} of {len(QUERIES)} as wanted")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
