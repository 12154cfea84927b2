/* SPDX-License-Identifier: Apache-2.0 */
/**
 * koloplan.h - plans for machines and clusters, and answers about them, without devices or a network.
 *
 * Open a cluster, then ask. An answer is a JSON text, the same that the tool `kolo` prints with --json; its key "schema" is
 * "kolo.<kind>/<version>". A version may gain keys; it changes when a key goes away or changes its meaning.
 *
 * Units:    in answers GB/s (1e9 bytes per second), microseconds and bytes, unless a key's name says otherwise.
 * Memory:   answers belong to the caller: free each with koloplanFree. On failure they are set to NULL.
 * Errors:   ncclInvalidArgument: an argument is missing or not understood. ncclInvalidUsage: it does not fit the cluster.
 *           ncclInternalError: a text is malformed. ncclSystemError: a file cannot be read, or memory is short.
 *           koloplanGetLastError gives the sentence; it names fields of the request by the tool's options (--nccl for `nccl`).
 * Threads:  every function may be called from any thread. Calls with different clusters run side by side, calls with one cluster one
 *           after another. Nothing is kept but in handles; the environment (NCCL_*, KOLO_*) is read and must not change meanwhile.
 * Blocking: for the time of a computation: milliseconds for most machines, seconds for thousands of hosts.
 */
#ifndef KOLOPLAN_H_
#define KOLOPLAN_H_

#include "nccl.h"

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif
#ifdef __GNUC__
#pragma GCC visibility push(default)
#endif

/** A cluster: identical hosts, opened with koloplanOpen. */
typedef struct koloplanCluster *koloplanCluster_t;

/**
 * A description of a cluster: NULL and 0 stand for "not given". One of topo, machine, text, smi and sysfs names the machine;
 * without any it is NCCL_TOPO_FILE's, or this machine. Begin with KOLOPLAN_REQUEST_INITIALIZER. Strings are copied.
 */
typedef struct koloplanRequest {
    size_t size;            /* of this struct: set by the initializer */
    const char *topo;       /* path of a topology file (NCCL's XML) */
    const char *machine;    /* a bundled machine, "dgx-h100" (koloplanMachines); with topo or text: their machine */
    const char *text;       /* a topology in memory: NCCL's XML, or the output of `nvidia-smi topo -m` */
    size_t bytes;           /* of text, without a final zero */
    const char *label;      /* names text in errors and answers (default: "text in memory") */
    const char *const *smi; /* files with the output of nvidia-smi topo -m and nvidia-smi nvlink -s */
    int nsmi;
    const char *sysfs;       /* root of a machine recorded by `kolo topo --record` */
    const char *nccl;        /* release of NCCL to follow, "2.29.7" (default: KOLO_NCCL_VERSION, or the newest) */
    const char *constants;   /* of the tuning model: "reference" (NCCL's, the default) or "host" (for CPUs) */
    const char *gpus;        /* ordinals of the GPUs to use of each host, "0,2,4" (default: all) */
    int hosts;               /* identical hosts, joined by the network (default: 1, or those of the file) */
    int ranks;               /* CPU devices of this machine where it has no GPUs (default: those of a process) */
    int mnnvl;               /* 1: all hosts form one NVLink domain */
    const char *const *with; /* settings, "NCCL_ALGO=Ring" each: as if the environment had them */
    int nwith;
    const char *const *without; /* nodes to leave out, "NET/3", "GPU/2" */
    int nwithout;
    const char *const *withoutLink; /* NVLinks to leave out, "GPU/0-GPU/1", "GPU/0-GPU/1:2", "GPU/3-NVS" */
    int nwithoutLink;
} koloplanRequest_t;

#define KOLOPLAN_REQUEST_INITIALIZER                                                                                   \
    {                                                                                                                  \
        sizeof(koloplanRequest_t), NULL, NULL, NULL, 0, NULL, NULL, 0, NULL, NULL, NULL, NULL, 0, 0, 0, NULL, 0, NULL, \
            0, NULL, 0                                                                                                 \
    }

