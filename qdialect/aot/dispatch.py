"""The functions that ask the CPU which version of a network it can run, as text of the LLVM dialect.

A feature counts where CPUID shows it and, for registers that the operating system must save, XCR0 does too. For matrix
tiles Linux is asked as well, once all else fits: it saves them for processes that have its permission. CPUID takes
microseconds in a virtual machine. A resolver calls it, which the loader runs once when it binds `NAME_run`: the choice
stands where the loader keeps addresses, and nothing of the file is writable.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from qdialect.aot.cpus import BITS, state_of
from qdialect.target import Target
from qdialect.target.matrix_tile_permission import COMPONENT, PERMISSION_CALL, REQUEST

_LEAVES = ((1, 0), (7, 0), (7, 1), (0x80000001, 0))
_REGISTERS = ("eax", "ebx", "ecx", "edx")
_OSXSAVE = 1 << 27
_CPUID = '"cpuid", "={ax},={bx},={cx},={dx},{ax},{cx},~{dirflag},~{fpsr},~{flags}"'
_XGETBV = '"xgetbv", "={ax},={dx},{cx},~{dirflag},~{fpsr},~{flags}"'
_SYSTEM_CALL = '"syscall", "={ax},{ax},{di},{si},~{rcx},~{r11},~{memory},~{dirflag},~{fpsr},~{flags}"'
_FOUR = "!llvm.struct<(i32, i32, i32, i32)>"
_PAIR = "!llvm.struct<(i32, i32)>"


def choose(symbol: str, targets: Sequence[Target]) -> str:
    """A function that returns the index of the first of `targets` that the CPU can run, and their number for none."""
    fallback = next((i for i, target in enumerate(targets) if not target.code_features), len(targets))
    asked = list(enumerate(targets[:fallback]))
    lines = [
        f"llvm.func internal @{symbol}() -> i32 {{",
        f"  %none = llvm.mlir.constant({fallback} : i32) : i32",
        *_cpuid("highest", 0),
        *_cpuid("basic", 1),
        "  %seven = llvm.mlir.constant(7 : i32) : i32",
        '  %has_leaf = llvm.icmp "uge" %highest_eax, %seven : i32',
        *_has_all("can_ask", "%basic_ecx", _OSXSAVE),
        "  %is_new = llvm.and %has_leaf, %can_ask : i1",
        "  llvm.cond_br %is_new, ^ask, ^old",
        "^old:",
        "  llvm.return %none : i32",
        "^ask:",
        *(line for leaf, subleaf in _LEAVES for line in _cpuid(f"leaf{leaf}_{subleaf}", leaf, subleaf)),
        "  %zero = llvm.mlir.constant(0 : i32) : i32",
        f"  %state_pair = llvm.inline_asm has_side_effects {_XGETBV} %zero : (i32) -> {_PAIR}",
        f"  %state = llvm.extractvalue %state_pair[0] : {_PAIR}",
        *(line for index, target in asked for line in _fits(index, target, f"{symbol}_may_use_tiles")),
    ]
    chosen = "%none"
    for index, _ in reversed(asked):
        lines += [
            f"  %index{index} = llvm.mlir.constant({index} : i32) : i32",
            f"  %chosen{index} = llvm.select %fits{index}, %index{index}, {chosen} : i1, i32",
        ]
        chosen = f"%chosen{index}"
    permission = _permission(f"{symbol}_may_use_tiles") if any(map(_has_tiles, targets)) else []
    return "\n".join([*permission, *lines, f"  llvm.return {chosen} : i32", "}"])


def resolver(symbol: str, choice: str, functions: Sequence[str]) -> str:
    """A function that returns the address of the one of `functions` whose index the function `choice` returns."""
    first, *others = functions
    lines = [
        f"llvm.func internal @{symbol}() -> !llvm.ptr {{",
        f"  %choice = llvm.call @{choice}() : () -> i32",
        f"  %function0 = llvm.mlir.addressof @{first} : !llvm.ptr",
    ]
    found = "%function0"
    for index, function in enumerate(others, 1):
        lines += [
            f"  %function{index} = llvm.mlir.addressof @{function} : !llvm.ptr",
            f"  %index{index} = llvm.mlir.constant({index} : i32) : i32",
            f'  %is{index} = llvm.icmp "eq" %choice, %index{index} : i32',
            f"  %found{index} = llvm.select %is{index}, %function{index}, {found} : i1, !llvm.ptr",
        ]
        found = f"%found{index}"
    return "\n".join([*lines, f"  llvm.return {found} : !llvm.ptr", "}"])


def masks_of(target: Target) -> Mapping[tuple[int, int, str], int]:
    """The bits that must be set in each register of each leaf and subleaf."""
    found: dict[tuple[int, int, str], int] = {}
    for feature in sorted(target.code_features):
        bit = BITS[feature]
        key = bit.leaf, bit.subleaf, bit.register
        found[key] = found.get(key, 0) | 1 << bit.number
    return found


def _cpuid(name: str, leaf: int, subleaf: int = 0) -> list[str]:
    return [
        f"  %{name}_asked = llvm.mlir.constant({_signed(leaf)} : i32) : i32",
        f"  %{name}_subleaf = llvm.mlir.constant({subleaf} : i32) : i32",
        f"  %{name} = llvm.inline_asm has_side_effects {_CPUID} %{name}_asked, %{name}_subleaf : (i32, i32) -> {_FOUR}",
        *(f"  %{name}_{of} = llvm.extractvalue %{name}[{i}] : {_FOUR}" for i, of in enumerate(_REGISTERS)),
    ]


def _has_tiles(target: Target) -> bool:
    return "amx-tile" in target.code_features


def _permission(symbol: str) -> list[str]:
    """A function that asks Linux for matrix tiles where its argument is true, and returns whether they may be used."""
    constants = {"call": PERMISSION_CALL, "request": REQUEST, "component": COMPONENT, "zero": 0}
    return [
        f"llvm.func internal @{symbol}(%wanted: i1) -> i1 {{",
        "  %no = llvm.mlir.constant(false) : i1",
        "  llvm.cond_br %wanted, ^ask, ^end(%no : i1)",
        "^ask:",
        *(f"  %{name} = llvm.mlir.constant({value} : i64) : i64" for name, value in constants.items()),
        f"  %answer = llvm.inline_asm has_side_effects {_SYSTEM_CALL} %call, %request, %component"
        " : (i64, i64, i64) -> i64",
        '  %given = llvm.icmp "eq" %answer, %zero : i64',
        "  llvm.br ^end(%given : i1)",
        "^end(%may: i1):",
        "  llvm.return %may : i1",
        "}",
    ]


def _fits(index: int, target: Target, permission: str) -> list[str]:
    """Whether the CPU, and the operating system for it, have all that `target` needs.

    The function `permission` asks for matrix tiles.
    """
    wanted = [(f"%leaf{leaf}_{sub}_{register}", mask) for (leaf, sub, register), mask in masks_of(target).items()]
    wanted.append(("%state", state_of(target)))
    lines: list[str] = []
    for number, (register, mask) in enumerate(wanted):
        lines += _has_all(f"has{index}_{number}", register, mask)
    found = f"%has{index}_0"
    for number in range(1, len(wanted)):
        lines.append(f"  %all{index}_{number} = llvm.and {found}, %has{index}_{number} : i1")
        found = f"%all{index}_{number}"
    if not _has_tiles(target):
        return [*lines, f"  %fits{index} = llvm.and {found}, %can_ask : i1"]
    lines.append(f"  %shown{index} = llvm.and {found}, %can_ask : i1")
    return [*lines, f"  %fits{index} = llvm.call @{permission}(%shown{index}) : (i1) -> i1"]


def _has_all(name: str, register: str, mask: int) -> list[str]:
    return [
        f"  %{name}_mask = llvm.mlir.constant({_signed(mask)} : i32) : i32",
        f"  %{name}_found = llvm.and {register}, %{name}_mask : i32",
        f'  %{name} = llvm.icmp "eq" %{name}_found, %{name}_mask : i32',
    ]


def _signed(value: int) -> int:
    """A number of 32 bits as MLIR reads it."""
    return value - (1 << 32) if value >> 31 else value
