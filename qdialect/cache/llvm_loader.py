"""Object files in this process by LLVM's own linker, as llvmlite has it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import count

from llvmlite import binding

_numbers = count()
_kept: list[object] = []

binding.initialize_native_target()
binding.initialize_native_asmprinter()
_compiler = binding.create_lljit_compiler()


def load_objects(objects: Sequence[bytes], names: Sequence[str]) -> Mapping[str, int]:
    """Link `objects`, and with what this process has loaded; the addresses of the symbols `names`.

    They stay loaded. Raises `RuntimeError` where LLVM refuses them.
    """
    builder = binding.JITLibraryBuilder().add_current_process()
    for content in objects:
        builder.add_object_img(content)
    for name in names:
        builder.export_symbol(name)
    library = builder.link(_compiler, f"network{next(_numbers)}")
    _kept.append(library)
    return {name: library[name] for name in names}
