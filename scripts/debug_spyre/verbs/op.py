"""op: where ops are registered in the installed torch-spyre, which registration wins in each mode, and why."""

from __future__ import annotations

import gc
from argparse import ArgumentParser, Namespace
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

from debug_spyre.session.io.checkout import find_checkout, logs_folder
from debug_spyre.surface.io.asking import Asked, all_packets, ask_registry, earlier_build
from debug_spyre.surface.io.package_files import cache_folders, find_package, load_surface
from debug_spyre.surface.names import OpName, name_in_words, near, parse
from debug_spyre.surface.op_verdict import OpAnswer, answer_on, lines_of, op_json, unresolved_json, unresolved_lines
from debug_spyre.surface.verdicts import Index
from debug_spyre.verbs.verb import Verb, answer, warn
from debug_spyre.vocabulary.errors import BadInputError, DebugSpyreError, Exit, UsageError

MOST_LINES = 10


def _arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help="aten.mm, aten::mm.out, mm, or a FallbackWarning's text"
    )
    parser.add_argument("--all", action="store_true", help="every op that the package registers something for")
    parser.add_argument(
        "--from", dest="run", metavar="RUN", help="every op that a run's evidence names (r3, or a file)"
    )
    parser.add_argument(
        "--against",
        metavar="BUILD",
        help="which ops gained, lost or changed a form since BUILD: another torch_spyre folder, a kept answer of op --all --json, or a revision that op saw before",
    )
    parser.add_argument("--package", metavar="DIR", help="a torch_spyre folder that is not the installed one")
    parser.add_argument("--text", action="store_true", help="read the source only: run nothing of the package")
    parser.add_argument("--session", metavar="STEM", help="the session that --from means (default: the current one)")
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def _run(args: Namespace) -> int:
    gc.disable()  # a short process that allocates trees: collecting costs more than it frees
    if not (args.names or args.all or args.run or args.against):
        raise UsageError("op needs a name, --all, --from RUN or --against BUILD", next="debug-spyre op aten.mm")
    checkout = _checkout()
    found = find_package(checkout, args.package)
    caches = cache_folders(logs_folder(checkout) if checkout else None)
    surface = load_surface(found, caches=caches)
    asked = Asked(None, "the source was read, as --text says")
    if not args.text:
        asked = ask_registry(found, surface, checkout, caches=caches)
    index = Index(surface, asked.registry.names() if asked.registry else ())
    names, unknown = _names(args.names, index)
    if checkout is not None and any(name.packet_name not in {*index.sites, *index.torch} for name in names):
        from debug_spyre.surface.io.package_files import plugin_sites

        index.add(plugin_sites(checkout))
        names, unknown = _names(args.names, index)
    fell = _fallen(args, checkout, index, only=names)
    names += [name for name in fell if name not in names]
    if args.all:
        names += [name for name in index.packets() if name not in names]
    answers = [answer_on(index, name, asked.registry) for name in names]
    known = [*index.sites, *index.torch]
    suggestions = {**unknown, **{str(a.name): near(a.name, known) for a in answers if not a.known}}
    data: dict[str, Any] = {
        "package": {"path": str(found.folder), "revision": _revision(found.folder, checkout), "how": asked.how},
        "ops": [op_json(a) for a in answers],
        "unresolved": [unresolved_json(u) for u in surface.unresolved],
        "suggestions": suggestions,
        "warnings": list(surface.warnings),
    }
    lines = _lines(answers, args, found.folder)
    if args.against:
        lines = _against(args.against, index, asked, names, data, checkout=checkout, caches=caches)
    if args.run:
        lines += _of_run(answers, fell, args.run, data)
    if asked.registry is None or asked.registry.stub:
        lines.append(f"({asked.how})")
    lines += [_no_such(name, alike) for name, alike in suggestions.items()]
    if args.all or any(a.summary.eager.verdict in {"none", "unknown"} for a in answers):
        lines += unresolved_lines(surface)
    for text in surface.warnings[:5]:
        warn(text)
    answer(lines, data, as_json=args.json)
    if lines and checkout is not None:
        _keep_for_row(lines, checkout, args.session)
    return int(Exit.NO if suggestions or any(a.missing_overload for a in answers) else Exit.YES)


