# SPDX-License-Identifier: Apache-2.0
"""rank.py - one rank of a measurement: `measure(job)` makes the group of one backend and times rows; rank 0 returns the figures.

A backend is a class with the collectives as methods. The figure of a row is the time per call of the slowest rank, in seconds; -1: the backend has no such call.
"""

import contextlib
import ctypes
import statistics
import time

import torch

BLOCK_S = 0.03  # a block of calls takes about this long
IN_FLIGHT = 8
CORES_APART = "cores apart"  # ns
DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16}


class Unsupported(Exception):
    """The backend has no such call."""


# ---- backends ----


class Torch:
    """A backend of torch.distributed: gloo, kolo, fake."""

    def __init__(self, job, rank):
        import torch.distributed as dist

        self.dist, self.rank, self.size = dist, rank, job["ranks"]
        if job["backend"] == "fake":
            from torch.testing._internal.distributed.fake_pg import FakeStore

            dist.init_process_group("fake", store=FakeStore(), rank=rank, world_size=self.size)
            return
        if job["backend"] != "gloo":
            import kolocc.torch  # noqa: F401
        dist.init_process_group("gloo" if job["backend"] == "gloo" else "kolo", init_method=f"file://{job['folder']}/store", rank=rank, world_size=self.size)

    def all_reduce(self, t, **way):
        return self.dist.all_reduce(t, **way)

    def all_gather(self, out, part, **way):
        return self.dist.all_gather_single(out, part, **way)

    def reduce_scatter(self, part, whole, **way):
        return self.dist.reduce_scatter_single(part, whole, **way)

    def all_to_all(self, out, whole, **way):
        return self.dist.all_to_all_single(out, whole, **way)

    def broadcast(self, t, **way):
        return self.dist.broadcast(t, 0, **way)

    def send(self, t, peer):
        self.dist.send(t, peer)

    def recv(self, t, peer):
        self.dist.recv(t, peer)

    def shift(self, out, t):
        """A batch of two messages: to the next rank, from the one before."""
        ops = [self.dist.P2POp(self.dist.isend, t, (self.rank + 1) % self.size), self.dist.P2POp(self.dist.irecv, out, (self.rank - 1) % self.size)]
        for work in self.dist.batch_isend_irecv(ops):
            work.wait()

    def barrier(self):
        self.dist.barrier()

    def slowest(self, seconds):
        t = torch.tensor([seconds], dtype=torch.float64)
        self.dist.all_reduce(t, self.dist.ReduceOp.MAX)
        return float(t)

    def end(self):
        self.dist.destroy_process_group()


class Kolocc(Torch):
    """Kolo without torch.distributed: the package kolocc, whose calls cost 0.2 us more than those in C."""

    def __init__(self, job, rank):
        import kolocc

        super().__init__(job, rank)
        ids = [kolocc.get_unique_id() if rank == 0 else None]
        self.dist.broadcast_object_list(ids)
        self.comm = kolocc.Communicator.init(self.size, rank, ids[0])

    def all_reduce(self, t, **way):
        self._now(way)
        self.comm.allreduce(t)

    def all_gather(self, out, part, **way):
        self._now(way)
        self.comm.allgather(part, out)

    def reduce_scatter(self, part, whole, **way):
        self._now(way)
        self.comm.reduce_scatter(whole, part)

    def all_to_all(self, out, whole, **way):
        self._now(way)
        self.comm.alltoall(whole, out)

    def broadcast(self, t, **way):
        self._now(way)
        self.comm.broadcast(t)

    def send(self, t, peer):
        self.comm.send(t, peer)

    def recv(self, t, peer):
        self.comm.recv(t, peer)

    def shift(self, out, t):
        raise Unsupported

    @staticmethod
    def _now(way):
        if way:
            raise Unsupported

    def end(self):
        self.comm.destroy()
        super().end()


class ShmKernel(Torch):
    """shm_kernel.c: sums up to 1 MiB and nothing else. gloo makes its barriers."""

    def __init__(self, job, rank):
        super().__init__(dict(job, backend="gloo"), rank)
        self.kernel = ctypes.CDLL(job["shm"])
        if self.kernel.shm_join(f"{job['shared']}/segment".encode(), rank, self.size):
            raise SystemExit("bench/torch: shm_kernel cannot map its segment")
        self.calls = {torch.float32: self.kernel.shm_sum_float, torch.bfloat16: self.kernel.shm_sum_bfloat16}

    def all_reduce(self, t, **way):
        if way or t.nbytes > 1 << 20:
            raise Unsupported
        self.calls[t.dtype](ctypes.c_void_p(t.data_ptr()), ctypes.c_size_t(t.numel()))

    def _none(self, *_, **__):
        raise Unsupported

    all_gather = reduce_scatter = all_to_all = broadcast = send = recv = shift = _none


