"""The random streams: the published test vectors of Philox, and independence of batching."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import kstest

from apeval.problem.draws import AGENT, NATURE, Draws, make_key, philox

# Known answers of Philox4x32-10 from the Random123 distribution (kat_vectors).
VECTORS = [
    ([0] * 4, [0] * 2, [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]),
    ([0xFFFFFFFF] * 4, [0xFFFFFFFF] * 2, [0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD]),
    (
        [0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344],
        [0xA4093822, 0x299F31D0],
        [0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1],
    ),
]


@pytest.mark.parametrize(("counter", "key", "expected"), VECTORS)
def test_philox_gives_the_published_vectors(
    counter: list[int], key: list[int], expected: list[int]
) -> None:
    words = philox(*[np.uint64(w) for w in counter + key])
    assert [int(w) for w in words] == expected


def test_an_episodes_numbers_do_not_depend_on_its_batch() -> None:
    key, ids = make_key(3), np.array([5, 2**33 + 1, 7, 8])
    together = Draws(key, ids, t=4)
    alone = Draws(key, ids[1:2], t=4)
    for purpose, k in ((NATURE, 3), (AGENT, 1), (NATURE, 2)):
        assert np.array_equal(together.stream(purpose, k)[1], alone.stream(purpose, k)[0])


def test_streams_differ_by_episode_time_purpose_and_call() -> None:
    draws = Draws(make_key(0), np.arange(2))
    numbers = [draws.stream(NATURE, 2), draws.stream(NATURE, 2), draws.stream(AGENT, 2)]
    numbers.append(draws.at(3).stream(NATURE, 2))
    flat = np.concatenate([n.ravel() for n in numbers])
    assert len(np.unique(flat)) == len(flat)


def test_uniforms_are_uniform_and_open() -> None:
    u = Draws(make_key(1), np.arange(50_000)).uniform(2)
    assert u.min() > 0.0
    assert u.max() < 1.0
    assert kstest(u[:, 0], "uniform").pvalue > 1e-4
    assert abs(float(np.corrcoef(u.T)[0, 1])) < 4.0 / np.sqrt(len(u))
