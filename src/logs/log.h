/* SPDX-License-Identifier: Apache-2.0 */
/**
 * log.h - a log of NCCL (NCCL_DEBUG=INFO) as facts, each with its line.
 *
 *     log_line.c    one line: its origin (host, process, device), level and text
 *     log_read.c    files; the origin of each line
 *     log_comms.c   which ranks are one communicator
 *     log_init.c    versions, settings, ranks, channel counts
 *     log_machine.c the machine: "=== System", graphs
 *     log_plan.c    rings, trees, connections
 *     log_net.c     NICs, networks, GPUDirect
 *     log_trouble.c warnings; their causes: patterns.h, causes.h
 *     log_ops.c     calls of operations, watchdogs
 *     log_run.c     runs of nccl-tests
 *     log_plugin.c  lines of network plugins
 *     findings.h    problems and remarks, worst first
 *
 * Lines of several ranks may be mixed, cut, and have anything in front of them; unknown lines are skipped. Releases
 * from 2.8 on are read; facts that a release does not print stay unknown (-1, NULL).
 *
 * Bounds:  lines are cut at KL_LOG_LINE bytes; KL_LOG_FACTS facts of a kind are kept; `full`: there were more.
 * Units:   GB/s, seconds.
 * Errors:  ncclSystemError when a file cannot be read or memory is short. A log without any fact is none.
 * Threads: a log belongs to one thread while it is read; then it is const.
 */
#ifndef KL_LOGS_LOG_H
#define KL_LOGS_LOG_H

#include "include/nccl.h"
#include "topo/types.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { KL_LOG_LINE = 1 << 16, KL_LOG_FACTS = 1 << 20 };

/** FILE:LINE. */
struct kl_log_at {
    int file, line; /* file: index into kl_log.file; line 0: none */
};

enum kl_log_level { KL_LOG_PLAIN, KL_LOG_INFO, KL_LOG_WARN, KL_LOG_TRACE };

/** One line, its prefix taken off. Texts point into the line. */
struct kl_log_line {
    struct kl_log_at at;
    enum kl_log_level level;
    char host[64];    /* "" unknown */
    long pid;         /* -1 unknown */
    int dev;          /* -1 unknown */
    char where[128];  /* source of the line: "misc/socket.cc:537 (ncclSocketInit)"; "" unknown */
    const char *text; /* ends with 0 */
    char *more;       /* where the line goes on with another's line; NULL */
};

/** The origin of lines: a device of a process. */
struct kl_log_origin {
    const char *host; /* "" unknown */
    long pid;
    int dev;
    int member, last;    /* the current one, and the latest; -1 */
    int warned;          /* its last warning, plus 1; 0 none */
    bool unwinding;      /* its last line was "FILE:LINE -> N": a failed call returns */
    int system;          /* its last one; -1 */
    int next, next_torn; /* with the same hash, of all and without the host; -1 */
};

/** Steps of init, as far as lines show them. */
enum kl_log_step {
    KL_LOG_NOT_BEGUN,
    KL_LOG_BEGUN,      /* "Init START" */
    KL_LOG_MET,        /* it knows all ranks */
    KL_LOG_PLANNED,    /* rings, trees, channel counts */
    KL_LOG_CONNECTING, /* "Channel ... via ..." */
    KL_LOG_CONNECTED   /* "Connected all rings" */
};

/** A rank of a communicator, as its own lines have it. */
struct kl_log_member {
    struct kl_log_at at; /* its first line */
    enum kl_log_step step;
    struct kl_log_at step_at; /* the last line of that step */
    uint64_t pointer;         /* of its communicator, as printed; 0 unknown */
    int cuda, nvml;           /* numbers of its device, to the process and to the host; -1 unknown */
    const char *busid;        /* of its GPU, as printed; NULL unknown */
    int origin, comm;
    int next;         /* of the same communicator; -1 */
    int earlier;      /* of the same origin; -1 */
    const char *id;   /* of the communicator, as printed; NULL unknown */
    int rank, nranks; /* -1 unknown, as all below */
    int nnodes, local_ranks;
    bool started, completed;
    int coll, collnet, nvls, p2p, per_peer; /* channels */
    struct kl_log_at channels_at;
    int all_p2p;         /* can all GPUs of the node reach each other directly? */
    int nvls_support;    /* multicast of the NVSwitch */
    const char *network; /* "IB", "Socket", a plugin's */
    double total;        /* seconds of init; < 0 unknown */
    const char *phase;   /* the longest phase, its seconds below */
    double phase_s;
    struct kl_log_at timings_at;
    const char *cpus; /* affinity of its GPU, as printed; NULL */
    struct kl_log_at cpus_at;
};

/** Ranks of one communicator that have lines in the log. */
struct kl_log_comm {
    const char *id;
    int nranks, nnodes, seen; /* seen: ranks with lines */
    int first;                /* the lowest member; those after it: kl_log_member.next */
};