class Mpi:
    """mpi4py on NumPy's view of the tensors, for orientation: PyTorch's wheels have no MPI backend."""

    def __init__(self, job, rank):
        from mpi4py import MPI

        self.mpi, self.comm = MPI, MPI.COMM_WORLD
        self.rank, self.size = self.comm.rank, self.comm.size

    def _view(self, t, way):
        if way or t.dtype != torch.float32:
            raise Unsupported
        return [ctypes_view(t), self.mpi.FLOAT]

    def all_reduce(self, t, **way):
        self.comm.Allreduce(self.mpi.IN_PLACE, self._view(t, way))

    def all_gather(self, out, part, **way):
        self.comm.Allgather(self._view(part, way), self._view(out, way))

    def reduce_scatter(self, part, whole, **way):
        self.comm.Reduce_scatter_block(self._view(whole, way), self._view(part, way))

    def all_to_all(self, out, whole, **way):
        self.comm.Alltoall(self._view(whole, way), self._view(out, way))

    def broadcast(self, t, **way):
        self.comm.Bcast(self._view(t, way))

    def send(self, t, peer):
        self.comm.Send(self._view(t, {}), peer)

    def recv(self, t, peer):
        self.comm.Recv(self._view(t, {}), peer)

    def shift(self, out, t):
        self.comm.Sendrecv(self._view(t, {}), (self.rank + 1) % self.size, 0, self._view(out, {}), (self.rank - 1) % self.size, 0)

    def barrier(self):
        self.comm.Barrier()

    def slowest(self, seconds):
        return self.comm.allreduce(seconds, self.mpi.MAX)

    def end(self):
        pass


def ctypes_view(t):
    """The tensor's memory as a buffer, without a copy and without NumPy."""
    return (ctypes.c_char * t.nbytes).from_address(t.data_ptr())


KINDS = {"kolo": Torch, "gloo": Torch, "fake": Torch, "kolocc": Kolocc, "shm-kernel": ShmKernel, "mpi4py": Mpi}


# ---- rows ----


