/* SPDX-License-Identifier: Apache-2.0 */
/**
 * findings.h - problems and remarks that a log shows by itself, worst first.
 *
 * A finding is an enum with operands and the line that shows it. It follows from lines of the log, never from the name of a file or a
 * host: a log that shows no trouble has none.
 *
 * Threads: pure.
 */
#ifndef KL_LOGS_FINDINGS_H
#define KL_LOGS_FINDINGS_H

#include "base/text.h"
#include "logs/causes.h"
#include "logs/log.h"

enum kl_log_code {
    KL_FOUND_CAUSE,           /* a line of trouble: `cause`; other: its source file and function */
    KL_FOUND_CALLS_DIFFER,    /* ranks called different operations: text, a sentence */
    KL_FOUND_CALLS_BEHIND,    /* some ranks are behind others: text, a sentence */
    KL_FOUND_VERSIONS_DIFFER, /* text, other: releases; a: 1 if of different communicators */
    KL_FOUND_ALONE,           /* n processes, each a communicator of one rank */
    KL_FOUND_UNFINISHED, /* text: ranks that began init and did not finish it; n, a: enum kl_log_step they reached; m others
                                 have no line */
    KL_FOUND_SPLIT_HOST,      /* ranks of one host count as n nodes; a: 1 if P2P and shared memory are off */
    KL_FOUND_DIVIDED_HOST,    /* text: a host with n of x ranks counts as several of a nodes, of m ranks each */
    KL_FOUND_CONTAINERS,      /* n ranks, one per node, look like containers of m hosts; a: 1 if all go over sockets */
    KL_FOUND_FALLBACK,        /* a graph at 0.1 GB/s */
    KL_FOUND_MACHINE,         /* text: a part that differs from its like; fault: enum kl_anomaly_code */
    KL_FOUND_VIRTUAL_PCI,     /* n switches with GPUs below a link of x GB/s */
    KL_FOUND_MACHINES_DIFFER, /* text, other: hosts whose machines differ */
    KL_FOUND_GRAPHS_DIFFER,   /* x GB/s on text, y on other; n, m channels; a: pattern */
    KL_FOUND_SETTINGS_DIFFER, /* text: the name, other: "1 on hostA, 0 on hostB" */
    KL_FOUND_CHANNELS_DIFFER, /* n and m channels on text and other */
    KL_FOUND_NICS_DIFFER,     /* n and m NICs on text and other */
    KL_FOUND_NETWORKS_DIFFER, /* text, other: networks */
    KL_FOUND_MIXED_FABRIC,    /* InfiniBand and RoCE together */
    KL_FOUND_SOCKET,          /* TCP between nodes; a: 1 if no InfiniBand device was found */
    KL_FOUND_GDR_FAR,         /* GPUDirect off: distance a > level n; text: GPU */
    KL_FOUND_GDR_DRIVER,      /* GPUDirect off: the NIC `text`'s driver */
    KL_FOUND_GDR_OFF,         /* GPUDirect off, no line says why; n connections */
    KL_FOUND_NET_INSIDE,      /* n connections within a host go through the network */
    KL_FOUND_SHM,             /* n connections within a host go through shared memory; a: not all GPUs can do P2P */
    KL_FOUND_SLOW_NIC,        /* text: a NIC of x GB/s */
    KL_FOUND_SETTING,   /* text=other costs bandwidth, or explains other lines; a: index into the table of settings */
    KL_FOUND_SLOW_INIT, /* x seconds, y of them in the phase `text` */
    KL_FOUND_NVLS_OFF,  /* an NVSwitch, but no NVLS */
    KL_FOUND_PEER_CHANNELS, /* messages to a peer elsewhere use n of m channels */
    KL_FOUND_AFFINITY, /* the CPUs of rank a (text) are a subset of the CPUs of rank n (other); m: a known defect of the release */
    KL_FOUND_NO_AFFINITY, /* the machine tells no CPUs for the GPU of rank a */
    KL_FOUND_GPU_PATH,    /* P2P from the GPU of rank n to the GPU of rank m: text, as init tested it */
    KL_FOUND_GPU_P2P_OFF, /* settings forbid P2P between the GPUs of ranks n and m: text */
    KL_LOG_CODES
};

struct kl_log_finding {
    enum kl_log_code code;
    enum kl_log_weight weight;
    struct kl_log_at at;
    enum kl_log_cause cause;
    int fault; /* enum kl_anomaly_code */
    int n, m, a;
    double x, y;
    const char *text, *other; /* of the log, or of the findings */
    const char *origins;      /* "hostA:11 [1], hostB:12 [3]": ranks whose lines show it; NULL unknown */
    int times;                /* number of such lines */
    int source;               /* of a cause: enum kl_log_source, the program that printed the line */
    int norigins;             /* number of such ranks */
};

struct kl_log_findings {
    struct kl_log_finding *finding; /* worst first */
    int n, max;
    int dropped;  /* findings beyond those that are kept */
    char **texts; /* that findings point to */
    int ntexts, maxtexts;
};

ncclResult_t kl_log_findings_make(const struct kl_log *log, struct kl_log_findings *findings);
void kl_log_findings_fini(struct kl_log_findings *findings);

/** Does a finding stop the job or cost bandwidth? */
static inline bool kl_log_is_problem(const struct kl_log_finding *f)
{
    return f->weight != KL_LOG_REMARK;
}

/** "gdr_far"; for a cause its name. */
const char *kl_log_finding_name(const struct kl_log_finding *finding);

/** "stops", "follows", "costs", "remark". */
const char *kl_log_weight_name(enum kl_log_weight weight);

/** A sentence without its full stop. */
void kl_log_finding_text(const struct kl_log_finding *finding, struct kl_text *text);

/** The remedy, or the experiment that would tell, without a full stop and without clauses that the log shows as applied. */
void kl_log_finding_remedy(const struct kl_log *log, const struct kl_log_finding *finding, struct kl_text *text);

/** Sentences about init: the step that ranks reached. */
const char *kl_log_step_text(enum kl_log_step step);

#endif
