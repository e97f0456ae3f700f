"""Measures how long batches take, simulates callers, and writes the tables of docs/scale.md.

    python tools/capacity.py                              # the tables of the page
    python tools/capacity.py model.onnx --limit-ms 5      # a network of yours, printed

The simulation is a queue: requests arrive at random (a Poisson process), wait for one of the machine's workers, and a
worker takes all that wait, up to its largest batch. How long it works is drawn from measured calls of that batch size.
"""

import argparse
import math
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

ROOT = Path(__file__).resolve().parents[1]
# The checkout that this file belongs to, whatever is installed.
sys.path[:0] = [str(ROOT)]

import qdialect  # noqa: E402
from qdialect.bench.random_networks import draw_network  # noqa: E402
from qdialect.bench.tflite_writer import write_tflite  # noqa: E402
from qdialect.runtime.comparison import random_inputs  # noqa: E402
from tools.deployment_tables import dense_layers, mobilenet, with_table  # noqa: E402

PAGE = ROOT / "docs" / "scale.md"
# A day's requests, and how much more than the mean the busiest minute brings.
DAY, PEAK = 1e9, 2.5
_SIZES = (1, 8, 64)
_REQUESTS = 20_000
_STEPS = 12
_WORKERS = 16


@dataclass(frozen=True)
class Service:
    """Measured seconds of calls, by the size of their batch."""

    samples: Mapping[int, NDArray[np.float64]]

    def drawn(self, size: int, random: np.random.Generator) -> float:
        """Seconds for a batch of `size`: as `batch="dynamic"` does, divided into measured sizes, the largest first."""
        seconds, left = 0.0, size
        for one in sorted(self.samples, reverse=True):
            count, left = divmod(left, one)
            times = self.samples[one]
            seconds += sum(times[int(random.random() * len(times))] for _ in range(count))
        return seconds

    def rate(self, size: int) -> float:
        """Requests a second of a worker that always has a batch of `size`."""
        return size / float(np.mean(self.samples[size]))


def latencies(
    service: Service, rate: float, workers: int, batch: int, requests: int = _REQUESTS, seed: int = 0
) -> NDArray[np.float64]:
    """Seconds from arrival to answer of each request, where `rate` arrive in a second.

    Raises `ValueError` if a number is not positive.
    """
    if min(rate, workers, batch, requests) <= 0:
        raise ValueError(
            f"rate, workers, batch and requests must be positive, but got {(rate, workers, batch, requests)}"
        )
    random = np.random.default_rng(seed)
    arrivals = np.cumsum(random.exponential(1 / rate, requests))
    free = np.zeros(workers)
    found = np.empty(requests)
    first = 0
    while first < requests:
        worker = int(free.argmin())
        start = max(float(free[worker]), float(arrivals[first]))
        last = min(int(np.searchsorted(arrivals, start, side="right")), first + batch)
        free[worker] = start + service.drawn(last - first, random)
        found[first:last] = free[worker] - arrivals[first:last]
        first = last
    return found


def highest_rate(service: Service, workers: int, batch: int, limit: float) -> float:
    """The highest rate at which 99 of 100 requests are answered within `limit` seconds; 0 if none is."""
    low, high = 0.0, workers * max(service.rate(size) for size in service.samples if size <= batch)
    for _ in range(_STEPS):
        middle = (low + high) / 2
        found = latencies(service, middle, workers, batch)
        is_met = float(np.quantile(found, 0.99)) <= limit
        low, high = (middle, high) if is_met else (low, middle)
    return low


def measured(executable: qdialect.Executable, seconds: float) -> Service:
    """Calls of each size for `seconds` each, in time of the processor: a worker has a core of its own."""
    found: dict[int, NDArray[np.float64]] = {}
    for size in _SIZES:
        ports = [replace(one, shape=(size, *one.shape[1:])) for one in executable.inputs]
        inputs = random_inputs(ports, 0)
        executable(*inputs)
        times: list[float] = []
        end = time.perf_counter() + seconds
        while not times or time.perf_counter() < end:
            start = time.thread_time()
            executable(*inputs)
            times.append(time.thread_time() - start)
        found[size] = np.array(times)
    return Service(found)


def load_table(service: Service) -> str:
    """Latency by load, one request a call and batches."""
    rows = ["| load | largest batch | requests a second | p50, ms | p99, ms | p99.9, ms |", "|---|---|---|---|---|---|"]
    whole = _WORKERS * service.rate(1)
    for share in (0.5, 0.8, 0.95, 1.2):
        for batch in _SIZES:
            if share * whole >= _WORKERS * max(service.rate(size) for size in _SIZES if size <= batch):
                continue
            times = np.quantile(latencies(service, share * whole, _WORKERS, batch), (0.5, 0.99, 0.999)) * 1e3
            rows.append(
                f"| {share:.0%} | {batch} | {share * whole:,.0f} | " + " | ".join(f"{t:.2f}" for t in times) + " |"
            )
    return "\n".join(rows)


def plan_table(services: Mapping[str, Service], limits: Sequence[float]) -> str:
    """Machines for a day's requests."""
    rows = [
        "| network | p99 within, ms | largest batch | requests a second of a machine | "
        f"machines for {PEAK * DAY / 86400:,.0f} a second |",
        "|---|---|---|---|---|",
    ]
    for name, service in services.items():
        for limit in limits:
            for batch in (_SIZES[0], _SIZES[-1]):
                rate = highest_rate(service, _WORKERS, batch, limit)
                machines = f"{math.ceil(PEAK * DAY / 86400 / rate)}" if rate else "not possible"
                rows.append(f"| {name} | {limit * 1e3:g} | {batch} | {rate:,.0f} | {machines} |")
    return "\n".join(rows)


def main() -> int:
    parser = argparse.ArgumentParser(description="Simulate the load of machines that run a network.")
    parser.add_argument("model", nargs="?", help="a network of yours (by default those of docs/scale.md)")
    parser.add_argument("--seconds", type=float, default=2.0, help="of each measurement (default 2)")
    parser.add_argument("--limit-ms", type=float, default=5.0, help="for 99 of 100 requests (default 5)")
    options = parser.parse_args()
    limits = sorted({options.limit_ms / 1e3, 20 * options.limit_ms / 1e3})
    if options.model:
        service = measured(qdialect.compile(options.model, batch="dynamic"), options.seconds)
        print(load_table(service), plan_table({Path(options.model).name: service}, limits), sep="\n\n")
        return 0
    with tempfile.TemporaryDirectory() as folder:
        resnet = Path(folder) / "resnet50.tflite"
        resnet.write_bytes(write_tflite(draw_network("resnet50")[0]))
        deep = qdialect.compile(resnet, batch="dynamic")
    services = {
        "MobileNetV1 0.25, 224 x 224": measured(qdialect.compile(mobilenet(), batch="dynamic"), options.seconds),
        "dense layers of 1024, 2048, 2048, 256 values": measured(
            qdialect.compile(qdialect.parse(dense_layers((1024, 2048, 2048, 256))), batch="dynamic"), options.seconds
        ),
        "ResNet-50, 224 x 224": measured(deep, options.seconds),
    }
    page = PAGE.read_text()
    for name, table in {
        "load": load_table(services["MobileNetV1 0.25, 224 x 224"]),
        "plan": plan_table(services, limits),
    }.items():
        print(table, end="\n\n")
        page = with_table(page, name, table, "tools/capacity.py")
    PAGE.write_text(page)
    return 0


if __name__ == "__main__":
    sys.exit(main())
