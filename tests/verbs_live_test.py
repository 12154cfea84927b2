# SPDX-License-Identifier: Apache-2.0
"""Communicators over RDMA, with the stand-in of compat/verbs: every collective between emulated hosts, the choice of the net, and the
sentences where a GID is wrong, memory may not be locked, or a peer dies."""
import os
import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, "tests")
import tool  # noqa: E402

STANDIN = os.path.join(os.environ["KOLO_BUILD"], "lib/kolo/verbs/libibverbs.so.1")
COLLECTIVES = ("all_reduce all_gather reduce_scatter broadcast reduce alltoall alltoallv gather scatter sendrecv hypercube "
               "barrier").split()
SMALL = ("-b", "8", "-e", "8", "-n", "1", "-w", "0")


def perf(*words, **settings):
    """Its result, and the log of all ranks."""
    with tempfile.TemporaryDirectory() as logs:
        p = tool.run("perf", *words, NCCL_IBVERBS_LIB=STANDIN, NCCL_DEBUG="INFO", NCCL_DEBUG_FILE=logs + "/%p", **settings)
        log = "".join(f.read_text(encoding="utf-8") for f in pathlib.Path(logs).iterdir())
    return p, log


class Collectives(unittest.TestCase):
    def good(self, *words, **settings):
        p, log = perf(*words, **settings)
        self.assertEqual(p.returncode, 0, p.stdout + p.stderr)
        self.assertIn("Out of bounds values : 0 OK", p.stdout)
        self.assertIn("via NET/IB/0", log)
        self.assertNotIn("via NET/Socket", log)

    def test_every_collective_on_two_hosts(self):
        for collective in COLLECTIVES:
            with self.subTest(collective=collective):
                ranks = "4" if collective == "hypercube" else "2"
                self.good(collective, "--np", ranks, "--hosts", "2", "-b", "40", "-e", "300K", "-f", "87", "-n", "1", "-w", "0")

    def test_three_hosts_and_large_messages(self):
        for collective in COLLECTIVES:
            if collective != "hypercube":
                with self.subTest(collective=collective):
                    self.good(collective, "--np", "3", "--hosts", "3", "-b", "600K", "-e", "600K", "-n", "1", "-w", "0")

    def test_several_devices_and_queue_pairs(self):
        self.good("all_reduce", "--np", "2", "--hosts", "2", "-b", "2M", "-e", "2M", "-n", "1", "-w", "0",
                  KOLO_VERBS_DEVICES="2", NCCL_IB_QPS_PER_CONNECTION="2")


class Choice(unittest.TestCase):
    def test_sockets_by_name(self):
        p, log = perf("all_reduce", "--np", "2", "--hosts", "2", *SMALL, NCCL_NET="Socket")
        self.assertEqual(p.returncode, 0, p.stderr)
        self.assertIn("via NET/Socket", log)
        self.assertNotIn("via NET/IB", log)

    def test_encryption_is_not_available(self):
        p, log = perf("all_reduce", "--np", "2", "--hosts", "2", *SMALL, KOLO_NET_CRYPT="1")
        self.assertEqual(p.returncode, 0, p.stderr)
        self.assertIn("via NET/Socket", log)
        self.assertIn("KOLO_NET_CRYPT=1 asks for encryption, which RDMA does not have", log)
        p, log = perf("all_reduce", "--np", "2", "--hosts", "2", *SMALL, KOLO_NET_CRYPT="1", NCCL_NET="IB")
        self.assertNotEqual(p.returncode, 0)
        self.assertIn("KOLO_NET_CRYPT=1 asks for encryption, which RDMA does not have", log + p.stdout + p.stderr)

    def test_no_device(self):
        p, log = perf("all_reduce", "--np", "2", "--hosts", "2", *SMALL, KOLO_VERBS_DEVICES="0", NCCL_NET="verbs")
        self.assertNotEqual(p.returncode, 0)
        self.assertIn("there is no RDMA device", log + p.stdout + p.stderr)


class Faults(unittest.TestCase):
    def bad(self, sentence, **settings):
        p, log = perf("all_reduce", "--np", "2", "--hosts", "2", *SMALL, **settings)
        self.assertNotEqual(p.returncode, 0, p.stdout)
        self.assertIn(sentence, log + p.stdout + p.stderr)

    def test_a_wrong_gid(self):
        self.bad("likely: a wrong GID (NCCL_IB_GID_INDEX)", NCCL_IB_GID_INDEX="1", NCCL_IB_TIMEOUT="8", NCCL_IB_RETRY_CNT="1")
        self.bad("NCCL_IB_GID_INDEX=6: kolo0 port 1 has no GID there, but [0] fe80::1", NCCL_IB_GID_INDEX="6")

    def test_memory_that_may_not_be_locked(self):
        self.bad("cannot register", KOLO_VERBS_FAULT="reg_mr:12")

    def test_a_completion_that_fails(self):
        self.bad("status 10 (remote access error)", KOLO_VERBS_FAULT="send:10@1")

    def test_a_peer_that_dies(self):
        """Long before the retries of the card would end, which take minutes with this timeout."""
        one = 'case $KOLO_RANK in 1) export KOLO_CHAOS=1:kill@40;; esac; exec "$0" perf all_reduce -b 1M -e 1M -n 1000'
        p = tool.run("run", "-n", "2", "--hosts", "2", "--", "sh", "-c", one, tool.KOLO, NCCL_IBVERBS_LIB=STANDIN, NCCL_DEBUG="WARN",
                     NCCL_IB_TIMEOUT="24")
        self.assertNotEqual(p.returncode, 0)
        self.assertIn("rank 1: signal 9", p.stdout + p.stderr)
        self.assertRegex(p.stdout + p.stderr, r"rank 0: .*rank 1 .*(is gone|closed)")


if __name__ == "__main__":
    unittest.main()