def collective(b, op, n, dtype):
    """The function that starts a call on `n` elements in the larger buffer, and one that says whether a call's result is right."""
    small, whole = torch.ones(max(1, n // b.size), dtype=dtype), torch.ones(max(1, n // b.size) * b.size, dtype=dtype)
    t = torch.zeros(n, dtype=dtype)
    out = torch.zeros_like(whole)
    if op == "all_reduce":

        def right():
            t.fill_(b.rank + 1)
            b.all_reduce(t)
            return bool((t == b.size * (b.size + 1) / 2).all())

        return lambda **way: b.all_reduce(t, **way), right
    if op == "broadcast":
        t.fill_(b.rank)
        return lambda **way: b.broadcast(t, **way), lambda: bool((t == 0).all())
    if op == "all_gather":
        return lambda **way: b.all_gather(out, small, **way), lambda: bool((out == 1).all())
    if op == "reduce_scatter":
        return lambda **way: b.reduce_scatter(small, whole, **way), lambda: bool((small == b.size).all())
    return lambda **way: b.all_to_all(out, whole, **way), lambda: bool((out == 1).all())


def message(b, op, n, dtype):
    """A ping-pong between pairs of ranks, of which one direction counts, or a batch of two messages."""
    t, out = torch.full((n,), float(b.rank), dtype=dtype), torch.zeros(n, dtype=dtype)
    if op == "batch":
        return lambda: b.shift(out, t), lambda: bool((out == (b.rank - 1) % b.size).all())
    peer = b.rank ^ 1

    def ping_pong():
        for turn in range(2):
            b.send(t, peer) if turn == b.rank & 1 else b.recv(out, peer)

    return ping_pong, lambda: bool((out == peer).all())


def calls_of(b, row):
    """Of a row: a function that makes `count` calls, `count` in one function, and the check."""
    dtype = DTYPES[row["dtype"]]
    n = row["bytes"] // dtype.itemsize
    if row["op"] in ("send_recv", "batch"):
        call, right = message(b, row["op"], n, dtype)
        return call, 2 if row["op"] == "send_recv" else 1, right
    call, right = collective(b, row["op"], n, dtype)
    if row["mode"] == "sync":
        return call, 1, right
    if row["mode"] == "async":
        return lambda: call(async_op=True).wait(), 1, right
    several = [collective(b, row["op"], n, dtype)[0] for _ in range(IN_FLIGHT)]

    def in_flight():
        for work in [one(async_op=True) for one in several]:
            work.wait()

    return in_flight, IN_FLIGHT, right


def timed(b, call, of=1):
    """Seconds per call of the slowest rank, where a `call` makes `of` of them."""
    for _ in range(3):
        call()
    b.barrier()
    begun = time.perf_counter()
    call()
    count = max(3, min(1000, int(BLOCK_S / max(1e-7, b.slowest(time.perf_counter() - begun)))))
    b.barrier()
    begun = time.perf_counter()
    for _ in range(count):
        call()
    return b.slowest((time.perf_counter() - begun) / count / of)


def time_row(b, row, checked):
    try:
        call, of, right = calls_of(b, row)
        call()
    except Unsupported:
        return -1
    seconds = timed(b, call, of)
    if checked and not right():
        raise SystemExit(f"bench/torch: wrong result of {name_of(row)} at rank {b.rank}")
    return seconds


def name_of(row):
    return f"{row['op']} {row['dtype']} {row['bytes']} {row['mode']}"


# ---- steps of models ----


def mlp(hidden=1024):
    """17 MB of parameters."""
    torch.manual_seed(1)
    return torch.nn.Sequential(*(torch.nn.Linear(hidden, hidden) for _ in range(4))), torch.randn(4, hidden)


def transformer(width=320, layers=8):
    """Ten million parameters."""
    torch.manual_seed(1)
    layer = torch.nn.TransformerEncoderLayer(width, 8, 4 * width, dropout=0.0, batch_first=True)
    return torch.nn.TransformerEncoder(layer, layers, enable_nested_tensor=False), torch.randn(1, 16, width)


def backward(m, x):
    def step():
        m.zero_grad()
        m(x).sum().backward()

    return step


def ddp(make, bucket_mib):
    from torch.nn.parallel import DistributedDataParallel

    m, x = make()
    return backward(DistributedDataParallel(m, bucket_cap_mb=bucket_mib), x)


def fsdp2(size):
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    m, x = transformer()
    mesh = init_device_mesh("cpu", (size,))
    for layer in m.layers:
        fully_shard(layer, mesh=mesh)
    return backward(fully_shard(m, mesh=mesh), x)


def decode(b, bytes_, hidden=1024, inner=256, layers=2):
    """One token of a batch through layers whose two products are spread over ranks, in bfloat16: two all-reduces of `bytes_` a layer."""
    up, down = torch.randn(hidden, inner // b.size).bfloat16(), torch.randn(inner // b.size, hidden).bfloat16()
    x = torch.randn(bytes_ // 2 // hidden, hidden).bfloat16()

    @torch.no_grad()
    def step():
        h = x
        for _ in range(2 * layers):
            h = (h @ up) @ down
            b.all_reduce(h)
            h = h / h.norm()

    return step


def percentiles(b, step, tokens=200):
    """Median and 99th percentile of a token, at the slowest rank."""
    for _ in range(5):
        step()
    times = []
    b.barrier()
    for _ in range(tokens):
        begun = time.perf_counter()
        step()
        times.append(time.perf_counter() - begun)
    times.sort()
    return b.slowest(statistics.median(times)), b.slowest(times[int(len(times) * 0.99)])


def time_steps(b, kind):
    figures = {}
    if kind in ("kolo", "gloo"):
        figures["DDP step, MLP of 17 MB"] = timed(b, ddp(mlp, 25))
        for bucket in (1, 25):
            figures[f"DDP step, transformer, buckets of {bucket} MiB"] = timed(b, ddp(transformer, bucket))
        figures["FSDP2 step, transformer"] = timed(b, fsdp2(b.size))
    if kind in ("kolo", "gloo", "shm-kernel"):
        for bytes_ in (16 << 10, 64 << 10, 256 << 10, 1 << 20):
            median, late = percentiles(b, decode(b, bytes_))
            figures[f"decode, all-reduces of {bytes_ >> 10} KiB, p50"] = median
            figures[f"decode, all-reduces of {bytes_ >> 10} KiB, p99"] = late
    return figures


# ---- progress beside threads that compute ----


def time_overlap(b):
    """Products on all of torch's threads, all-reduces of 4 MiB, and both at once: the gain of overlapping, or its cost."""
    x, buffers = torch.randn(512, 512), [torch.ones(1 << 20) for _ in range(4)]

    def compute():
        for _ in range(8):
            x @ x

    def communicate():
        for work in [b.all_reduce(t, async_op=True) for t in buffers]:
            work.wait()

    def both():
        works = [b.all_reduce(t, async_op=True) for t in buffers]
        compute()
        for work in works:
            work.wait()

    return {name: timed(b, f) for name, f in (("compute", compute), ("communicate", communicate), ("both", both))}


# ---- one rank ----


def cores_apart(job, rank):
    """Nanoseconds of a cache line between CPUs 0 and 1 at this moment, at ranks 0 and 1; 0: not known."""
    if not job["shm"] or job["ranks"] < 2 or rank > 1 or job["backend"] == "fake":
        return 0.0
    measured = ctypes.CDLL(job["shm"]).cores_apart_ns
    measured.restype = ctypes.c_double
    return measured(f"{job['shared']}/line".encode(), rank)


def measure(job, rank):
    """The figures of all rows of `job`, a dictionary, by name."""
    if job["threads"]:
        torch.set_num_threads(job["threads"])
    b = KINDS[job["backend"]](job, rank)
    figures = {}
    with contextlib.ExitStack() as ends:
        ends.callback(b.end)
        b.barrier()
        figures[CORES_APART] = cores_apart(job, rank)
        for row in job["rows"]:
            figures[name_of(row)] = time_row(b, row, checked=job["backend"] != "fake")
        if job["steps"]:
            figures.update(time_steps(b, job["backend"]))
        if job["overlap"] and job["backend"] in ("kolo", "gloo"):
            figures.update(time_overlap(b))
    return figures
