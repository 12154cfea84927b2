#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`kolo graph --format svg|html`: pictures are well-formed, complete and true to the plan. See also picture_browser_test.py."""
import collections
import html.parser
import json
import os
import re
import sys
import tempfile
import xml.etree.ElementTree as ET

import tool
from tool import machine

SVG = "{http://www.w3.org/2000/svg}"
A100 = machine("a100-nvsw-8nic-200g")


def good(*args, **env):
    return tool.good("graph", *args, **env)


def svg(*args, **env):
    return ET.fromstring(good("--format", "svg", *args, **env))


def boxes(root):
    """(class, (x, y, width, height), name) of everything with a tile or bar."""
    found = []
    for g in root.iter(f"{SVG}g"):
        if "box" in g.get("class", "").split():
            r = g.find(f"{SVG}rect")
            found.append((g.get("class"), tuple(float(r.get(k)) for k in ("x", "y", "width", "height")),
                          g.findtext(f"{SVG}title").split("\n")[0]))
    return found


def count(root, kind):
    return sum(kind in c.split() for c, _, _ in boxes(root))


def loads(root):
    """What the tooltips of wires say: {"GPU/0 to NVSwitch": [(GB/s, of, percent), ...]}, a list with one entry per host."""
    found = collections.defaultdict(list)
    for g in root.iter(f"{SVG}g"):
        if "wire" in g.get("class", "").split():
            for line in g.findtext(f"{SVG}title").split("\n"):
                m = re.fullmatch(r"(.*): ([\d.e+]+) of ([\d.e+]+) GB/s \((\d+) %\)", line)
                if m:
                    found[m[1]].append((float(m[2]), float(m[3]), int(m[4])))
    return found


class Page(html.parser.HTMLParser):
    """What is in an HTML file: elements in order, texts of scripts and styles, and tags that are never closed."""

    VOID = {"meta", "input", "link", "br"}

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.elements, self.open, self.script, self.text, self.bad = [], [], [], "", []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        if tag in ("script", "style"):
            self.script.append([tag, dict(attrs), ""])
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        if not self.open or self.open[-1] != tag:
            self.bad.append((tag, self.getpos()))
        else:
            self.open.pop()

    def handle_data(self, data):
        if self.open and self.open[-1] in ("script", "style"):
            self.script[-1][2] += data
        else:
            self.text += data

    def facts(self):
        return json.loads(next(t for tag, a, t in self.script if a.get("id") == "facts"))


