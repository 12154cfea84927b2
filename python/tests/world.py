# SPDX-License-Identifier: Apache-2.0
"""world.py - the functions that ranks run in tests: at the top level of a module, as kolocc.run needs them."""
from __future__ import annotations

import time

import numpy

import kolocc


def collectives(comm: kolocc.Communicator) -> None:
    """Each collective, on arrays whose right content is known."""
    n, r = comm.size, comm.rank
    x = numpy.full(1000, r + 1, "float64")
    out = numpy.empty_like(x)
    assert comm.allreduce(x, out) is out
    assert (out == n * (n + 1) / 2).all()
    assert (x == r + 1).all()
    assert comm.allreduce(x, op="max") is x
    assert (x == n).all()
    assert (comm.allreduce(numpy.full(3, r, "int32"), op="bor") == numpy.bitwise_or.reduce(range(n))).all()
    x = numpy.full(5, r, "float32")
    comm.broadcast(x, root=n - 1)
    assert (x == n - 1).all()
    every = numpy.empty(n * 2, "int64")
    comm.allgather(numpy.array([r, -r]), every)
    assert (every.reshape(n, 2)[:, 0] == range(n)).all()
    piece = numpy.empty(3, "float32")
    comm.reduce_scatter(numpy.repeat(numpy.arange(n, dtype="float32"), 3), piece)
    assert (piece == n * r).all()
    out = numpy.empty(n, "int32")
    comm.alltoall(numpy.arange(n, dtype="int32") + 10 * r, out)
    assert (out == 10 * numpy.arange(n) + r).all()
    got = comm.gather(numpy.array([r], "int16"), numpy.empty(n, "int16") if r == 1 % n else None, root=1 % n)
    assert got is None if r != 1 % n else (got == range(n)).all()
    one = numpy.empty(1, "complex64")
    comm.scatter(numpy.arange(n).astype("complex64") if r == 0 else None, one)
    assert one[0] == r
    comm.reduce(numpy.ones(4, "float32"), numpy.empty(4, "float32"), "sum", n - 1)
    comm.barrier()


def counts(comm: kolocc.Communicator) -> None:
    """Pieces of different sizes: rank r has r + 1 elements."""
    n, r = comm.size, comm.rank
    sizes = [i + 1 for i in range(n)]
    total = sum(sizes)
    every = numpy.empty(total, "int64")
    assert comm.allgatherv(numpy.full(r + 1, r), every, sizes) is every
    assert (every == numpy.repeat(range(n), sizes)).all()
    gaps = numpy.full(2 * total, -1, "int16")
    comm.allgatherv(numpy.full(r + 1, r, "int16"), gaps, counts=sizes, displs=[2 * sum(sizes[:i]) for i in range(n)])
    assert [list(gaps).count(i) for i in range(-1, n)] == [total, *sizes]
    piece = numpy.empty(r + 1, "float32")
    comm.reduce_scatterv(numpy.arange(total, dtype="float32"), piece, sizes)
    assert (piece == n * (sum(sizes[:r]) + numpy.arange(r + 1))).all()
    send = numpy.full(n * (r + 1), r, "complex128")
    recv = numpy.empty(total, "complex128")
    stream = kolocc.Stream()
    comm.alltoallv(send, [r + 1] * n, recv, sizes, stream=stream)
    stream.synchronize()
    assert (recv == numpy.repeat(range(n), sizes)).all()


def grow(comm: kolocc.Communicator) -> tuple[int, int, float]:
    """Two ranks of three become a pair; the third joins again."""
    pair = comm.split(0 if comm.rank < 2 else None)
    unique_id = numpy.zeros(128, "uint8")
    if comm.rank == 0:
        assert pair is not None
        unique_id[:] = numpy.frombuffer(pair.get_unique_id(), "uint8")
    comm.broadcast(unique_id)
    with (pair.grow(3, unique_id.tobytes() if comm.rank == 0 else None) if pair else kolocc.Communicator.grow_join(3, 2, unique_id.tobytes())) as all_of_them:
        x = all_of_them.allreduce(numpy.full(3, all_of_them.rank + 1, "float32"))
        return all_of_them.rank, all_of_them.size, float(x[0])


def bytearrays(comm: kolocc.Communicator) -> bytes:
    """Without NumPy."""
    data = bytearray([comm.rank] * 8)
    comm.allreduce(data)
    everything = bytearray(8 * comm.size)
    comm.allgather(data, everything)
    comm.allreduce(memoryview(everything).cast("I"), op="max")
    return bytes(everything)


def messages(comm: kolocc.Communicator) -> int:
    """A ring of messages, both directions in a group."""
    n, r = comm.size, comm.rank
    mine, theirs = numpy.array([r], "int64"), numpy.array([-1], "int64")
    with kolocc.group():
        comm.send(mine, (r + 1) % n)
        comm.recv(theirs, (r - 1) % n)
    return int(theirs[0])


def streams(comm: kolocc.Communicator) -> float:
    """Queued operations keep their buffers."""
    stream, start, end = kolocc.Stream(), kolocc.Event(), kolocc.Event()
    total = numpy.zeros(100, "float32")
    start.record(stream)
    for i in range(300):
        comm.allreduce(numpy.full(100, i, "float32"), total, stream=stream)
    end.record(stream)
    stream.synchronize()
    end.synchronize()
    assert stream.query() and end.query() and start.elapsed(end) >= 0
    return float(total[0])


def one_sided(comm: kolocc.Communicator) -> list[int]:
    """Every rank writes into the next one's window."""
    memory = kolocc.empty(comm.size, "int32")
    memory[:] = -1
    window = comm.register_window(memory)
    comm.barrier()
    comm.put_signal(numpy.array([comm.rank], "int32"), (comm.rank + 1) % comm.size, window, offset=4 * comm.rank)
    comm.wait_signal((comm.rank - 1) % comm.size)
    comm.barrier()
    return [int(v) for v in memory]


def split(comm: kolocc.Communicator) -> tuple[int, int, int]:
    """Even and odd ranks."""
    half = comm.split(comm.rank % 2)
    assert half is not None
    x = numpy.array([comm.rank], "int32")
    half.allreduce(x)
    assert comm.split(None if comm.rank else 0) is None or comm.rank == 0
    answer = half.rank, half.size, int(x[0])
    half.destroy()
    return answer


def fail_on_one(comm: kolocc.Communicator) -> None:
    """Rank 1 does not come."""
    if comm.rank == 1:
        raise LookupError("rank 1 has had enough")
    comm.allreduce(bytearray(8))


def both_have_joined(comm: kolocc.Communicator) -> None:
    """Rank 0 goes on when rank 1 has left its init, which an abort would fail."""
    if comm.rank == 1:
        comm.send(b"1", 0, tag=8)
    else:
        comm.recv(bytearray(1), 1, tag=8)


def timeout(comm: kolocc.Communicator) -> str:
    """Rank 1 never comes to the operation of rank 0."""
    both_have_joined(comm)
    comm.set_timeout(0.2)
    try:
        if comm.rank == 0:
            comm.allreduce(bytearray(8))
        deadline = time.monotonic() + 300
        while time.monotonic() < deadline:
            comm.async_error()
    except kolocc.RemoteError as error:
        comm.abort()  # a destroy would raise the same
        return f"{error.rank}: {error}"
    return "no failure"


def tensors(comm: kolocc.Communicator) -> float:
    """Tensors of PyTorch, by DLPack."""
    import torch

    x = torch.full((16,), comm.rank + 1, dtype=torch.bfloat16)
    comm.allreduce(x)
    return float(x[0])
