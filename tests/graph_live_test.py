# SPDX-License-Identifier: Apache-2.0
"""The rings that a live communicator runs on are those that `kolo graph` prints for the same machine, and a graph file
that was dumped is taken back."""
import json
import pathlib
import re
import sys
import tempfile

import tool

machines = sorted(pathlib.Path("tests/data").rglob("dgx1v-hcm-0nic.xml")) + [None]


def planned(machine, ranks):
    words = ["--topo", str(machine)] if machine else ["--ranks", str(ranks)]
    return json.loads(tool.good("graph", "--json", *words))["rings"]


def live(machine, ranks, **settings):
    words = ["perf", "all_reduce", "--np", "1", "-t", str(ranks), "-b", "1M", "-e", "1M", "-n", "1"]
    words += ["--topo", str(machine)] if machine else []
    out = tool.run(*words, NCCL_DEBUG="INFO", NCCL_DEBUG_SUBSYS="INIT", **settings)
    if out.returncode or "Out of bounds values : 0 OK" not in out.stdout:
        sys.exit(f"{words} failed:\n{out.stdout}\n{out.stderr}")
    lines = re.findall(r"Channel \d\d/\d\d :([ \d]+)", out.stdout + out.stderr)
    return [[int(rank) for rank in line.split()] for line in lines]


for machine in machines:
    ranks = 8 if machine else 3
    rings = planned(machine, ranks)
    if live(machine, ranks) != rings:
        sys.exit(f"{machine or 'this machine'}: live rings {live(machine, ranks)}, planned {rings}")
    with tempfile.TemporaryDirectory() as folder:
        dump = folder + "/graphs.xml"
        live(machine, ranks, NCCL_GRAPH_DUMP_FILE=dump)
        text = pathlib.Path(dump).read_text()
        if live(machine, ranks, NCCL_GRAPH_FILE=dump) != rings:
            sys.exit(f"{machine or 'this machine'}: a dumped graph file gives other rings")
        pathlib.Path(dump).write_text(text.replace('<gpu dev="', '<gpu dev="0x7'))
        if live(machine, ranks, NCCL_GRAPH_FILE=dump) != rings:
            sys.exit(f"{machine or 'this machine'}: a graph file of another machine was not refused")
print(f"{len(machines)} machines agree")
