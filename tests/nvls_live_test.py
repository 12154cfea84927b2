# SPDX-License-Identifier: Apache-2.0
"""NVLS on one host and NVLSTree on several, forced on machines that have them, and where hosts are joined by NVLink: every collective
that they do, every type and operation, ranks as processes, as threads and as both, ends with the right results. Where nothing is forced, large sums between hosts
take NVLSTree. A rank that is killed, or stands still, ends the job of all in bounded time."""
import os
import re
import signal
import subprocess
import sys

import tool

ONE, RAILS, FOUR, REDUCING = (tool.machine(name) for name in (
    "h100-nvsw-0nic", "h100-rail-8nic-400g", "h100-rail-4gpu-4nic-400g", "h100-nvsw-8nic-400g-coll"))
SIZES = ["-b", "1K", "-e", "300K", "-f", "17", "-n", "1", "-w", "0"]
BOUND_S = tool.HANG_S
THREADS_ONLY = tool.SANITIZE == "thread"  # types and operators have the same threads
TYPES, OPERATORS = ([], []) if THREADS_ONLY else (["-d", "all"], ["-o", "all"])


def run(collective, *words, **settings):
    """The algorithms that rank 0 says it takes."""
    out = tool.run("perf", collective, *words, NCCL_DEBUG="INFO", NCCL_DEBUG_SUBSYS="TUNING", **settings)
    if out.returncode or "Out of bounds values : 0 OK" not in out.stdout:
        sys.exit(f"{collective} {words} {settings} failed:\n{out.stdout}\n{out.stderr}")
    return set(re.findall(r"Bytes -> Algo (\w+)", out.stdout + out.stderr))


def expect(wanted, collective, *words, **settings):
    got = run(collective, *words, **settings)
    if got != {wanted}:
        sys.exit(f"{collective} {words} {settings} took {got}, not {wanted}")


def check_one_host():
    def forced(collective, *words, **settings):
        expect("NVLS", collective, "--topo", ONE, *SIZES, *words, NCCL_ALGO="NVLS", **settings)

    processes, threads, both = ["--np", "4"], ["--np", "1", "-t", "5"], ["--np", "2", "-t", "4"]
    for placement in {"": (processes, threads, both), "thread": (both,)}.get(tool.SANITIZE, (processes, threads)):
        for collective in ("all_reduce", "all_gather", "reduce_scatter"):
            forced(collective, *placement, *TYPES)
            if OPERATORS and collective != "all_gather":
                forced(collective, *placement, *OPERATORS)
    if not THREADS_ONLY:
        forced("all_reduce", "--np", "3", NCCL_RUNTIME_CONNECT="0")


def check_hosts():
    def forced(*words, **settings):
        expect("NVLS_TREE", "all_reduce", "--topo", RAILS, *words, NCCL_ALGO="NVLSTree", **settings)

    forced(*SIZES, "--hosts", "3", "--np", "3", "-t", "4", *TYPES)
    if THREADS_ONLY:  # it sees each process by itself
        return
    forced(*SIZES, "--hosts", "2", "--np", "6", *TYPES, *OPERATORS)
    if tool.SANITIZE:  # more ranks run the same code
        return
    forced(*SIZES, "--hosts", "2", "--np", "16")
    forced(*SIZES, "--hosts", "5", "--np", "15", NCCL_BUFFSIZE="4096")
    forced("--hosts", "2", "--np", "2", "-t", "3", "-b", "8", "-e", "8M", "-f", "53", "-n", "3", NCCL_RUNTIME_CONNECT="0")
    with tool.written(tool.good("topo", "--format", "xml", "--topo", FOUR, "--hosts", "2", "--mnnvl")) as two:
        expect("NVLS_TREE", "all_reduce", "--topo", two.name, *SIZES, "--hosts", "4", "--np", "16", NCCL_ALGO="NVLSTree")
    unforced = run("all_reduce", "--topo", RAILS, "--hosts", "2", "--np", "16", "-b", "8", "-e", "2M", "-f", "64", "-n", "1", "-w", "0")
    if "NVLS_TREE" not in unforced or len(unforced) < 2:
        sys.exit(f"nothing is forced, and all sizes take {unforced}")


def check_network():
    """With CollNet heads meet in a network that reduces; where nothing is forced, too."""
    def run_there(*words, **settings):
        return run("all_reduce", "--topo", REDUCING, *words, NCCL_COLLNET_ENABLE="1", **settings)

    jobs = (["--hosts", "3", "--np", "3", "-t", "4"], ["--hosts", "2", "--np", "6", *TYPES, *OPERATORS])
    for words in jobs[:1] if THREADS_ONLY else jobs:
        got = run_there(*SIZES, *words, NCCL_ALGO="NVLS")
        if got != {"NVLS"}:
            sys.exit(f"{words}: forced to NVLS, it took {got}")
    if tool.SANITIZE:  # the choice is the same
        return
    unforced = run_there("--hosts", "2", "--np", "16", "-b", "4M", "-e", "4M", "-n", "1", "-w", "0")
    if unforced != {"NVLS"}:
        sys.exit(f"with a network that reduces, and nothing forced, it took {unforced}")


def check_fault(number, settings, words):
    """The last rank gets a signal in the middle of the job: survivors end, and say `words`."""
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("NCCL_", "KOLO_"))}
    job = subprocess.Popen([tool.KOLO, "perf", "all_reduce", "--topo", RAILS, "--hosts", "2", "--np", "6", "-b", "64K", "-e", "64M",
                            "-n", "400", "-w", "0"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8",
                           env={**clean, "HOME": "/nonexistent", "NCCL_ALGO": "NVLSTree", **settings})
    for line in job.stdout:
        rank = re.match(r"#  Rank +5 .* Pid +(\d+) ", line)
        pid = int(rank[1]) if rank else None
        if pid:
            break
    for line in job.stdout:
        if re.match(r" +\d+ +\d+ +float ", line):
            break
    os.kill(pid, number)
    try:
        _, err = job.communicate(timeout=BOUND_S)
    except subprocess.TimeoutExpired:
        sys.exit(f"signal {number} to a rank: the others do not end")
    finally:
        job.kill()
    said = {int(rank) for rank in re.findall(rf"^kolo perf: rank (\d+): .*{words}", err, re.M)}
    if job.returncode == 0 or not said >= {0, 1, 2, 3, 4}:
        sys.exit(f"signal {number} to a rank: exit {job.returncode}, and only ranks {sorted(said)} say {words!r}:\n{err}")


check_one_host()
check_hosts()
check_network()
if not THREADS_ONLY:
    check_fault(signal.SIGKILL, {}, "rank 5")
    check_fault(signal.SIGSTOP, {"KOLO_TIMEOUT": "10"}, r"nothing moved for \d+ s, waiting for rank 5 \(.*, which is silent")
