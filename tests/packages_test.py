#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The lists of packaging/: each installed file is in one Debian package and in the RPM package of the same meaning, and no list names a file that is not installed."""
import fnmatch
import glob
import os
import re
import subprocess
import tempfile

import tool

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
SPEC = os.path.join(ROOT, "packaging", "rpm", "kolo.spec")
GPU = "lib/libkolo-cuda.so*"  # only where nvcc is: packages are built without
PYTHON = "python3-kolocc"  # a build tree installs it only with KOLO_PYTHON_INSTALL_DIR
FOLDERS = {"_bindir": "bin", "_datadir": "share", "_includedir": "include", "_libdir": "lib", "_mandir": "share/man", "python3_sitearch": "python"}


def debian():
    """Patterns below the prefix, by package."""
    lists = {}
    for path in glob.glob(os.path.join(ROOT, "packaging", "debian", "*.install")):
        with open(path, encoding="utf-8") as file:
            words = [line.split()[0] for line in file if line.strip()]
        lists[os.path.basename(path)[: -len(".install")]] = [re.sub("^usr/", "", w).replace("lib/*/", "lib/") for w in words]
    return lists


def rpm():
    lists, name = {}, None
    with open(SPEC, encoding="utf-8") as file:
        for line in file.read().splitlines():
            if line.startswith("%files"):
                name = line.split()[-1] if "-n" in line else "kolo"
                lists[name] = []
            elif line == "%changelog":
                break
            elif name and line.startswith("%{"):
                lists[name].append(re.sub(r"%\{(\w+)\}", lambda m: FOLDERS.get(m[1], m[0]), line))
    return lists


def takes(pattern, path):
    """As dh_install and rpm do: a folder is taken with all that it has."""
    parts = path.split("/")
    return any(fnmatch.fnmatchcase("/".join(parts[:n]), pattern) for n in range(1, len(parts) + 1) if pattern.count("/") == n - 1)


class Packages(tool.Case):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        with tempfile.TemporaryDirectory() as prefix:
            done = subprocess.run(["cmake", "--install", os.environ["KOLO_BUILD"], "--prefix", prefix], capture_output=True, text=True,
                                  timeout=tool.HANG_S, check=False)
            assert done.returncode == 0, done.stderr
            cls.files = sorted(os.path.relpath(os.path.join(folder, name), prefix) for folder, folders, names in os.walk(prefix)
                               for name in [*names, *(f for f in folders if os.path.islink(os.path.join(folder, f)))])
        cls.files = [f for f in cls.files if not fnmatch.fnmatchcase(f, GPU)]

    def packages_of(self, lists, path):
        return [name for name, patterns in lists.items() if any(takes(p, path) for p in patterns)]

    def test_each_file_is_in_one_package(self):
        self.assertGreater(len(self.files), 100)
        of_debian, of_rpm = debian(), rpm()
        self.assertEqual(set(of_rpm), {name.replace("-dev", "-devel") for name in of_debian})
        for path in self.files:
            here, there = self.packages_of(of_debian, path), self.packages_of(of_rpm, path)
            self.assertEqual(len(here), 1, f"{path} is in these packages of Debian: {here}")
            self.assertEqual(there, [here[0].replace("-dev", "-devel")], f"{path} is in these packages of RPM")

    def test_each_pattern_has_a_file(self):
        for lists in debian(), rpm():
            for name, patterns in lists.items():
                idle = [p for p in patterns if not any(takes(p, f) for f in self.files)]
                if name != PYTHON:
                    self.assertEqual(idle, [], name)


if __name__ == "__main__":
    tool.main()
