"""Divides a .tflite model between this compiler and LiteRT, which gets its parts as .tflite models."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from flatbuffers import Builder

from qdialect.arithmetic.profiles import TFLITE, TFLITE_XNNPACK
from qdialect.dialect.type_constraints import NUMPY_DTYPES
from qdialect.frontends import frameworks
from qdialect.frontends.building import checks
from qdialect.frontends.building.extents import NO_DIMS, Dims, Extents
from qdialect.frontends.planning import partition
from qdialect.frontends.tflite.flatbuffer.model import Graph, Operator, Tensor
from qdialect.frontends.tflite.folding import fold_constants
from qdialect.frontends.tflite.importer import ELEMENTS, import_graph, read_model
from qdialect.frontends.tflite.operators import plan
from qdialect.frontends.tflite.operators.checks import EIGHT_BIT, activation_of, f32_bounds
from qdialect.frontends.tflite.operators.registry import keeps_state
from qdialect.ir._mlir import ir
from qdialect.support.diagnostics import ImportModelError

_BLOCK_STEP = 32
"""Blocks of int4 that XNNPACK's delegate takes are multiples of this; it refuses int2, for which others give zeros."""

_STATEFUL = "the network keeps a state between calls"


class TfliteDivision(partition.Division):
    """A model whose operators are judged one by one: every tensor of the file has a type and a shape."""

    framework = frameworks.LITERT.name

    def __init__(
        self, source: checks.Source, *, profile: str = "", signature: str = "", batch: int = 1, dims: Dims = NO_DIMS
    ) -> None:
        """Raises `ImportModelError` for a file that cannot be read."""
        whole, self.name = read_model(source, signature, Extents(batch, dims))
        self._content, _ = checks.content_of(source, self.name)
        # Unless a profile is asked for, all parts have the numbers of LiteRT's default run.
        self._profile = profile or TFLITE_XNNPACK.name
        self._graph = self._folded(whole)
        self._constant_in_file = {tensor.index for tensor in whole.tensors if tensor.data is not None}
        counts = Counter(tensor.name for tensor in self._graph.tensors)
        # Names of tensors need not differ.
        self._names = [
            tensor.name if counts[tensor.name] == 1 else f"{tensor.name}#{tensor.index}"
            for tensor in self._graph.tensors
        ]
        self._tensors = dict(zip(self._names, self._graph.tensors, strict=True))
        given = {tensor.index for operator in self._graph.operators for tensor in operator.outputs}
        self._computed = given | {tensor.index for tensor in self._graph.inputs}
        # A state and what sets it up, reads and writes it are one.
        kinds = {operator.kind for operator in self._graph.operators}
        reason = _STATEFUL * any(map(keeps_state, kinds))
        # Tables are filled once and for all.
        self.hides_state = not kinds.isdisjoint(("ASSIGN_VARIABLE", "READ_VARIABLE", "VAR_HANDLE"))
        self.nodes = partition.with_copies(self._partition_node(one, reason) for one in self._graph.operators)
        self.inputs = [self._open(tensor) for tensor in self._graph.inputs]
        self.outputs = [self._open(tensor) for tensor in self._graph.outputs]
        known = [tensor for tensor in self._graph.outputs if tensor.data is not None]
        self.constants = {self._names[tensor.index]: tensor.data for tensor in known if tensor.data is not None}

    def _folded(self, whole: Graph) -> Graph:
        """Nodes that stand for trips of a loop are in no part that LiteRT runs: either all is ours or loops stay."""
        graph = fold_constants(whole)
        if not whole.others:
            return graph
        try:
            import_graph(graph, self.name, self._profile)
        except ImportModelError:
            return fold_constants(whole, unrolls=False)
        return replace(graph, budget=checks.Budget(whole.budget.maximum))

    def module(self, part: partition.Part) -> ir.Module:
        operators = tuple(self._fresh(self._graph.operators[index]) for index in part.nodes)
        inputs, outputs = (tuple(self._tensors[name] for name in names) for names in (part.inputs, part.outputs))
        reasons: dict[str, str] = {}
        for tensor in (*inputs, *outputs):
            name = self._names[tensor.index]
            unsupported = checks.unsupported_interfaces(
                "", [checks.Interface(name, tensor.shape, tensor.element)], ELEMENTS
            )
            reasons.update(dict.fromkeys([name] * len(unsupported), "".join(unsupported[:1]).partition(": ")[2]))
        if reasons:
            raise partition.PartRefusedError(partition.refused_nodes(part, self.nodes, {}, reasons))
        graph = Graph(self._graph.tensors, operators, inputs, outputs, self._budget())
        try:
            return import_graph(graph, self.name, self._profile)
        except ImportModelError as error:
            blamed = {index for index in part.nodes if f"{self.nodes[index].title}: " in str(error)}
            if not blamed:
                raise
            raise partition.PartRefusedError(dict.fromkeys(blamed, error.message)) from error

    def runner(self, part: partition.Part, threads: int) -> partition.Runner:
        operators = [self._graph.operators[index] for index in part.nodes]
        read = [tensor for operator in operators for tensor in operator.inputs if tensor is not None]
        folded = {t.index: t.data for t in read if t.data is not None and t.index not in self._constant_in_file}
        inputs, outputs = ([self._tensors[name].index for name in names] for names in (part.inputs, part.outputs))
        shapes = {self._tensors[name].index: self._tensors[name].shape for name in part.inputs}
        numbers = [operator.index for operator in operators]
        content = extract(self._content, numbers, inputs, outputs, folded, shapes, self._graph.subgraph)
        for operator in operators:
            reason = _death(operator)
            if reason:
                raise ImportModelError(f"{operator.title}: {reason}")
        divided = [operator for operator in operators if any(t is not None and t.block for t in operator.inputs)]
        for operator in divided:
            self._check_blocks(operator)
        return frameworks.load_litert(
            content, threads, is_reference=self._profile == TFLITE.name, needs_delegate=bool(divided)
        )

    def _check_blocks(self, operator: Operator) -> None:
        """LiteRT's own kernels take no notice of scales by block; raises `ImportModelError` where they would run."""
        weight = next(tensor for tensor in operator.inputs if tensor is not None and tensor.block)
        held = f"'{weight.name}' has a scale for each {weight.block} elements, which only XNNPACK's delegate reads"
        is_read = self._profile != TFLITE.name and operator.kind == "FULLY_CONNECTED"
        try:
            f32_bounds(activation_of(operator))
        except (checks.UnsupportedError, ImportModelError):
            is_read = False
        if not is_read or weight.element != "blockwise int4" or weight.block % _BLOCK_STEP:
            wanted = f"profile '{TFLITE_XNNPACK.name}' for FULLY_CONNECTED of int4 in blocks of {_BLOCK_STEP}, 64 ..."
            raise ImportModelError(f"{operator.title}: {held}: with {wanted}, at most a clamp fused")

    def _budget(self) -> checks.Budget:
        return checks.Budget(self._graph.budget.maximum)

    def _fresh(self, operator: Operator) -> Operator:
        """`operator` with all of the budget: a part that is refused has spent some of it."""
        return replace(operator, budget=self._budget())

    def _partition_node(self, operator: Operator, reason: str) -> partition.PartitionNode:
        # A tensor that nothing gives is a constant, or what an operator keeps from call to call.
        read = (t for t in operator.inputs if t is not None and t.data is None and t.index in self._computed)
        reason = self._reason(operator) or reason
        return partition.PartitionNode(
            operator.title,
            tuple(dict.fromkeys(self._names[tensor.index] for tensor in read)),
            tuple(self._names[tensor.index] for tensor in operator.outputs),
            products(operator),
            sum(math.prod(tensor.shape) for tensor in operator.outputs),
            reason,
            is_narrow=all(tensor.element != "f32" for tensor in operator.outputs),
            is_kept=not reason and bool(_death(operator)),
        )

    def _reason(self, operator: Operator) -> str:
        try:
            with checks.converting():
                plan(self._fresh(operator), is_delegated=self._profile == TFLITE_XNNPACK.name)
        except checks.UnsupportedError as error:
            return str(error)
        return ""

    def _open(self, tensor: Tensor) -> partition.OpenInterface:
        dtype = NUMPY_DTYPES[tensor.element].name if tensor.element in NUMPY_DTYPES else tensor.element
        scale, zero_point = (tensor.scale, tensor.zero_point) if len(tensor.scales) == 1 else (None, None)
        return partition.OpenInterface(self._names[tensor.index], tensor.shape, dtype, scale, zero_point)


