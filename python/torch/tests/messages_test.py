# SPDX-License-Identifier: Apache-2.0
"""messages_test.py - send and recv: tags, any source, any order, batches, and beside collectives."""

import datetime

import pytest
import torch
import torch.distributed as dist
import world


def value(n, rank):
    return torch.full((n,), float(rank))


def both_ways(rank, size):
    """Both send first, then receive: neither send waits for a receive."""
    peer = 1 - rank
    sent = dist.isend(value(1000, rank), peer)
    got = torch.zeros(1000)
    dist.recv(got, peer)
    sent.wait()
    assert torch.equal(got, value(1000, peer))


def tags_decide(rank, size):
    if rank == 0:
        works = [dist.isend(value(3, tag), 1, tag=tag) for tag in (7, 8, 9)]
    else:
        got = {tag: torch.zeros(3) for tag in (9, 7, 8)}
        works = [dist.irecv(t, 0, tag=tag) for tag, t in got.items()]
    for w in works:
        w.wait()
    if rank == 1:
        assert all(torch.equal(t, value(3, tag)) for tag, t in got.items()), got


def any_source(rank, size):
    if rank:
        dist.send(value(4, rank), 0, tag=3)
        return
    seen = set()
    for _ in range(size - 1):
        t = torch.zeros(4)
        source = dist.recv(t, tag=3)
        assert torch.equal(t, value(4, source))
        seen.add(source)
    assert seen == set(range(1, size))


def started_long_before(rank, size):
    """A receive that was started first is no obstacle to collectives, nor to the sender's first message."""
    got = torch.zeros(5)
    work = dist.irecv(got, 0) if rank == 1 else None
    for _ in range(3):
        dist.all_reduce(torch.ones(10))
    if rank == 0:
        dist.send(value(5, 42), 1)
    if work:
        work.wait()
        assert torch.equal(got, value(5, 42)) and work.is_completed()
    dist.barrier()


def batches(rank, size):
    left, right = (rank - 1) % size, (rank + 1) % size
    for n in (0, 1, 100_000):
        got = torch.zeros(n, 2)[:, 0]  # not contiguous
        ops = [dist.P2POp(dist.irecv, got, left), dist.P2POp(dist.isend, value(n, rank), right)]
        for w in dist.batch_isend_irecv(ops):
            w.wait()
        assert torch.equal(got, value(n, left))


def a_batch_meets_single_calls(rank, size):
    if rank == 0:
        for w in dist.batch_isend_irecv([dist.P2POp(dist.isend, value(3, 5), 1)]):
            w.wait()
    else:
        got = torch.zeros(3)
        dist.recv(got, 0)
        assert torch.equal(got, value(3, 5))


def strided_and_odd_types(rank, size):
    for dtype in (torch.int16, torch.complex64, torch.bool, torch.float8_e4m3fn):
        data = torch.ones(6, 2).to(dtype)[:, 1]
        if rank == 0:
            dist.send(data, 1)
        else:
            got = torch.zeros(6, 2).to(dtype)[:, 1]
            dist.recv(got, 0)
            assert torch.equal(got.to(torch.complex64), data.to(torch.complex64))


def bad_peers(rank, size):
    backend = dist.group.WORLD._get_backend(torch.device("cpu"))
    for peer in (-1, size, rank):
        with pytest.raises(ValueError, match="is not another rank of the group"):
            backend.send([torch.ones(1)], peer, 0)


def nobody_keeps_the_work(rank, size):
    """The memory of a message stays until it was taken."""
    if rank == 0:
        dist.isend(value(1 << 20, 3), 1, tag=1)
        junk = [value(1 << 20, 4) for _ in range(4)]
        dist.barrier()
        assert len(junk) == 4
    else:
        got = torch.zeros(1 << 20)
        dist.barrier()
        dist.recv(got, 0, tag=1)
        assert torch.equal(got, value(1 << 20, 3))
    dist.barrier()


def no_message_comes(rank, size):
    """A wait that is given up, and the message that comes later."""
    t = torch.zeros(1)
    if rank == 0:
        work = dist.irecv(t, 1, tag=2)
        with pytest.raises(RuntimeError, match="timed out after 20 ms"):
            work.wait(datetime.timedelta(milliseconds=20))
        dist.barrier()
        work.wait()
        assert t == 5
    else:
        dist.barrier()
        dist.send(value(1, 5), 0, tag=2)


def in_order(rank, size):
    """KOLO_TORCH_MESSAGES=kolo: in the group's order, batches as one."""
    t = value(1000, rank)
    if rank == 0:
        dist.send(t, 1)
        dist.recv(t, 1)
    else:
        got = torch.zeros(1000)
        dist.recv(got, 0)
        dist.send(got + 1, 0)
    assert rank or torch.equal(t, value(1000, 1))
    batches(rank, size)
    if rank == 0:
        with pytest.raises(RuntimeError, match="a receive from any source needs messages with tags"):
            dist.recv(torch.zeros(1))


def several(rank, size, functions):
    for f in functions:
        globals()[f](rank, size)


OF_TWO = ["both_ways", "tags_decide", "any_source", "started_long_before", "batches", "a_batch_meets_single_calls", "strided_and_odd_types", "bad_peers",
          "nobody_keeps_the_work", "no_message_comes"]
OF_FOUR = ["any_source", "batches", "started_long_before"]


def test_two_ranks():
    world.run(several, 2, OF_TWO)


def test_four_ranks():
    world.run(several, 4, OF_FOUR)


def test_over_gloo():
    world.run(several, 2, OF_TWO[:-2], env={"KOLO_TORCH_MESSAGES": "gloo"})
    world.run(several, 4, OF_FOUR, env={"KOLO_TORCH_MESSAGES": "gloo"})


def test_in_order():
    world.run(several, 2, ["in_order"], env={"KOLO_TORCH_MESSAGES": "kolo"})


def bad_choice(rank, size):
    with pytest.raises(ValueError, match="KOLO_TORCH_MESSAGES=mpi: it is one of gloo, kolo"):
        dist.init_process_group("kolo", store=dist.HashStore(), rank=0, world_size=1, timeout=datetime.timedelta(seconds=9))


def test_bad_choice():
    world.run(bad_choice, 1, backend=None, env={"KOLO_TORCH_MESSAGES": "mpi"})
