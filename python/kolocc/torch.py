# SPDX-License-Identifier: Apache-2.0
"""PyTorch's process group backend "kolo".

    import torch.distributed as dist
    import kolocc.torch

    dist.init_process_group("kolo")

Importing this module registers the backend for CPU tensors; its extension is loaded when the first group is made. An extension is made for one minor
version of PyTorch and of Python: `python -m kolocc.torch` compiles it, with a C++ compiler, and keeps it in ~/.cache/kolo. Environment:

    KOLO_AS_NCCL          "1": the backend "nccl" is Kolo's, too, on CPU tensors (as_nccl.py)
    KOLO_TORCH_MODULE     file of the extension, instead of the compiled one
    KOLO_TORCH_MESSAGES   "tagged" (default): send and recv match by source and tag, in any order; "gloo": the same over gloo, with its threads and
                          connections; "kolo": in the group's order, tags are ignored
    KOLO_TORCH_PROGRESS   "lazy" (default): asynchronous operations run when somebody waits, or in the background after 100 microseconds;
                          "inline": inside the call that starts them
"""

from __future__ import annotations

import datetime
import hashlib
import importlib
import importlib.machinery
import importlib.util
import os
import pathlib
import shlex
import subprocess
import sys
import sysconfig
import tempfile
from types import ModuleType
from typing import Any

import torch
import torch.distributed as dist
from torch._C._distributed_c10d import Backend, Store

from ._paths import get_include, get_library

__all__ = ["compile_extension", "dump_fr_trace", "empty", "flight_record", "make_default", "monitored_barrier", "register"]

_SOURCE = pathlib.Path(__file__).resolve().parent / "_torch_source"
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


def _compiled() -> pathlib.Path:
    """Where the extension for this PyTorch, this Python and this version of the package is kept."""
    made_of = hashlib.sha256(f"{torch.__version__} {sysconfig.get_config_var('SOABI')} {_SOURCE}".encode())
    for file in sorted(_SOURCE.iterdir()) if _SOURCE.is_dir() else ():
        made_of.update(file.read_bytes())
    cache = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache")
    return cache / "kolo" / f"torch-{torch.__version__}-{made_of.hexdigest()[:16]}" / f"{_extension_name()}.so"


def compile_extension() -> str:
    """Compile the extension for the installed PyTorch, and return its file. Takes about a minute, and a C++20 compiler: $CXX, else c++.

    RuntimeError: the compiler is missing or fails; the message has its words. FileNotFoundError: this package was not installed.
    """
    from torch.utils import cpp_extension

    if not _SOURCE.is_dir():
        raise FileNotFoundError(f"kolocc.torch: {_SOURCE} is missing: in a clone, build the target kolo_torch instead")
    target, libraries = _compiled(), [get_library(), *cpp_extension.library_paths()]
    includes = [*cpp_extension.include_paths(), sysconfig.get_path("include")]
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent) as folder:
        made = os.path.join(folder, target.name)
        command = [*shlex.split(os.environ.get("CXX", "c++")), "-std=c++20", "-O2", "-fPIC", "-shared", "-fvisibility=hidden",
                   f"-DTORCH_EXTENSION_NAME={_extension_name()}", "-DTORCH_API_INCLUDE_EXTENSION_H", f"-I{get_include()}",
                   *(word for i in includes for word in ("-isystem", i)), str(_SOURCE / "kolo_backend.cc"), "-o", made,
                   *(word for path in libraries for word in (f"-L{path}", f"-Wl,-rpath,{path}")),
                   "-l:libkolo.so.0", "-ltorch", "-ltorch_cpu", "-ltorch_python", "-lc10"]
        try:
            done = subprocess.run(command, capture_output=True, text=True)
        except OSError as error:
            raise RuntimeError(f"kolocc.torch: there is no C++ compiler {command[0]} ({error.strerror}): install one, or name it in CXX") from error
        if done.returncode:
            raise RuntimeError(f"kolocc.torch: {shlex.join(command)} failed:\n{done.stderr}")
        os.replace(made, target)
    return str(target)


def _find() -> ModuleType:
    name, path = _extension_name(), os.environ.get("KOLO_TORCH_MODULE")
    if path:
        return _load_file(name, path)
    if importlib.util.find_spec(f"kolocc.{name}"):
        return importlib.import_module(f"kolocc.{name}")
    if _compiled().exists():
        return _load_file(name, str(_compiled()))
    raise ImportError(
        f"kolocc.torch: the extension for PyTorch {torch.__version__} was not compiled yet: `{sys.executable} -m kolocc.torch` does it "
        f"(in a clone: the target kolo_torch, with KOLO_TORCH_PYTHON={sys.executable})"
    )


def _load() -> ModuleType:
    """The extension, which is made for one minor version of PyTorch."""
    global _extension
    if _extension is None:
        _extension = _find()
    return _extension


