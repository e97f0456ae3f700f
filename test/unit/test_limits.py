"""The memory limit: of the machine, of the control groups around the process, and of the process."""

import threading
from pathlib import Path

import pytest
from subprocesses import output_of

import qdialect
from qdialect.ir.context import several_threads
from qdialect.support import limits

GIB = 1 << 30


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def groups(folder: Path, membership: str, files: dict[str, str]) -> list[int]:
    write(folder / "cgroup", membership)
    for name, text in files.items():
        write(folder / "root" / name, text)
    return limits.container_limits(folder / "cgroup", folder / "root")


def test_version_2_counts_every_group_around_the_process(tmp_path: Path) -> None:
    files = {"memory.max": "max\n", "a/memory.max": f"{GIB}\n", "a/b/memory.max": f"{2 * GIB}\n"}
    assert sorted(groups(tmp_path, "0::/a/b\n", files)) == [GIB, 2 * GIB]


def test_version_1_has_a_folder_for_memory(tmp_path: Path) -> None:
    membership = "5:cpu,cpuacct:/x\n4:memory:/a\n"
    files = {"memory/memory.limit_in_bytes": "9223372036854771712\n", "memory/a/memory.limit_in_bytes": f"{GIB}\n"}
    assert min(groups(tmp_path, membership, files)) == GIB


def test_the_top_of_the_mount_stands_for_a_group_outside_of_it(tmp_path: Path) -> None:
    assert groups(tmp_path, "0::/machine/of/the/host\n", {"memory.max": f"{GIB}\n"}) == [GIB]
    assert groups(tmp_path, "0::/../beside\n", {"memory.max": f"{GIB}\n"}) == [GIB]


@pytest.mark.parametrize("membership", ["", "nonsense", "0::/", "4:memory:/a"])
def test_without_files_the_container_sets_no_limit(tmp_path: Path, membership: str) -> None:
    assert groups(tmp_path, membership, {}) == []


def test_the_smallest_limit_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "container_limits", lambda: [3 * GIB, 123])
    assert limits.memory_limit() == 123
    assert limits.exceeded_limit(123) is None
    assert limits.exceeded_limit(3 * GIB) == 123


def test_a_thread_with_little_stack() -> None:
    # In a process of its own: a thread may get the stack of another one that has ended.
    program = """
import threading
import qdialect
text = "func.func @main(%x: tensor<2xi8>) -> tensor<2xi8> { return %x : tensor<2xi8> }"
module = []
def work():
    for call in (lambda: module.append(qdialect.parse(text)), lambda: qdialect.compile(module[-1], cache=False)):
        try:
            call()
            print("done")
        except (qdialect.QDialectError, IndexError) as error:
            print(error)
for kilobytes in (128, 1000, 2048):
    threading.stack_size(kilobytes << 10)
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
"""
    first, _, second, _, *others = output_of(program).splitlines()
    for said, kilobytes in ((first, 128), (second, 1000)):
        assert said.startswith(f"stack of this thread must have at least {1 << 20} bytes, but has {kilobytes << 10}: ")
    assert others == ["done", "done"]


def test_a_process_with_little_stack() -> None:
    program = "import qdialect\ntry: qdialect.make_context()\nexcept qdialect.QDialectError as error: print(error)"
    limited = f"import resource, sys; resource.setrlimit(resource.RLIMIT_STACK, (256 << 10, -1))\n{program}"
    assert "stack of this thread must have at least 1048576 bytes, but has 262144: " in output_of(limited)


def test_a_process_without_memory() -> None:
    program = """
import resource
import qdialect
qdialect.make_context()
pages = int(open("/proc/self/statm").read().split()[0])
resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + (30 << 20), -1))
try:
    qdialect.make_context()
except qdialect.QDialectError as error:
    print(error)
"""
    assert output_of(program).startswith("a process must have 50331648 bytes of memory left to compile, but has 3")


def test_threads_that_cannot_be_started(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: object) -> None:
        raise RuntimeError("can't start new thread")

    module = qdialect.parse("func.func @main(%x: tensor<2xi8>) -> tensor<2xi8> {\nreturn %x : tensor<2xi8>\n}")
    limits.can_start_threads.cache_clear()
    assert limits.can_start_threads(2)
    limits.can_start_threads.cache_clear()
    with monkeypatch.context() as changed:
        changed.setattr(threading.Thread, "start", refuse)
        assert not limits.can_start_threads(2)
        with several_threads(module.context, 2):
            assert module.context.get_num_threads() == 1
    limits.can_start_threads.cache_clear()
