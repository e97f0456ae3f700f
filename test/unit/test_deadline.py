"""The bound on the time of other tests: it ends what runs on, whatever handlers there are, and leaves no timer."""

import contextlib
import itertools
import signal

import pytest
from deadline import deadline

SOON = 0.05


def _endless() -> None:
    for _ in itertools.count():
        pass


def test_what_ends_soon_passes() -> None:
    with deadline():
        sum(range(1000))
    assert signal.getitimer(signal.ITIMER_PROF) == (0, 0)


def test_what_runs_on_is_ended() -> None:
    before = signal.getsignal(signal.SIGPROF)
    with pytest.raises(pytest.fail.Exception, match=r"a loop must take at most 0\.05 s"), deadline("a loop", SOON):
        _endless()
    assert signal.getitimer(signal.ITIMER_PROF) == (0, 0)
    assert signal.getsignal(signal.SIGPROF) == before


def test_a_handler_of_exceptions_does_not_take_it() -> None:
    with pytest.raises(pytest.fail.Exception), deadline(seconds=SOON), contextlib.suppress(Exception):
        _endless()


def test_what_swallows_it_is_late_still() -> None:
    with pytest.raises(pytest.fail.Exception), deadline(seconds=SOON), contextlib.suppress(BaseException):
        _endless()


def test_an_error_of_the_block_is_not_hidden() -> None:
    with pytest.raises(ValueError, match="other"), deadline():
        raise ValueError("other")