_NEEDS_SCALES = (
    *("ADD", "SUB", "SQUARED_DIFFERENCE", "EQUAL", "NOT_EQUAL", "GREATER", "GREATER_EQUAL", "LESS", "LESS_EQUAL"),
    *("LOG", "SOFTMAX", "SQRT"),
)


def _death(operator: Operator) -> str:
    """Why LiteRT would write or read outside of its memory; empty where it would not."""
    elements = [tensor.element for tensor in operator.inputs[:3] if tensor is not None]
    if operator.kind == "SVDF" and elements[:1] == ["f32"] and elements[2:] == ["i8"]:
        return "LiteRT writes outside of its memory for float32 data with i8 time weights"
    narrow = (tensor for tensor in operator.inputs if tensor is not None and tensor.element in (*EIGHT_BIT, "i16"))
    if operator.kind in _NEEDS_SCALES and any(not tensor.scales for tensor in narrow):
        return "LiteRT reads outside of its memory where an input of few bits is not quantized"
    return ""


# How many products an operator sums up, from the shapes of its tensors.

_RECURRENT = ("UNIDIRECTIONAL_SEQUENCE_LSTM", "BIDIRECTIONAL_SEQUENCE_LSTM", "UNIDIRECTIONAL_SEQUENCE_RNN")


