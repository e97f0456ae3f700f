"""The examples that need Ray, on a cluster of this machine: `make ray-check` runs them where Ray is installed."""

import importlib.util
import os
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path

import numpy as np
import pytest

import qdialect

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
DEADLINE = 240
MODEL = """
func.func @main(%x: tensor<1x8x8x3xui8>) -> tensor<1x5xui8> {
  %r = "qnn.reshape"(%x) {shape = array<i64: 1, 192>} : (tensor<1x8x8x3xui8>) -> tensor<1x192xui8>
  %w = "qnn.constant"() {value = dense<[WEIGHTS]> : tensor<5x192xi8>} : () -> tensor<5x192xi8>
  %0 = "qnn.dense"(%r, %w) {
    input_scale = 0.5 : f64, input_zero_point = 7 : i64, weight_scales = array<f64: 0.25>,
    weight_zero_points = array<i64: 0>
  } : (tensor<1x192xui8>, tensor<5x192xi8>) -> tensor<1x5xi32>
  %1 = "qnn.requantize"(%0) {
    input_scale = 0.5 : f64, weight_scales = array<f64: 0.25>, input_zero_points = array<i64: 0>, axis = 1 : i64,
    output_scale = 1024.0 : f64, output_zero_point = 128 : i64, rounding = "fixed64_up", multiplier = "f64"
  } : (tensor<1x5xi32>) -> tensor<1x5xui8>
  return %1 : tensor<1x5xui8>
}
"""
WRITE_PICTURES = """
import sys
import numpy as np
from PIL import Image
for number in range(int(sys.argv[2]), int(sys.argv[3])):
    picture = np.random.default_rng(number).integers(0, 256, (8, 8, 3), dtype=np.uint8)
    Image.fromarray(picture).save(f"{sys.argv[1]}/{number}.png")
"""
READ_RESULTS = """
import sys
from pathlib import Path
from pyarrow import parquet
given = Path(sys.argv[1])
for path in [given] if given.is_file() else given.glob("**/*.parquet"):
    for row in parquet.read_table(path).to_pylist():
        print(Path(row["path"]).name, row["class"], row["score"])
"""
SERVE = """
import sys
import ray
from ray import serve
ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
serve.start(http_options={"host": "127.0.0.1", "port": int(sys.argv[1])})
import app
serve.run(app.app)
print("ready", flush=True)
sys.stdin.read()
serve.shutdown()
"""

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("ray") is None, reason="ray is not installed here: 'make ray-check' runs these tests"
)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("model") / "model.so"
    weights = np.random.default_rng(1).integers(-128, 128, (5, 192)).tolist()
    text = MODEL.replace("[WEIGHTS]", str(weights))
    qdialect.compile(qdialect.parse(text)).save(path)
    return path


def ran(*arguments: str | Path) -> str:
    done = subprocess.run(
        [sys.executable, *map(str, arguments)], capture_output=True, text=True, timeout=DEADLINE, check=False
    )
    assert done.returncode == 0, done.stderr[-4000:]
    return done.stdout


def picture(number: int) -> np.ndarray[tuple[int, ...], np.dtype[np.uint8]]:
    return np.random.default_rng(number).integers(0, 256, (1, 8, 8, 3), dtype=np.uint8)


def test_a_batch_is_resumed(model: Path, tmp_path: Path) -> None:
    images, results = tmp_path / "images", tmp_path / "results"
    images.mkdir()
    command = (EXAMPLES / "ray_batch.py", model, images, results, "--workers", "2", "--batch", "3")
    assert ran(*command) == "0 images to classify, 0 have results\n"
    ran("-c", WRITE_PICTURES, images, "0", "7")
    first = ran(*command).splitlines()
    assert first[0] == "7 images to classify, 0 have results"
    assert first[-1].startswith("2 workers: ")
    # Stopped while it wrote a file: that one is cut off, and its images are computed again.
    cut = next(iter(sorted(results.glob("**/*.parquet"))))
    lost = len(ran("-c", READ_RESULTS, cut).splitlines())
    cut.write_bytes(cut.read_bytes()[:-20])
    assert lost > 0
    ran("-c", WRITE_PICTURES, images, "7", "9")
    assert ran(*command).splitlines()[0] == f"{2 + lost} images to classify, {7 - lost} have results"
    assert ran(*command) == "0 images to classify, 9 have results\n"
    network = qdialect.load(model)
    scores = [np.asarray(network(picture(number)))[0] for number in range(9)]
    expected = [f"{number}.png {row.argmax()} {row.max()}" for number, row in enumerate(scores)]
    assert sorted(ran("-c", READ_RESULTS, results).splitlines()) == expected


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def test_a_network_answers_over_http(model: Path) -> None:
    port = free_port()
    environment = {**os.environ, "MODEL": str(model), "PYTHONPATH": str(EXAMPLES / "serving" / "ray_serve")}
    command = [sys.executable, "-c", SERVE, str(port)]
    with subprocess.Popen(
        command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as server:
        try:
            assert server.stdout is not None
            assert any(line == "ready\n" for line in server.stdout)
            url, image = f"http://127.0.0.1:{port}/", picture(3)
            with urllib.request.urlopen(url, image.tobytes(), timeout=60) as answer:
                assert answer.read() == np.asarray(qdialect.load(model)(image)).tobytes()
            with pytest.raises(urllib.error.HTTPError) as refused:
                urllib.request.urlopen(url, b"short", timeout=60)
            assert refused.value.code == 400
            assert refused.value.read() == b"expected uint8[1, 8, 8, 3], but got 5 bytes"
        finally:
            server.communicate(timeout=DEADLINE)
