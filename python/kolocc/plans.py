# SPDX-License-Identifier: Apache-2.0
"""Plans for machines and clusters, and answers about them, through libkoloplan: frozen dataclasses over the tool's JSON.

Every function takes the same description of a cluster:

    machine    a bundled machine ("dgx-h100"; machines() lists them), or with topo: the machine that the file describes
    topo       path of a topology file (NCCL's XML); or bytes, its content, or that of `nvidia-smi topo -m`
    hosts      identical hosts, joined by the network; default: 1, or those of the file
    nccl       release of NCCL to follow, "2.29.7"; default: KOLO_NCCL_VERSION, or the newest
    constants  of the tuning model: "reference" (NCCL's, the default) or "host" (for CPUs)
    gpus       ordinals of the GPUs to use of each host
    ranks      CPU devices of this machine where it has no GPUs
    mnnvl      all hosts form one NVLink domain
    settings   as if the environment had them: {"NCCL_ALGO": "Ring"}
    without, without_link   nodes ("NET/3") and NVLinks ("GPU/0-GPU/1") to leave out

Without machine and topo it is this machine. Units: GB/s (1e9 bytes per second), microseconds, bytes. Errors: InvalidArgument
(ValueError) for arguments that are not understood, InvalidUsage for those that do not fit, InternalError for a malformed text, SystemError_ (OSError)
for a file that cannot be read. Functions release the GIL and may be called from any thread.
"""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from . import _plan

JSON = dict[str, Any]
Topo = str | os.PathLike[str] | bytes

__all__ = [
    "Diff", "Estimate", "Explanation", "LogAnswer", "LogFinding", "Machine", "NicTraffic", "Order", "OrderLint", "OrderRange", "OrderRemark",
    "OrderSetting", "OrderVerdict", "Plan", "Topology", "Traffic", "Tuning", "diff", "estimate", "explain", "explain_bench", "explain_log", "machines",
    "plan", "topo",
]


def _open(
    machine: str | None,
    topo: Topo | None = None,
    *,
    hosts: int = 0,
    nccl: str | None = None,
    constants: str | None = None,
    gpus: Iterable[int] | None = None,
    ranks: int = 0,
    mnnvl: bool = False,
    settings: Mapping[str, str] | None = None,
    without: Iterable[str] = (),
    without_link: Iterable[str] = (),
) -> _plan.Cluster:
    text = bytes(topo) if isinstance(topo, (bytes, bytearray)) else None
    return _plan.Cluster(
        topo=None if topo is None or text is not None else os.fspath(topo),  # type: ignore[arg-type]
        machine=machine,
        text=text,
        nccl=nccl,
        constants=constants,
        gpus=None if gpus is None else ",".join(map(str, gpus)),
        hosts=hosts,
        ranks=ranks,
        mnnvl=mnnvl,
        with_=tuple(f"{name}={value}" for name, value in (settings or {}).items()),
        without=tuple(without),
        without_link=tuple(without_link),
    )


@dataclasses.dataclass(frozen=True)
class Answer:
    """An answer: its JSON, which the tool prints with --json as well."""

    text: str = dataclasses.field(repr=False)

    def to_dict(self) -> JSON:
        """The answer's JSON as a dictionary; its key "schema" is the kind and the version."""
        value = json.loads(self.text)
        assert isinstance(value, dict)
        return value


@dataclasses.dataclass(frozen=True)
class Machine:
    """A bundled machine. gpus: of a tray; nics: ports; gbps: of each (Gbit/s); certainty and source: how its layout is known."""

    name: str
    title: str
    gpu: str
    gpus: int
    sm: int
    trays: int
    nics: int
    gbps: int
    certainty: str
    source: str


@dataclasses.dataclass(frozen=True)
class Graph:
    """The channels of one kind that the search found, as rank 0 sees them. bw_intra, bw_inter: GB/s of each channel."""

    channels: int
    bw_intra: float
    bw_inter: float
    type_intra: str
    type_inter: str


@dataclasses.dataclass(frozen=True)
class Estimate:
    """The predicted time of a collective. bytes: of the whole, as nccl-tests count; time_us and bus_gbs: None where nothing is chosen."""

    bytes: int
    algorithm: str | None
    protocol: str | None
    channels: int | None
    threads: int | None
    time_us: float | None
    bus_gbs: float | None


