"""The hooks of the Claude Code client: judges what the agent wants to do against the rules of debug-spyre.

Standard library only, also on the host's older Python (3.9). Nothing here is a sandbox: it keeps an agent from
breaking a rule by accident or by a short cut, and lets through without a prompt what the rules allow. The lock of
the card is the backstop where no hook runs at all. The rules are in debug_spyre/agent/guard.
"""

from __future__ import annotations

import sys

SCRIPTS = (__file__.rpartition("/")[0] or ".") if "/" in __file__ else "."


def main() -> int:
    """Answer one event of the client; an interpreter that can't read the rules leaves it to the next one."""
    if sys.version_info < (3, 9):  # noqa: UP036  whatever python3 is on the host
        sys.exit("the debug-spyre guard needs Python 3.9 or later")
    sys.path.insert(0, SCRIPTS)
    from debug_spyre.agent.guard import hooks

    return hooks.main(SCRIPTS)


if __name__ == "__main__":
    sys.exit(main())
