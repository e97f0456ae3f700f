"""TOSA texts with other attributes, types and ranks: each import ends in a module or in an error of the project."""

from __future__ import annotations

import re

import numpy as np
import pytest
from tosa_networks import network

from qdialect.frontends.building.checks import CONVERSION_FAILED
from qdialect.frontends.tosa import import_tosa
from qdialect.support.diagnostics import QDialectError

CHANGES = 60
_NUMBERS = ("0", "1", "2", "-1", "3", "8", "127", "128", "-129", "62", "63", "2147483647")
_ELEMENTS = ("i8", "i16", "i32", "i48", "f32", "i1", "ui8", "index")
_WORDS = ("true", "false", "SINGLE_ROUND", "DOUBLE_ROUND", "INEXACT_ROUND")
# What is replaced, and by what.
_TOKENS = (
    (re.compile(r"(?<![\w.%#-])-?\d+(?![\w.x])"), _NUMBERS),
    (re.compile(r"(?<=x)u?i\d+\b"), _ELEMENTS),
    (re.compile(r"\b\d+(?=x)"), _NUMBERS[:6]),
    (re.compile(r"\b\d+x(?=\d)"), ("", "1x", "1x1x")),
    (re.compile("|".join(_WORDS)), _WORDS),
)


def source() -> str:
    """A network of every kind of op."""
    text = network("SINGLE_ROUND")
    return text.render(list(text.types)[-1])


def changed(text: str, rng: np.random.Generator) -> str:
    """`text` with up to 3 tokens replaced."""
    for _ in range(int(rng.integers(1, 4))):
        pattern, others = _TOKENS[int(rng.integers(len(_TOKENS)))]
        found = [match for match in pattern.finditer(text) if match.end() - match.start() < 20]
        if not found:
            continue
        match = found[int(rng.integers(len(found)))]
        text = text[: match.start()] + str(rng.choice(others)) + text[match.end() :]
    return text


def message_of(text: str) -> str:
    """What the import says; nothing where it gives a module."""
    try:
        import_tosa(text)
    except QDialectError as error:
        return error.render()
    return ""


@pytest.mark.parametrize("seed", range(4))
def test_wrong_attributes_types_and_ranks(seed: int) -> None:
    rng, text = np.random.default_rng(seed), source()
    messages = [message_of(changed(text, rng)) for _ in range(CHANGES)]
    assert sum(map(bool, messages)) > CHANGES // 4
    assert not [message for message in messages if CONVERSION_FAILED in message]


def test_the_text_itself_is_imported() -> None:
    import_tosa(source())
