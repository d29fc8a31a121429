"""Packages written on the fly, and the answers that the reader gives for them."""

import pytest

from debug_spyre.surface.names import parse
from debug_spyre.surface.op_verdict import answer_on
from debug_spyre.surface.registry import read_surface
from debug_spyre.surface.verdicts import Index


class Reading:
    """A package's surface with its answers."""

    def __init__(self, files, **more):
        self.surface = read_surface({f"torch_spyre/{name}": text for name, text in files.items()}, **more)
        self.index = Index(self.surface)

    def __call__(self, text):
        name, said = parse(text)
        return answer_on(self.index, self.index.home(name, said=said))

    def verdicts(self, text):
        answer = self(text)
        return answer.summary.eager.verdict, answer.summary.compiled.verdict

    def sites(self, form=None):
        """(op, file, line) of every site."""
        return [
            (str(s.op), s.file.removeprefix("torch_spyre/"), s.line)
            for s in self.surface.sites
            if form in {None, s.form.value}
        ]


@pytest.fixture
def reading():
    return Reading
