#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`kolo explain` of records of calls: flight records of PyTorch and Kolo, status of RAS, reports of Inspector, traces; and `kolo ras --nccl`."""
import json
import os
import pickle
import re
import socket
import subprocess
import tempfile

import flight_dumps as fd
import tool

PROTOCOLS = (2, None, 0, 1, 3, 4, 5)  # of pickle; None: JSON
STARTED, QUEUED = {"state": "started"}, {"state": "scheduled"}


def stuck(n, **more):
    """Calls, the last of which has not ended."""
    return fd.many(n - 1) + [fd.call(seq=n, **{**STARTED, **more})]


class Records(tool.Case):
    words = ("explain",)

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def put(self, name, text):
        path = os.path.join(self.folder.name, name)
        with open(path, "wb") as f:
            f.write(text if isinstance(text, bytes) else (text if isinstance(text, str) else json.dumps(text)).encode())
        return path

    def answer(self, files):
        p = self.run_tool(*files, "--json")
        self.assertEqual((p.returncode, p.stderr), (0, ""))
        o = json.loads(p.stdout)
        self.assertEqual(o["schema"], "kolo.record/1")
        self.assertEqual(o["problem"], bool(o["findings"]) and o["findings"][0]["weight"] != "remark")
        return o

    def worst(self, ranks, groups=None, **more):
        """Of flight records in all protocols and as JSON: the same first finding. With a sanitizer, which sees the same code in each record, all
        protocols are read once (test_calls_that_differ), and else one and JSON."""
        found = []
        for protocol in PROTOCOLS[:2] if tool.SANITIZE and not self._testMethodName == "test_calls_that_differ" else PROTOCOLS:
            with tempfile.TemporaryDirectory() as folder:
                found.append(self.answer(fd.write(folder, ranks, groups, protocol, **more))["findings"])
        for other in found[1:]:
            self.assertEqual(other, found[0])
        f = found[0][0] if found[0] else None
        return f and (f["code"], f["ranks"], f["others"]), found[0]

    # ---- PyTorch's flight records ----

    def test_no_rank_waits(self):
        found, _ = self.worst([fd.many(5)] * 3)
        self.assertIsNone(found)
        self.assertIn("all 15 calls of 3 ranks ended", self.answer(fd.write(self.folder.name, [fd.many(5)] * 3))["answer"])

    def test_a_rank_that_never_came(self):
        found, all_found = self.worst([stuck(5), stuck(5), fd.many(4, line=77), stuck(5)])
        self.assertEqual(found, ("never_came", [2], [0, 1, 3]))
        self.assertEqual((all_found[0]["call"]["number"], all_found[0]["other_call"]["where"]), (5, "step, train.py:77"))

    def test_a_rank_that_called_nothing(self):
        groups = {"0": range(3), "1": [0, 2]}
        found, _ = self.worst([[fd.call(group="1", **STARTED)], [], []], groups)
        self.assertEqual(found, ("never_came", [2], [0]))

    def test_calls_that_differ(self):
        usual = fd.call(seq=3, **STARTED)
        for field, odd in (("call", fd.call("broadcast", seq=3, **STARTED)), ("size", fd.call(seq=3, sizes=((512,),), **STARTED)),
                           ("type", fd.call(seq=3, dtype="Half", **STARTED))):
            found, all_found = self.worst([fd.many(2) + [odd if rank == 1 else usual] for rank in range(4)])
            self.assertEqual((found, all_found[0]["differs"]), (("mismatch", [1], [0, 2, 3]), field))
            self.assertTrue(all(f["weight"] == "follows" for f in all_found[1:]), all_found)

    def test_sizes_that_may_differ(self):
        for name in ("all_to_all", "all_to_all_single", "gather", "scatter"):
            ranks = [[fd.call(name, sizes=((8,),), out=((rank + 1 if name != "scatter" else 8,),))] for rank in range(2)]
            self.assertIsNone(self.worst(ranks)[0], name)

    def test_a_call_that_was_left_out(self):
        order = [fd.call("all_reduce", 1), fd.call("all_gather", 2), fd.call("reduce_scatter", 3), fd.call("broadcast", 4)]
        left_out = [order[0]] + [dict(e, collective_seq_id=i + 2) for i, e in enumerate(order[2:])]
        _, found = self.worst([order, order, left_out])
        self.assertEqual((found[0]["code"], found[0]["ranks"]), ("mismatch", [2]))
        self.assertIn("left out a call", found[0]["text"])
        one_more = order[:1] + [fd.call("barrier", 2)] + [dict(e, collective_seq_id=i + 3) for i, e in enumerate(order[1:])]
        _, found = self.worst([order, order, one_more])
        self.assertIn("one call more", found[0]["text"])

    def test_stuck_inside(self):
        self.assertEqual(self.worst([stuck(5)] * 4)[0], ("inside", [0, 1, 2, 3], []))
        self.assertEqual(self.worst([fd.many(5), stuck(5), fd.many(5)])[0], ("inside", [1], [0, 2]))

    def test_a_rank_whose_gpu_has_not_begun(self):
        self.assertEqual(self.worst([stuck(5), stuck(5, **QUEUED), stuck(5)])[0], ("not_begun", [1], [0, 2]))

    def test_a_rank_without_a_record(self):
        self.assertEqual(self.worst([stuck(5)] * 4, skip=(3,))[0], ("no_record", [3], [0, 1, 2]))

    def test_a_circle(self):
        groups = {"1": [0, 1], "2": [0, 1]}
        found, all_found = self.worst([[fd.call(group="1", **STARTED)], [fd.call(group="2", **STARTED)]], groups)
        self.assertEqual(found, ("deadlock", [0], [1]))
        self.assertEqual([f["code"] for f in all_found], ["deadlock"])

    def test_the_culprit_is_behind_a_chain(self):
        # 0 and 1 wait for 2, which waits for 3, which waits nowhere
        groups = {"a": [0, 1, 2], "b": [2, 3]}
        ranks = [[fd.call(group="a", **STARTED)], [fd.call(group="a", **STARTED)], [fd.call(group="b", **STARTED)], []]
        found, all_found = self.worst(ranks, groups)
        self.assertEqual(found, ("never_came", [3], [2]))
        self.assertEqual([(f["code"], f["ranks"], f["others"]) for f in all_found[1:]], [("follows", [2], [0, 1])])

    def test_groups_that_differ(self):
        groups = [{"0": range(3)}, {"0": range(3)}, {"0": [0, 2]}]
        found, all_found = self.worst([fd.many(2)] * 3, groups)
        self.assertEqual(found, ("group_differs", [2], [0, 1]))
        groups = [{"tp": [0, 1]}, {"tp": [0, 1]}, {"tp": [2, 3]}, {"tp": [2, 3]}]
        self.assertIsNone(self.worst([fd.many(2, group="tp")] * 4, groups)[0], "groups of one name without a common rank")

    def test_messages(self):
        found, _ = self.worst([[fd.send(0, 1, **STARTED)], fd.many(1)], {"0": [0, 1]})
        self.assertEqual(found[:2], ("no_peer", [0]))
        found, _ = self.worst([[fd.recv(0, 1, **STARTED)], [fd.send(1, 0, **STARTED)]])
        self.assertEqual(found[0], "inside")
        self.assertIsNone(self.worst([[fd.recv(0, 1)], [fd.send(1, 0)]])[0])

    def test_batches_end_with_their_last_entry(self):
        def batch(state):
            return [fd.send(0, 1, state="scheduled", p2p=1), fd.recv(0, 1, state="scheduled", p2p=1), fd.call("coalesced", seq=0, p2p=1, state=state)]
        self.assertIsNone(self.worst([batch("completed")])[0])
        self.assertEqual(self.worst([batch("started"), []], {"0": [0, 1]})[0][0], "no_peer")

    def test_files_that_name_no_rank(self):
        files = [self.put(name, pickle.dumps(fd.dump(stuck(3), {"0": [0, 1]}))) for name in ("first", "second")]
        o = self.answer(files)
        self.assertEqual([f["code"] for f in o["findings"]], ["inside", "ranks_guessed"])
        self.assertEqual(self.answer([self.put("rank1.pkl", pickle.dumps(fd.dump(stuck(3), {"0": [0, 1]})))])["files"][0]["rank"], 1)

    def test_thousands_of_entries(self):
        o = self.answer(fd.write(self.folder.name, [fd.many(2000)] * 8 + [stuck(2001)]))
        self.assertEqual((o["findings"][0]["code"], o["findings"][0]["ranks"]), ("never_came", list(range(8))))

    def test_code_is_refused_and_never_run(self):
        witness = os.path.join(self.folder.name, "witness")

        class Evil:
            def __reduce__(self):
                return os.mkdir, (witness,)
        for protocol in range(2, 6):
            p = self.run_tool(self.put("evil_0", pickle.dumps({"entries": [], "pg_config": Evil()}, protocol)))
            self.assertEqual(p.returncode, 1)
            self.assertRegex(p.stderr, r"^\S+evil_0: offset \d+: opcode (STACK_)?GLOBAL \(0x\w\w\) is refused: .*\n$")
        self.assertFalse(os.path.exists(witness))

    def test_kinds_are_not_mixed(self):
        p = self.run_tool(*fd.write(self.folder.name, [stuck(3)]), "tests/data/cases/counts-differ.log")
        self.assertEqual(p.returncode, 2)
        self.assertIn("by themselves", p.stderr)

    def test_records_are_of_one_kind_and_one_of_each_rank(self):
        folder = "tests/data/records/"
        for files, said in ((["absent_0", "ras.json"], "give files of one kind together"), (["inspector_0.log", "absent_1"], "give files of one kind together"),
                            (["absent_0", "absent_1", "absent_0"], "are both records of rank 0: give one of each rank")):
            p = self.run_tool(*(folder + f for f in files))
            self.assertEqual(p.returncode, 1)
            self.assertIn(said, p.stderr)

    def test_the_option_for_logs_reads_them_too(self):
        files = fd.write(self.folder.name, [stuck(3), fd.many(2)])
        self.assertEqual(json.loads(self.good("--log", *files, "--json")), self.answer(files))

    def test_the_first_line_names_the_kind(self):
        files = fd.write(self.folder.name, [stuck(3), fd.many(2)])
        self.assertTrue(self.good(*files).startswith("2 files, read as a flight record of PyTorch: rank 1 never called all_reduce number 3"))

    # ---- Kolo's own ----

    def test_flight_records_of_kolo(self):
        def record(rank, n, last, root=0):
            ops = [{"number": i, "collective": i, "function": "Broadcast", "type": "float", "root": root, "count": 8, "bytes": 32,
                    "state": "ended" if i < n else last} for i in range(1, n + 1)]
            return {"kolo_flight_record": 1, "why": "signal", "host": f"h{rank}", "pid": 10 + rank, "communicator": "0x12", "rank": rank,
                    "nranks": 3, "phase": None, "failure": None, "waits_for": -1, "collectives_issued": n, "operations": ops}
        files = [self.put(f"f.{r}", record(r, n, s)) for r, n, s in ((0, 4, "running"), (1, 3, "ended"), (2, 4, "running"))]
        f = self.answer(files)["findings"][0]
        self.assertEqual((f["code"], f["ranks"], f["others"]), ("never_came", [1], [0, 2]))
        self.assertIn("host h1, pid 11", f["text"])
        files = [self.put(f"f.{r}", record(r, 2, "running", root)) for r, root in ((0, 0), (1, 0), (2, 1))]
        f = self.answer(files)["findings"][0]
        self.assertEqual((f["code"], f["ranks"], f["differs"]), ("mismatch", [2], "root"))

    # ---- RAS ----

    def ras(self, *faults):
        return tool.good("ras", "--format", "nccl", "--from", "tests/data/records/ras.json", *(w for f in faults for w in ("--fault", f)))

    def test_status_of_ras(self):
        self.assertEqual(self.answer([self.put("sound", self.ras())])["findings"], [])
        for fault, code, ranks in (("2=dead", "dead", [2]), ("1=unresponsive", "silent", [1]), ("3=behind:4", "behind", [3]),
                                   ("0=error:6", "failed", [0]), ("1=abort", "states_differ", [1]), ("2=init", "states_differ", [2])):
            f = self.answer([self.put("faulty", self.ras(fault))])["findings"][0]
            self.assertEqual((f["code"], f["ranks"]), (code, ranks), fault)

    def test_what_the_double_writes_is_what_it_read(self):
        text = self.ras()
        again = tool.good("ras", "--format", "nccl", "--from", self.put("again.json", text))
        strip = lambda t: re.sub(r'"timestamp": ".*"', "", t)
        self.assertEqual(strip(again), strip(text))

    def test_text_of_ras(self):
        f = self.answer(["tests/data/records/ras.txt"])["findings"]
        self.assertEqual((f[0]["code"], f[0]["ranks"], f[0]["others"]), ("behind", [3], [0, 1, 2]))
        self.assertIn("host node1, pid 813", f[0]["text"])

    def test_a_service_is_asked(self):
        command = [tool.KOLO, "ras", "--serve", "127.0.0.1:0", "--from", "tests/data/records/ras.json", "--fault", "1=dead"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as double:
            try:
                address = double.stdout.readline().split()[-1]
                p = tool.run("ras", "-t", "600", "--nccl", address, "--json")
                self.assertEqual((p.returncode, p.stderr), (1, ""))
                self.assertEqual(json.loads(p.stdout)["findings"][0]["code"], "dead")
                host, port = address.rsplit(":", 1)
                with socket.create_connection((host, int(port))) as s:
                    s.sendall(b"client protocol 2\nset format json\nverbose status\n")
                    said = b"".join(iter(lambda: s.recv(65536), b"")).decode()
                self.assertTrue(said.startswith("SERVER PROTOCOL 2\nOK\n{\n"))
                self.assertEqual(json.loads(said[said.index("{"):])["communicators"][0]["missing_ranks_count"], 1)
            finally:
                double.terminate()
        p = tool.run("ras", "--nccl", address)
        self.assertEqual(p.returncode, 1)
        self.assertIn("cannot connect to", p.stderr)

    def test_idle_clients_keep_nobody_out(self):
        command = [tool.KOLO, "ras", "--serve", "127.0.0.1:0", "--from", "tests/data/records/ras.json"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as double:
            idle = []
            try:
                address = double.stdout.readline().split()[-1]
                host, port = address.rsplit(":", 1)
                for i in range(200):
                    idle.append(socket.create_connection((host, int(port))))
                    if i % 2:
                        idle[-1].sendall(b"client pro")  # and then nothing
                with socket.create_connection((host, int(port))) as s:
                    s.settimeout(9)  # less than the double waits for one client
                    s.sendall(b"client protocol 2\nset format json\nverbose status\n")
                    said = b"".join(iter(lambda: s.recv(65536), b"")).decode()
                self.assertIn("communicators", json.loads(said[said.index("{"):]))
            finally:
                double.terminate()
                for s in idle:
                    s.close()

    def test_many_groups(self):
        """A file of 4 MiB and more, whose kind shows in its first bytes. Finding groups one by one in lists took minutes."""
        groups = {f"g{i}": range(2) for i in range(40000)}
        entries = [fd.call(seq=1, group=f"g{i}", desc="d") for i in range(0, 40000, 7)]
        for protocol in (2, None):
            file = fd.write(self.folder.name, [entries], groups, protocol=protocol)
            self.assertEqual([f["code"] for f in self.answer(file)["findings"]], ["few"])

    def test_services_without_json_are_asked_for_text(self):
        with open("tests/data/records/ras.txt", encoding="utf-8") as f:
            report = f.read()
        with socket.create_server(("127.0.0.1", 0)) as server:
            p = subprocess.Popen([tool.KOLO, "ras", "-t", "600", "--nccl", f"127.0.0.1:{server.getsockname()[1]}"], stdout=subprocess.PIPE, text=True)
            for _ in range(4): # each question ends at the word that the service does not know, and is put anew; rank 3 is behind, so there are two
                client, _ = server.accept()
                with client, client.makefile("rw", encoding="utf-8") as c:
                    while True:
                        line = c.readline().strip()
                        said = {"CLIENT": "SERVER PROTOCOL 2\n", "TIMEOUT": "OK\n", "VERBOSE": report}.get(line.split(" ")[0], "ERROR: Unknown command\n")
                        c.write(said)
                        c.flush()
                        if line.startswith(("SET", "VERBOSE")):
                            break
            text = p.communicate()[0]
        self.assertEqual(p.returncode, 1)
        self.assertTrue(text.startswith("rank 3 (host node1, pid 813) called AllReduce 7 times"), text)

    def test_a_job_that_moves_is_no_problem(self):
        reports = [self.ras("3=behind:4"), self.ras("3=behind:1"), self.ras("3=behind:4"), self.ras("3=behind:4")]
        with socket.create_server(("127.0.0.1", 0)) as server:
            for exit_code, weight in ((0, "remark"), (1, "stops")):
                p = subprocess.Popen([tool.KOLO, "ras", "-t", "600", "--json", "--nccl", f"127.0.0.1:{server.getsockname()[1]}"], stdout=subprocess.PIPE, text=True)
                for _ in range(2):
                    client, _ = server.accept()
                    with client, client.makefile("rw", encoding="utf-8") as c:
                        for said in ("SERVER PROTOCOL 2\n", "OK\n", "OK\n", reports.pop(0)):
                            c.readline()
                            c.write(said)
                            c.flush()
                found = [f for f in json.loads(p.communicate()[0])["findings"] if "AllReduce" in f["text"]]
                self.assertEqual((p.returncode, found[0]["code"], found[0]["weight"]), (exit_code, "behind", weight))

    def test_kolo_says_whether_its_job_moves(self):
        def report(stuck):
            rank = {"host": "h", "status": {}, "collective_counts": {"AllReduce": 9}, "collectives_called": 9, "collectives_ended": 8}
            op = {"number": 9, "collective": 9, "function": "AllReduce", "type": "float", "count": 4, "state": "running"}
            return {"communicators": [{"hash": "0x1", "size": 2, "verdict": "OK", "stuck": stuck, "mismatch": False, "missing_ranks": [],
                                       "ranks": [{**rank, "rank": r, "pid": r, "operation": op} for r in range(2)]}], "ras": {}}
        self.assertEqual(self.answer([self.put("moves", report(False))])["findings"], [])
        self.assertEqual(self.answer([self.put("stuck", report(True))])["findings"][0]["code"], "inside")

    def test_words_of_ras_that_do_not_fit(self):
        for words in (("--format", "xml"), ("--fault", "1=dead"), ("--format", "nccl", "--from", "tests/data/records/ras.json", "--fault", "1=deaf"),
                      ("--nccl", "a", "--serve", "b")):
            self.assertEqual(tool.run("ras", *words).returncode, 2, words)

    # ---- times ----

    def inspector(self, rank, times):
        line = {"header": {"id": "0x77", "rank": rank, "n_ranks": 3, "nnodes": 1}, "metadata": {"hostname": f"h{rank}", "pid": 5 + rank}}
        return "".join(json.dumps({**line, "coll_perf": {"coll": "AllReduce", "coll_sn": i, "coll_msg_size_bytes": 1 << 20,
                                                         "coll_exec_time_us": t}}) + "\n" for i, t in enumerate(times))

    def test_reports_of_inspector(self):
        files = [self.put(f"i{r}", self.inspector(r, [100 if r != 1 else 30] * 8)) for r in range(3)]
        o = self.answer(files)
        self.assertEqual((o["findings"][0]["code"], o["findings"][0]["ranks"]), ("straggler", [1]))
        self.assertEqual([(c["name"], c["bytes"], c["calls"], c["least_us"], c["most_us"]) for c in o["calls"]], [("AllReduce", 1 << 20, 24, 30, 100)])
        files = [self.put(f"i{r}", self.inspector(r, [100] * 8)) for r in range(3)]
        self.assertEqual(self.answer(files)["findings"], [])
        cut = self.inspector(0, [100] * 3)
        self.assertEqual(self.answer([self.put("cut", cut[:-20])])["calls"][0]["calls"], 2)

    def test_metrics_of_open_telemetry(self):
        def point(rank, i, us):
            attributes = {"comm_id": "0x9", "rank": rank, "nranks": 2, "collective": "AllGather", "message_size": 4096, "coll_sn": i}
            return {"asDouble": us, "timeUnixNano": str(1000 + i), "attributes": [
                {"key": k, "value": {"stringValue": v} if isinstance(v, str) else {"intValue": str(v)}} for k, v in attributes.items()]}
        def document(rank, us):
            metric = {"name": "nccl_collective_exec_time_microseconds", "gauge": {"dataPoints": [point(rank, i, us) for i in range(6)]}}
            return {"resourceMetrics": [{"resource": {"attributes": []}, "scopeMetrics": [{"metrics": [metric]}]}]}
        o = self.answer([self.put("m0", document(0, 80)), self.put("m1", document(1, 20))])
        self.assertEqual((o["findings"][0]["code"], o["findings"][0]["ranks"]), ("straggler", [1]))
        p = self.run_tool(self.put("none", {"resourceMetrics": []}))
        self.assertEqual((p.returncode, "exec_time" in p.stderr), (1, True))

    def trace(self, rank, times, name="ncclDevKernel_AllReduce_Sum_bf16_TREE_LL(ncclDevKernelArgsStorage<4096ul>)", hidden=True):
        events, at = [], 100.0
        for t in times:
            events.append({"ph": "X", "cat": "kernel", "name": "gemm", "ts": at, "dur": 50, "args": {}})
            begin = at if hidden else at + 50
            events.append({"ph": "X", "cat": "kernel", "name": name, "ts": begin, "dur": t, "args": {"Process Group Name": "0", "Group size": 2}})
            at = max(at + 50, begin + t)
        return {"distributedInfo": {"backend": "nccl", "rank": rank, "world_size": 2}, "traceEvents": events}

    def test_traces_of_kineto(self):
        o = self.answer([self.put(f"k{r}", self.trace(r, [40, 40, 40, 40] if r else [10, 10, 10, 10])) for r in range(2)])
        self.assertEqual([(f["code"], f["ranks"]) for f in o["findings"]], [("straggler", [0])])
        c = o["calls"][0]
        self.assertEqual((c["name"], c["operator"], c["type"], c["algorithm"], c["protocol"]), ("AllReduce", "Sum", "bf16", "TREE", None))
        o = self.answer([self.put("k0", self.trace(0, [50] * 4, hidden=False))])
        self.assertEqual([f["code"] for f in o["findings"]][:1], ["exposed"])
        t = o["files"][0]["times"]
        self.assertEqual((t["communication_us"], t["hidden_us"], t["computation_us"], t["span_us"]), (200, 0, 200, 400))

    def test_names_of_kernels(self):
        for name, how in (("ncclKernel_AllReduce_RING_LL_Sum_float(ncclDevComm*)", ("AllReduce", "Sum", "RING", None)),
                          ("ncclDevKernel_AllGather_RING(x)", ("AllGather", None, "RING", None)),
                          ("ncclSymkDevKernel_AllReduce_LL_sum_f16(x)", ("AllReduce", "sum", "symmetric", "LL")),
                          ("ncclDevKernel_SendRecv(x)", ("SendRecv", None, None, None))):
            c = self.answer([self.put("k0", self.trace(0, [5], name))])["calls"][0]
            self.assertEqual((c["name"], c["operator"], c["algorithm"], c["protocol"]), how, name)

    def test_files_that_are_cut(self):
        for name in os.listdir("tests/data/records"):
            with open(f"tests/data/records/{name}", "rb") as f:
                whole = f.read()
            for part in (1, 2, 3):
                p = self.run_tool(self.put(f"cut_{name}", whole[:len(whole) * part // 4]))
                self.assertIn(p.returncode, (0, 1), name)
                self.assertLessEqual(p.stderr.count("\n"), 1)


if __name__ == "__main__":
    tool.main()
