# SPDX-License-Identifier: Apache-2.0
"""PyTorch's process group backend "kolo".

    import torch.distributed as dist
    import kolocc.torch

    dist.init_process_group("kolo")

Importing this module registers the backend for CPU tensors; its extension is loaded when the first group is made. Environment:

    KOLO_TORCH_MODULE     file of the extension, instead of the one that was installed with this package
    KOLO_TORCH_MESSAGES   "gloo" (default): send and recv match by source and tag, in any order; "kolo": in the group's order, tags are ignored
    KOLO_TORCH_PROGRESS   "lazy" (default): asynchronous operations run when somebody waits, or in the background after 100 microseconds;
                          "inline": inside the call that starts them
"""

from __future__ import annotations

import datetime
import importlib
import importlib.machinery
import importlib.util
import os
from types import ModuleType
from typing import Any

import torch
import torch.distributed as dist

__all__ = ["empty", "flight_record", "make_default", "monitored_barrier", "register"]

_extension: ModuleType | None = None


def _extension_name() -> str:
    major, minor = torch.__version__.split(".")[:2]
    return f"_c10d_{major}_{minor}"


def _load_file(name: str, path: str) -> ModuleType:
    loader = importlib.machinery.ExtensionFileLoader(name, path)
    spec = importlib.util.spec_from_loader(name, loader, origin=path)
    if spec is None:
        raise ImportError(f"kolocc.torch: {path} is no extension module")
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module


def _load() -> ModuleType:
    """The extension, which is made for one minor version of PyTorch."""
    global _extension
    if _extension is None:
        name = _extension_name()
        path = os.environ.get("KOLO_TORCH_MODULE")
        try:
            _extension = _load_file(name, path) if path else importlib.import_module(f"kolocc.{name}")
        except ModuleNotFoundError as error:
            raise ImportError(
                f"kolocc.torch: there is no extension for PyTorch {torch.__version__} ({name}): build the target kolo_torch with this "
                f"Python as KOLO_TORCH_PYTHON, and name the file in KOLO_TORCH_MODULE"
            ) from error
    return _extension


def _choice(variable: str, default: str, choices: tuple[str, ...]) -> str:
    value = os.environ.get(variable, default)
    if value not in choices:
        raise ValueError(f"{variable}={value}: it is one of {', '.join(choices)}")
    return value


def _make_messages(store: dist.Store, rank: int, size: int, timeout: datetime.timedelta) -> dist.Backend:
    """gloo, which connects two ranks when the first of them has something to say: others take no part."""
    options = dist.ProcessGroupGloo._Options()
    options._devices = [dist.ProcessGroupGloo.create_default_device(lazy_init=True)]
    options._timeout = timeout
    return dist.ProcessGroupGloo(store, rank, size, options)


def _create(opts: Any, pg_options: Any) -> dist.Backend:
    if pg_options is not None and not isinstance(pg_options, dist.Backend.Options):
        raise TypeError(f"kolo: pg_options is a {type(pg_options).__name__}; the backend takes none, or torch's Backend.Options")
    messages = _choice("KOLO_TORCH_MESSAGES", "gloo", ("gloo", "kolo"))
    progress = _choice("KOLO_TORCH_PROGRESS", "lazy", ("lazy", "inline"))
    return _load().create(
        store=opts.store,
        rank=opts.group_rank,
        size=opts.group_size,
        timeout=opts.timeout,
        group=str(opts.group_id),
        global_ranks=list(opts.global_ranks_in_group) or list(range(opts.group_size)),
        ordered_messages=messages == "kolo",
        run_inline=progress == "inline",
        make_messages=_make_messages if dist.is_gloo_available() else None,
    )


def register() -> None:
    """Make "kolo" a backend for CPU tensors. Done by importing this module; again: nothing happens."""
    if "KOLO" not in dist.Backend._plugins:
        dist.Backend.register_backend("kolo", _create, extended_api=True, devices=["cpu"])


def make_default() -> None:
    """Use Kolo for CPU tensors wherever no backend is named: init_process_group() and "cuda:nccl"."""
    register()
    dist.Backend.default_device_backend_map["cpu"] = "kolo"


def _backend(group: dist.ProcessGroup | None) -> Any:
    group = group or dist.distributed_c10d._get_default_group()
    backend = group._get_backend(torch.device("cpu"))
    backend = getattr(backend, "wrapped_pg", backend)
    if backend.name() != "kolo":
        raise ValueError(f"the group's backend for CPU tensors is {backend.name()}, not kolo")
    return backend


def flight_record(file: str, group: dist.ProcessGroup | None = None) -> None:
    """Write the group's last 1,024 operations, and where each stands, to `file` as JSON.

    In the name %h stands for the host, %p for the process, %r for the rank, %c for the group; ".%r" is added where it has no %r. Empty:
    KOLO_FLIGHT_RECORDER. Raises DistBackendError if the file cannot be written. Works also for a group that has failed.
    """
    _backend(group).flight_record(file)


def monitored_barrier(
    group: dist.ProcessGroup | None = None, timeout: datetime.timedelta | None = None, wait_all_ranks: bool = False
) -> None:
    """As torch.distributed.monitored_barrier, which accepts gloo only: fails with the ranks that did not come within `timeout`."""
    if dist.distributed_c10d._rank_not_in_group(group):
        return
    group = group or dist.distributed_c10d._get_default_group()
    if timeout is None:
        timeout = _backend(group).options._timeout
    elif not isinstance(timeout, datetime.timedelta):
        timeout = datetime.timedelta(seconds=timeout)
    group.monitored_barrier(timeout, wait_all_ranks=wait_all_ranks)


def empty(*size: int, dtype: torch.dtype | None = None) -> torch.Tensor:
    """A tensor in memory that other processes of the host can map: large collectives on it move data once. Not initialised."""
    shape = torch.Size(size[0] if len(size) == 1 and not isinstance(size[0], int) else size)
    dtype = dtype or torch.get_default_dtype()
    return _load().allocate(shape.numel() * dtype.itemsize).view(dtype).view(shape)


register()
