# SPDX-License-Identifier: Apache-2.0
"""Communicators and their operations."""
from __future__ import annotations

import array
import gc
import importlib.util
import threading

import pytest

import kolocc

numpy = pytest.importorskip("numpy")
import world  # noqa: E402


@pytest.fixture
def alone():
    with kolocc.Communicator.init(1, 0, kolocc.get_unique_id(), name="alone") as comm:
        yield comm


@pytest.mark.parametrize("n", [1, 2, 3])
def test_collectives(n):
    kolocc.run(world.collectives, n)


@pytest.mark.parametrize("n", [1, 3])
def test_counts(n):
    kolocc.run(world.counts, n)


def test_grow():
    assert kolocc.run(world.grow, 3) == [(0, 3, 6.0), (1, 3, 6.0), (2, 3, 6.0)]


def test_bytearrays():
    assert kolocc.run(world.bytearrays, 2) == [bytes([1] * 16)] * 2


def test_messages():
    assert kolocc.run(world.messages, 3) == [2, 0, 1]


def test_streams():
    assert kolocc.run(world.streams, 2) == [598.0, 598.0]


def test_one_sided():
    assert kolocc.run(world.one_sided, 3) == [[-1, -1, 2], [0, -1, -1], [-1, 1, -1]]


def test_split():
    assert kolocc.run(world.split, 3) == [(0, 2, 2), (0, 1, 1), (1, 2, 2)]


def test_a_rank_that_fails_is_named():
    with pytest.raises(RuntimeError, match=r"rank \d of 3 failed(.|\n)*") as failure:
        kolocc.run(world.fail_on_one, 3)
    assert "had enough" in str(failure.value) or "RemoteError" in str(failure.value)


@pytest.mark.skipif(not getattr(importlib.util.find_spec("torch"), "origin", None), reason="PyTorch is not installed") # python/torch/ is none
def test_tensors():
    assert kolocc.run(world.tensors, 2) == [3.0, 3.0]


def test_all_in_one_process():
    comms = kolocc.Communicator.init_all(3)
    arrays = [numpy.full(10, c.rank + 1, "float32") for c in comms]
    with kolocc.group():
        for comm, x in zip(comms, arrays):
            comm.allreduce(x)
    assert all((x == 6).all() for x in arrays)
    for comm in comms:
        comm.abort()


