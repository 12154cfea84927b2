# SPDX-License-Identifier: Apache-2.0
"""Tuners beside the model: the example plugin in each version of the ABI and a file of rules choose for an all-reduce, within their
range; one that fails has no say; mistakes in a file are named."""
import json
import os
import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, "tests")
import tool  # noqa: E402

PLUGINS = os.path.join(os.environ["KOLO_BUILD"], "plugins")


def plugin(version):
    return os.path.join(PLUGINS, f"libnccl-tuner-example{version}.so")


def log_of(**env):
    with tempfile.TemporaryDirectory() as logs:
        p = tool.run("perf", "all_reduce", "--np", "2", "-b", "1K", "-e", "1M", "-f", "1024", "-n", "1", "-w", "0",
                     NCCL_DEBUG="INFO", NCCL_DEBUG_SUBSYS="ALL", NCCL_DEBUG_FILE=logs + "/%p", **env)
        text = "".join(f.read_text(encoding="utf-8") for f in pathlib.Path(logs).iterdir())
    assert p.returncode == 0 and "Out of bounds values : 0 OK" in p.stdout, p.stdout + p.stderr
    return text


class Plugins(unittest.TestCase):
    def test_every_version_chooses(self):
        for version in range(2, 7):
            with self.subTest(version=version):
                log = log_of(NCCL_TUNER_PLUGIN=plugin(version), EXAMPLE_TUNER_BYTES="2048")
                self.assertIn(f"using ExampleRing (ncclTunerPlugin_v{version} of {plugin(version)})", log)
                self.assertIn("AllReduce of 1024 bytes: Ring Simple, 1 channels: chosen by the tuner ExampleRing", log)
                self.assertNotIn("AllReduce of 1048576 bytes: Ring Simple, 1 channels: chosen", log)

    def test_one_that_fails_has_no_say(self):
        log = log_of(NCCL_TUNER_PLUGIN=plugin(4), EXAMPLE_TUNER_FAILS="1")
        self.assertIn("getCollInfo returned 2; such operations are as without it", log)
        self.assertNotIn("chosen by the tuner", log)

    def test_one_that_is_missing_is_named(self):
        self.assertIn('tuner plugin "/nowhere/tuner.so" could not be loaded', log_of(NCCL_TUNER_PLUGIN="/nowhere/tuner.so"))


