"""The multi-threaded entry of a network and its barrier, as text of the LLVM dialect."""

from __future__ import annotations

# The entry chooses how many threads a call gets, and starts them.
#
# If other programs keep the cores busy, several threads can be slower than one: each waits for the preempted ones.  So
# the entry compares calls with a call on one thread.  Once the calls of a workspace have lost more time than they had
# gained, the next calls run on one thread, for a multiple of the net loss; then a call on several threads tests whether
# the cores are still busy.  Such tests cost a small share of the time.
#
# The time of one thread is unknown until a call has run on one.  The first call that waited long for its threads makes
# the next call do so.  Until then an upper bound is used: if n threads took T in all and each waited for L of it, one
# thread takes n (T - L), as if all had computed the rest of the time.
#
# The record of the calls lies at the end of the workspace.  It begins with the address of the network's code: any other
# content, such as that of another network, is not a record.

RECORD = "qnn.record"
"""The attribute of the region that gives the offset of the record in the workspace, in bytes."""
RECORD_BYTES = 32
"""Of the record: its owner; in cycles, how much longer calls run on one thread, the time gained, and the time of one
thread, 0 if it is not known."""

TASK = "main_of_thread"

MIN_LOSS = 250_000
"""Cycles. Waiting below this is wake-up latency, not interference."""

PAUSE = 16
"""Calls run on one thread for this multiple of the net loss: several threads cost at most a sixteenth of the time."""

_MAX_GAIN = 1 << 26
"""Cycles, some 25 ms: the most that may be lost at once when another program starts."""

_SHORT = 1 << 28
"""Cycles, some 0.1 s: the longest time on one thread, unless `PAUSE` calls take longer. So idle cores are soon used
again, even if one call lost much because the whole machine stalled."""

_RECORD = "!llvm.struct<(i64, i64, i64, i64)>"


