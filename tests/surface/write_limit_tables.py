"""Writes the tables of limitations into the skill's notes: python tests/surface/write_limit_tables.py.

The text around the markers belongs to whoever writes the notes; what stands between them is generated.
"""

from pathlib import Path

from debug_spyre.surface.limits import read_limits, with_tables

ROOT = Path(__file__).parents[2]
DATA = ROOT / "scripts/debug_spyre/surface/data/limits.toml"
SKILL = ROOT / ".claude/skills/debug-spyre"
NOTES = (SKILL / "references/torch-spyre-map.md", SKILL / "attention-notes.md")


def generated(path):
    return with_tables(path.read_text(encoding="utf-8"), read_limits(DATA.read_text(encoding="utf-8")))


if __name__ == "__main__":
    for note in NOTES:
        note.write_text(generated(note), encoding="utf-8")
        print(note)
