#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`kolo explain COLLECTIVE SIZE` as its users meet it: the choice, the refused ones and why, where the choice changes."""
import json
import re

import tool

A100, H100, COLL = map(tool.machine, ("a100-nvsw-8nic-200g", "h100-nvsw-8nic-400g", "h100-nvsw-8nic-400g-coll"))

COLLECTIVES = ("allreduce", "all_gather", "ReduceScatter", "broadcast", "reduce", "sendrecv", "send", "recv", "alltoall",
               "alltoallv", "gather", "scatter", "barrier")


class Collective(tool.Case):
    words = ("explain",)

    def test_what_is_asked_comes_back(self):
        for args, want in (
            (["allreduce", "64M", "--topo", H100, "--hosts", "2"], ("all_reduce", 64 << 20, 64 << 20, "float", "sum", 2, 2, 16)),
            (["AllReduce", "1K-1G", "--topo", A100], ("all_reduce", 1 << 10, 1 << 30, "float", "sum", 1, 1, 8)),
            (["ReduceScatter", "1M", "--op", "avg", "--type", "half", "--topo", A100], ("reduce_scatter", 1 << 20, 1 << 20, "half", "avg", 1, 1, 8)),
            (["broadcast", "1M", "--topo", tool.machine("pcie-2cpu-4gpu")], ("broadcast", 1 << 20, 1 << 20, "float", None, 1, 1, 4)),
            (["barrier", "--topo", tool.machine("dgx1v-hcm-4nic")], ("barrier", 4, 4, "float", "sum", 1, 1, 8)),
            (["sendrecv", "1K", "1M", "--topo", tool.machine("dgx1v-hcm-4nic")], ("sendrecv", 1 << 10, 1 << 20, "float", None, 1, 1, 8)),
        ):
            o = self.json(*args)
            keys = ("collective", "first_bytes", "last_bytes", "type", "op", "hosts", "nodes", "ranks")
            self.assertEqual(tuple(o[k] for k in keys), want, args)

    def test_settings_leave_what_they_allow(self):
        o = self.json("allreduce", "64M", "--topo", A100, NCCL_ALGO="ring", NCCL_PROTO="^LL128")
        self.assertEqual({(c["algorithm"], c["protocol"]) for c in o["candidates"]}, {("Ring", "LL"), ("Ring", "Simple")})
        o = self.json("allreduce", "64M", "--topo", A100, NCCL_ALGO="nvls")
        self.assertEqual((o["choice"], o["candidates"]), (None, []))
        o = self.json("allreduce", "1G", "--topo", COLL, "--hosts", "4", NCCL_COLLNET_ENABLE="1")
        self.assertLessEqual({"CollNetChain", "CollNetDirect", "NVLS", "NVLSTree"}, {c["algorithm"] for c in o["candidates"]})

    def test_one_rank_sends_nothing(self):
        o = self.json("allreduce", "64M", "--topo", tool.machine("single-gpu-1nic"))
        self.assertEqual((o["ranks"], o["choice"], {r["reason"]["code"] for r in o["refused"]}), (1, None, {"one_rank"}))

    def test_the_expected_time_stands_beside_the_prediction(self):
        args = ("allreduce", "64M", "--topo", H100, "--hosts", "2")
        o = self.json(*args)
        self.assertEqual([c["time_us"] for c in o["candidates"]], sorted(c["time_us"] for c in o["candidates"]))
        for c in o["candidates"]:
            e = c["expected"]
            parts = [e[k] for k in ("latency_us", "start_us", "ramp_us", "tcp_us", "transfer_us")]
            self.assertAlmostEqual(sum(parts) / e["time_us"], 1, 4, c)
        e = o["choice"]["expected"]
        self.assertGreater(e["time_us"], o["choice"]["time_us"])
        self.assertRegex(self.good(*args), rf"\n  expected: {e['time_us']:.4g} us \({e['bus_gbs']:.3g} GB/s bus bandwidth\), after published")
        for c in json.loads(tool.good("graph", *args[2:], "--json"))["tuning"]["select"]["AllReduce"]:
            if c["bytes"] == 64 << 20:
                self.assertEqual((c["time_us"], c["expected_us"]), (o["choice"]["time_us"], e["time_us"]))
        host = self.json(*args, "--constants", "host")
        self.assertEqual({c["expected"] for c in host["candidates"]}, {None})
        self.assertNotIn("  expected:", self.good(*args, "--constants", "host"))

    def test_fp8_is_slow_in_long_rings(self):
        for nccl, slow in (("2.30.7", "Ring"), ("2.31.2", None)):
            o = self.json("allreduce", "1M", "--topo", H100, "--hosts", "2", "--type", "f8e4m3", "--nccl", nccl)
            for c in o["candidates"]:
                self.assertEqual(c["terms"]["fp8_us"] > 0, c["algorithm"] == slow, c)

    def test_what_could_not_be_read_is_said_where_it_matters(self):
        fp8 = ("allreduce", "1M", "--topo", H100, "--hosts", "2", "--type", "f8e4m3")
        for args, nccl, want in ((fp8, "2.31.2", ["any_sum"]), (fp8, "2.30.7", []), (fp8[:-2], "2.32.3", [])):
            uncertain = self.json(*args, "--nccl", nccl)["uncertain"]
            self.assertEqual([u["code"] for u in uncertain], want, (args, nccl))
            for u in uncertain:
                self.assertEqual((u["part"], u["since"], u["followed"]), ("tuning", "2.31.2", True))
            block = f"uncertain, as NCCL {nccl}'s code for it could not be read:\n"
            self.assertEqual(self.good(*args, "--nccl", nccl).count(block), len(want), (args, nccl))

    def test_it_is_what_the_plan_says(self):
        plan = json.loads(tool.good("graph", "--topo", A100, "--hosts", "3", "--json"))
        for func, rows in plan["tuning"]["select"].items():
            for row in rows:
                o = self.json(func, str(row["bytes"]), "--topo", A100, "--hosts", "3")
                c = o["choice"]
                self.assertEqual((c["algorithm"], c["protocol"], c["channels"], c["threads"], c["time_us"]),
                                 (row["algo"], row["proto"], row["nchannels"], row["nthreads"], row["time_us"]), (func, row))
                at = [r for r in o["ranges"] if r["first_bytes"] <= row["bytes"] <= r["last_bytes"]]
                self.assertEqual([(r["algorithm"], r["channels"], r["threads"]) for r in at],
                                 [(row["algo"], row["nchannels"], row["nthreads"])])

    def test_terms_add_up(self):
        for bytes_ in ("1", "4K", "1M", "1G"):
            for c in self.json("allreduce", bytes_, "--topo", COLL, "--hosts", "4", NCCL_COLLNET_ENABLE="1")["candidates"]:
                self.assertAlmostEqual(sum(c["terms"].values()) / c["time_us"], 1, 5)

    def test_every_candidate_is_there_once(self):
        for coll in COLLECTIVES[:5]:
            o = self.json(coll, "1M", "--topo", H100, "--hosts", "2")
            pairs = [(c["algorithm"], c["protocol"]) for c in o["candidates"] + o["refused"]]
            self.assertEqual((len(pairs), len(set(pairs))), (21, 21))
            for r in o["refused"]:
                self.assertRegex(r["reason"]["code"], "^[a-z0-9_]+$")
                self.assertNotIn("%", r["reason"]["text"])

    def test_one_shot_and_flat_are_algorithms_of_hosts(self):
        host = ["--topo", A100, "--constants", "host"]
        o = self.json("allreduce", "64", *host)
        algorithms = [c["algorithm"] for c in o["candidates"] + o["refused"]]
        self.assertEqual({algorithms.count(a) for a in algorithms}, {3})  # protocols
        self.assertLess({"Ring", "OneShot", "Flat"}, set(algorithms))
        self.assertEqual((o["choice"]["algorithm"], o["choice"]["channels"]), ("Flat", 1))
        self.assertEqual(self.json("allreduce", "64", *host, "--hosts", "2")["choice"]["algorithm"], "OneShot")
        self.assertEqual(self.reason(["broadcast", "64", *host, "--hosts", "2"], {}, "Flat", "Simple"), ["no_shm_exchange"])
        self.assertEqual({c["algorithm"] for c in self.json("allreduce", "64", *host, NCCL_ALGO="oneshot")["candidates"]}, {"OneShot"})
        self.assertEqual(self.reason(["allgather", "64", *host], {}, "OneShot", "Simple"), ["function"])
        self.assertEqual(self.reason(["allreduce", "64", *host], {}, "OneShot", "LL128"), ["protocol"])
        self.assertEqual(self.reason(["allreduce", "64", *host, "--hosts", "17"], {}, "OneShot", "Simple"), ["no_grid"])
        self.refused(1, 'no name "oneshot"; known are .*PAT$', "allreduce", "64", "--topo", A100, NCCL_ALGO="oneshot")

    def test_ranges_hold_to_the_byte(self):
        ranges = self.json("allreduce", "1-1G", "--topo", A100, "--hosts", "2")["ranges"]
        self.assertEqual((ranges[0]["first_bytes"], ranges[-1]["last_bytes"]), (1, 1 << 30))
        for before, r in zip(ranges, ranges[1:]):
            self.assertEqual(before["last_bytes"] + 1, r["first_bytes"])
            for bytes_, want in ((before["last_bytes"], before), (r["first_bytes"], r)):
                c = self.json("allreduce", str(bytes_), "--topo", A100, "--hosts", "2")["choice"]
                for key in ("algorithm", "protocol", "channels", "threads"):
                    self.assertEqual(c[key], want[key], (bytes_, key))

    def reason(self, args, env, algorithm, protocol):
        o = self.json(*args, **env)
        return [r["reason"]["code"] for r in o["refused"] if (r["algorithm"], r["protocol"]) == (algorithm, protocol)]

    def test_reasons(self):
        h2 = ["--topo", H100, "--hosts", "2"]
        for args, env, algorithm, protocol, code in (
            (["allreduce", "1M", *h2], {}, "NVLS", "Simple", "nvls_nodes"),
            (["allreduce", "1M", *h2, "--op", "prod"], {}, "NVLSTree", "Simple", "nvls_op"),
            (["allreduce", "1M", *h2, "--type", "half", "--op", "max"], {}, "NVLSTree", "Simple", None),
            (["allreduce", "1M", *h2], {"NCCL_NVLS_ENABLE": "0"}, "NVLSTree", "Simple", "no_nvls"),
            (["allreduce", "1M", *h2], {"NCCL_COLLNET_ENABLE": "1"}, "CollNetChain", "Simple", "no_collnet"),
            (["allreduce", "1M", *h2], {"NCCL_ALGO": "^tree"}, "Tree", "LL", "nccl_algo"),
            (["allreduce", "1M", *h2], {"NCCL_PROTO": "simple"}, "Tree", "LL", "nccl_proto"),
            (["allgather", "1M", *h2], {}, "PAT", "Simple", "pat_ranks"),
            (["allgather", "1M", *h2], {"NCCL_PAT_ENABLE": "1"}, "PAT", "Simple", None),
            (["reducescatter", "1M", *h2, "--op", "avg", "--nccl", "2.30.7"], {"NCCL_PAT_ENABLE": "1"}, "PAT", "Simple", "pat_op"),
            (["reducescatter", "1M", *h2, "--op", "avg", "--nccl", "2.31.2"], {"NCCL_PAT_ENABLE": "1"}, "PAT", "Simple", None),
            (["broadcast", "1M", *h2], {}, "Tree", "Simple", "function"),
            (["allreduce", "1M", "--topo", tool.machine("pcie-2cpu-4gpu")], {}, "Ring", "LL128", "ll128_intra"),
        ):
            self.assertEqual(self.reason(args, env, algorithm, protocol), [code] if code else [], (args, env, algorithm))

    def test_names_in_any_form(self):
        want = self.good("allreduce", "64M", "--topo", A100)
        for name in ("AllReduce", "all_reduce", "ALL-REDUCE"):
            self.assertEqual(self.good(name, "64M", "--topo", A100), want)
        self.assertEqual(self.good("allreduce", "1K", "1M", "--topo", A100), self.good("allreduce", "1K-1M", "--topo", A100))
        o = self.json("allreduce", "--topo", A100)
        self.assertEqual((o["first_bytes"], o["last_bytes"]), (1, 16 << 30))

    def test_rounds_meet_everybody_once(self):
        o = self.json("alltoall", "1M", "--topo", A100, "--hosts", "3")
        for key in ("send", "recv"):
            self.assertEqual(sorted(r[key] for r in o["rounds"]), list(range(24)))
        self.assertEqual({len(r["channels"]) for r in o["rounds"]}, {o["channels_per_peer"]})
        o = self.json("sendrecv", "1M", "--topo", A100, "--hosts", "2")
        self.assertEqual([(r["send"], r["recv"]) for r in o["rounds"]], [(1, None), (None, 15)])
        o = self.json("hypercube", "1M", "--topo", A100)
        self.assertEqual(sorted(r["send"] for r in o["rounds"] if r["send"]), [1, 2, 4])

    def test_constants_of_cpus(self):
        """The choice equals the plan's with the same constants, and another one than on GPUs."""
        for name in ("reference", "host"):
            plan = json.loads(tool.good("graph", "--topo", A100, "--hosts", "2", "--constants", name, "--json"))
            self.assertEqual(plan["constants"], name)
            for row in plan["tuning"]["select"]["AllReduce"][::6]:
                o = self.json("allreduce", str(row["bytes"]), "--topo", A100, "--hosts", "2", "--constants", name)
                self.assertEqual((o["constants"], o["choice"]["algorithm"], o["choice"]["protocol"], o["choice"]["channels"]),
                                 (name, row["algo"], row["proto"], row["nchannels"]))
        times = [self.json("allreduce", "64M", "--topo", A100, *c)["choice"]["time_us"] for c in ((), ("--constants", "host"))]
        self.assertNotEqual(*times)
        self.refused(2, "--constants gpu: expected reference or host", "allreduce", "1M", "--topo", A100, "--constants", "gpu")

    def test_a_time_without_its_latency_is_not_to_be_trusted(self):
        """NCCL has no latency for NVLS where NVLink does not join all GPUs: it would take 0.003 us for 1 KiB."""
        gb200 = tool.machine("gb200-4gpu-4nic")
        o = self.json("allreduce", "1K", "--topo", gb200, NCCL_P2P_DISABLE="1")
        self.assertEqual({c["algorithm"] for c in o["candidates"] if c["timeless_hops"]}, {"NVLS"})
        self.assertTrue(o["choice"]["timeless_hops"])
        for f in (gb200, A100, H100, COLL, tool.machine("power9-4gpu-2nic")):
            for hosts in ("1", "2"):
                o = self.json("allreduce", "1K", "--topo", f, "--hosts", hosts)
                self.assertFalse([c for c in o["candidates"] if c["timeless_hops"]], f)

    def test_large_numbers_have_no_exponents(self):
        out = self.good("allreduce", "16G", "--topo", tool.machine("pcie-8gpu-1slownic-10g"), "--hosts", "2")
        self.assertNotRegex(out, r"\de[+-]?\d")

    def test_this_machine_and_large_clusters(self):
        for coll in COLLECTIVES:
            size = [] if coll == "barrier" else ["1M"]
            self.good(coll, *size)
            self.good(coll, *size, "--topo", H100, "--hosts", "512")
        self.assertEqual(self.json("allreduce", "1G", "--topo", H100, "--hosts", "512")["ranks"], 4096)

    def test_wrong_words(self):
        self.refused(2, "^kolo explain: allreduced: there is no such file, question or collective; see kolo explain --help", "allreduced", "1M")
        self.refused(2, r"^kolo explain: expected: nics; see", "nics", "GPU/0")
        self.refused(2, r"^kolo explain: expected: pair A B; see", "pair", "GPU/0")

    def test_wrong_questions(self):
        for args in (["nonsense", "1M"], ["COLLECTIVE", "1M"], ["allreduce", "0"], ["allreduce", "64X"], ["allreduce", "1M-1K"], ["allreduce", "1-"],
                     ["allreduce", "1", "2", "3"], ["allreduce", "1M", "--type", "real"], ["allreduce", "1M", "--op", "xor"],
                     ["barrier", "4"]):
            self.refused(2, "^kolo explain: ", *args, "--topo", A100)
        for args in (["allreduce", "1M", "--topo", "/nonexistent"], ["allreduce", "1M", "--topo", A100, "--type", "f8e4m3"],
                     ["hypercube", "1M", "--topo", A100, "--hosts", "3"]):
            self.refused(1, ".", *args)

    def test_other_machines(self):
        self.need_shared()
        shown = 0
        for f in tool.swept(self.shared_machines("real", "derived")):
            text = self.good_or_refused("allreduce", "64M", "--topo", f, "--hosts", "2", "--json")
            if text is not None:
                self.assertTrue(json.loads(text)["choice"]["time_us"] > 0, f)
                self.assertFalse(re.search(r"\bnan\b|\binf\b|\(null\)", text + self.good("allreduce", "64M", "--topo", f)), f)
                shown += 1
        self.assertGreater(shown, 10 if tool.SANITIZE else 50)


if __name__ == "__main__":
    tool.main()
