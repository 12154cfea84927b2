# SPDX-License-Identifier: Apache-2.0
"""A live communicator follows the plan: jobs on machines of tests/data/ have the channels, rings, trees and numbers of
point-to-point channels that `kolo graph` prints, and take for each collective and size the algorithm, protocol and channels
that `kolo explain` names, with the same constants; also with the settings that change these. Jobs of several emulated hosts
follow the plan of a cluster, and send and receive through the NICs that its graphs name, or by P2P where one NVLink domain spans
the hosts. It is an error to have compared nothing, and for a setting to change nothing."""
import collections
import glob
import itertools
import json
import re
import sys
import tempfile

import matrix
import tool

COLLECTIVES = {"all_reduce": "AllReduce", "all_gather": "AllGather", "reduce_scatter": "ReduceScatter",
               "broadcast": "Broadcast", "reduce": "Reduce"}
GATHERS = ("all_gather", "reduce_scatter")  # their lines tell the bytes of one rank's part
SIZES = (512, 8 << 10, 128 << 10, 2 << 20)
EIGHT = ("a100-nvsw-8nic-200g", "a100-nvsw-8nic-broken-gpu3", "a100-rail-8nic-200g", "b200-nvsw-8nic-800g",
         "dgx1v-hcm-4nic", "dgx1v-hcm-4nic-broken-0-3", "h100-nvsw-8nic-400g", "pcie-8gpu-1cpu-2level-switch",
         "pcie-8gpu-4nic-100g")
SIXTEEN = ("dgx1v-hcm-4nic", "h100-nvsw-8nic-400g", "pcie-8gpu-4nic-100g")  # two of each, joined
PLACEMENTS = {5: (1, 5), 8: (8, 4, 2, 1), 16: (4, 16, 2, 8, 1)}  # processes, in turn; of several hosts all or one per host
CLUSTERS = (("dgx1v-hcm-4nic", 2, None), ("a100-nvsw-8nic-200g", 2, None), ("a100-rail-8nic-200g", 2, None),
            ("h100-rail-8nic-400g", 2, None),
            ("pcie-8gpu-4nic-100g", 2, None), ("h100-rail-8nic-400g", 3, 4), ("dgx1v-hcm-4nic", 4, 4),
            ("a100-nvsw-8nic-200g", 4, 2))  # machine, hosts, GPUs of each
DOMAIN = "gb200-4gpu-4nic"  # a host of an NVLink domain
REDUCING = (("a100-nvsw-8nic-200g-coll", 2, None, "allreduce:CollNetChain"), ("h100-nvsw-8nic-400g-coll", 3, 4, "CollNetDirect,Ring"),
            ("a100-nvsw-8nic-200g-coll", 2, 3, None))  # machine, hosts, GPUs of each, NCCL_ALGO


# Each on a machine, and in a collective, where it matters; after an ampersand, beside the one before it.
SETTINGS = (
    ("h100-nvsw-8nic-400g", "all_reduce", (
        "NCCL_MIN_NCHANNELS=32", "NCCL_MAX_NCHANNELS=3", "NCCL_MIN_NRINGS=30", "NCCL_MAX_NRINGS=5", "NCCL_MIN_CTAS=28",
        "NCCL_MAX_CTAS=6", "NCCL_NVLS_NCHANNELS=30", "NCCL_NVLS_ENABLE=0", "NCCL_MIN_P2P_NCHANNELS=64",
        "NCCL_MAX_P2P_NCHANNELS=2", "NCCL_WORK_ARGS_BYTES=200", "NCCL_THREAD_THRESHOLDS=1 2 4 1 2 4", "NCCL_PROTO=LL",
        "NCCL_PROTO=^Simple", "NCCL_PROTO=LL128 & NCCL_LL128_NTHREADS=160", "NCCL_ALGO=allreduce:tree",
        "NCCL_P2P_DISABLE=1", "NCCL_P2P_LEVEL=LOC")),
    ("h100-nvsw-8nic-400g", "all_gather", ("NCCL_PAT_ENABLE=1",)),
    ("dgx1v-hcm-4nic", "all_reduce", ("NCCL_NTHREADS=64",)),
    ("pcie-8gpu-4nic-100g", "all_reduce", ("NCCL_NET_OVERHEAD=500000",)),  # its two sockets are two nodes
    ("2 x dgx1v-hcm-4nic", "all_reduce", ("NCCL_NCHANNELS_PER_NET_PEER=2",)),
)


class Counted(collections.Counter):
    def compare(self, what, live, planned, where):
        self[what] += 1
        if live != planned:
            sys.exit(f"{where}: {what}: live {live}, planned {planned}")


