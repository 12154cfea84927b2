# SPDX-License-Identifier: Apache-2.0
"""CollNet between emulated hosts with NICs that reduce: every collective that it serves, by the chain and by heads, on machines of
tests/data/, with processes and threads, in and out of place: every element of every result is right, the forced way ran,
heads reach each other through the network that reduces, and a collective takes no other way between hosts.

KOLO_MATRIX=all runs every way in every layout, with every type and operation.
"""
import os
import re
import signal
import subprocess
import sys
import tempfile

import matrix
import tool
from matrix import ALL

PLACES = [(4, "--np 4 --hosts 2"), (6, "--np 6 --hosts 3"), (8, "--np 4 -t 2 --hosts 2"), (3, "--np 3 --hosts 3"),
          (2, "--np 2 --hosts 2"), (16, "--np 16 --hosts 2"), (24, "--np 3 -t 8 --hosts 3"), (5, "--np 5 --hosts 5")]
CHAIN, DIRECT = ("CollNetChain", "Simple"), ("CollNetDirect", "Simple")
SWITCHED = ("a100-nvsw-8nic-200g", "h100-rail-8nic-400g")  # heads need an NVSwitch
MACHINES = SWITCHED + ("pcie-8gpu-4nic-100g", "dgx1v-hcm-4nic", None)  # None: this one, without a described network
WAYS = {"all_reduce": [CHAIN, DIRECT], "all_gather": [DIRECT], "reduce_scatter": [DIRECT]}
PER_WAY = 5  # layouts, unless all
BUFFERS = ("4096", "65536", None)
BOUND_S = tool.HANG_S


def able(way):
    """Layouts, places and machines changing with every one."""
    machines = SWITCHED if way == DIRECT else MACHINES
    count = len(PLACES) * len(machines)
    return [(*PLACES[i % len(PLACES)], machines[(i + i // len(PLACES)) % len(machines)]) for i in range(count)]


def that_reduces(name, folder):
    """The machine, with NICs that reduce."""
    path = f"{folder}/{name}.xml"
    with open(tool.machine(name), encoding="utf-8") as machine, open(path, "w", encoding="utf-8") as f:
        f.write(machine.read().replace("<net ", '<net coll="1" '))
    return path


def settings(way, number):
    buffer = BUFFERS[number % len(BUFFERS)]
    return {"NCCL_COLLNET_ENABLE": "1", "NCCL_DEBUG": "INFO", "NCCL_DEBUG_SUBSYS": "INIT,NET,TUNING", **matrix.settings(way),
            **({"NCCL_BUFFSIZE": buffer} if buffer else {})}


def fault_of_network(log, hosts):
    heads = re.findall(r"CollNet \d+/\d : (\d+) \[(send|receive)\] via COLLNET/Socket/\d+$", log, re.M)
    if len({rank for rank, _ in heads}) < hosts or {way for _, way in heads} != {"send", "receive"}:
        return f"heads are {heads}"
    if re.search(r"Channel \d+/0 : .* via NET/", log):
        return "a collective takes another way between hosts"
    return next(("it warns: " + line for line in log.splitlines() if " WARN " in line), None)


def check(judge, collective, way, layout, number, folder):
    ranks, place, machine = layout
    size = "-b 8 -e 3M -f 61" if ALL else "-b 40 -e 300K -f 87"
    words = f"{collective} {place} {size} -n 1 -w 0 -T 100".split()
    words += ["--topo", that_reduces(machine, folder)] if machine else []
    words += ["-d", "all", "-o", "all"] if ranks <= 4 and (ALL or way == CHAIN) else []
    env = settings(way, number)
    with tempfile.TemporaryDirectory() as logs:
        out = tool.run("perf", *words, NCCL_DEBUG_FILE=logs + "/%h.%p", **env)
        log = matrix.log_of(logs)
    label = " ".join([f"{k}={v}" for k, v in env.items()] + ["kolo perf", *words])
    judge.note(label, judge.fault(out, log, collective, way) or fault_of_network(log, int(words[words.index("--hosts") + 1])))


def check_refusals(judge):
    """Where it cannot be, it says so: not asked for, NICs that do not reduce, one node."""
    for env, words in (({}, "--hosts 2 --np 4"), ({"NCCL_COLLNET_ENABLE": "1"}, "--np 4"),
                       ({"NCCL_COLLNET_ENABLE": "1", "NCCL_COLLNET_NODE_THRESHOLD": "3"}, "--hosts 2 --np 4"),
                       ({"NCCL_COLLNET_ENABLE": "1"}, f"--hosts 2 --np 4 --topo {tool.machine('dgx1v-hcm-4nic')}")):
        out = tool.run("perf", "all_reduce", *words.split(), "-b", "8", "-e", "8", NCCL_ALGO="CollNetChain", **env)
        if not out.returncode or "leaves nothing that can do AllReduce" not in out.stderr:
            judge.note(f"{env} {words}", f"exit {out.returncode}\n{out.stderr}")


def first_row(job):
    for line in job.stdout:
        if re.match(r" +\d+ +\d+ +float", line):
            return
    sys.exit("the job printed no row: " + job.stderr.read())


def check_death(judge, algorithm, number):
    """The last rank, a head, dies in the middle of the job: survivors end and name it."""
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("NCCL_", "KOLO_"))}
    env = {**clean, "NCCL_COLLNET_ENABLE": "1", "NCCL_ALGO": algorithm, "KOLO_TIMEOUT": "20"}
    with tempfile.TemporaryDirectory() as folder:
        words = ["perf", "all_reduce", "--np", "6", "--hosts", "3", "--topo", that_reduces(SWITCHED[0], folder), "-b", "1M", "-e", "1M",
                 "-n", "2", "-N", "0"]
        job = subprocess.Popen([tool.KOLO, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8", env=env)
        first_row(job)
        ranks = subprocess.run(["pgrep", "-P", str(job.pid)], stdout=subprocess.PIPE, encoding="ascii", check=True).stdout.split()
        os.kill(int(ranks[-1]), number)
        _, said = job.communicate(timeout=BOUND_S)
    if not job.returncode or "rank 5" not in said:
        judge.note(f"death of a head, {algorithm}", f"exit {job.returncode}: {said}")


def main():
    judge, number = matrix.Judge(), 0
    with tempfile.TemporaryDirectory() as folder:
        for collective, ways in WAYS.items():
            for way in ways:
                layouts = able(way)
                for i in range(len(layouts) if ALL else PER_WAY):
                    check(judge, collective, way, layouts[(number + i) % len(layouts)], number + i, folder)
                number += PER_WAY
    check_refusals(judge)
    for algorithm, way in (("CollNetChain", signal.SIGKILL), ("CollNetDirect", signal.SIGKILL)):
        check_death(judge, algorithm, way)
    return judge.report(WAYS)


if __name__ == "__main__":
    sys.exit(main())
