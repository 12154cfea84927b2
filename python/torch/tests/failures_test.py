# SPDX-License-Identifier: Apache-2.0
"""failures_test.py - timeouts, ranks that die, abort, shutdown, groups: all waits end, and say why."""

import datetime
import json
import os
import pickle
import tempfile
import threading
import time

import pytest
import torch
import torch.distributed as dist
import world
from torch._C._distributed_c10d import ErrorType

CPU = torch.device("cpu")


def backend_of(group=None):
    return (group or dist.group.WORLD)._get_backend(CPU)


def fails(text, call):
    with pytest.raises(dist.DistBackendError, match=text):
        call()


# ---- timeouts ----


def a_rank_does_not_come(rank, size, ready):
    """The message names it: rank 1 has not called the operation."""
    if rank == 0:
        with pytest.raises(dist.DistBackendError) as caught:
            dist.all_reduce(torch.ones(3))
        assert "kolo: all_reduce #1 in group" in str(caught.value) and "Timed out" in str(caught.value), caught.value
        assert "rank 1" in str(caught.value) and "has not called it" in str(caught.value), caught.value
        assert backend_of().get_error() == ErrorType.TIMEOUT
        fails("kolo: all_reduce", lambda: dist.all_reduce(torch.ones(3)))
        open(ready, "w").close()
    else:
        while not os.path.exists(ready):
            time.sleep(0.05)
    backend_of().abort()


def test_timeout_names_the_culprit():
    for timeout_s in (2, 20, 120):  # ranks that are slow to join, beside other programs, need longer
        with tempfile.TemporaryDirectory() as folder:
            try:
                world.run(a_rank_does_not_come, 2, f"{folder}/ready", timeout_s=timeout_s)
                return
            except AssertionError as e:
                failure = e
    raise failure


def one_wait_gives_up(rank, size):
    """wait(timeout) ends; the operation goes on, and succeeds."""
    t = torch.ones(3)
    if rank == 0:
        work = dist.all_reduce(t, async_op=True)
        fails(r"wait\(\) timed out after 100 ms; the operation goes on", lambda: work.wait(datetime.timedelta(milliseconds=100)))
        assert not work.is_completed()
        dist.send(torch.ones(1), 1)
        work.wait()
    else:
        dist.recv(torch.zeros(1), 0)
        dist.all_reduce(t)
    assert torch.equal(t, torch.full((3,), 2.0))


def test_one_wait_gives_up():
    world.run(one_wait_gives_up, 2)


def missing_at_creation(rank, size, store):
    if rank == 1:
        return
    fails("not all ranks came within 1000 ms; missing: 1", lambda: dist.init_process_group(
        "kolo", init_method=f"file://{store}", rank=rank, world_size=2, timeout=datetime.timedelta(seconds=1)))


def test_missing_at_creation():
    with tempfile.TemporaryDirectory() as folder:
        world.run(missing_at_creation, 2, f"{folder}/store", backend=None)


def monitored(rank, size):
    import kolocc.torch

    for _ in range(3):
        kolocc.torch.monitored_barrier()
    if rank == 0:
        with pytest.raises(RuntimeError, match="Rank 1 failed to pass monitoredBarrier in 500 ms"):
            kolocc.torch.monitored_barrier(timeout=datetime.timedelta(milliseconds=500))
    elif rank > 1:
        with pytest.raises(RuntimeError, match="successfully reached monitoredBarrier, but received errors"):
            kolocc.torch.monitored_barrier()
    dist.barrier()


def test_monitored_barrier():
    world.run(monitored, 3)


# ---- deaths and aborts ----


def a_rank_dies(rank, size):
    dist.all_reduce(torch.ones(3))
    if rank == 1:
        os._exit(3)
    begun = time.monotonic()
    fails("kolo: all_reduce #2 .*rank 1", lambda: dist.all_reduce(torch.ones(3), async_op=True).wait())
    assert time.monotonic() - begun < 60
    backend_of().abort()


def test_a_rank_dies():
    world.run(a_rank_dies, 3, lost=[1])


