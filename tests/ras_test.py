# SPDX-License-Identifier: Apache-2.0
"""`kolo ras` and NCCL's text protocol: the states of ranks, ranks behind, ranks missing, from any process of a job; and no way to disturb it."""
import json
import os
import re
import signal
import socket
import subprocess
import sys

import jobs
import ports
import tool

RANKS = "all_reduce -b 64K -e 64K -n 100000000 -w 1"

# Two ranks of one process, and two communicators; rank 1 never calls the last collective, until it is told to.
BEHIND = """
import ctypes, sys
kolo, streams = ctypes.CDLL(None), [ctypes.c_void_p(), ctypes.c_void_p()]
comms = [(ctypes.c_void_p * 2)(), (ctypes.c_void_p * 2)()]
buffers = [(ctypes.c_float * 8)() for _ in range(2)]
for c in comms:
    assert not kolo.ncclCommInitAll(c, 2, None)
for s in streams:
    assert not kolo.koloStreamCreate(ctypes.byref(s), 0)
def reduce(rank, op):
    size, comm = ctypes.c_size_t(8), ctypes.c_void_p(comms[0][rank])
    assert not kolo.ncclAllReduce(buffers[rank], buffers[rank], size, 7, op, comm, streams[rank])
for n in range(5):
    for rank in range(2):
        reduce(rank, 0)
    for s in streams:
        assert not kolo.koloStreamSynchronize(s)
reduce(0, int(sys.argv[1]))
print("waiting", flush=True)
sys.stdin.readline()
reduce(1, 2)
print("called", flush=True)
sys.stdin.readline()
"""