def products(operator: Operator) -> int:
    """Of one call, 0 for an operator that sums up none."""
    shapes = [() if tensor is None else tensor.shape for tensor in operator.inputs]
    elements = sum(math.prod(tensor.shape) for tensor in operator.outputs)
    if operator.kind in _RECURRENT:
        return _of_sequence(operator)
    if len(shapes) < 2 or not all(shapes[:2]):
        return 0
    match operator.kind:
        case "CONV_2D" | "CONV_3D":
            return elements * math.prod(shapes[1][1:])
        case "DEPTHWISE_CONV_2D":
            return elements * math.prod(shapes[1][1:3])
        case "FULLY_CONNECTED" | "BATCH_MATMUL":
            summed = shapes[0 if operator.kind == "BATCH_MATMUL" else 1]
            return elements * summed[len(summed) - 1]
        case "TRANSPOSE_CONV" if len(shapes) > 2:
            # The weights' last dimension is that of the input, whose elements meet all the others.
            return math.prod(shapes[2]) * math.prod(shapes[1][:-1])
        case _:
            return 0


def _of_sequence(operator: Operator) -> int:
    """Every step of every sequence meets all weights, the constants of two dimensions."""
    held = (tensor for tensor in operator.inputs if tensor is not None and tensor.data is not None)
    weights = sum(math.prod(tensor.shape) for tensor in held if len(tensor.shape) == 2)
    first = operator.inputs[0]
    return math.prod(first.shape[:2]) * weights if first is not None else 0


# Parts of a .tflite model written back as flatbuffers, for LiteRT to run.

_FILE_IDENTIFIER = b"TFL3"


