# SPDX-License-Identifier: Apache-2.0
"""Ten operations of a job: `kolo explain --constants host` says beforehand how each will be done, the lines of NCCL_DEBUG_SUBSYS=TUNING and the
trace say afterwards how it was done, and all three say the same. The profile of the machine is given, so that no measurement decides."""
import json
import re
import sys
import tempfile

import tool

PROFILE = "line=60,cma=1241,cma_kib=88,huge_kib=55,copy_kib=23,out_kib=90,nt_kib=100,own=1024,last=32768,cpus=2,huge=1"
OPERATIONS = (("all_reduce", 1 << 10), ("all_reduce", 64 << 10), ("all_reduce", 1 << 20), ("all_reduce", 8 << 20), ("broadcast", 64 << 10),
              ("broadcast", 4 << 20), ("reduce", 4 << 20), ("all_gather", 64 << 10), ("all_gather", 8 << 20), ("reduce_scatter", 4 << 20))
RANKS = 4
SETTINGS = {"KOLO_PROFILE": PROFILE, "KOLO_SELECT": "FIXED"}


def words(row):
    """A row of the table, as the trace says it."""
    return ", ".join([row["copy"]] + ["hierarchical"] * row["hierarchical"] + ["nt stores"] * row["nt_stores"])


def explained(collective, size):
    """(algorithm, protocol), the row for ordinary memory."""
    o = json.loads(tool.good("explain", collective, str(size), "--ranks", str(RANKS), "--constants", "host", "--json", **SETTINGS))
    return (o["choice"]["algorithm"], o["choice"]["protocol"]), next(r for r in o["selected"]["rows"] if r["buffers"] == "ordinary")


def ran(collective, size):
    """(algorithm, protocol) and the way to copy of rank 0's operation: by its lines, and by its trace."""
    with tempfile.TemporaryDirectory() as folder:
        out = tool.run("perf", collective, "--np", str(RANKS), "-b", str(size), "-e", str(size), "-n", "1", "-w", "0", "-R", "0",
                       KOLO_TRACE=folder + "/trace.%r", NCCL_DEBUG="INFO", NCCL_DEBUG_SUBSYS="TUNING", **SETTINGS)
        if out.returncode:
            sys.exit(f"{collective} of {size} bytes: {out.stdout}{out.stderr}")
        with open(folder + "/trace.0", encoding="utf-8") as file:
            events = json.load(file)["traceEvents"]
    name = collective.replace("_", "")
    trace = next(e["args"] for e in events if e["ph"] == "X" and e["cat"] == "operation" and e["name"].lower() == name)
    said = out.stdout + out.stderr
    algorithm, protocol = re.search(r": \d+ Bytes -> Algo (\w+) proto (\w+)", said).groups()
    copied = re.search(r": \d+ Bytes: copied by the (kernel)", said)
    staged = re.search(r": \d+ Bytes: (staged[^:]*): (.*) \(", said)
    return (algorithm, protocol), copied, staged, trace


def check(collective, size):
    label = f"{collective} of {size} bytes"
    choice, row = explained(collective, size)
    lines, copied, staged, trace = ran(collective, size)
    if (trace["algorithm"], trace["protocol"]) != choice or tuple(w.upper() for w in choice) != lines:
        sys.exit(f"{label}: explained {choice}, logged {lines}, traced {trace}")
    if trace.get("way", "staged") != words(row):
        sys.exit(f"{label}: explained {row}, traced {trace}")
    if bool(copied) != (row["copy"] == "kernel"):
        sys.exit(f"{label}: explained {row}, logged {copied and copied[0]}")
    if staged and staged[2] != row["reason"]["text"]:
        sys.exit(f"{label}: explained {row}, logged {staged[0]}")
    return row["copy"]


kinds = [check(*operation) for operation in OPERATIONS]
if len(set(kinds)) < 2:
    sys.exit(f"all operations are {kinds[0]}: nothing was compared")
print(", ".join(f"{c} of {s}: {k}" for (c, s), k in zip(OPERATIONS, kinds)))
