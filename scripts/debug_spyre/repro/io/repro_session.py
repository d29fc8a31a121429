"""The way from a suspect to a proved script: tier 1 first, then vLLM's contexts, then the test itself; failures are kept."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

from debug_spyre.examine.call import Call, Program, Tensor
from debug_spyre.host.fingerprint import search_path
from debug_spyre.host.interpreter import choose
from debug_spyre.repro.extraction import prune
from debug_spyre.repro.io.first_look import REPEAT, FirstLook, Shown
from debug_spyre.repro.io.proof import Proof, Prover
from debug_spyre.repro.io.shrinking import Shrinking, Step
from debug_spyre.repro.same_fault import Fingerprint, agree, of_answer
from debug_spyre.repro.script import (
    CONTRACT,
    MOST_LINES,
    NOT_SHOWN,
    SHOWN,
    Fault,
    count_lines,
    saved_files,
    script,
    storage_script,
)
from debug_spyre.repro.writing import by_seed
from debug_spyre.vocabulary.errors import BadInputError
from debug_spyre.vocabulary.evidence import Failure

_MAIN = """if __name__ == "__main__":  # {contract}
    import pytest

    status = int(pytest.main([__file__ + "::" + {test!r}, "-q", "-p", "no:cacheprovider"]))
    raise SystemExit({{1: 0, 0: {not_shown}}}.get(status, 2))

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
    smallest: Program | None = None
    spent: bool = False
    say: Callable[[str], None] = lambda _text: None

    def from_call(self, call: Call, original: Fingerprint | None, *, prelude: tuple[Call, ...] = ()) -> Proof:
        """Tier 1, then tier 2, for a call; `prelude` are the calls that ran before it."""
        looking = FirstLook(self.prover.trials, original)
        shown = looking.look(call, prelude)
        if shown is None:
            return self._not_shown(call, original, looking.why_not)
        if shown.note:
            self.notes.append(shown.note)
        proof = self._search(shown)
        for note, steadier in self._steadier(shown):
            if proof.shown < proof.times and not self.spent:
                self.notes.append(f"not steady in fresh processes: {note}")
                proof = self._search(steadier)
        if not proof.is_verified and self._has_vllm():
            proof = self._prove(shown.program, shown.found.fault(), shown.found, tier=2)
        return proof

    def from_shown(self, shown: Shown) -> Proof:
        """Tier 1 for a program that is known to show the fault, and how."""
        return self._search(shown)

    def _steadier(self, shown: Shown) -> list[tuple[str, Shown]]:
        """What else to search with where the smallest script does not show the fault every time."""
        program, found = shown.program, []
        if not shown.isolated:
            found.append(("searched again, each try in a process of its own", replace(shown, isolated=True)))
        if program.repeat == 1 and not program.prelude and shown.found.kind == "difference":
            often = replace(program, repeat=REPEAT)
            found.append((f"searched again with {REPEAT} calls", replace(shown, program=often, isolated=True)))
        return found

    def nothing_to_try(self, run: str | None, checked: int) -> None:
        """No op was named: tier 1 has nothing to be made of, which is a result when a shadow run says so."""
        if run is None:
            self.notes.append("tier 1 was not tried: no shadow run names an op (debug-spyre shadow NODEID)")
            return
        why = f"shadow {run} names no op: each of {checked} ops that ran on the card is right by itself"
        self.proofs.append(Proof(NAMES[1], 1, 0, 0, (), None, False, why, 0))

    def _search(self, shown: Shown) -> Proof:
        fault = shown.found.fault()
        search = Shrinking(self.prover.trials, fault, shown.program, isolated=shown.isolated, say=self.say)
        if self.shrink and not shown.is_slow:
            search.run()
        self.steps += search.steps
        self.smallest = search.program
        self.thresholds[:] = [f"{sizes}: {words}" for sizes, words in search.thresholds.items()]
        if search.spent:
            self.spent = True
            self.notes.append("the budget ended before the search: the script may not be the smallest")
        return self._prove(search.program, fault, shown.found, tier=1)

    def _not_shown(self, call: Call, original: Fingerprint | None, why: str) -> Proof:
        fault = original.fault() if original else Fault()
        text = script(Program(call), fault)
        proof = Proof(NAMES[1], 1, 0, 1, (), None, False, why, count_lines(text))
        self.prover.write("repro_negative.py", text)
        self.proofs.append(proof)
        return proof

    def _prove(self, program: Program, fault: Fault, found: Fingerprint, *, tier: int) -> Proof:
        program, inputs = self._with_inputs(program)
        text = script(program, fault, vllm=tier == 2, inputs=inputs)
        on_cpu = script(program, fault, vllm=tier == 2, device="cpu", inputs=inputs)
        shown, runs, control = self.prover.prove_script(
            NAMES[tier], text, on_cpu, tier=tier, times=self.times, crashes=fault.error_class == "crash"
        )
        lines = count_lines(text)
        if tier == 1 and lines > MOST_LINES:
            self.notes.append(f"the script has {lines} lines, more than {MOST_LINES}")
        last = of_answer(self.prover.trials.answer_to(text) or {})
        same, why = agree(found, last) if last is not None else (True, found.says())
        thresholds = tuple(self.thresholds)
        proof = Proof(NAMES[tier], tier, shown, self.times, tuple(runs), control, same, why, lines, thresholds)
        self.proofs.append(proof)
        return proof

    def _with_inputs(self, program: Program) -> tuple[Program, str | None]:
        """The program with the saved tensors cut to what it needs: as numbers, or in a file beside the script."""
        if not saved_files(program):
            return program, None
        names = {str(n): f"input{n}" for n, t in enumerate(program.tensors()) if t.fill == "file"}
        found = self.prover.trials.storages(storage_script(program), names, INPUTS)
        if "values" not in found:
            self.prover.keep(INPUTS, (self.prover.folder.path / "repro" / INPUTS).read_bytes())
        counter = iter(map(str, range(len(program.tensors()))))

        def change(tensor: Tensor) -> Tensor:
            place = next(counter)
            if place not in names:
                return tensor
            bare = by_seed(tensor, "values" if "values" in found else "file")
            if "values" in found:
                return replace(bare, values=tuple(found["values"][place]))
            return replace(bare, file=INPUTS, key=names[place])

        calls = [call.map_tensors(change) for call in program.calls]
        return program.with_calls(calls), None if "values" in found else INPUTS

    def _has_vllm(self) -> bool:
        """The target's Python has vLLM."""
        folders = search_path(choose(self.prover.checkout).packages)
        return any((folder / "vllm" / "__init__.py").is_file() for folder in folders)

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
        main = _MAIN.format(contract=CONTRACT, test=rest, not_shown=NOT_SHOWN)
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
