# SPDX-License-Identifier: Apache-2.0
"""Jobs of two hosts with networks of their own, with a fault: every rank ends in bounded time, the survivors name the missing
rank, and nothing is left: no process, no network namespace, no interface. Passing disturbances change nothing: strangers that
connect to every port in the middle of a job, a reader that stands still for a while, another MTU."""
import ctypes
import fcntl
import glob
import os
import re
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
import unittest

import tool

NAMESPACE_NET, SIOCGIFFLAGS, SIOCSIFFLAGS, IFF_UP = 0x40000000, 0x8913, 0x8914, 1
BOUND_S = tool.HANG_S
libc = ctypes.CDLL(None, use_errno=True)


def in_network_of(pid, what):
    """Call it in a thread that is in the process's network namespace; its result. None: the process has ended."""
    found = [None]

    def run():
        try:
            fd = os.open(f"/proc/{pid}/ns/net", os.O_RDONLY)
        except FileNotFoundError:
            return
        moved = libc.setns(fd, NAMESPACE_NET) == 0
        os.close(fd)
        if moved:
            found[0] = what()
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


def queued():
    """Bytes that wait in the send queues of this namespace."""
    with open("/proc/thread-self/net/tcp", encoding="ascii") as table:
        return sum(int(line.split()[4].split(":")[0], 16) for line in list(table)[1:])


def dropped():
    """Packets that the queues of this namespace's links have dropped."""
    out = subprocess.run(["tc", "-s", "qdisc", "show"], stdout=subprocess.PIPE, check=True, encoding="utf-8").stdout
    return sum(int(n) for n in re.findall(r"dropped (\d+)", out))


PORTS = ("h0", "h1")  # of the switch, in the namespace of the tool


def shorten_queues():
    """True if the kernel can."""
    bucket = "root tbf rate 100mbit burst 4kb limit 8kb".split()
    return all(not subprocess.run(["tc", "qdisc", "replace", "dev", port, *bucket], check=False).returncode for port in PORTS)


def lengthen_queues():
    for port in PORTS:
        subprocess.run(["tc", "qdisc", "del", "dev", port, "root"], check=True)


def ip(*words):
    subprocess.run(["ip", *words], check=True)


def reset_connections():
    """True if the kernel can."""
    out = subprocess.run(["ss", "-K", "-H", "-t", "state", "established"], stdout=subprocess.PIPE, check=True, encoding="utf-8")
    return bool(out.stdout.strip())


def processes():
    """Those of this test. A process that a job leaves behind becomes a child of leftovers.py, this one's parent."""
    found, new = set(), [os.getppid()]
    while new:
        pid = new.pop()
        found.add(pid)
        for file in glob.glob(f"/proc/{pid}/task/*/children"):
            try:
                with open(file, encoding="ascii") as children:
                    new += [int(child) for child in children.read().split()]
            except (FileNotFoundError, ProcessLookupError):
                continue
    return found


def networks():
    """The network namespaces that processes of this test are in, or hold a descriptor of. A namespace of another job
    may have the number of one that is gone."""
    found = set()
    for pid in processes():
        for entry in [f"/proc/{pid}/ns/net", *glob.glob(f"/proc/{pid}/fd/*")]:
            try:
                target = os.readlink(entry)
            except OSError:
                continue
            if target.startswith("net:"):
                found.add(target)
    return found


def interfaces():
    """Of this namespace, and named namespaces."""
    return {name for _, name in socket.if_nameindex()} | set(glob.glob("/run/netns/*"))


