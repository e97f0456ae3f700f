"""A look at how deep a text nests, before it reaches MLIR's recursive parser and printer.

They have no limit of their own: some thousand levels overflow the stack and end the process.
"""

from __future__ import annotations

import re

# Real modules stay below some dozens; a stack of 8 MiB holds about four thousand.
LIMIT = 500

# Strings, comments and arrows are passed over; a run of signs nests as brackets do.
_TOKEN = re.compile(
    r'"(?:[^"\\\n]|\\.)*"|//[^\n]*|->|[<>]='
    rf"|(?P<signs>-(?:\s*-){{{LIMIT}}})|(?P<open>[(\[{{<])|(?P<close>[)\]}}>])"
)


def too_deep(text: str) -> int | None:
    """Where `text` nests deeper than `LIMIT`, as an index; None where it does not."""
    depth = 0
    for token in _TOKEN.finditer(text):
        if token.lastgroup == "open":
            depth += 1
        elif token.lastgroup == "close":
            depth = max(depth - 1, 0)
        if depth > LIMIT or token.lastgroup == "signs":
            return token.start()
    return None
