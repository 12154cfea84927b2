# SPDX-License-Identifier: Apache-2.0
"""parallel_test.py - small models in every way that PyTorch spreads them: each rank also computes alone the result that it must get."""

import copy

import torch
import torch.distributed as dist
import torch.distributed.checkpoint  # noqa: F401  these four once, for all ranks
import torch.distributed.fsdp  # noqa: F401
import torch.distributed.pipelining  # noqa: F401
import torch.distributed.tensor.parallel  # noqa: F401
import torch.nn as nn
import torch.nn.functional as F
import world
from torch.nn.parallel import DistributedDataParallel as DDP


def model():
    torch.manual_seed(5)
    return nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4))


def batch(rank, step=0):
    torch.manual_seed(100 + 10 * step + rank)
    return torch.randn(6, 8), torch.randn(6, 4)


def trained_alone(size, steps, make=model):
    """As one process sees all batches: gradients are means over ranks."""
    m = make()
    optimizer = torch.optim.SGD(m.parameters(), lr=0.1)
    for step in range(steps):
        optimizer.zero_grad()
        for r in range(size):
            x, y = batch(r, step)
            (F.mse_loss(m(x), y) / size).backward()
        optimizer.step()
    return m


def train(m, rank, steps):
    optimizer = torch.optim.SGD(m.parameters(), lr=0.1)
    for step in range(steps):
        optimizer.zero_grad()
        x, y = batch(rank, step)
        F.mse_loss(m(x), y).backward()
        optimizer.step()


def close(a, b, tolerance=1e-5):
    assert torch.allclose(a, b, atol=tolerance, rtol=tolerance), (a - b).abs().max()


def close_models(a, b, tolerance=1e-5):
    for p, q in zip(a.parameters(), b.parameters(), strict=True):
        close(p.data, q.data, tolerance)


def ddp(rank, size):
    expected = trained_alone(size, 3)
    for options in ({}, {"gradient_as_bucket_view": True, "bucket_cap_mb": 0.0001}, {"find_unused_parameters": True},
                    {"static_graph": True}):
        m = DDP(model(), **options)
        train(m, rank, 3)
        close_models(m.module, expected)


def ddp_hooks(rank, size):
    from torch.distributed.algorithms.ddp_comm_hooks import default_hooks, powerSGD_hook

    expected = trained_alone(size, 3)
    for hook, tolerance in ((default_hooks.allreduce_hook, 1e-5), (default_hooks.fp16_compress_hook, 1e-2)):
        m = DDP(model())
        m.register_comm_hook(dist.group.WORLD, hook)
        train(m, rank, 3)
        close_models(m.module, expected, tolerance)
    m = DDP(model())
    state = powerSGD_hook.PowerSGDState(dist.group.WORLD, matrix_approximation_rank=4, start_powerSGD_iter=2)
    m.register_comm_hook(state, powerSGD_hook.powerSGD_hook)
    train(m, rank, 6)
    reference = [p.detach().clone() for p in m.parameters()]
    for p in reference:
        dist.broadcast(p, 0)
    for p, q in zip(m.parameters(), reference):
        assert torch.equal(p, q), "ranks have different parameters behind PowerSGD"


def ddp_no_sync(rank, size):
    """Gradients of two steps, of which the first stays here."""
    m, alone = DDP(model()), model()
    x, y = batch(rank)
    with m.no_sync():
        F.mse_loss(m(x), y).backward()
    F.mse_loss(m(x), y).backward()
    for r in range(size):
        x, y = batch(r)
        for _ in range(2):
            (F.mse_loss(alone(x), y) / size).backward()
    for p, q in zip(m.module.parameters(), alone.parameters()):
        close(p.grad, q.grad)


def ddp_buffers_and_join(rank, size):
    from torch.distributed.algorithms.join import Join

    m = DDP(nn.Sequential(nn.Linear(8, 4), nn.BatchNorm1d(4)))
    with Join([m]):
        for step in range(2 + rank):
            x, y = batch(rank, step)
            F.mse_loss(m(x), y).backward()
    dist.barrier()


def fsdp1(rank, size):
    from torch.distributed.fsdp import FullyShardedDataParallel as FSDP

    expected = trained_alone(size, 3)
    m = FSDP(model(), device_id=torch.device("cpu"), use_orig_params=True)
    train(m, rank, 3)
    with FSDP.summon_full_params(m):
        close_models(m, expected)


def fsdp2(rank, size):
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard

    expected = trained_alone(size, 3)
    mesh = init_device_mesh("cpu", (size,))
    for policy, tolerance in ((MixedPrecisionPolicy(), 1e-5),
                              (MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32), 5e-2)):
        m = model()
        for layer in (m[0], m[2]):
            fully_shard(layer, mesh=mesh, mp_policy=policy)
        fully_shard(m, mesh=mesh, mp_policy=policy)
        train(m, rank, 3)
        for p, q in zip(m.parameters(), expected.parameters()):
            close(p.full_tensor(), q, tolerance)


def tensor_parallel(rank, size):
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

    mesh = init_device_mesh("cpu", (size,))
    alone, m = model(), model()
    m = parallelize_module(m, mesh, {"0": ColwiseParallel(), "2": RowwiseParallel()})
    x, y = batch(0)
    close(m(x), alone(x))
    F.mse_loss(m(x), y).backward()
    F.mse_loss(alone(x), y).backward()
    close(m[0].weight.grad.full_tensor(), alone[0].weight.grad)


