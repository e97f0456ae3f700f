"""The C header of a compiled network, and the C++ header with a class over it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from qdialect.aot.entry_points import Error
from qdialect.aot.external_header import network_text, quoted, shared_text
from qdialect.aot.record import ABI_VERSION, ALIGNMENT, Network
from qdialect.support.externals import ExternalFunction
from qdialect.support.interface import DTYPES, HAS_SCALE, HAS_ZERO_POINT, Port

_SHARED = """\
/* What all networks share. */
#ifndef QDIALECT_ABI_VERSION
#define QDIALECT_ABI_VERSION {version}

enum qdialect_dtype {{
{dtypes}
}};

enum qdialect_error {{
{errors}
}};

enum qdialect_quantization {{
  QDIALECT_HAS_SCALE = {has_scale},
  QDIALECT_HAS_ZERO_POINT = {has_zero_point}
}};

/* An input or output. Offsets are in bytes from the start of the qdialect_network that it is part of. */
typedef struct qdialect_tensor {{
  uint64_t size;         /* bytes of the array or, where it has a batch, of an entry of it */
  double scale;          /* f32 value = scale * (quantized value - zero_point) */
  int64_t zero_point;
  uint32_t quantization; /* a sum of qdialect_quantization: which of the two are known */
  uint32_t dtype;        /* a qdialect_dtype */
  uint32_t rank;
  uint32_t shape;        /* offset of rank numbers, int64_t; the first is -1 where the array has a batch */
  uint32_t name;         /* offset of UTF-8 text that ends with a zero byte */
  uint32_t batch;        /* elements of the first dimension for an entry of the batch, 0 without one */
}} qdialect_tensor;

/* A network, as constant data without addresses. */
typedef struct qdialect_network {{
  char magic[8];         /* "qdialect", without a zero byte */
  uint32_t abi_version;  /* QDIALECT_ABI_VERSION of the library */
  uint32_t size;         /* bytes of this description, with all that it has offsets of */
  uint32_t input_count;
  uint32_t output_count;
  uint32_t inputs;       /* offset of input_count times qdialect_tensor */
  uint32_t outputs;      /* offset of output_count times qdialect_tensor */
  uint32_t name;         /* offset of text, as of a tensor */
  uint32_t details;      /* offset of JSON for tools; its content may change in any release */
  uint32_t threads;
  uint32_t versions;
  uint32_t state_count;
  uint32_t states;       /* offset of state_count numbers, uint32_t: which of the outputs are states */
  uint64_t workspace_size;
}} qdialect_network;

static __inline const qdialect_tensor *qdialect_input(const qdialect_network *network, size_t index) {{
  return (const qdialect_tensor *)(const void *)((const char *)network + network->inputs) + index;
}}

static __inline const qdialect_tensor *qdialect_output(const qdialect_network *network, size_t index) {{
  return (const qdialect_tensor *)(const void *)((const char *)network + network->outputs) + index;
}}

static __inline const char *qdialect_name(const qdialect_network *network, const qdialect_tensor *tensor) {{
  return (const char *)network + tensor->name;
}}

static __inline const int64_t *qdialect_shape(const qdialect_network *network, const qdialect_tensor *tensor) {{
  return (const int64_t *)(const void *)((const char *)network + tensor->shape);
}}
#elif QDIALECT_ABI_VERSION != {version}
#error "all networks of a program must have the same QDIALECT_ABI_VERSION"
#endif
"""

_OWN = """\
/* The description of the network. */
const qdialect_network *{name}_network(void);

/* The number of bytes that {name}_run needs to work in, {macro}_WORKSPACE_SIZE{for_size}. */
size_t {name}_workspace_size({size_alone});

/* Computes outputs from inputs, both in the order above, each a dense row-major array that is aligned for its elements.
   The workspace has {name}_workspace_size() bytes at a multiple of QDIALECT_WORKSPACE_ALIGNMENT and may hold anything
   before and after. No output may overlap another array or the workspace. Nothing else is written and nothing is
   allocated: calls with different outputs and workspaces may run at the same time.{of_size}
   Returns QDIALECT_OK or a qdialect_error; after an error nothing was written. */
int {name}_run(const void *const *inputs, void *const *outputs, void *workspace{size});
"""

_ENTRIES = "/* Bytes of an array or, where its first extent is that of the batch, of an entry of it. */"
_ONE_SHAPE = {"for_size": "", "size_alone": "void", "of_size": ""}
_BATCH = {
    "for_size": " for every batch",
    "size_alone": "int64_t batch",
    "of_size": """
   Arrays have batch entries, one after the other; a size of 0 computes nothing.""",
}

_THREADS = """
/* The same on at most that many threads of the OpenMP runtime; {name}_run uses up to {threads}.
   A process that was forked must pass 1. */
