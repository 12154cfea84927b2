# SPDX-License-Identifier: Apache-2.0
"""messages_world.py - the functions that ranks run in messages_test.py."""
from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from typing import Any

import numpy

import kolocc
from world import both_have_joined

DONE = 9


def farm(comm: kolocc.Communicator) -> list[tuple[int, int]]:
    """Rank 0 takes ten results of each worker as they come, and then a word that it has finished."""
    results, status = [], kolocc.Status()
    value = numpy.zeros(1, "int64")
    if comm.rank:
        for i in range(10):
            comm.send(numpy.array([100 * comm.rank + i]), 0, tag=1)
        comm.send(b"", 0, tag=DONE)
    working = comm.size - 1 if comm.rank == 0 else 0
    while working:
        comm.recv(value, kolocc.ANY_SOURCE, tag=kolocc.ANY_TAG, status=status)
        working -= status.tag == DONE
        if status.tag != DONE:
            assert status.bytes == 8
            results.append((status.source, int(value[0])))
    assert [v for s, v in results if s == 1] == sorted(v for s, v in results if s == 1)  # a sender's messages keep their order
    comm.barrier()
    return sorted(results)


def sizes(comm: kolocc.Communicator) -> None:
    """Both directions at a time, small and large, the last first."""
    peer = 1 - comm.rank
    lengths = [0, 1, 1 << 14, (1 << 14) + 1, 1 << 18, (1 << 22) + 3]
    sent = [numpy.full(n, comm.rank + i, "uint8") for i, n in enumerate(lengths)]
    got = [numpy.full(n + 1, 99, "uint8") for n in lengths]
    requests = [comm.isend(x, peer, i) for i, x in enumerate(sent)]
    for i in reversed(range(len(lengths))):
        assert comm.irecv(got[i], peer, i).wait(300) == kolocc.Status(peer, i, lengths[i])
        assert (got[i][:-1] == peer + i).all() and got[i][-1] == 99
    for i, request in enumerate(requests):
        assert request.wait(300) == kolocc.Status(peer, i, lengths[i])
    comm.barrier()


def beside_collectives(comm: kolocc.Communicator) -> None:
    """A message proceeds while both ends are in other operations."""
    n, r = comm.size, comm.rank
    big = numpy.full(1 << 19, r, "float32")
    got = numpy.empty_like(big)
    send, receive = comm.isend(big, (r + 1) % n, 4), comm.irecv(got, (r - 1) % n, 4)
    x = numpy.ones(1000, "float32")
    for _ in range(20):
        comm.allreduce(x, op="max")
    assert receive.wait(300).source == (r - 1) % n and (got == (r - 1) % n).all()
    send.wait(300)
    comm.barrier()


def threads(comm: kolocc.Communicator) -> None:
    """Eight threads of a rank, each with a tag of its own."""
    peer, wrong = 1 - comm.rank, []

    def talk(tag: int) -> None:
        value = numpy.zeros(1, "int64")
        for i in range(50):
            request = comm.irecv(value, peer, tag)
            comm.send(numpy.array([tag * 1000 + i]), peer, tag=tag)
            request.wait(300)
            if value[0] != tag * 1000 + i:
                wrong.append((tag, i, int(value[0])))

    all_of_them = [threading.Thread(target=talk, args=(t,)) for t in range(8)]
    for t in all_of_them:
        t.start()
    for t in all_of_them:
        t.join()
    assert not wrong, wrong
    comm.barrier()


def too_long(comm: kolocc.Communicator) -> str:
    """The message is lost, and the communicator is none the worse."""
    text = ""
    if comm.rank == 0:
        comm.send(bytes(100), 1, tag=1)
    else:
        try:
            comm.recv(bytearray(10), 0, tag=1)
        except kolocc.InvalidUsage as error:
            text = str(error)
    peer, got = 1 - comm.rank, bytearray(1)
    request = comm.isend(b"x", peer, 2)
    comm.recv(got, peer, tag=2)
    request.wait()
    assert got == b"x"
    comm.barrier()
    return text


def many(comm: kolocc.Communicator) -> None:
    """Each rank sends and receives 200 messages of each other one, and waits for each."""
    got = numpy.zeros(1, "int64")
    for i in range(200):
        for peer in range(comm.size):
            if peer != comm.rank:
                comm.send(numpy.array([i]), peer, tag=3)
                comm.recv(got, peer, tag=3)
                assert got[0] == i


def leaves(comm: kolocc.Communicator) -> str:
    """Rank 1 destroys its communicator, and rank 0 waits for a message of it."""
    many(comm)
    comm.barrier()
    if comm.rank == 1:
        comm.destroy()
        return ""
    try:
        comm.recv(bytearray(1), 1, tag=7)
    except kolocc.RemoteError as error:
        return str(error)
    return "no failure"


def silence(comm: kolocc.Communicator) -> str:
    """Rank 1 sends nothing."""
    both_have_joined(comm)
    comm.set_timeout(0.2 if comm.rank == 0 else 0)
    try:
        comm.recv(bytearray(1), 1 - comm.rank, tag=7)
    except kolocc.KoloError as error:
        comm.abort()
        return str(error)
    return "no failure"


def abort(comm: kolocc.Communicator) -> None:
    """A thread of rank 0 aborts the communicator that both ranks wait in."""
    aborts = threading.Thread(target=comm.abort)
    request = comm.irecv(bytearray(1), 1 - comm.rank, 7)
    try:
        both_have_joined(comm)
        if comm.rank == 0:
            aborts.start()
        request.wait(300)
    except (kolocc.KoloError, ValueError) as error:
        assert not isinstance(error, kolocc.Timeout)
        if comm.rank == 0:
            aborts.join()
        else:
            comm.abort()  # a destroy would raise the same
        return
    raise AssertionError("the wait has ended without a failure")


def _rank(n: int, rank: int, unique_id: bytes, answers: Any) -> None:
    comm = kolocc.Communicator.init(n, rank, unique_id)
    many(comm)
    comm.barrier()
    if rank == n - 1:
        os.kill(os.getpid(), signal.SIGKILL)
    try:
        comm.recv(bytearray(1), kolocc.ANY_SOURCE, tag=kolocc.ANY_TAG)
        answers.put("no failure")
    except kolocc.RemoteError as error:
        answers.put(str(error))
    comm.abort()


def with_a_killed_rank(n: int) -> list[str]:
    """The last rank is killed, and the others wait for a message of anybody: their failures."""
    fresh = multiprocessing.get_context("spawn")
    answers, unique_id = fresh.Queue(), kolocc.get_unique_id()
    ranks = [fresh.Process(target=_rank, args=(n, r, unique_id, answers)) for r in range(n)]
    for p in ranks:
        p.start()
    texts = [answers.get(timeout=600) for _ in range(n - 1)]
    for p in ranks:
        p.join()
    return texts
