"""Every rule of the mission has its place and its test: tests/rules.toml is complete and tells the truth."""

import ast
import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
TABLE = tomllib.loads((ROOT / "tests/rules.toml").read_text(encoding="utf-8"))
RULES = TABLE["rules"]
IDS = {
    "S": 5, "P": 6, "H": 3, "L": 4, "C": 8, "G": 13, "B": 3, "Q": 7, "V": 6, "R": 4, "F": 4, "N": 5, "K": 6, "X": 5, "A": 1,
}  # fmt: skip
ALL = [f"{letter}{number}" for letter, count in IDS.items() for number in range(1, count + 1)]


def test_the_table_names_every_rule_once():
    assert sorted(RULES) == sorted(ALL)


def test_the_table_agrees_with_the_numbered_rules_where_they_lie_beside_the_project():
    source = ROOT.parent / "shared/mission/rules.md"
    if not source.is_file():
        pytest.skip("the numbered rules are not beside this checkout")
    rows = re.findall(r"^\| ([A-Z]\d+) \|.*\| ([^|]+) \|$", source.read_text(encoding="utf-8"), re.MULTILINE)
    assert {rule for rule, _ in rows} == set(ALL)
    for rule, kinds in rows:
        for kind in ("E", "C", "T"):
            if re.search(rf"\b{kind}\b", kinds):
                assert kind in RULES[rule]["kind"], f"{rule} must be {kind}"


@pytest.mark.parametrize("rule", ALL)
def test_where_a_rule_lives_exists(rule):
    entry = RULES[rule]
    assert entry["says"]
    assert entry["lives"], rule
    for place in entry["lives"]:
        assert (ROOT / place).exists(), f"{rule}: {place} is missing"


@pytest.mark.parametrize("rule", ALL)
def test_an_enforced_or_carried_out_rule_has_a_test_that_exists(rule):
    entry = RULES[rule]
    tests = entry.get("tests", [])
    assert tests or set(entry["kind"]) == {"T"}, f"{rule} is {entry['kind']} and has no test"
    for test in tests:
        path, _, name = test.partition("::")
        tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
        names = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
        assert name in names, f"{rule}: {test} does not exist"


def marks_of(tree, name):
    """The pytest marks of a test function and of its module, by name; those of single parameters do not count."""
    function = next(node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and node.name == name)
    of_module = [n.value for n in tree.body if isinstance(n, ast.Assign) and ast.unparse(n.targets[0]) == "pytestmark"]
    whole = [ast.unparse(node) for node in of_module] + [ast.unparse(node) for node in function.decorator_list]
    return {mark for text in whole if "parametrize" not in text for mark in re.findall(r"pytest\.mark\.(\w+)", text)}


@pytest.mark.parametrize("rule", [r for r in ALL if set(RULES.get(r, {}).get("kind", "T")) != {"T"}])
def test_make_test_alone_tries_every_rule(rule):
    """No rule rests on `make test-slow`, `make test-long` or vLLM only."""
    for test in RULES[rule]["tests"]:
        path, _, name = test.partition("::")
        if not marks_of(ast.parse((ROOT / path).read_text(encoding="utf-8")), name) & {"slow", "long", "vllm"}:
            return
    pytest.fail(f"{rule}: all its tests are left out of `make test`: {RULES[rule]['tests']}")


@pytest.mark.parametrize("rule", [r for r in ALL if "T" in RULES.get(r, {}).get("kind", [])])
def test_a_told_rule_is_told_in_the_skill_s_texts(rule):
    told = RULES[rule].get("told")
    assert told, f"{rule} is to be told; say where"
    path, words = told["file"], told["words"]
    text = " ".join((ROOT / path).read_text(encoding="utf-8").split())
    for word in words:
        assert word in text, f"{rule}: {path} does not say {word!r}"
