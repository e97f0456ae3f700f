"""The versions of a network by names of CPUs, and the functions that ask the CPU which of them it can run."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from qdialect import targets
from qdialect.targets import Target
from qdialect.targets.cpus import COMPONENT, PERMISSION_CALL, REQUEST

# The versions of a network by names of CPUs, and how a CPU tells which instructions it has.
#
# A version of a network may use what every CPU with its target's instruction sets has, and nothing more: code for one
# CPU of a kind must run on all of them.


@dataclass(frozen=True)
class Bit:
    """Where CPUID shows a feature: the leaf, a register and a bit of that, and the subleaf."""

    leaf: int
    register: str
    number: int
    subleaf: int = 0


# Intel SDM volume 2, CPUID; AMD APM volume 3, appendix E. Names are those of LLVM.
BITS: Mapping[str, Bit] = {
    "sse3": Bit(1, "ecx", 0),
    "ssse3": Bit(1, "ecx", 9),
    "fma": Bit(1, "ecx", 12),
    "cx16": Bit(1, "ecx", 13),
    "sse4.1": Bit(1, "ecx", 19),
    "sse4.2": Bit(1, "ecx", 20),
    "movbe": Bit(1, "ecx", 22),
    "popcnt": Bit(1, "ecx", 23),
    "avx": Bit(1, "ecx", 28),
    "f16c": Bit(1, "ecx", 29),
    "bmi": Bit(7, "ebx", 3),
    "avx2": Bit(7, "ebx", 5),
    "bmi2": Bit(7, "ebx", 8),
    "avx512f": Bit(7, "ebx", 16),
    "avx512dq": Bit(7, "ebx", 17),
    "avx512cd": Bit(7, "ebx", 28),
    "avx512bw": Bit(7, "ebx", 30),
    "avx512vl": Bit(7, "ebx", 31),
    "avx512vbmi": Bit(7, "ecx", 1),
    "avx512vnni": Bit(7, "ecx", 11),
    "avx512bf16": Bit(7, "eax", 5, 1),
    "amx-tile": Bit(7, "edx", 24),
    "amx-int8": Bit(7, "edx", 25),
    "avxvnni": Bit(7, "eax", 4, 1),
    "avxvnniint8": Bit(7, "edx", 4, 1),
    "sahf": Bit(0x80000001, "ecx", 0),
    "lzcnt": Bit(0x80000001, "ecx", 5),
}

_YMM_STATE = 0x6
"""Of XCR0: the operating system saves XMM and YMM registers."""
_ZMM_STATE = 0xE6
"""The same, and mask and ZMM registers."""
_TILE_STATE = 0x60000
"""Matrix tiles and their configuration."""

_NO_SYMBOL = re.compile(r"[^\w.]", re.ASCII)


def state_of(target: Target) -> int:
    """The bits of XCR0 that code for `target` needs: registers that the operating system saves."""
    features = target.code_features
    tiles = _TILE_STATE if "amx-tile" in features else 0
    if "avx512f" in features:
        return _ZMM_STATE | tiles
    return (_YMM_STATE if "avx" in features else 0) | tiles


def target_of_cpu(name: str) -> Target:
    """The kind of code for a CPU's name, with features as `resolve` takes them; ``host`` is this machine.

    It has the tiles of the core that ``tune=`` among the features names, and else of the kind's typical CPU.  A CPU
    that lacks what code of its kind may use gets code of its own.  Raises `CompileError` for an unknown name.
    """
    found = targets.resolve(name)
    if found.is_portable or found == targets.host() or not found.kind.code_features <= found.code_features:
        return found
    tuned = [attribute for attribute in name.split(",") if attribute.startswith(targets.TUNE)]
    return targets.resolve(",".join([found.kind.name, *tuned[-1:]]))


def versions_of(names: Sequence[str]) -> tuple[Target, ...]:
    """The targets of CPUs' names, each once, those with the most features first."""
    found = dict.fromkeys(target_of_cpu(name) for name in names)
    return tuple(sorted(found, key=lambda target: -len(target.code_features)))


def symbol_part(target: Target) -> str:
    """The name of a version in those of its functions."""
    return _NO_SYMBOL.sub("_", target.name.replace(",+", "_with_").replace(",-", "_without_"))


# The functions that ask the CPU which version of a network it can run, as text of the LLVM dialect.
#
# A feature counts where CPUID shows it and, for registers that the operating system must save, XCR0 does too. For
# matrix tiles Linux is asked as well, once all else fits: it saves them for processes that have its permission. CPUID
# takes microseconds in a virtual machine. A resolver calls it, which the loader runs once when it binds `NAME_run`: the
# choice stands where the loader keeps addresses, and nothing of the file is writable.

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