/** A log or a table: a file, or a text in memory. */
typedef struct koloplanText {
    const char *name; /* path of the file; of a text: its name in errors and answers */
    const char *text; /* NULL: read the file */
    size_t bytes;     /* of text, without a final zero */
} koloplanText_t;

/** A question about the order of summation. NULL and 0 stand for "not given". Begin with KOLOPLAN_ORDER_INITIALIZER. */
typedef struct koloplanOrder {
    size_t size;            /* of this struct: set by the initializer */
    const char *collective; /* all_reduce, reduce_scatter or reduce */
    const char *type, *op;  /* as in koloplanExplainCollective */
    /* Bytes: the answer is about `last`, and whether all sizes from `first` on add alike. Equal: 1 byte to 16 GiB are compared. Both 0: the
     * answer is about 64 MiB. */
    int64_t first, last;
    const int64_t *group; /* bytes of other operations of its group, which come after it: at most 63 */
    int ngroup;
    int root;       /* of a reduce */
    int registered; /* 1: in registered buffers or a captured graph, out of place */
    const char *vs; /* compared for the same elements: a size "64M", setting "NCCL_ALGO=Tree" or release "2.29.7" */
} koloplanOrder_t;

#define KOLOPLAN_ORDER_INITIALIZER                                                                                     \
    {                                                                                                                  \
        sizeof(koloplanOrder_t), NULL, NULL, NULL, 0, 0, NULL, 0, 0, 0, NULL                                           \
    }

/* ---- life ---- */

/** The version of this library as major * 10000 + minor * 100 + patch. ncclInvalidArgument if `version` is NULL. */
ncclResult_t koloplanGetVersion(int *version);

/** The sentence of the calling thread's last failure, "" if there was none; valid until the thread's next failure. */
const char *koloplanGetLastError(void);

/** Open a cluster: read its topology and check the request. Only its first read of files counts, but for koloplanDiff, which reads again. */
ncclResult_t koloplanOpen(const koloplanRequest_t *request, koloplanCluster_t *cluster);

/** Free a cluster; NULL is fine. No other call may use it at the same time or later. */
ncclResult_t koloplanClose(koloplanCluster_t cluster);

/** Plan for the cluster now: graphs, rings, trees, channels and tuning. Else the first question that needs the plan does. */
ncclResult_t koloplanPlan(koloplanCluster_t cluster);

/**
 * The i-th warning of koloplanOpen, from 0: a topology file of the environment that is not used, links that sleep. NULL behind the last,
 * and for a NULL cluster. The text belongs to the cluster.
 */
const char *koloplanGetWarning(koloplanCluster_t cluster, int i);

/** Free an answer; NULL is fine. */
void koloplanFree(char *json);

/* ---- questions ---- */

/** The bundled machines. "kolo.machines/1": machines [{name, title, gpu, gpus, sm, trays, nics, gbps, certainty, source}]. */
ncclResult_t koloplanMachines(char **json);

/**
 * The machine as a graph. "kolo.topo/1": system, max_bw, total_bw, paths, queries, nics_unused, warnings. With `hosts` in the request:
 * the system of rank 0 as a plan uses it; else the machine with all its NICs.
 */
ncclResult_t koloplanTopo(koloplanCluster_t cluster, char **json);

/** The path between two nodes, GPU/<rank>, NET/<dev>, CPU or NVS. "kolo.path/1": from, to, type, bw, rule, links, and p2p, shm, gdr, pxn. */
ncclResult_t koloplanPath(koloplanCluster_t cluster, const char *from, const char *to, char **json);

/**
 * The plan. "kolo.graph/1": system, paths, queries, graphs, rings, trees, channel counts, tuning, and for each graph the attempts of its
 * search. `graph`: "ring", "tree", "collnet" or "nvls" limits graphs and attempts to a kind; NULL: all.
 */
ncclResult_t koloplanGraph(koloplanCluster_t cluster, const char *graph, char **json);

/**
 * The choice of algorithm, protocol and channels for a collective. "kolo.collective/1": choice, candidates, refused, ranges; or, for
 * those made of sends and receives, channels and rounds.
 *
 * `collective`: all_reduce, all_gather, reduce_scatter, broadcast, reduce, alltoall, alltoallv, gather, scatter, sendrecv, hypercube or
 * barrier, in any case. `type`: "float", "bf16", "ncclFloat32" ...; NULL: float. `op`: sum prod max min avg; NULL: sum. `first`, `last`:
 * bytes as nccl-tests count them, from 1; equal for one size; both 0 for all sizes, and for a barrier.
 */