counted = Counted()
missing = set()  # choices of the plan that host devices do not have


# ---- machines ----

class Machine:
    """Ranks on a topology file, or (None) on the host devices of this machine."""

    def __init__(self, name, file, ranks, gpus=None, setting=None, hosts=1, domains=None):
        self.name, self.file, self.ranks, self.setting, self.hosts = name, file, ranks, setting, hosts
        self.together = ranks // (domains or hosts)  # ranks that NVLink or a host joins
        self.settings = setting.split(" & ") if setting else []
        self.words = ["--topo", file] if file else ["--ranks", str(ranks)]
        if gpus:
            self.words += ["--gpus", ",".join(str(g) for g in range(gpus))]
        self.words += ["--hosts", str(hosts)] if hosts > 1 else []
        self.words += ["--constants", "host"]
        self.words += [word for one in self.settings for word in ("--with", one)]
        self.turns = itertools.cycle((ranks, hosts) if hosts > 1 else PLACEMENTS[ranks])

    def __str__(self):
        return f"{self.name} with {self.ranks} ranks" + (f" and {self.setting}" if self.setting else "")

    def planned(self):
        return json.loads(tool.good("graph", "--json", *self.words))

    def explained(self, collective, size):
        return json.loads(tool.good("explain", collective, str(size), "--json", *self.words))["candidates"]

    def live(self, collective, sizes, **settings):
        """The log of a job, and how it ended."""
        processes = next(self.turns)
        words = ["perf", collective, "--np", str(processes), "-t", str(self.ranks // processes), "-n", "1", "-w", "0",
                 "-b", str(sizes[0]), "-e", str(sizes[-1]), "-f", str(sizes[1] // sizes[0]) if len(sizes) > 1 else "2"]
        words += ["--topo", self.file] if self.file else []
        words += ["--hosts", str(self.hosts)] if self.hosts > 1 else []
        settings = {**dict(one.split("=", 1) for one in self.settings), **settings}
        with tempfile.TemporaryDirectory() as folder:
            out = tool.run(*words, NCCL_DEBUG="INFO", NCCL_DEBUG_SUBSYS="INIT,GRAPH,TUNING,NET",
                           NCCL_DEBUG_FILE=folder + "/log.%h.%p", **settings)
            log = "".join(open(f, encoding="utf-8").read() for f in sorted(glob.glob(folder + "/log.*")))
        return log, out


def joined(name, folder):
    """Two hosts of a machine in one document: twice the GPUs."""
    path = f"{folder}/{name}.xml"
    text = tool.good("topo", "--format", "xml", "--topo", tool.machine(name), "--hosts", "2", "--mnnvl")
    with open(path, "w", encoding="utf-8") as f:
        f.write(text)
    return path


# ---- properties of a communicator ----

def compare_rings(m, log, plan):
    lines = re.findall(r"Channel (\d+)/(\d+) :((?: \d+)+)$", log, re.M)
    counted.compare("channels", [int(n) for _, n, _ in lines], [plan["nchannels"]] * plan["nchannels"], m)
    for channel, _, ring in lines:
        counted.compare("ring", [int(rank) for rank in ring.split()], plan["rings"][int(channel)], f"{m}, channel {channel}")


def compare_trees(m, log, plan):
    seen = set()
    for line in re.findall(r"Trees((?: \[\d+\] [-\d/]+->\d+->-?\d+)+)$", log, re.M):
        for channel, down, rank, up in re.findall(r"\[(\d+)\] ([-\d/]+)->(\d+)->(-?\d+)", line):
            planned = next(t for t in plan["trees"][int(channel)] if t["rank"] == int(rank))
            live = {"rank": int(rank), "up": int(up), "down": [int(d) for d in down.split("/")]}
            counted.compare("tree", live, planned, f"{m}, channel {channel}")
            seen.add((int(channel), int(rank)))
    counted.compare("trees of all ranks", len(seen), plan["nchannels"] * m.ranks, m)


def compare_nvls(m, log, plan):
    """Heads, and their trees, which channels have in turn."""
    if "nvls_conn" not in plan or plan["nnodes"] == 1:
        return
    heads = re.findall(r"NVLS Head +(\d+):((?: +\d+)+)$", log, re.M)
    counted.compare("heads", [[int(rank) for rank in ranks.split()] for _, ranks in heads],
                    [[r["rank"] for r in plan["nvls_conn"] if r["ch0"]["headRank"] == h] for h in range(len(heads))], m)
    lines = re.findall(r"NVLS Trees : ([-\d/]+)->(\d+)->(-?\d+) ([-\d/]+)->\d+->(-?\d+)$", log, re.M)
    counted.compare("NVLS trees of all ranks", len(lines), m.ranks, m)
    for down0, rank, up0, down1, up1 in lines:
        planned = plan["nvls_conn"][int(rank)]
        for channel, down, up in (("ch0", down0, up0), ("ch1", down1, up1)):
            counted.compare("NVLS tree", ([int(d) for d in down.split("/")], int(up)),
                            (planned[channel]["treeDown"], planned[channel]["treeUp"]), f"{m}, rank {rank}")


def compare_counts(m, log, plan):
    lines = re.findall(r"(\d+) coll channels, (\d+) collnet channels, (\d+) nvls channels, (\d+) p2p channels, "
                       r"(\d+) p2p channels per peer", log)
    planned = (plan["nchannels"], plan["nchannels"], plan["nvls_channels"], plan["p2p_channels"],
               plan["p2p_channels_per_peer"])
    searches = len(re.findall(r" Pattern 4, ", log))  # rings: by one rank of each node
    counted.compare("searches", searches, plan["nnodes"], m)
    counted.compare("numbers of channels", [tuple(map(int, n)) for n in lines], [planned] * m.ranks, m)


def nvls_neighbours(plan, channel, rank):
    """In the heads' tree of a channel; there is none without NVLS or on one node."""
    if "nvls_conn" not in plan or channel >= plan["nvls_channels"]:
        return ()
    links = plan["nvls_conn"][rank][f"ch{channel % 2}"]
    return links["treeUp"], *links["treeDown"][1:]


def planned_nic(m, plan, rank, peer, channel, sends):
    """Of an edge between hosts: the entry of the graph for its first GPU, else the exit; a head of NVLS takes the entries of its
    channels in turn. None: the rank is in another domain of its host than the one with the printed graphs."""
    name, in_tree = "tree", ()
    if channel < plan["nchannels"]:  # NVLS may have more
        ring = plan["rings"][channel]
        tree = next(t for t in plan["trees"][channel] if t["rank"] == rank)
        name = "ring" if peer == ring[(ring.index(rank) + (1 if sends else -1)) % m.ranks] else "tree"
        in_tree = (tree["up"], *tree["down"])
    if name == "tree" and peer not in in_tree and peer in nvls_neighbours(plan, channel, rank):
        graph = plan["graphs"]["nvls"]
        own = [i for i in range(graph["nChannels"]) if graph["intra"][i][0] == rank % m.together]
        counted["edge of NVLS"] += 1
        return graph["inter"][own[channel % len(own)]][0] & 0xffffffff
    graph = plan["graphs"][name]
    of_graph = channel % min(plan["graphs"][g]["nChannels"] for g in ("ring", "tree"))  # both have as many
    if rank % m.together not in graph["intra"][of_graph]:
        return None
    last = graph["intra"][of_graph][0] != rank % m.together
    return graph["inter"][of_graph][last] & 0xffffffff  # above it stands which host of the domain


def compare_proxy(m, plan, rank, nic, proxy, message, where):
    """The rank with the sending proxy: the plan numbers the ranks of one host. For messages it names the rank; else it is the one that relays to the NIC."""
    each = m.together
    if message is None:
        relays = plan["queries"]["intermediate_rank"][rank % each]
        message = relays[[net["dev"] for net in plan["system"] if net["type"] == "NET"].index(nic)]
    planned = rank - rank % each + message
    counted.compare("sender by proxy (PXN)" if planned != rank else "sender by itself", proxy, planned, where)


def compare_nics(m, log, plan):
    """Edges of collectives: messages are compared with the answers of the plan about pairs."""
    for channel, use, a, b, way, nic, proxy in re.findall(
            r"Channel (\d+)/(\d+) : (\d+)\[\d+\] -> (\d+)\[\d+\] \[(send|receive)\] via NET/\w+/(\d+)(?:\((\d+)\)/PXN)?$",
            log, re.M):
        sends = way == "send"
        rank, peer = (int(a), int(b)) if sends else (int(b), int(a))
        where = f"{m}, channel {channel}, {a} -> {b} [{way}]"
        if use == "0":
            planned = planned_nic(m, plan, rank, peer, int(channel), sends)
            counted.compare("NIC" if planned is not None else "NIC of another domain", int(nic),
                            int(nic) if planned is None else planned, where)
            if sends and planned is not None:
                compare_proxy(m, plan, rank, int(nic), int(proxy or rank), None, where)
        else:
            of = plan["queries"]["p2p_net"][rank % m.together][(peer if sends else rank) % m.together]
            counted.compare("NIC of a message", int(nic), of[int(channel) % len(of)][0], where)
            if sends:
                compare_proxy(m, plan, rank, int(nic), int(proxy or rank), of[int(channel) % len(of)][1], where)


def compare_collnet(m, log, plan):
    """The ranks that meet in a network that reduces, and their NICs: heads of the chain of a channel, or all heads of a node."""
    used = collections.defaultdict(set)
    for channel, direct, rank, nic in re.findall(r"CollNet (\d+)/(\d) : (\d+) \[\w+\] via COLLNET/\w+/(\d+)$", log, re.M):
        name = "collnet_direct" if int(direct) else "collnet_chain"
        graph = plan["graphs"][name]
        of_graph = int(channel) % min(plan["graphs"][g]["nChannels"] for g in ("ring", "tree")) % graph["nChannels"]
        first = graph["intra"][of_graph][0] == int(rank) % m.together
        where = f"{m}, channel {channel}, head {rank} of {name}"
        counted.compare("NIC of a head", int(nic), graph["inter"][of_graph][0 if first else 1], where)
        used[name, int(channel), of_graph].add(int(rank))
    for (name, channel, of_graph), ranks in used.items():
        heads = {conn["rank"] for conn in plan["collnet_conn"] if conn["direct"]["headRank"] >= 0}
        if name == "collnet_chain":
            heads = {node * m.together + plan["graphs"][name]["intra"][of_graph][0] for node in range(plan["nnodes"])}
        counted.compare(f"heads of {name}", ranks, heads, f"{m}, channel {channel}")


def compare_hosts(m, log, plan):
    """Which transport joins ranks of different hosts."""
    each = m.ranks // m.hosts
    for a, b, via in re.findall(r"Channel \d+/\d+ : (\d+)\[\d+\] -> (\d+)\[\d+\] (?:\[\w+\] )?via (\w+(?:/MNNVL)?)", log):
        a, b = int(a), int(b)
        if a // each == b // each:
            continue
        within = a // m.together == b // m.together and plan["queries"]["p2p"][a % m.together][b % m.together][0]
        counted.compare("transport between hosts" + (" of a domain" if within else ""), via, "P2P/MNNVL" if within else "NET",
                        f"{m}, {a} -> {b}")


# ---- properties of a call ----

def channels_used(collective, ranks, size, protocol, channels):
    """Of `channels` for a whole of `size` bytes of floats: the graph specification, 12.5, for one operation."""
    def up(a, b):
        return -(-a // b)
    count = size // 4 // (ranks if collective in GATHERS else 1)
    per_byte = (2 if collective == "all_reduce" else ranks if collective in GATHERS else 1) * (4 if protocol == "LL" else 1)
    traffic = count * 4 * (per_byte // (4 if protocol == "LL" else 1))
    cell = up(up(16384, per_byte), 16) * 16
    cells = up(count * 4, cell)
    each = min(cells, up(max(16384, max(16384, traffic * (4 if protocol == "LL" else 1)) // channels), cell * per_byte))
    low = cells if channels == 1 else each
    return min(channels, 1 + up(cells - low, each))


def serves(m, collective, candidate):
    """Can host devices do it? Missing abilities fall away, as in NCCL."""
    way = (collective, candidate["algorithm"], candidate["protocol"], m.hosts > 1)
    if way not in serves.known:
        _, out = m.live(collective, [1024], NCCL_ALGO=f"{COLLECTIVES[collective]}:{way[1]}", NCCL_PROTO=way[2])
        serves.known[way] = out.returncode == 0
        if out.returncode:
            if "leave nothing that can do" not in out.stderr:
                sys.exit(f"{m}: {' '.join(way[:3])} failed:\n{out.stdout}\n{out.stderr}")
            missing.add(way)
    return serves.known[way]


serves.known = {}


def compare_call(m, collective, size, lines):
    best = next(c for c in m.explained(collective, size) if serves(m, collective, c))
    channels = channels_used(collective, m.ranks, size, best["protocol"], best["channels"])
    name = matrix.told(best["algorithm"])
    for line in lines:
        counted.compare("algorithm, protocol and channels", line, (name, best["protocol"].upper(), 0, channels - 1),
                        f"{m}, {collective} of {size} bytes")


def compare_calls(m, collective, log):
    called = collections.defaultdict(list)
    for name, size, algo, proto, low, high in re.findall(
            r"(\w+): (\d+) Bytes -> Algo (\w+) proto (\w+) channel\{Lo\.\.Hi\}=\{(\d+)\.\.(\d+)\}$", log, re.M):
        counted.compare("collective", name, COLLECTIVES[collective], m)
        called[int(size) * (m.ranks if collective in GATHERS else 1)].append((algo, proto, int(low), int(high)))
    counted.compare("sizes", len(called), len(SIZES), f"{m}, {collective}")
    for size, lines in called.items():
        compare_call(m, collective, size, lines)


# ---- the test ----

def check(m, collectives):
    plan = m.planned()
    counted.compare("ranks", m.ranks, plan["ranks_total"], m)
    for collective in collectives:
        log, out = m.live(collective, SIZES)
        if out.returncode or "Out of bounds values : 0 OK" not in out.stdout:
            sys.exit(f"{m}, {collective} failed:\n{out.stdout}\n{out.stderr}")
        compare_rings(m, log, plan)
        compare_trees(m, log, plan)
        compare_nvls(m, log, plan)
        compare_counts(m, log, plan)
        compare_nics(m, log, plan)
        compare_collnet(m, log, plan)
        compare_hosts(m, log, plan)
        compare_calls(m, collective, log)


def outcome(m, collective):
    """The changes allowed to a setting."""
    plan = m.planned()
    facts = ("nchannels", "nvls_channels", "p2p_channels", "p2p_channels_per_peer", "rings", "trees")
    choices = [m.explained(collective, size)[0] for size in SIZES]
    return [plan[fact] for fact in facts] + [[c[key] for key in ("algorithm", "protocol", "channels")] for c in choices]


def check_settings(name, collective, settings):
    for setting in settings:
        beside, _, _ = setting.rpartition(" & ")
        m, base = (Machine(name, machines[name].file, machines[name].ranks, setting=s) for s in (setting, beside))
        check(m, (collective,))
        if outcome(m, collective) == outcome(base, collective):
            sys.exit(f"{m} is as without the setting: choose a machine where it matters")
        counted["setting"] += 1


with tempfile.TemporaryDirectory() as documents:
    jobs = [Machine(name, tool.machine(name), 8) for name in EIGHT]
    jobs += [Machine("2 x " + name, joined(name, documents), 16) for name in SIXTEEN]
    jobs += [Machine("this machine", None, 8), Machine("this machine", None, 16)]
    jobs += [Machine("five of " + EIGHT[0], tool.machine(EIGHT[0]), 5, 5)]
    machines = {job.name: job for job in jobs}
    for machine, nhosts, few in CLUSTERS:
        jobs.append(Machine(f"{nhosts} hosts of {machine}", tool.machine(machine), nhosts * (few or 8), few, hosts=nhosts))
    for machine, nhosts, few, algo in REDUCING:
        jobs.append(Machine(f"{nhosts} hosts of {machine}", tool.machine(machine), nhosts * (few or 8), few, hosts=nhosts,
                            setting="NCCL_COLLNET_ENABLE=1" + (f" & NCCL_ALGO={algo}" if algo else "")))
    rack = joined(DOMAIN, documents)
    jobs.append(Machine(f"2 hosts of {DOMAIN} in a domain", tool.machine(DOMAIN), 8, hosts=2, setting="KOLO_MNNVL=1", domains=1))
    jobs.append(Machine(f"the hosts of 2 x {DOMAIN}", rack, 8, hosts=2, domains=1))
    jobs.append(Machine(f"the hosts of 2 x {DOMAIN}, twice", rack, 16, hosts=4, domains=2))
    others = itertools.cycle([c for c in COLLECTIVES if c != "all_reduce"])
    for job in jobs:  # an all-reduce on each, and two of the other collectives in turn
        check(job, ("all_reduce", next(others), next(others)))
    for where in SETTINGS:
        check_settings(*where)

if len(jobs) < 12 or not all(counted[what] for what in (
        "ring", "tree", "NVLS tree", "edge of NVLS", "numbers of channels", "algorithm, protocol and channels", "NIC",
        "NIC of a message", "NIC of a head", "heads of collnet_chain", "heads of collnet_direct", "sender by proxy (PXN)", "transport between hosts", "transport between hosts of a domain")):
    sys.exit(f"too little was compared: {dict(counted)}")
print(f"{len(jobs)} machines, {len(COLLECTIVES)} collectives, {len(SIZES)} sizes;",
      ", ".join(f"{n} x {what}" for what, n in sorted(counted.items())))
if missing:
    print("not on host devices:", "; ".join(" ".join(way[:3]) for way in sorted(missing)))
