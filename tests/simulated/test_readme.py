"""The README's two tables are complete."""

import re

from tests.simulated.conftest import SIMULATED


def rows(section):
    text = (SIMULATED / "README.md").read_text(encoding="utf-8")
    part = text.partition(f"\n## {section}\n")[2].partition("\n## ")[0]
    return {re.match(r"\| `(\w+)`", line)[1]: line for line in part.splitlines() if re.match(r"\| `\w+`", line)}


def test_the_table_of_faults_is_that_of_the_package(torch):
    from torch_spyre import faults
    from torch_spyre.faults.__main__ import table

    assert set(rows("Faults")) == set(faults.CATALOGUE)
    assert "\n".join(rows("Faults").values()) in table()


def test_the_table_of_limitations_is_that_of_the_package(torch):
    from torch_spyre import limits

    found = rows("Limitations")
    assert set(found) == set(limits.CATALOGUE)
    for name, limit in limits.CATALOGUE.items():
        assert limit.text in found[name] and found[name].endswith(f"| {'yes' if limit.default else 'no'} |")