ByProtocol = dict[str, dict[str, dict[str, float]]]


@dataclasses.dataclass(frozen=True)
class Tuning:
    """The tuning of a plan as tables, of the shape of ncclQueryCollTuning.

    bandwidths (GB/s of the algorithm) and latencies (us) by function, algorithm, protocol: bandwidths["AllReduce"]["Ring"]["LL"], 0: it is off.
    best_by_size: for each function the choice for each of message_sizes (bytes), whose fields are None where nothing is chosen.
    """

    nranks: int
    nnodes: int
    nchannels: int
    functions: tuple[str, ...]
    algorithms: tuple[str, ...]
    protocols: tuple[str, ...]
    bandwidths: ByProtocol
    latencies: ByProtocol
    message_sizes: tuple[int, ...]
    best_by_size: dict[str, tuple[Estimate, ...]]


@dataclasses.dataclass(frozen=True)
class Topology(Answer):
    """A machine as a graph. max_bw, total_bw: GB/s, of the widest path and of the widest device."""

    name: str
    max_bw: float
    total_bw: float
    warnings: tuple[str, ...]


@dataclasses.dataclass(frozen=True)
class Plan(Answer):
    """The plan for a cluster. rings: for each channel the ranks in order. graphs: by kind (ring, tree ...)."""

    topology: str
    nccl: str
    hosts: int
    gpus_per_host: int
    ranks: int
    channels: int
    p2p_channels: int
    graphs: dict[str, Graph]
    rings: tuple[tuple[int, ...], ...]
    warnings: tuple[str, ...]
    _cluster: _plan.Cluster = dataclasses.field(repr=False, compare=False)

    def estimate(self, collective: str, bytes: int | Sequence[int] = (), *, dtype: str | None = None, op: str | None = None) -> Any:
        """The predicted time of a collective: an Estimate for one size, a list of them for a sequence of sizes.

        collective: "all_reduce", "all_gather", "reduce_scatter", "broadcast", "reduce" or "barrier" (without sizes). Raises
        InvalidUsage for those made of sends and receives, for which the model has no times.
        """
        return _estimates(self._cluster, collective, bytes, dtype, op)

    def tuning(self) -> Tuning:
        """The bandwidths and latencies of the model, and the choice for each size from 1 byte to 1 GiB, in powers of two."""
        o = self.to_dict()
        model = o["tuning"]["model"]
        functions = tuple(model)
        algorithms = tuple(next(iter(model.values())))
        sizes = tuple(1 << i for i in range(31))
        return Tuning(
            nranks=self.ranks,
            nnodes=o["nnodes"],
            nchannels=self.channels,
            functions=functions,
            algorithms=algorithms,
            protocols=tuple(next(iter(model.values()))[algorithms[0]]),
            bandwidths=_model(model, "bw"),
            latencies=_model(model, "lat"),
            message_sizes=sizes,
            best_by_size={f: tuple(_estimates(self._cluster, f, sizes, None, None)) for f in functions},
        )

    def explain(self, question: str, *args: str, **options: Any) -> Explanation:
        """As kolocc.explain, about this plan's cluster."""
        return _explain(self._cluster, question, args, **options)

    def diff(self, other: Plan) -> Diff:
        """The differences from this plan to another."""
        return _diff(self._cluster, other._cluster)


@dataclasses.dataclass(frozen=True)
class Explanation(Answer):
    """The answer to a question. schema: "kolo.pair/1"; summary: its first sentence, "" for kinds that have none."""

    schema: str
    summary: str


@dataclasses.dataclass(frozen=True)
class OrderRange:
    """Consecutive elements with one sum: an index of Order.sums. block: of a reduce_scatter, the rank that gets it; else 0."""

    block: int
    first: int
    count: int
    channel: int
    sum: int


@dataclasses.dataclass(frozen=True)
class OrderVerdict:
    """Is the order the same there? verdict: "yes", "no" or "unknown"; element: the first that differs, or None."""

    verdict: str
    code: str
    text: str
    element: int | None


