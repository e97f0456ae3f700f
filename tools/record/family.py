"""What a family of recordings is."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from qdialect.support.interface import Array


@dataclass(frozen=True)
class Case:
    """The content of a model's file and the inputs of one call, before a framework ran it."""

    name: str
    model: bytes
    inputs: tuple[Array, ...]


# A framework: the content of a model's file and its inputs to its outputs; raises `ImportError` where it is absent.
Framework = Callable[[bytes, tuple[Array, ...]], tuple[Array, ...]]


@dataclass(frozen=True)
class Family:
    """The cases of one file of recordings and the framework that ran them.

    `draw` needs no framework and gives the same cases whenever it is called.
    """

    name: str
    draw: Callable[[], Iterator[Case]]
    framework: Framework
