"""Classifies a folder of images with Ray Data, and compares the rate with that of one process.

    qdialect-compile model.tflite -o model.so
    python ray_batch.py model.so images/ results/

Each worker loads the compiled network once. The results are Parquet files with a row for each image. A run that was
stopped is resumed by the same command: images that have a result are not computed again.
"""

import argparse
import logging
import time
from pathlib import Path

import numpy as np
import pyarrow
import ray
from PIL import Image
from pyarrow import parquet

import qdialect

SUFFIXES = {".bmp", ".jpeg", ".jpg", ".png"}
COMPARED = 200


class Classify:
    """A worker: a network whose input is one picture, [1, height, width, 3] of uint8."""

    def __init__(self, model: str) -> None:
        self.network = qdialect.load(model)

    def __call__(self, batch: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        scores = np.concatenate([self.network(self.read(path)) for path in batch["path"]])
        return {"path": batch["path"], "class": scores.argmax(axis=1), "score": scores.max(axis=1)}

    def read(self, path: str) -> np.ndarray:
        """A picture of the network's size."""
        _, height, width, _ = self.network.inputs[0].shape
        with Image.open(path) as image:
            return np.asarray(image.convert("RGB").resize((width, height), Image.Resampling.BILINEAR))[None]


def finished(results: Path) -> set[str]:
    """Paths of the images that have a result; a file that was cut off is deleted."""
    found: set[str] = set()
    for path in results.glob("**/*.parquet"):
        try:
            found.update(parquet.read_table(path, columns=["path"])["path"].to_pylist())
        except (OSError, pyarrow.ArrowInvalid):
            path.unlink()
    return found


def run(model: str, paths: list[str], results: Path, workers: int, batch: int) -> float:
    """Write the results; images per second."""
    start = time.perf_counter()
    images = ray.data.from_items([{"path": path} for path in paths], override_num_blocks=-(-len(paths) // batch))
    # Workers leave a little of each CPU to what writes: a result is to be in a file soon after it is known.
    classified = images.map_batches(
        Classify, fn_constructor_args=(model,), batch_size=batch, concurrency=workers, num_cpus=0.9
    )
    classified.write_parquet(str(results), mode="append", ray_remote_args={"num_cpus": 0.1})
    return len(paths) / (time.perf_counter() - start)


def run_alone(model: str, paths: list[str]) -> float:
    """Images per second in this process."""
    start = time.perf_counter()
    Classify(model)({"path": np.array(paths)})
    return len(paths) / (time.perf_counter() - start)


def main() -> None:
    parser = argparse.ArgumentParser(description="Classify a folder of images with Ray Data.")
    parser.add_argument("model", help="a file of qdialect-compile")
    parser.add_argument("images", type=Path, help="a folder of pictures, with folders in it")
    parser.add_argument("results", type=Path, help="the folder for the Parquet files")
    parser.add_argument("--workers", type=int, help="processes that compute (default: one for each CPU of the cluster)")
    parser.add_argument("--batch", type=int, default=64, help="images that a worker gets at once (default: 64)")
    options = parser.parse_args()

    model = str(Path(options.model).resolve())
    done = finished(options.results)
    found = sorted(str(path) for path in options.images.resolve().rglob("*") if path.suffix.lower() in SUFFIXES)
    paths = [path for path in found if path not in done]
    print(f"{len(paths)} images to classify, {len(found) - len(paths)} have results")
    if not paths:
        return
    ray.init(include_dashboard=False, log_to_driver=False)
    logging.getLogger("ray.data").setLevel(logging.WARNING)
    ray.data.DataContext.get_current().enable_progress_bars = False
    workers = options.workers or int(ray.cluster_resources()["CPU"])
    rate = run(model, paths, options.results.resolve(), workers, options.batch)
    alone = run_alone(model, paths[:COMPARED])
    print(f"{workers} workers: {rate:.1f} images/s with their start; one process: {alone:.1f} images/s")


if __name__ == "__main__":
    main()