@dataclasses.dataclass(frozen=True)
class OrderSetting:
    """A setting with which the order is the same at all counts. cost_percent: an estimate, or None."""

    set: str
    verdict: str
    cost_percent: float | None
    text: str


@dataclasses.dataclass(frozen=True)
class OrderRemark:
    """A setting in force that does not fix the order, or rounds."""

    code: str
    text: str


@dataclasses.dataclass(frozen=True)
class OrderLint(Explanation):
    """Remarks on the settings in force."""

    lints: tuple[OrderRemark, ...]


@dataclasses.dataclass(frozen=True)
class Order(OrderLint):
    """The order in which contributions are added.

    sums: expressions of ranks; ranges: which elements have them; invariant: by scope ("ranks", "runs", "counts", "in_place" ...);
    equal: with vs, has each element the same sum there? None: not asked, or not known.
    """

    algorithm: str
    protocol: str
    channels: int
    rounding: str
    sums: tuple[str, ...]
    ranges: tuple[OrderRange, ...]
    invariant: dict[str, OrderVerdict]
    cheapest: tuple[OrderSetting, ...]
    equal: bool | None


@dataclasses.dataclass(frozen=True)
class NicTraffic:
    """Bytes on the wire through a NIC. us: time of its busier direction."""

    host: int
    net: int
    gbs: float
    us: float
    idle: bool
    bytes_out: int
    bytes_in: int


@dataclasses.dataclass(frozen=True)
class Traffic(Explanation):
    """The bytes of an operation on the wire. nics: of all hosts. across_pods, best_order: None without pods; the latter has the host for
    each place that crosses pods least."""

    algorithm: str
    protocol: str
    payload_bytes: int
    wire_bytes: int
    across_hosts: int
    across_rails: int
    across_pods: int | None
    best_order: tuple[int, ...] | None
    nics: tuple[NicTraffic, ...]


@dataclasses.dataclass(frozen=True)
class Diff(Answer):
    """The differences of two plans. changes: is there any consequence; cause and effect: sentences."""

    changes: bool
    cause: str
    effect: str


@dataclasses.dataclass(frozen=True)
class LogFinding:
    """A finding about a log. weight: how bad; remedy: advice, or None; file and line: its place, or None."""

    code: str
    weight: str
    text: str
    remedy: str | None
    times: int
    file: str | None
    line: int | None


@dataclasses.dataclass(frozen=True)
class LogAnswer(Answer):
    """The answer about logs of NCCL. problem: is the worst finding a problem; findings: worst first; versions: releases of NCCL."""

    problem: bool
    lines: int
    versions: tuple[str, ...]
    findings: tuple[LogFinding, ...]


def machines() -> list[Machine]:
    """The bundled machines."""
    return [Machine(**m) for m in json.loads(_plan.machines())["machines"]]


def topo(machine: str | None = None, topo: Topo | None = None, **cluster: Any) -> Topology:
    """The machine as a graph of nodes, links and paths; with hosts: the system of rank 0, as a plan uses it."""
    text = _open(machine, topo, **cluster).topo()
    o = json.loads(text)
    return Topology(text, o["topology"], o["max_bw"], o["total_bw"], tuple(o["warnings"]))


def _model(model: JSON, key: str) -> ByProtocol:
    return {f: {a: {p: float(v[key]) for p, v in protocols.items()} for a, protocols in algorithms.items()} for f, algorithms in model.items()}


def _graph(o: JSON) -> Graph:
    return Graph(o["nChannels"], o["bwIntra"], o["bwInter"], o["typeIntra"], o["typeInter"])


def plan(machine: str | None = None, topo: Topo | None = None, *, graph: str | None = None, **cluster: Any) -> Plan:
    """Plan for a cluster: graphs, rings, trees, channels and tuning. graph: only "ring", "tree", "collnet" or "nvls".

    The JSON is that of `kolo graph --json`.
    """
    opened = _open(machine, topo, **cluster)
    text = opened.graph(graph)
    o = json.loads(text)
    return Plan(
        text,
        topology=o["topology"],
        nccl=o["nccl"],
        hosts=o["hosts"],
        gpus_per_host=o["gpus_per_host"],
        ranks=o["ranks_total"],
        channels=o["nchannels"],
        p2p_channels=o["p2p_channels"],
        graphs={kind: _graph(g) for kind, g in o["graphs"].items() if g},
        rings=tuple(map(tuple, o["rings"])),
        warnings=tuple(o["warnings"]) + tuple(opened.warnings()),
        _cluster=opened,
    )


