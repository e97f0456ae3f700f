"""The barrier of the threads of a call, as text of the LLVM dialect.

A thread that waits spins for some 50 us and then sleeps, so that one that the system has moved to the same core, or
that shares its core with another program, goes on. Runtimes of OpenMP spin for milliseconds, each at every barrier.
"""

from __future__ import annotations

WAIT = "wait_for_threads"
"""The function of the barrier: it takes the team's memory and how many barriers there have been, with this one."""

TEAM = "!llvm.struct<(i32, i32, i64, i64)>"
"""The team's memory, zero at first: how often threads have arrived, how many sleep, `time_lost`, `time_done`."""

TEAM_BYTES = 64

SPINS = 2000
"""Looks at the counter before a thread sleeps. Between two of them `pause` takes 40 to 140 cycles."""

# Linux: the number of the system call, and its operations on memory of one process.
_FUTEX, _WAIT_PRIVATE, _WAKE_PRIVATE = 202, 128, 129
_ALL = 0x7FFFFFFF
_SYSTEM_CALL = '"syscall", "={ax},{ax},{di},{si},{dx},{r10},~{rcx},~{r11},~{memory},~{dirflag},~{fpsr},~{flags}"'


def barrier() -> str:
    """The function `WAIT`; it calls `omp_get_num_threads`, which the module declares.

    Arrivals are counted through the whole call: the last thread at the k-th barrier makes them k times the number of
    threads.
    """
    return f"""
llvm.func internal @{WAIT}(%team: !llvm.ptr, %count: i32) attributes {{no_inline}} {{
  %one = llvm.mlir.constant(1 : i32) : i32
  %zero = llvm.mlir.constant(0 : i32) : i32
  %spins = llvm.mlir.constant({SPINS} : i32) : i32
  %futex = llvm.mlir.constant({_FUTEX} : i64) : i64
  %wait = llvm.mlir.constant({_WAIT_PRIVATE} : i64) : i64
  %wake = llvm.mlir.constant({_WAKE_PRIVATE} : i64) : i64
  %all = llvm.mlir.constant({_ALL} : i64) : i64
  %forever = llvm.mlir.constant(0 : i64) : i64
  %sleeping = llvm.getelementptr %team[0, 1] : (!llvm.ptr) -> !llvm.ptr, {TEAM}
  %time_lost = llvm.getelementptr %team[0, 2] : (!llvm.ptr) -> !llvm.ptr, {TEAM}
  %threads = llvm.call @omp_get_num_threads() : () -> i32
  %target = llvm.mul %threads, %count : i32
  %before = llvm.atomicrmw add %team, %one seq_cst : !llvm.ptr, i32
  %now = llvm.add %before, %one : i32
  %is_last = llvm.icmp "eq" %now, %target : i32
  llvm.cond_br %is_last, ^last, ^spin(%zero : i32)
^last:
  %sleepers = llvm.load %sleeping atomic seq_cst {{alignment = 4 : i64}} : !llvm.ptr -> i32
  %has_sleepers = llvm.icmp "ne" %sleepers, %zero : i32
  llvm.cond_br %has_sleepers, ^wake, ^done
^wake:
  %woken = llvm.inline_asm has_side_effects {_SYSTEM_CALL} %futex, %team, %wake, %all, %forever
    : (i64, !llvm.ptr, i64, i64, i64) -> i64
  llvm.br ^done
^spin(%looks: i32):
  %seen = llvm.load %team atomic acquire {{alignment = 4 : i64}} : !llvm.ptr -> i32
  %left = llvm.sub %target, %seen : i32
  %is_here = llvm.icmp "sle" %left, %zero : i32
  llvm.cond_br %is_here, ^done, ^again
^again:
  llvm.inline_asm has_side_effects "pause", "~{{dirflag}},~{{fpsr}},~{{flags}}" : () -> ()
  %next = llvm.add %looks, %one : i32
  %may_spin = llvm.icmp "ult" %next, %spins : i32
  llvm.cond_br %may_spin, ^spin(%next : i32), ^sleep
^sleep:
  %start = llvm.call_intrinsic "llvm.readcyclecounter"() : () -> i64
  %others = llvm.atomicrmw add %sleeping, %one seq_cst : !llvm.ptr, i32
  llvm.br ^look
^look:
  %found = llvm.load %team atomic seq_cst {{alignment = 4 : i64}} : !llvm.ptr -> i32
  %missing = llvm.sub %target, %found : i32
  %is_complete = llvm.icmp "sle" %missing, %zero : i32
  llvm.cond_br %is_complete, ^awake, ^wait
^wait:
  %expected = llvm.zext %found : i32 to i64
  %slept = llvm.inline_asm has_side_effects {_SYSTEM_CALL} %futex, %team, %wait, %expected, %forever
    : (i64, !llvm.ptr, i64, i64, i64) -> i64
  llvm.br ^look
^awake:
  %fewer = llvm.atomicrmw sub %sleeping, %one seq_cst : !llvm.ptr, i32
  %end = llvm.call_intrinsic "llvm.readcyclecounter"() : () -> i64
  %time = llvm.sub %end, %start : i64
  %before_lost = llvm.atomicrmw add %time_lost, %time monotonic : !llvm.ptr, i64
  llvm.br ^done
^done:
  llvm.return
}}"""
