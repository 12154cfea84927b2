# SPDX-License-Identifier: Apache-2.0
"""Messages with tags: which receive gets which, requests, and failures."""
from __future__ import annotations

import gc
import threading

import pytest

import kolocc

numpy = pytest.importorskip("numpy")
import messages_world as world  # noqa: E402


@pytest.fixture
def alone():
    with kolocc.Communicator.init(1, 0, kolocc.get_unique_id()) as comm:
        yield comm


@pytest.mark.parametrize("n", [2, 3, 4])
def test_any_source_and_tags(n):
    assert kolocc.run(world.farm, n)[0] == sorted((w, w * 100 + i) for w in range(1, n) for i in range(10))


@pytest.mark.parametrize("disabled", ["0", "1"])
@pytest.mark.parametrize("copies", ["AUTO", "NEVER"])
def test_sizes(copies, disabled, monkeypatch):
    monkeypatch.setenv("KOLO_KERNEL_COPIES", copies)
    monkeypatch.setenv("NCCL_SHM_DISABLE", disabled)
    kolocc.run(world.sizes, 2)


@pytest.mark.parametrize("disabled", ["0", "1"])
def test_the_way_is_in_the_log(disabled, monkeypatch, tmp_path):
    monkeypatch.setenv("NCCL_SHM_DISABLE", disabled)
    monkeypatch.setenv("NCCL_DEBUG", "INFO")
    monkeypatch.setenv("NCCL_DEBUG_FILE", str(tmp_path / "log.%p"))
    kolocc.run(world.many, 2)
    log = "".join(f.read_text() for f in tmp_path.iterdir())
    assert ("rank 0: messages with tags to rank 1 go via SHM" in log) == (disabled == "0"), log


def test_both_ways_and_beside_collectives():
    kolocc.run(world.beside_collectives, 3)


def test_threads():
    kolocc.run(world.threads, 2)


def test_a_long_message_is_refused_alone():
    assert "has 100 bytes, the buffer of the receive 10" in kolocc.run(world.too_long, 2)[1]


def test_a_rank_that_leaves():
    texts = kolocc.run(world.leaves, 2)
    assert "rank 1 has left, and sends nothing more" in texts[0]


def test_a_killed_rank():
    answers = world.with_a_killed_rank(3)
    assert all("rank 2" in a for a in answers), answers


def test_a_timeout_fails_the_communicator():
    answer = kolocc.run(world.silence, 2)
    assert "no message with tag 7 has come from rank 1: nothing moved for 0.2 s" in answer[0] and "tag 7" in answer[1], answer


def test_abort_ends_waits():
    kolocc.run(world.abort, 2)


def test_to_oneself(alone):
    big, got = bytes(range(256)) * 4096, bytearray(1 << 20)
    request = alone.isend(big, 0, 3)
    assert request.test() is None
    status = kolocc.Status()
    assert alone.recv(got, kolocc.ANY_SOURCE, tag=kolocc.ANY_TAG, status=status) is got
    assert (status.source, status.tag, status.bytes) == (0, 3, 1 << 20) and got == big
    assert request.wait() == kolocc.Status(0, 3, 1 << 20) == request.test()


def test_requests(alone):
    receive = alone.irecv(bytearray(4))
    with pytest.raises(kolocc.Timeout, match="no message has come in time") as timeout:
        receive.wait(0.01)
    assert isinstance(timeout.value, TimeoutError)
    assert receive.cancel() and not receive.cancel()
    with pytest.raises(ValueError, match="was cancelled"):
        receive.wait()
    assert alone.iprobe() is None
    send = alone.isend(b"abcd", 0, 5)
    assert alone.iprobe(0, 5) == kolocc.Status(0, 5, 4) and alone.iprobe(tag=6) is None
    with pytest.raises(ValueError, match="cannot be cancelled"):
        alone.isend(bytes(1 << 20), 0, 9).cancel()
    send.wait(), alone.recv(bytearray(4), 0, tag=5)
    del receive, send  # a request that nobody holds: its memory stays until the message was taken
    gc.collect()
    got = bytearray(1 << 20)
    assert alone.irecv(got, 0, 9).wait(60).bytes == 1 << 20


def test_arguments(alone):
    for call in (lambda: alone.isend(b"1", 0, -1), lambda: alone.isend(b"1", 1), lambda: alone.isend(b"1", kolocc.ANY_SOURCE),
                 lambda: alone.irecv(bytearray(1), 5), lambda: alone.irecv(bytearray(1), 0, -2), lambda: alone.irecv(b"read-only"),
                 lambda: alone.send(b"1", 0, tag=1, stream=kolocc.Stream()), lambda: alone.recv(bytearray(1), 0, status=kolocc.Status())):
        with pytest.raises(ValueError):
            call()
    with pytest.raises(TypeError):
        kolocc.Request()


def test_requests_outlive_their_communicator():
    comm = kolocc.Communicator.init(1, 0, kolocc.get_unique_id())
    requests = [comm.irecv(bytearray(4)), comm.isend(bytes(1 << 20), 0, 1)]
    comm.abort()
    for r in requests:
        with pytest.raises(kolocc.InvalidArgument, match="no request, or its communicator has ended"):
            r.wait()
    threading.Thread(target=requests.clear).start()