def _estimates(cluster: _plan.Cluster, collective: str, size: int | Sequence[int], dtype: str | None, op: str | None) -> Any:
    sizes = (size,) if isinstance(size, int) else tuple(size)
    rows = [Estimate(**e) for e in json.loads(cluster.estimate(collective, dtype, op, sizes))["estimates"]]
    return rows[0] if isinstance(size, int) or not sizes else rows


def estimate(
    collective: str,
    bytes: int | Sequence[int] = (),
    machine: str | None = None,
    topo: Topo | None = None,
    *,
    dtype: str | None = None,
    op: str | None = None,
    **cluster: Any,
) -> Any:
    """The predicted time of a collective on a cluster; see Plan.estimate, which plans once for many questions."""
    return _estimates(_open(machine, topo, **cluster), collective, bytes, dtype, op)


def _remarks(o: JSON) -> tuple[OrderRemark, ...]:
    return tuple(OrderRemark(**x) for x in o["lints"])


def _ranges(o: JSON) -> tuple[OrderRange, ...]:
    blocks = o["blocks"] if "blocks" in o else [o["ranges"]]
    return tuple(OrderRange(b, r["first"], r["count"], r["channel"], r["sum"]) for b, block in enumerate(blocks) for r in block)


def _verdict(o: JSON) -> OrderVerdict:
    return OrderVerdict(o["verdict"], o["code"], o["text"], (o["first_difference"] or {}).get("element"))


def _order(
    cluster: _plan.Cluster,
    collective: str,
    *,
    bytes: int = 0,
    last: int | None = None,
    dtype: str | None = None,
    op: str | None = None,
    group: Iterable[int] = (),
    root: int = 0,
    registered: bool = False,
    vs: str | int | None = None,
    lint: bool = False,
) -> OrderLint:
    against = None if vs is None else str(vs)
    text = cluster.order(collective, dtype, op, bytes, bytes if last is None else last, tuple(group), root, registered, against, lint)
    o = json.loads(text)
    if lint:
        return OrderLint(text, o["schema"], o["summary"], _remarks(o))
    return Order(
        text,
        schema=o["schema"],
        summary=o["summary"],
        lints=_remarks(o),
        algorithm=o["algorithm"],
        protocol=o["protocol"],
        channels=o["channels"],
        rounding=o["arithmetic"]["rounding"],
        sums=tuple(s["text"] for s in o["sums"]),
        ranges=_ranges(o),
        invariant={scope: _verdict(v) for scope, v in o["invariant"].items()},
        cheapest=tuple(OrderSetting(s["set"], s["verdict"], s["cost_percent"], s["text"]) for s in o["cheapest"]),
        equal=o["vs"]["equal"] if "vs" in o else None,
    )


def _traffic(
    cluster: _plan.Cluster,
    collective: str,
    *,
    bytes: int,
    dtype: str | None = None,
    op: str | None = None,
    root: int = 0,
    pod: int | Iterable[int] = (),
) -> Traffic:
    text = cluster.traffic(collective, dtype, op, bytes, root, (pod,) if isinstance(pod, int) else tuple(pod))
    o = json.loads(text)
    keys = ("schema", "summary", "algorithm", "protocol", "payload_bytes", "wire_bytes", "across_hosts", "across_rails", "across_pods")
    nics = tuple(
        NicTraffic(n["host"], n["net"], n["gbs"], n["us"], n["idle"], n["wire_bytes"]["out"], n["wire_bytes"]["in"]) for n in o["nics"]
    )
    order = tuple(o["best_order"]["hosts"]) if o["best_order"] else None
    return Traffic(text, nics=nics, best_order=order, **{k: o[k] for k in keys})