class Ras(tool.Case):
    words = ("ras",)

    def ask(self, *words):
        """The exit code and the report of the job that is asked."""
        p = self.run_tool(*words, "--json")
        return p.returncode, json.loads(p.stdout) if p.stdout else None, p.stderr

    def job(self, words, **env):
        return jobs.Job(f"{RANKS} {words}", **env)

    def await_running(self, job, n):
        """All have called a collective."""
        def running():
            code, found, _ = self.ask("--pid", str(job.pid(0)))
            comms = found["jobs"][0]["communicators"] if code == 0 and found["jobs"] else []
            return comms and len(comms[0]["ranks"]) == n and all(r["collectives_called"] > 10 for r in comms[0]["ranks"]) and comms[0]
        return jobs.until(running, "all ranks run")

    def test_any_process_tells_of_all_ranks(self):
        with self.job("--np 6 --hosts 3") as job:
            comm = self.await_running(job, 6)
            self.assertEqual((comm["size"], comm["verdict"], comm["missing_ranks"]), (6, "OK", []))
            self.assertEqual([r["rank"] for r in comm["ranks"]], list(range(6)))
            self.assertEqual([r["pid"] for r in comm["ranks"]], [job.pid(r) for r in range(6)])
            self.assertEqual(len({r["host"] for r in comm["ranks"]}), 3)
            for r in comm["ranks"]:
                self.assertEqual(r["status"], {"init_state": 0, "async_error": 0, "finalize_called": False, "destroy_flag": False,
                                               "abort_flag": False})
                self.assertGreater(r["collective_counts"]["AllReduce"], 0)
                self.assertEqual((r["operation"]["function"], r["operation"]["bytes"]), ("AllReduce", 65536))
            for rank in range(6):
                code, found, _ = self.ask("--pid", str(job.pid(rank)))
                self.assertEqual((code, [c["hash"] for c in found["jobs"][0]["communicators"]]), (0, [comm["hash"]]))
                self.assertEqual(len(found["jobs"][0]["communicators"][0]["ranks"]), 6)

    def test_who_stands_still_is_missing(self):
        with self.job("--np 3") as job:
            self.await_running(job, 3)
            job.kill(1, signal.SIGSTOP)

            def stuck():
                code, found, _ = self.ask("-t", "1", "--pid", str(job.pid(2)))
                comm = found["jobs"][0]["communicators"][0]
                return code == 1 and comm["stuck"] and comm

            comm = jobs.until(stuck, "it is stuck")
            self.assertEqual(comm["verdict"], "INCOMPLETE")
            self.assertEqual([r["rank"] for r in comm["ranks"]], [0, 2])
            self.assertEqual([m["rank"] for m in comm["missing_ranks"]], [1])
            self.assertRegex(comm["missing_ranks"][0]["who"], rf"^rank 1 \(host .*, pid {job.pid(1)}\)$")
            self.assertIn(1, [r["waits_for"] for r in comm["ranks"]])
            self.assertFalse(any(r["behind"] for r in comm["ranks"]))
            for r in comm["ranks"]:  # they stand still: values that are counted separately agree
                self.assertEqual(r["collective_counts"]["AllReduce"], r["collectives_called"])
            code, found, complaints = self.ask("-t", "1", "--pid", str(job.pid(1)))
            self.assertEqual((code, found["silent"], found["jobs"]), (1, [job.pid(1)], []))
            self.assertIn(f"process {job.pid(1)} does not answer", complaints)
            text = self.run_tool("-t", "1", "--pid", str(job.pid(0))).stdout
            self.assertRegex(text, rf"MISSING: rank 1 \(host .*, pid {job.pid(1)}\) has not answered")
            self.assertRegex(text, r"STUCK: #\d+ AllReduce of 64K, float sum of rank [02] has lasted for")
            job.kill(1, signal.SIGCONT)
            self.await_running(job, 3)

    def start(self, last):
        """The program, once rank 0 waits."""
        env = {**os.environ, "LD_PRELOAD": f"{os.environ['KOLO_BUILD']}/libkolo.so"}
        p = subprocess.Popen([sys.executable, "-c", BEHIND, str(last)], env=env, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.addCleanup(lambda: (p.kill(), p.wait(), p.stdin.close(), p.stdout.close()))
        self.assertEqual(p.stdout.readline(), "waiting\n")
        return p

    def test_who_is_behind(self):
        p = self.start(0)

        def stuck():
            _, found, _ = self.ask("--pid", str(p.pid))
            comms = found["jobs"][0]["communicators"]
            return len(comms) == 2 and next((c for c in comms if c["stuck"]), None)

        comm = jobs.until(stuck, "it is stuck")
        self.assertEqual(comm["verdict"], "STUCK")
        self.assertEqual([(r["collectives_called"], r["collectives_ended"], r["behind"]) for r in comm["ranks"]],
                         [(6, 5, False), (5, 5, True)])
        self.assertEqual([r["operation"]["state"] for r in comm["ranks"]], ["running", "ended"])
        self.assertEqual([r["waits_for"] for r in comm["ranks"]], [1, None])
        text = self.run_tool("--pid", str(p.pid)).stdout
        self.assertRegex(text, rf"BEHIND: rank 1 \(host .*, pid {p.pid}\) has called 5 collectives, others are in #6")
        self.assertIn("idle since #5 AllReduce of 32 bytes, float sum", text)
        watch = subprocess.Popen([tool.KOLO, "ras", "--watch", "0.05", "--pid", str(p.pid)], stdout=subprocess.PIPE,
                                 stderr=subprocess.PIPE, text=True)
        for _ in range(3):
            while not re.search("BEHIND: rank 1", watch.stdout.readline()):
                pass
        p.kill()
        p.wait()
        self.assertRegex(watch.communicate()[1], "has no communicator, or is not here|does not answer|cannot connect")
        self.assertEqual(watch.returncode, 1)

    def test_nobody_to_ask(self):
        self.refused(1, "process 1 has no communicator", "--pid", "1")
        self.refused(2, "--pid", "--pid", "0")
        self.assertEqual(self.run_tool("--address", "127.0.0.1:1").returncode, 1)


class Protocol(tool.Case):
    def setUp(self):
        self.port = ports.free_port()

    def connect(self, source="127.0.0.1"):
        s = socket.socket()
        self.addCleanup(s.close)
        s.settimeout(jobs.BOUND_S)
        s.bind((source, 0))
        s.connect(("127.0.0.1", self.port))
        return s

    def hear(self, s):
        heard = b""
        try:
            while True:
                some = s.recv(65536)
                if not some:
                    break
                heard += some
        except ConnectionResetError:
            pass
        return heard.decode()

    def say(self, text, **how):
        s = self.connect(**how)
        s.sendall(text.encode("latin-1"))
        return self.hear(s)

    def job(self, **env):
        return jobs.Job(f"{RANKS} --np 2", NCCL_RAS_ADDR=f"localhost:{self.port}", **env)

    def await_listener(self, job):
        job.await_line("Rank +1 ")

        def open_now():
            try:
                return "2 ranks of 1 communicator in " in self.say("STATUS\n")
            except ConnectionRefusedError:
                return False

        jobs.until(open_now, "it listens")

    def test_what_ncclras_says_is_answered(self):
        with self.job() as job:
            self.await_listener(job)
            said = self.say("CLIENT PROTOCOL 2\nTIMEOUT 5\nVERBOSE STATUS\n")
            self.assertTrue(said.startswith("SERVER PROTOCOL 2\nOK\n"), said)
            for want in ("Job summary", "2 ranks of 1 communicator in 2 processes on 1 host answered within ", "rank 0 ", "rank 1 ", "RUNNING"):
                self.assertIn(want, said)
            said = self.say("client protocol 2\r\nset format JSON\r\nstatus\r\n").split("\n", 2)
            self.assertEqual(said[:2], ["SERVER PROTOCOL 2", "OK"])
            doc = json.loads(said[2])
            self.assertEqual(doc["communicators"][0]["size"], 2)
            self.assertEqual(doc["ras"]["timeouts_count"], 0)
            local = json.loads(self.say("SET FORMAT json\nLOCAL STATUS\n").split("\n", 1)[1])
            self.assertEqual([len(c["ranks"]) for c in local["communicators"]], [1])
            self.assertIn("ERROR: Unknown command", self.say("GET / HTTP/1.1\r\nSTATUS\n"))
            self.assertEqual(self.good_ras(), 2)

    def good_ras(self):
        found = json.loads(tool.good("ras", "--json", "--address", f"127.0.0.1:{self.port}"))
        return len(found["jobs"][0]["communicators"][0]["ranks"])

    def test_who_comes_from_elsewhere_is_turned_away(self):
        with self.job() as job:
            self.await_listener(job)
            self.assertEqual(self.say("STATUS\n", source="127.0.0.2"), "")

    def test_clients_cannot_disturb_it(self):
        with self.job() as job:
            self.await_listener(job)
            self.assertEqual(self.say("a" * 5000), "ERROR: Line too long\n")
            self.assertIn("ERROR: Unknown command", self.say("\0\xff" * 100 + "\nSTATUS\n"))
            silent = [self.connect() for _ in range(60)]  # more than are served at once
            for s in silent[:20]:
                s.sendall(b"TIMEOUT 1")
            for s in silent:
                s.close()
            deaf = self.connect()  # asks on and on, and reads nothing
            deaf.settimeout(0.2)
            try:
                while True:
                    deaf.sendall(b"x\n" * 10000)
            except (ConnectionError, TimeoutError):
                pass
            leaving = self.connect()  # leaves before the report
            leaving.sendall(b"STATUS\n")
            leaving.close()
            jobs.until(lambda: self.good_ras() == 2, "it still answers")
            self.assertIsNone(job.process.poll())

    def test_idle_strangers_keep_nobody_out(self):
        with self.job() as job:
            self.await_listener(job)
            idle = [self.connect() for _ in range(100)]
            found = json.loads(tool.good("ras", "--json", "--pid", str(job.pid(0))))  # the owner's listener
            self.assertEqual(len(found["jobs"][0]["communicators"][0]["ranks"]), 2)
            self.assertEqual(self.good_ras(), 2)  # and theirs
            for s in idle[-5:]:
                s.sendall(b"TIMEOUT 1\n")
            self.assertEqual([s.recv(3) for s in idle[-5:]], [b"OK\n"] * 5)
            self.assertEqual(self.hear(idle[0]), "")  # the oldest has gone
            self.assertIsNone(job.process.poll())

    def test_it_can_be_switched_off(self):
        with self.job(NCCL_RAS_ENABLE="0") as job:
            job.await_line("Rank +1 ")
            self.assertRaises(ConnectionRefusedError, self.connect)
            self.assertEqual(tool.run("ras", "--pid", str(job.pid(0))).returncode, 1)


tool.main()