struct kl_log_setting {
    struct kl_log_at at;
    int origin;
    const char *name, *value;
    bool by_plugin; /* a plugin set it, not the user */
};

struct kl_log_version {
    struct kl_log_at at;
    int origin;
    const char *text; /* "2.26.5" */
    int number;       /* 22605 */
    bool rccl;
    bool by_tests; /* nccl-tests print it: of this run alone */
};

/** A graph as found: "Pattern 4, crossNic 0, ...". */
struct kl_log_graph {
    struct kl_log_at at;
    int member;
    int pattern, nchannels;
    double bw_intra, bw_inter;
    int type_intra, type_inter; /* enum kl_path_type; -1 unknown word */
};

/** "Channel 00/08 : 0 1 2 3": a ring in order; the line may have been cut. */
struct kl_log_ring {
    struct kl_log_at at;
    int member, channel;
    int first, n; /* ranks: kl_log.rank[first .. first + n) */
};

/** "Ring 00 : 3 -> 0 -> 1". */
struct kl_log_hop {
    struct kl_log_at at;
    int member, channel, rank, next;
};

/** "Trees [0] 1/-1/-1->0->-1": a rank's place in a tree. */
struct kl_log_tree {
    struct kl_log_at at;
    int member, channel, rank, up, down[3];
};

enum kl_log_way { KL_LOG_P2P, KL_LOG_SHM, KL_LOG_NET, KL_LOG_COLLNET, KL_LOG_NVLS, KL_LOG_WAYS };

/** "Channel 00/0 : 1[0] -> 0[1] [receive] via NET/IB/0/GDRDMA". */
struct kl_log_link {
    struct kl_log_at at;
    int member, channel, connection; /* connection 1: messages; -1 unknown */
    int from, to;                    /* ranks */
    enum kl_log_way way;
    bool receives, gdr;
    int net;         /* NET: device; -1 */
    const char *how; /* "P2P/CUMEM" */
};

enum kl_log_fabric { KL_LOG_IB, KL_LOG_ROCE, KL_LOG_ETHERNET };

/** "NET/IB : Using [0]mlx5_0:1/IB". */
struct kl_log_nic {
    struct kl_log_at at;
    int origin, dev;
    const char *name;
    enum kl_log_fabric fabric;
};

/** GPUDirect refused or allowed. */
struct kl_log_gdr {
    struct kl_log_at at;
    int origin;
    bool enabled, by_gpu; /* by_gpu: for a pair of GPU and NIC, by distance; else for a NIC, by its driver */
    int nic, distance, level;
    const char *name, *gpu;
};

/** P2P between the GPUs of two ranks that does not work, as init tests it, or that settings forbid: lines of Kolo. */
struct kl_log_gpu_path {
    struct kl_log_at at;
    int origin, from, to; /* ranks */
    bool tested;
    const char *why; /* "is broken: writes get lost, as by an IOMMU"; of settings: their sentence */
};

/** A node of "=== System", in the order of the tree. */
struct kl_log_node {
    int system, depth;      /* depth: the column it stands in; -1: a CPU */
    int parent;             /* index; -1: none */
    int before, next;       /* of the same system; -1 */
    enum kl_path_type link; /* to the parent; NVL, C2C and SYS lead to a node that stands elsewhere */
    double bw;              /* of it */
    const char *type;       /* "GPU" */
    const char *id;         /* "0-17000" */
    const char *more;       /* the text in parentheses; "" */
};

struct kl_log_system {
    struct kl_log_at at;
    int member, origin;
    int first, last; /* nodes; between them: kl_log_node.next; -1 */
    int n;           /* of them */
    bool complete;   /* it ends with its line of "=", and has all of its nodes */
    bool cut;        /* there was no room for some */
};

/** A line that tells of trouble. */
struct kl_log_warning {
    struct kl_log_at at;
    int origin;
    int cause;  /* enum kl_log_cause; KL_CAUSE_NONE: not known */
    int source; /* enum kl_log_source of the pattern; NCCL where there is none */
    const char *text, *where;
    bool loud;    /* a warning of a library; else a line of a program or launcher */
    bool fatal;   /* the call failed: lines "FILE:LINE -> N" follow */
    bool follows; /* it stands among such lines: a consequence */
};

enum kl_log_op_from { KL_LOG_OP_COLL, KL_LOG_OP_WATCHDOG };

/** A call of an operation: a line of NCCL_DEBUG_SUBSYS=COLL, or one that a watchdog of PyTorch timed out. */
struct kl_log_op {
    struct kl_log_at at;
    enum kl_log_op_from from;
    int origin, rank;  /* rank: -1 unknown */
    int nranks;        /* of the communicator; -1 unknown */
    uint64_t pointer;  /* of the communicator; 0 unknown */
    const char *group; /* of a watchdog: the process group; "" unknown */
    int64_t sequence;
    const char *name;
    int64_t count, out; /* elements; out: of the result, of a watchdog; -1 unknown */
    int type, op, root; /* -1 unknown */
};

