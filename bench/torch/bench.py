# SPDX-License-Identifier: Apache-2.0
"""bench.py - PyTorch's collectives over several backends, in turn: times per call, and how many times faster kolo is than gloo."""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

SIZES = [1 << 10, 4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20, 4 << 20, 16 << 20]
OPS = ["all_reduce", "all_gather", "reduce_scatter", "all_to_all", "broadcast", "send_recv"]
BLOCK_S = 0.03  # a block of calls takes about this long


# ---- one rank ----


def call_of(op, n, rank, size):
    """A function that makes the call once, and one that checks its result, for n float32 elements in the larger buffer."""
    import torch
    import torch.distributed as dist

    small, whole = torch.ones(max(1, n // size)), torch.ones(max(1, n // size) * size)
    if op == "all_reduce":
        t = torch.zeros(n)
        return lambda: dist.all_reduce(t), lambda: t.fill_(rank + 1) is None or dist.all_reduce(t) or t[-1] == size * (size + 1) / 2
    if op == "all_gather":
        return lambda: dist.all_gather_single(whole, small), lambda: whole[-1] == 1
    if op == "reduce_scatter":
        return lambda: dist.reduce_scatter_single(small, whole), lambda: small[-1] == size
    if op == "all_to_all":
        out = torch.zeros_like(whole)
        return lambda: dist.all_to_all_single(out, whole), lambda: out[-1] == 1
    if op == "broadcast":
        t = torch.full((n,), float(rank))
        return lambda: dist.broadcast(t, 0), lambda: t[-1] == 0
    t = torch.full((n,), float(rank))
    peer = rank ^ 1
    if rank & 1:
        return lambda: (dist.recv(t, peer), dist.send(t, peer)), lambda: t[-1] == rank - 1
    return lambda: (dist.send(t, peer), dist.recv(t, peer)), lambda: t[-1] == rank


def slowest(seconds):
    import torch
    import torch.distributed as dist

    t = torch.tensor([seconds], dtype=torch.float64)
    dist.all_reduce(t, dist.ReduceOp.MAX)
    return float(t)


def timed(call):
    """Seconds per call, of the slowest rank."""
    import torch.distributed as dist

    for _ in range(3):
        call()
    begun = time.perf_counter()
    call()
    count = max(3, min(300, int(BLOCK_S / max(1e-7, slowest(time.perf_counter() - begun)))))
    dist.barrier()
    begun = time.perf_counter()
    for _ in range(count):
        call()
    return slowest((time.perf_counter() - begun) / count)


def ddp_step(rank, hidden=1024):
    """A step of an MLP of 17 MB."""
    import torch
    from torch.nn.parallel import DistributedDataParallel as DDP

    m = DDP(torch.nn.Sequential(*(torch.nn.Linear(hidden, hidden) for _ in range(4))))
    x = torch.randn(4, hidden)

    def step():
        m.zero_grad()
        m(x).sum().backward()

    return step


def decode_step(size, hidden=1024, layers=4):
    """One token through layers whose two products are spread over ranks: eight all-reduces of 64 KiB, batch 16."""
    import torch
    import torch.distributed as dist

    up = torch.randn(hidden, hidden // size)
    down = torch.randn(hidden // size, hidden)
    x = torch.randn(16, hidden)

    @torch.no_grad()
    def step():
        h = x
        for _ in range(layers):
            for _ in range(2):
                h = (h @ up) @ down
                dist.all_reduce(h)
                h = h / h.norm()

    return step


def rank_main(args):
    import torch
    import torch.distributed as dist

    torch.set_num_threads(1)
    if args.backend == "kolo":
        import kolocc.torch  # noqa: F401
    rank, size = int(os.environ["RANK"]), args.ranks
    dist.init_process_group(args.backend, init_method=f"file://{args.store}", rank=rank, world_size=size)
    figures = {}
    for op in args.ops:
        for bytes_ in args.sizes:
            call, check = call_of(op, bytes_ // 4, rank, size)
            figures[f"{op} {bytes_}"] = timed(call)
            if not check():
                raise SystemExit(f"{args.backend}: {op} of {bytes_} bytes: wrong result at rank {rank}")
    if args.steps:
        figures["ddp step"] = timed(ddp_step(rank))
        figures["decode step"] = timed(decode_step(size))
    if rank == 0:
        print(json.dumps(figures))
    dist.destroy_process_group()


# ---- all of them ----


def one_round(args, backend, ranks):
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, __file__, "--rank-of", backend, "--store", f"{folder}/store", "--ranks", str(ranks),
                   "--sizes", *map(str, args.sizes), "--ops", *args.ops, *([] if args.steps else ["--no-steps"])]
        children = [subprocess.Popen(command, env=dict(os.environ, RANK=str(r)), stdout=subprocess.PIPE if r == 0 else subprocess.DEVNULL)
                    for r in range(ranks)]
        out = children[0].communicate()[0]
        if any(c.wait() for c in children):
            raise SystemExit(f"bench/torch: {backend} with {ranks} ranks failed")
    return json.loads(out.splitlines()[-1])


def text_of(seconds):
    return f"{seconds * 1e6:9.1f}"


def table(args, ranks):
    found = {b: [] for b in args.backends}
    for _ in range(args.rounds):
        for b in args.backends:
            found[b].append(one_round(args, b, ranks))
    print(f"\n{ranks} ranks, us per call, median of {args.rounds} (spread)")
    print(f"{'':28}" + "".join(f"{b:>9} {'':8}" for b in args.backends) + "  gloo/kolo")
    ratios = []
    for name in found[args.backends[0]][0]:
        row, medians = "", {}
        for b in args.backends:
            values = [r[name] for r in found[b]]
            medians[b] = statistics.median(values)
            row += f"{text_of(medians[b])} ({(max(values) - min(values)) / medians[b] * 100:4.0f} %)"
        ratio = medians["gloo"] / medians["kolo"] if {"gloo", "kolo"} <= set(medians) else 0
        ratios.append(ratio)
        print(f"{name:28}{row}  {ratio:8.2f}", flush=True)
    print(f"ratio: median {statistics.median(ratios):.2f}, least {min(ratios):.2f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ranks", type=int, nargs="*", default=[2, 4], help="numbers of processes")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--sizes", type=int, nargs="*", default=SIZES, help="bytes of the larger buffer")
    parser.add_argument("--ops", nargs="*", default=OPS, choices=OPS)
    parser.add_argument("--backends", nargs="*", default=["kolo", "gloo"])
    parser.add_argument("--no-steps", dest="steps", action="store_false", help="without the DDP step and the decoding step")
    parser.add_argument("--rank-of", dest="backend", help=argparse.SUPPRESS)
    parser.add_argument("--store", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.backend:
        args.ranks = args.ranks[0]
        return rank_main(args)
    print(f"{os.cpu_count()} CPUs, load {os.getloadavg()[0]:.1f}")
    for ranks in args.ranks:
        table(args, ranks)


if __name__ == "__main__":
    main()