def _against(
    given: str,
    index: Index,
    asked: Asked,
    names: list[OpName],
    data: dict[str, Any],
    *,
    checkout: Path | None,
    caches: tuple[Path, ...],
) -> list[str]:
    """The differences to another build, of the packets named or of all."""
    from debug_spyre.surface.builds import build_of, changes
    from debug_spyre.surface.builds import lines_of as change_lines

    if asked.registry is None:
        raise BadInputError(f"--against needs the registry, and {asked.how}", next="debug-spyre op --all --text")
    before, name = earlier_build(given, checkout, caches=caches)
    wanted = {n.packet_name for n in names}
    if Path(given).is_file():
        wanted = wanted or {n.packet_name for n in index.packets()} | {op.rpartition(".")[0] for op in before}
    packets = [packet for packet in all_packets(asked.registry) if not wanted or packet.packet_name in wanted]
    old = {op: forms for op, forms in before.items() if not wanted or op.rpartition(".")[0] in wanted}
    found = changes(old, build_of(index, asked.registry, packets))
    data["against"] = given
    data["changes"] = [asdict(change) for change in found]
    return change_lines(found, name, data["package"]["revision"] or data["package"]["path"])


def _keep_for_row(lines: list[str], checkout: Path, stem: str | None) -> None:
    """A row may be tested by looking an op up: the answer stands in the log, under the row in progress."""
    from debug_spyre.page.io import page
    from debug_spyre.session.events import ReportMade
    from debug_spyre.session.io.workspace import find_session, load_session

    with suppress(DebugSpyreError):
        folder = find_session(logs_folder(checkout), stem=stem)
        row = load_session(folder).in_progress
        if row is not None:
            folder.journal.append(ReportMade(verb="op", lines=tuple(lines[:MOST_LINES]), hypothesis=row.number))
            page.render(folder)


def _fallen(args: Namespace, checkout: Path | None, index: Index, *, only: list[OpName]) -> dict[OpName, int]:
    """What fell back in the run, with the number of tests; of the packets named, if any were."""
    if not args.run:
        return {}

    from debug_spyre.surface.io.fallback_ops import fallen_ops

    counts = fallen_ops(args.run, checkout, session=args.session)
    found: dict[OpName, int] = {}
    for text, tests in counts.items():
        parsed = parse(text)
        if parsed is not None:
            name = index.home(parsed[0], said=parsed[1])
            found[name] = found.get(name, 0) + tests
    packets = {name.bare() for name in only}
    return {name: n for name, n in found.items() if not packets or name.bare() in packets}


def _of_run(answers: list[OpAnswer], fell: dict[OpName, int], run: str, data: dict[str, Any]) -> list[str]:
    """What hit a fallback in the run, and what of it has a kernel all the same: that is the torch-spyre team's."""
    from debug_spyre.surface.io.fallback_ops import is_log

    data["fell_back"] = {str(name): tests for name, tests in fell.items()}
    escalate = (
        [] if is_log(Path(run)) else [a.name for a in answers if a.name in fell and a.summary.eager.verdict == "kernel"]
    )
    data["escalate"] = [str(name) for name in escalate]
    if is_log(Path(run)):
        data["named"] = data.pop("fell_back")
        return [f"{run}: {name} is named in {n} line{'' if n == 1 else 's'}" for name, n in fell.items()] or [
            f"{run}: no op is named"
        ]
    lines = [f"{run}: {name} fell back in {tests} test{'' if tests == 1 else 's'}" for name, tests in fell.items()]
    lines += [f"{name}: registered with a kernel, but fell back: debug-spyre escalate" for name in escalate]
    return lines or [f"{run}: no fallback" + (" of these ops" if len(answers) else "")]


def _no_such(name: str, alike: list[str]) -> str:
    return f"{name}: no op of that name; did you mean {' '.join(alike) or '(nothing near)'}?"


def _checkout() -> Path | None:
    try:
        return find_checkout()
    except DebugSpyreError:
        return None


def _names(asked: list[str], index: Index) -> tuple[list[OpName], dict[str, list[str]]]:
    names: list[OpName] = []
    unknown: dict[str, list[str]] = {}
    for text in asked:
        parsed = parse(text)
        if parsed is None:
            unknown[name_in_words(text)] = []
            continue
        name = index.home(parsed[0], said=parsed[1])
        if name not in names:
            names.append(name)
    return names, unknown


def _revision(folder: Path, checkout: Path | None) -> str | None:
    from debug_spyre.host.provenance import revision_of

    return revision_of(folder, checkout)


def _lines(answers: list[OpAnswer], args: Namespace, folder: Path) -> list[str]:
    if args.all and not args.names:
        width = max((len(str(a.name)) for a in answers), default=0)
        head = [f"{len(answers)} ops in {folder}: name, eager, compiled"]
        return head + [
            f"{a.name!s:{width}s}  {a.summary.eager.verdict:13s} {a.summary.compiled.verdict}" for a in answers
        ]
    return [line for a in answers if a.known for line in lines_of(a)]


VERBS = {
    "op": Verb(
        _arguments, _run, "debug-spyre op aten.mm.out 'FallbackWarning: aten.sin.default is falling back to cpu'"
    )
}
