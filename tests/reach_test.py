# SPDX-License-Identifier: Apache-2.0
"""How ranks of one host reach each other where the usual way is closed: NCCL_SHM_DISABLE and NCCL_P2P_DISABLE, containers with one host name, no
loopback address. Every element is right, and goes the way that is left."""
import os
import re
import subprocess
import sys
import unittest

import tool

COLLECTIVES = ("all_reduce", "alltoall", "sendrecv", "broadcast", "reduce_scatter", "all_gather")
SIZES = ("-b", "8", "-e", "1M", "-f", "64", "-n", "2", "-w", "1")
# Processes, and threads of each.
JOBS = (("--np", "4"), ("--np", "2", "-t", "2"), ("--np", "1", "-t", "4"))


def perf(*words, inside=(), **env):
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("NCCL_", "KOLO_"))}
    return subprocess.run([*inside, tool.KOLO, "perf", *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8",
                          timeout=tool.HANG_S, check=False, env={**clean, "HOME": "/nonexistent", "NCCL_DEBUG": "INFO", **env})


def can(*words):
    """May such namespaces be made here?"""
    try:
        return subprocess.run([*words, "true"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False).returncode == 0
    except FileNotFoundError:
        return False


def bare(setup):
    """A network namespace, in which these commands run first."""
    return ("unshare", "-n", "sh", "-c", setup + 'exec "$@"', "sh")


class Reach(unittest.TestCase):
    def ways(self, p):
        """Transports that it used."""
        self.assertEqual((p.returncode, "# Out of bounds values : 0 OK" in p.stdout), (0, True), p.stdout + p.stderr)
        return set(re.findall(r" via (\w+)/", p.stdout + p.stderr))

    def goes(self, ways, job, **env):
        for collective in COLLECTIVES:
            with self.subTest(collective=collective, job=job, **env):
                self.assertLessEqual(self.ways(perf(collective, *SIZES, *job, **env)), ways)

    def test_without_shm_processes_take_the_network(self):
        self.goes({"NET"}, JOBS[0], NCCL_SHM_DISABLE="1")
        self.goes({"NET", "P2P"}, JOBS[1], NCCL_SHM_DISABLE="1")
        self.goes({"P2P"}, JOBS[2], NCCL_SHM_DISABLE="1")

    def test_without_either_all_take_the_network(self):
        for job in JOBS:
            self.goes({"NET"}, job, NCCL_SHM_DISABLE="1", NCCL_P2P_DISABLE="1")
            self.goes({"NET"}, job, NCCL_SHM_DISABLE="1", NCCL_P2P_LEVEL="LOC")

    def test_without_p2p_all_take_shm(self):
        for job in JOBS:
            self.goes({"SHM"}, job, NCCL_P2P_DISABLE="1")

    def test_no_algorithm_shares_memory_without_shm(self):
        for algorithm in ("NVLS", "NVLSTree", "Ring", "Tree"):
            with self.subTest(algorithm=algorithm):
                p = perf("all_reduce", *SIZES, *JOBS[0], "--machine", "dgx-h100", NCCL_SHM_DISABLE="1", NCCL_ALGO="allreduce:" + algorithm)
                if algorithm.startswith("NVLS") and p.returncode:
                    continue  # an algorithm that was asked for by name, and is not to be had
                self.assertLessEqual(self.ways(p), {"NET"})

    @unittest.skipUnless(can("unshare", "-n"), "no network namespaces here")
    def test_one_host_needs_no_network(self):
        for collective in COLLECTIVES:
            with self.subTest(collective=collective):
                self.assertLessEqual(self.ways(perf(collective, *SIZES, *JOBS[0], inside=("unshare", "-n"))), {"SHM"})

    @unittest.skipUnless(can(*bare("ip link set lo up && ")), "no network namespaces here, or no ip")
    def test_other_namespaces(self):
        only_v6 = "ip link set lo up; ip addr del 127.0.0.1/8 dev lo; "
        no_loopback = "ip link add k0 type veth peer name k1; ip addr add 192.0.2.1/24 dev k0; ip link set k0 up; ip link set k1 up; "
        for setup in (only_v6, no_loopback):
            with self.subTest(setup=setup):
                self.assertLessEqual(self.ways(perf("all_reduce", *SIZES, *JOBS[0], inside=bare(setup))), {"SHM"})
        p = perf("all_reduce", *SIZES, *JOBS[0], inside=bare(only_v6), NCCL_SHM_DISABLE="1")
        self.assertEqual(self.ways(p), {"NET"})

    @unittest.skipUnless(can("unshare", "-n"), "no network namespaces here")
    def test_who_needs_a_network_says_so(self):
        p = perf("all_reduce", *SIZES, *JOBS[0], inside=("unshare", "-n"), NCCL_SHM_DISABLE="1")
        self.assertNotEqual(p.returncode, 0)
        self.assertRegex(p.stderr, r"over the network only, as NCCL_SHM_DISABLE=1 is set.*no network interface; there are: none")

    def test_containers_with_one_host_name(self):
        hosts = ("run", "-n", "4", "--hosts", "2", "--netns", "--")
        if tool.run(*hosts, "true").returncode:
            self.skipTest("no network namespaces: kolo run --netns")
        for collective in ("all_reduce", "alltoall", "sendrecv"):
            with self.subTest(collective=collective):
                p = tool.run(*hosts, "env", "-u", "NCCL_HOSTID", "KOLO_HOST_DEVICES=4", "NCCL_DEBUG=INFO", tool.KOLO, "perf", collective, *SIZES)
                self.assertEqual(self.ways(p), {"NET", "SHM"})


if __name__ == "__main__":
    sys.exit(tool.main())
