"""The timeline: a lane is a hypothesis, a bar is a run, a line is a change of the tree; long pauses are folded."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from debug_spyre.page.page_context import Frame
from debug_spyre.page.pictures import Picture, Shape, bars, num, path, text
from debug_spyre.session.state import Hypothesis, Run
from debug_spyre.vocabulary.local_time import between, duration, parse
from debug_spyre.vocabulary.safe_text import Piece, count
from debug_spyre.vocabulary.words import HypothesisStatus

WIDTH, LEFT, RIGHT, TOP, LANE = 1040, 64, 900, 22, 20
MOST_LANES, MOST_BARS = 26, 300
PAUSE = 20 * 60.0  # a gap without any run that is longer than this (and than a tenth of the whole) is folded
FOLDED = 34.0  # width of a folded pause

GLYPHS = {
    HypothesisStatus.QUEUED: "queued",
    HypothesisStatus.IN_PROGRESS: "in-progress",
    HypothesisStatus.CONFIRMED: "confirmed",
    HypothesisStatus.RULED_OUT: "ruled-out",
    HypothesisStatus.INCONCLUSIVE: "inconclusive",
    HypothesisStatus.DROPPED: "dropped",
}
_FILL = {"passed": "fg", "running": "fa", "failed": "fr", "error": "fr"}


@dataclass(frozen=True, slots=True)
class _Bar:
    run: Run
    start: float
    end: float


def timeline_picture(frame: Frame, css_of: Callable[[Run], str]) -> Picture | None:
    """None where there is no run yet. `css_of`: what a run means, as its entry says."""
    session = frame.session
    runs = sorted(session.runs.values(), key=lambda r: r.started_seq)
    shown = [bar for run in runs[-MOST_BARS:] if (bar := _bar(frame, run)) is not None]
    if not shown:
        return None
    lanes = _lanes(session.hypotheses, [b.run for b in shown])
    scale = _Scale([(b.start, b.end) for b in shown])
    shapes = [*scale.axis(frame, TOP + LANE * len(lanes))]
    for index, lane in enumerate(lanes):
        shapes += _lane(frame, lane, TOP + LANE * index)
    place = {(lane.number if lane else None): TOP + LANE * i for i, lane in enumerate(lanes)}
    known = {row.number for row in session.hypotheses}
    for bar in shown:
        y = place.get(bar.run.hypothesis if bar.run.hypothesis in known else None)  # a row left out has no lane
        if y is not None:
            shapes.append(_drawn(frame, bar, scale, y, css_of(bar.run)))
    by_id = {bar.run.id: bar for bar in shown}
    for lane in lanes:
        if lane is not None:
            borrowed = (by_id[run] for run in lane.runs if run in by_id and by_id[run].run.hypothesis != lane.number)
            shapes += [_drawn(frame, bar, scale, place[lane.number], "") for bar in borrowed]
    shapes += _edits(frame, [b.run for b in shown], scale, TOP + LANE * len(lanes))
    caption = [
        Piece("Timeline.", "strong"),
        Piece(
            " A lane is a hypothesis, a bar a run with its length, hollow where a run of another row decided; a solid line is a change of the tree, a hatched gap a pause."
        ),
    ]
    if len(runs) > len(shown):
        caption.append(Piece(f" The newest {len(shown)} of {count(len(runs), 'run')}."))
    hidden = len(session.hypotheses) - sum(1 for lane in lanes if lane)
    if hidden > 0:
        caption.append(Piece(f" {count(hidden, 'row')} left out here; all are in the queue."))
    description = f"{count(len(shown), 'run')} in {count(len(lanes), 'lane')}."
    height = TOP + LANE * len(lanes) + 20
    return Picture(
        "timeline", WIDTH, height, "Timeline of the runs", description, tuple(shapes), tuple(caption), wide=True
    )


def _bar(frame: Frame, run: Run) -> _Bar | None:
    start = between(frame.session.opened_at, run.started_at)
    if start is None:
        return None
    end = between(frame.session.opened_at, run.finished_at or frame.session.updated_at)
    return _Bar(run, start, max(end if end is not None else start, start))


def _lanes(rows: Sequence[Hypothesis], runs: Sequence[Run]) -> list[Hypothesis | None]:
    busy = {run.hypothesis for run in runs}
    known = {row.number for row in rows}
    wanted = [row for row in rows if row.number in busy or row.status is not HypothesisStatus.DROPPED]
    if len(wanted) > MOST_LANES:
        wanted = [row for row in wanted if row.number in busy or not row.is_concluded]
    lanes: list[Hypothesis | None] = list(wanted[-MOST_LANES:])
    return [None, *lanes] if any(number not in known for number in busy) or not lanes else lanes


class _Scale:
    """Seconds to x, with long pauses folded to a fixed width."""

    def __init__(self, spans: list[tuple[float, float]]) -> None:
        merged: list[list[float]] = []
        for start, end in sorted(spans):
            if merged and start <= merged[-1][1] + PAUSE:
                merged[-1][1] = max(merged[-1][1], end)
            else:
                merged.append([start, end])
        while len(merged) > 8:  # fold the longest pauses only: join the pieces with the shortest pause between them
            index = min(range(len(merged) - 1), key=lambda i: merged[i + 1][0] - merged[i][1])
            merged[index : index + 2] = [[merged[index][0], merged[index + 1][1]]]
        self.pieces = merged
        room = RIGHT - LEFT - FOLDED * (len(merged) - 1)
        least = 24.0
        total = sum(end - start for start, end in merged) or 1.0
        widths = [max((end - start) / total * room, least) for start, end in merged]
        self.widths = [w * room / sum(widths) for w in widths]

    def x(self, seconds: float) -> float:
        """The place of a moment."""
        left = float(LEFT)
        for (start, end), width in zip(self.pieces, self.widths, strict=True):
            if seconds < start:
                return left
            if seconds <= end:
                return left + ((seconds - start) / (end - start) * width if end > start else 0.0)
            left += width + FOLDED
        return float(RIGHT)

    def axis(self, frame: Frame, bottom: float) -> list[Shape]:
        """Tick lines with their times, and the folded pauses."""
        shapes: list[Shape] = []
        left = float(LEFT)
        for index, ((start, end), width) in enumerate(zip(self.pieces, self.widths, strict=True)):
            step, ticks = _ticks(start, end, most=max(int(width // 76), 1))
            for tick in ticks:
                x = self.x(tick)
                shapes.append(path("ln", f"M{num(x)} {TOP - 4}V{num(bottom)}"))
                if x < RIGHT - 24:
                    shapes.append(text("t3", x + 3, TOP - 9, _clock(frame, tick, exact=step % 60 != 0)))
            left += width
            if index < len(self.pieces) - 1:
                pause = self.pieces[index + 1][0] - end
                shapes.append(
                    path("hatch", f"M{num(left + 3)} {TOP - 4}H{num(left + FOLDED - 3)}V{num(bottom)}H{num(left + 3)}z")
                )
                shapes.append(text("t3 c", left + FOLDED / 2, bottom + 13, f"{duration(pause)} pause"))
                left += FOLDED
        shapes.append(path("ln2", f"M{LEFT} {num(bottom)}H{RIGHT}"))
        return shapes


def _ticks(start: float, end: float, *, most: int) -> tuple[int, list[float]]:
    span = max(end - start, 1.0)
    for step in (1, 5, 10, 30, 60, 120, 300, 600, 1800, 3600, 7200, 14400, 43200, 86400, 7 * 86400):
        if span / step <= most:
            break
    return step, [start + step * i for i in range(int(span // step) + 1)]


def _clock(frame: Frame, seconds: float, *, exact: bool) -> str:
    opened = parse(frame.session.opened_at)
    if opened is None:
        return ""
    from datetime import timedelta

    when = (opened + timedelta(seconds=seconds)).isoformat(timespec="seconds").replace("+00:00", "Z")
    words = frame.zone.moment(when).text.split(" ")
    return " ".join([*words[:-1], words[-1] if exact else words[-1][:5]])


def _lane(frame: Frame, row: Hypothesis | None, y: float) -> list[Shape]:
    shapes = [path("ln", f"M{LEFT} {num(y + LANE - 0.5)}H{RIGHT}")]
    if row is None:
        return [*shapes, text("t3", 0, y + 14, "no row")]
    css = GLYPHS[row.status]
    shapes.append(
        Shape(
            "text",
            "lane",
            x=0,
            y=y + 14,
            text=f"H{row.number}",
            href=f"#h{row.number}",
            title=frame.line(row.text, 120),
        )
    )
    shapes.append(Shape("text", f"w {css}", x=RIGHT + 14, y=y + 14, text=row.status.value.replace("-", " ")))
    return shapes


def _drawn(frame: Frame, bar: _Bar, scale: _Scale, y: float, meaning: str) -> Shape:
    """A run's bar; hollow (no meaning of its own) where another row's run is the evidence."""
    run = bar.run
    left = scale.x(bar.start)
    width = max(scale.x(bar.end) - left, 3.0)
    took = duration(run.seconds if run.seconds is not None else bar.end - bar.start)
    words = f"{run.id} {run.name or run.verb}: {run.status.value}, {took}"
    link = frame.run_link(run.id)
    css = _FILL.get(meaning, "fx") if meaning else "hollow"
    shape = bars([(left, y + 4, width, 12) if css == "fr" else (left, y + 7, width, 9)])
    return path(css, shape, href=link.href, title=frame.line(words))


def _edits(frame: Frame, runs: Sequence[Run], scale: _Scale, bottom: float) -> list[Shape]:
    shapes = []
    last: str | None = None
    for run in runs:
        if run.tree_digest is not None:
            if last is not None and run.tree_digest != last:
                at = between(frame.session.opened_at, run.started_at) or 0.0
                x = scale.x(at) - 2
                words = f"the tree changed before {run.id}"
                shapes.append(path("edit", f"M{num(x)} {TOP - 2}V{num(bottom)}", title=frame.line(words)))
            last = run.tree_digest
    return shapes[-40:]
