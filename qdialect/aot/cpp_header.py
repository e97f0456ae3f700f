"""The C++ header of a compiled network: a class over the C interface."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from qdialect.aot.network import ALIGNMENT, Network
from qdialect.interface import Port

_TYPES: Mapping[str, str] = {
    "bool": "bool",
    **{name: f"std::{name}_t" for name in ("int8", "uint8", "int16", "uint16", "int32", "int64")},
    "float32": "float",
}

_TEXT = """\
// Network {name} in C++20, written by {generator}. The C header {header} says what it takes.
#ifndef QDIALECT_NETWORK_{name}_HPP
#define QDIALECT_NETWORK_{name}_HPP

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <span>
#include <stdexcept>
#include <string>

#include "{header}"

namespace qdialect {{

// A workspace of the network. One object runs one call at a time; objects of their own run at the same time.
class {name}_network {{
 public:
  // Throws std::runtime_error where this CPU can execute none of the versions, and std::bad_alloc.
  {name}_network() : workspace_(allocate()) {{
    if ({name}_version() < 0) throw std::runtime_error({name}_strerror(QDIALECT_ERROR_CPU));
  }}

  // Computes the outputs{of_size}. Throws std::invalid_argument for a span of another number of elements than {wanted}.
  void run({parameters}) {{
{checks}
    const void *const inputs[] = {{{inputs}}};
    void *const outputs[] = {{{outputs}}};
    const int error = {name}_run(inputs, outputs, workspace_.get(){size});
    if (error != QDIALECT_OK) throw std::runtime_error({name}_strerror(error));
  }}

 private:
  static constexpr std::align_val_t alignment{{{alignment}}};

  struct Free {{
    void operator()(void *memory) const {{ ::operator delete(memory, alignment); }}
  }};

  static std::unique_ptr<void, Free> allocate() {{
    return std::unique_ptr<void, Free>(::operator new({name}_workspace_size({one}), alignment));
  }}

  static void check(const char *what, std::size_t found, std::size_t wanted) {{
    if (found == wanted) return;
    throw std::invalid_argument(std::string(what) + " must have " + std::to_string(wanted) + " elements, but got " +
                                std::to_string(found));
  }}

  std::unique_ptr<void, Free> workspace_;
}};

}}  // namespace qdialect

#endif
"""


def cpp_header(network: Network, header: str, generator: str) -> str:
    """The text of the C++ header beside the C header of that file name; `generator` is the program that writes it."""
    inputs = [(f"input{i}", port) for i, port in enumerate(network.inputs)]
    outputs = [(f"output{i}", port) for i, port in enumerate(network.outputs)]
    spans = [f"std::span<const {_TYPES[port.dtype.name]}> {name}" for name, port in inputs]
    spans += [f"std::span<{_TYPES[port.dtype.name]}> {name}" for name, port in outputs]
    has_batch = network.batch is not None
    ports = zip([*inputs, *outputs], network.factors, strict=True)
    checks = [f'    check("{name}", {name}.size(), {_elements(port, factor)});' for (name, port), factor in ports]
    if has_batch:
        spans.insert(0, "std::int64_t batch")
        checks.insert(0, '    if (batch < 0) throw std::invalid_argument("batch must be at least 0");')
    return _TEXT.format(
        name=network.name,
        generator=generator,
        header=header,
        parameters=", ".join(spans),
        checks="\n".join(checks),
        inputs=_pointers(inputs),
        outputs=_pointers(outputs),
        alignment=ALIGNMENT,
        of_size=" of so many entries" if has_batch else "",
        wanted="they have" if has_batch else "the network has",
        size=", batch" if has_batch else "",
        one="1" if has_batch else "",
    )


def _elements(port: Port, factor: int) -> str:
    if not factor:
        return f"{math.prod(port.shape)}u"
    return f"static_cast<std::size_t>(batch) * {factor * math.prod(port.shape[1:])}u"


def _pointers(arrays: Sequence[tuple[str, Port]]) -> str:
    # C++ has no empty array.
    return ", ".join(f"{name}.data()" for name, _ in arrays) or "nullptr"