class Reasons(unittest.TestCase):
    """The tuner's name is the reason of a choice in traces and in `kolo explain`."""

    def test_a_trace_names_the_tuner(self):
        with tempfile.TemporaryDirectory() as folder:
            log_of(NCCL_TUNER_PLUGIN=plugin(6), EXAMPLE_TUNER_BYTES="2048", KOLO_TRACE=folder + "/%r.json")
            with open(folder + "/0.json", encoding="utf-8") as f:
                args = [e["args"] for e in json.load(f)["traceEvents"] if e.get("cat") == "operation"]
        small = [a for a in args if a["bytes"] == 1024]
        large = [a for a in args if a["bytes"] == 1 << 20]
        self.assertTrue(small and large)
        self.assertEqual({(a["algorithm"], a["protocol"], a.get("tuner")) for a in small}, {("Ring", "Simple", "ExampleRing")})
        self.assertEqual({a.get("tuner") for a in large}, {None})

    def explain(self, *words, **env):
        answer = json.loads(tool.good("explain", "all_reduce", *words, "--ranks", "4", "--constants", "host", "--json", **env))
        return answer["tuner"]

    def test_explain_asks_every_version(self):
        for version in range(2, 7):
            with self.subTest(version=version):
                tuner = self.explain("1K-1M", "--tuner", plugin(version), EXAMPLE_TUNER_BYTES="2048")
                first, rest = tuner["ranges"][0], tuner["ranges"][1:]
                self.assertEqual(tuner["name"], "ExampleRing")
                self.assertEqual((first["first_bytes"], first["last_bytes"], first["by_tuner"]), (1024, 2048, True))
                self.assertEqual(first["choice"], {"algorithm": "Ring", "protocol": "Simple", "channels": 1})
                self.assertTrue(rest and not any(r["by_tuner"] for r in rest))
                self.assertTrue(all(r["choice"] == r["model"] for r in rest))

    def test_explain_asks_rules(self):
        with tempfile.NamedTemporaryFile("w", suffix=".csv") as f:
            f.write("allreduce,0,2048,tree,simple,1,-1,-1\n")
            f.flush()
            tuner = self.explain("1K", "--tuner", f.name)
        self.assertEqual(tuner["name"], f.name)
        self.assertEqual(tuner["ranges"][0]["choice"]["algorithm"], "Tree")

    def test_graph_asks_for_every_function(self):
        words = ("graph", "--topo", tool.machine("a100-nvsw-8nic-200g"), "--hosts", "2", "--tuner", plugin(4))
        answer = json.loads(tool.good(*words, "--json", EXAMPLE_TUNER_BYTES="2048"))["tuner"]
        self.assertEqual(answer["name"], "ExampleRing")
        self.assertEqual(sorted(answer["functions"]), ["AllGather", "AllReduce", "Broadcast", "Reduce", "ReduceScatter"])
        for function, ranges in answer["functions"].items():
            self.assertEqual((ranges[0]["first_bytes"], ranges[-1]["last_bytes"]), (1, 16 << 30))
            chosen = [(r["first_bytes"], r["last_bytes"], r["choice"]["algorithm"]) for r in ranges if r["by_tuner"]]
            self.assertEqual({last for _, last, _ in chosen}, {2048} if function == "AllReduce" else set())
        text = tool.good(*words, EXAMPLE_TUNER_BYTES="2048")
        self.assertIn("with the tuner ExampleRing", text)
        self.assertIn("chosen by ExampleRing; the model chooses", text)

    def test_graph_refuses_pictures_and_files_without_a_tuner(self):
        p = tool.run("graph", "--machine", "dgx-h100", "--tuner", "/nowhere/tuner.so")
        self.assertEqual((p.returncode, '"/nowhere/tuner.so" is no tuner' in p.stderr), (2, True), p.stderr)
        p = tool.run("graph", "--machine", "dgx-h100", "--tuner", plugin(4), "--format", "svg")
        self.assertEqual((p.returncode, "--tuner is for" in p.stderr), (2, True), p.stderr)

    def test_explain_refuses_a_file_without_a_tuner(self):
        p = tool.run("explain", "all_reduce", "1K", "--ranks", "4", "--tuner", "/nowhere/tuner.so")
        self.assertEqual(p.returncode, 2)
        self.assertIn('"/nowhere/tuner.so" is no tuner', p.stderr)


