# SPDX-License-Identifier: Apache-2.0
"""collectives_test.py - every collective, with all types, operators and layouts. Each rank knows the inputs of all, and computes its results alone."""

import functools

import pytest
import torch
import torch.distributed as dist
import world

Op = dist.ReduceOp
FLOATS = [torch.float32, torch.float64, torch.float16, torch.bfloat16]
INTS = [torch.int8, torch.uint8, torch.int32, torch.int64, torch.uint32, torch.uint64]
FP8 = [torch.float8_e4m3fn, torch.float8_e5m2]
MOVED_ONLY = [torch.int16, torch.uint16, torch.float8_e4m3fnuz, torch.complex64, torch.complex128]
SHAPES = [(0,), (1,), (7,), (3, 4, 5), (1025,)]


def data(rank, shape, dtype, salt=0):
    """Small whole numbers, which all types hold, and whose sums and products of few ranks are exact."""
    n = torch.Size(shape).numel()
    values = (torch.arange(n) * 7 + rank * 3 + salt) % 3 + 1
    if dtype == torch.bool:
        return (values > 1).view(shape)
    if dtype.is_complex:
        return torch.complex(values.float(), (values * 2 % 5).float()).to(dtype).view(shape)
    return values.to(torch.float32).to(dtype).view(shape)


def strided(t):
    """The same values, in every second place of other memory."""
    wide = torch.zeros(*t.shape, 2, dtype=t.dtype)
    view = wide[..., 0]
    view.copy_(t)
    return view


LAYOUTS = [lambda t: t.clone(), strided, lambda t: t.t().contiguous().t() if t.dim() == 2 else t.clone()]


def same(got, expected, *about):
    got, expected = got.detach().resolve_conj(), expected.resolve_conj()
    if got.dtype in FP8 + [torch.float8_e4m3fnuz]:
        got, expected = got.float(), expected.float()
    assert got.shape == expected.shape and got.dtype == expected.dtype, (about, got, expected)
    if got.numel() and not torch.equal(got, expected):
        raise AssertionError(f"{about}: got {got}, expected {expected}")


def wide(t):
    return t.to(torch.complex128 if t.dtype.is_complex else torch.float64 if t.dtype.is_floating_point else torch.int64)


def reduced(op, parts):
    dtype = parts[0].dtype
    if dtype == torch.bool:
        bits = {Op.SUM: torch.logical_or, Op.MAX: torch.logical_or, Op.BOR: torch.logical_or, Op.PRODUCT: torch.logical_and,
                Op.MIN: torch.logical_and, Op.BAND: torch.logical_and, Op.BXOR: torch.logical_xor}
        return functools.reduce(bits[op], parts)
    step = {Op.SUM: torch.add, Op.AVG: torch.add, Op.PRODUCT: torch.mul, Op.MIN: torch.minimum, Op.MAX: torch.maximum,
            Op.BAND: torch.bitwise_and, Op.BOR: torch.bitwise_or, Op.BXOR: torch.bitwise_xor}[op]
    total = functools.reduce(step, [wide(p) for p in parts])
    if op == Op.AVG:
        total = total / len(parts) if not total.dtype == torch.int64 else torch.div(total, len(parts), rounding_mode="floor")
    return total.to(dtype)


def exact(op, dtype):
    """Averages need a division, which narrow types round in a way of their own."""
    return not (op == Op.AVG and dtype in FP8 + [torch.float16, torch.bfloat16, torch.float32])


def check_reductions(rank, size):
    for dtype in FLOATS + INTS + FP8 + [torch.bool, torch.complex64]:
        ops = [Op.SUM, Op.PRODUCT, Op.MIN, Op.MAX]
        if dtype.is_complex:
            ops = [Op.SUM]
        if dtype in INTS + [torch.bool]:
            ops += [Op.BAND, Op.BOR, Op.BXOR]
        if dtype != torch.bool and size & (size - 1) == 0:
            ops += [Op.AVG]
        if dtype in FP8:
            ops = [Op.SUM, Op.MAX]
        for op in ops:
            for shape in SHAPES:
                for layout in LAYOUTS:
                    one_reduction(rank, size, op, dtype, shape, layout)


