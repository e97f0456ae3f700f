"""tools/zoo: inputs are the same whenever they are drawn, and files keep them."""

from pathlib import Path

import numpy as np
import pytest

from tools.zoo.flows.samples import CALIBRATION_SEEDS, TEST_SEEDS, drawn, load, save
from tools.zoo.networks.inputs import features, images, tokens
from tools.zoo.networks.network import Draw

DRAWS: dict[str, tuple[Draw, list[tuple[int, ...]]]] = {
    "images": (images(20), [(2, 3, 20, 20)]),
    "channels_last": (images(20, channels_last=True), [(2, 20, 20, 3)]),
    "features": (features(5, 7), [(2, 5, 7)]),
    "tokens": (tokens(50, 12, masked=True), [(2, 12), (2, 12)]),
}


@pytest.mark.parametrize("name", DRAWS)
def test_a_seed_always_gives_the_same_inputs_and_another_seed_others(name: str) -> None:
    draw, shapes = DRAWS[name]
    one, again, other = draw(2, 1), draw(2, 1), draw(2, 2)
    assert [array.shape for array in one] == shapes
    assert all(map(np.array_equal, one, again))
    assert not np.array_equal(one[0], other[0])


def test_images_have_the_spread_of_normalized_pixels() -> None:
    (found,) = images(64)(8, 0)
    assert found.dtype == np.float32
    assert 0.5 < float(found.std()) < 1.5


def test_a_mask_hides_the_end_alone_and_never_everything() -> None:
    for seed in range(20):
        ids, mask = tokens(50, 12, masked=True)(1, seed)
        assert 0 <= ids.min() <= ids.max() < 50
        assert mask[0, 0] == 1
        assert (np.diff(mask[0]) <= 0).all()


def test_tests_see_what_calibration_did_not() -> None:
    assert not set(CALIBRATION_SEEDS) & set(TEST_SEEDS)


def test_samples_are_read_as_they_were_written(tmp_path: Path) -> None:
    samples = drawn(tokens(50, 12, masked=True), range(12))
    save(tmp_path / "inputs.npz", samples)
    found = load(tmp_path / "inputs.npz")
    assert len(found) == 12
    for one, other in zip(found, samples, strict=True):
        assert all(map(np.array_equal, one, other))
