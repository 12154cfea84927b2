# SPDX-License-Identifier: Apache-2.0
"""`kolo plugin check`: the example plugins of all kinds and versions pass, and each faulty plugin makes exactly its check fail."""
import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, "tests")
import tool  # noqa: E402

PLUGINS = os.path.join(os.environ["KOLO_BUILD"], "plugins")
FAULTS = {1: "isend", 2: "cycles", 3: "speed", 4: "connecting", 5: "handle", 6: "calls", 7: "order", 8: "sizes", 9: "buffers", 10: "leaks",
          11: "closing", 12: "registration", 13: "threads", 14: "errors", 15: "environment", 16: "remains"}
# Checks that only a machine without other work can judge, and that sanitizers make slow or large.
SLOW = {10} if tool.SANITIZE else set()


def plugin(name):
    return os.path.join(PLUGINS, f"libnccl-{name}.so")


ALL = range(1, 22)
LONG = (8, 10)  # a message of 1 GiB, 50,000 messages: nearly all of the time
BRIEF = [n for n in ALL if n not in LONG]


class Checks(unittest.TestCase):
    def verdicts(self, file, numbers=ALL, **env):
        p = tool.run("plugin", "check", file, "--json", "--seconds", str(tool.HANG_S // 2), *(w for n in numbers for w in ("--check", str(n))), **env)
        answer = json.loads(p.stdout)
        found = {c["number"]: c["verdict"] for c in answer["checks"] if c["number"] not in SLOW}
        self.assertEqual(sorted(c["number"] for c in answer["checks"]), sorted(numbers))
        self.assertEqual(p.returncode, int(answer["failures"] > 0), p.stderr)
        self.answer = p.stdout
        return found

    def failed(self, found):
        return [n for n, verdict in found.items() if verdict == "fails"]

    def check_alone(self, number, file, **env):
        """Of all checks, but the long ones where they are not meant, only this one fails. A sanitizer has seen the others in sound plugins."""
        numbers = [number] if tool.SANITIZE else sorted({*BRIEF, number})
        self.assertEqual(self.failed(self.verdicts(plugin(file), numbers, **env)), [number], self.answer)


class Sound(Checks):
    def test_net_plugins_of_every_version_pass(self):
        for version in tool.ends(range(6, 13)):
            with self.subTest(version=version):
                found = self.verdicts(plugin(f"net-example{version}"), ALL if version == 12 or (version == 6 and not tool.SANITIZE) else BRIEF)
                self.assertEqual(self.failed(found), [], self.answer)
                self.assertEqual([n for n in range(1, 17) if found.get(n, "ok") != "ok"], [])
                self.assertEqual({found[n] for n in range(17, 22)}, {"not applicable"})

    def test_other_plugins_of_every_version_pass(self):
        for kind, check, versions in (("tuner", 18, range(2, 7)), ("profiler", 19, range(1, 8)), ("env", 20, (1, 2))):
            for version in tool.ends(versions):
                with self.subTest(kind=kind, version=version):
                    found = self.verdicts(plugin(f"{kind}-example{version}"), EXAMPLE_ENV_FILE="/dev/null")
                    self.assertEqual(self.failed(found), [], self.answer)
                    self.assertEqual((found[1], found[check], found[4]), ("ok", "ok", "not applicable"))


class Faults(Checks):
    def test_each_fault_is_found_by_its_check_alone(self):
        for check, fault in FAULTS.items():
            with self.subTest(fault=fault):
                if check in SLOW:
                    self.skipTest("sanitizers keep freed memory")
                self.check_alone(check, "net-faulty", FAULTY_NET=fault)

    def test_more_faults_of_a_check(self):
        for check, fault in ((1, "data"), (2, "unused"), (3, "unstable"), (4, "hesitant"), (4, "contexts"), (5, "polls"), (6, "stopped"), (7, "groups"), (8, "large"),
                             (13, "registering"), (13, "turns"), (14, "receives"), (14, "half_open"), (15, "fork"), (16, "handler")):
            with self.subTest(fault=fault):
                self.check_alone(check, "net-faulty", FAULTY_NET=fault)

    def test_the_stack_of_a_call_that_does_not_return(self):
        p = tool.run("plugin", "check", plugin("net-faulty"), "--check", "4", "--seconds", "3", FAULTY_NET="stuck")
        self.assertIn("call of the plugin: connect; in ", p.stdout)
        self.assertIn("(libnccl-net-faulty.so+0x", p.stdout)


class Kinds(Checks):
    def test_networks_that_reduce(self):
        for version in range(6, 13):
            with self.subTest(version=version):
                found = self.verdicts(plugin(f"net-collnet{version}"), BRIEF)
                self.assertEqual((self.failed(found), found[17]), ([], "ok"), self.answer)
        for fault in ("sum", "support", "lost", "late", "missing"):
            with self.subTest(fault=fault):
                self.check_alone(17, "collnet-faulty", FAULTY_COLLNET=fault)

    def test_one_sided_operations(self):
        for name in ("rma-example13", "rma-example14", "rma-example15", "gin-example13"):
            with self.subTest(name=name):
                found = self.verdicts(plugin(name))
                self.assertEqual((self.failed(found), found[21]), ([], "ok"), self.answer)
        for fault in ("part", "before", "null", "full", "twice", "connect", "query"):
            with self.subTest(fault=fault):
                self.check_alone(21, "rma-faulty", FAULTY_RMA=fault)

    def test_faults_of_other_kinds(self):
        for check in range(17, 22):
            with self.subTest(check=check):
                self.check_alone(check, f"faulty{check}")
        for check, fault in ((18, "none"), (18, "nan"), (18, "slow"), (18, "unknown"), (19, "pool"), (19, "other"), (19, "slow"), (20, "threads")):
            with self.subTest(fault=fault):
                self.check_alone(check, f"faulty{check}", FAULTY_OTHER=fault)


class Command(Checks):
    def test_checks_by_number_and_name(self):
        p = tool.run("plugin", "check", plugin("env-example2"), "--check", "20", "--check", "symbols", "--json", EXAMPLE_ENV_FILE="/dev/null")
        self.assertEqual([c["number"] for c in json.loads(p.stdout)["checks"]], [1, 20])
        for word in ("0", "22", "1x", "nothing", ""):
            p = tool.run("plugin", "check", plugin("env-example2"), "--check", word)
            self.assertEqual((p.returncode, p.stdout, p.stderr.count("\n")), (2, "", 1), p.stderr)

    def test_a_missing_file(self):
        self.assertEqual(self.failed(self.verdicts("/nowhere/plugin.so")), [1])
        self.assertIn("/nowhere/plugin.so: cannot open shared object file", self.answer)

    def test_a_file_in_the_current_folder(self):
        with tempfile.TemporaryDirectory() as folder:
            for name, content in (("text.so", b"no library"), ("libnccl-env-here.so", None)):
                if content is None:
                    shutil.copy(plugin("env-example2"), os.path.join(folder, name))
                else:
                    with open(os.path.join(folder, name), "wb") as f:
                        f.write(content)
            p = tool.run("plugin", "check", "text.so", "--check", "1", cwd=folder)
            self.assertIn("./text.so cannot be opened: ./text.so: file too short", p.stdout)
            p = tool.run("plugin", "check", "libnccl-env-here.so", "--check", "1", cwd=folder)
            self.assertEqual((p.returncode, "env v2" in p.stdout), (0, True), p.stdout)

    def test_the_sources_build_with_the_command_in_their_heads(self):
        for source in ("net/tcp.c", "tuner.c", "profiler.c", "env.c"):
            with self.subTest(source=source), tempfile.TemporaryDirectory() as folder:
                subprocess.run(["cc", "-Werror=implicit-function-declaration", "-shared", "-fPIC", "-o", folder + "/plugin.so",
                                "examples/plugins/" + source], check=True)


if __name__ == "__main__":
    unittest.main()
