# SPDX-License-Identifier: Apache-2.0
"""The backend "nccl" of PyTorch, answered by Kolo on CPU tensors: for tests of programs that run with NCCL elsewhere.

KOLO_AS_NCCL=1 and `import kolocc.torch` (which the wheel does whenever PyTorch is imported) install it, also in a PyTorch that has NCCL. A group is as
ProcessGroupNCCL: named "nccl", 10 minutes until a timeout, messages in order and without tags, and errors in the same words for tensors and
operators that NCCL has not. Tensors are on the CPU: the program takes its device from a variable, and uses no torch.cuda.
"""

from __future__ import annotations

import atexit
import datetime
import sys
import warnings
from collections.abc import Callable
from typing import Any

import torch
import torch.distributed as dist
from torch._C._distributed_c10d import Backend, Store

from ._core import nccl_version

_NOT_DESTROYED = (
    "WARNING: destroy_process_group() was not called before program exit, which can leak resources. For more info, please see "
    "https://pytorch.org/docs/stable/distributed.html#shutdown"
)
_c10d: Any = dist.distributed_c10d
_make: Callable[..., Backend] | None = None


class _Group(type):
    """isinstance(): of a group that this class made, as of PyTorch's own."""

    def __instancecheck__(cls, x: Any) -> bool:
        return isinstance(x, Backend) and type(x).__name__ == "KoloBackend" and x.name() == "nccl"


class ProcessGroupNCCL(metaclass=_Group):
    """The name under which torch.distributed makes and recognises groups of NCCL."""

    class Options(Backend.Options):
        """As ProcessGroupNCCL.Options; streams and NCCL's own options have no effect."""

        def __init__(self, is_high_priority_stream: bool = False) -> None:
            super().__init__("nccl")
            self.is_high_priority_stream = is_high_priority_stream
            self.config: Any = None
            self.split_from: Backend | None = None
            self.split_color = 0

    def __new__(cls, store: Store, rank: int, size: int, options: Any = None) -> Any:
        """A backend of Kolo's with the manners of NCCL's."""
        options = options or cls.Options()
        if _make is None:
            raise RuntimeError("kolocc.as_nccl: not installed: set KOLO_AS_NCCL=1 and import kolocc.torch")
        return _make(store, rank, size, options._timeout, options.group_name, list(options.global_ranks_in_group), True)


def _version() -> tuple[int, int, int]:
    """As torch.cuda.nccl.version(), which torch.distributed puts into its messages."""
    code = nccl_version()
    return code // 10000, code // 100 % 100, code % 100


def _dump_trace(includeCollectives: bool | None = None, includeStackTraces: bool | None = None, onlyActive: bool | None = None) -> bytes:
    """As torch._C._distributed_c10d._dump_nccl_trace, with its names of arguments."""
    from .torch import dump_fr_trace

    return dump_fr_trace(includeCollectives is not False, includeStackTraces is not False, bool(onlyActive))


def _reset_trace() -> None:
    from .torch import _load

    _load().reset_fr_trace()


def _warn_at_exit() -> None:
    if dist.is_initialized() and dist.get_backend() == dist.Backend.NCCL:
        print(f"[rank{dist.get_rank()}]: {_NOT_DESTROYED}", file=sys.stderr)


def install(make: Callable[..., Backend]) -> None:
    """Replace PyTorch's class. Groups that exist already stay as they are; a second time nothing happens."""
    global _make
    if _make is not None:
        return
    if dist.is_initialized():
        warnings.warn("KOLO_AS_NCCL=1: the groups that exist already are not Kolo's: import kolocc.torch before", stacklevel=2)
    _make = make
    _c10d.ProcessGroupNCCL = ProcessGroupNCCL
    public: Any = dist  # a build without NCCL does not declare the name
    public.ProcessGroupNCCL = ProcessGroupNCCL
    _c10d._NCCL_AVAILABLE = True
    torch.cuda.nccl.version = _version
    native: Any = torch._C._distributed_c10d
    native._dump_nccl_trace, native._reset_fr_recording_nccl = _dump_trace, _reset_trace
    _c10d.default_pg_nccl_timeout = _c10d.default_pg_nccl_timeout or datetime.timedelta(minutes=10)
    dist.Backend.backend_capability[dist.Backend.NCCL] = ["cpu", "cuda"]
    atexit.register(_warn_at_exit)