def abort_ends_waits(rank, size):
    """All pending work fails: a wait in another thread, a future, a Work without a waiter."""
    caught = []
    if rank == 0:
        work, forgotten = (dist.all_reduce(torch.ones(3), async_op=True) for _ in range(2))
        future = dist.all_reduce(torch.ones(3), async_op=True).get_future()

        def wait():
            try:
                work.wait()
            except dist.DistBackendError as e:
                caught.append(str(e))

        waiter = threading.Thread(target=wait)
        waiter.start()
        backend_of().abort()
        waiter.join(60)
        assert not waiter.is_alive() and "was aborted on this rank" in caught[0], caught
        fails("aborted", forgotten.wait)
        fails("aborted", work.wait)
        with pytest.raises(RuntimeError, match="aborted"):
            future.wait()
        fails("aborted", lambda: dist.all_reduce(torch.ones(3)))
        assert forgotten.is_completed() and not forgotten.is_success()
        assert backend_of().get_error() == ErrorType.COMM_ERROR
    else:
        while backend_of().get_error() == ErrorType.SUCCESS:  # until it hears of the abort
            time.sleep(0.01)
        fails("rank 0", lambda: dist.all_reduce(torch.ones(3)))
    backend_of().abort()  # a second time: nothing happens


def test_abort():
    world.run(abort_ends_waits, 2)


def shutdown_drains(rank, size):
    group = dist.new_group(range(size))
    works = [dist.all_reduce(torch.full((1000,), float(i)), group=group, async_op=True) for i in range(20)]
    results = [w.result()[0] for w in works]
    backend = backend_of(group)
    backend.shutdown()
    backend.shutdown()
    for i, w in enumerate(works):
        assert w.is_completed() and w.is_success() and torch.equal(results[i], torch.full((1000,), float(i * size)))
        w.wait()
    with pytest.raises(RuntimeError, match="was shut down on this rank"):
        backend.allreduce([torch.ones(1)])


def test_shutdown():
    world.run(shutdown_drains, 2)


def a_child_is_forked(rank, size):
    """As a DataLoader does: the child neither harms the parent's group when it ends, nor hangs."""
    from torch.utils.data import DataLoader

    dist.all_reduce(torch.ones(3))
    loader = DataLoader(range(8), num_workers=2)
    assert sum(int(x) for x in loader) == 28
    pid = os.fork()
    if pid == 0:
        dist.destroy_process_group()
        os._exit(0)
    assert os.waitpid(pid, 0)[1] == 0
    t = torch.ones(3)
    dist.all_reduce(t)
    assert torch.equal(t, torch.full((3,), float(size)))


def test_fork():
    world.run(a_child_is_forked, 2)


# ---- futures ----


def futures(rank, size):
    chained = dist.all_reduce(torch.ones(2), async_op=True).get_future().then(lambda f: f.value()[0] * 10)
    assert torch.equal(chained.wait(), torch.full((2,), 10.0 * size))

    def needs_another(f):
        return dist.all_reduce(f.value()[0], async_op=True).get_future().wait()[0]

    first = [dist.all_reduce(torch.ones(2), async_op=True).get_future() for _ in range(4)]
    for f in [f.then(needs_another) for f in first]:  # the four of a kind may come in any order
        assert torch.equal(f.wait(), torch.full((2,), float(size * size)))
    outs = [torch.zeros(2) for _ in range(size)]
    got = dist.all_gather(outs, torch.full((2,), float(rank)), async_op=True).get_future().wait()
    assert [int(t[0]) for t in got] == list(range(size))
    strided = torch.ones(4, 2)[:, 0]
    dist.all_reduce(strided, async_op=True).get_future().wait()
    assert torch.equal(strided, torch.full((4,), float(size)))


def test_futures():
    world.run(futures, 2)


# ---- groups ----


def two_groups_in_any_order(rank, size):
    a, b = dist.new_group(range(size)), dist.new_group(range(size))
    for _ in range(20):
        works = [dist.all_reduce(torch.ones(1000), group=g, async_op=True) for g in ((a, b) if rank else (b, a))]
        for w in works if rank else reversed(works):
            w.wait()


def splits(rank, size):
    mine = [0, 1] if rank < 2 else [2, 3]
    child = dist.group.WORLD.split_group(mine, group_name=f"half{rank // 2}")
    t = torch.full((3,), float(rank))
    child.allreduce([t]).wait()
    assert torch.equal(t, torch.full((3,), float(sum(mine)))) and child.size() == 2 and child.rank() == rank % 2
    none = dist.group.WORLD.split_group([0], group_name="first")
    assert (none is None) == (rank != 0)


def shrinks(rank, size):
    if rank == 1:
        dist.barrier()
        return
    backend = backend_of()
    small = backend.shrink([1])
    t = torch.ones(2)
    small.allreduce([t]).wait()
    assert torch.equal(t, torch.full((2,), float(size - 1))) and small.size() == size - 1
    small.shutdown()
    dist.barrier()