ncclResult_t koloplanExplainCollective(koloplanCluster_t cluster, const char *collective, const char *type,
                                       const char *op, int64_t first, int64_t last, char **json);

/** The course of the search. "kolo.search/1": verdict, faults, graphs, channels. `graph` as in koloplanGraph; `all`: with every attempt. */
ncclResult_t koloplanExplainSearch(koloplanCluster_t cluster, const char *graph, int all, char **json);

/**
 * The order in which contributions are added to each element. "kolo.order/1": summary, parts, ranges (of reduce_scatter: blocks), sums,
 * arithmetic, invariant, cheapest, lints, vs. Undefined orders (NVLS, CollNet) have verdict "unknown".
 */
ncclResult_t koloplanExplainOrder(koloplanCluster_t cluster, const koloplanOrder_t *question, char **json);

/** Remarks on the settings in force, where they do not fix the order. "kolo.order_lint/1": summary, lints [{code, text}]. */
ncclResult_t koloplanLintOrder(koloplanCluster_t cluster, const koloplanOrder_t *question, char **json);

/**
 * The bytes of an operation over each link, NIC, host and rail. "kolo.traffic/1": summary, nics, links, by_host, rails, totals. `bytes`: from
 * 1; `root`: of a broadcast or reduce. `pods`: the pod of each host, or one number: so many hosts are a pod; npods 0: there are none.
 * ncclInvalidUsage for CollNet.
 */
ncclResult_t koloplanExplainTraffic(koloplanCluster_t cluster, const char *collective, const char *type, const char *op,
                                    int64_t bytes, int root, const int64_t *pods, int npods, char **json);

/** The connection of two GPUs, or of a GPU and a NIC. "kolo.pair/1": summary, transport, path, transports, routes, or nic. */
ncclResult_t koloplanExplainPair(koloplanCluster_t cluster, const char *a, const char *b, char **json);

/** The NIC of each GPU. "kolo.nics/1": summary, gpus, nics, rails, mergeable, nics_unused. */
ncclResult_t koloplanExplainNics(koloplanCluster_t cluster, char **json);

/**
 * Logs of NCCL (NCCL_DEBUG=INFO). "kolo.log/1": findings, versions, communicators, ranks, settings, graphs, rings, connections, and the
 * log beside the plan. `cluster` NULL: the plan is for the log's own machine. `n` is at least 1. Flight records of PyTorch and Kolo,
 * status of NCCL's RAS, reports of its Inspector and traces, by their content: "kolo.record/1": answer, findings (culprit first), files,
 * groups, ranks, calls.
 */
ncclResult_t koloplanExplainLog(koloplanCluster_t cluster, const koloplanText_t *texts, int n, char **json);

/** Tables of nccl-tests, text or JSON. "kolo.bench/1": tables with shape, rows, findings, reasons. Arguments as koloplanExplainLog's. */
ncclResult_t koloplanExplainBench(koloplanCluster_t cluster, const koloplanText_t *texts, int n, char **json);

/** The differences from `a` to `b`. "kolo.diff/1": cause, differences, changes, totals, a, b. */
ncclResult_t koloplanDiff(koloplanCluster_t a, koloplanCluster_t b, char **json);

/**
 * Times of a collective for `n` sizes. "kolo.estimate/1": estimates [{bytes, algorithm, protocol, channels, threads, time_us, bus_gbs}],
 * null where nothing is chosen (one rank, or a call that fails). Arguments as koloplanExplainCollective's; a barrier takes no size
 * (n 0). ncclInvalidUsage for collectives made of sends and receives, for which there is no model.
 */
ncclResult_t koloplanEstimate(koloplanCluster_t cluster, const char *collective, const char *type, const char *op,
                              const int64_t *bytes, int n, char **json);

#ifdef __GNUC__
#pragma GCC visibility pop
#endif
#ifdef __cplusplus
}
#endif

#endif
