# SPDX-License-Identifier: Apache-2.0
"""The flight record: written when a rank dies, at a signal, and by a call; a document with the last operations and the rank waited for."""
import ctypes
import glob
import json
import os
import signal
import subprocess
import sys
import tempfile
import unittest

import jobs
import tool


def record(path):
    with open(path, encoding="utf-8") as f:
        return json.load(f)


class FlightRecord(tool.Case):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def path(self, rank):
        return f"{self.folder.name}/{rank}.json"

    def job(self, words, **env):
        return jobs.Job(words, KOLO_FLIGHT_RECORDER=f"{self.folder.name}/%r.json", **env)

    def await_record(self, rank):
        return jobs.until(lambda: os.path.exists(self.path(rank)) and record(self.path(rank)), f"the record of rank {rank}")

    def check(self, doc, rank, nranks):
        """Invariants of every record."""
        self.assertEqual((doc["kolo_flight_record"], doc["rank"], doc["nranks"], doc["phase"]), (1, rank, nranks, None))
        ops = doc["operations"]
        self.assertLessEqual(len(ops), 1024)
        numbers = [op["number"] for op in ops]
        self.assertEqual(numbers, sorted(set(numbers)))
        self.assertEqual([op["collective"] for op in ops if "peer" not in op],
                         sorted(op["collective"] for op in ops if "peer" not in op))
        for op in ops:
            times = [op[t] for t in ("issued_ns", "begun_ns", "ended_ns") if op[t] is not None]
            self.assertEqual(times, sorted(times), op)
            self.assertLessEqual(times[-1], doc["monotonic_ns"])
            self.assertTrue(op["ended_ns"] is None or op["state"] == "ended", op)
            self.assertTrue(op["ended_ns"] or op["state"] != "ended" or op["count"] < 4096, op)  # quick ones are not timed
        return ops

    def test_survivors_of_a_killed_rank_say_what_they_were_doing(self):
        with self.job("all_reduce --np 3 -b 64K -e 64K -n 100000000 -w 5") as job:
            pid = job.pid(1)
            job.await_line(r"Rank +2 ")
            job.kill(1, signal.SIGKILL)
            for rank in (0, 2):
                doc = self.await_record(rank)
                ops = self.check(doc, rank, 3)
                self.assertEqual(doc["why"], "failure")
                self.assertRegex(doc["failure"]["text"], rf"rank 1 \(host .*, pid {pid}\)")
                if not ops or ops[-1]["state"] == "ended":
                    continue  # killed between two operations
                op = ops[-1]
                self.assertIn(op["state"], ("failed", "dropped"))
            self.assertEqual(job.end(), 1)
        self.assertFalse(os.path.exists(self.path(1)))

    def test_a_stopped_rank_is_what_the_others_wait_for(self):
        with self.job("all_reduce --np 2 -b 1M -e 1M -n 100000000 -w 1", NCCL_ALGO="Ring",
                      NCCL_PROXY_DUMP_SIGNAL=str(int(signal.SIGUSR1))) as job:
            for rank in (0, 1):
                job.pid(rank)

            def waiting():
                job.kill(0, signal.SIGCONT)
                job.kill(0, signal.SIGSTOP)
                before = os.path.exists(self.path(1)) and os.stat(self.path(1)).st_mtime_ns
                job.kill(1, signal.SIGUSR1)
                jobs.until(lambda: os.path.exists(self.path(1)) and os.stat(self.path(1)).st_mtime_ns != before, "an answer")
                doc = record(self.path(1))
                reducing = any(op["state"] == "running" and op["count"] == 1 << 18 for op in doc["operations"])
                return doc if doc["waits_for"] == 0 and reducing else None

            doc = jobs.until(waiting, "rank 1 waits for rank 0")
            ops = self.check(doc, 1, 2)
            self.assertEqual((doc["why"], doc["failure"]), ("signal", None))
            running = [op for op in ops if op["state"] == "running"]
            self.assertEqual(len(running), 1)
            op = running[0]
            self.assertEqual((op["function"], op["type"], op["operator"], op["count"], op["bytes"], op["algorithm"]),
                             ("AllReduce", "float", "sum", 1 << 18, 1 << 20, "Ring"))
            self.assertGreater(op["channels"], 0)
            self.assertEqual({op["state"] for op in ops} - {"ended", "running", "queued"}, set())
            self.assertEqual(doc["issued"]["AllReduce"], doc["collectives_issued"])
            self.assertLess(doc["collectives_ended"], doc["collectives_issued"])

    def test_a_program_that_calls(self):
        """Its thread-local storage needs a library that a program is linked with: it cannot be loaded later."""
        p = subprocess.run([sys.executable, __file__, "-q", "FlightRecord.call_writes_it"], check=False, text=True,
                           capture_output=True, env={**os.environ, "LD_PRELOAD": f"{os.environ['KOLO_BUILD']}/libkolo.so"})
        self.assertEqual(p.returncode, 0, p.stderr)

    @unittest.skipUnless("libkolo" in os.environ.get("LD_PRELOAD", ""), "in a process of its own")
    def call_writes_it(self):
        kolo = ctypes.CDLL(None)
        comms = (ctypes.c_void_p * 2)()
        streams = [ctypes.c_void_p(), ctypes.c_void_p()]
        buffers = [(ctypes.c_float * 100)(*[rank + 1] * 100) for rank in range(2)]
        size = ctypes.c_size_t
        self.assertEqual(kolo.ncclCommInitAll(comms, 2, None), 0)
        for s in streams:
            self.assertEqual(kolo.koloStreamCreate(ctypes.byref(s), 0), 0)
        for n in range(1100):
            for rank in range(2):
                comm = ctypes.c_void_p(comms[rank])
                if n % 100 == 99:
                    self.assertEqual(kolo.ncclBroadcast(buffers[rank], buffers[rank], size(50), 7, 1, comm, streams[rank]), 0)
                else:
                    self.assertEqual(kolo.ncclAllReduce(buffers[rank], buffers[rank], size(100), 7, 2, comm, streams[rank]), 0)
            if n % 50 == 49:
                for s in streams:
                    self.assertEqual(kolo.koloStreamSynchronize(s), 0)
        kolo.ncclGroupStart()
        for rank in range(2):
            call = kolo.ncclRecv if rank else kolo.ncclSend
            self.assertEqual(call(buffers[rank], size(10), 7, 1 - rank, ctypes.c_void_p(comms[rank]), streams[rank]), 0)
        kolo.ncclGroupEnd()
        for s in streams:
            self.assertEqual(kolo.koloStreamSynchronize(s), 0)
        for rank in range(2):
            comm = ctypes.c_void_p(comms[rank])
            self.assertEqual(kolo.koloFlightRecorder(comm, None), 4)  # no file is named
            self.assertEqual(kolo.koloFlightRecorder(comm, b"/nonexistent/x"), 2)
            self.assertEqual(kolo.koloFlightRecorder(comm, f"{self.folder.name}/%r.json".encode()), 0)
            doc = record(self.path(rank))
            ops = self.check(doc, rank, 2)
            self.assertEqual((doc["why"], doc["failure"], doc["waits_for"]), ("call", None, None))
            self.assertEqual((doc["issued"]["AllReduce"], doc["issued"]["Broadcast"], doc["operations_ended"]), (1089, 11, 1101))
            self.assertEqual([op["number"] for op in ops], list(range(78, 1102)))
            self.assertEqual({op["state"] for op in ops}, {"ended"})
            broadcast = next(op for op in ops if op["function"] == "Broadcast")
            self.assertEqual((broadcast["number"], broadcast["root"], broadcast["count"]), (100, 1, 50))
            self.assertNotIn("operator", broadcast)
            self.assertEqual((ops[-1]["function"], ops[-1]["peer"], ops[-1]["bytes"]), ("Recv" if rank else "Send", 1 - rank, 40))
            self.assertEqual(int(ops[-1]["stream"], 16), streams[rank].value)
        self.assertEqual(sorted(glob.glob(f"{self.folder.name}/*")), [self.path(0), self.path(1)])
        self.assertEqual(record(self.path(0))["communicator"], record(self.path(1))["communicator"])
        for rank in range(2):
            self.assertEqual(kolo.ncclCommDestroy(ctypes.c_void_p(comms[rank])), 0)
            self.assertEqual(kolo.koloFlightRecorder(ctypes.c_void_p(comms[rank]), b"x"), 4)


tool.main()