/** How far a rank's process group came, by its watchdog. */
struct kl_log_progress {
    struct kl_log_at at;
    int rank;
    const char *group;
    int64_t enqueued, completed;
};

/** A run of nccl-tests or rccl-tests: it begins with its head, and has a list of ranks, then rows. */
struct kl_log_run {
    struct kl_log_at at;
    int ranks, rows;
    struct kl_log_at last_row;
    struct kl_log_at failed_at; /* "Test CUDA failure ..."; line 0: none */
    const char *failure;        /* that line */
};

/** "#  Rank  0 Group  0 Pid 13510 on hostA device 0 [0x08] Tesla V100". */
struct kl_log_device {
    struct kl_log_at at;
    int rank;
    long pid;
    const char *host, *name;
};

/** The network plugin that has lines in the log. */
struct kl_log_plugin {
    const char *name;    /* "aws-ofi-nccl"; NULL: none does */
    const char *version; /* NULL unknown */
    int lines;
};

#define KL_LOG_LIST(type, name)                                                                                        \
    struct type *name;                                                                                                 \
    int n##name, max##name

struct kl_log {
    KL_LOG_LIST(kl_log_file, file);
    KL_LOG_LIST(kl_log_origin, origin);
    KL_LOG_LIST(kl_log_member, member);
    KL_LOG_LIST(kl_log_comm, comm); /* most ranks first */
    KL_LOG_LIST(kl_log_setting, setting);
    KL_LOG_LIST(kl_log_version, version);
    KL_LOG_LIST(kl_log_graph, graph);
    KL_LOG_LIST(kl_log_ring, ring);
    KL_LOG_LIST(kl_log_hop, hop);
    KL_LOG_LIST(kl_log_tree, tree);
    KL_LOG_LIST(kl_log_link, link);
    KL_LOG_LIST(kl_log_nic, nic);
    KL_LOG_LIST(kl_log_gdr, gdr);
    KL_LOG_LIST(kl_log_gpu_path, gpu_path);
    KL_LOG_LIST(kl_log_system, system);
    KL_LOG_LIST(kl_log_node, node);
    KL_LOG_LIST(kl_log_warning, warning);
    KL_LOG_LIST(kl_log_device, device);
    KL_LOG_LIST(kl_log_op, op);
    KL_LOG_LIST(kl_log_progress, progress);
    KL_LOG_LIST(kl_log_run, run);
    struct kl_log_plugin plugin;
    int *rank; /* of rings */
    int nrank, maxrank;
    int lines, understood;
    int library;    /* lines of NCCL, RCCL or a plugin, understood or not */
    bool full;      /* facts were dropped */
    bool amd;       /* GPUs of AMD: RCCL */
    bool tests;     /* lines of nccl-tests or rccl-tests */
    bool connected; /* a connection that was retried came about */
    bool rings;     /* a rank says that all rings are connected */
    struct kl_log_block *strings;
    int *bucket, buckets; /* of origins, by hash; behind them the same by a hash without the host */
};

struct kl_log_file {
    const char *name;
};

/** An empty log. Free with kl_log_fini, also after a failure. */
void kl_log_init(struct kl_log *log);
void kl_log_fini(struct kl_log *log);

/** Add a text, or a file ("-": standard input), to a log. */
ncclResult_t kl_log_add_text(struct kl_log *log, const char *name, const char *text, size_t bytes);
ncclResult_t kl_log_add_file(struct kl_log *log, const char *path);

/** All is read: find the communicators. */
ncclResult_t kl_log_finish(struct kl_log *log);

/** The first value in the log; NULL if the setting does not occur. */
const struct kl_log_setting *kl_log_find_setting(const struct kl_log *log, const char *name);

/** The release that a communicator runs, or, where none of its ranks names it, the first of the log. NULL: no line names one. */
const struct kl_log_version *kl_log_version_of(const struct kl_log *log, const struct kl_log_comm *comm);

/** The release whose rules apply: the nearest one that is followed; where no line names one, the release of this process. */
int kl_log_release(const struct kl_log *log, const struct kl_log_comm *comm);

/** The communicator with most ranks; NULL without any. */
const struct kl_log_comm *kl_log_main(const struct kl_log *log);

/** "hostA:28471 [0]", as far as it is known; "" when nothing is. */
enum { KL_LOG_ORIGIN_TEXT = 96 };
const char *kl_log_origin_text(const struct kl_log *log, int origin, char text[KL_LOG_ORIGIN_TEXT]);

/** "FILE:LINE". */
enum { KL_LOG_AT = 512 };
const char *kl_log_at_text(const struct kl_log *log, struct kl_log_at at, char text[KL_LOG_AT]);

#endif
