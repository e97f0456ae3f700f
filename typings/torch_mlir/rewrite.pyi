"""What of `torch_mlir.rewrite` the project uses."""

import enum
from collections.abc import Callable, Sequence
from typing import Any, overload

from torch_mlir.ir import Context, InsertionPoint, Module, Operation, OpView, Region, Type, Value

class GreedyRewriteStrictness(enum.Enum):
    ANY_OP = 0
    EXISTING_AND_NEW_OPS = 1
    EXISTING_OPS = 2

class GreedySimplifyRegionLevel(enum.Enum):
    DISABLED = 0
    NORMAL = 1
    AGGRESSIVE = 2

class DialectConversionFoldingMode(enum.Enum):
    NEVER = 0
    BEFORE_PATTERNS = 1
    AFTER_PATTERNS = 2

class PatternRewriter:
    @property
    def ip(self) -> InsertionPoint: ...
    @overload
    def replace_op(self, op: Operation | OpView, new_op: Operation | OpView) -> None: ...
    @overload
    def replace_op(self, op: Operation | OpView, values: Sequence[Value]) -> None: ...
    def erase_op(self, op: Operation | OpView) -> None: ...

class RewritePatternSet:
    def __init__(self, context: Context | None = None) -> None: ...
    # A truthy answer of `fn` is a match failure.
    def add(self, root: str | type[OpView], fn: Callable[[Any, PatternRewriter], object], benefit: int = 1) -> None: ...
    def add_conversion(
        self,
        root: str | type[OpView],
        fn: Callable[[Any, Any, TypeConverter, ConversionPatternRewriter], object],
        type_converter: TypeConverter,
        benefit: int = 1,
    ) -> None: ...
    def freeze(self) -> FrozenRewritePatternSet: ...

class FrozenRewritePatternSet: ...

class ConversionPatternRewriter(PatternRewriter):
    def convert_region_types(self, region: Region, converter: TypeConverter, /) -> None: ...

class ConversionTarget:
    def __init__(self, context: Context | None = None) -> None: ...
    def add_legal_op(self, *ops: str | type[OpView]) -> None: ...
    def add_illegal_op(self, *ops: str | type[OpView]) -> None: ...
    def add_legal_dialect(self, *dialects: str | type) -> None: ...
    def add_illegal_dialect(self, *dialects: str | type) -> None: ...

class TypeConverter:
    def __init__(self) -> None: ...
    # The binding does not keep `convert` alive: the caller must.
    def add_conversion(self, convert: Callable[[Type], Type | None]) -> None: ...
    def convert_type(self, type: Type) -> Type | None: ...

class GreedyRewriteConfig:
    max_iterations: int
    max_num_rewrites: int
    use_top_down_traversal: bool
    enable_folding: bool
    strictness: GreedyRewriteStrictness
    region_simplification_level: GreedySimplifyRegionLevel
    enable_constant_cse: bool
    def __init__(self) -> None: ...

class ConversionConfig:
    folding_mode: DialectConversionFoldingMode
    build_materializations: bool
    def __init__(self) -> None: ...

@overload
def apply_patterns_and_fold_greedily(
    module: Module, set: FrozenRewritePatternSet, config: GreedyRewriteConfig | None = None
) -> None: ...
@overload
def apply_patterns_and_fold_greedily(
    op: Operation | OpView, set: FrozenRewritePatternSet, config: GreedyRewriteConfig | None = None
) -> None: ...
def walk_and_apply_patterns(op: Operation | OpView, set: FrozenRewritePatternSet) -> None: ...
def apply_partial_conversion(
    op: Operation | OpView,
    target: ConversionTarget,
    set: FrozenRewritePatternSet,
    config: ConversionConfig | None = None,
) -> None: ...
def apply_full_conversion(
    op: Operation | OpView,
    target: ConversionTarget,
    set: FrozenRewritePatternSet,
    config: ConversionConfig | None = None,
) -> None: ...
