# SPDX-License-Identifier: Apache-2.0
"""Jobs of two hosts with networks of their own, in which something goes wrong: every rank ends in bounded time, those that live say
what is missing, and no process is left. Strangers that connect to every port in the middle of a job change nothing."""
import ctypes
import fcntl
import os
import re
import signal
import socket
import struct
import subprocess
import threading
import time
import unittest

import tool

NAMESPACE_NET, SIOCGIFFLAGS, SIOCSIFFLAGS, IFF_UP = 0x40000000, 0x8913, 0x8914, 1
BOUND_S = 60
libc = ctypes.CDLL(None, use_errno=True)


def in_network_of(pid, what):
    """Call it in a thread that is in the process's network namespace; its result."""
    found = []

    def run():
        fd = os.open(f"/proc/{pid}/ns/net", os.O_RDONLY)
        moved = libc.setns(fd, NAMESPACE_NET) == 0
        os.close(fd)
        if moved:
            found.append(what())
    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    return found[0]


def listening():
    """(address, port) of each listener of the namespace of this thread."""
    with open("/proc/thread-self/net/tcp", encoding="ascii") as table:
        rows = [line.split() for line in table][1:]
    ends = [row[1].split(":") for row in rows if row[3] == "0A"]
    return [(socket.inet_ntoa(struct.pack("=I", int(host, 16))), int(port, 16)) for host, port in ends]


def disturb():
    """Garbage, half a word, and nothing, for every listener; how many there were."""
    held = []
    for end in listening():
        for said in (b"GET / HTTP/1.0\r\n\r\n" * 20, b"\0" * 300, os.urandom(7), b""):
            try:
                s = socket.create_connection(end, timeout=5)
                held.append(s)
                s.sendall(said)
            except OSError:
                pass
    for s in held:
        s.close()
    return len(held)


def take_down():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        request = struct.pack("16sh22x", b"kolo0", 0)
        flags = struct.unpack("16sh22x", fcntl.ioctl(s, SIOCGIFFLAGS, request))[1]
        fcntl.ioctl(s, SIOCSIFFLAGS, struct.pack("16sh22x", b"kolo0", flags & ~IFF_UP))


class Job:
    """A long one, which is moving data."""

    def __init__(self, case, steps, **settings):
        clean = {k: v for k, v in os.environ.items() if not k.startswith(("NCCL_", "KOLO_"))}
        words = [tool.KOLO, "perf", "all_reduce", "--np", "4", "--hosts", "2", "--netns", "-w", "0", *steps]
        self.process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8",
                                        env={**clean, "HOME": "/nonexistent", **settings})
        self.case, self.pid, self.said = case, {}, ""
        case.addCleanup(self.process.kill)
        for line in self.process.stdout:
            self.said += line
            rank = re.match(r"#  Rank +(\d+) .* Pid +(\d+) ", line)
            if rank:
                self.pid[int(rank[1])] = int(rank[2])
            if re.match(r" +\d+ +\d+ +float ", line):
                return

    def end(self):
        """Its end, in time, with no process left."""
        began = time.monotonic()
        out, err = self.process.communicate(timeout=BOUND_S)
        self.case.assertLess(time.monotonic() - began, BOUND_S)
        for pid in self.pid.values():
            self.case.assertFalse(os.path.exists(f"/proc/{pid}"))
        return self.process.returncode, self.said + out, err


LONG = ("-b", "64K", "-e", "64M", "-f", "2", "-n", "400")


class Faults(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        p = tool.run("perf", "all_reduce", "--np", "2", "--hosts", "2", "--netns", "-b", "8", "-e", "8", "-n", "1", "-w", "0")
        if p.returncode and os.geteuid():
            raise unittest.SkipTest("no network namespaces: not root")
        if p.returncode:
            raise unittest.SkipTest("no network namespaces: " + p.stderr.strip())

    def survivors_say(self, err, words, ranks):
        for rank in ranks:
            lines = [line for line in err.splitlines() if re.match(rf"kolo perf: rank {rank}: ", line)]
            self.assertTrue(any(re.search(words, line) for line in lines), (rank, words, err))

    def test_a_rank_is_killed(self):
        job = Job(self, LONG)
        os.kill(job.pid[3], signal.SIGKILL)
        code, _, err = job.end()
        self.assertNotEqual(code, 0)
        self.survivors_say(err, "rank 3", (0, 1, 2))

    def test_a_rank_stands_still(self):
        job = Job(self, LONG, KOLO_TIMEOUT="2")
        os.kill(job.pid[2], signal.SIGSTOP)
        code, _, err = job.end()
        self.assertNotEqual(code, 0)
        self.survivors_say(err, r"nothing moved for 2 s, waiting for rank [0-3] \(host", (0, 1, 3))  # the first to say so is heard by all

    def test_an_interface_goes_down(self):
        job = Job(self, LONG, KOLO_TIMEOUT="3")
        in_network_of(job.pid[2], take_down)
        code, _, err = job.end()
        self.assertNotEqual(code, 0)
        self.survivors_say(err, r"rank [0-3]", (0, 1, 2, 3))

    def test_strangers_change_nothing(self):
        job = Job(self, ("-b", "8", "-e", "256K", "-f", "2", "-n", "50"))
        met = sum(in_network_of(job.pid[rank], disturb) for rank in (0, 2) for _ in range(5))
        code, out, err = job.end()
        self.assertEqual((code, "# Out of bounds values : 0 OK" in out), (0, True), out + err)
        self.assertGreater(met, 0)


if __name__ == "__main__":
    tool.main()