def pool_entry(count: int, threads: int, record: int) -> str:
    """The function `main`, which calls `TASK` on at most `threads` threads.

    Both take `count` pointers, the last of which is the workspace; its record lies `record` bytes from its start.
    `TASK` also takes the memory that the threads share, and `main` a pointer to the largest number of threads.
    """
    arguments = [f"%a{i}" for i in range(count)]
    typed = ", ".join(f"{name}: !llvm.ptr" for name in arguments)
    pointers = ", ".join(["!llvm.ptr"] * (count + 1))
    slots = [f"%s{i} = llvm.getelementptr %block[{i}] : (!llvm.ptr) -> !llvm.ptr, !llvm.ptr" for i in range(count + 1)]
    stores = [f"llvm.store {name}, %s{i} : !llvm.ptr, !llvm.ptr" for i, name in enumerate([*arguments, "%pool"])]
    loads = [f"{name} = llvm.load %s{i} : !llvm.ptr -> !llvm.ptr" for i, name in enumerate([*arguments, "%pool"])]
    lines = "\n  ".join
    return f"""
llvm.func @{TASK}({pointers})
llvm.func @GOMP_parallel(!llvm.ptr, !llvm.ptr, i32, i32)
llvm.func @omp_get_num_threads() -> i32
llvm.func @omp_get_thread_num() -> i32
llvm.func internal @task(%block: !llvm.ptr) {{
  {lines([*slots, *loads])}
  llvm.call @{TASK}({", ".join([*arguments, "%pool"])}) : ({pointers}) -> ()
  %zero = llvm.mlir.constant(0 : i32) : i32
  %thread = llvm.call @omp_get_thread_num() : () -> i32
  %is_first = llvm.icmp "eq" %thread, %zero : i32
  llvm.cond_br %is_first, ^record_end, ^end
^record_end:
  %done = llvm.getelementptr %pool[0, 3] : (!llvm.ptr) -> !llvm.ptr, {POOL}
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
  %pool_bytes = llvm.mlir.constant({POOL_BYTES} : i32) : i32
  %pool = llvm.alloca %pool_bytes x i8 {{alignment = 64 : i64}} : (i32) -> !llvm.ptr
  %cleared = llvm.mlir.zero : {POOL}
  llvm.store %cleared, %pool : {POOL}, !llvm.ptr
  {lines([*slots, *stores])}
  %task = llvm.mlir.addressof @task : !llvm.ptr
  %record = llvm.getelementptr %a{count - 1}[{record}] : (!llvm.ptr) -> !llvm.ptr, i8
  %left_at = llvm.getelementptr %record[0, 1] : (!llvm.ptr) -> !llvm.ptr, {_RECORD}
  %gain_at = llvm.getelementptr %record[0, 2] : (!llvm.ptr) -> !llvm.ptr, {_RECORD}
  %alone_at = llvm.getelementptr %record[0, 3] : (!llvm.ptr) -> !llvm.ptr, {_RECORD}
  %code = llvm.ptrtoint %task : !llvm.ptr to i64
  %owner = llvm.load %record : !llvm.ptr -> i64
  %is_ours = llvm.icmp "eq" %owner, %code : i64
  llvm.cond_br %is_ours, ^start, ^begin
^begin:
  %none = llvm.mlir.zero : {_RECORD}
  llvm.store %none, %record : {_RECORD}, !llvm.ptr
  llvm.store %code, %record : i64, !llvm.ptr
  llvm.br ^start
^start:
  %zero = llvm.mlir.constant(0 : i64) : i64
  %left = llvm.load %left_at : !llvm.ptr -> i64
  %is_pause = llvm.icmp "ne" %left, %zero : i64
  %wanted = llvm.mlir.constant({threads} : i32) : i32
  %allowed = llvm.load %limit : !llvm.ptr -> i32
  %possible = llvm.intr.smin(%wanted, %allowed) : (i32, i32) -> i32
  %threads = llvm.select %is_pause, %one, %possible : i1, i32
  %flags = llvm.mlir.constant(0 : i32) : i32
  %start = llvm.call_intrinsic "llvm.readcyclecounter"() : () -> i64
  llvm.call @GOMP_parallel(%task, %block, %threads, %flags) : (!llvm.ptr, !llvm.ptr, i32, i32) -> ()
  %end = llvm.call_intrinsic "llvm.readcyclecounter"() : () -> i64
  %total = llvm.sub %end, %start : i64
  %alone = llvm.load %alone_at : !llvm.ptr -> i64
  %is_known = llvm.icmp "ne" %alone, %zero : i64
  %is_alone = llvm.icmp "sle" %threads, %one : i32
  llvm.cond_br %is_alone, ^alone, ^several
^alone:
  // The fastest call counts: others were preempted. One measured long ago may have had a faster core.
  %four = llvm.mlir.constant(4 : i64) : i64
  %quarter = llvm.udiv %alone, %four : i64
  %slower = llvm.add %alone, %quarter : i64
  %at_most_slower = llvm.intr.umin(%total, %slower) : (i64, i64) -> i64
  %measured = llvm.select %is_known, %at_most_slower, %total : i1, i64
  llvm.store %measured, %alone_at : i64, !llvm.ptr
  %served = llvm.intr.umin(%left, %total) : (i64, i64) -> i64
  %left_after = llvm.sub %left, %served : i64
  llvm.store %left_after, %left_at : i64, !llvm.ptr
  llvm.br ^end
^several:
  %lost_at = llvm.getelementptr %pool[0, 2] : (!llvm.ptr) -> !llvm.ptr, {POOL}
  %done_at = llvm.getelementptr %pool[0, 3] : (!llvm.ptr) -> !llvm.ptr, {POOL}
  %asleep = llvm.load %lost_at : !llvm.ptr -> i64
  %done = llvm.load %done_at : !llvm.ptr -> i64
  %others = llvm.sub %threads, %one : i32
  %waiting = llvm.zext %others : i32 to i64
  %after = llvm.sub %end, %done : i64
  %after_all = llvm.mul %after, %waiting : i64
  %waited_by_all = llvm.add %asleep, %after_all : i64
  %waited_by_each = llvm.udiv %waited_by_all, %waiting : i64
  %waited = llvm.intr.umin(%waited_by_each, %total) : (i64, i64) -> i64
  %all = llvm.zext %threads : i32 to i64
  %together = llvm.sub %total, %waited : i64
  %estimated = llvm.mul %together, %all : i64
  %less = llvm.intr.umin(%alone, %estimated) : (i64, i64) -> i64
  %expected = llvm.select %is_known, %less, %estimated : i1, i64
  %net_loss = llvm.sub %total, %expected : i64
  %no_loss = llvm.intr.smin(%net_loss, %zero) : (i64, i64) -> i64
  %counted = llvm.select %is_known, %net_loss, %no_loss : i1, i64
  %gain = llvm.load %gain_at : !llvm.ptr -> i64
  %most = llvm.mlir.constant({_MAX_GAIN} : i64) : i64
  %balance = llvm.sub %gain, %counted : i64
  %balance_at_most = llvm.intr.smin(%balance, %most) : (i64, i64) -> i64
  %gained = llvm.intr.smax(%balance_at_most, %zero) : (i64, i64) -> i64
  llvm.store %gained, %gain_at : i64, !llvm.ptr
  %shortfall = llvm.sub %zero, %balance : i64
  %debt = llvm.intr.smax(%shortfall, %zero) : (i64, i64) -> i64
  %times = llvm.mlir.constant({PAUSE} : i64) : i64
  %repaid = llvm.mul %debt, %times : i64
  %calls = llvm.mul %expected, %times : i64
  %short = llvm.mlir.constant({_SHORT} : i64) : i64
  %most_pause = llvm.intr.umax(%calls, %short) : (i64, i64) -> i64
  %pause = llvm.intr.umin(%repaid, %most_pause) : (i64, i64) -> i64
  %ignored = llvm.mlir.constant({MIN_LOSS} : i64) : i64
  %is_long = llvm.icmp "uge" %waited, %ignored : i64
  %once = llvm.mlir.constant(1 : i64) : i64
  %doubt = llvm.select %is_long, %once, %zero : i1, i64
  %next_pause = llvm.select %is_known, %pause, %doubt : i1, i64
  llvm.store %next_pause, %left_at : i64, !llvm.ptr
  llvm.br ^end
^end:
  llvm.return
}}
"""