def one_reduction(rank, size, op, dtype, shape, layout):
    inputs = [data(r, shape, dtype) for r in range(size)]
    expected = reduced(op, inputs)
    about = (op, dtype, shape)
    t = layout(inputs[rank])
    dist.all_reduce(t, op)
    if exact(op, dtype):
        same(t, expected, "all_reduce", *about)
    root = size - 1
    t = layout(inputs[rank])
    dist.reduce(t, root, op)
    if rank == root and exact(op, dtype):
        same(t, expected, "reduce", *about)
    if rank != root:
        same(t, inputs[rank], "reduce, not the root", *about)
    parts = [[data(r, shape, dtype, salt=p) for p in range(size)] for r in range(size)]
    mine = reduced(op, [parts[r][rank] for r in range(size)])
    out = layout(torch.zeros(shape).to(dtype))
    dist.reduce_scatter(out, [layout(p) for p in parts[rank]], op)
    if exact(op, dtype):
        same(out, mine, "reduce_scatter", *about)
    out = torch.zeros(shape).to(dtype)
    dist.reduce_scatter_tensor(out, torch.stack(parts[rank]) if dtype not in FP8 else joined(parts[rank]), op)
    if exact(op, dtype):
        same(out, mine, "reduce_scatter_tensor", *about)


def joined(parts):
    """torch.stack, which lacks some types."""
    out = torch.empty(len(parts), *parts[0].shape, dtype=parts[0].dtype)
    for o, p in zip(out, parts):
        o.copy_(p)
    return out


def check_moves(rank, size):
    for dtype in FLOATS + INTS + FP8 + MOVED_ONLY + [torch.bool]:
        for shape in SHAPES:
            for layout in LAYOUTS:
                one_move(rank, size, dtype, shape, layout)


def one_move(rank, size, dtype, shape, layout):
    inputs = [data(r, shape, dtype) for r in range(size)]
    blank = torch.zeros(shape).to(dtype)
    root = size - 1
    t = layout(inputs[rank])
    dist.broadcast(t, root)
    same(t, inputs[root], "broadcast", dtype, shape)
    outs = [layout(blank) for _ in range(size)]
    dist.all_gather(outs, layout(inputs[rank]))
    for r in range(size):
        same(outs[r], inputs[r], "all_gather", dtype, shape)
    out = torch.zeros(size, *shape).to(dtype)
    dist.all_gather_into_tensor(out, layout(inputs[rank]))
    same(out, joined(inputs), "all_gather_into_tensor", dtype, shape)
    outs = [layout(blank) for _ in range(size)] if rank == root else None
    dist.gather(layout(inputs[rank]), outs, root)
    for r in range(size if rank == root else 0):
        same(outs[r], inputs[r], "gather", dtype, shape)
    parts = [[data(r, shape, dtype, salt=p) for p in range(size)] for r in range(size)]
    out = layout(blank)
    dist.scatter(out, [layout(p) for p in parts[root]] if rank == root else None, root)
    same(out, parts[root][rank], "scatter", dtype, shape)
    outs = [layout(blank) for _ in range(size)]
    dist.all_to_all(outs, [layout(p) for p in parts[rank]])
    for r in range(size):
        same(outs[r], parts[r][rank], "all_to_all", dtype, shape)
    out = torch.zeros(size, *shape).to(dtype)
    dist.all_to_all_single(out, joined(parts[rank]))
    same(out, joined([parts[r][rank] for r in range(size)]), "all_to_all_single", dtype, shape)


def check_unequal(rank, size):
    """Parts of different sizes, also of none."""
    lists = [torch.zeros(r * 2) for r in range(size)]
    dist.all_gather(lists, torch.full((rank * 2,), float(rank)))
    for r in range(size):
        same(lists[r], torch.full((r * 2,), float(r)), "all_gather of unequal parts")
    out = torch.zeros(rank)
    dist.reduce_scatter(out, [torch.full((r,), float(r + rank)) for r in range(size)])
    same(out, torch.full((rank,), float(sum(rank + r for r in range(size)))), "reduce_scatter of unequal parts")
    out = torch.zeros(sum(r * rank for r in range(size)), 3)
    dist.all_to_all_single(out, torch.full((sum(rank * r for r in range(size)), 3), float(rank)),
                           [r * rank for r in range(size)], [rank * r for r in range(size)])
    same(out, torch.cat([torch.full((r * rank, 3), float(r)) for r in range(size)]), "all_to_all_single of unequal parts")


