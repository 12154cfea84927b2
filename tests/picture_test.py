#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`kolo graph --format svg|html` and `kolo explain order --format svg|html`: pictures are well-formed, complete and true to the plan. See also
picture_browser_test.py."""
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


def kept(name):
    with open(f"docs/pictures/{name}.svg", encoding="utf-8") as f:
        return f.read()


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
    """The tooltips of wires: {"GPU/0 to NVSwitch": [(GB/s, of, percent), ...]}, a list with one entry per host."""
    found = collections.defaultdict(list)
    for g in root.iter(f"{SVG}g"):
        if "wire" in g.get("class", "").split():
            for line in g.findtext(f"{SVG}title").split("\n"):
                m = re.fullmatch(r"(.*): ([\d.e+]+) of ([\d.e+]+) GB/s \((\d+) %\)", line)
                if m:
                    found[m[1]].append((float(m[2]), float(m[3]), int(m[4])))
    return found


# ---- texts and lines of a drawing, without a browser ----

SIZES = {"heading": 20, "second": 15, "sub": 13, "title": 13, "caption": 12, "label": 12, "name": 12.5, "below": 10.5, "count": 10.5}
NARROW = dict.fromkeys("ijl|'", 0.28) | dict.fromkeys(" .,:;!()[]ftr/-–", 0.38)


def shift_of(g, by):
    m = re.fullmatch(r"translate\(0 ([\d.]+)\)", g.get("transform", ""))
    return by + (float(m[1]) if m else 0)


def elements(root, by=0.0):
    """(element, shift down) of everything that can be seen."""
    for e in root:
        if e.tag in (f"{SVG}defs", f"{SVG}title", f"{SVG}style") or "none" in e.get("class", "").split():
            continue
        yield e, by
        yield from elements(e, shift_of(e, by))


def text_box(e, by):
    """About where a text is: (left, top, right, bottom)."""
    classes, text = e.get("class").split(), "".join(e.itertext())
    size = 11 if "low" in classes else 10 if "small" in classes else next(SIZES[c] for c in classes if c in SIZES)
    m = re.fullmatch(r"font-size:([\d.]+)px", e.get("style", ""))
    size = float(m[1]) if m else size
    bold = 1.06 if {"name", "title", "count", "strong", "heading", "second"} & set(classes) else 1
    width = size * bold * sum(NARROW.get(c, 0.6) for c in text)
    x, y = float(e.get("x")) - (width / 2 if {"name", "below", "count"} & set(classes) else 0), float(e.get("y")) + by
    return x, y - 0.75 * size, x + width, y + 0.2 * size


def rect_box(e, by):
    x, y, w, h = (float(e.get(k)) for k in ("x", "y", "width", "height"))
    return x, y + by, x + w, y + h + by


def meet(a, b, slack=0.5):
    return a[0] + slack < b[2] and b[0] + slack < a[2] and a[1] + slack < b[3] and b[1] + slack < a[3]


def curve(a, b, c, d, t):
    """The point of a Bezier curve."""
    return tuple((1 - t) ** 3 * p + 3 * (1 - t) ** 2 * t * q + 3 * (1 - t) * t ** 2 * r + t ** 3 * s for p, q, r, s in zip(a, b, c, d))


def pieces(d, by):
    """The pieces of path data, as boxes."""
    at, found = None, []
    for command, numbers in re.findall(r"([MLCh])([-\d. ]+)", d):
        values = [float(v) for v in numbers.split()]
        ends = [(at[0] + values[0], at[1])] if command == "h" else [(values[i], values[i + 1] + by) for i in range(0, len(values), 2)]
        if command == "C":
            ends = [curve(at, *ends, t / 20) for t in range(1, 21)]
        for end in ends:
            if command != "M":
                found.append((min(at[0], end[0]), min(at[1], end[1]), max(at[0], end[0]), max(at[1], end[1])))
            at = end
    return found


class Page(html.parser.HTMLParser):
    """The contents of an HTML file: elements in order, texts of scripts and styles, and tags that are never closed."""

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

    def check_texts(self, root, what):
        """All that is drawn is within the page, texts lie over no other texts, and no link or way runs through a label."""
        width, height = float(root.get("width")), float(root.get("height"))
        texts, lines = [], []
        for e, by in elements(root):
            if e.tag == f"{SVG}text" and e.get("class") not in ("sub", "heading"):
                texts.append((text_box(e, by), e))
            if e.tag == f"{SVG}rect" and e.get("class"):
                self.assertFalse(not 0 <= rect_box(e, by)[0] <= rect_box(e, by)[2] <= width + 0.5
                                 or not 0 <= rect_box(e, by)[1] <= rect_box(e, by)[3] <= height + 0.5, (what, ET.tostring(e)))
            if e.tag == f"{SVG}path" and e.get("class") in ("line", "leg"):
                lines += pieces(e.get("d"), by)
        for box, _ in texts + [(line, None) for line in lines]:
            self.assertTrue(0 <= box[0] and box[2] <= width and 0 <= box[1] and box[3] <= height, (what, box, width, height))
        texts.sort(key=lambda t: t[0][1])
        for i, (box, e) in enumerate(texts):
            for other, o in texts[i + 1:]:
                if other[1] >= box[3]:
                    break
                self.assertFalse(meet(box, other), f"{what}: {e.text} over {o.text}")
        for box, e in texts:
            if e.get("class") in ("label", "title", "caption", "caption low"):
                self.assertNotIn("\u2026", e.text, what)
                crossing = [line for line in lines if meet(box, line, 0)]
                self.assertEqual(crossing, [], f"{what}: crosses {e.text} at {box}")

    def test_pictures_of_the_documents_are_those_of_today(self):
        v100 = machine("dgx1v-hcm-4nic")
        self.assertEqual(good("--topo", A100, "--hosts", "2", "--format", "svg"), kept("ring"))
        self.assertEqual(good("--topo", v100, "--hosts", "4", "--graph", "tree", "--format", "svg"), kept("tree"))

    def test_all_nics_of_a_host_with_many(self):
        """32 NICs, 4 to a switch: two rows, and every name stands whole in its tile."""
        with tempfile.TemporaryDirectory() as folder:
            root = svg("--topo", many_nics(folder, 4), "--hosts", "2")
        names = collections.Counter(name for kind, _, name in boxes(root) if "nic" in kind.split())
        self.assertEqual(names, {f"NET/{i}": 2 for i in range(32)})
        rows = {y for kind, (_, y, _, _), _ in boxes(root) if "nic" in kind.split()}
        self.assertEqual(len(rows), 4)  # of two hosts, one below the other
        shown = collections.Counter(e.text for e in root.iter(f"{SVG}text") if "small" in e.get("class"))
        self.assertEqual(shown, names)
        self.check_layout(root, "many NICs")
        self.check_texts(root, "many NICs")

    def test_legend_has_the_widths_of_the_machine(self):
        for name in ("dgx1v-hcm-4nic", "h100-nvsw-8nic-400g", "gb200-4gpu-4nic"):
            root = svg("--topo", machine(name), "--hosts", "2")
            bandwidths = {m[1] for g in root.iter(f"{SVG}g") if "wire" in g.get("class", "").split()
                          for m in re.finditer(r"([\d.]+) GB/s each way", g.findtext(f"{SVG}title"))}
            texts = [e.text for e in root.iter(f"{SVG}text")]
            legend = [t.split()[0] for t in texts[texts.index("GB/s each way") + 1:] if re.match(r"[\d.]+ (PCIe|NVLink|port|between CPUs|$)", t)]
            self.assertEqual(sorted(float(v) for v in legend), sorted(float(f"{float(b):.4g}") for b in bandwidths), name)

    def test_identical_channels_are_told_once(self):
        """One ring over one NIC: all of its channels look alike, in the text as in the picture."""
        text = good("--topo", machine("a100-nvsw-1nic-100g"), "--hosts", "2", "--graph", "ring")
        lines = [line.split(": ", 1)[1] for line in text.split("\n\n")[1].splitlines()[1:]]
        self.assertEqual(len(lines), len(set(lines)))
        for name in ("a100-nvsw-1nic-100g", "a100-nvsw-8nic-200g", "h100-nvsw-8nic-400g-coll", "pcie-8gpu-0nic-l40s"):
            where = ("--topo", machine(name), "--hosts", "1" if "0nic" in name else "2")
            plan = json.loads(good(*where, "--json"))
            for g in Page(good(*where, "--format", "html")).facts()["graphs"]:
                drawn = [json.dumps([way["paths"], way["numbers"]]) for way in g["ways"]]
                self.assertEqual(len(drawn), len(set(drawn)), (name, g["name"]))
                channels = [c for way in g["ways"] for c in way["channels"]]
                self.assertEqual(sorted(channels), list(range(len(channels))), (name, g["name"]))
            self.assertGreaterEqual(plan["nchannels"], 1)

    def test_channels_of_the_plan_are_told_with_those_of_the_search(self):
        plan = json.loads(good("--topo", A100, "--hosts", "2", "--json"))
        found = plan["graphs"]["ring"]["nChannels"]
        self.assertGreater(plan["nchannels"], found)
        told = Page(good("--topo", A100, "--hosts", "2", "--format", "html")).facts()["graphs"][0]["sentence"]
        self.assertRegex(told, rf"^ring: {found} channels of .* each, duplicated to {plan['nchannels']}\b")

    def test_nics_of_a_cpu_stand_below_its_switches(self):
        """Where no cables come down from there: a tray of a GB200 is no wider than its GPUs need."""
        root = svg("--machine", "gb200-nvl72", "--hosts", "18")
        switches = [r for kind, r, _ in boxes(root) if "pci" in kind.split()]
        for kind, (x, y, w, _), name in boxes(root):
            if "nic" in kind.split():
                self.assertTrue(any(abs(x + w / 2 - s[0] - s[2] / 2) < s[2] and y > s[1] + s[3] for s in switches), name)
        self.check_layout(root, "gb200")
        self.check_texts(root, "gb200")

    def test_every_machine_can_be_drawn(self):
        shown = 0
        for f in tool.swept(tool.machines("synthetic", "random") + self.shared_machines("real", "derived", "from-public")):
            for more in (["--hosts", "2"], ["--hosts", "5", "--graph", "tree"]):
                p = self.run_tool("--topo", f, "--format", "svg", *more)
                if p.returncode:
                    self.assertEqual((p.returncode, p.stdout), (1, ""), f)
                    self.assertNotIn("kolo graph", p.stderr.split(":")[0])
                    continue
                self.check_layout(ET.fromstring(p.stdout), f)
                self.check_texts(ET.fromstring(p.stdout), f)
                shown += 1
        print(f"{shown} pictures", file=sys.stderr)
        self.assertGreater(shown, 20 if tool.SANITIZE else 100)

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


def many_nics(folder, each):
    """The A100 machine with so many cards in each switch as there are GPUs and cards of, and the ports numbered anew."""
    tree = ET.parse(A100)
    parents = [(p, n) for p in tree.iter("pci") for n in p.findall("pci") if n.find("nic") is not None]
    nets = [n.find("nic/net") for _, n in parents]
    for copy in range(1, each):
        for p, n in parents:
            more = ET.fromstring(ET.tostring(n))
            net = more.find("nic/net")
            more.set("busid", n.get("busid")[:-1] + str(copy))
            net.set("name", f"{net.get('name')}_{copy}")
            net.set("guid", hex(int(net.get("guid", "0"), 16) + 4096 * copy))
            p.append(more)
            nets.append(net)
    for dev, net in enumerate(nets):
        net.set("dev", str(dev))
    name = os.path.join(folder, "many.xml")
    tree.write(name)
    return name


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
            self.assertEqual([tag for tag, _, _ in page.script], ["style", "script", "script", "script"])
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

    def test_hosts_can_be_chosen(self):
        """The last hosts and those where a channel begins and ends are the same drawing, with texts and ways of their own."""
        for where in (("--topo", machine("h100-nvsw-8nic-400g"), "--hosts", "16"), ("--topo", machine("dgx1v-hcm-4nic"), "--hosts", "100"),
                      ("--topo", machine("gb200-4gpu-4nic"), "--hosts", "18", "--mnnvl")):
            plan = json.loads(good(*where, "--json"))
            facts = Page(good(*where, "--format", "html")).facts()
            first, last, *others = facts["views"]["list"]
            hosts = int(where[3])
            self.assertEqual(first["hosts"], list(range(len(first["hosts"]))))
            self.assertEqual(last["hosts"], list(range(hosts - len(last["hosts"]), hosts)))
            per_host = len(plan["rings"][0]) // hosts
            for view in facts["views"]["list"]:
                self.assertEqual([n.split(":")[0] for n in view["names"] if n.startswith("host")], [f"host {h}" for h in view["hosts"]])
                ranks = [int(n[4:]) for n in view["names"] if n.startswith("GPU/")]
                self.assertEqual(sorted(ranks), [h * per_host + i for h in view["hosts"] for i in range(per_host)])
                self.assertEqual((len(view["names"]), len(view["wires"])), (len(facts["boxes"]), len(facts["wires"])))
            for g, of_ways in zip(facts["graphs"], facts["views"]["of_ways"]):
                for way, view in enumerate(of_ways):
                    found = facts["views"]["list"][view]
                    if g["name"] == "ring":
                        self.assertTrue({0, hosts - 1} <= set(found["hosts"]), where)
                    if g["name"] == "tree":
                        numbers = (found["ways"][0 if len(found["ways"]) == 1 else facts["graphs"].index(g)][way] if view else g["ways"][way])["numbers"]
                        self.assertIn("root", numbers.values(), where)

    def test_few_hosts_need_no_choice(self):
        self.assertNotIn('id="hosts"', self.text)
        self.assertEqual(self.page.facts()["views"]["list"], [])

    def test_tells_which_link_is_busy_when(self):
        """A section for each graph that has one, and none where there would be too many ranks."""
        sections = [a for tag, a in self.page.elements if a.get("class") == "times"]
        self.assertEqual([(a["data-graph"], "hidden" in a) for a in sections], [("0", False), ("1", True)])
        self.assertIn("AllReduce of 256 MiB", self.page.text)
        big = Page(good("--topo", A100, "--hosts", "64", "--format", "html"))
        self.assertEqual([a for _, a in big.elements if a.get("class") == "times"], [])

    def test_captions_stay_in_place(self):
        rows = next(a for tag, a in self.page.elements if a.get("id") == "rows")
        drawing = next(a for tag, a in self.page.elements if a.get("id") == "drawing")
        self.assertEqual(float(rows["viewbox"].split()[2]), float(drawing["viewbox"].split()[0]))
        self.assertRegex(next(t for tag, _, t in self.page.script if tag == "style"), r"#rows \{ position: sticky; left: 0;")

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


# ---- the order of additions ----

H100 = machine("h100-nvsw-8nic-400g")
RING = ("allreduce", "4000", "--topo", H100, "--gpus", "0,1,2,3", "--nccl", "2.26.3", "--with", "NCCL_ALGO=ring", "--with", "NCCL_PROTO=simple")
TREE = ("allreduce", "128K", "--topo", H100, "--hosts", "2", "--type", "bfloat16", "--nccl", "2.30.7", "--with", "NCCL_ALGO=allreduce:tree")
PAT = ("reduce_scatter", "4000", "--topo", H100, "--gpus", "0", "--hosts", "6", "--nccl", "2.30.7", "--with", "NCCL_ALGO=PAT")
NVLS = ("allreduce", "64M", "--topo", H100, "--nccl", "2.30.7")
NVLS_TREE = ("allreduce", "4000", "--topo", H100, "--hosts", "4", "--nccl", "2.30.7", "--with", "NCCL_ALGO=NVLSTree")


def unordered(tree):
    """A sum of the JSON, whose operands have no order: leaves are numbers of ranks or nodes."""
    if isinstance(tree, list):
        return frozenset(map(unordered, tree))
    return tree["switch"] if isinstance(tree, dict) else tree


def of_class(root, tag, name):
    return [e for e in root.iter(tag) if name in e.get("class", "").split()]


def numbers(text):
    """"0-3, 8": {0, 1, 2, 3, 8}"""
    ends = [list(map(int, part.split("-"))) for part in text.split(", ")]
    return {n for e in ends for n in range(e[0], e[-1] + 1)}


class Order(tool.Case):
    words = ("explain", "order")

    def check_steps(self, drawing, tree, tag=""):
        """The additions give the sum of the JSON; each comes a step behind the later of its operands, and each rank sends once."""
        sums, steps, sent = {}, {}, []
        adds = of_class(drawing, f"{tag}g", "add")
        for e in adds:
            step, by, of = (int(e.get(f"data-{k}")) for k in ("step", "by", "from"))
            self.assertEqual(step, 1 + max(steps.get(by, 0), steps.get(of, 0)))
            sums[by] = frozenset((sums.get(by, by), sums.get(of, of)))
            steps[by] = step
            sent.append(of)
        end = int(of_class(drawing, f"{tag}g", "sum")[0].get("data-rank"))
        self.assertEqual(sums[end], unordered(tree))
        self.assertEqual(sorted([*sent, end]), sorted(int(e.get("data-rank")) for e in of_class(drawing, f"{tag}g", "rank")))

    def page(self, *question):
        """The figures of a page: well-formed, so that they can be read as XML."""
        text = self.good(*question, "--format", "html")
        page = Page(text)
        self.assertEqual((page.bad, page.open), ([], []))
        self.assertNotRegex(text, r"(src|href)=|https?://(?!www\.w3\.org)|@import")
        return [ET.fromstring(f) for f in re.findall(r"<figure.*?</figure>", text.replace("<br>", "<br/>"), re.S)]

    def views(self, *question):
        """(block, elements, channels, figure) of each figure."""
        for figure in self.page(*question):
            m = re.fullmatch(r"(?:block (\d+), )?elements ([-\d, ]+); channels? ([-\d, ]+)", of_class(figure, "b", "elements")[0].text)
            yield int(m[1] or 0), numbers(m[2]), numbers(m[3]), figure

    def check_page(self, *question):
        answer, shown = self.json(*question), set()
        sums = {s["id"]: s for s in answer["sums"]}
        blocks = answer.get("blocks") or [answer["ranges"]]
        for block, elements, channels, figure in self.views(*question):
            here = [r for r in blocks[block] if r["channel"] in channels and r["first"] in elements]
            self.assertEqual(elements, {i for r in here for i in range(r["first"], r["first"] + r["count"])})
            self.assertEqual(channels, {r["channel"] for r in here})
            self.assertEqual(len({r["sum"] for r in here}), 1)
            self.check_steps(figure, sums[here[0]["sum"]]["tree"])
            self.assertEqual(of_class(figure, "code", "expression")[0].text, sums[here[0]["sum"]]["text"])
            self.assertEqual(of_class(figure, "span", "arithmetic")[0].text, answer["arithmetic"]["text"])
            self.assertFalse(shown & {(block, i) for i in elements})
            shown |= {(block, i) for i in elements}
        self.assertEqual(len(shown), sum(r["count"] for b in blocks for r in b))

    def test_the_picture_of_the_document_is_that_of_today(self):
        self.assertEqual(self.good(*TREE, "--format", "svg", "--element", "4096"), kept("order"))

    def test_pages_show_the_order_of_the_json(self):
        for question in (RING, TREE, PAT, NVLS_TREE):
            with self.subTest(question):
                self.check_page(*question)

    def test_a_ring_passes_the_sum_on(self):
        """Each rank adds the sum of the one before it, as the plan's ring has them."""
        for _, _, _, figure in self.views(*RING):
            adds = of_class(figure, "g", "add")
            self.assertEqual([e.get("data-step") for e in adds], ["1", "2", "3"])
            for before, e in zip(adds, adds[1:]):
                self.assertEqual(e.get("data-from"), before.get("data-by"))

    def test_channels_with_equal_sums_may_have_other_roots(self):
        """Channels 0 and 8 have one sum, completed on other hosts."""
        ends = {min(c): of_class(f, "g", "sum")[0].get("data-rank") for _, _, c, f in self.views(*TREE)}
        ranges = {r["channel"]: r["sum"] for r in self.json(*TREE)["ranges"]}
        self.assertEqual(ranges[0], ranges[8])
        self.assertNotEqual(ends[0], ends[8])

    def test_a_document_shows_an_element(self):
        for question in (RING, TREE, NVLS_TREE):
            answer = self.json(*question)
            sums = {s["id"]: s for s in answer["sums"]}
            for r in answer["ranges"][:3]:
                last = r["first"] + r["count"] - 1
                root = ET.fromstring(self.good(*question, "--format", "svg", "--element", str(last)))
                self.check_steps(root, sums[r["sum"]]["tree"], SVG)
                self.assertEqual("".join(e.text for e in of_class(root, f"{SVG}text", "expression")), sums[r["sum"]]["text"])

    def test_a_switch_is_undefined(self):
        answer = self.json(*NVLS)
        root = ET.fromstring(self.good(*NVLS, "--format", "svg"))
        for drawing, tag in ((root, SVG), (self.page(*NVLS)[0], "")):
            self.assertEqual([e.get("data-by") for e in of_class(drawing, f"{tag}g", "undefined")], ["switch"])
            self.assertEqual((of_class(drawing, f"{tag}g", "add"), of_class(drawing, f"{tag}g", "sum")), ([], []))
            self.assertEqual(len(of_class(drawing, f"{tag}g", "rank")), answer["ranks"])
        self.assertEqual("".join(e.text for e in of_class(root, f"{SVG}text", "note")), answer["invariant"]["runs"]["text"])
        self.assertEqual(len(self.page(*NVLS)), 1)

    def test_a_page_of_elements(self):
        views = list(self.views(*TREE, "--element", "5000,3"))
        self.assertEqual([sorted(c) for _, _, c, _ in views], [[1], [0]])
        self.assertIn(5000, views[0][1])

    def test_few_ranks(self):
        one = ET.fromstring(self.good("allreduce", "4000", "--topo", H100, "--gpus", "0", "--format", "svg"))
        self.assertEqual((len(of_class(one, f"{SVG}g", "rank")), of_class(one, f"{SVG}g", "add")), (1, []))
        two = ET.fromstring(self.good("allreduce", "4000", "--topo", H100, "--gpus", "0,1", "--with", "NCCL_ALGO=ring", "--format", "svg"))
        self.check_steps(two, [0, 1], SVG)

    def test_refusals(self):
        for words, why in ((("--format", "png"), "no format"), (("--format", "svg", "--json"), "two formats"),
                           (("--format", "svg", "--lint"), "no picture"), (("--format", "html", "--element", "1000"), "0 to 999")):
            self.refused(2, why, *RING, *words)


if __name__ == "__main__":
    tool.main()