def dtensor(rank, size):
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor import Partial, Replicate, Shard, distribute_tensor

    mesh = init_device_mesh("cpu", (size,))
    whole = torch.arange(size * 3 * 5.0).view(size * 3, 5)  # 5 columns are uneven
    d = distribute_tensor(whole, mesh, [Shard(0)])
    for placement in (Replicate(), Shard(1), Shard(0), Replicate(), Shard(1)):
        d = d.redistribute(mesh, [placement])
        close(d.full_tensor(), whole)
    local = torch.ones(4, 4) * (rank + 1)
    from torch.distributed.tensor import DTensor

    p = DTensor.from_local(local, mesh, [Partial("sum")])
    close(p.redistribute(mesh, [Shard(0)]).full_tensor(), torch.ones(4, 4) * sum(range(1, size + 1)))
    p = DTensor.from_local(local, mesh, [Partial("avg")])
    close(p.full_tensor(), torch.ones(4, 4) * (size + 1) / 2)


def mesh_of_two_dimensions(rank, size):
    from torch.distributed.device_mesh import init_device_mesh

    mesh = init_device_mesh("cpu", (2, size // 2), mesh_dim_names=("dp", "tp"))
    for name in ("dp", "tp"):
        t = torch.ones(3)
        dist.all_reduce(t, group=mesh.get_group(name))
        assert t[0] == mesh[name].size()


def pipeline(rank, size):
    from torch.distributed.pipelining import PipelineStage, Schedule1F1B, ScheduleGPipe

    torch.manual_seed(3)
    layers = [nn.Linear(8, 8) for _ in range(size)]
    x, y = torch.randn(8, 8), torch.randn(8, 8)
    alone = nn.Sequential(*copy.deepcopy(layers))
    # Losses of microbatches are means; the gradients of all are added.
    for xs, ys in zip(x.chunk(4), y.chunk(4)):
        (F.mse_loss(alone(xs), ys) / 4).backward()
    for schedule in (ScheduleGPipe, Schedule1F1B):
        mine = copy.deepcopy(layers[rank])
        stage = PipelineStage(mine, rank, size, torch.device("cpu"))
        run = schedule(stage, n_microbatches=4, loss_fn=F.mse_loss)
        if rank == 0:
            run.step(x)
        elif rank == size - 1:
            run.step(target=y)
        else:
            run.step()
        close(mine.weight.grad, alone[rank].weight.grad)


def functional(rank, size):
    import torch.distributed._functional_collectives as fc

    group = dist.group.WORLD
    t = torch.full((4,), float(rank + 1))
    total = float(sum(range(1, size + 1)))
    assert fc.all_reduce(t, "sum", group)[0] == total
    assert fc.all_reduce(t, "avg", group)[0] == total / size
    close(fc.all_gather_tensor(t, 0, group), torch.arange(1, size + 1).float().repeat_interleave(4))
    close(fc.reduce_scatter_tensor(torch.arange(size * 2.0), "sum", 0, group), torch.arange(size * 2.0)[2 * rank : 2 * rank + 2] * size)
    close(fc.broadcast(t, 0, group), torch.ones(4))
    got = fc.all_to_all_single(torch.full((size,), float(rank)), None, None, group)
    close(got.float(), torch.arange(size).float())
    for out in fc.all_reduce_coalesced([t, t * 2], "sum", group):
        fc.wait_tensor(out)
    for out in fc.all_gather_into_tensor_coalesced([t, t * 2], group):
        fc.wait_tensor(out)
    for out in fc.reduce_scatter_tensor_coalesced([torch.ones(size)] * 2, "sum", [0, 0], group):
        assert fc.wait_tensor(out)[0] == size


def compiled(rank, size):
    import torch.distributed._functional_collectives as fc

    @torch.compile(backend="aot_eager", fullgraph=True)
    def step(t):
        return fc.all_reduce(t * 2, "sum", dist.group.WORLD) + 1

    close(step(torch.full((3,), float(rank))), torch.full((3,), 2.0 * sum(range(size)) + 1))


def checkpoint(rank, size):
    """A sharded state dict, saved and loaded again: object collectives, gathers and scatters."""
    import tempfile

    import torch.distributed.checkpoint as dcp

    folder = [tempfile.mkdtemp() if rank == 0 else None]
    dist.broadcast_object_list(folder)
    m = model()
    dcp.save({"m": m.state_dict()}, checkpoint_id=folder[0])
    other = copy.deepcopy(m)
    for p in other.parameters():
        p.data.zero_()
    state = {"m": other.state_dict()}
    dcp.load(state, checkpoint_id=folder[0])
    close_models(other, m)


def zero_optimizer(rank, size):
    from torch.distributed.optim import ZeroRedundancyOptimizer

    expected = trained_alone(size, 3)
    m = DDP(model())
    optimizer = ZeroRedundancyOptimizer(m.parameters(), torch.optim.SGD, lr=0.1)
    for step in range(3):
        optimizer.zero_grad()
        x, y = batch(rank, step)
        F.mse_loss(m(x), y).backward()
        optimizer.step()
    close_models(m.module, expected)


def several(rank, size, names):
    for name in names:
        try:
            globals()[name](rank, size)
        except BaseException as e:
            e.add_note(f"in {name}")
            raise


DATA = ["ddp", "ddp_hooks", "ddp_no_sync", "ddp_buffers_and_join", "fsdp1", "fsdp2", "zero_optimizer", "checkpoint"]
MODEL = ["tensor_parallel", "dtensor", "mesh_of_two_dimensions", "pipeline", "functional", "compiled"]


def test_data_parallel_2():
    world.run(several, 2, DATA)


def test_model_parallel_2():
    world.run(several, 2, MODEL)


def test_data_parallel_4():
    world.run(several, 4, DATA)


def test_model_parallel_4():
    world.run(several, 4, MODEL)
