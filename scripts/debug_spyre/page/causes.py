"""The causes that `investigate` found, at the top of the page: sentence, condition as strips, what it explains, proof."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from debug_spyre.examine.condition import Term
from debug_spyre.examine.dossier import RAGGED_WORD, Cause
from debug_spyre.page.page_context import Frame, Link, Word
from debug_spyre.page.pictures import Picture, Shape, bars, crosses, path, text
from debug_spyre.vocabulary.safe_text import Piece, count

CLAIMS = {"cause": Word("confirmed", "cause, proved"), "located": Word("inconclusive", "located, not proved")}
MANNERS = {
    "wrong-values": "wrong values",
    "refused": "refused by the backend",
    "crash": "ends the process",
    "hang": "never ends",
    "fallback": "falls back to the CPU",
    "order": "depends on what ran before",
    "graph-only": "only in compiled code",
    "host-logic": "in the plugin's own code",
    "stale-mark": "an outdated xfail mark",
}
MOST_STRIPS, MOST_SIZES = 4, 13  # as many sizes as a phone is wide
CELL, ROW, WIDE, FITS = 26, 64, 338, 3  # FITS: characters under one cell
Tried = tuple[str, frozenset[str]]  # a value, the verdicts seen at it


@dataclass(frozen=True, slots=True)
class CauseView:
    """One cause as the page shows it."""

    id: str
    claim: Word
    sentence: tuple[Piece, ...]
    manner: str
    facts: tuple[tuple[str, tuple[Piece, ...]], ...]  # label, text
    picture: Picture | None
    runs: tuple[Link, ...]


def causes(frame: Frame) -> tuple[CauseView, ...]:
    """The causes of this session's newest dossier, in its order."""
    dossier = frame.material.dossier
    return tuple(_view(frame, cause, n) for n, cause in enumerate(dossier.causes, 1)) if dossier else ()


def _view(frame: Frame, cause: Cause, number: int) -> CauseView:
    return CauseView(
        id=f"cause-{number}",
        claim=CLAIMS.get(cause.claim, Word("unknown", frame.line(cause.claim, 40))),
        sentence=frame.prose(cause.sentence, 600),
        manner=MANNERS.get(cause.manner, frame.line(cause.manner, 40)),
        facts=tuple((label, frame.prose(words, 900)) for label, words in _facts(cause) if words),
        picture=strips(frame, cause, number),
        runs=tuple(frame.run_link(run) for run in cause.runs[:12]),
    )


def _facts(cause: Cause) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    condition, explains = cause.condition, cause.explains
    bad = "refused" if cause.manner == "refused" else "wrong"
    if condition is None and cause.manner in {"wrong-values", "refused"}:
        found.append(("Condition", "no condition found"))
    elif condition is not None:
        if condition.text not in cause.sentence:
            found.append(("Condition", condition.text))
        word = "exact: tested on both sides of each border" if condition.exact else "not exact"
        border = condition.borders[0] if condition.borders else {}
        calls = f"right: `{border['right']}`; {bad}: `{border['wrong']}`; " if border else ""
        found.append(("Border", calls + word))
    if explains:
        others = f"of {explains['calls']:,} other calls {explains['predicted_wrong']:,} were predicted {bad}"
        tests = f"{explains['tests']} of {explains['of']} failing tests"
        found.append(("Explains", f"{tests}; {others} and {explains['were_wrong']:,} were"))
    found.append(("First at", f"{cause.site}: `{cause.call or cause.op}`" if cause.site else ""))
    label = "Wrong values" if cause.manner == "wrong-values" else "It says"
    found.append((label, cause.wrong_values or ""))
    found.append(("Only after", "; ".join(f"`{call}`" for call in cause.needs_before[:3])))
    found.append(("Proof", _proof(cause)))
    good = [way["text"] for way in cause.ways_round if way.get("measured") == "right"]
    if cause.ways_round:
        found.append(("Ways round", "; ".join(good[:5]) or f"none of the {len(cause.ways_round)} that were tried"))
    limits = (cause.known or {}).get("limits") or ()
    found.append(("Known limitation", str(limits[0]) if limits else ""))
    found.append(("Tests", f"{count(len(cause.tests), 'test')}, `{cause.tests[0]}` first" if cause.tests else ""))
    found.append(("Open", "; ".join(cause.open[:4])))
    return found


def _proof(cause: Cause) -> str:
    control = {
        "passes": "the control passes on the CPU",
        "fails-alike": "the control fails on the CPU in the same way",
        "stopped-elsewhere": "the control stopped for another reason and says nothing",
    }.get(cause.control or "", "no control")
    if cause.repro is None:
        return f"no script; {control}"
    name = str(cause.repro.get("path", "")).rpartition("/")[2]
    return f"`{name}`, {cause.repro.get('lines')} lines, shows it in {cause.repro.get('proved')} processes; {control}"


