# SPDX-License-Identifier: Apache-2.0
"""as_nccl_test.py - KOLO_AS_NCCL=1: a program for NCCL runs on CPU tensors; calls that NCCL refuses are refused."""

import datetime
import os
import pickle
import subprocess
import sys

import pytest
import torch
import torch.distributed as dist
import world

CPU = torch.device("cpu")
AS_NCCL = {"KOLO_AS_NCCL": "1"}


def looks_like_nccl(rank, size):
    assert len(torch.cuda.nccl.version()) == 3 and dist.is_nccl_available() and dist.is_backend_available("nccl")
    assert dist.get_backend() == dist.Backend.NCCL == "nccl"
    backend = dist.group.WORLD._get_backend(CPU)
    assert isinstance(backend, dist.ProcessGroupNCCL) and backend.name() == "nccl"
    assert not isinstance(object(), dist.ProcessGroupNCCL)
    options = dist.ProcessGroupNCCL.Options(is_high_priority_stream=True)
    group = dist.new_group(range(size), backend="nccl", pg_options=options)
    assert group._get_backend(CPU).options._timeout == datetime.timedelta(minutes=10)
    gloo = dist.new_group(range(size), backend="gloo")
    assert not isinstance(gloo._get_backend(CPU), dist.ProcessGroupNCCL)
    for g in (None, group, gloo):
        t = torch.ones(3)
        dist.all_reduce(t, group=g)
        assert torch.equal(t, torch.full((3,), float(size)))


def a_program(rank, size):
    """The calls of a usual training script, with the device from a variable."""
    from torch.nn.parallel import DistributedDataParallel as DDP

    device = torch.device("cpu")
    t = torch.full((4,), float(rank + 1), device=device)
    dist.all_reduce(t, dist.ReduceOp.AVG)
    assert torch.equal(t, torch.full((4,), (size + 1) / 2))
    dist.barrier()
    objects = [None] * size
    dist.all_gather_object(objects, {"rank": rank})
    assert [o["rank"] for o in objects] == list(range(size))
    truth = torch.tensor([rank == 0, False])
    dist.all_reduce(truth)
    assert truth.tolist() == [True, False]
    torch.manual_seed(rank)
    model = DDP(torch.nn.Linear(4, 2).to(device))
    model(torch.randn(3, 4)).sum().backward()
    grads = [torch.zeros_like(model.module.weight) for _ in range(size)]
    dist.all_gather(grads, model.module.weight.grad.contiguous())
    assert all(torch.equal(g, grads[0]) for g in grads)
    got = torch.zeros(5)
    ops = [dist.P2POp(dist.isend, torch.full((5,), float(rank)), (rank + 1) % size), dist.P2POp(dist.irecv, got, (rank - 1) % size)]
    for work in dist.batch_isend_irecv(ops):
        work.wait()
    assert torch.equal(got, torch.full((5,), float((rank - 1) % size)))


def refuses(rank, size):
    for op in ("BAND", "BOR", "BXOR"):
        with pytest.raises(ValueError, match=f"Cannot use ReduceOp.{op} with NCCL"):
            dist.all_reduce(torch.ones(3, dtype=torch.int32), getattr(dist.ReduceOp, op))
    with pytest.raises(TypeError, match="Input tensor data type is not supported for NCCL process group: Short"):
        dist.broadcast(torch.ones(3, dtype=torch.int16), 0)
    with pytest.raises(ValueError, match="Tensors must be contiguous"):
        dist.all_reduce(torch.ones(4, 2)[:, 0])
    with pytest.raises(RuntimeError, match="ProcessGroupNCCL does not support recvAnysource"):
        dist.recv(torch.ones(3))
    # The words of PyTorch 2.13, which knows the names of backends, and ours for 2.14.
    with pytest.raises((ValueError, RuntimeError), match="monitored_barrier is only implemented for GLOO backend|does not support monitoredBarrier"):
        dist.monitored_barrier()
    dist.barrier()


def records_as_nccl(rank, size):
    """PyTorch's functions of builds with NCCL."""
    native = torch._C._distributed_c10d
    native._reset_fr_recording_nccl()
    dist.all_reduce(torch.ones(6))
    (entry,) = pickle.loads(native._dump_nccl_trace(onlyActive=False))["entries"]
    assert entry["profiling_name"] == "nccl:all_reduce" and entry["input_sizes"] == [[6]] and entry["frames"], entry
    assert "entries" not in pickle.loads(native._dump_nccl_trace(includeCollectives=False))


def several(rank, size, names):
    for name in names:
        globals()[name](rank, size)


def test_as_nccl():
    world.run(several, 2, ["looks_like_nccl", "a_program", "refuses", "records_as_nccl"], backend="nccl",
              env={**AS_NCCL, "TORCH_NCCL_TRACE_BUFFER_SIZE": "100"})


def test_composite_name():
    world.run(a_program, 2, backend="cpu:nccl,cuda:nccl", env=AS_NCCL)


def without(rank, size, store):
    with pytest.raises(RuntimeError, match="doesn't have NCCL built in"):
        dist.init_process_group("nccl", init_method=f"file://{store}", rank=rank, world_size=size)


@pytest.mark.skipif(dist.is_nccl_available(), reason="this PyTorch has NCCL")
def test_it_is_off_by_default(tmp_path):
    world.run(without, 1, tmp_path / "store", backend=None)


def test_a_group_that_is_left_over_is_told_of(tmp_path):
    text = (f"import torch.distributed as d, kolocc.torch; d.init_process_group('nccl', init_method='file://{tmp_path}/store', rank=0, world_size=1)")
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, env=dict(os.environ, **AS_NCCL))
    assert done.returncode == 0, done.stderr
    assert "destroy_process_group() was not called before program exit" in done.stderr