class Job:
    """A long one, which is moving data."""

    def __init__(self, case, steps, **settings):
        clean = {k: v for k, v in os.environ.items() if not k.startswith(("NCCL_", "KOLO_"))}
        words = [tool.KOLO, "perf", "all_reduce", "--np", "4", "--hosts", "2", "--netns", "-w", "0", *steps]
        self.process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8",
                                        env={**clean, "HOME": "/nonexistent", **settings})
        self.case, self.pid, self.said, self.networks, self.interfaces = case, {}, "", set(), interfaces()
        case.addCleanup(self.process.kill)
        for line in self.process.stdout:
            self.said += line
            rank = re.match(r"#  Rank +(\d+) .* Pid +(\d+) ", line)
            if rank:
                self.pid[int(rank[1])] = int(rank[2])
            if re.match(r" +\d+ +\d+ +float ", line):
                break
        own = os.readlink("/proc/self/ns/net")
        self.networks = {os.readlink(f"/proc/{pid}/ns/net") for pid in [*self.pid.values(), self.process.pid]} - {own}
        case.assertEqual(len(self.networks & networks()), 3)

    def end(self):
        """Its end, in time, with nothing left."""
        out, err = self.process.communicate(timeout=BOUND_S)
        self.nothing_is_left()
        return self.process.returncode, self.said + out, err

    def nothing_is_left(self):
        self.case.assertEqual(processes() & set(self.pid.values()), set())
        self.case.assertEqual(networks() & self.networks, set())
        self.case.assertEqual(interfaces() - self.interfaces, set())

    def is_right(self):
        code, out, err = self.end()
        self.case.assertEqual((code, "# Out of bounds values : 0 OK" in out), (0, True), out + err)


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

    def with_longer_timeouts(self, check):
        """With a timeout in seconds. Other programs may keep an innocent rank from running for as long as the timeout of the others, but not
        for far longer."""
        for seconds in (3, 20):
            try:
                check(seconds)
                return
            except (AssertionError, OSError) as e:
                print(f"again with a longer timeout: {e}", file=sys.stderr)
        check(150)

    def meet_at_an_address(self, port, ranks=2, timeout_s=BOUND_S // 2, **settings):
        """Two hosts that know an address only."""
        there = [f"{name}={value}" for name, value in settings.items()]
        return tool.run("run", "-n", str(ranks), "--hosts", "2", "--netns", "--", "env", f"KOLO_COMM_ID=10.77.0.1:{port}",
                        f"KOLO_BOOTSTRAP_TIMEOUT={timeout_s}", *there, tool.KOLO, "perf", "all_reduce", "-b", "8", "-e", "8", "-n", "1",
                        "-w", "0")

    def check_outside(self, timeout_s):
        p = self.meet_at_an_address(4711, timeout_s=timeout_s, NCCL_DEBUG="WARN")
        self.assertNotEqual(p.returncode, 0)
        self.assertRegex(p.stdout + p.stderr, r"refused somebody at 10\.77\.0\.2:\d+: without KOLO_SECRET only this host may join")
        self.assertRegex(p.stderr, f"1 of 2 ranks did not join within {timeout_s} s: rank 1")

    def test_without_a_secret_other_hosts_stay_outside(self):
        self.with_longer_timeouts(self.check_outside)
        for port, settings in ((4712, {"KOLO_SECRET": "swordfish"}), (4713, {"KOLO_OPEN_TO": "10.77.0.0/16"}),
                               (4714, {"KOLO_OPEN_TO": "1"})):
            with self.subTest(**settings):
                p = self.meet_at_an_address(port, **settings)
                self.assertEqual(p.returncode, 0, p.stdout + p.stderr)

    def check_strangers(self, timeout_s):
        p = self.meet_at_an_address(4715, ranks=6, timeout_s=timeout_s, NCCL_DEBUG="INFO")
        lines = [line for line in (p.stdout + p.stderr).splitlines() if "refused somebody" in line]
        self.assertEqual(len(lines), 3, p.stdout + p.stderr)
        self.assertEqual(sum("NCCL WARN" in line for line in lines), 1, lines)

    def test_strangers_do_not_fill_the_log(self):
        self.with_longer_timeouts(self.check_strangers)

    def test_a_rank_is_killed(self):
        job = Job(self, LONG)
        os.kill(job.pid[3], signal.SIGKILL)
        code, _, err = job.end()
        self.assertNotEqual(code, 0)
        self.survivors_say(err, "rank 3", (0, 1, 2))

    def check_still(self, timeout_s):
        job = Job(self, LONG, KOLO_TIMEOUT=str(timeout_s))
        os.kill(job.pid[2], signal.SIGSTOP)
        code, _, err = job.end()
        self.assertNotEqual(code, 0)
        self.survivors_say(err, r"nothing moved for \d+ s, waiting for rank 2 \(host .*\), which is silent", (0, 1, 3))

    def test_a_rank_stands_still(self):
        self.with_longer_timeouts(self.check_still)

    def test_an_interface_goes_down(self):
        self.check_network(take_down)

    def test_strangers_change_nothing(self):
        for _ in range(10):  # one job may have ended before they came
            job = Job(self, ("-b", "8", "-e", "256K", "-f", "2", "-n", "50"))
            met = sum(in_network_of(job.pid[rank], disturb) or 0 for rank in (0, 2) for _ in range(5))
            job.is_right()
            if met:
                return
        self.fail("they came too late each time")

    def check_network(self, trouble):
        """Something happens to the network of the second host."""

        def check(timeout_s):
            job = Job(self, LONG, KOLO_TIMEOUT=str(timeout_s))
            in_network_of(job.pid[2], trouble)
            code, out, err = job.end()
            self.assertNotEqual(code, 0)
            self.survivors_say(err, r"rank [0-3] (\(host|at 10\.77\.)", (0, 1, 2, 3))
            self.assertNotIn("0 OK", out)

        self.with_longer_timeouts(check)

    def test_an_address_is_gone(self):
        self.check_network(lambda: ip("address", "del", "10.77.0.2/16", "dev", "kolo0"))

    def test_a_host_that_loses_its_address_waits_for_nobody(self):
        """Without KOLO_TIMEOUT. Its own ranks cannot tell each other either."""
        job = Job(self, LONG)
        in_network_of(job.pid[2], lambda: ip("address", "flush", "dev", "kolo0"))
        code, _, err = job.end()
        self.assertNotEqual(code, 0)
        self.survivors_say(err, r"rank [0-3] (\(host|at 10\.77\.)|has lost its connection", (0, 1, 2, 3))
        self.survivors_say(err, r"rank [23] \(host .*\) is cut off: its host has lost the address 10\.77\.0\.2", (2, 3))

    def test_a_route_is_a_black_hole(self):
        self.check_network(lambda: ip("route", "add", "blackhole", "10.77.0.1/32"))

    def check_reset(self, timeout_s):
        job = Job(self, LONG, KOLO_TIMEOUT=str(timeout_s))
        if not in_network_of(job.pid[2], reset_connections):
            job.process.terminate()
            job.process.communicate(timeout=BOUND_S)
            self.skipTest("the kernel does not reset connections (CONFIG_INET_DIAG_DESTROY)")
        code, _, err = job.end()
        self.assertNotEqual(code, 0)
        self.survivors_say(err, r"rank [0-3] (\(host|at 10\.77\.)", (0, 1, 2, 3))

    def test_connections_are_reset(self):
        self.with_longer_timeouts(self.check_reset)

    def test_a_slow_reader_is_waited_for(self):
        """It stands still until the buffers on the way to it are full, and goes on."""
        job = Job(self, ("-b", "4M", "-e", "16M", "-f", "2", "-n", "4"), KOLO_TIMEOUT="60")
        os.kill(job.pid[2], signal.SIGSTOP)
        self.await_queue(job, 10)
        os.kill(job.pid[2], signal.SIGCONT)
        job.is_right()

    def await_queue(self, job, seconds):
        """Until data wait to be sent in a host's sockets and nothing moves, or the job has shown that there is nothing to be sent."""
        deadline, before = time.monotonic() + seconds, None
        while time.monotonic() < deadline:
            now = in_network_of(job.pid[0], queued)
            if now and now == before:
                return
            before = now
            time.sleep(0.2)

    def test_the_mtu_changes(self):
        job = Job(self, ("-b", "1M", "-e", "4M", "-f", "2", "-n", "10"))
        for mtu in ("1280", "9000", "1500"):
            in_network_of(job.pid[2], lambda mtu=mtu: ip("link", "set", "kolo0", "mtu", mtu))
        job.is_right()

    def test_packets_are_lost_and_late(self):
        """For a while, links have queues of a few packets."""
        job = Job(self, ("-b", "64K", "-e", "4M", "-f", "2", "-n", "10"))
        if not in_network_of(job.process.pid, shorten_queues):
            job.process.terminate()
            job.process.communicate(timeout=BOUND_S)
            self.skipTest("the kernel has no token bucket (tbf)")
        deadline, lost = time.monotonic() + BOUND_S, 0
        while lost < 10 and time.monotonic() < deadline:
            lost = in_network_of(job.process.pid, dropped)
        in_network_of(job.process.pid, lengthen_queues)
        self.assertGreaterEqual(lost, 10)
        job.is_right()

    def check_tool(self, sent):
        job = Job(self, LONG)
        job.process.send_signal(sent)
        job.process.communicate(timeout=BOUND_S)
        deadline = time.monotonic() + BOUND_S
        while processes() & set(job.pid.values()) or networks() & job.networks:
            self.assertLess(time.monotonic(), deadline, "something is left")
            time.sleep(0.05)
        job.nothing_is_left()
        self.assertNotEqual(job.process.returncode, 0)

    def test_the_tool_is_interrupted(self):
        self.check_tool(signal.SIGINT)

    def test_the_tool_is_terminated(self):
        self.check_tool(signal.SIGTERM)

    def test_the_tool_is_killed(self):
        self.check_tool(signal.SIGKILL)


if __name__ == "__main__":
    tool.main()
