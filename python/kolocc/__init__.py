# SPDX-License-Identifier: Apache-2.0
"""Kolo for Python: collective communication on CPUs, and plans for GPU clusters.

Communication, on anything with the buffer protocol or __dlpack__:

    import kolocc, numpy

    with kolocc.init() as comm:                     # the job of kolo run, torchrun, mpirun, srun; or one rank
        x = numpy.full(1000, comm.rank, "float32")
        comm.allreduce(x)                           # in place; failures raise KoloError

Plans, without devices:

    plan = kolocc.plan("dgx-h100", hosts=128)
    plan.estimate("all_reduce", 256 << 20).time_us
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from ._core import (
    Communicator,
    Event,
    Request,
    SharedMemory,
    Stream,
    Window,
    device_count,
    get_device,
    get_unique_id,
    group_end,
    group_start,
    nccl_version,
    set_device,
)
from ._errors import InternalError, InvalidArgument, InvalidUsage, KoloError, RemoteError, SystemError_, Timeout
from ._messages import ANY_SOURCE, ANY_TAG, Status
from ._paths import get_cuda, get_include, get_library, get_nccl, get_tool
from .launch import run
from .plans import (
    Diff,
    Estimate,
    Explanation,
    LogAnswer,
    LogFinding,
    Machine,
    NicTraffic,
    Order,
    OrderLint,
    OrderRange,
    OrderRemark,
    OrderSetting,
    OrderVerdict,
    Plan,
    Topology,
    Traffic,
    Tuning,
    diff,
    estimate,
    explain,
    explain_bench,
    explain_log,
    machines,
    plan,
    topo,
)

__all__ = [
    "ANY_SOURCE", "ANY_TAG", "Communicator", "Diff", "Estimate", "Event", "Explanation", "InternalError", "InvalidArgument", "InvalidUsage", "KoloError", "LogAnswer",
    "LogFinding", "Machine", "NicTraffic", "Order", "OrderLint", "OrderRange", "OrderRemark", "OrderSetting", "OrderVerdict", "Plan", "RemoteError",
    "Request", "SharedMemory", "Status", "Stream", "SystemError_", "Timeout", "Topology", "Traffic", "Tuning", "Window", "device_count", "diff", "empty", "estimate", "explain", "explain_bench", "explain_log", "get_cuda", "get_device", "get_include", "get_library", "get_nccl", "get_tool",
    "get_unique_id", "group", "init", "machines", "nccl_version", "plan", "run", "set_device", "topo",
]


def init() -> Communicator:
    """Join the job that the environment describes: kolo run, torchrun, mpirun, srun; without one, a communicator of one rank.

    Raises InvalidUsage if the environment has half a description, and RemoteError if a rank does not come.
    """
    return Communicator.init_from_env()


@contextlib.contextmanager
def group() -> Iterator[None]:
    """Operations inside are issued together at the end, and have then finished, unless they were given a stream.

    Messages of both directions between two ranks, and operations of several communicators in one thread, need a group.
    """
    group_start()
    try:
        yield
    finally:
        group_end()


def empty(shape: int | tuple[int, ...], dtype: Any = "float32") -> Any:
    """A NumPy array in shared memory (SharedMemory), with undefined content: operations on it copy less within a host.

    shape: elements of each dimension. dtype: of NumPy.
    """
    import numpy

    kind = numpy.dtype(dtype)
    dims = (shape,) if isinstance(shape, int) else tuple(shape)
    count = 1
    for n in dims:
        count *= n
    return numpy.frombuffer(memoryview(SharedMemory(max(count * kind.itemsize, 1))), kind, count).reshape(dims)
