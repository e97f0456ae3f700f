"""What `NAME_run` returns, and what `NAME_strerror` says of it."""

from __future__ import annotations

from enum import IntEnum

from qdialect.aot.network import ALIGNMENT, Network, target_titles


class Error(IntEnum):
    """The errors of the C interface."""

    OK = 0
    CPU = 1
    NULL = 2
    ALIGNMENT = 3
    THREADS = 4
    EXTERNAL = 5
    BATCH = 6


UNKNOWN = "unknown error"


def messages(network: Network) -> tuple[str, ...]:
    """What each error means for `network`, in the order of their numbers."""
    lacking = f"this CPU can execute none of the versions of '{network.name}': {target_titles(network.versions)}"
    return (
        "no error",
        lacking,
        "inputs, outputs, each of their entries and the workspace must not be null",
        f"the address of the workspace must be a multiple of {ALIGNMENT}",
        "threads must be at least 1",
        "a function of another library that the network calls has failed",
        "batch must be at least 0",
    )
