#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`kolo explain pair`: how two ends talk, and why not better.

Whole answers are in tests/data/explain/pair-*.txt; KOLO_RENEW=1 writes them anew, to be read before they are kept. With
KOLO_SHARED (else ../shared, where that exists) every machine of topologies/ is asked as well.
"""
import glob
import json
import os
import subprocess
import sys
import tempfile
import unittest

KOLO = os.path.join(os.environ["KOLO_BUILD"], "kolo")
DATA = "tests/data/topologies/synthetic"
EXAMPLES = "tests/data/examples"
GOLDEN = "tests/data/explain"
SHARED = os.path.join(os.environ.get("KOLO_SHARED") or "../shared", "topologies")


def kolo(*args, **env):
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("NCCL_", "KOLO_"))}
    return subprocess.run([KOLO, *args], capture_output=True, text=True, timeout=60, env={**clean, **env}, check=False)


def machine(name):
    return f"{DATA}/{name}.xml"


class Pair(unittest.TestCase):
    maxDiff = None

    def good(self, *args, **env):
        p = kolo("explain", "pair", *args, **env)
        self.assertEqual((p.returncode, p.stderr), (0, ""), args)
        return p.stdout

    def answer(self, *args, **env):
        return json.loads(self.good(*args, "--json", **env))

    def test_whole_answers(self):
        for name, *args in (
            ("pair-a100-inside", "0", "3", "--topo", machine("a100-nvsw-8nic-200g")),
            ("pair-a100-rails", "0", "12", "--topo", machine("a100-nvsw-8nic-200g"), "--hosts", "2"),
            ("pair-h100-nic", "0", "mlx5_3", "--topo", machine("h100-rail-8nic-400g")),
            ("pair-h100-ring", "GPU/1", "GPU/9", "--topo", machine("h100-rail-8nic-400g"), "--hosts", "2"),
            ("pair-workstation", "GPU/0", "GPU/3", "--topo", machine("pcie-2cpu-4gpu")),
            ("pair-amd", "0", "1", "--topo", machine("pcie-1cpu-2gpu-amd")),
            ("pair-gb200-hosts", "0", "5", "--topo", machine("gb200-4gpu-4nic"), "--hosts", "2"),
            ("pair-gb200-domain", "0", "5", "--topo", machine("gb200-4gpu-4nic"), "--hosts", "2", "--mnnvl"),
        ):
            file, text = f"{GOLDEN}/{name}.txt", self.good(*args)
            if os.environ.get("KOLO_RENEW"):
                with open(file, "w", encoding="utf-8") as f:
                    f.write(text)
            with open(file, encoding="utf-8") as f:
                self.assertEqual(text, f.read(), name)

    def test_transports_and_what_refuses_them(self):
        sockets, ring, fast = (f"{EXAMPLES}/{n}.xml" for n in ("two-sockets", "nvlink-ring", "net-faster"))
        for args, env, chosen, codes in (
            ((sockets, "0", "3"), {}, "SHM", ["too_far", "allowed"]),
            ((sockets, "0", "3"), {"NCCL_P2P_LEVEL": "SYS"}, "P2P", ["allowed", "allowed"]),
            ((sockets, "0", "1"), {"NCCL_P2P_DISABLE": "1"}, "SHM", ["disabled", "allowed"]),
            ((ring, "0", "2"), {}, "P2P", ["allowed", "allowed"]),
            ((ring, "0", "2"), {"NCCL_P2P_USE_CUDA_MEMCPY": "1"}, "SHM", ["copy_engine", "allowed"]),
            ((fast, "0", "1"), {}, "NET", ["too_far", "network_faster", "allowed"]),
            ((fast, "0", "1"), {"NCCL_NET_DISABLE_INTRA": "1"}, "SHM", ["too_far", "allowed"]),
            ((machine("pcie-2cpu-4gpu"), "0", "3"), {"NCCL_SHM_DISABLE": "1"}, None, ["too_far", "disabled", "no_nic"]),
        ):
            o = self.answer("--topo", args[0], args[1], args[2], **env)
            self.assertEqual(o["transport"], chosen, (args, env))
            self.assertEqual([t["reason"]["code"] for t in o["transports"]], codes, (args, env))
            self.assertEqual([t["name"] for t in o["transports"] if t["chosen"]], [chosen] if chosen else [])

    def test_another_gpu_in_between(self):
        o = self.answer("0", "2", "--topo", f"{EXAMPLES}/nvlink-ring.xml")
        self.assertEqual((o["via"], o["path"][0]["type"]), (3, "NVB"))
        self.assertIn("by way of GPU/3", o["summary"])

    def test_the_sentence_is_the_same_for_people_and_programs(self):
        for args in (("0", "3"), ("0", "9", "--hosts", "2"), ("1", "NET/5"), ("NET/5", "1"), ("CPU/0-0", "NET/1")):
            args += ("--topo", machine("h100-nvsw-8nic-400g"))
            self.assertEqual(self.good(*args).splitlines()[0], self.answer(*args)["summary"] + ".")

    def test_nics_of_sends_are_those_of_the_graph(self):
        for name in ("a100-nvsw-8nic-200g", "h100-nvsw-4nic-400g", "dgx1v-hcm-4nic", "gb200-4gpu-4nic"):
            plan = json.loads(kolo("graph", "--topo", machine(name), "--hosts", "2", "--json").stdout)
            gpus, seen = plan["gpus_per_host"], 0
            for a, b in ((0, gpus), (0, gpus + 1), (1, 2 * gpus - 1), (gpus - 1, gpus)):
                o = self.answer(str(a), str(b), "--topo", machine(name), "--hosts", "2")
                for r in o["routes"]:
                    for c in r["channels"]:
                        if r["for"] == "send/recv" and c < 2:
                            seen += 1
                            self.assertEqual([r["send"]["net"], r["send"]["proxy"]],
                                             plan["queries"]["p2p_net"][a][b - gpus][c], (name, a, b, c))
            self.assertGreater(seen, 0, name)

    def test_nics_of_rings_are_those_of_the_graph(self):
        f = machine("a100-nvsw-8nic-200g")
        plan = json.loads(kolo("graph", "--topo", f, "--hosts", "2", "--json").stdout)
        for ends in plan["queries"]["ring_net"]:
            (last, out, proxy), (first, into, _) = ends["send"], ends["recv"]
            routes = self.answer(str(last), str(8 + first), "--topo", f, "--hosts", "2")["routes"]
            ring = [r for r in routes if r["for"] == "ring" and ends["ch"] in r["channels"]]
            self.assertEqual([(r["send"]["net"], r["send"]["proxy"], r["recv"]["net"]) for r in ring],
                             [(out, proxy, into)])

    def edited(self, name, *changes):
        with open(machine(name), encoding="utf-8") as f:
            text = f.read()
        for old, new in changes:
            self.assertIn(old, text)
            text = text.replace(old, new, 1)
        t = tempfile.NamedTemporaryFile("w", suffix=".xml", encoding="utf-8")
        t.write(text)
        t.flush()
        return t

    def test_links_that_are_not_as_wide_both_ways(self):
        """What a GPU can send is what its own links carry, though NCCL's path has the width of the links back."""
        with self.edited("nvbridge-2x2-a40", ('target="0000:21:00.0" count="4"', 'target="0000:21:00.0" count="1"')) as t:
            o = self.answer("0", "1", "--topo", t.name)
            back = self.answer("1", "0", "--topo", t.name)
            self.assertIn("not as wide both ways", self.good("0", "1", "--topo", t.name))
        link, path = o["path"][0]["links"][0]["bw"], o["path"][0]["bw"]
        self.assertEqual((o["bw"], path), (link, 4 * link))
        self.assertEqual((back["bw"], back["path"][0]["bw"]), (path, link))
        self.assertIn(f"{link:g} GB/s", o["summary"])
        self.assertNotIn("not as wide both ways", self.good("0", "1", "--topo", machine("nvbridge-2x2-a40")))

    def test_bottlenecks_are_narrower_than_something(self):
        for b, n in (("3", 0), ("NET/3", 2)):
            links = self.answer("0", b, "--topo", machine("a100-nvsw-8nic-200g"))["path"][0]["links"]
            self.assertEqual([l["bw"] for l in links if l["bottleneck"]], n * [24])

    def test_a_nic_is_seen_as_in_the_plan(self):
        """Ranks that only the network joins have a machine each, with one GPU: it needs no NVLink to send with GPUDirect."""
        args, alone = ("--topo", machine("dgx1p-hcm-4nic")), {"NCCL_P2P_DISABLE": "1", "NCCL_SHM_DISABLE": "1"}
        nics = json.loads(kolo("explain", "nics", *args, "--hosts", "1", "--json", **alone).stdout)
        for hosts in ("1", "2"):
            o = self.answer("0", "NET/0", *args, "--hosts", hosts, **alone)
            self.assertEqual([o["nic"][k]["used"] for k in ("gdr_send", "gdr_recv")],
                             [nics["gpus"][0][k]["used"] for k in ("gdr_send", "gdr_recv")], hosts)

    def test_cpu_devices_say_what_happens_live(self):
        o = self.answer("0", "1", "--ranks", "2")
        self.assertEqual((o["transport"], o["live"]), ("SHM", {"processes": "SHM", "threads": "P2P"}))
        self.assertEqual(o["transports"][0]["reason"]["code"], "not_mappable")
        self.assertIn("as threads of one process they would use P2P", o["summary"])
        o = self.answer("0", "1", "--ranks", "2", NCCL_P2P_DISABLE="1")
        self.assertEqual(o["live"], {"processes": "SHM", "threads": "SHM"})

    def test_bad_ends(self):
        f = machine("pcie-2cpu-4gpu")
        for words, code in ((("0", "4"), 1), (("0", "0"), 1), (("0", "NET/9"), 1), (("0", "PCI/0-10000"), 1),
                            (("0", "-1"), 2), (("0", "99999999999999999999"), 1), (("0",), 2), (("0", "1", "2"), 2),
                            (("", "1"), 1)):
            p = kolo("explain", "pair", "--topo", f, *words)
            self.assertEqual((p.returncode, p.stdout, p.stderr.count("\n")), (code, "", 1), f"{words}: {p.stderr}")

    def test_nics_of_several_hosts_are_named_as_they_are_written(self):
        p = kolo("explain", "pair", "0", "NET/0", "--topo", machine("gb200-4gpu-4nic"), "--hosts", "2", "--mnnvl")
        self.assertEqual(p.returncode, 1)
        self.assertIn("NICs (NET/0-0, or by name)", p.stderr)

    def test_many_hosts(self):
        o = self.answer("0", "4095", "--topo", machine("h100-rail-8nic-400g"), "--hosts", "512")
        self.assertEqual((o["transport"], o["b"]["host"], o["b"]["dev"]), ("NET", 511, 7))

    def test_every_machine_has_an_answer(self):
        files = glob.glob(f"{DATA}/*.xml") + glob.glob("tests/data/topologies/random/*.xml")
        if os.path.isdir(SHARED):
            files += [f for d in ("real", "derived", "from-public") for f in glob.glob(f"{SHARED}/{d}/*.xml")]
        else:
            print("skipped: the machines of KOLO_SHARED", file=sys.stderr)
        answers = 0
        for f in sorted(files):
            p = kolo("explain", "pair", "0", "1", "--topo", f, "--json")
            if p.returncode:
                self.assertEqual((p.returncode, p.stdout, p.stderr.count("\n")), (1, "", 1), f"{f}: {p.stderr}")
            else:
                answers += bool(json.loads(p.stdout)["summary"])
        self.assertGreater(answers, 50)


if __name__ == "__main__":
    unittest.main()
