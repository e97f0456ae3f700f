"""Object files of the JIT compiler as those that a C compiler makes.

LLVM compiles for a process whose memory may lie anywhere: code and constants stand in the sections of the large code
model, which linkers put among writable data. Their code addresses everything by 64-bit distances and is right in the
ordinary sections too. The JIT's own entry points, one for each public function, are hidden.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence

# ELF-64 of the System V ABI, chapter 4.
_SECTION = struct.Struct("<2I4Q2I2Q")
_SYMBOL = struct.Struct("<IBBHQQ")
_SECTIONS_AT, _SECTION_COUNT_AT = 0x28, 0x3C
_SYMBOL_TABLE = 2
_LARGE = 1 << 28
"""SHF_X86_64_LARGE."""
_HIDDEN = 2

_ORDINARY = {".ltext": ".text", ".lrodata": ".rodata"}


def ordinary(code: bytes, is_hidden: Callable[[str], bool]) -> bytes:
    """`code`, an x86-64 ELF object, without sections of the large code model; symbols of `is_hidden` are hidden."""
    raw = bytearray(code)
    (table,) = struct.unpack_from("<Q", raw, _SECTIONS_AT)
    count, names_index = struct.unpack_from("<2H", raw, _SECTION_COUNT_AT)
    sections = [list(_SECTION.unpack_from(raw, table + _SECTION.size * index)) for index in range(count)]
    names = _content(raw, sections[names_index])
    added = bytearray()
    for section in sections:
        old = _text(names, section[0])
        new = _ordinary_name(old)
        if new != old:
            section[0] = len(names) + len(added)
            added += new.encode() + b"\0"
        section[2] &= ~_LARGE
        if section[1] == _SYMBOL_TABLE:
            _hide(raw, section, _content(raw, sections[section[6]]), is_hidden)
    sections[names_index][4:6] = len(raw), len(names) + len(added)
    for index, section in enumerate(sections):
        _SECTION.pack_into(raw, table + _SECTION.size * index, *section)
    return bytes(raw) + names + bytes(added)


def _ordinary_name(name: str) -> str:
    prefix, stem = (".rela", name.removeprefix(".rela")) if name.startswith(".rela.") else ("", name)
    found = next((large for large in _ORDINARY if stem == large or stem.startswith(f"{large}.")), None)
    return name if found is None else prefix + _ORDINARY[found] + stem.removeprefix(found)


def _content(raw: bytearray, section: Sequence[int]) -> bytes:
    return bytes(raw[section[4] : section[4] + section[5]])


def _hide(raw: bytearray, table: Sequence[int], names: bytes, is_hidden: Callable[[str], bool]) -> None:
    for at in range(table[4], table[4] + table[5], _SYMBOL.size):
        name, info, other, *rest = _SYMBOL.unpack_from(raw, at)
        if is_hidden(_text(names, name)):
            _SYMBOL.pack_into(raw, at, name, info, other | _HIDDEN, *rest)


def _text(names: bytes, start: int) -> str:
    return names[start : names.index(b"\0", start)].decode()
