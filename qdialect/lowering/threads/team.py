"""The entry of a network on several threads, as text of the LLVM dialect: how many threads a call gets, and its start.

Where other programs keep the cores busy, several threads can be slower than one: each waits for those that do not run.
A call notes what its threads lost in that way, beyond what they gained. Once a workspace's calls have lost more than
they had gained before, the calls that follow run on one thread, for as long as was lost, and for twice as long each
time that it happens again. The record lies at the end of the workspace. Whatever is found there at first is as good:
results are the same for every number of threads.
"""

from __future__ import annotations

from qdialect.lowering.threads.barrier import TEAM, TEAM_BYTES

RECORD_BYTES = 24
"""Of the workspace: until when calls run on one thread, how many times what was lost that is, and what was gained."""

TASK = "main_of_thread"

MIN_LOSS = 250_000
"""Cycles that do not count: about what waking a thread takes."""

LAST_PAUSE = 64
"""How many times what was lost the longest pause is; the first one is as long."""

_MAX_GAIN = 1 << 26
"""Cycles, some 25 ms: what may be lost at once when another program begins."""

_MAX_PAUSE = 1 << 33
"""Cycles, some seconds: whatever lies further in the future has not been noted by a call."""

_RECORD = "!llvm.struct<(i64, i64, i64)>"