def many_groups(rank, size):
    def held():
        return len(os.listdir("/proc/self/fd")), threading.active_count(), len(os.listdir("/proc/self/task"))

    def one():
        g = dist.new_group(range(size))
        t = torch.ones(3)
        dist.all_reduce(t, group=g)
        assert torch.equal(t, torch.full((3,), float(size)))
        dist.destroy_process_group(g)

    for _ in range(5):
        one()
    before = held()
    for _ in range(60):
        one()
    after = held()
    assert after[0] <= before[0] + 3 and after[2] <= before[2] + 2, (before, after)


def suspends(rank, size):
    backend = backend_of()
    dist.all_reduce(torch.ones(3))
    assert backend.memory_stats()["total"] >= 0
    dist.barrier()
    backend.suspend()
    fails_or_usage(lambda: dist.all_reduce(torch.ones(3)))
    backend.resume()
    t = torch.ones(3)
    dist.all_reduce(t)
    assert torch.equal(t, torch.full((3,), float(size)))


def fails_or_usage(call):
    with pytest.raises(RuntimeError, match="suspend"):
        call()


def memory_of_its_own(rank, size):
    import kolocc.torch

    backend = backend_of()
    assert backend.supports_tensor_alloc(CPU)
    t = backend.allocate_tensor(1000, dtype=torch.float32, device=CPU).fill_(rank)
    dist.all_reduce(t)
    assert torch.equal(t, torch.full((1000,), float(sum(range(size)))))
    e = kolocc.torch.empty(3, 4, dtype=torch.bfloat16).fill_(1)
    dist.all_reduce(e)
    assert e.shape == (3, 4) and e[0, 0] == size


def flight_record(rank, size, folder):
    import kolocc.torch

    dist.all_reduce(torch.ones(7))
    kolocc.torch.flight_record(f"{folder}/record.%r.json")
    text = open(f"{folder}/record.{rank}.json").read()
    assert "AllReduce" in text and json.loads(text)


# ---- PyTorch's flight recorder ----


def dump_to(folder, rank):
    import kolocc.torch

    with open(f"{folder}/trace_{rank}", "wb") as file:
        file.write(kolocc.torch.dump_fr_trace())


def of_each_kind(rank, size):
    x, parts = torch.ones(4, 3), [torch.zeros(4, 3) for _ in range(size)]
    dist.all_reduce(x)
    work = dist.all_reduce(x, async_op=True)
    dist.broadcast(x, 1)
    dist.all_gather(parts, x)
    dist.all_gather_into_tensor(torch.zeros(4 * size, 3), x)
    dist.reduce_scatter(x, parts)
    dist.reduce_scatter_tensor(x, torch.ones(4 * size, 3))
    dist.all_to_all(parts, [torch.ones(4, 3)] * size)
    dist.all_to_all_single(torch.zeros(4), torch.ones(4))
    dist.gather(x, parts if rank == 0 else None)
    dist.scatter(x, parts if rank == 0 else None)
    dist.reduce(x, 0)
    with dist._coalescing_manager():
        dist.all_reduce(torch.ones(3))
        dist.all_reduce(torch.ones(5))
    dist.send(x, 1) if rank == 0 else dist.recv(x, 0)
    dist.barrier()
    work.wait()


def records_of_each_kind(rank, size, folder):
    of_each_kind(rank, size)
    dump_to(folder, rank)
    import kolocc.torch

    dump = pickle.loads(kolocc.torch.dump_fr_trace())
    names = [e["profiling_name"] for e in dump["entries"]]
    assert names[:6] == ["nccl:all_reduce", "nccl:all_reduce", "nccl:broadcast", "nccl:all_gather", "nccl:_all_gather_base",
                         "nccl:reduce_scatter"], names
    assert ("nccl:send 0->1" if rank == 0 else "nccl:recv 1<-0") in names and names[-1] == "nccl:barrier"
    gathered = dump["entries"][3]
    assert (gathered["input_sizes"], gathered["output_sizes"], gathered["output_dtypes"]) == ([[4, 3]], [[size, 4, 3]], ["Float"])
    assert all(e["state"] == "completed" and e["retired"] for e in dump["entries"]), dump["entries"]
    assert [e["collective_seq_id"] for e in dump["entries"] if not e["is_p2p"]] == list(range(1, len(names)))
    assert any(f["name"] == "of_each_kind" for f in gathered["frames"])
    (group,) = dump["pg_config"].values()
    assert group["ranks"] == str(list(range(size)))
    assert not pickle.loads(kolocc.torch.dump_fr_trace(only_active=True))["entries"]


