#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`kolo explain order` and `traffic`: worked examples, verdicts, lints, refusals, and docs/order.md, whose blocks are all that their commands
print. KOLO_RENEW=1 writes them anew, to be read before they are kept."""
import json
import os
import re
import shlex
import tempfile
import unittest

import flight_dumps as fd
import tool

PAGE = "docs/order.md"
H100 = f"{tool.DATA}/synthetic/h100-nvsw-8nic-400g.xml"


def order(*words):
    return json.loads(tool.good("explain", "order", *words, "--json"))


def traffic(*words):
    return json.loads(tool.good("explain", "traffic", *words, "--json"))


class Order(tool.Case):
    def test_ring(self):
        a = order("allreduce", "4000", "--topo", H100, "--gpus", "0,1,2,3", "--nccl", "2.26.3", "--with", "NCCL_ALGO=ring",
                  "--with", "NCCL_PROTO=simple")
        self.assertEqual([(r["first"], r["count"]) for r in a["ranges"]], [(0, 252), (252, 252), (504, 252), (756, 244)])
        self.assertEqual(len(a["sums"]), 4)
        counts = a["invariant"]["counts"]
        self.assertEqual((counts["verdict"], counts["code"]), ("no", "ring_moves"))
        self.assertIsNotNone(counts["first_difference"])
        self.assertTrue(any("allreduce:tree" in s["set"] and s["verdict"] == "yes" for s in a["cheapest"]))

    def test_exact(self):
        a = order("allreduce", "4000", "--topo", H100, "--type", "int32", "--with", "NCCL_ALGO=ring")
        self.assertEqual({v["verdict"] for v in a["invariant"].values()}, {"yes"})
        self.assertEqual(a["lints"], [])

    def test_switch_is_undefined(self):
        a = order("allreduce", "64M", "--topo", H100, "--nccl", "2.30.7")
        self.assertEqual((a["algorithm"], a["invariant"]["runs"]["verdict"]), ("NVLS", "unknown"))
        self.assertEqual(a["arithmetic"]["rounding"], "switch")

    def test_limit_helps(self):
        a = order("allreduce", "128K", "--topo", H100, "--hosts", "2", "--nccl", "2.30.7", "--with", "NCCL_ALGO=allreduce:tree")
        self.assertEqual(a["invariant"]["counts"]["verdict"], "no")
        m = a["same_tree_sum_prefix"]
        b = order("allreduce", "128K", "--topo", H100, "--hosts", "2", "--nccl", "2.30.7", "--with", "NCCL_ALGO=allreduce:tree",
                  "--with", f"NCCL_MAX_NCHANNELS={m}", "--with", "NCCL_NVLS_ENABLE=0")
        self.assertEqual(b["invariant"]["counts"]["verdict"], "yes")

    def test_registered_buffers_of_24_channels(self):
        a = order("allreduce", "64M", "--topo", H100, "--nccl", "2.30.7", "--with", "NCCL_ALGO=ring", "--with", "NCCL_PROTO=simple")
        self.assertEqual(a["channels"] == 24, a["invariant"]["registered"]["code"] == "registered_16")

    def test_lints(self):
        a = order("allreduce", "128K", "--topo", H100, "--hosts", "2", "--nccl", "2.30.7", "--with", "NCCL_ALGO=allreduce:tree",
                  "--with", "NCCL_MIN_NCHANNELS=8", "--lint")
        self.assertTrue({"trees_differ", "pin_useless", "others_free"} <= {x["code"] for x in a["lints"]})

    def test_release(self):
        a = order("allreduce", "400000", "--topo", H100, "--nccl", "2.28.9", "--with", "NCCL_ALGO=ring", "--with", "NCCL_PROTO=ll",
                  "--vs", "2.29.2")
        self.assertFalse(a["vs"]["equal"])

    def test_refusals(self):
        for words in (["allgather", "1M"], ["alltoall", "1M"], ["nothing"], ["allreduce", "1M", "--vs", "x"],
                      ["allreduce", "1M", "--element", "a"], ["reduce", "1M", "--root", "99"],
                      ["allreduce", str(2**63 - 1)]):
            with self.subTest(words):
                p = tool.run("explain", "order", *words, "--topo", H100)
                self.assertIn(p.returncode, (1, 2))
                self.assertEqual(len(p.stderr.strip().split("\n")), 1)


class Traffic(tool.Case):
    def test_ring(self):
        size = 64 << 20
        a = traffic("allreduce", "64M", "--topo", H100, "--hosts", "2", "--nccl", "2.30.7", "--with", "NCCL_ALGO=ring",
                    "--with", "NCCL_PROTO=simple")
        self.assertEqual(a["payload_bytes"], 16 * 2 * size * 15 // 16)
        self.assertEqual(sum(n["wire_bytes"]["out"] for n in a["nics"]), a["across_hosts"])
        self.assertEqual(sum(h["wire_bytes"]["in"] for h in a["by_host"]), a["across_hosts"])
        self.assertEqual(sum(r["wire_bytes"] for r in a["rails"]), a["across_hosts"])

    def test_a_size_beyond_the_most(self):
        p = tool.run("explain", "traffic", "allreduce", str(2**63 - 1), "--topo", H100)
        self.assertEqual((p.returncode, "up to 1024 GiB" in p.stderr), (2, True), p.stderr)

    def test_pods(self):
        words = ("allreduce", "64M", "--topo", H100, "--hosts", "8", "--nccl", "2.30.7", "--with", "NCCL_ALGO=ring", "--pod")
        mixed, together = traffic(*words, "0,1,0,1,0,1,0,1"), traffic(*words, "4")
        self.assertEqual(mixed["across_pods"], mixed["across_hosts"])  # each hop of a ring
        self.assertEqual(mixed["across_pods"], 4 * together["across_pods"])  # two hops of eight
        best = mixed["best_order"]
        self.assertEqual(best["across_pods"], together["across_pods"])
        self.assertEqual(sorted(best["hosts"]), list(range(8)))
        self.assertEqual(len({h % 2 for h in best["hosts"][:4]}), 1)
        self.assertEqual(together["best_order"], {"hosts": list(range(8)), "names": None, "across_pods": together["across_pods"]})
        for pods, code in (("0,1", 1), ("0", 2), ("x", 2)):
            p = tool.run("explain", "traffic", *words, pods)
            self.assertEqual((p.returncode, len(p.stderr.strip().split("\n"))), (code, 1), p.stderr)

    def test_pods_of_a_file_of_switches(self):
        words = ("allreduce", "64M", "--topo", H100, "--nccl", "2.30.7", "--with", "NCCL_ALGO=ring")
        lists = traffic(*words, "--hosts", "8", "--pod", "0,1,0,1,0,1,0,1")
        with tool.written("SwitchName=b Nodes=n[2,4,6,8]\nSwitchName=a Nodes=n[1,3,5,7]\nSwitchName=top Switches=a,b\n") as f:
            for option in ("--pod", "--topo"):
                x = traffic(*words, option, f.name)
                self.assertEqual((x["hosts"], x["across_pods"]), (8, lists["across_pods"]))
                self.assertEqual(x["best_order"]["names"], [f"n{h + 1}" for h in lists["best_order"]["hosts"]])
            self.assertEqual(traffic(*words, "--pod", f.name, "--hosts", "2")["hosts"], 2)
            self.check_refusal(tool.run("explain", "traffic", *words, "--pod", f.name, "--hosts", "9"), 1, "--hosts 9: .* names 8", "hosts")

    def test_missing_nic(self):
        a = traffic("allreduce", "64M", "--topo", H100, "--hosts", "2", "--without", "NET/3")
        self.assertNotIn(3, [n["net"] for n in a["nics"]])


class Trace(tool.Case):
    """Traffic of all collectives of flight records: 16 ranks on two hosts, some in groups."""
    words = ("explain", "traffic")
    setting = ("--topo", H100, "--nccl", "2.30.7", "--with", "NCCL_ALGO=ring")

    def records(self, *entries, groups=None):
        """The same entries of each rank, without entries of groups that it is not in."""
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        groups = {"0": range(16), **(groups or {})}
        return fd.write(folder.name, [[e for e in entries if r in groups[e["process_group"][0]]] for r in range(16)], groups)

    def test_a_sum_is_the_sum_of_its_operations(self):
        files = self.records(*fd.many(3, sizes=((16 << 20,),)), fd.call("_all_gather_base", seq=4, sizes=((1 << 16,),), out=((1 << 20,),), dtype="BFloat16"))
        x = self.json(*files, *self.setting)
        reduce = traffic("allreduce", "64M", "--hosts", "2", *self.setting)
        gather = traffic("allgather", "2M", "--hosts", "2", "--type", "bfloat16", *self.setting)
        self.assertEqual(x["trace"], {"kind": "a flight record of PyTorch", "files": 16, "groups": 1, "kinds": 2, "operations": 4, "skipped": 0,
                                      "first_skipped": None, "messages": 0, "sends_alone": 0, "receives_alone": 0, "all_to_alls": 0})
        self.assertEqual((x["hosts"], x["ranks"]), (2, 16))
        for key in ("payload_bytes", "wire_bytes", "messages", "across_hosts", "across_rails"):
            self.assertEqual(x[key], 3 * reduce[key] + gather[key], key)
        links = {}
        for times, one in ((3, reduce), (1, gather)):
            for link in one["links"]:
                key = link["host"], link["link"]
                links[key] = links.get(key, 0) + times * link["wire_bytes"]
        self.assertEqual({(i["host"], i["link"]): i["wire_bytes"] for i in x["links"]}, links)
        for n, a, b in zip(x["nics"], reduce["nics"], gather["nics"]):
            self.assertEqual(n["wire_bytes"]["out"], 3 * a["wire_bytes"]["out"] + b["wire_bytes"]["out"])

    def test_groups_use_their_own_links(self):
        groups = {"tp": range(8, 16), "dp": (3, 11), "odd": (0, 9)}
        call = {"sizes": ((1 << 20,),)}
        inside = self.json(*self.records(fd.call(group="tp", **call), groups=groups), *self.setting)
        self.assertEqual((inside["across_hosts"], {i["host"] for i in inside["links"]}, inside["idle_nics"]), (0, {1}, 16))
        self.assertEqual(inside["wire_bytes"], traffic("allreduce", "4M", *self.setting)["wire_bytes"])
        pair = self.json(*self.records(fd.call(group="dp", **call), groups=groups), *self.setting)
        self.assertEqual(pair["across_hosts"], pair["wire_bytes"])
        self.assertEqual({i["link"].split("GPU/")[1][0] for i in pair["links"] if "GPU/" in i["link"]}, {"3"})
        both = self.json(*self.records(fd.call(group="dp", **call), fd.call(group="odd", **call), groups=groups), *self.setting)
        self.assertEqual((both["wire_bytes"], both["trace"]["skipped"], both["trace"]["first_skipped"]), (pair["wire_bytes"], 1, "all_reduce"))
        self.assertIn("not counted: 1 call, the first is all_reduce", self.good(*self.records(fd.call(group="dp", **call), fd.call(group="odd", **call), groups=groups), *self.setting))

    def dumps(self, ranks):
        """Entries by rank; others have none."""
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        return fd.write(folder.name, [ranks.get(r, []) for r in range(16)], {"0": range(16)}, skip=[r for r in range(16) if r not in ranks])

    def counts(self, x):
        return tuple(x["trace"][k] for k in ("messages", "sends_alone", "receives_alone", "all_to_alls", "skipped"))

    def test_a_send_and_its_receive_count_once(self):
        size = {"sizes": ((1 << 20,),)}
        both = self.json(*self.dumps({0: [fd.send(0, 9, **size)] * 3, 9: [fd.recv(9, 0, **size)] * 3}), *self.setting)
        one = self.json(*self.dumps({0: [fd.send(0, 9, **size)] * 3}), *self.setting, "--hosts", "2")
        other = self.json(*self.dumps({9: [fd.recv(9, 0, **size)] * 3}), *self.setting)
        self.assertEqual([self.counts(x) for x in (both, one, other)], [(3, 0, 0, 0, 0), (3, 3, 0, 0, 0), (3, 0, 3, 0, 0)])
        for x in (both, one, other):
            self.assertEqual((x["wire_bytes"], x["messages"], x["across_hosts"], x["across_rails"]), (12 << 20, 3, 12 << 20, 0))
            self.assertEqual([(n["host"], n["net"], n["wire_bytes"]) for n in x["nics"] if not n["idle"]],
                             [(0, 1, {"out": 12 << 20, "in": 0}), (1, 1, {"out": 0, "in": 12 << 20})])  # through the GPU beside the receiver's rail
            self.assertIn("GPU/0 -> NVS/0-0", [i["link"] for i in x["links"] if i["host"] == 0])
        near = self.json(*self.dumps({2: [fd.send(2, 3, **size), fd.send(2, 4, sizes=())], 3: [fd.recv(3, 2, sizes=((7,),))]}), *self.setting)
        self.assertEqual((self.counts(near), near["wire_bytes"], near["across_hosts"]), ((2, 1, 1, 0, 1), (4 << 20) + 28, 0))
        self.assertEqual({i["link"] for i in near["links"]}, {"GPU/2 -> NVS/0-0", "NVS/0-0 -> GPU/3"})
        self.assertIn("1 with both sides recorded, 0 with the send only", self.good(*self.dumps({0: [fd.send(0, 9, **size)], 9: [fd.recv(9, 0, **size)]}), *self.setting))

    def test_all_to_alls_send_even_parts(self):
        call = fd.call("all_to_all", sizes=((16 << 10,),))
        all_of = self.json(*self.dumps({r: [call] * 2 for r in range(16)}), *self.setting)
        few = self.json(*self.dumps({0: [call] * 2, 3: [call]}), *self.setting, "--hosts", "2")
        for x in (all_of, few):
            self.assertEqual((self.counts(x), x["wire_bytes"], x["across_hosts"]), ((0, 0, 0, 2, 0), 2 * 16 * 15 * (4 << 10), 2 * 16 * 8 * (4 << 10)))
        own = self.json(*self.dumps({r: [fd.call("all_to_allv", sizes=((16 << 10 if r else 0,),), out=((16 << 10,),))] for r in range(16)}), *self.setting)
        self.assertEqual(own["trace"]["all_to_alls"], 1)
        unequal = self.json(*self.dumps({r: [fd.call("all_to_allv", sizes=((16 << (10 + r % 2),),), out=((1,),))] for r in range(16)}), *self.setting)
        self.assertEqual(unequal["wire_bytes"], (8 + 16) * 15 * (4 << 10))
        pods = self.json(*self.dumps({r: [call] for r in range(16)}), *self.setting, "--pod", "1")
        self.assertEqual(pods["across_pods"], pods["across_hosts"])

    def test_messages_of_the_profiler(self):
        def event(name, ts, **more):
            args = {"Collective name": name, "In msg nelems": 1 << 20, "Out msg nelems": 1 << 20, "dtype": "BFloat16", "Group size": 2, "Process Group Name": "1", "Process Group Ranks": "[2, 9]"}
            return {"ph": "X", "cat": "kernel", "name": "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)", "ts": ts, "dur": 5, "args": dict(args, **more)}

        with tempfile.TemporaryDirectory() as folder:
            files = []
            for rank, events in ((2, [event("send", 1, **{"Dst Rank": 1}), event("all_to_allv", 9), event("gather", 20)]), (9, [event("recv", 1, **{"Src Rank": 0}), event("all_to_allv", 9)])):
                files.append(os.path.join(folder, f"trace_{rank}.json"))
                with open(files[-1], "w", encoding="utf-8") as f:
                    json.dump({"distributedInfo": {"rank": rank, "world_size": 16}, "traceEvents": events}, f)
            x = self.json(*files, *self.setting)
        self.assertEqual((self.counts(x), x["trace"]["first_skipped"]), ((1, 0, 0, 1, 1), "gather"))
        self.assertEqual(x["across_hosts"], (2 << 20) + 2 * (1 << 20))

    def test_execution_traces(self):
        chakra = [f"tests/data/records/chakra_{r}.json" for r in (0, 1)]
        pair = ("--topo", H100, "--nccl", "2.30.7", "--with", "NCCL_ALGO=ring", "--gpus", "0,1")
        want = traffic("allreduce", "4M", *pair)["payload_bytes"] + traffic("allgather", "2M", *pair)["payload_bytes"]
        x = self.json(*chakra, *self.setting)
        self.assertEqual((x["trace"]["kind"], self.counts(x), x["trace"]["operations"]), ("a Chakra execution trace", (1, 0, 0, 1, 0), 2))
        self.assertEqual(x["payload_bytes"], want + (2 << 20) + (1 << 20))
        want = traffic("allreduce", "2M", *pair)["payload_bytes"] + traffic("allgather", "2M", *pair)["payload_bytes"]
        x = self.json(*(f"tests/data/records/execution_{r}.json" for r in (0, 1)), *self.setting)
        self.assertEqual((x["trace"]["kind"], self.counts(x), x["trace"]["operations"]), ("an execution trace of PyTorch", (1, 0, 0, 1, 0), 2))
        self.assertEqual(x["payload_bytes"], want + (2 << 20) + (1 << 19))

    def test_kolos_counts_are_those_of_one_rank(self):
        calls = [{"function": "AllGather", "count": 1 << 16, "bytes": 4 << 16, "type": "float", "state": "ended", "collective": 1},
                 {"function": "AlltoAll", "count": 1 << 10, "bytes": 4 << 10, "type": "float", "state": "ended", "collective": 2},
                 {"function": "Send", "count": 1 << 10, "bytes": 4 << 10, "type": "float", "state": "ended", "number": 3, "peer": 1}]
        with tempfile.TemporaryDirectory() as folder:
            with open(os.path.join(folder, "flight"), "w", encoding="utf-8") as f:
                json.dump({"kolo_flight_record": 1, "communicator": "a", "rank": 0, "nranks": 8, "host": "n", "pid": 1, "operations": calls}, f)
            x = self.json(f.name, *self.setting)
        self.assertEqual((self.counts(x), x["trace"]["operations"]), ((1, 1, 0, 1, 0), 1))
        self.assertEqual(x["payload_bytes"], traffic("allgather", "2M", *self.setting)["payload_bytes"] + (8 * 7 + 1) * (4 << 10))

    def test_missing_attributes_are_named(self):
        def node(kind, **attr):
            return {"id": 1, "type": kind, "attr": [{"name": k, "uint64_val" if isinstance(v, int) else "bool_list": v} for k, v in attr.items()]}

        job = node("COMM_COLL_NODE", comm_type=2, comm_size=1 << 20)
        for bad, want in ((node("COMM_COLL_NODE", comm_type=0), "all_reduce without comm_size"), (node("COMM_COLL_NODE", comm_size=8), "a collective without comm_type"),
                          (node("COMM_SEND_NODE", comm_size=8), "send without comm_dst"), (node("COMM_RECV_NODE", comm_src=1), "recv without comm_size"),
                          (node("COMM_COLL_NODE", comm_type=0, comm_size=8, involved_dim={"values": [True, False]}), "all_reduce")):
            with tempfile.TemporaryDirectory() as folder:
                with open(os.path.join(folder, "et.0.json"), "w", encoding="utf-8") as f:
                    json.dump({"nodes": [job, bad]}, f)
                x = self.json(f.name, *self.setting)
            self.assertEqual((x["trace"]["operations"], x["trace"]["skipped"], x["trace"]["first_skipped"]), (1, 1, want))
            self.assertEqual(x["payload_bytes"], traffic("allgather", "8M", *self.setting)["payload_bytes"])

    def test_missing_nics_and_pods(self):
        files = self.records(*fd.many(2, sizes=((1 << 20,),)))
        x = self.json(*files, *self.setting, "--without", "NET/3")
        self.assertEqual({n["net"] for n in x["nics"]}, {0, 1, 2, 4, 5, 6, 7})
        x = self.json(*files, *self.setting, "--pod", "1")
        self.assertEqual((x["across_pods"], x["best_order"]["across_pods"]), (x["across_hosts"], x["across_hosts"]))

    def test_traces_of_the_profiler(self):
        x = self.json("tests/data/records/kineto_0.json", "tests/data/records/kineto_1.json", "--topo", H100)
        self.assertEqual((x["trace"]["operations"], x["hosts"]), (6, 1))

    def test_a_job_on_some_of_the_gpus(self):
        """Kolo's records list no ranks: the job's, which are fewer than the machine's, are those that the records show."""
        x = self.json("tests/data/records/kolo_0.json", "tests/data/records/kolo_1.json", "--topo", H100)
        self.assertEqual((x["trace"]["operations"], x["trace"]["skipped"]), (5, 0))
        self.assertEqual(x["payload_bytes"], 5 * 2 * 262144)

    def test_refusals(self):
        files = self.records(*fd.many(2, sizes=((1 << 20,),)))
        for words, code, want in ((("--gpus", "0,1"), 1, "leave --gpus out"), (("--type", "half"), 2, "--type, --op and --root"),
                                  (("--pod", "0,1,2"), 1, "pods of 3 hosts are listed for a cluster of 2")):
            self.refused(code, want, *files, *self.setting, *words)
        self.refused(1, r"/[^/]+: the trace has no call of known bytes and ranks \(16 others, the first is send\)", *self.records(fd.send(0, 1, sizes=())), *self.setting)
        with open(os.path.join(os.path.dirname(files[0]), "t.et"), "wb") as f:
            f.write(b"\x07\n\x050.0.4\x20\n")
        self.refused(1, "binary form, and no record of calls; convert it to JSON first: chakra_jsonizer", f.name, *self.setting)


class Page(tool.Case):
    def test_page(self):
        with open(PAGE, encoding="utf-8") as f:
            page = f.read()

        def now(block):
            command = block.group(1)
            return f"```\n$ {command}\n{tool.good(*shlex.split(command)[1:])}```"

        new = re.sub(r"```\n\$ (kolo .*)\n(?:(?!```).*\n)*```", now, page)
        if os.environ.get("KOLO_RENEW"):
            with open(PAGE, "w", encoding="utf-8") as f:
                f.write(new)
        else:
            self.assertEqual(new, page)


if __name__ == "__main__":
    unittest.main()
