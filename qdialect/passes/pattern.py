"""Rewrite patterns of graphs and of kernels, and what they add to MLIR's greedy driver, which applies them.

That driver does not report why a pattern failed to match.  Here a pattern first *checks*, which is a pure function: it
returns a match, raises `MatchFailure` with its reason, or returns None where the op is not a candidate.  Only then does
it *rewrite*, which cannot fail.  `explain_matches` collects the reasons.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, ClassVar, Generic, ParamSpec, TypeVar, cast

import numpy as np

from qdialect.arithmetic import QuantParams, same_scale
from qdialect.dialect import AnyContraction, ConvTranspose2DOp, MatMulOp, PadOp, ResizeBilinearOp, build
from qdialect.dialect.constants import CONSTANT_OPS, constant_value
from qdialect.dialect.movement_ops import SameElementOp
from qdialect.dialect.op_base import Qnn, QnnOp
from qdialect.dialect.type_constraints import NUMPY_DTYPES, element_of
from qdialect.ir._mlir import ir, ops_in, rewrite
from qdialect.ir.context import joined, location_of, names_of
from qdialect.passes.registry import Pass
from qdialect.support.diagnostics import Diagnostic, PassError, Severity
from qdialect.support.late_imports import UNINTERRUPTED

M = TypeVar("M")
T = TypeVar("T")
P = ParamSpec("P")

# After this many rewrites per op of the module, patterns are assumed not to terminate.
_REWRITES_PER_OP = 50
_PURE_DIALECTS = ("qnn", "arith", "math", "tensor")


class MatchFailure(Exception):
    """A candidate that a pattern does not rewrite, with the reason that users see."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


def require(condition: bool, reason: str) -> None:
    """Raise `MatchFailure` with `reason` unless `condition` holds."""
    if not condition:
        raise MatchFailure(reason)


def refuse(reason: str | None) -> None:
    """Raise `MatchFailure` with `reason` if there is one."""
    if reason:
        raise MatchFailure(reason)


