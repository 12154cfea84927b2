# SPDX-License-Identifier: Apache-2.0
"""NVLS, forced on a machine that has it: every collective that it does, every type and operation, ranks as processes, as
threads and as both, ends with the right results."""
import re
import sys

import tool

MACHINE = tool.machine("h100-nvsw-0nic")
SIZES = ["-b", "1K", "-e", "300K", "-f", "17", "-n", "1", "-w", "0"]


def run(collective, *words, **settings):
    """The algorithms that rank 0 says it takes."""
    out = tool.run("perf", collective, "--topo", MACHINE, *SIZES, *words, NCCL_DEBUG="INFO", NCCL_DEBUG_SUBSYS="TUNING",
                   **settings)
    if out.returncode or "Out of bounds values : 0 OK" not in out.stdout:
        sys.exit(f"{collective} {words} {settings} failed:\n{out.stdout}\n{out.stderr}")
    return set(re.findall(r"Bytes -> Algo (\w+)", out.stdout + out.stderr))


def expect(wanted, collective, *words, **settings):
    got = run(collective, *words, **settings)
    if got != {wanted}:
        sys.exit(f"{collective} {words} {settings} took {got}, not {wanted}")


for placement in (["--np", "4"], ["--np", "1", "-t", "5"], ["--np", "2", "-t", "4"]):
    for collective in ("all_reduce", "all_gather", "reduce_scatter"):
        expect("NVLS", collective, *placement, "-d", "all", NCCL_ALGO="NVLS")
        if collective != "all_gather":
            expect("NVLS", collective, *placement, "-o", "all", NCCL_ALGO="NVLS")
expect("NVLS", "all_reduce", "--np", "3", NCCL_ALGO="NVLS", NCCL_RUNTIME_CONNECT="0")