# The barrier of the threads of a call, as text of the LLVM dialect.
#
# A waiting thread spins for some 50 us and then sleeps, so that a thread that shares its core can run. OpenMP runtimes
# spin for milliseconds at every barrier.

WAIT = "wait_for_threads"
"""The function of the barrier: it takes the memory that the threads share, and the number of barriers so far."""

POOL = "!llvm.struct<(i32, i32, i64, i64)>"
"""The memory that the threads share, zero at first: arrivals, sleeping threads, `time_lost`, `time_done`."""

POOL_BYTES = 64

SPINS = 2000
"""Polls of the counter before a thread sleeps. `pause` between two of them takes 40 to 140 cycles."""

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
llvm.func internal @{WAIT}(%pool: !llvm.ptr, %count: i32) attributes {{no_inline}} {{
  %one = llvm.mlir.constant(1 : i32) : i32
  %zero = llvm.mlir.constant(0 : i32) : i32
  %spins = llvm.mlir.constant({SPINS} : i32) : i32
  %futex = llvm.mlir.constant({_FUTEX} : i64) : i64
  %wait = llvm.mlir.constant({_WAIT_PRIVATE} : i64) : i64
  %wake = llvm.mlir.constant({_WAKE_PRIVATE} : i64) : i64
  %all = llvm.mlir.constant({_ALL} : i64) : i64
  %forever = llvm.mlir.constant(0 : i64) : i64
  %sleeping = llvm.getelementptr %pool[0, 1] : (!llvm.ptr) -> !llvm.ptr, {POOL}
  %time_lost = llvm.getelementptr %pool[0, 2] : (!llvm.ptr) -> !llvm.ptr, {POOL}
  %threads = llvm.call @omp_get_num_threads() : () -> i32
  %target = llvm.mul %threads, %count : i32
  %before = llvm.atomicrmw add %pool, %one seq_cst : !llvm.ptr, i32
  %now = llvm.add %before, %one : i32
  %is_last = llvm.icmp "eq" %now, %target : i32
  llvm.cond_br %is_last, ^last, ^spin(%zero : i32)
^last:
  %sleepers = llvm.load %sleeping atomic seq_cst {{alignment = 4 : i64}} : !llvm.ptr -> i32
  %has_sleepers = llvm.icmp "ne" %sleepers, %zero : i32
  llvm.cond_br %has_sleepers, ^wake, ^done
^wake:
  %woken = llvm.inline_asm has_side_effects {_SYSTEM_CALL} %futex, %pool, %wake, %all, %forever
    : (i64, !llvm.ptr, i64, i64, i64) -> i64
  llvm.br ^done
^spin(%looks: i32):
  %seen = llvm.load %pool atomic acquire {{alignment = 4 : i64}} : !llvm.ptr -> i32
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
  %found = llvm.load %pool atomic seq_cst {{alignment = 4 : i64}} : !llvm.ptr -> i32
  %missing = llvm.sub %target, %found : i32
  %is_complete = llvm.icmp "sle" %missing, %zero : i32
  llvm.cond_br %is_complete, ^awake, ^wait
^wait:
  %expected = llvm.zext %found : i32 to i64
  %slept = llvm.inline_asm has_side_effects {_SYSTEM_CALL} %futex, %pool, %wait, %expected, %forever
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
