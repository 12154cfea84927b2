#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""docs/validation.md describes the comparisons and their results: its tables are made here, from records, logs, tables and
published bandwidths. KOLO_RENEW=1 writes them anew, to be read before they are kept. Missing inputs are skipped."""
import glob
import json
import os
import re
import subprocess
import tempfile

import expected_fit
import published
import tool
from releases import FOLLOWED, followed

PAGE = "docs/validation.md"
BASE = os.path.dirname(tool.SHARED)
LOGS = f"{tool.SHARED}/logs"
GRAPHS = "nodes,system,paths,queries,ring_net,ring,tree,collnet,nvls,aligned,channels,rings,trees"
LIMIT = 15  # per cent of error that need no cause


def read(file):
    with open(file, encoding="utf-8") as f:
        return f.read()


def named(folder):
    return {os.path.basename(f)[:-len(".txt")]: f for f in sorted(glob.glob(f"{folder}/*.txt"))}


def table(*head):
    return [" | ".join(("",) + head + ("",)).strip(), "|" + "---|" * len(head)]


def line(*cells):
    return "| " + " | ".join(str(c) for c in cells) + " |"


class Page(tool.Case):
    def check(self, name, lines):
        """The part of the page between two marks is this."""
        text = read(PAGE)
        parts = re.fullmatch(rf"(.*<!-- {name} -->\n)(.*)(<!-- /{name} -->.*)", text, flags=re.S)
        self.assertTrue(parts, name)
        now = "".join(f"{x}\n" for x in lines)
        if os.environ.get("KOLO_RENEW"):
            with open(PAGE, "w", encoding="utf-8") as f:
                f.write(parts[1] + now + parts[3])
        else:
            self.assertEqual(now, parts[2], "KOLO_RENEW=1 writes the page anew")

    def need(self, folder):
        if not os.path.isdir(folder):
            self.skipTest(tool.NO_SHARED)


class Records(Page):
    def compared(self, folder, *options):
        with tempfile.NamedTemporaryFile("r", suffix=".json") as out:
            subprocess.run(["python3", f"{BASE}/tools/compare_golden.py", "--kolo", tool.KOLO, "--golden", folder, "--json", out.name, *options],
                           stdout=subprocess.DEVNULL, timeout=tool.HANG_S, check=False)
            return json.load(out)

    def test_records(self):
        self.need(f"{BASE}/golden")
        rows = table("release", "records", "agree in full", "bad inputs", "refused, or completed")
        for folder in sorted(glob.glob(f"{BASE}/golden*"), key=lambda f: (len(f), f)):
            release = folder.partition("golden-")[2] or FOLLOWED[0]
            files = sorted(glob.glob(f"{folder}/**/*.json", recursive=True))
            if '"is_all_nvlink"' not in read(files[0]):
                continue  # not records of plans
            early = re.search(r'"reference": *"NCCL [0-9.]+a', read(files[0]))  # its tuning differs from the release's
            got = self.compared(folder, *(("--sections", GRAPHS) if early else ()))
            bad = sum('"error"' in read(f) for f in files)
            rows.append(line(f"{release}, without tuning" if early else release, got["records"] - bad, got["whole"], bad, got["refused"]))
        self.check("records", rows)


class Gb300(Page):
    """Two trays of a GB300 NVL72, as NCCL 2.29.7 printed them: each path, the graphs, each channel count."""
    KEYS = {"GPU": "gpu", "NET": "net", "CPU": "cpu", "NVS": "nvs"}

    def setUp(self):
        self.need(LOGS)
        self.log = read(f"{LOGS}/gb300-nvl72-2tray-8gpu-2.29.7.txt")

    def plan(self, name):
        return json.loads(tool.good("graph", "--topo", f"{tool.SHARED}/derived/{name}-numhash.xml", "--nccl", "2.29.7", "--json"))

    def test_every_path(self):
        plan, compared = self.plan("gb300-nvl72-2tray-8gpu-mnnvl"), 0
        ids = {}
        for node in plan["system"]:
            ids.setdefault(node["type"], []).append(node["id"])
        for a, i, rest in re.findall(r"^(GPU|NET)/(\S+) :(.*)$", self.log, flags=re.M):
            for b, j, hops, bw, kind in re.findall(r"(GPU|NET|CPU|NVS)/(\S+) \((\d+)/([\d.]+)/(\w+)\)", rest):
                paths = plan["paths"].get(f"{self.KEYS[a]}_{self.KEYS[b]}")
                if paths is None:
                    continue  # between NICs, and from NICs to CPUs: nothing asks for these
                p = paths[ids[a].index(i)][ids[b].index(j)]
                self.assertEqual((p["type"], f"{p['bw']:.1f}", p["hops"]), (kind, bw, int(hops)), (a, i, b, j))
                compared += 1
        self.assertEqual(compared, 136)

    def test_graphs_and_channels(self):
        plan = self.plan("gb300-nvl72-2tray-8gpu-mnnvl")
        got = {k: [g[x] for x in ("pattern", "nChannels", "bwIntra", "bwInter", "typeIntra", "typeInter")]
               for k, g in plan["graphs"].items() if g}
        self.assertEqual(got, {"ring": [4, 16, 45, 45, "NVL", "PIX"], "tree": [1, 16, 45, 45, "NVL", "PIX"],
                               "nvls": [5, 8, 80, 90, "NVL", "PIX"]})
        self.assertIn("ring pattern 4 16 ch bw 45/45 NVL/PIX same 1, tree pattern 1 16 ch bw 45/45 NVL/PIX same 1, "
                      "NVLS pattern 5 8 ch bw 80/90", self.log)
        healthy, broken = re.findall(r"(\d+) coll channels, \d+ collnet channels, (\d+) nvls channels, (\d+) p2p channels, "
                                     r"(\d+) p2p channels per peer", self.log)
        for want, p in ((healthy, plan), (broken, self.plan("gb300-nvl72-2tray-rank5-no-nvlink"))):
            got = [p[k] for k in ("coll_channels", "nvls_channels", "p2p_channels", "p2p_channels_per_peer")]
            self.assertEqual(got, list(map(int, want)))
        printed = re.search(r"maxBw (\S+) totalBw (\S+)", self.log)
        self.assertEqual((f"{plan['max_bw']:.1f}", f"{plan['total_bw']:.1f}"), printed.groups())

    def test_gpudirect_and_pxn(self):
        plan = self.plan("gb300-nvl72-2tray-8gpu-mnnvl")
        lines = re.findall(r"^GPU Direct RDMA Enabled for GPU/\S+ \(rank (\d)\) - NET/(\d)-0 \((?: using PXN via GPU/(\d)-(\d+),)?", self.log,
                           flags=re.M)
        self.assertEqual(len(lines), 8)
        ids = [node["id"] for node in plan["system"] if node["type"] == "GPU"]
        for rank, net, host, busid in lines:
            self.assertEqual(plan["queries"]["gdr"][int(rank)][int(net)][0], 1, rank)
            via = ids.index(f"{host}-{int(busid):x}") if busid else int(rank)
            self.assertEqual(plan["queries"]["intermediate_rank"][int(rank)][int(net)], via, rank)


class Tunings(Page):
    """The tables of NCCL's model that logs print, cell by cell."""
    MACHINES = {
        "2xa100pcie-nvbridge-2.27.7": ("2.27.7", "--topo", f"{tool.SHARED}/real/2xa100pcie-nvbridge-fusednic.xml"),
        "2xa100pcie-nvbridge-degraded-2.27.7": ("2.27.7", "--topo", f"{tool.SHARED}/real/2xa100pcie-nvbridge-degraded-fusednic.xml"),
        "h100-6of8gpu-nvls-2.29.2": ("2.29.2", "--machine", "hgx-h100", "--gpus", "0,1,2,3,4,5"),
    }

    def cells(self, text):
        """{(collective, algorithm, protocol): (latency, bandwidth)} as printed; the first rank that prints it."""
        found, algorithms = {}, []
        for row in text.splitlines():
            head, *cells = (c.strip() for c in re.sub(r"^.*\](?: NCCL INFO)?\s", "", row).split("|"))
            if head == "Algorithm":
                algorithms = [c for c in cells if c]
            for i, cell in enumerate(cells):
                pair = re.fullmatch(r"([\d.]+)/ *([\d.]+)", cell)
                if pair and i // 3 < len(algorithms):
                    found.setdefault((head, algorithms[i // 3], ("LL", "LL128", "Simple")[i % 3]), pair.groups())
        return found

    def test_tables(self):
        self.need(LOGS)
        rows = table("log", "release", "cells", "agree")
        for name, (release, *machine) in self.MACHINES.items():
            cells = self.cells(read(f"{LOGS}/{name}.txt"))
            model = json.loads(tool.good("graph", *machine, "--nccl", release, "--json"))["tuning"]["model"]
            agree = 0
            for (collective, algorithm, protocol), (lat, bw) in cells.items():
                got = model[collective][algorithm][protocol]
                agree += abs(got["lat"] - float(lat)) <= 0.0501 and abs(got["bw"] - float(bw)) <= 0.0501
            rows.append(line(name, release, len(cells), agree))
        self.check("tuning", rows)


class Logs(Page):
    # Machines of logs that do not print theirs.
    MACHINES = {
        "aws-p4d-2node-efa-2.9.9": ("--topo", f"{tool.SHARED}/real/aws-p4d.24xlarge-a100.xml", "--hosts", "2"),
        "dgx1v-4gpu-trees-2.11": ("--topo", f"{tool.SHARED}/real/dgx1v-4xv100.xml"),
        "h100-6of8gpu-nvls-2.29.2": ("--machine", "hgx-h100", "--gpus", "0,1,2,3,4,5"),
    }
    # The kinds of differences.
    DIFFER = {
        "1gpu-single-rank-v100like": "an older release, which no line names (ids have no host): 16 channels on 1 GPU, 32 since 2.26.3 at the latest",
        "2node-1xa100pcie-gdr-on-2.16.5": "NCCL 2.16 counts 5000 GB/s between these sockets, 2.26.3 counts 16: 24 GB/s, not 15",
        "2node-2xv100-2x25g-2.26.6": "the hosts differ from each other (the log's finding); the plan is of equal ones",
        "2xa100pcie-phb-external-2.16.5": "NCCL 2.16 finds a tree of 22 GB/s, 2.26.3 one of 20",
        "aws-p4d-2node-efa-2.9.9": "NCCL 2.9 spreads channels over NICs in another order, and has 1 channel per peer where 2.26.3 has 2",
        "dgx1v-4gpu-trees-2.11": "trees of NCCL 2.11 are others than those of 2.26.3; the ring is the same",
    }
    RINGS = (("graph", "graphs"), ("channels", "channels"), ("nvls", "channels"), ("p2p", "channels"), ("per_peer", "channels"),
             ("ring", "rings"), ("tree", "trees"), ("nic", "NICs"))
    COLUMNS = ("graphs", "channels", "rings", "trees", "NICs")

    def release(self, name, printed):
        """The release in the log's name, where no line holds it."""
        said = re.search(r"-(2\.\d+(?:\.\d+)?)$", name)
        return printed[0]["version"] if printed else said[1] if said else None

    def options(self, name, o):
        release = self.release(name, o["versions"])
        return (*(("--nccl", followed(release)) if release else ()), *self.MACHINES.get(name, ()))

    def test_logs(self):
        self.need(LOGS)
        first = table("log", "first line of the answer")
        plans = table("log", "rules of", *self.COLUMNS, "difference")
        unmade = {}
        for name, file in named(LOGS).items():
            o = json.loads(tool.good("explain", "--log", file, "--json"))
            first.append(line(name, tool.good("explain", "--log", file).splitlines()[0]))
            o = json.loads(tool.good("explain", "--log", file, *self.options(name, o), "--json"))
            plan, counts = o["plan"], dict.fromkeys(self.COLUMNS, (0, 0))
            for part, column in self.RINGS if plan["made"] else ():
                same, checked = counts[column]
                counts[column] = (same + plan["parts"][part]["same"], checked + plan["parts"][part]["checked"])
            if not plan["made"] or not any(c for _, c in counts.values()):
                unmade.setdefault(plan["why"] or "nothing in it can be compared", []).append(name)
                continue
            self.assertEqual(bool(plan["differences"]), name in self.DIFFER, name)
            plans.append(line(name, plan["nccl"], *(f"{s} of {c}" if c else "" for s, c in counts.values()),
                              self.DIFFER.get(name, "none")))
        self.check("logs", first)
        self.check("plans", plans)
        self.check("unplanned", [f"- {why}: {', '.join(names)}" for why, names in sorted(unmade.items())])


class Tables(Page):
    def test_tables_of_others(self):
        self.need(f"{BASE}/bench-results")
        rows = table("file", "tables", "rows", "first line of the answer")
        for name, file in named(f"{BASE}/bench-results").items():
            p = tool.run("explain", "--bench", file, "--json")
            tables = json.loads(p.stdout)["tables"] if not p.returncode else []
            answer = tool.run("explain", "--bench", file)
            said = (answer.stdout or answer.stderr).splitlines()[0].replace(file, f"{name}.txt")
            rows.append(line(name, len(tables), sum(len(t["rows"]) for t in tables), said))
        self.check("tables", rows)


class Expected(Page):
    """The expected bandwidths, judged where they were not fitted."""
    LEAST = 0.75

    def test_halves(self):
        self.need(expected_fit.SECOND_PAGE.rpartition("/")[0])
        j = expected_fit.Judged()
        for v in j.all:  # else the fit is of another model than the library's
            self.assertAlmostEqual(expected_fit.expected_us(v, j.constants) / v.candidate["expected"]["time_us"], 1, 2, v)
        judged = [j.judged(0), j.judged(1)]
        self.assertGreaterEqual(sum(judged), self.LEAST * len(j.values))
        self.check("halves", j.table())
        counts = [expected_fit.hits(h, expected_fit.predicted_error) for h in j.halves]
        in_c = expected_fit.hits(j.values, lambda v: expected_fit.error(v, j.constants))
        self.check("judged", [
            f"Of half A, {judged[0]} of {len(j.halves[0])} values are within {LIMIT} % (predicted: {counts[0]}); of half B, {judged[1]} of "
            f"{len(j.halves[1])} ({counts[1]}); together {100 * sum(judged) / len(j.values):.0f} %",
            f"({100 * sum(counts) / len(j.values):.0f} %). By the constants of the library, which were fitted to both halves, it is {in_c}."])


class Published(Page):
    def predicted(self, row, size):
        o = json.loads(tool.good("explain", row.collective, size, *row.options, "--nccl", followed(row.ran), "--json", **row.settings))
        return o["choice"]

    def cause(self, row, size, hosts):
        keys = (f"{row.number} {hosts} {size}", f"{row.number} {hosts}", f"{row.number} {size}", row.number)
        return next((published.CAUSES[k] for k in keys if k in published.CAUSES), None)

    def rows(self, rows):
        lines, large = table("row", "machine", "hosts", "collective", "size", "rules of", "published", "predicted", "by", "error", "expected", "error", "cause"), 0
        for row in rows:
            hosts = row.options[row.options.index("--hosts") + 1]
            settings = "".join(f", {k}={v}" for k, v in row.settings.items())
            for size, want in row.measured.items():
                c = self.predicted(row, size)
                error = round(100 * (c["bus_gbs"] / want - 1))
                later = c["expected"]["bus_gbs"]
                cause = ""
                if abs(error) > LIMIT:
                    cause = self.cause(row, size, hosts)
                    self.assertTrue(cause, (row.number, size, error))
                    large += 1
                lines.append(line(row.number, row.ran_on, hosts, row.collective + settings, size, followed(row.ran), want,
                                  f"{c['bus_gbs']:.1f}", f"{c['algorithm']} {c['protocol']}", f"{error:+} %",
                                  f"{later:.1f}", f"{round(100 * (later / want - 1)):+} %", ", ".join(cause)))
        return lines, large

    def test_published(self):
        one, one_large = self.rows(published.ONE_HOST)
        several, several_large = self.rows(published.SEVERAL_HOSTS)
        self.check("one-host", one)
        self.check("several-hosts", several)
        self.check("not-predicted", table("rows", "what", "why not") + [line(*r) for r in published.NOT_PREDICTED])
        n, m = len(one) - 2, len(several) - 2
        errors = [abs(int(re.search(r"([+-]\d+) %", r)[1])) for r in one[2:] + several[2:]]
        big = [abs(int(re.search(r"([+-]\d+) %", r)[1])) for r in one[2:] + several[2:] if re.search(r"\| [1-9]\d*G \|", r)]
        self.check("errors", [
            f"Of {n + m} values, {n} on one host and {m} on several, {n + m - one_large - several_large} are predicted within {LIMIT} %, "
            f"{sum(e <= 5 for e in errors)} within 5 %. Of the {len(big)} for sizes of 1 GiB and more it is",
            f"{sum(e <= LIMIT for e in big)} and {sum(e <= 5 for e in big)}; the median error of these is {sorted(big)[len(big) // 2]} %."])

    def test_causes_are_explained(self):
        explained = re.findall(r"^- \*\*([A-Z])\*\*: ", read(PAGE), flags=re.M)
        self.assertEqual(sorted(explained), sorted(set("".join(published.CAUSES.values()))))

    def test_thresholds(self):
        rows = table("machine", "size", "at least", "predicted")
        for machine, size, least in published.THRESHOLDS:
            o = json.loads(tool.good("explain", "all_reduce", size, "--machine", machine, "--json"))
            rows.append(line(machine, size, least, f"{o['choice']['bus_gbs']:.1f}"))
        self.check("thresholds", rows)


if __name__ == "__main__":
    tool.main()