def team_entry(count: int, threads: int, record: int) -> str:
    """The function `main`, which calls `TASK` on at most `threads` threads.

    Both take `count` pointers, the last of which is the workspace; its record lies `record` bytes from its start.
    `TASK` takes the team's memory as well, and `main` a pointer to the number of threads that it may ask for.
    """
    arguments = [f"%a{i}" for i in range(count)]
    typed = ", ".join(f"{name}: !llvm.ptr" for name in arguments)
    pointers = ", ".join(["!llvm.ptr"] * (count + 1))
    slots = [f"%s{i} = llvm.getelementptr %block[{i}] : (!llvm.ptr) -> !llvm.ptr, !llvm.ptr" for i in range(count + 1)]
    stores = [f"llvm.store {name}, %s{i} : !llvm.ptr, !llvm.ptr" for i, name in enumerate([*arguments, "%team"])]
    loads = [f"{name} = llvm.load %s{i} : !llvm.ptr -> !llvm.ptr" for i, name in enumerate([*arguments, "%team"])]
    lines = "\n  ".join
    return f"""
llvm.func @{TASK}({pointers})
llvm.func @GOMP_parallel(!llvm.ptr, !llvm.ptr, i32, i32)
llvm.func @omp_get_num_threads() -> i32
llvm.func @omp_get_thread_num() -> i32
llvm.func internal @task(%block: !llvm.ptr) {{
  {lines([*slots, *loads])}
  llvm.call @{TASK}({", ".join([*arguments, "%team"])}) : ({pointers}) -> ()
  %zero = llvm.mlir.constant(0 : i32) : i32
  %thread = llvm.call @omp_get_thread_num() : () -> i32
  %is_first = llvm.icmp "eq" %thread, %zero : i32
  llvm.cond_br %is_first, ^note, ^end
^note:
  %done = llvm.getelementptr %team[0, 3] : (!llvm.ptr) -> !llvm.ptr, {TEAM}
  %time = llvm.call_intrinsic "llvm.readcyclecounter"() : () -> i64
  llvm.store %time, %done : i64, !llvm.ptr
  llvm.br ^end
^end:
  llvm.return
}}
llvm.func @main({typed}, %limit: !llvm.ptr) {{
  %one = llvm.mlir.constant(1 : i32) : i32
  %length = llvm.mlir.constant({count + 1} : i32) : i32
  %block = llvm.alloca %length x !llvm.ptr : (i32) -> !llvm.ptr
  %team_bytes = llvm.mlir.constant({TEAM_BYTES} : i32) : i32
  %team = llvm.alloca %team_bytes x i8 {{alignment = 64 : i64}} : (i32) -> !llvm.ptr
  %cleared = llvm.mlir.zero : {TEAM}
  llvm.store %cleared, %team : {TEAM}, !llvm.ptr
  {lines([*slots, *stores])}
  %task = llvm.mlir.addressof @task : !llvm.ptr
  %until_at = llvm.getelementptr %a{count - 1}[{record}] : (!llvm.ptr) -> !llvm.ptr, i8
  %factor_at = llvm.getelementptr %until_at[0, 1] : (!llvm.ptr) -> !llvm.ptr, {_RECORD}
  %gain_at = llvm.getelementptr %until_at[0, 2] : (!llvm.ptr) -> !llvm.ptr, {_RECORD}
  %start = llvm.call_intrinsic "llvm.readcyclecounter"() : () -> i64
  %until = llvm.load %until_at : !llvm.ptr -> i64
  %ahead = llvm.sub %until, %start : i64
  %longest = llvm.mlir.constant({_MAX_PAUSE} : i64) : i64
  %is_pause = llvm.icmp "ult" %ahead, %longest : i64
  %wanted = llvm.mlir.constant({threads} : i32) : i32
  %allowed = llvm.load %limit : !llvm.ptr -> i32
  %possible = llvm.intr.smin(%wanted, %allowed) : (i32, i32) -> i32
  %threads = llvm.select %is_pause, %one, %possible : i1, i32
  %flags = llvm.mlir.constant(0 : i32) : i32
  llvm.call @GOMP_parallel(%task, %block, %threads, %flags) : (!llvm.ptr, !llvm.ptr, i32, i32) -> ()
  %is_alone = llvm.icmp "sle" %threads, %one : i32
  llvm.cond_br %is_alone, ^end, ^note
^note:
  %end = llvm.call_intrinsic "llvm.readcyclecounter"() : () -> i64
  %lost_at = llvm.getelementptr %team[0, 2] : (!llvm.ptr) -> !llvm.ptr, {TEAM}
  %done_at = llvm.getelementptr %team[0, 3] : (!llvm.ptr) -> !llvm.ptr, {TEAM}
  %asleep = llvm.load %lost_at : !llvm.ptr -> i64
  %done = llvm.load %done_at : !llvm.ptr -> i64
  %others = llvm.sub %threads, %one : i32
  %waiting = llvm.zext %others : i32 to i64
  %after = llvm.sub %end, %done : i64
  %after_all = llvm.mul %after, %waiting : i64
  %lost_by_all = llvm.add %asleep, %after_all : i64
  %lost = llvm.udiv %lost_by_all, %waiting : i64
  %total = llvm.sub %end, %start : i64
  %all = llvm.zext %threads : i32 to i64
  %lost_times = llvm.mul %lost, %all : i64
  %gained = llvm.mul %total, %waiting : i64
  %net_loss = llvm.sub %lost_times, %gained : i64
  %zero = llvm.mlir.constant(0 : i64) : i64
  %ignored = llvm.mlir.constant({MIN_LOSS} : i64) : i64
  %is_little = llvm.icmp "ult" %lost, %ignored : i64
  %no_loss = llvm.intr.smin(%net_loss, %zero) : (i64, i64) -> i64
  %counted = llvm.select %is_little, %no_loss, %net_loss : i1, i64
  %gain = llvm.load %gain_at : !llvm.ptr -> i64
  %most = llvm.mlir.constant({_MAX_GAIN} : i64) : i64
  %at_most = llvm.intr.umin(%gain, %most) : (i64, i64) -> i64
  %balance = llvm.sub %at_most, %counted : i64
  %is_bad = llvm.icmp "slt" %balance, %zero : i64
  %left = llvm.intr.smax(%balance, %zero) : (i64, i64) -> i64
  llvm.store %left, %gain_at : i64, !llvm.ptr
  %factor = llvm.load %factor_at : !llvm.ptr -> i64
  %first = llvm.mlir.constant(1 : i64) : i64
  %two = llvm.mlir.constant(2 : i64) : i64
  %last = llvm.mlir.constant({LAST_PAUSE} : i64) : i64
  %at_least = llvm.intr.umax(%factor, %first) : (i64, i64) -> i64
  %known = llvm.intr.umin(%at_least, %last) : (i64, i64) -> i64
  %double = llvm.mul %known, %two : i64
  %half = llvm.udiv %known, %two : i64
  %next = llvm.select %is_bad, %double, %half : i1, i64
  llvm.store %next, %factor_at : i64, !llvm.ptr
  %debt = llvm.sub %zero, %balance : i64
  %product = llvm.mul %debt, %known : i64
  %pause = llvm.intr.umin(%product, %longest) : (i64, i64) -> i64
  %resumed = llvm.add %end, %pause : i64
  %noted = llvm.select %is_bad, %resumed, %end : i1, i64
  llvm.store %noted, %until_at : i64, !llvm.ptr
  llvm.br ^end
^end:
  llvm.return
}}
"""