def _choice(variable: str, default: str, choices: tuple[str, ...]) -> str:
    value = os.environ.get(variable, default)
    if value not in choices:
        raise ValueError(f"{variable}={value}: it is one of {', '.join(choices)}")
    return value


def _make_messages(store: Store, rank: int, size: int, timeout: datetime.timedelta) -> Backend:
    """gloo, which connects two ranks when the first of them has something to say: others take no part."""
    gloo: Any = dist.ProcessGroupGloo
    options = gloo._Options()
    options._devices = [gloo.create_default_device(lazy_init=True)]
    options._timeout = timeout
    backend: Backend = gloo(store, rank, size, options)
    return backend


def _make(store: Store, rank: int, size: int, timeout: datetime.timedelta, group: str, global_ranks: list[int], as_nccl: bool,
          enable_reconfigure: bool = False) -> Backend:
    messages = "kolo" if as_nccl else _choice("KOLO_TORCH_MESSAGES", "tagged", ("gloo", "kolo", "tagged"))
    backend: Backend = _load().create(
        store=store,
        rank=rank,
        size=size,
        timeout=timeout,
        group=group,
        global_ranks=global_ranks or list(range(size)),
        ordered_messages=messages == "kolo",
        tagged_messages=messages == "tagged",
        run_inline=_choice("KOLO_TORCH_PROGRESS", "lazy", ("lazy", "inline")) == "inline",
        as_nccl=as_nccl,
        enable_reconfigure=enable_reconfigure,  # since PyTorch 2.14
        make_messages=_make_messages if dist.is_gloo_available() else None,
    )
    return backend


def _create(opts: Any, pg_options: Any) -> Backend:
    if pg_options is not None and not isinstance(pg_options, Backend.Options):
        raise TypeError(f"kolo: pg_options is a {type(pg_options).__name__}; the backend takes none, or torch's Backend.Options")
    return _make(opts.store, opts.group_rank, opts.group_size, opts.timeout, str(opts.group_id), list(opts.global_ranks_in_group), False,
                 getattr(opts, "enable_reconfigure", False))


def register() -> None:
    """Make "kolo" a backend for CPU tensors, and "nccl" with KOLO_AS_NCCL=1. Done by importing this module; again: nothing happens."""
    if "KOLO" not in dist.Backend._plugins:
        dist.Backend.register_backend("kolo", _create, extended_api=True, devices=["cpu"])
    if _choice("KOLO_AS_NCCL", "0", ("0", "1")) == "1":
        from . import as_nccl

        as_nccl.install(_make)


def make_default() -> None:
    """Use Kolo for CPU tensors wherever no backend is named: init_process_group() and "cuda:nccl"."""
    register()
    dist.Backend.default_device_backend_map["cpu"] = "kolo"


def _backend(group: dist.ProcessGroup | None) -> Any:
    group = group or dist.distributed_c10d._get_default_group()
    backend = group._get_backend(torch.device("cpu"))
    backend = getattr(backend, "wrapped_pg", backend)
    if not isinstance(backend, _load().KoloBackend):
        raise ValueError(f"the group's backend for CPU tensors is {backend.name()}, not kolo")
    return backend


def flight_record(file: str, group: dist.ProcessGroup | None = None) -> None:
    """Write the group's last 1,024 operations, and where each stands, to `file` as JSON.

    In the name %h stands for the host, %p for the process, %r for the rank, %c for the group; ".%r" is added where it has no %r. Empty:
    KOLO_FLIGHT_RECORDER. Raises DistBackendError if the file cannot be written. Works also for a group that has failed.
    """
    _backend(group).flight_record(file)


def dump_fr_trace(collectives: bool = True, stack_traces: bool = True, only_active: bool = False) -> bytes:
    """The last operations of all groups of this process, in the format of PyTorch's flight recorder: a pickled dictionary.

    TORCH_FR_BUFFER_SIZE (or TORCH_NCCL_TRACE_BUFFER_SIZE) says how many are kept; unset: none. `python -m torch.distributed.flight_recorder.fr_trace`
    compares the dumps of all ranks. `collectives`: with the operations; `stack_traces`: with the lines that called them; `only_active`: without those
    that are over. The first failure of a group writes the same to a file of PyTorch's DebugInfoWriter.
    """
    dump: bytes = _load().dump_fr_trace(collectives, stack_traces, only_active)
    return dump


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
    native: Any = group
    native.monitored_barrier(timeout, wait_all_ranks=wait_all_ranks)


def empty(*size: int, dtype: torch.dtype | None = None) -> torch.Tensor:
    """A tensor in memory that other processes of the host can map: large collectives on it move data once. Not initialised."""
    shape = torch.Size(size[0] if len(size) == 1 and not isinstance(size[0], int) else size)
    dtype = dtype or torch.get_default_dtype()
    memory: torch.Tensor = _load().allocate(shape.numel() * dtype.itemsize)
    return memory.view(dtype).view(shape)


register()
if __name__ == "__main__":
    print(compile_extension())