class Rules(unittest.TestCase):
    def log_with(self, text):
        with tempfile.NamedTemporaryFile("w", suffix=".csv") as f:
            f.write(text)
            f.flush()
            return log_of(NCCL_TUNER_CONFIG_FILE=f.name), f.name

    def test_the_first_that_fits_counts(self):
        log, name = self.log_with("# ours\nallreduce,0,2048,ring,simple,1,-1,-1,-1,-1\nallreduce,0,4096,tree,ll,1,1,2\n"
                                  "allreduce,0,-1,tree,simple,1,1,64\n")
        self.assertIn(f"TUNER: using 3 rules of {name}", log)
        self.assertIn(f"AllReduce of 1024 bytes: Ring Simple, 1 channels: chosen by the tuner {name}", log)
        self.assertNotIn("AllReduce of 1048576 bytes: Ring Simple, 1 channels: chosen", log)

    def test_mistakes_are_named(self):
        log, name = self.log_with("allreduce,0,-1,ring,simple,1,-1,-1\nallreduce,8,64,tree,ll,1,-1,-1\n"
                                  "allreduce,0,9,star,ll,1,-1,-1\nbroadcast,9,8,ring,ll,1,-1,-1\nreduce,1\n"
                                  "reduce,0,-1,ring,ll,1,-1,-1,-1,-1,7\n" + 1500 * " " + "reduce,0,-1,ring,ll,1,-1,-1\n#" + 1022 * "x" +
                                  "reduce,0,-1,ring,ll,1,-1,-1\nreduce,2\n")
        self.assertIn(f"{name}:2: line 1 takes all of it: the rule is never used", log)
        self.assertIn(f'{name}:3: "star" is no algorithm; the rule is left out', log)
        self.assertIn(f"{name}:4: minBytes is above maxBytes", log)
        self.assertIn(f"{name}:5: a rule has at least 8 fields, not 2", log)
        self.assertIn(f"{name}:6: a rule has at most 10 fields; it is left out", log)
        self.assertIn(f"{name}:7: a line of more than 1022 characters; it is left out", log)
        self.assertIn(f"{name}:9: a rule has at least 8 fields, not 2", log)
        self.assertIn(f"TUNER: using 3 rules of {name}", log)

    def test_rules_beyond_the_most_are_left_out(self):
        log, name = self.log_with("".join(f"reduce,{i},{i},ring,ll,1,-1,-1\n" for i in range(100000)))
        self.assertIn(f"{name}:4097: more than 4096 rules; this one and those behind it are left out", log)

    def test_json_chooses_as_csv(self):
        rules = [{"function": "allreduce", "minBytes": 0, "maxBytes": 2048, "algorithm": "ring", "protocol": "simple", "channels": 1},
                 {"collType": "allreduce", "maxBytes": 1024}]
        for text in (json.dumps(rules), json.dumps({"rules": rules})):
            log, name = self.log_with(text)
            self.assertIn(f"TUNER: using 2 rules of {name}", log)
            self.assertIn(f"{name}, rule 2: rule 1 takes all of it: the rule is never used", log)
            self.assertIn(f"AllReduce of 1024 bytes: Ring Simple, 1 channels: chosen by the tuner {name}", log)
            self.assertNotIn("AllReduce of 1048576 bytes: Ring Simple, 1 channels: chosen", log)

    def test_mistakes_in_json_are_named(self):
        log, name = self.log_with('[{"function": "allreduce", "algorithm": "star"}, {"size": 1}, 7, {"channels": 1.5}, {"channels": 2}]')
        for number, why in ((1, '"star" is no algorithm; the rule is left out'), (2, 'there is no field "size"; the rule is left out'),
                            (3, "it is no object; it is left out"), (4, '"channels" is neither a short text nor a whole number')):
            self.assertIn(f"{name}, rule {number}: {why}", log)
        self.assertIn(f"TUNER: using 1 rules of {name}", log)
        log, name = self.log_with("[{]")
        self.assertIn(f"{name}: line 1, column ", log)
        log, name = self.log_with('{"rule": []}')
        self.assertIn(f'{name}: it has neither an array of rules nor an object with the array "rules"', log)

    def test_forms_are_converted_and_looked_at(self):
        with tempfile.TemporaryDirectory() as folder:
            csv, other, again = folder + "/a.csv", folder + "/b.json", folder + "/c.csv"
            pathlib.Path(csv).write_text("allreduce,0,65536,tree,ll,-1,-1,-1\nallreduce,1024,-1,ring,simple,4,2,16,1,0\n,,,nvls_tree,,,,\n",
                                         encoding="utf-8")
            p = tool.run("plugin", "rules", csv, "--to", "json")
            self.assertEqual((p.returncode, p.stderr), (0, f"note: {csv}:2: line 1 takes a part of it, 1024 to 65536 bytes\n"
                                                           f"note: {csv}:3: line 1 takes a part of it, 0 to 65536 bytes\n"))
            pathlib.Path(other).write_text(p.stdout, encoding="utf-8")
            self.assertEqual(json.loads(p.stdout)["rules"][1], {
                "function": "allreduce", "minBytes": 1024, "maxBytes": -1, "algorithm": "ring", "protocol": "simple", "channels": 4, "nNodes": 2,
                "nRanks": 16, "numPipeOps": 1, "regBuff": 0})
            to_csv = tool.run("plugin", "rules", other, "--to", "csv").stdout
            pathlib.Path(again).write_text(to_csv, encoding="utf-8")
            self.assertEqual(tool.run("plugin", "rules", again, "--to", "json").stdout, p.stdout)
            pathlib.Path(csv).write_text("allreduce,0,-1,ring,ll,-1,-1,-1\nallreduce,0,9,star,ll,-1,-1,-1\nallreduce,5,9,,,,,\n", encoding="utf-8")
            p = tool.run("plugin", "rules", csv)
            self.assertEqual((p.returncode, p.stdout), (1, f"{csv}: 2 rules, 2 mistakes\n"), p.stderr)
            self.assertIn(f"mistake: {csv}:3: line 1 takes all of it: the rule is never used", p.stderr)

    def test_places_without_lines_are_named(self):
        for place in ("/", "/dev/zero"):
            self.assertIn(f"NCCL_TUNER_CONFIG_FILE={place} is no file that can be read, and has no effect", log_of(NCCL_TUNER_CONFIG_FILE=place))
        log, name = self.log_with("# nothing\n")
        self.assertIn(f"NCCL_TUNER_CONFIG_FILE={name} has no rule, and has no effect", log)


if __name__ == "__main__":
    unittest.main()
