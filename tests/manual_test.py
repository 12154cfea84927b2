#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Man pages and completion: each option of the tables is in them, and the programs that read them have no complaint."""
import glob
import json
import os
import re
import shutil
import subprocess
import unittest

import tool

MANUAL = os.path.join(os.environ["KOLO_BUILD"], "manual", "kolo")
NVCC = os.path.join(os.environ["KOLO_BUILD"], "kolo-nvcc")


def read(*path):
    with open(os.path.join(MANUAL, *path), encoding="utf-8") as file:
        return file.read()


def silent(*command, **options):
    p = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, encoding="utf-8", timeout=tool.HANG_S, check=False, **options)
    if p.returncode or p.stdout:
        raise AssertionError(f"{' '.join(command)}: exit {p.returncode}: {p.stdout}")


@unittest.skipUnless(os.path.isdir(MANUAL), "this build has no man pages")
class Manual(tool.Case):
    def setUp(self):
        super().setUp()
        self.commands = self.json("help")["commands"]

    def json(self, *words):
        return json.loads(tool.good(*words, "--json"))

    def test_the_tables_are_those_of_the_help(self):
        names = re.findall(r"^  ([a-z]+) ", tool.good("help"), re.M)
        self.assertEqual([c["name"] for c in self.commands], [n for n in names if n not in ("help", "version")])
        for command in self.commands:
            helped = tool.good(command["name"], "--help")
            self.assertTrue(helped.startswith(command["about"]) and helped.endswith(command["notes"]), command["name"])
            listed = re.findall(r"^  (?:-(.),?|   ) (?:--([a-zA-Z_-]+))?", helped[len(command["about"]):], re.M)
            listed = [forms for forms in listed if any(forms)]  # other lines go on with a description
            self.assertEqual([(o.get("letter", ""), o.get("name", "")) for o in command["options"]], listed, command["name"])

    def test_each_option_is_in_the_page_and_in_the_completion(self):
        bash, zsh = read("bash-completion/completions/kolo"), read("zsh/site-functions/_kolo")
        fish = read("fish/vendor_completions.d/kolo.fish")
        for command in self.commands:
            name = command["name"]
            page = read(f"man/man1/kolo-{name}.1").replace("\\-", "-")
            in_bash = re.search(rf"^    {name}\)\n(.*?)^        ;;", bash, re.M | re.S).group(1)
            in_zsh = re.search(rf"^    {name}\)\n(.*?)^        ;;", zsh, re.M | re.S).group(1)
            for option in command["options"]:
                forms = [d + option[k] for d, k in (("-", "letter"), ("--", "name")) if k in option]
                entry = ", ".join(f"\\fB{form}\\fR" for form in forms)
                self.assertIn(f".TP\n{entry}", page, name)
                for form in forms:
                    self.assertRegex(in_bash, rf"[' ]{form}[' ]", name)
                    self.assertRegex(in_zsh, rf"'(\*|\([^)]*\))?{form}[=+]?\[", name)
                words = "".join(f" {'-l' if len(form) > 2 else '-s'} {form.lstrip('-')}" for form in forms)
                self.assertIn(f"'__fish_seen_subcommand_from {name}'{words} ", fish)
            for word in command.get("operands", ()):
                self.assertIn(word, in_bash)
                self.assertIn(word, in_zsh)

    @unittest.skipUnless(os.path.exists(NVCC), "this build has no kolo-nvcc")
    def test_each_option_of_kolo_nvcc(self):
        listed = subprocess.run([NVCC, "--list-options"], stdout=subprocess.PIPE, encoding="utf-8", check=True).stdout.splitlines()
        self.assertGreater(len(listed), 60)
        page, bash = read("man/man1/kolo-nvcc.1").replace("\\-", "-"), read("bash-completion/completions/kolo-nvcc")
        for line in listed:
            names, value, effect = line.split("\t")
            self.assertIn(value, ("value", "none"))
            for name in names.split():
                self.assertIn(f"\\fB{name}\\fR", page)
                self.assertEqual(re.search(rf"[' ]{name}[' ]", bash) is not None, effect != "refused", name)

    def test_pages_are_clean(self):
        pages = sorted(glob.glob(os.path.join(os.path.dirname(MANUAL), "*/man/man1/*.1")))
        self.assertIn(os.path.join(MANUAL, "man/man1/kolo-explain.1"), pages)
        checkers = [words for words in (("mandoc", "-T", "lint", "-W", "style"), ("groff", "-man", "-ww", "-Tutf8", "-z")) if shutil.which(words[0])]
        if not checkers:
            self.skipTest("neither mandoc nor groff is installed")
        for words in checkers:
            for page in pages:
                silent(*words, page)

    def test_shells_accept_the_completion(self):
        tried = 0
        for shell, places in (("bash", "bash-completion/completions/*"), ("zsh", "zsh/site-functions/*"), ("fish", "fish/vendor_completions.d/*")):
            if shutil.which(shell):
                tried += 1
                for file in glob.glob(os.path.join(MANUAL, places)):
                    silent(shell, "-n", file)
        if not tried:
            self.skipTest("neither bash, zsh nor fish is installed")

    @unittest.skipUnless(shutil.which("bash"), "bash is not installed")
    def test_bash_completes(self):
        script = ('. "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _kolo; printf "%s\\n" "${COMPREPLY[@]}"')

        def complete(*words):
            path = os.environ["KOLO_BUILD"] + ":" + os.environ["PATH"]
            p = subprocess.run(["bash", "-c", script, "bash", os.path.join(MANUAL, "bash-completion/completions/kolo"), *words], encoding="utf-8",
                               stdout=subprocess.PIPE, env={**os.environ, "PATH": path}, check=True)
            return p.stdout.split()

        self.assertEqual(complete("kolo", "exp"), ["explain"])
        self.assertEqual(complete("kolo", "explain", "--mach"), ["--machine"])
        self.assertEqual(complete("kolo", "explain", "all_r"), ["all_reduce"])
        self.assertEqual(complete("kolo", "topo", "--format", "j"), ["json"])
        self.assertEqual(complete("kolo", "topo", "--machine", "dgx-h1"), ["dgx-h100"])
        self.assertEqual(complete("kolo", "help", "tu"), ["tune"])


if __name__ == "__main__":
    tool.main()