class Svg(tool.Case):
    words = ("graph",)

    def check_layout(self, root, what):
        width, height = float(root.get("width")), float(root.get("height"))
        found = boxes(root)
        for i, (kind, (x, y, w, h), name) in enumerate(found):
            self.assertTrue(0 <= x and x + w <= width and 0 <= y and y + h <= height, (what, kind, name))
            for _, (x2, y2, w2, h2), other in found[:i]:
                apart = x + w <= x2 or x2 + w2 <= x or y + h <= y2 or y2 + h2 <= y
                self.assertTrue(apart, f"{what}: {name} lies over {other}")

    def test_every_machine_can_be_drawn(self):
        shown = 0
        for f in tool.machines("synthetic", "random") + self.shared_machines("real", "derived", "from-public"):
            for more in (["--hosts", "2"], ["--hosts", "5", "--graph", "tree"]):
                p = self.run_tool("--topo", f, "--format", "svg", *more)
                if p.returncode:
                    self.assertEqual((p.returncode, p.stdout), (1, ""), f)
                    self.assertNotIn("kolo graph", p.stderr.split(":")[0])
                    continue
                self.check_layout(ET.fromstring(p.stdout), f)
                shown += 1
        print(f"{shown} pictures", file=sys.stderr)
        self.assertGreater(shown, 100)

    def test_gpus_and_nics_once_per_host(self):
        for f, hosts, gpus, nics, env in (
            (A100, 1, 8, 8, {}),
            (A100, 2, 16, 16, {}),
            (machine("dgx1v-hcm-4nic"), 1, 8, 4, {}),
            (machine("dgx1v-hcm-4nic"), 2048, 32, 16, {}),
            (machine("power9-6gpu-2nic"), 3, 18, 6, {}),
            (machine("single-gpu-1nic"), 1, 1, 1, {}),
            (machine("gb200-4gpu-4nic"), 2, 8, 8, {"KOLO_MNNVL": "1"}),
            (machine("gb200-4gpu-0nic"), 144, 16, 0, {"KOLO_MNNVL": "1"}),
        ):
            root = svg("--topo", f, "--hosts", str(hosts), **env)
            names = [n for c, _, n in boxes(root) if "gpu" in c.split()]
            self.assertEqual((count(root, "gpu"), count(root, "nic")), (gpus, nics), (f, hosts))
            self.assertEqual(sorted(names, key=lambda n: int(n[4:])), [f"GPU/{i}" for i in range(gpus)])

    def more(self, root):
        """How much the boxes stand for that are not drawn."""
        return [int(name.split()[0]) for kind, _, name in boxes(root) if "more" in kind.split()]

    def test_what_is_not_drawn_is_said(self):
        self.assertEqual(self.more(svg("--topo", machine("dgx1v-hcm-4nic"), "--hosts", "2048")), [2044])
        root = svg("--ranks", "64")
        self.assertEqual((self.more(root), count(root, "gpu")), ([48], 16))
        where = ("--topo", machine("dgx1v-hcm-4nic"), "--hosts", "2", "--channel")
        self.assertEqual(self.numbers(svg(*where, "5")), self.numbers(svg(*where, "1")))  # which runs the same way

    def test_title(self):
        for args in (("--topo", A100, "--hosts", "2"), ("--topo", machine("dgx1v-hcm-0nic")),
                     ("--topo", machine("gb200-4gpu-4nic"), "--hosts", "18", "--mnnvl")):
            title = svg(*args).findtext(f"{SVG}title")
            self.assertTrue(title)
            self.assertIn(title, Page(good("--format", "html", *args)).text)

    def test_loads_are_those_of_the_plan(self):
        plan = json.loads(good("--topo", A100, "--hosts", "2", "--json"))["graphs"]["ring"]
        facts = Page(good("--topo", A100, "--hosts", "2", "--format", "html")).facts()
        used = {(w["from"], w["to"]): facts["graphs"][0]["used"].get(str(w["link"]), 0) for wire in facts["wires"] for w in wire["ways"]}
        for gpu in range(8):
            out = sum(channel[-1] != gpu for channel in plan["intra"]) * plan["bwIntra"]
            into = sum(channel[0] != gpu for channel in plan["intra"]) * plan["bwIntra"]
            self.assertAlmostEqual(used[f"GPU/{gpu}", "NVSwitch"], out, 2)
            self.assertAlmostEqual(used["NVSwitch", f"GPU/{gpu}"], into, 2)
        for net in range(8):
            ends = [channel[1] for channel in plan["inter"]].count(net)
            self.assertEqual(used[f"NET/{net}", "network"], ends * plan["bwInter"])
        for wire in facts["wires"]:
            for w in wire["ways"]:
                self.assertLessEqual(facts["graphs"][0]["used"].get(str(w["link"]), 0), w["bw"] + 0.1, w)

    def test_colours_are_steps_of_the_load(self):
        root = svg("--topo", machine("a100-nvsw-8nic-broken-gpu3"), "--hosts", "2")
        seen = set()
        for g in root.iter(f"{SVG}g"):
            m = re.fullmatch(r"wire s(\d)", g.get("class", ""))
            percents = [int(p) for p in re.findall(r"\((\d+) %\)", g.findtext(f"{SVG}title") or "")]
            if m and percents:
                seen.add(int(m[1]))
                self.assertEqual(int(m[1]), -(-max(percents) // 25), g.findtext(f"{SVG}title"))
        self.assertTrue({0, 2, 3, 4} <= seen, seen)

    def numbers(self, root):
        found = {}
        for g in root.iter(f"{SVG}g"):
            if "gpu" in g.get("class", "").split():
                found[g.findtext(f"{SVG}title").split("\n")[0]] = "".join(g.find(f"{SVG}g").find(f"{SVG}text").itertext())
        return found

    def test_numbers_are_the_order_of_the_ring(self):
        for channel in (0, 5):
            plan = json.loads(good("--topo", A100, "--hosts", "2", "--json"))
            ring = plan["rings"][channel]
            first = ring.index(plan["graphs"]["ring"]["intra"][channel][0])
            ring = ring[first:] + ring[:first]
            root = svg("--topo", A100, "--hosts", "2", "--channel", str(channel))
            self.assertEqual(self.numbers(root), {f"GPU/{r}": str(i + 1) for i, r in enumerate(ring)})
            legs = [p for p in root.iter(f"{SVG}path") if p.get("class") == "leg"]
            self.assertEqual(len(legs), 16 + 1)  # and the one of the legend

    def test_numbers_of_a_tree_are_distances_from_the_root(self):
        tree = json.loads(good("--topo", A100, "--hosts", "2", "--json"))["trees"][1]
        up = {t["rank"]: t["up"] for t in tree}

        def depth(rank):
            return 0 if up[rank] < 0 else 1 + depth(up[rank])

        want = {f"GPU/{r}": str(depth(r) or "root") for r in up}
        self.assertEqual(self.numbers(svg("--topo", A100, "--hosts", "2", "--graph", "tree", "--channel", "1")), want)

    def test_twice_the_same(self):
        for form in ("svg", "html"):
            self.assertEqual(*(good("--topo", A100, "--hosts", "2", "--format", form) for _ in range(2)))

    def test_usage(self):
        for args, want in ((("--format", "png"), "text, json, xml, svg or html"), (("--channel", "1"), "--channel"),
                           (("--json", "--channel", "1"), "--channel"), (("--format", "svg", "--channel", "x"), "channel")):
            self.refused(2, want, *args)
        for args in (("--channel", "60"), ("--graph", "collnet")):
            self.refused(1, "channel 60|no such graph", "--topo", A100, "--format", "svg", *args)
        self.assertIn("svg (a picture) or html", good("--help"))


EVIL = "</script><script>alert(1)</script><b>&amp;\"'"


def evil_machine(folder):
    """A file with a hostile name, and a NIC with one inside."""
    name = os.path.join(folder, "a<b>&\"'\xff\x01.xml".encode("latin-1").decode("utf-8", "surrogateescape"))
    with open(A100, encoding="utf-8") as f:
        text = f.read().replace("mlx5_0", EVIL.replace("&", "&amp;").replace("<", "&lt;").replace('"', "&quot;"))
    with open(name, "w", encoding="utf-8") as f:
        f.write(text)
    return name


class Escapes(tool.Case):
    def test_texts_of_files_stay_texts(self):
        with tempfile.TemporaryDirectory() as folder:
            f = evil_machine(folder)
            root = svg("--topo", f, "--hosts", "2")
            self.assertEqual({e.tag.replace(SVG, "") for e in root.iter()} & {"script", "b"}, set())
            self.assertTrue(any(EVIL in (t.text or "") for t in root.iter(f"{SVG}title")))
            self.assertTrue(any("a<b>&\"'??.xml" in (t.text or "") for t in root.iter(f"{SVG}text")))
            page = Page(good("--topo", f, "--hosts", "2", "--format", "html"))
            self.assertEqual([a for _, a in page.elements if any(k.startswith("on") for k in a)], [])
            self.assertEqual([tag for tag, _, _ in page.script], ["style", "script", "script"])
            self.assertNotIn("b", [tag for tag, _ in page.elements])
            self.assertTrue(any(EVIL in b for b in page.facts()["boxes"]))
            self.assertNotRegex(page.script[1][2], "[<>&]")


class Html(tool.Case):
    def setUp(self):
        self.text = good("--topo", A100, "--hosts", "2", "--format", "html")
        self.page = Page(self.text)

    def test_is_whole_and_stands_alone(self):
        self.assertEqual((self.page.bad, self.page.open), ([], []))
        self.assertNotRegex(self.text, r"(src|href)\s*=|@import|url\((?!#)|fetch\(|XMLHttp")
        for address in re.findall(r"https?://[^\"' )]*", self.text):
            self.assertEqual(address, "http://www.w3.org/2000/svg")

    def test_has_all_graphs_and_channels(self):
        facts = self.page.facts()
        plan = json.loads(good("--topo", A100, "--hosts", "2", "--json"))
        self.assertEqual([g["name"] for g in facts["graphs"]], ["ring", "tree"])
        channels = [c for w in facts["graphs"][0]["ways"] for c in w["channels"]]
        self.assertEqual(sorted(channels), list(range(plan["nchannels"])))
        for g in facts["graphs"]:
            for way in g["ways"]:
                self.assertTrue(way["paths"] and way["uses"] and len(way["numbers"]) == 16)

    def test_says_the_same_as_the_svg(self):
        facts = self.page.facts()
        used = facts["graphs"][0]["used"]
        found = loads(svg("--topo", A100, "--hosts", "2"))
        for wire in facts["wires"]:
            for way in wire["ways"]:
                if way["bw"]:
                    values = [v[0] for v in found[f"{way['from']} to {way['to']}"]]
                    self.assertTrue(any(abs(v - used.get(str(way["link"]), 0)) < 0.01 for v in values), way)

    def test_can_be_used_without_seeing_or_pointing(self):
        items = [a for tag, a in self.page.elements if tag == "g" and {"box", "wire"} & set(a.get("class", "").split())]
        self.assertGreater(len(items), 100)
        for a in items:
            self.assertEqual((a.get("role"), a.get("tabindex")), ("img", "-1"))
            self.assertTrue(a["aria-label"])
        drawing = next(a for tag, a in self.page.elements if a.get("id") == "drawing")
        self.assertTrue(drawing["aria-label"] and drawing["aria-describedby"] == "hint")
        for tag, a in self.page.elements:
            if tag == "button":
                self.assertTrue(a.get("aria-label") or a["id"] == "theme")
        style = next(t for tag, _, t in self.page.script if tag == "style")
        self.assertIn("focus-visible", style)
        self.assertIn("prefers-color-scheme: dark", style)


if __name__ == "__main__":
    tool.main()
