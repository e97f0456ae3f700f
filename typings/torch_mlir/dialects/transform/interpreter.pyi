"""Runs transform scripts."""

from torch_mlir.ir import Module, Operation, OpView

class TransformOptions:
    expensive_checks: bool
    enforce_single_top_level_transform_op: bool
    def __init__(self) -> None: ...

def apply_named_sequence(
    payload_root: Operation | OpView | Module,
    transform_root: Operation | OpView,
    transform_module: Operation | OpView | Module,
    transform_options: TransformOptions | None = None,
) -> None: ...
def copy_symbols_and_merge_into(target: Operation | OpView | Module, other: Operation | OpView | Module) -> None: ...