def records_wrap_around(rank, size):
    import kolocc.torch

    for i in range(1, 9):
        dist.all_reduce(torch.ones(i))
    dump = pickle.loads(kolocc.torch.dump_fr_trace())
    assert [e["input_sizes"] for e in dump["entries"]] == [[[6]], [[7]], [[8]]]
    assert list(dump["pg_status"].values()) == [dict.fromkeys(("last_enqueued_collective", "last_started_collective", "last_completed_collective"), 8)]


def no_records(rank, size):
    import kolocc.torch

    dist.all_reduce(torch.ones(3))
    assert not pickle.loads(kolocc.torch.dump_fr_trace())["entries"]


def a_rank_goes_its_own_way(rank, size, folder):
    """Rank 1 leaves the second operation out. The failure writes rank 0's record; rank 1's own call is in its record."""
    dist.all_reduce(torch.ones(3))
    if rank == 0:
        fails("Timed out", lambda: dist.all_reduce(torch.ones(4), async_op=True).wait())
        (last,) = pickle.loads(open(f"{folder}/trace_0", "rb").read())["entries"][1:]
        assert last["state"] == "scheduled" and not last["retired"] and last["input_sizes"] == [[4]], last
    else:
        while backend_of().get_error() == ErrorType.SUCCESS:
            time.sleep(0.01)
        dump_to(folder, rank)
    backend_of().abort()


def analyse(folder):
    """As `torchfrtrace FOLDER`: the collectives that match, and names and missing ranks of those that do not."""
    from torch.distributed.flight_recorder.components import builder, config_manager, loader

    args = config_manager.JobConfig().parse_args([folder, "--prefix", "trace_"])
    details, version = loader.read_dir(args)
    database = builder.build_db(details, args, version)
    good = [c for c in database.collectives if c.pass_check and not c.missing_ranks]
    return good, [(c.collective_name, c.missing_ranks) for c in database.collectives if c not in good]


def test_records_of_each_kind():
    with tempfile.TemporaryDirectory() as folder:
        world.run(records_of_each_kind, 2, folder, env={"TORCH_FR_BUFFER_SIZE": "100"})
        good, bad = analyse(folder)
        assert len(good) >= 14 and not bad, (good, bad)


def test_records_wrap_around():
    world.run(records_wrap_around, 2, env={"TORCH_NCCL_TRACE_BUFFER_SIZE": "3"})
    world.run(no_records, 2)


def test_a_failure_writes_the_record():
    with tempfile.TemporaryDirectory() as folder:
        world.run(a_rank_goes_its_own_way, 2, folder, timeout_s=2, # PyTorch makes the folder of its default file as well
                  env={"TORCH_FR_BUFFER_SIZE": "100", "TORCH_FR_DUMP_TEMP_FILE": f"{folder}/trace_", "XDG_CACHE_HOME": folder})
        good, bad = analyse(folder)
        assert len(good) == 1 and bad == [("nccl:all_reduce", {1})], (good, bad)


def several(rank, size, names, *args):
    for name in names:
        globals()[name](rank, size, *args)


def test_groups():
    world.run(several, 2, ["two_groups_in_any_order", "many_groups", "suspends", "memory_of_its_own"])


def test_split_and_shrink():
    world.run(several, 4, ["splits", "shrinks"])


def test_flight_record():
    with tempfile.TemporaryDirectory() as folder:
        world.run(flight_record, 2, folder)


def detail(rank, size):
    t = torch.ones(3)
    dist.all_reduce(t)
    assert torch.equal(t, torch.full((3,), float(size)))
    work = dist.all_reduce(t, async_op=True)
    work.wait()
    with pytest.raises(RuntimeError, match="Detected mismatch between collectives on ranks"):
        if rank:
            dist.all_reduce(torch.ones(3))
        else:
            dist.all_reduce(torch.ones(4))


def test_detail_debug():
    world.run(detail, 2, env={"TORCH_DISTRIBUTED_DEBUG": "DETAIL"})


def with_a_plugin_for_gpus(rank, size, store):
    dist.init_process_group("cpu:kolo,cuda:gloo", init_method=f"file://{store}", rank=rank, world_size=size)
    t = torch.ones(3)
    dist.all_reduce(t)
    assert torch.equal(t, torch.full((3,), float(size))) and backend_of().name() == "kolo"
    dist.destroy_process_group()
    import kolocc.torch

    kolocc.torch.make_default()
    dist.init_process_group(init_method=f"file://{store}2", rank=rank, world_size=size)
    assert backend_of().name() == "kolo"


def test_backend_strings():
    with tempfile.TemporaryDirectory() as folder:
        world.run(with_a_plugin_for_gpus, 2, f"{folder}/store", backend=None)
