"""Names of a stranger's model as text of C."""

from __future__ import annotations

_PLAIN = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789 _.,:;/()[]{}<>=+-#@!$%&^|~'`")


def quoted(text: str) -> str:
    """`text` as a string literal of C, which is harmless in a comment too.

    Whatever ends a literal, a line or a comment is an octal escape of its UTF-8 bytes, and so are the characters of
    trigraphs.
    """
    raw = text.encode(errors="backslashreplace")
    return f'"{"".join(chr(byte) if chr(byte) in _PLAIN else f"{chr(92)}{byte:03o}" for byte in raw)}"'
