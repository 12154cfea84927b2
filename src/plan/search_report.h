/* SPDX-License-Identifier: Apache-2.0 */
/**
 * search_report.h - the steps of the search, the reason why it stopped, and faults.
 *
 *     search_report.c     gathers all of it
 *     search_faults.c     faults of the machine, and the results without them
 *     search_links.c      loads of links, those with the same numbers together
 *     search_headline.c   the most important finding
 *     search_result.c     graphs in a few numbers
 *
 * Units:   GB/s.
 */
#ifndef KL_PLAN_SEARCH_REPORT_H
#define KL_PLAN_SEARCH_REPORT_H

#include "graph/load.h"
#include "graph/search_log.h"
#include "plan/planned.h"
#include "topo/anomaly.h"

/** A graph in a few numbers. */
struct kl_graph_result {
    int id, nchannels;
    float bw_intra, bw_inter;
    bool nets, fallback;
};

/** A fault of the machine, and whether it costs anything. */
struct kl_fault_cost {
    struct kl_anomaly fault;
    bool mended, costs; /* could the document be mended; are the graphs better then */
    bool together;      /* they are better only when all mendable faults are mended */
    int hosts;          /* number of hosts of the trial: the requested one, or 2 where only the network is concerned */
    struct kl_graph_result now, without; /* the graph that shows it */
};

/** Links, or ports of NETs, of one kind with the same load. */
struct kl_link_group {
    bool port;
    int first, n, all; /* the first link or NET; number with this load, and number of the kind */
    float bw, used;
    int nlacks;        /* number of the n that lack bandwidth for one more channel */
    float more, lacks; /* maximum that it takes of one of them, and lacks there */
};

struct kl_graph_report {
    int id;
    const struct kl_graph *graph;
    const struct kl_graph_why *why;
    struct kl_search_log *log;
    struct kl_load *load;
    struct kl_link_group *group; /* incomplete ones first, then the fullest */
    int ngroups;
};

/** The most important finding. */
enum kl_search_headline {
    KL_HEADLINE_FAULT,    /* a fault of the machine costs bandwidth */
    KL_HEADLINE_REFUSED,  /* a graph file does not fit */
    KL_HEADLINE_INJECTED, /* the graph comes from a file */
    KL_HEADLINE_FALLBACK, /* nothing was found, and no fault explains it */
    KL_HEADLINE_NONE,     /* the machine cannot have such a graph */
    KL_HEADLINE_LIMIT,    /* no fault: the limit of the result */
    KL_HEADLINES
};

struct kl_search_report {
    const struct kl_cluster *cluster;
    struct kl_planned planned;
    const struct kl_plan_domain *domain; /* of rank 0 */
    struct kl_graph_report graph[KL_GRAPHS];
    int ngraphs;
    struct kl_fault_cost *fault;
    int nfaults;
    struct kl_plan *searched; /* without the graph file, where one was used; else NULL */

    enum kl_search_headline headline;
    const struct kl_graph_report *about;
    const struct kl_fault_cost *worst;   /* KL_HEADLINE_FAULT: the one that costs most */
    const struct kl_fault_cost *suspect; /* else a fault that may be related; NULL */
    int apart[2];                        /* KL_HEADLINE_FALLBACK: nodes that cannot reach each other; -1 if all can */
};

/**
 * Plan for a cluster, which must outlive the report, and analyse the graphs of these bits (1 << enum kl_graph_id).
 * ncclInvalidUsage if none of them was computed. Free with kl_search_report_fini, also after a failure.
 */
ncclResult_t kl_search_report_make(const struct kl_cluster *cluster, unsigned graphs, struct kl_search_report *report);
void kl_search_report_fini(struct kl_search_report *report);

struct kl_graph_result kl_graph_result_of(const struct kl_graphs *graphs, int id);

/** GB/s of all channels. */
float kl_graph_result_total(const struct kl_graph_result *result);

/** "fault". */
const char *kl_search_headline_name(enum kl_search_headline headline);

#endif