def _explain(cluster: _plan.Cluster, question: str, args: Sequence[str], **options: Any) -> Explanation:
    if question in ("order", "traffic"):
        if len(args) != 1:
            raise TypeError(f'explain("{question}") takes a collective, as in explain("{question}", "all_reduce", bytes=1 << 20)')
        return _order(cluster, *args, **options) if question == "order" else _traffic(cluster, *args, **options)
    if question == "search":
        text = cluster.search(args[0] if args else None, bool(options.pop("all", False)))
    elif question == "nics":
        text = cluster.nics()
    elif question in ("pair", "path"):
        if len(args) != 2:
            raise TypeError(f'explain("{question}") takes two nodes, as in explain("{question}", "GPU/0", "NET/3")')
        text = (cluster.pair if question == "pair" else cluster.path)(*args)
    else:
        first, last = options.pop("bytes", None), options.pop("last", None)
        first = 0 if first is None else first
        text = cluster.collective(question, options.pop("dtype", None), options.pop("op", None), first, first if last is None else last)
    if options:
        raise TypeError(f'explain("{question}") takes no {", ".join(options)}')
    o = json.loads(text)
    verdict = o.get("verdict")
    return Explanation(text, o["schema"], verdict["text"] if verdict else o.get("summary", ""))


_OWN = ("bytes", "last", "dtype", "op", "all", "group", "root", "registered", "vs", "lint", "pod")


def explain(question: str, *args: str, machine: str | None = None, topo: Topo | None = None, **options: Any) -> Explanation:
    """Ask why.

    question: a collective ("all_reduce"; options bytes, last, dtype, op), "search" (args: kind of graph; option all), "pair" or "path"
    (args: two nodes), "nics", "order" or "traffic" (args: a collective). Order, an Order, or with lint=True an OrderLint: options bytes,
    last, dtype, op, group, root, registered, vs. Traffic, a Traffic: bytes, dtype, op, root, pod
    (hosts of a pod, or the pod of each host). The other options describe the cluster.
    """
    own = {k: options.pop(k) for k in _OWN if k in options}
    return _explain(_open(machine, topo, **options), question, args, **own)


def _diff(a: _plan.Cluster, b: _plan.Cluster) -> Diff:
    text = a.diff(b)
    cause = json.loads(text)["cause"]
    return Diff(text, cause["code"] == "changes", cause["text"], cause.get("effect", cause.get("why", "")))


def diff(a: Plan, b: Plan) -> Diff:
    """The differences from one plan to another: the consequences, and the facts that cause them."""
    return a.diff(b)


def _texts(files: Iterable[str | os.PathLike[str] | bytes]) -> list[tuple[str, bytes | None]]:
    return [("text in memory", f) if isinstance(f, bytes) else (os.fspath(f), None) for f in files]


def explain_log(*logs: str | os.PathLike[str] | bytes, machine: str | None = None, topo: Topo | None = None, **cluster: Any) -> LogAnswer:
    """Findings about logs of NCCL (NCCL_DEBUG=INFO), worst first, and the logs beside the plan. Each log is a path, or bytes with its content.

    Flight records, status of RAS, reports of Inspector and traces are told by their content; their findings come culprit first, and
    to_dict() has files, groups, ranks and calls.
    """
    opened = _open(machine, topo, **cluster) if machine or topo or cluster else None
    text = _plan.explain_log(_texts(logs), opened)
    o = json.loads(text)
    findings = tuple(
        LogFinding(f["code"], f["weight"], f["text"], f["remedy"], f["times"], (f["at"] or {}).get("file"), (f["at"] or {}).get("line"))
        for f in o["findings"]
    )
    return LogAnswer(text, o["problem"], o.get("lines", 0), tuple(v["version"] for v in o.get("versions", ())), findings)


def explain_bench(*tables: str | os.PathLike[str] | bytes, machine: str | None = None, topo: Topo | None = None, **cluster: Any) -> Explanation:
    """Findings about tables of nccl-tests, beside the model. Each is a path, or bytes with its content (text or JSON)."""
    opened = _open(machine, topo, **cluster) if machine or topo or cluster else None
    text = _plan.explain_bench(_texts(tables), opened)
    return Explanation(text, json.loads(text)["schema"], "")
