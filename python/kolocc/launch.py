# SPDX-License-Identifier: Apache-2.0
"""Ranks as processes of this machine."""

from __future__ import annotations

import multiprocessing
import multiprocessing.connection
import os
import traceback
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any

from ._core import Communicator, get_unique_id

_GRACE_S = 10.0  # for the other ranks, once one has failed


def _rank_main(fn: Callable[..., Any], rank: int, size: int, unique_id: bytes, args: tuple[Any, ...], result: Connection) -> None:
    os.environ["KOLO_LOCAL_RANK"] = os.environ["LOCAL_RANK"] = str(rank)
    try:
        with Communicator.init(size, rank, unique_id) as comm:
            value = fn(comm, *args)
        result.send((True, value))
    except BaseException:
        result.send((False, traceback.format_exc()))
        raise SystemExit(1) from None
    finally:
        result.close()


def run(fn: Callable[..., Any], nprocs: int, args: tuple[Any, ...] = ()) -> list[Any]:
    """Call fn(comm, *args) in nprocs fresh processes of this machine, and return a list of the results, by rank.

    fn, args and the results are pickled; fn stands at the top level of a module. When a rank fails, the others have 10 seconds to
    end, then they are terminated, and RuntimeError says which rank failed, with its traceback.
    """
    if nprocs < 1:
        raise ValueError(f"nprocs is {nprocs}; expected at least 1")
    context = multiprocessing.get_context("spawn")
    unique_id = get_unique_id()
    processes, pipes = [], []
    for rank in range(nprocs):
        here, there = context.Pipe(duplex=False)
        process = context.Process(target=_rank_main, args=(fn, rank, nprocs, unique_id, args, there), daemon=True)
        process.start()
        there.close()
        processes.append(process)
        pipes.append(here)
    return _collect(processes, pipes)


def _collect(processes: list[Any], pipes: list[Connection]) -> list[Any]:
    values: list[Any] = [None] * len(processes)
    waiting = {pipe: rank for rank, pipe in enumerate(pipes)}
    failure: str | None = None
    try:
        while waiting:
            ready = multiprocessing.connection.wait(list(waiting), None if failure is None else _GRACE_S)
            if not ready:
                break
            for pipe in ready:
                assert isinstance(pipe, Connection)
                rank = waiting.pop(pipe)
                try:
                    good, value = pipe.recv()
                except EOFError:
                    processes[rank].join()
                    good, value = False, f"it ended with exit code {processes[rank].exitcode}, without a result"
                if good:
                    values[rank] = value
                elif failure is None:
                    failure = f"rank {rank} of {len(processes)} failed:\n{value}"
    finally:
        for process in processes:
            if waiting or failure is not None:
                process.terminate()
            process.join()
        for pipe in pipes:
            pipe.close()
    if failure is not None:
        raise RuntimeError(failure)
    return values