int {name}_run_threads(const void *const *inputs, void *const *outputs, void *workspace{size}, int32_t threads);
"""

_STATES = """
/* Writes what the states hold before the first call into those entries of outputs; no other entry is read.
   Outputs that are states keep something from call to call: {name}_run reads and writes them. Calls with the same
   states come one after the other. Returns QDIALECT_OK, or QDIALECT_ERROR_NULL where the list or a state is null. */
int {name}_reset(void *const *outputs);
"""

_END = """
/* The index of the version that this CPU executes, in the order above, or -1 where it can execute none. */
int32_t {name}_version(void);

/* What a qdialect_error means, in English; the text is constant. */
const char *{name}_strerror(int error);
"""


def c_header(network: Network, generator: str, externals: Sequence[ExternalFunction] = ()) -> str:
    """The text of the header; `generator` is the program that writes it.

    `externals` are the functions of other libraries, one for each call.
    """
    name, macro = network.name, network.name.upper()
    ports = [*_described("input", network.inputs), *_described("output", network.outputs)]
    ports += [f"state: output {one.output}, which {name}_reset sets up" for one in network.states]
    versions = [
        f"     version {i}: {version.target}, which needs {_needs(version.features)}"
        for i, version in enumerate(network.versions)
    ]
    size = ", int64_t batch" if network.batch else ""
    own = _OWN.format(name=name, macro=macro, **(_BATCH if network.batch else _ONE_SHAPE), size=size)
    threads = _THREADS.format(name=name, threads=network.threads, size=size) if network.threads > 1 else ""
    return "\n".join(
        [
            f"/* Network {name}, written by {generator}.",
            *(f"     {line}" for line in ports),
            *versions,
            *(f"     {quoted(name)}: {quoted(text)}" for name, text in network.metadata.items()),
            "*/",
            f"#ifndef QDIALECT_NETWORK_{name}_H",
            f"#define QDIALECT_NETWORK_{name}_H",
            "",
            "#include <stddef.h>",
            "#include <stdint.h>",
            "",
            "#ifdef __cplusplus",
            'extern "C" {',
            "#endif",
            "",
            _shared(),
            f"#define {macro}_INPUT_COUNT {len(network.inputs)}",
            f"#define {macro}_OUTPUT_COUNT {len(network.outputs)}",
            *([_ENTRIES] if network.batch else []),
            *_sizes(f"{macro}_INPUT", network.inputs, network.steps[: len(network.inputs)]),
            *_sizes(f"{macro}_OUTPUT", network.outputs, network.steps[len(network.inputs) :]),
            f"#define {macro}_WORKSPACE_SIZE {network.workspace_bytes}u",
            "#ifndef QDIALECT_WORKSPACE_ALIGNMENT",
            f"#define QDIALECT_WORKSPACE_ALIGNMENT {ALIGNMENT}u",
            "#endif",
            "",
            own + threads + (_STATES.format(name=name) if network.states else "") + _END.format(name=name),
            *([network_text(name, externals)] if externals else []),
            "#ifdef __cplusplus",
            "}",
            "#endif",
            "",
            "#endif",
            "",
        ]
    )


def external_header() -> str:
    """The text of a header for libraries that compute ops of networks; it goes together with those of networks."""
    return "\n".join(
        [
            "/* What a library is told that computes ops of networks: qdialect_external. */",
            "#ifndef QDIALECT_EXTERNAL_H",
            "#define QDIALECT_EXTERNAL_H",
            "",
            "#include <stddef.h>",
            "#include <stdint.h>",
            "",
            _shared(),
            shared_text(),
            "#endif",
            "",
        ]
    )


def size_of(port: Port) -> int:
    """Bytes of an array."""
    return math.prod(port.shape) * port.dtype.itemsize


def _shared() -> str:
    return _SHARED.format(
        version=ABI_VERSION,
        dtypes=",\n".join(f"  QDIALECT_{dtype.upper()} = {i}" for i, dtype in enumerate(DTYPES, 1)),
        errors=",\n".join(
            f"  {'QDIALECT_OK' if error is Error.OK else f'QDIALECT_ERROR_{error.name}'} = {error.value}"
            for error in Error
        ),
        has_scale=HAS_SCALE,
        has_zero_point=HAS_ZERO_POINT,
    )


def _described(kind: str, ports: Sequence[Port]) -> list[str]:
    return [f"{kind} {i}: {quoted(port.name)}, {_type_of(port)}{_quantization(port)}" for i, port in enumerate(ports)]


def _type_of(port: Port) -> str:
    return f"{port.dtype.name}[{', '.join('batch' if extent < 0 else str(extent) for extent in port.shape)}]"


def _quantization(port: Port) -> str:
    scale = "" if port.scale is None else f", scale {port.scale!r}"
    return scale + ("" if port.zero_point is None else f", zero point {port.zero_point}")


def _needs(features: Sequence[str]) -> str:
    return f"a CPU with {', '.join(features)}" if features else "any x86-64 CPU"


def _sizes(prefix: str, ports: Sequence[Port], steps: Sequence[int]) -> list[str]:
    sizes = (step or size_of(port) for port, step in zip(ports, steps, strict=True))
    return [f"#define {prefix}_{i}_SIZE {size}u" for i, size in enumerate(sizes)]


# The C++ header of a compiled network: a class over the C interface.

_TYPES: Mapping[str, str] = {
    "bool": "bool",
    **{name: f"std::{name}_t" for name in ("int8", "uint8", "int16", "uint16", "int32", "int64")},
    "float32": "float",
    # Their bits.
    **dict.fromkeys(("float16", "bfloat16"), "std::uint16_t"),
}

_TEXT = """\
// Network {name} in C++20, written by {generator}. The C header {header} describes its arguments.
#ifndef QDIALECT_NETWORK_{name}_HPP
#define QDIALECT_NETWORK_{name}_HPP