def strips(frame: Frame, cause: Cause, number: int) -> Picture | None:
    """One strip for each feature of the condition, with the points at which its other terms hold.

    A size shows its tried values in order, a yes-or-no feature its two answers.
    """
    condition = cause.condition
    if condition is None:
        return None
    terms = {str(term["feature"]): term for term in condition.terms}
    tried: dict[str, list[Tried]] = {}
    for feature, term in list(terms.items())[:MOST_STRIPS]:
        others = [_term(t) for name, t in terms.items() if name != feature]
        points = [p for p in condition.points if all(_holds(t, p) for t in others)]
        values = _values(points, term)
        if len(values) > 1:
            tried[frame.line(term.get("words") or feature, 90)] = values
    if not tried:
        return None
    shapes: list[Shape] = []
    widest = max(len(values) for values in tried.values())
    for row, (words, values) in enumerate(tried.items()):
        shapes += _strip(words, values, row * ROW)
    said = "; ".join(
        f"{words}: wrong at {_list(v, 'wrong')}, right at {_list(v, 'right')}" for words, v in tried.items()
    )
    caption = (
        Piece("What was tried.", "strong"),
        Piece(
            " Tall red: "
            + ("refused" if cause.manner == "refused" else "wrong")
            + ". Low green: right. Both in one place: it depends on something else, too."
        ),
    )
    width = max(WIDE, widest * CELL)
    return Picture(
        f"condition-{number}",
        width,
        len(tried) * ROW + 4,
        "Condition",
        frame.line(said, 900),
        tuple(shapes),
        caption,
        natural=True,
    )


def _term(term: Mapping[str, Any]) -> Term:
    return Term(str(term["feature"]), str(term.get("relation", "==")), term.get("value", True))


def _holds(term: Term, point: Mapping[str, Any]) -> bool:
    """Whether a point fulfils a term; a dimension drawn for "is ragged" counts as the answer to that."""
    values = point.get("values")
    value = values.get(term.feature) if isinstance(values, Mapping) else None
    ragged = RAGGED_WORD.fullmatch(term.feature)
    if ragged is not None and isinstance(value, int) and not isinstance(value, bool):
        return (value != 1 and value % int(ragged["multiple"]) != 0) == (term.value is True)
    return term.holds({term.feature: value}) if value is not None else False


def _values(points: Sequence[Mapping[str, Any]], term: Mapping[str, Any]) -> list[Tried]:
    """Each tried value of the feature with the verdicts seen at it; those next to a change stay when there are many."""
    feature = str(term["feature"])
    seen: dict[float, set[str]] = {}
    answers: dict[str, set[str]] = {}
    for point in points:
        values = point.get("values")
        value = values.get(feature) if isinstance(values, Mapping) else None
        if isinstance(value, bool | str):
            word = ("yes" if value else "no") if isinstance(value, bool) else value
            answers.setdefault(word, set()).add(str(point.get("verdict")))
        elif isinstance(value, int | float):
            seen.setdefault(float(value), set()).add(str(point.get("verdict")))
    if answers and not seen:
        return [(words[:12], frozenset(verdicts)) for words, verdicts in sorted(answers.items())][:MOST_SIZES]
    ordered = [(f"{value:g}", frozenset(verdicts)) for value, verdicts in sorted(seen.items())]
    if len(ordered) <= MOST_SIZES:
        return ordered
    edges = {i + step for i in range(len(ordered) - 1) if ordered[i][1] != ordered[i + 1][1] for step in (0, 1)}
    if len(edges) > MOST_SIZES:  # right and wrong take turns, as with multiples
        return [item for i, item in enumerate(ordered) if i in sorted(edges)[:MOST_SIZES]]
    rest = [i for i in range(len(ordered)) if i not in edges]
    room = MOST_SIZES - len(edges)
    keep = edges | {rest[i * len(rest) // room] for i in range(min(room, len(rest)))}
    return [item for i, item in enumerate(ordered) if i in keep]


def _strip(words: str, values: list[Tried], top: float) -> list[Shape]:
    right, wrong, refused = [], [], []
    shapes = [text("t3", 0, top + 11, words)]
    top += 17
    for column, (value, verdicts) in enumerate(values):
        x = column * CELL
        if "wrong" in verdicts:
            wrong.append((x + 2.0, top + 2.0, CELL - 4.0, 14.0))
        if "right" in verdicts:
            right.append((x + 2.0, top + 13.0, CELL - 4.0, 4.0))
        if verdicts == {"refused"}:
            refused.append((x + CELL / 2, top + 10.0))
        if column % 2 == 0 or len(values) <= 12 or _is_edge(values, column):
            shapes.append(
                text("t3 c", x + CELL / 2, top + (40 if column % 2 and _is_crowded(values, column) else 29), value)
            )
    shapes += [
        path(css, d)
        for css, d in (("fr", bars(wrong)), ("fg", bars(right)), ("sr nf", crosses(refused))) if d
    ]  # fmt: skip
    for column in range(1, len(values)):
        if values[column - 1][1] != values[column][1]:
            shapes.append(path("ax", f"M{column * CELL} {top - 2}v22"))
    return shapes


def _is_edge(values: list[Tried], column: int) -> bool:
    near = values[max(0, column - 1) : column + 2]
    return any(verdicts != values[column][1] for _, verdicts in near)


def _is_crowded(values: list[Tried], column: int) -> bool:
    near = [len(value) for value, _ in values[max(0, column - 1) : column + 2]]
    return max(near) > FITS


def _list(values: list[Tried], verdict: str) -> str:
    found = [value for value, verdicts in values if verdict in verdicts]
    return ", ".join(found[:12]) + (" and more" if len(found) > 12 else "") if found else "none"
