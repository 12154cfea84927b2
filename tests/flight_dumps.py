# SPDX-License-Identifier: Apache-2.0
"""Flight records as PyTorch 2.13 writes them: a list of calls for each rank, as dictionaries, pickles or JSON."""
import json
import os
import pickle

SITE = "/usr/lib/python3/dist-packages/torch/distributed/distributed_c10d.py"


def call(name="all_reduce", seq=1, state="completed", group="0", sizes=((1024,),), out=None, dtype="Float", line=10, p2p=None, desc=None):
    """One entry. `p2p`: the number of a message or batch."""
    if group == "0" and desc is None:
        desc = "default_pg"
    return {
        "frames": [{"name": name, "filename": SITE, "line": 3245}, {"name": "step", "filename": "/home/u/train.py", "line": line}],
        "record_id": 0, "pg_id": 0, "process_group": (group, desc or "undefined"), "collective_seq_id": seq, "p2p_seq_id": p2p or 0,
        "op_id": seq, "profiling_name": f"nccl:{name}", "time_created_ns": 1_795_873_787_090_578_548 + seq,
        "input_sizes": [list(s) for s in sizes], "input_dtypes": [dtype] * len(sizes),
        "output_sizes": [list(s) for s in (sizes if out is None else out)], "output_dtypes": [dtype] * len(sizes), "state": state,
        "time_discovered_started_ns": None, "time_discovered_completed_ns": None, "retired": state == "completed", "timeout_ms": 600000,
        "is_p2p": p2p is not None,
    }


def send(src, dst, p2p=1, state="completed", **more):
    return call(f"send {src}->{dst}", seq=0, p2p=p2p, state=state, **more)


def recv(dst, src, p2p=1, state="completed", **more):
    return call(f"recv {dst}<-{src}", seq=0, p2p=p2p, state=state, **more)


def many(n, **more):
    return [call(seq=i, **more) for i in range(1, n + 1)]


def dump(entries, groups):
    """`groups`: {name: ranks}."""
    entries = [dict(e, record_id=i) for i, e in enumerate(entries)]
    config = {g: {"name": g, "desc": "default_pg" if g == "0" else "undefined", "ranks": str(list(r))} for g, r in groups.items()}
    return {"version": "2.10", "comm_lib_version": "2.29.7", "pg_config": config, "pg_status": {}, "entries": entries}


def write(folder, ranks, groups=None, protocol=2, skip=(), prefix="trace_"):
    """`ranks`: entries of each rank. `protocol` None: JSON. The names of the files."""
    groups = groups or {"0": range(len(ranks))}
    files = []
    for rank, entries in enumerate(ranks):
        if rank in skip:
            continue
        own = groups[rank] if isinstance(groups, list) else {g: r for g, r in groups.items() if rank in r}
        files.append(os.path.join(folder, f"{prefix}{rank}"))
        with open(files[-1], "wb") as f:
            f.write(json.dumps(dump(entries, own)).encode() if protocol is None else pickle.dumps(dump(entries, own), protocol))
    return files
