# SPDX-License-Identifier: Apache-2.0
"""world.py - run a function in several processes that form one process group.

A rank's failure ends the others; its traceback is the world's. Tests need no sleeps: every wait has a deadline. Ranks are forked, which spares each of
them the import of PyTorch; kolocc is imported in them only, with the environment of the test.
"""

import datetime
import multiprocessing as mp
import os
import sys
import tempfile
import traceback

import torch
import torch.distributed as dist

DEADLINE_S = float(os.environ.get("TEST_HANG_S", "900")) / 3


def _main(rank, size, function, store, backend, timeout_s, env, args, failures):
    os.environ.update(env)
    os.environ.update(RANK=str(rank), WORLD_SIZE=str(size))
    torch.set_num_threads(1)
    dist.set_debug_level_from_env()
    try:
        import kolocc.torch  # noqa: F401

        if backend:
            dist.init_process_group(backend, init_method=f"file://{store}", rank=rank, world_size=size,
                                    timeout=datetime.timedelta(seconds=timeout_s))
        function(rank, size, *args)
        if backend and dist.is_initialized():
            dist.destroy_process_group()
    except BaseException:
        failures.put((rank, traceback.format_exc()))
        failures.close()
        failures.join_thread()
        sys.stdout.flush()
        os._exit(1)


def run(function, size, *args, backend="kolo", timeout_s=300, env=None, lost=()):
    """function(rank, size, *args) in `size` processes. `lost`: ranks that may end in any way."""
    context = mp.get_context("fork")
    failures = context.Queue()
    with tempfile.TemporaryDirectory() as folder:
        processes = [
            context.Process(target=_main, args=(r, size, function, f"{folder}/store", backend, timeout_s, env or {}, args, failures))
            for r in range(size)
        ]
        for p in processes:
            p.start()
        try:
            _await(processes, failures, lost)
        finally:
            for p in processes:
                if p.is_alive():
                    p.kill()
                p.join()


def _await(processes, failures, lost):
    import multiprocessing.connection as connection
    import time

    end = time.monotonic() + DEADLINE_S
    waiting = {p.sentinel: (r, p) for r, p in enumerate(processes)}
    while waiting:
        ready = connection.wait(list(waiting), timeout=max(0, end - time.monotonic()))
        if not ready:
            raise AssertionError(f"ranks {sorted(r for r, _ in waiting.values())} are still running after {DEADLINE_S:.0f} s")
        for sentinel in ready:
            rank, process = waiting.pop(sentinel)
            process.join()
            if process.exitcode and rank not in lost:
                text = f"exit code {process.exitcode}"
                while not failures.empty():
                    origin, trace = failures.get()
                    if origin not in lost:
                        text = f"(rank {origin})\n{trace}"
                        break
                raise AssertionError(f"rank {rank} failed: {text}")