def check_coalesced(rank, size):
    group = dist.group.WORLD
    tensors = [torch.full((n,), float(rank + n)) for n in (1, 5, 1000)]
    with dist._coalescing_manager():
        for t in tensors:
            dist.all_reduce(t)
    for t, n in zip(tensors, (1, 5, 1000)):
        same(t, torch.full((n,), float(sum(r + n for r in range(size)))), "coalesced all_reduce")
    outs = [torch.zeros(size * n) for n in (2, 3)]
    with dist._coalescing_manager(async_ops=True) as manager:
        for o, n in zip(outs, (2, 3)):
            dist.all_gather_into_tensor(o, torch.full((n,), float(rank)))
    manager.wait()
    for o, n in zip(outs, (2, 3)):
        same(o, torch.arange(size).float().repeat_interleave(n), "coalesced all_gather_into_tensor")
    outs = [torch.zeros(n) for n in (2, 3)]
    with dist._coalescing_manager():
        for o, n in zip(outs, (2, 3)):
            dist.reduce_scatter_tensor(o, torch.arange(size * n).float())
    for o, n in zip(outs, (2, 3)):
        same(o, torch.arange(size * n).float()[rank * n : (rank + 1) * n] * size, "coalesced reduce_scatter_tensor")
    group._start_coalescing(torch.device("cpu"))
    a, b = torch.ones(3), strided(torch.full((4,), float(rank)))
    dist.all_reduce(a)
    dist.broadcast(b, size - 1)
    group._end_coalescing(torch.device("cpu")).wait()
    same(a, torch.full((3,), float(size)), "a group of calls")
    same(b, torch.full((4,), float(size - 1)), "a group of calls")
    group._start_coalescing(torch.device("cpu"))  # one that an exception leaves open takes nothing with it
    dist.all_reduce(torch.ones(2))
    group._start_coalescing(torch.device("cpu"))
    dist.all_reduce(a)
    group._end_coalescing(torch.device("cpu")).wait()
    same(a, torch.full((3,), float(size * size)), "behind one that was left open")


def check_coalesced_lists(rank, size):
    outs = [[torch.zeros(n) for n in (2, 3)] for _ in range(size)]
    dist.all_gather_coalesced(outs, [torch.full((n,), float(rank)) for n in (2, 3)])
    for r in range(size):
        for t in outs[r]:
            same(t, torch.full_like(t, float(r)), "all_gather_coalesced")
    tensors = [torch.ones(3), strided(torch.ones(2))]
    dist.all_reduce_coalesced(tensors)
    for t in tensors:
        same(t, torch.full_like(t, size), "all_reduce_coalesced")


def check_premul(rank, size):
    factor = 0.5 * (rank + 1)
    total = sum(0.5 * (r + 1) * (r + 1) for r in range(size))
    for given in (factor, torch.tensor([factor])):
        t = torch.full((5,), float(rank + 1))
        dist.all_reduce(t, dist._make_nccl_premul_sum(given))
        same(t, torch.full((5,), total), "PREMUL_SUM")
    t = torch.full((5,), float(rank + 1), dtype=torch.bfloat16)
    dist.all_reduce(t, dist._make_nccl_premul_sum(factor))
    same(t, torch.full((5,), total, dtype=torch.bfloat16), "PREMUL_SUM of bfloat16")
    out = torch.zeros(2)
    dist.reduce_scatter_tensor(out, torch.full((2 * size,), float(rank + 1)), dist._make_nccl_premul_sum(factor))
    same(out, torch.full((2,), total), "reduce_scatter_tensor with PREMUL_SUM")


def check_places(rank, size):
    """Inputs that lie in outputs, outputs that are one another, views of conjugates, leaves that require a gradient."""
    row = torch.zeros(size, 4)
    row[rank] = float(rank)
    dist.all_gather_into_tensor(row, row[rank])
    same(row, torch.arange(size).float()[:, None].expand(size, 4).contiguous(), "all_gather_into_tensor, in place")
    row = torch.arange(size * 4).float()
    dist.all_gather_into_tensor(row, row[:4].mul_(rank + 1))
    same(row, torch.cat([torch.arange(4).float() * (r + 1) for r in range(size)]), "all_gather_into_tensor, input elsewhere in the output")
    same_memory = torch.zeros(3)
    dist.all_gather([same_memory] * size, torch.full((3,), float(rank)))
    same(same_memory, torch.full((3,), float(size - 1)), "all_gather, outputs in one memory")
    z = torch.full((3,), complex(rank, 1)).conj()
    dist.group.WORLD._get_backend(torch.device("cpu")).allreduce([z]).wait()  # the dispatcher would resolve a copy
    same(z, torch.full((3,), complex(sum(range(size)), -size)), "all_reduce of a conjugate")
    leaf = torch.ones(3, 2).t().requires_grad_()
    dist.broadcast(leaf, 0)
    with torch.no_grad():
        dist.all_reduce(leaf)
    same(leaf, torch.full((2, 3), float(size)), "a leaf, transposed")
    image = torch.arange(2 * 3 * 4 * 5).float().view(2, 3, 4, 5)
    mine = image.to(memory_format=torch.channels_last) if rank else image.clone()
    dist.all_reduce(mine)
    same(mine.contiguous(), image * size, "layouts that differ from rank to rank")


