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

    def test_places_without_lines_are_named(self):
        for place in ("/", "/dev/zero"):
            self.assertIn(f"NCCL_TUNER_CONFIG_FILE={place} is no file that can be read, and has no effect", log_of(NCCL_TUNER_CONFIG_FILE=place))
        log, name = self.log_with("# nothing\n")
        self.assertIn(f"NCCL_TUNER_CONFIG_FILE={name} has no rule, and has no effect", log)


if __name__ == "__main__":
    unittest.main()