def test_threads():
    unique_id, results = kolocc.get_unique_id(), [None, None]

    def rank(r):
        with kolocc.Communicator.init(2, r, unique_id) as comm:
            results[r] = int(comm.allreduce(numpy.array([r + 1]))[0])

    threads = [threading.Thread(target=rank, args=(r,)) for r in range(2)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert results == [3, 3]


# ---- buffers ----

def test_types_of_the_standard_library(alone):
    assert alone.allreduce(array.array("d", [1.5])) == array.array("d", [1.5])
    assert alone.allreduce(bytearray(b"abc")) == b"abc"
    assert alone.broadcast(bytearray(b"abc")) == b"abc"


def test_dtype_names_elements(alone):
    x = numpy.array([0x3F80, 0x4000], "uint16")  # 1 and 2
    alone.allreduce(x, dtype="bfloat16", op="prod")
    assert list(x) == [0x3F80, 0x4000]
    with pytest.raises(ValueError, match="cannot be reduced"):
        alone.allreduce(x)
    with pytest.raises(ValueError, match="not whole elements"):
        alone.allreduce(bytearray(3), dtype="float32")
    with pytest.raises(ValueError, match='expected "int8"'):
        alone.allreduce(x, dtype="float31")


@pytest.mark.parametrize("call, words", [
    (lambda c: c.allreduce(numpy.ones((4, 4))[:, ::2]), "not contiguous"),
    (lambda c: c.allreduce(b"abcd"), "read-only"),
    (lambda c: c.allreduce(numpy.ones(3), numpy.ones(4)), "24 bytes and recv 32"),
    (lambda c: c.allreduce(numpy.ones(2, "float32"), numpy.ones(1, "float64")), "different types"),
    (lambda c: c.allgather(numpy.ones(3), numpy.ones(4)), "a piece like send"),
    (lambda c: c.reduce_scatter(numpy.ones(3), numpy.ones(4)), "a piece like recv"),
    (lambda c: c.alltoall(numpy.ones(3), numpy.ones(4)), "a piece for each rank"),
    (lambda c: c.allgatherv(numpy.ones(3), numpy.ones(4), [3, 1]), "counts has 2 numbers; expected one for each of 1"),
    (lambda c: c.allgatherv(numpy.ones(3), numpy.ones(4), [-1]), "counts has a -1"),
    (lambda c: c.allgatherv(numpy.ones(3), numpy.ones(4), [3], [2]), "3 elements of rank 0 from 2 on are not inside a buffer of 4"),
    (lambda c: c.allgatherv(numpy.ones(3), numpy.ones(4), [4]), "as many elements as this rank's"),
    (lambda c: c.allgatherv(numpy.ones(3), numpy.ones(4, "float32"), [3]), "elements of one type"),
    (lambda c: c.reduce_scatterv(numpy.ones(4), numpy.ones(3), [3]), "send to hold all elements"),
    (lambda c: c.alltoallv(numpy.ones(4), [5], numpy.ones(4), [4]), "send_counts: the 5 elements"),
    (lambda c: c.alltoallv(numpy.ones(4), [4], numpy.ones(4), [4], recv_displs=[1]), "recv_counts: the 4 elements"),
    (lambda c: c.grow(1), "nranks is 1; expected 2"),
    (lambda c: c.grow(2, b"short"), "5 bytes"),
    (lambda c: c.allreduce(numpy.ones(3), op="xor"), "expected sum, prod"),
    (lambda c: c.broadcast(numpy.ones(3), root=1), "root is 1; expected 0 to 0"),
    (lambda c: c.gather(numpy.ones(3)), "the root needs recv"),
    (lambda c: c.scatter(None, numpy.ones(3)), "the root needs send"),
    (lambda c: kolocc.Communicator.init(2, 2, kolocc.get_unique_id()), "rank is 2"),
    (lambda c: kolocc.Communicator.init(1, 0, b"short"), "5 bytes"),
    (lambda c: c.set_timeout(-1), "seconds is -1"),
])
def test_bad_arguments(alone, call, words):
    with pytest.raises(ValueError, match=words):
        call(alone)
    alone.barrier()  # nothing was issued


@pytest.mark.parametrize("call, words", [
    (lambda c: c.allreduce(object()), "neither the buffer protocol"),
    (lambda c: c.allreduce(), "missing the argument 'send'"),
    (lambda c: c.allreduce(bytearray(1), color=3), "unexpected keyword argument 'color'"),
    (lambda c: c.allreduce(bytearray(1), send=bytearray(1)), "multiple values"),
    (lambda c: c.barrier(None), "at most 0 positional"),
    (lambda c: c.allreduce(bytearray(1), stream=3), "no Stream"),
    (lambda c: c.put_signal(b"", 0, 3), "no Window"),
    (lambda c: kolocc.Communicator(), "cannot create"),
])
def test_wrong_types(alone, call, words):
    with pytest.raises(TypeError, match=words):
        call(alone)


def test_destroyed(alone):
    alone.destroy()
    alone.destroy()
    with pytest.raises(ValueError, match="destroyed"):
        alone.barrier()
    assert (alone.rank, alone.size) == (0, 1)


def test_an_exception_aborts():
    with pytest.raises(KeyError):
        with kolocc.Communicator.init(1, 0, kolocc.get_unique_id()) as comm:
            raise KeyError
    with pytest.raises(ValueError):
        comm.barrier()


def test_errors_carry_the_sentence():
    with pytest.raises(kolocc.InvalidUsage) as failure:
        with kolocc.Communicator.init(1, 0, kolocc.get_unique_id()) as comm:
            comm.signal(0)
    assert failure.value.result == 5 and failure.value.rank == 0 and "window" in failure.value.message


def test_timeouts():
    zero, one = kolocc.run(world.timeout, 2)
    assert zero.startswith("0: ") and one.startswith("1: ")


def test_memory_is_released(alone):
    x = bytearray(64)
    stream = kolocc.Stream()
    alone.allreduce(x, stream=stream)
    with pytest.raises(BufferError):
        x.extend(b"more")
    stream.synchronize()
    x.extend(b"more")
    alone.allreduce(x)
    x.extend(b"more")
    with kolocc.group():
        alone.allreduce(x)
    x.extend(b"more")


def test_shared_memory_outlives_its_name():
    x = kolocc.empty((3, 4), "int16")
    x[:] = 7
    gc.collect()
    assert x.shape == (3, 4) and (x == 7).all()
    assert len(kolocc.SharedMemory(0)) == 0


def test_pre_mul_sum(alone):
    op = alone.create_pre_mul_sum(0.5, "float32")
    assert (alone.allreduce(numpy.full(4, 3, "float32"), op=op) == 1.5).all()
    alone.destroy_op(op)


def test_group_end_alone():
    with pytest.raises(ValueError, match="without group_start"):
        kolocc._core.group_end()


def test_versions():
    assert kolocc.nccl_version() > 20000 and kolocc.device_count() >= 1 and kolocc.get_device() == 0
