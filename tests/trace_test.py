# SPDX-License-Identifier: Apache-2.0
"""KOLO_TRACE and `kolo trace merge`: traces that Perfetto opens, on one time axis, in which a straggler is found."""
import glob
import json
import os
import signal
import subprocess
import sys
import tempfile

import jobs
import tool


def load(path):
    with open(path, encoding="utf-8") as f:
        return json.load(f)


class Trace(tool.Case):
    words = ("trace", "merge")

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def path(self, name):
        return f"{self.folder}/{name}.json"

    def traces(self, words, **env):
        tool.good("perf", *words.split(), KOLO_TRACE=self.path("%r"), **env)
        return sorted(glob.glob(self.path("*")))

    def check_events(self, doc):
        """The requirements of Chrome's format: https://ui.perfetto.dev refuses or misplaces other events."""
        for e in doc["traceEvents"]:
            self.assertIn(e["ph"], "XM")
            self.assertIsInstance(e["pid"], int)
            self.assertIsInstance(e["name"], str)
            if e["ph"] == "X":
                self.assertGreaterEqual(e["ts"], 0)
                self.assertGreaterEqual(e["dur"], 0)
                self.assertIsInstance(e["tid"], int)
        return [e for e in doc["traceEvents"] if e["ph"] == "X"]

    def test_a_trace_has_calls_operations_steps_and_waits(self):
        files = self.traces("all_reduce --np 2 -b 64K -e 64K -n 30 -w 2 -c 0", NCCL_ALGO="Ring", NCCL_PROTO="Simple")
        self.assertEqual(files, [self.path(0), self.path(1)])
        for rank, file in enumerate(files):
            doc = load(file)
            kolo = doc["kolo"]
            self.assertEqual((kolo["format"], kolo["rank"], kolo["nranks"], kolo["events_lost"]), (1, rank, 2, 0))
            self.assertEqual(kolo["clock"], {"offset_ns": 0, "error_ns": 0})
            events = self.check_events(doc)
            by = {c: [e for e in events if e["cat"] == c] for c in ("call", "operation", "step", "wait")}
            self.assertEqual(len(events), sum(map(len, by.values())))
            ops = [e for e in by["operation"] if e["name"] == "AllReduce"]
            self.assertGreaterEqual(len(ops), 60)  # in place and out of place
            self.assertIn(ops[-1]["args"].get("way"), ("staged", "kernel", None))
            self.assertEqual({k: v for k, v in ops[-1]["args"].items() if k != "way"} | {"number": 0, "collective": 0, "channels": 0},
                             {"number": 0, "collective": 0, "bytes": 65536, "count": 16384, "type": "float", "operator": "sum",
                              "algorithm": "Ring", "protocol": "Simple", "channels": 0})
            self.assertEqual([e["args"]["collective"] for e in by["operation"] if "peer" not in e["args"]],
                             list(range(1, len([e for e in by["operation"] if "peer" not in e["args"]]) + 1)))
            self.assertEqual({e["args"].get("number") for e in ops} - {e["args"].get("number") for e in by["call"]}, set())
            for op in ops:  # two halves are sent, and two received
                steps = [e for e in by["step"] if e["args"]["number"] == op["args"]["number"]]
                self.assertGreaterEqual(sum(e["args"]["bytes"] for e in steps if e["name"].startswith("to ") or ", to " in e["name"]),
                                        65536)
                for e in steps:
                    self.assertGreaterEqual(e["ts"] + 0.01, op["ts"])
                    self.assertLessEqual(e["ts"] + e["dur"], op["ts"] + op["dur"] + 0.01)
            for before, after in zip(ops, ops[1:]):  # one after the other: their track nests
                self.assertLessEqual(before["ts"] + before["dur"], after["ts"] + 0.01)
            self.assertTrue(by["wait"])
            self.assertTrue(all(e["args"].get("rank") in (None, 1 - rank) for e in by["wait"]))
            self.assertTrue(all(e["args"]["yields"] < 1 << 20 and e["args"]["sleeps"] < 1 << 20 for e in by["wait"] if "yields" in e["args"]))

    def test_nothing_is_traced_unasked(self):
        tool.good("perf", *"all_reduce --np 2 -b 8 -e 8 -n 5".split(), KOLO_TRACE="")
        self.assertEqual(glob.glob(f"{self.folder}/*"), [])

    def test_the_last_events_are_kept(self):
        file = self.traces("all_reduce --np 1 -b 8 -e 8 -n 2000 -w 1 -c 0", KOLO_TRACE_EVENTS="1024")[0]
        doc = load(file)
        events = self.check_events(doc)
        self.assertGreater(doc["kolo"]["events_lost"], 2000)
        self.assertEqual(len([e for e in events if e["cat"] == "operation"]), 1024)
        self.assertEqual(len([e for e in events if e["cat"] == "call"]), 1024)

    def test_clocks_of_hosts_are_compared(self):
        for file in self.traces("all_reduce --np 4 --hosts 2 -b 8 -e 8 -n 3 -w 1"):
            kolo = load(file)["kolo"]
            self.assertIsNotNone(kolo["clock"])
            self.assertLessEqual(abs(kolo["clock"]["offset_ns"]), kolo["clock"]["error_ns"])  # it is one machine

    def test_a_straggler_is_found_in_a_merged_trace(self):
        """Rank 1 calls each collective 3 ms after rank 0."""
        program = """
import ctypes, time
kolo, comms, streams = ctypes.CDLL(None), (ctypes.c_void_p * 2)(), [ctypes.c_void_p(), ctypes.c_void_p()]
buffers = [(ctypes.c_float * 8)() for _ in range(2)]
assert not kolo.ncclCommInitAll(comms, 2, None)
for s in streams:
    assert not kolo.koloStreamCreate(ctypes.byref(s), 0)
for n in range(20):
    for rank in range(2):
        time.sleep(0.003 * rank)
        assert not kolo.ncclAllReduce(buffers[rank], buffers[rank], ctypes.c_size_t(8), 7, 0, ctypes.c_void_p(comms[rank]), streams[rank])
    for s in streams:
        assert not kolo.koloStreamSynchronize(s)
for comm in comms:
    assert not kolo.ncclCommDestroy(ctypes.c_void_p(comm))
"""
        p = subprocess.run([sys.executable, "-c", program], check=False, text=True, capture_output=True,
                           env={**os.environ, "LD_PRELOAD": f"{os.environ['KOLO_BUILD']}/libkolo.so", "KOLO_TRACE": self.path("%r")})
        self.assertEqual(p.returncode, 0, p.stderr)
        files = sorted(glob.glob(self.path("*")))
        self.assertEqual(files, [self.path(0), self.path(1)])
        found = self.json(*files, "-o", self.path("all"))
        self.assertEqual((found["compared"], found["ranks"][1]["last_to_begin"], found["ranks"][0]["late_us"]), (20, 20, 0))
        merged = self.check_events(load(self.path("all")))
        self.assertEqual({e["pid"] for e in merged}, {0, 1})
        self.assertEqual(len(merged), sum(len(self.check_events(load(f))) for f in files))

    def on_gpus(self, program):
        """Run it with two GPUs of the CUDA stand-in."""
        build = os.environ["KOLO_BUILD"]
        if not os.path.exists(f"{build}/libkolo-cuda-standin.so.0"):
            self.skipTest("no CUDA stand-in with Kolo's kernels in this build")
        p = subprocess.run([sys.executable, "-c", program], check=False, text=True, capture_output=True, timeout=tool.HANG_S,
                           env={**os.environ, "LD_PRELOAD": f"{build}/libkolo.so", "LD_LIBRARY_PATH": f"{build}/lib/kolo/cuda",
                                "KOLO_DEVICES": "cuda", "KOLO_HOST_DEVICES": "2", "KOLO_TRACE": self.path("%r")})
        self.assertEqual(p.returncode, 0, p.stderr)
        files = sorted(glob.glob(self.path("*")))
        self.assertEqual(files, [self.path(0), self.path(1)])
        return files

    def test_operations_on_gpus_are_traced(self):
        """Two threads with a rank each, of which rank 1 calls 3 ms later; then a message, and a group of one thread."""
        files = self.on_gpus("""
import ctypes, threading, time
kolo, comms, memory = ctypes.CDLL(None), (ctypes.c_void_p * 2)(), [ctypes.c_void_p(), ctypes.c_void_p()]
comm = lambda rank: ctypes.c_void_p(comms[rank])
count = ctypes.c_size_t(8)
failed = []
assert not kolo.ncclCommInitAll(comms, 2, None)
for m in memory:
    assert not kolo.ncclMemAlloc(ctypes.byref(m), ctypes.c_size_t(64))
def reduce(rank):
    return kolo.ncclAllReduce(memory[rank], memory[rank], count, 7, 0, comm(rank), None)
def calls(rank):
    for n in range(20):
        time.sleep(0.003 * rank)
        failed.extend([1] * (reduce(rank) != 0))
    call = kolo.ncclRecv if rank else kolo.ncclSend
    failed.extend([1] * (call(memory[rank], count, 7, 1 - rank, comm(rank), None) != 0))
threads = [threading.Thread(target=calls, args=(rank,)) for rank in range(2)]
for t in threads:
    t.start()
for t in threads:
    t.join()
assert not failed
assert not kolo.ncclGroupStart()
assert not reduce(0) and not reduce(1)
assert not kolo.ncclGroupEnd()
for rank in range(2):
    assert not kolo.ncclCommDestroy(comm(rank))
for m in memory:
    assert not kolo.ncclMemFree(m)
""")
        begins = []
        for rank, file in enumerate(files):
            events = self.check_events(load(file))
            calls, ops = ([e for e in events if e["cat"] == c] for c in ("call", "operation"))
            self.assertEqual(len(events), len(calls) + len(ops))
            message = "Recv" if rank else "Send"
            names = ["AllReduce"] * 20 + [message, "AllReduce"]
            self.assertEqual([[e["name"] for e in calls], [e["name"] for e in ops]], [names, names])
            self.assertEqual([e["args"].get("number") for e in calls], list(range(1, 22)) + [None])  # a group gives none yet
            self.assertEqual([e["args"]["number"] for e in ops], list(range(1, 23)))
            self.assertEqual([e["args"].get("collective") for e in ops], list(range(1, 21)) + [None, 21])
            self.assertEqual(ops[0]["args"], {"number": 1, "collective": 1, "bytes": 32, "count": 8, "type": "float", "operator": "sum",
                                              "way": "direct"})
            self.assertEqual(ops[20]["args"]["peer"], 1 - rank)
            begins.append([e["ts"] for e in ops if "collective" in e["args"]])
            for call, op in zip(calls[:21], ops):
                self.assertLessEqual(call["ts"], op["ts"] + 0.01)
                self.assertLessEqual(op["ts"] + op["dur"], call["ts"] + call["dur"] + 0.01)
        found = self.json(*files, "-o", self.path("all"))
        self.assertEqual(found["compared"], 21)
        late = sum(one > zero for zero, one in zip(*begins))  # nearly all 21, or fewer where the machine held up rank 0
        self.assertAlmostEqual(found["ranks"][1]["last_to_begin"], late, delta=1)

    def test_an_operation_that_waits_for_a_rank_is_in_the_trace(self):
        files = self.on_gpus("""
import ctypes
kolo, comms, memory = ctypes.CDLL(None), (ctypes.c_void_p * 2)(), ctypes.c_void_p()
assert not kolo.ncclCommInitAll(comms, 2, None)
assert not kolo.ncclMemAlloc(ctypes.byref(memory), ctypes.c_size_t(64))
assert not kolo.koloSetTimeout(ctypes.c_void_p(comms[0]), ctypes.c_ulonglong(200))
assert kolo.ncclAllReduce(memory, memory, ctypes.c_size_t(8), 7, 0, ctypes.c_void_p(comms[0]), None)
for comm in comms:
    kolo.ncclCommAbort(ctypes.c_void_p(comm))
""")
        (op,) = [e for e in self.check_events(load(files[0])) if e["cat"] == "operation"]
        self.assertEqual((op["name"], op["args"]["number"]), ("AllReduce", 1))
        self.assertGreater(op["dur"], 100000)

    def made(self, rank, starts, offset=0, communicator="0x1", nranks=2):
        """The trace of a rank with collectives that begin at these microseconds."""
        events = [{"ph": "X", "pid": rank, "tid": 2, "ts": t, "dur": 1.5, "cat": "operation", "name": "AllReduce",
                   "args": {"number": i + 1, "collective": i + 1}} for i, t in enumerate(starts)]
        file = self.path(f"{communicator}-{rank}")
        with open(file, "w", encoding="utf-8") as f:
            json.dump({"kolo": {"format": 1, "communicator": communicator, "rank": rank, "nranks": nranks, "host": "h", "pid": 7,
                                "clock": {"offset_ns": offset, "error_ns": 2000}, "events_lost": 3}, "traceEvents": events}, f)
        return file

    def test_times_are_moved_to_the_clock_of_rank_0(self):
        files = [self.made(1, [5000.25, 5100.25, 5200.25], -4000000), self.made(0, [1000.0, 1100.0, 1200.0])]
        found = self.json(*files, "-o", self.path("all"))
        self.assertEqual((found["events"], found["lost"], found["compared"]), (6, 6, 3))
        self.assertEqual([(r["rank"], r["last_to_begin"], round(r["late_us"], 3), r["clock_error_us"]) for r in found["ranks"]],
                         [(0, 0, 0, 2), (1, 3, 0.25, 2)])
        events = self.check_events(load(self.path("all")))
        self.assertEqual([(e["pid"], e["ts"]) for e in events], [(0, 0), (0, 100), (0, 200), (1, 0.25), (1, 100.25), (1, 200.25)])

    def test_only_what_all_have_is_compared(self):
        files = [self.made(0, [0, 10, 20]), self.made(1, [5, 11]), self.made(0, [7], communicator="0x2", nranks=3)]
        found = self.json(*files, "-o", self.path("all"))
        self.assertEqual(found["compared"], 2)
        self.assertEqual({e["pid"] for e in load(self.path("all"))["traceEvents"]}, {0, 1, 2})
        self.assertIn("rank 1 was the last to begin 2 of 2", self.good(*files, "-o", self.path("all")))

    def test_what_is_no_trace_is_refused(self):
        good = self.made(0, [1])
        for text in ("", "{", "[]", "{}", '{"kolo": 3, "traceEvents": []}', '{"kolo": {"rank": 1}, "traceEvents": []}'):
            with open(self.path("bad"), "w", encoding="utf-8") as f:
                f.write(text)
            self.refused(1, "bad.json", good, self.path("bad"), "-o", self.path("all"))
        self.refused(1, "both of rank 0", good, good, "-o", self.path("all"))
        self.refused(1, "^kolo trace: /nonexistent/x: No such file or directory$", "/nonexistent/x", "-o", self.path("all"))
        self.refused(1, f"^kolo trace: {self.folder}: Is a directory$", self.folder, "-o", self.path("all"))
        self.refused(1, "cannot write", good, "-o", "/nonexistent/x")
        self.refused(2, "-o FILE", good)
        self.refused(2, "name the files", "-o", self.path("all"))
        # events of any shape are kept or left alone
        with open(self.path("odd"), "w", encoding="utf-8") as f:
            json.dump({"kolo": {"communicator": "0x9", "rank": 0, "nranks": 1, "clock": None},
                       "traceEvents": [{"ph": "X", "ts": "x", "cat": 3, "args": []}, {"ts": 4, "cat": "operation", "args": {"collective": "x"}}]}, f)
        self.good(self.path("odd"), "-o", self.path("all"))

    def test_a_failed_job_leaves_its_trace(self):
        with jobs.Job("all_reduce --np 2 -b 1M -e 1M -n 100000000 -w 1", KOLO_TRACE=self.path("%r")) as job:
            job.await_line(r"Rank +1 ")
            job.kill(1, signal.SIGKILL)
            self.assertEqual(job.end(), 1)
        self.check_events(load(self.path(0)))
        self.assertFalse(os.path.exists(self.path(1)))


tool.main()