#if __cplusplus < 201709L
#error "C++20 is needed, as -std=c++20 gives it"
#endif

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <span>
#include <stdexcept>
#include <string>

#include "{header}"

namespace qdialect {{

// A workspace of the network{and_states}.
// One object runs one call at a time; objects of their own run at the same time.
class {name}_network {{
 public:
  // Throws std::runtime_error where this CPU can execute none of the versions, and std::bad_alloc.
  {name}_network() : workspace_(allocate({name}_workspace_size({one}))) {{
    if ({name}_version() < 0) throw std::runtime_error({name}_strerror(QDIALECT_ERROR_CPU));{begin}
  }}
{reset}
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

  static std::unique_ptr<void, Free> allocate(std::size_t size) {{
    return std::unique_ptr<void, Free>(::operator new(size, alignment));
  }}

  static void check(const char *what, std::size_t found, std::size_t wanted) {{
    if (found == wanted) return;
    throw std::invalid_argument(std::string(what) + " must have " + std::to_string(wanted) + " elements, but got " +
                                std::to_string(found));
  }}

  std::unique_ptr<void, Free> workspace_;{members}
}};

}}  // namespace qdialect

#endif
"""


def cpp_header(network: Network, header: str, generator: str) -> str:
    """The text of the C++ header for the C header of that file name; `generator` is the program that writes it."""
    inputs = [(f"input{i}", port) for i, port in enumerate(network.inputs)]
    states = [one.output for one in network.states]
    outputs = [(f"output{i}", port) for i, port in enumerate(network.outputs) if i not in states]
    spans = [f"std::span<const {_TYPES[port.dtype.name]}> {name}" for name, port in inputs]
    spans += [f"std::span<{_TYPES[port.dtype.name]}> {name}" for name, port in outputs]
    has_batch = network.batch is not None
    # A network with a batch has no states.
    ports = zip([*inputs, *outputs], network.factors, strict=not states)
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
        outputs=_pointers(outputs) if not states else _with_states(network, states),
        reset=_RESET.format(name=network.name, outputs=_states_alone(network, states)) if states else "",
        begin="\n    reset();" if states else "",
        members="".join(f"\n  std::unique_ptr<void, Free> state{i}_ = {_allocated(network, i)};" for i in states),
        alignment=ALIGNMENT,
        and_states=" and its states" if states else "",
        of_size=" of so many entries" if has_batch else "",
        wanted="they have" if has_batch else "the network has",
        size=", batch" if has_batch else "",
        one="1" if has_batch else "",
    )


_RESET = """
  // Makes the states what they are before the first call.
  void reset() {{
    void *const outputs[] = {{{outputs}}};
    const int error = {name}_reset(outputs);
    if (error != QDIALECT_OK) throw std::runtime_error({name}_strerror(error));
  }}
"""


def _with_states(network: Network, states: Sequence[int]) -> str:
    names = (f"state{i}_.get()" if i in states else f"output{i}.data()" for i in range(len(network.outputs)))
    return ", ".join(names)


def _states_alone(network: Network, states: Sequence[int]) -> str:
    return ", ".join(f"state{i}_.get()" if i in states else "nullptr" for i in range(len(network.outputs)))


def _allocated(network: Network, state: int) -> str:
    return f"allocate({network.name.upper()}_OUTPUT_{state}_SIZE)"


def _elements(port: Port, factor: int) -> str:
    if not factor:
        return f"{math.prod(port.shape)}u"
    return f"static_cast<std::size_t>(batch) * {factor * math.prod(port.shape[1:])}u"


def _pointers(arrays: Sequence[tuple[str, Port]]) -> str:
    # C++ has no empty array.
    return ", ".join(f"{name}.data()" for name, _ in arrays) or "nullptr"
