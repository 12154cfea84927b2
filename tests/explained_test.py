# SPDX-License-Identifier: Apache-2.0
"""Ten operations of a job: `kolo explain --constants host` says beforehand how each will be done; the lines of NCCL_DEBUG, the trace and the flight
record say afterwards how it was done; all of them say the same. The profile of the machine is given, so that no measurement decides."""
import ctypes
import json
import os
import re
import sys
import tempfile

import tool

PROFILE = "line=60,cma=1241,cma_kib=88,huge_kib=55,copy_kib=23,out_kib=90,nt_kib=100,own=1024,last=32768,cpus=2,huge=1"
OPERATIONS = (("all_reduce", 1 << 10), ("all_reduce", 64 << 10), ("all_reduce", 1 << 20), ("all_reduce", 8 << 20), ("broadcast", 64 << 10),
              ("broadcast", 4 << 20), ("reduce", 4 << 20), ("all_gather", 64 << 10), ("all_gather", 8 << 20), ("reduce_scatter", 4 << 20))
RANKS = 4
MODES = {"processes": ({}, "ordinary", ()),
         "buffers of ncclMemAlloc": ({}, "exported", ()),
         "copied by the kernel": ({"KOLO_SELECT": "FIXED,KERNEL"}, "ordinary", ()),
         "staged": ({"KOLO_SELECT": "FIXED,STAGED"}, "exported", ()),
         "two hosts": ({}, "ordinary", ("--hosts", "2"))}


# ---- a rank ----

def run_rank(folder, buffers):
    """Each operation once, and the flight record. Arguments of C are size_t but where a type is given."""
    kolo = ctypes.CDLL(os.path.join(os.environ["KOLO_BUILD"], "libkolo.so"))
    comm, size, f32, total = ctypes.c_void_p(), ctypes.c_size_t, 7, ctypes.c_int(0)

    def ok(result):
        if result:
            kolo.ncclGetLastError.restype = ctypes.c_char_p
            sys.exit(kolo.ncclGetLastError(None).decode())

    def memory(n):
        p = ctypes.c_void_p()
        if buffers == "exported":
            ok(kolo.ncclMemAlloc(ctypes.byref(p), size(n)))
            return p
        return ctypes.create_string_buffer(n)

    ok(kolo.koloInitFromEnv(ctypes.byref(comm)))
    for name, n in OPERATIONS:
        send, recv, count = memory(n), memory(n), n // 4
        calls = {"all_reduce": lambda c=count: kolo.ncclAllReduce(send, recv, size(c), f32, total, comm, None),
                 "reduce": lambda c=count: kolo.ncclReduce(send, recv, size(c), f32, total, 0, comm, None),
                 "broadcast": lambda c=count: kolo.ncclBroadcast(send, recv, size(c), f32, 0, comm, None),
                 "all_gather": lambda c=count // RANKS: kolo.ncclAllGather(send, recv, size(c), f32, comm, None),
                 "reduce_scatter": lambda c=count // RANKS: kolo.ncclReduceScatter(send, recv, size(c), f32, total, comm, None)}
        ok(calls[name]())
        ok(kolo.koloStreamSynchronize(None))
    ok(kolo.koloFlightRecorder(comm, f"{folder}/flight.%r".encode()))
    ok(kolo.ncclCommDestroy(comm))


# ---- before, and after ----

def words(row):
    """A row of the table, as records say it."""
    return ", ".join([row["copy"]] + ["hierarchical"] * row["hierarchical"] + ["nt stores"] * row["nt_stores"])


def explained(operation, settings, hosts):
    """The answer of `kolo explain`."""
    collective, size = operation
    return json.loads(tool.good("explain", collective, str(size), "--ranks", str(RANKS), "--constants", "host", *hosts, "--json", **settings))


def ran(settings, buffers, hosts):
    """The output of the job, and rank 0's operations in its trace and its flight record."""
    with tempfile.TemporaryDirectory() as folder:
        p = tool.run("run", "-n", str(RANKS), *hosts, "--", sys.executable, __file__, "rank", folder, buffers,
                     KOLO_TRACE=folder + "/trace.%r", NCCL_DEBUG="INFO", NCCL_DEBUG_SUBSYS="INIT,TUNING",
                     KOLO_BUILD=os.environ["KOLO_BUILD"], **settings)
        if p.returncode:
            sys.exit(f"{settings}: {p.stdout}{p.stderr}")
        with open(folder + "/trace.0", encoding="utf-8") as file:
            traced = [e["args"] for e in json.load(file)["traceEvents"] if e["ph"] == "X" and e["cat"] == "operation"]
        with open(folder + "/flight.0", encoding="utf-8") as file:
            recorded = json.load(file)["operations"]
    return p.stdout + p.stderr, traced, recorded


def logged(said, name, size):
    """(algorithm, protocol), and the line about the copies: of one operation, by its function and size."""
    a, b = re.search(rf" {name}: {size} Bytes -> Algo (\w+) proto (\w+)", said).groups()
    outcome = re.search(rf" {name}: {size} Bytes: (.*)", said)
    return (a.replace("_", ""), b), outcome and outcome[1]


def check_row(label, row, outcome, traced, recorded):
    way = words(row)
    if (traced["way"], recorded.get("way", "staged")) != (way, way):  # a record without it: staged, as small operations always are
        sys.exit(f"{label}: explained {way}, traced {traced}, recorded {recorded}")
    copied = {"kernel": "copied by the kernel", "direct": "done in the ranks' own buffers"}.get(row["copy"])
    if copied and not (outcome or "").startswith(copied):
        sys.exit(f"{label}: explained {way}, logged {outcome}")
    if outcome and row["copy"] == "staged" and row["reason"]["text"] not in outcome:
        sys.exit(f"{label}: explained {row['reason']}, logged {outcome}")
    return way


def check(mode):
    settings, buffers, hosts = MODES[mode]
    settings = {"KOLO_PROFILE": PROFILE, "KOLO_SELECT": "FIXED", **settings}
    said, traced, recorded = ran(settings, buffers, hosts)
    ways = []
    for i, operation in enumerate(OPERATIONS):
        answer, label = explained(operation, settings, hosts), f"{mode}: {operation[0]} of {operation[1]} bytes"
        name, choice = recorded[i]["function"], (answer["choice"]["algorithm"], answer["choice"]["protocol"])
        shown, outcome = logged(said, name, recorded[i]["bytes"])
        for record in (traced[i], recorded[i]):
            if (record["algorithm"], record["protocol"]) != choice or tuple(w.upper() for w in choice) != shown:
                sys.exit(f"{label}: explained {choice}, logged {shown}, record {record}")
        if "selected" in answer:
            row = next(r for r in answer["selected"]["rows"] if r["buffers"] == buffers)
            ways.append(check_row(label, row, outcome, traced[i], recorded[i]))
            profile = re.search(r"machine profile: (.*); (\d+) ranks? per core", said).groups()
            if profile != (answer["selected"]["profile"], str(answer["selected"]["ranks_per_core"])):
                sys.exit(f"{label}: explained {answer['selected']}, logged {profile}")
    return ways


def main():
    ways = {mode: check(mode) for mode in MODES}
    kinds = {way for mode in ways.values() for way in mode}
    if len(kinds) < 3:
        sys.exit(f"all operations are {kinds}: little was compared")
    for mode, found in ways.items():
        print(f"{mode}: {'; '.join(f'{c} of {s}: {w}' for (c, s), w in zip(OPERATIONS, found)) or 'algorithms and protocols'}")


if sys.argv[1:2] == ["rank"]:
    run_rank(*sys.argv[2:])
else:
    main()
