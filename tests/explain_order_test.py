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
        """The same entries of each rank, without those of groups that it is not in."""
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        groups = {"0": range(16), **(groups or {})}
        return fd.write(folder.name, [[e for e in entries if r in groups[e["process_group"][0]]] for r in range(16)], groups)

    def test_a_sum_is_the_sum_of_its_operations(self):
        files = self.records(*fd.many(3, sizes=((16 << 20,),)), fd.call("_all_gather_base", seq=4, sizes=((1 << 16,),), out=((1 << 20,),), dtype="BFloat16"))
        x = self.json(*files, *self.setting)
        reduce = traffic("allreduce", "64M", "--hosts", "2", *self.setting)
        gather = traffic("allgather", "2M", "--hosts", "2", "--type", "bfloat16", *self.setting)
        self.assertEqual(x["trace"], {"files": 16, "groups": 1, "kinds": 2, "operations": 4, "skipped": 0, "first_skipped": None})
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

    def test_missing_nics_and_pods(self):
        files = self.records(*fd.many(2, sizes=((1 << 20,),)))
        x = self.json(*files, *self.setting, "--without", "NET/3")
        self.assertEqual({n["net"] for n in x["nics"]}, {0, 1, 2, 4, 5, 6, 7})
        x = self.json(*files, *self.setting, "--pod", "1")
        self.assertEqual((x["across_pods"], x["best_order"]["across_pods"]), (x["across_hosts"], x["across_hosts"]))

    def test_traces_of_the_profiler(self):
        x = self.json("tests/data/records/kineto_0.json", "tests/data/records/kineto_1.json", "--topo", H100)
        self.assertEqual((x["trace"]["operations"], x["hosts"]), (6, 1))

    def test_refusals(self):
        files = self.records(*fd.many(2, sizes=((1 << 20,),)))
        for words, code, want in ((("--gpus", "0,1"), 1, "leave --gpus out"), (("--type", "half"), 2, "--type, --op and --root"),
                                  (("--pod", "0,1,2"), 1, "pods of 3 hosts are listed for a cluster of 2")):
            self.refused(code, want, *files, *self.setting, *words)
        self.refused(1, "no collective whose bytes and ranks are told", *self.records(fd.send(0, 1)), *self.setting)


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
