# SPDX-License-Identifier: Apache-2.0
"""reconfigure_test.py - members that change: groups of PyTorch 2.14 made with enable_reconfigure, its hooks before an abort, and gather_single."""

import datetime

import pytest
import torch
import torch.distributed as dist
import world

pytestmark = pytest.mark.skipif(not hasattr(dist.distributed_c10d, "_reconfigure"), reason=f"PyTorch {torch.__version__} has no reconfigure")
CPU = torch.device("cpu")


def start(rank, size, folder):
    """A group without members, and a store for the handles."""
    dist.init_process_group("kolo", init_method=f"file://{folder}/group", rank=rank, world_size=size, enable_reconfigure=True,
                            timeout=datetime.timedelta(seconds=300))
    return dist.FileStore(f"{folder}/handles", size)


def handles_of(store, rank, ranks):
    store.set(f"handle/{rank}", dist.distributed_c10d._get_reconfigure_handle())
    return [store.get(f"handle/{r}").decode() for r in ranks]


def all_are_here(store, rank, size, place):
    """No rank leaves members that are still in need of it."""
    store.set(f"{place}/{rank}", "")
    store.wait([f"{place}/{r}" for r in range(size)])


def change(uuid, handles, **options):
    dist.distributed_c10d._reconfigure(uuid=uuid, handles=handles, **options).wait()


def check(members, me):
    """All that the group does, among `members`, of which this rank is number `me`."""
    size = len(members)
    group = dist.group.WORLD
    assert (group.rank(), group.size()) == (me, size)
    t = torch.full((5,), float(members[me]))
    group.allreduce([t]).wait()
    assert torch.equal(t, torch.full((5,), float(sum(members))))
    if size > 1:
        got = torch.zeros(3)
        send = group.send([torch.full((3,), float(me))], (me + 1) % size, 4)
        group.recv([got], (me - 1) % size, 4).wait()
        send.wait()
        assert torch.equal(got, torch.full((3,), float((me - 1) % size)))


def down_and_up(rank, size, folder):
    store = start(rank, size, folder)
    assert dist.distributed_c10d._supports_reconfigure()
    with pytest.raises(dist.DistBackendError, match="not connected yet: reconfigure it first"):
        dist.group.WORLD.allreduce([torch.ones(1)])
    handles = handles_of(store, rank, range(size))
    change(1, set(handles))
    check(list(range(size)), rank)
    all_are_here(store, rank, size, "first")
    if rank != 1:  # without one of the middle
        rest = [r for r in range(size) if r != 1]
        change(2, [handles[r] for r in rest])
        check(rest, rest.index(rank))
    all_are_here(store, rank, size, "second")
    change(3, handles[::-1])  # all again, in the other order
    check(list(range(size))[::-1], size - 1 - rank)
    all_are_here(store, rank, size, "third")
    change(10 + rank, [handles[rank]])  # each alone
    check([rank], 0)
    dist.group.WORLD._get_backend(CPU).abort()
    change(5, handles)  # after an abort
    check(list(range(size)), rank)


def mistakes(rank, size, folder):
    store = start(rank, size, folder)
    handles = handles_of(store, rank, range(size))
    change(1, handles)
    with pytest.raises(RuntimeError, match="the uuid 1 was already used"):
        change(1, handles)
    with pytest.raises(ValueError, match="this rank's handle .* is not among the handles"):
        change(2, [handles[1 - rank]])
    with pytest.raises(ValueError, match="is no handle of a group of kolo"):
        change(3, [handles[rank], "gloo:1"])
    check(list(range(size)), rank)  # as before
    if rank == 0:  # nobody else comes
        with pytest.raises(dist.DistBackendError, match="not all ranks came within 300 ms; missing: 1"):
            change(4, handles, timeout=datetime.timedelta(milliseconds=300))
    check(list(range(size)), rank)


def hooks(rank, size):
    called = []
    backend = dist.group.WORLD._get_backend(CPU)
    backend.register_abort_hook(1, lambda: called.append(1))
    backend.register_abort_hook(2, lambda: called.append(2))
    backend.unregister_abort_hook(2)
    dist.all_reduce(torch.ones(3))
    assert not called
    backend.abort()
    backend.abort()
    assert called == [1]


def gathers(rank, size):
    out = torch.zeros(size, 3) if rank == 1 else None
    dist.gather_single(torch.full((3,), float(rank)), out, dst=1)
    assert out is None or torch.equal(out, torch.arange(size).float()[:, None].expand(size, 3))
    if rank == 1:
        options = dist.GatherOptions()
        options.rootRank = 1
        with pytest.raises(ValueError, match="gather_single: output tensor size must be equal to world_size times input"):
            dist.group.WORLD.gather_single(torch.zeros(3), torch.zeros(3), options)
    dist.barrier()


def test_members_change(tmp_path):
    world.run(down_and_up, 3, tmp_path, backend=None)


def test_mistakes(tmp_path):
    world.run(mistakes, 2, tmp_path, backend=None)


def test_abort_hooks():
    world.run(hooks, 2)


def test_gather_single():
    world.run(gathers, 3)
