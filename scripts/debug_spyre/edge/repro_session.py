"""The way from a suspect to a proved script: tier 1 first, then vLLM's contexts, then the test itself; failures are kept."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from debug_spyre.core.errors import BadInputError
from debug_spyre.core.evidence import Failure
from debug_spyre.core.repro.call import Call
from debug_spyre.core.repro.fingerprint import Fingerprint, agree, of_answer
from debug_spyre.core.repro.pruning import prune
from debug_spyre.core.repro.script import CONTRACT, MOST_LINES, Fault, count_lines, saved_files, script
from debug_spyre.edge.interpreter import choose
from debug_spyre.edge.reproving import SHOWN, Proof, Prover
from debug_spyre.edge.shrinking import Shrinking, Step, choose_fill

_MAIN = """if __name__ == "__main__":  # {contract}
    import pytest

    status = int(pytest.main([__file__ + "::" + {test!r}, "-q", "-p", "no:cacheprovider"]))
    raise SystemExit({{1: 0, 0: 1}}.get(status, 2))

"""
INPUTS = "repro_inputs.pt"
NAMES = {1: "repro.py", 2: "repro_vllm.py", 3: "repro_test.py"}


@dataclass(slots=True)
class ReproSession:
    """One search for a repro. `original` is the failing test's fault, None where only a call is given."""

    prover: Prover
    times: int
    shrink: bool = True
    proofs: list[Proof] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)
    thresholds: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    spent: bool = False
    say: Callable[[str], None] = lambda _text: None

    def from_call(self, call: Call, original: Fingerprint | None, *, prelude: tuple[Call, ...] = ()) -> Proof:
        """Tier 1, then tier 2, for a call."""
        fault, found = self._fault_of(call, original, prelude)
        if fault is None:
            return self._not_shown(call, original, prelude)
        call, steps = choose_fill(self.prover.trials, fault, call, prelude=prelude)
        self.steps += steps
        search = Shrinking(self.prover.trials, fault, call, prelude=prelude, say=self.say)
        if self.shrink:
            search.run()
        self.steps += search.steps
        self.thresholds += [f"{sizes}: {words}" for sizes, words in search.thresholds.items()]
        if search.spent:
            self.spent = True
            self.notes.append("the budget ended before the search: the script may not be the smallest")
        proof = self._prove(search.call, search.prelude, fault, found, tier=1)
        if not proof.is_verified and self._has_vllm():
            proof = self._prove(search.call, search.prelude, fault, found, tier=2)
        return proof

    def _fault_of(
        self, call: Call, original: Fingerprint | None, prelude: tuple[Call, ...]
    ) -> tuple[Fault | None, Fingerprint | None]:
        """What the call shows by itself, if that is the original's fault."""
        answer = self.prover.trials.evaluate([script(call, Fault(), prelude=prelude)])[0]
        found = of_answer(answer)
        if found is None:
            return None, None
        if original is not None:
            same, why = agree(original, found)
            if not same:
                self.notes.append(f"the call alone shows something else: {why}")
                return None, found
        return found.fault(), found

    def _not_shown(self, call: Call, original: Fingerprint | None, prelude: tuple[Call, ...]) -> Proof:
        fault = original.fault() if original else Fault()
        text = script(call, fault, prelude=prelude)
        why = self.notes[-1] if self.notes else "the call alone does not show the fault"
        proof = Proof(NAMES[1], 1, 0, 1, (), None, False, why, count_lines(text))
        self.prover.write("repro_negative.py", text)
        self.proofs.append(proof)
        return proof

    def _prove(
        self, call: Call, prelude: tuple[Call, ...], fault: Fault, found: Fingerprint | None, *, tier: int
    ) -> Proof:
        inputs = self._inputs(call, prelude)
        text = script(call, fault, prelude=prelude, vllm=tier == 2, inputs=inputs)
        on_cpu = script(call, fault, prelude=prelude, vllm=tier == 2, device="cpu", inputs=inputs)
        shown, runs, control = self.prover.prove_script(
            NAMES[tier], text, on_cpu, tier=tier, times=self.times, crashes=fault.error_class == "crash"
        )
        lines = count_lines(text)
        why = found.says() if found else ""
        if tier == 1 and lines > MOST_LINES:
            self.notes.append(f"the script has {lines} lines, more than {MOST_LINES}")
        proof = Proof(
            NAMES[tier], tier, shown, self.times, tuple(runs), control, True, why, lines, tuple(self.thresholds)
        )
        self.proofs.append(proof)
        return proof

    def _inputs(self, call: Call, prelude: tuple[Call, ...]) -> str | None:
        """The saved tensors that the script needs, copied beside it."""
        files = saved_files(*prelude, call)
        if not files:
            return None
        if len(files) > 1:
            self.notes.append(f"the inputs lie in {len(files)} files: the script names them where they are")
            return None
        self.prover.keep(INPUTS, Path(files[0]).read_bytes())
        return INPUTS

    def _has_vllm(self) -> bool:
        packages = choose(self.prover.checkout).packages
        return bool(packages and (packages / "vllm" / "__init__.py").is_file()) or (
            importlib.util.find_spec("vllm") is not None
        )

    def from_test(self, nodeid: str, original: Failure) -> Proof:
        """Tier 3: the test with what it needs, in a file of its own.

        Raises:
            BadInputError: the test's source can't be read.
        """
        text = self._pruned(nodeid)
        shown, runs, why = self.prover.prove_test(NAMES[3], text, nodeid, original, times=self.times)
        _, control = self.prover.control_of((nodeid,))
        plain = self.prover.run_script(self.prover.folder.path / NAMES[3])
        runs.append(plain.id)
        self.notes.append(f"run it where the plugin is importable: python {NAMES[3]} ({CONTRACT})")
        same = shown == self.times and plain.exit == SHOWN
        if shown == self.times and plain.exit != SHOWN:
            why = f"run by itself the file exits with {plain.exit}"
        proof = Proof(
            NAMES[3], 3, shown, self.times, (*runs, control.id), control.exit == 0, same, why, count_lines(text)
        )
        self.proofs.append(proof)
        return proof

    def _pruned(self, nodeid: str) -> str:
        path, _, rest = nodeid.partition("::")
        name = rest.split("[")[0]
        source = self.prover.checkout / path
        try:
            text = prune(
                source.read_text(encoding="utf-8"),
                name,
                fixtures_from=_conftests(self.prover.checkout, source),
                local=_beside(source),
            )
        except (OSError, SyntaxError, KeyError, UnicodeDecodeError) as error:
            raise BadInputError(
                f"cannot take {name} out of {source}: {error}", next="debug-spyre repro --op NAME ARGS"
            ) from error
        main = _MAIN.format(contract=CONTRACT, test=rest)
        lines = text.splitlines(keepends=True)
        futures = sum(line.startswith("from __future__") for line in lines)
        return "".join([*lines[:futures], main, *lines[futures:]])


def _beside(source: Path) -> dict[str, str]:
    """The modules that lie in the test's folder: pytest puts it on the path."""
    return {
        path.stem: path.read_text(encoding="utf-8")
        for path in sorted(source.parent.glob("*.py"))
        if path != source and path.name != "conftest.py" and not path.name.startswith("test_")
    }


def _conftests(checkout: Path, source: Path) -> list[str]:
    return [
        (folder / "conftest.py").read_text(encoding="utf-8")
        for folder in reversed([source.parent, *source.parent.parents])
        if checkout in (folder, *folder.parents) and (folder / "conftest.py").is_file()
    ]