def extract(
    content: bytes,
    operators: Sequence[int],
    inputs: Sequence[int],
    outputs: Sequence[int],
    constants: Mapping[int, checks.Array],
    shapes: Mapping[int, Sequence[int]],
    subgraph_index: int = 0,
) -> bytes:
    """The model of `operators` of a subgraph, all by their numbers in the file.

    Tensors keep their numbers, and operators their options, versions and custom names.  `constants` are tensors that
    other operators compute in the file, `shapes` those of `inputs`, which the file may leave open.  Raises
    `ImportModelError` where the schema cannot read the file.
    """
    schema = frameworks.litert_schema()
    try:
        model = schema.ModelT.InitFromObj(schema.Model.GetRootAs(content, 0))
    # On a damaged file accessors raise whatever the broken bytes lead to.
    except Exception as error:
        raise ImportModelError(f"file is damaged: {type(error).__name__}") from error
    _take_in(model, content)
    # The first is what an interpreter runs; the others stay where operators such as WHILE find them.
    subgraph: Any = model.subgraphs[subgraph_index]
    model.subgraphs[0] = subgraph
    subgraph.operators = [subgraph.operators[index] for index in operators]
    subgraph.inputs, subgraph.outputs = list(inputs), list(outputs)
    _add_biases(schema, model, subgraph)
    # Both name tensors of the whole.
    model.signatureDefs, model.metadata = [], []
    fields = ("inputs", "outputs", "intermediates")
    lists = (getattr(operator, name) for operator in subgraph.operators for name in fields)
    read = {int(index) for held in lists if held is not None for index in held}
    _drop_unread(schema, model, {*inputs, *outputs, *read})
    for index, shape in shapes.items():
        subgraph.tensors[index].shape = list(shape)
    for index, array in constants.items():
        buffer = schema.BufferT()
        buffer.data = memoryview(array.tobytes())
        subgraph.tensors[index].buffer = len(model.buffers)
        subgraph.tensors[index].shape = list(array.shape)
        model.buffers.append(buffer)
    builder = Builder(len(content))
    builder.Finish(model.Pack(builder), _FILE_IDENTIFIER)
    return bytes(builder.Output())


def _take_in(model: Any, content: bytes) -> None:
    """Buffers and options that lie behind the tables become parts of these, where a shorter file has them."""
    for buffer in model.buffers:
        if buffer.offset > 1 or buffer.size > 1:
            buffer.data = memoryview(content)[buffer.offset : buffer.offset + buffer.size]
            buffer.offset = buffer.size = 0
    for operator in (operator for subgraph in model.subgraphs for operator in subgraph.operators or ()):
        begin, size = operator.largeCustomOptionsOffset, operator.largeCustomOptionsSize
        if begin > 1 or size > 1:
            operator.customOptions = list(content[begin : begin + size])
            operator.largeCustomOptionsOffset = operator.largeCustomOptionsSize = 0


def _add_biases(schema: Any, model: Any, subgraph: Any) -> None:
    """Biases of zero, where LiteRT's kernel of f32 data and 8-bit weights reads one that is left out."""
    for operator in subgraph.operators:
        code = model.operatorCodes[operator.opcodeIndex]
        kind = max(code.builtinCode, code.deprecatedBuiltinCode)
        inputs = [int(index) for index in operator.inputs]
        if kind != schema.BuiltinOperator.DEPTHWISE_CONV_2D or (len(inputs) > 2 and inputs[2] != -1):
            continue
        weight = subgraph.tensors[inputs[1]]
        if subgraph.tensors[inputs[0]].type == schema.TensorType.FLOAT32 != weight.type:
            bias, buffer, channels = schema.TensorT(), schema.BufferT(), int(weight.shape[-1])
            bias.name, bias.shape, bias.type = b"zero", [channels], schema.TensorType.FLOAT32
            buffer.data = memoryview(bytes(4 * channels))
            bias.buffer = len(model.buffers)
            model.buffers.append(buffer)
            operator.inputs = [*inputs[:2], len(subgraph.tensors)]
            subgraph.tensors.append(bias)


def _drop_unread(schema: Any, model: Any, read: set[int]) -> None:
    """Empty the buffers that no tensor of the part has; what runs the other subgraphs may be in it."""
    part, *others = model.subgraphs
    held = [part.tensors[index] for index in read if index >= 0]
    # Scales of blocks lie in tensors that no operator names.
    details = [tensor.quantization.details for tensor in held if tensor.quantization is not None]
    named = {getattr(one, name, -1) for one in details for name in ("scales", "zeroPoints")}
    kept = {tensor.buffer for tensor in [*held, *(part.tensors[index] for index in named if index >= 0)]}
    kept |= {tensor.buffer for other in others if other is not part for tensor in other.tensors}
    model.buffers = [buffer if index in kept else schema.BufferT() for index, buffer in enumerate(model.buffers)]