def check_objects(rank, size):
    got = [None] * size
    dist.all_gather_object(got, {"rank": rank, "pad": "x" * rank * 1000})
    assert [g["rank"] for g in got] == list(range(size))
    objects = [("from", rank), None, b""]
    dist.broadcast_object_list(objects, src=size - 1)
    assert objects == [("from", size - 1), None, b""]
    out = [None]
    dist.scatter_object_list(out, [f"for {r}" for r in range(size)] if rank == 0 else None, src=0)
    assert out == [f"for {rank}"]


def refuses(error, text, call, *args, **kwargs):
    with pytest.raises(error, match=text):
        call(*args, **kwargs)


def check_bad_input(rank, size):
    """Refused before anything is issued: a rank alone may make the mistake, and all goes on."""
    w = dist.group.WORLD
    refuses(TypeError, "all_reduce: dtype Short is not supported", dist.all_reduce, torch.ones(2, dtype=torch.int16))
    refuses(TypeError, "AVG and PREMUL_SUM have no meaning for dtype Bool", dist.all_reduce, torch.ones(2, dtype=torch.bool), Op.AVG)
    refuses(ValueError, "Cannot use ReduceOp.BAND with non-integral dtype", dist.all_reduce, torch.ones(2), Op.BAND)
    refuses(ValueError, "invalid root rank: 99", w.broadcast, torch.ones(2), 99)
    refuses(ValueError, "invalid tensor type at index 0 .expected Double, got Float", w.allgather,
            [torch.ones(2)] * size, torch.ones(2, dtype=torch.float64))
    refuses((ValueError, RuntimeError), "output tensor size must be equal to world_size times input", dist.all_gather_into_tensor,
            torch.ones(3 * size + 1), torch.ones(3))
    refuses(ValueError, "Split sizes doesn't match total dim 0 size", dist.all_to_all_single, torch.ones(2), torch.ones(2),
            [1] * size, [1] * (size - 1) + [9])
    refuses(ValueError, "single-element tensor list", w.allreduce, [torch.ones(1), torch.ones(1)])
    dist.barrier()


def check_sparse(rank, size):
    t = torch.sparse_coo_tensor([[rank]], [1.0], (size,))
    dist.all_reduce(t)
    same(t.to_dense(), torch.ones(size), "a sparse tensor")


CHECKS = [check_reductions, check_moves, check_unequal, check_coalesced, check_coalesced_lists, check_premul, check_places,
          check_objects, check_bad_input, check_sparse]


def all_checks(rank, size, names):
    for check in CHECKS:
        if check.__name__ in names:
            check(rank, size)


def asynchronously(rank, size):
    """All again, but each call returns a Work."""
    import functools as f

    for name in ("all_reduce", "reduce", "broadcast", "all_gather", "all_gather_into_tensor", "gather", "scatter", "reduce_scatter",
                 "reduce_scatter_tensor", "all_to_all", "all_to_all_single"):
        call = getattr(dist, name)

        @f.wraps(call)
        def waits(*args, call=call, **kwargs):
            work = call(*args, **kwargs, async_op=True)
            work.wait()
            work.wait()
            assert work.is_completed() and work.is_success()

        setattr(dist, name, waits)
    for check in (check_reductions, check_moves, check_unequal, check_premul, check_places):
        check(rank, size)


@pytest.mark.parametrize("size", [1, 2, 4])
def test_synchronous(size):
    world.run(all_checks, size, [c.__name__ for c in CHECKS])


@pytest.mark.parametrize("size", [2, 3])
def test_asynchronous(size):
    world.run(asynchronously, size)


def test_inline_progress():
    world.run(asynchronously, 2, env={"KOLO_TORCH_PROGRESS": "inline"})