def attempted(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T | MatchFailure:
    """The result of `function`, or the match failure that it raises."""
    try:
        return function(*args, **kwargs)
    except MatchFailure as failure:
        # Its frames would keep ops alive that are erased.
        return failure.with_traceback(None)


class Rewriter:
    """The changes that a pattern's `rewrite` may make to the module.

    An op is erased when `rewrite` has returned, so it stays readable until then; so do the producers that lose their
    last use with it.  The op that replaces them gets the fused location of all of them.
    """

    def __init__(self, driver: rewrite.PatternRewriter) -> None:
        self.driver = driver
        """MLIR's own, which erases an op at once."""
        self._pending_erase: list[ir.Operation] = []
        self._successors: list[ir.Value] = []

    @contextmanager
    def before(self, op: ir.OpView) -> Generator[None]:
        """Create ops in front of `op`, with its location."""
        with ir.InsertionPoint(op), op.location:
            yield

    def replace(self, op: ir.OpView, value: ir.Value) -> None:
        """Replace all uses of the one result of `op` by `value`, and erase `op`.

        Discardable attributes of `op` (those with a dialect prefix) are kept on the op that computes `value`.
        """
        for name, attribute in op.attributes.items():
            if "." in name and not isinstance(value.owner, ir.Block) and name not in value.owner.attributes:
                value.owner.attributes[name] = attribute
        op.results[0].replace_all_uses_with(value)
        self._successors.append(value)
        self.erase(op)

    def erase(self, op: ir.OpView) -> None:
        """Erase `op`, wherever it is; only ops that are erased by the same rewrite may use its results."""
        self._pending_erase.append(op.operation)

    def flush(self) -> None:
        """Erase what is due; raises `PassError`, and erases nothing, where an op that stays uses a result of it."""
        uses = [(one, use.owner) for one in self._pending_erase for result in one.results for use in result.uses]
        for operation, user in uses:
            if not _is_inside(user.operation, self._pending_erase):
                message = f"'{operation.name}' op must not be erased while '{user.name}' op uses its result"
                raise error_at(operation, message)
        # The operations of a region go with the one that has it.
        pending = [one for one in dict.fromkeys(self._pending_erase) if not _is_inside(one.parent, self._pending_erase)]
        self._pending_erase = []
        locations: list[ir.Location] = []
        while pending:
            # Users before what they use.
            operation = next(one for one in pending if not _is_used(one))
            pending.remove(operation)
            producers = [value.owner.operation for value in operation.operands if not isinstance(value.owner, ir.Block)]
            if operation.name not in CONSTANT_OPS:
                locations.append(operation.location)
            self.driver.erase_op(operation.opview)
            unread = [one for one in dict.fromkeys(producers) if one not in pending and not _is_used(one)]
            pending += [one for one in unread if one.name.split(".")[0] in _PURE_DIALECTS]
        for owner in (value.owner for value in self._successors):
            if not isinstance(owner, ir.Block):
                owner.operation.location = joined([owner.operation.location, *locations])


class Pattern(ABC, Generic[M]):
    """A rewrite with one op as its root; one that lacks a method, or misspells it, cannot be instantiated.

    `check` must not change anything; `rewrite` gets what `check` returned and must not fail.
    """

    name: ClassVar[str]
    """In remarks and statistics; that of a class ``MergeClips`` is ``merge-clips`` unless it has another one."""
    roots: ClassVar[tuple[str | type[QnnOp], ...]]
    """Names of ops, and classes, which stand for all their ops: those of plugins too."""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if "name" not in vars(cls):
            cls.name = re.sub("(?<!^)(?=[A-Z])", "-", cls.__name__).lower()

    @abstractmethod
    def check(self, op: Any) -> M | None:
        """The match at the root `op`, None where it is no candidate; raises `MatchFailure` where it is left alone."""

    def match(self, op: ir.OpView) -> M | MatchFailure | None:
        """The match of `check`, or its failure; subclasses may add conditions."""
        return attempted(self.check, op)

    @abstractmethod
    def rewrite(self, op: Any, match: M, rewriter: Rewriter) -> None:
        """Rewrite at the root `op`."""


class Replacement(Pattern[M]):
    """A pattern whose rewrite is a value in place of the one result of its root."""

    @abstractmethod
    def emit(self, op: Any, match: M) -> ir.Value:
        """The value, by ops in front of `op` and with its location."""

    def rewrite(self, op: Any, match: M, rewriter: Rewriter) -> None:
        with rewriter.before(op):
            value = self.emit(op, match)
        rewriter.replace(op, value)


class PatternPass(Pass):
    """A pass that applies patterns until none of them matches::

    @qdialect.register_pass
    class MergeClipsPass(qdialect.PatternPass):
        name: ClassVar[str] = "merge-clips"

        rewrites = (MergeClips,)
    """

    rewrites: ClassVar[tuple[type[Pattern[Any]], ...]]
    """The classes of its patterns; a subclass whose patterns depend on its options has `patterns` instead."""

    def patterns(self) -> Sequence[Pattern[Any]]:
        """New patterns, for they may note what they have seen; where several match one op the first wins."""
        return tuple(pattern() for pattern in self.rewrites)

    def run(self, module: ir.Module) -> None:
        with module.context:
            apply_patterns(module, self.patterns())


class GraphPass(PatternPass):
    """Patterns that build no ops but those of `qnn` and of the dialects that every graph has."""

    dependent_dialects = ()


_rewrites: ContextVar[Counter[str] | None] = ContextVar("rewrites", default=None)


@contextmanager
def counted_rewrites() -> Generator[Counter[str]]:
    """How often each pattern rewrites an op, by its name, in the passes that run inside."""
    counts = Counter[str]()
    token = _rewrites.set(counts)
    try:
        yield counts
    finally:
        _rewrites.reset(token)


_explanations: ContextVar[list[Diagnostic] | None] = ContextVar("explanations", default=None)


@contextmanager
def explain_matches() -> Generator[list[Diagnostic]]:
    """Collect a remark for every match failure of the passes that run inside, each once, in the order of the passes::

    with qdialect.explain_matches() as remarks:
        qdialect.PassManager("fuse-qnn").run(module)
    print(*remarks, sep="\n")
    """
    remarks: list[Diagnostic] = []
    token = _explanations.set(remarks)
    try:
        yield remarks
    finally:
        _explanations.reset(token)


def is_explained() -> bool:
    """Whether `explain_matches` collects the reasons of match failures."""
    return _explanations.get() is not None


def explain(name: str, op: ir.Operation, failure: MatchFailure) -> None:
    """Add a remark that the pattern `name` left `op` alone, for those who collect them."""
    recorded = _explanations.get()
    file, line, column = location_of(op.location)
    names = names_of(op.location)
    node = f" at node '{', '.join(names)}'" if names and not file else ""
    remark = Diagnostic(Severity.REMARK, f"[{name}] '{op.name}'{node} {failure.reason}", file, line, column)
    if recorded is not None and remark not in recorded:
        recorded.append(remark)


def apply_patterns(module: ir.Module, patterns: Sequence[Pattern[Any]]) -> int:
    """Apply `patterns` to every op of `module` until none matches; returns the number of rewrites.

    Ops are visited in program order, round after round.  Dead ops are erased.  Raises `PassError` if the patterns do
    not terminate.
    """
    # Dead ops must not count as users.
    apply_greedily(module.operation, (), 0, folds=False)
    count = len(ops_in(module.operation)) if patterns else 0
    total = apply_greedily(module.operation, patterns, count, folds=False) if patterns else 0
    explain_left(module, patterns)
    return total


def apply_greedily(root: ir.Operation, patterns: Sequence[Pattern[Any]], count: int, *, folds: bool) -> int:
    """Apply `patterns` to the ops inside of `root` by MLIR's driver, and fold its ops with `folds`; how often.

    Of several patterns that match one op the first wins.  Raises what a pattern raises, and `PassError` where no end is
    in sight for so many ops as `count`.
    """
    budget = _REWRITES_PER_OP * (1 + count)
    total = 0
    failures: list[BaseException] = []

    def apply(op: ir.OpView, driver: rewrite.PatternRewriter) -> bool | None:
        """Truthy where `op` is left alone, as the bindings want it; exceptions must not pass through MLIR."""
        nonlocal total
        try:
            if failures or not _apply_first(op, by_root[op.operation.name], driver):
                return True
            total += 1
            if total > budget:
                names = ", ".join(pattern.name for pattern in patterns)
                raise PassError(f"patterns [{names}] must reach an end, but {total} rewrites did not")
        except BaseException as error:
            failures.append(error)
        return None

    by_root: dict[str, list[Pattern[Any]]] = {}
    for pattern in patterns:
        for name in dict.fromkeys(name for root in pattern.roots for name in names_of_root(root)):
            by_root.setdefault(name, []).append(pattern)
    found = rewrite.RewritePatternSet(root.context)
    for name in by_root:
        found.add(name, apply, 1)
    with UNINTERRUPTED:
        rewrite.apply_patterns_and_fold_greedily(root.opview, found.freeze(), _configuration(folds=folds))
    if failures:
        raise failures[0]
    return total


def reasons(op: ir.Operation, patterns: Sequence[Pattern[Any]]) -> Iterator[tuple[str, MatchFailure]]:
    """The name of each of `patterns` that leaves the candidate `op` alone, and why."""
    for pattern in patterns:
        is_root = any(op.name == one if isinstance(one, str) else isinstance(op.opview, one) for one in pattern.roots)
        found = pattern.match(op.opview) if is_root else None
        if isinstance(found, MatchFailure):
            yield pattern.name, found


def explain_left(module: ir.Module, patterns: Sequence[Pattern[Any]]) -> None:
    """Add a remark for every op of `module` that a pattern leaves alone, for those who collect them."""
    for operation in ops_in(module.operation) if is_explained() else ():
        for name, failure in reasons(operation, patterns):
            explain(name, operation, failure)


def names_of_root(root: str | type[QnnOp]) -> Sequence[str]:
    """The names of the ops that are a root."""
    if isinstance(root, str):
        return (root,)
    return [op.OPERATION_NAME for op in cast("list[type[QnnOp]]", Qnn.operations) if issubclass(op, root)]


def _configuration(*, folds: bool) -> rewrite.GreedyRewriteConfig:
    """How patterns are applied: until none matches, without simplifying blocks, which costs as much every time."""
    config = rewrite.GreedyRewriteConfig()
    config.region_simplification_level = rewrite.GreedySimplifyRegionLevel.DISABLED
    config.enable_folding = config.enable_constant_cse = folds
    config.use_top_down_traversal = not folds
    config.max_iterations = -1
    return config


def _apply_first(op: ir.OpView, patterns: Sequence[Pattern[Any]], driver: rewrite.PatternRewriter) -> bool:
    """Rewrite with the first pattern that matches; returns whether one did."""
    for pattern in patterns:
        match = pattern.match(op)
        if match is not None and not isinstance(match, MatchFailure):
            rewriter = Rewriter(driver)
            pattern.rewrite(op, match, rewriter)
            rewriter.flush()
            counts = _rewrites.get()
            if counts is not None:
                counts[pattern.name] += 1
            return True
    return False


def _is_inside(operation: ir.Operation | ir.OpView | None, ancestors: Sequence[ir.Operation]) -> bool:
    """Whether `operation` is one of `ancestors`, or in a region of one."""
    current = operation
    while current is not None and current.operation not in ancestors:
        current = current.operation.parent
    return current is not None


def error_at(operation: ir.Operation, message: str) -> PassError:
    """The error of a pass at `operation`."""
    return PassError(message, (Diagnostic(Severity.ERROR, message, *location_of(operation.location)),))


def _is_used(operation: ir.Operation) -> bool:
    return any(next(iter(result.uses), None) for result in operation.results)


# What patterns ask of the ops around their root, and changed copies of ops.

Op = TypeVar("Op", bound=QnnOp)


def producer(value: ir.Value) -> ir.OpView | None:
    """The op whose result `value` is; None for a block argument."""
    owner = value.owner
    return owner if isinstance(owner, ir.OpView) else None


def produced_by(value: ir.Value, op_class: type[Op]) -> Op | None:
    """The op whose result `value` is, where it is of `op_class`."""
    owner = value.owner
    return owner if isinstance(owner, op_class) else None


def users(value: ir.Value) -> list[ir.OpView]:
    """The ops that use `value`, once for each use."""
    return [use.owner for use in value.uses]


EXTEND = "arith.extf"
_CHOOSING = ("arith.maximumf", "arith.minimumf", "arith.negf", "arith.select", "math.absf", "tensor.concat")
"""Ops whose results are numbers of their operands, but for signs."""
_MAX_DEPTH = 8


def is_exact(value: ir.Value, element: str, depth: int = _MAX_DEPTH) -> bool:
    """Whether the f32 numbers of `value` are all of the type `element` already."""
    array = constant_value(value)
    if array is not None:
        with np.errstate(over="ignore"):
            rounded = array.astype(NUMPY_DTYPES[element]).astype(np.float32)
        return np.array_equal(array.view(np.int32), rounded.view(np.int32))
    op = producer(value)
    if op is None or depth == 0:
        return False
    name, operands = op.operation.name, list(op.operation.operands)
    if name == EXTEND:
        return element_of(operands[0].type) == element
    if isinstance(op, PadOp):
        return op.value == 0 and is_exact(op.input, element, depth - 1)
    if isinstance(op, SameElementOp) and not isinstance(op, ResizeBilinearOp):
        return is_exact(op.input, element, depth - 1)
    if name not in _CHOOSING:
        return False
    return all(is_exact(one, element, depth - 1) for one in operands[name == "arith.select" :])


def second_use(value: ir.Value) -> str | None:
    """Why `value` cannot be taken away from its one user, or None where it has one use."""
    count, op = len(users(value)), producer(value)
    name = "the function" if op is None else op.operation.name
    return None if count == 1 else f"needs the result of '{name}' alone, but it has {count} uses"


def differences(**pairs: tuple[Any, Any]) -> str | None:
    """The first pair (expected, found) whose sides differ, as a reason; None where all agree."""
    for name, (wanted, found) in pairs.items():
        if wanted != found:
            return f"{name} must be {_text(wanted)}, but got {_text(found)}"
    return None


Scales = float | tuple[float, ...]


def scale_difference(name: str, wanted: Scales, found: Scales) -> str | None:
    """As `differences` for one attribute of scales; those that are the same float32 numbers agree."""
    return None if same_scale(wanted, found) else differences(**{name: (wanted, found)})


def quantization_difference(name: str, wanted: QuantParams, found: QuantParams) -> str | None:
    """How `found`, the attributes ``<name>_scale`` and ``<name>_zero_point``, differs from `wanted`, as a reason."""
    reason = scale_difference(f"{name}_scale", wanted.scale, found.scale)
    return reason or differences(**{f"{name}_zero_point": (wanted.zero_point, found.zero_point)})


def same_quantization(first: QuantParams, second: QuantParams) -> bool:
    """Whether quantized values at either stand for the same float32 numbers."""
    return same_scale(first.scale, second.scale) and first.zero_point == second.zero_point


def not_constant(contraction: AnyContraction, *, is_fused: bool = False) -> str | None:
    """Which operand that must be constant is not, as a reason: the bias, the weight but that of a `qnn.matmul`.

    In a fused op, the weight must be so of a `qnn.conv_transpose2d` alone.
    """
    is_any = not isinstance(contraction, ConvTranspose2DOp) if is_fused else isinstance(contraction, MatMulOp)
    for name in ("bias",) if is_any else ("weight", "bias"):
        value = getattr(contraction, name)
        if value is not None and constant_value(value) is None:
            return f"needs a constant {name}"
    return None


def rebuilt(op: Op, *operands: ir.Value | None, element: str | None = None, **changes: Any) -> Op:
    """A copy of `op` at the insertion point with other operands and some attributes changed.

    Without `operands` it keeps its own; `element` is the element type of the result where it changes.
    """
    values = operands or tuple(op.operation.operands)
    kept = element or element_of(op.operation.results[0].type)
    return build(type(op), *values, element=kept, **{**op.attribute_values(), **changes})


def _text(value: Any) -> str:
    return str(list(cast("tuple[object, ...]", value))) if isinstance(value, tuple) else str(value)
