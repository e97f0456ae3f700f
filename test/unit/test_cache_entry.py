"""Entries of the cache: what was written is read, and nothing else."""

import pytest

from qdialect.cache.store import packed, unpacked

SECTIONS = {"library": b"\x7fELF" + bytes(range(7)), "empty": b"", "record": b"about"}


def test_sections_are_read_as_they_were_written() -> None:
    found = unpacked("key", packed("key", SECTIONS))
    assert found is not None
    assert {name: bytes(data) for name, data in found.items()} == SECTIONS


def test_the_first_section_stands_at_the_start_for_loaders() -> None:
    assert packed("key", SECTIONS).startswith(SECTIONS["library"])


def test_every_bit_counts() -> None:
    content = packed("key", SECTIONS)
    for bit in range(8 * len(content)):
        damaged = bytearray(content)
        damaged[bit // 8] ^= 1 << bit % 8
        assert unpacked("key", bytes(damaged)) is None, bit


def test_every_byte_counts() -> None:
    content = packed("key", SECTIONS)
    assert all(unpacked("key", content[:size]) is None for size in range(len(content)))
    assert all(unpacked("key", content[size:]) is None for size in range(1, len(content)))
    assert unpacked("key", content + b"\0") is None


@pytest.mark.parametrize("content", [b"", b"qdialect cache 1", bytes(200), b"x" * 4096])
def test_a_foreign_file_is_no_entry(content: bytes) -> None:
    assert unpacked("key", content) is None


def test_an_entry_under_another_name_is_none() -> None:
    assert unpacked("other", packed("key", SECTIONS)) is None
