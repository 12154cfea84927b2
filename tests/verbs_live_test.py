# SPDX-License-Identifier: Apache-2.0
"""Communicators over RDMA, with the stand-in of compat/verbs: the choice of the net, and the sentences where a GID is wrong, memory may
not be locked, or a peer dies. nets_test.py runs the collectives."""
import os
import pathlib
import signal
import sys
import tempfile
import time
import unittest

sys.path.insert(0, "tests")
import jobs  # noqa: E402
import tool  # noqa: E402

STANDIN = os.path.join(os.environ["KOLO_BUILD"], "lib/kolo/verbs/libibverbs.so.1")
SMALL = ("-b", "8", "-e", "8", "-n", "1", "-w", "0")


def perf(*words, **settings):
    """Its result, and the log of all ranks."""
    with tempfile.TemporaryDirectory() as logs:
        p = tool.run("perf", *words, NCCL_IBVERBS_LIB=STANDIN, NCCL_DEBUG="INFO", NCCL_DEBUG_FILE=logs + "/%p", **settings)
        log = "".join(f.read_text(encoding="utf-8") for f in pathlib.Path(logs).iterdir())
    return p, log


class Connections(unittest.TestCase):
    def test_several_devices_and_queue_pairs(self):
        p, log = perf("all_reduce", "--np", "2", "--hosts", "2", "-b", "2M", "-e", "2M", "-n", "1", "-w", "0", KOLO_VERBS_DEVICES="2",
                      NCCL_IB_QPS_PER_CONNECTION="2")
        self.assertEqual(p.returncode, 0, p.stdout + p.stderr)
        self.assertIn("Out of bounds values : 0 OK", p.stdout)
        self.assertIn("NET/IB : [1]kolo1:1/RoCE 100000 Mb/s", log)

    def test_small_packets_are_warned_of(self):
        with tempfile.TemporaryDirectory() as sysfs:
            for file, text in (("infiniband/kolo0/ports/1/gid_attrs/ndevs/0", "eth7"), ("net/eth7/mtu", "1500")):
                path = pathlib.Path(sysfs, "class", file)
                path.parent.mkdir(parents=True)
                path.write_text(text + "\n", encoding="utf-8")
            few = perf("all_reduce", "--np", "2", "--hosts", "2", *SMALL, KOLO_VERBS_MTU="2")[1]
            fewer = perf("all_reduce", "--np", "2", "--hosts", "2", *SMALL, KOLO_VERBS_MTU="2", KOLO_VERBS_SYSFS=sysfs)[1]
            right = perf("all_reduce", "--np", "2", "--hosts", "2", *SMALL, KOLO_VERBS_MTU="3", KOLO_VERBS_SYSFS=sysfs)[1]
        self.assertIn("NCCL WARN NET/IB : kolo0 port 1 sends packets of 512 bytes, which makes it slow: raise the MTU", few)
        self.assertIn("kolo0 port 1 sends packets of 512 bytes, and its interface eth7 (MTU 1500) could carry 1024", fewer)
        self.assertNotIn("sends packets", right)


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
        """Noticed by other means than the card's retries, which would take days; the time is printed."""
        words = "all_reduce --np 2 --hosts 2 -b 64K -e 64K -n 1 -w 0 -N 0"
        with jobs.Job(words, NCCL_IBVERBS_LIB=STANDIN, NCCL_DEBUG="WARN", NCCL_IB_TIMEOUT="31", KOLO_NVML="0") as job:
            job.await_line(r"^ +65536 ")
            job.kill(1, signal.SIGKILL)
            dead = time.monotonic()
            job.await_line(r"rank 0[: ].*rank 1 .*(closed|is gone)")
            print(f"a killed peer is noticed after {(time.monotonic() - dead) * 1000:.0f} ms")
            job.await_line(r"rank 1: signal 9")
            self.assertNotEqual(job.end(), 0)


if __name__ == "__main__":
    unittest.main()
