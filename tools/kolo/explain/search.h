/* SPDX-License-Identifier: Apache-2.0 */
/**
 * search.h - what `kolo explain search` found out, before it is printed.
 *
 *     search.c        gathers all of it
 *     cause.c         faults of the machine, and what it would do without them
 *     links.c         loads of links, those with the same numbers together
 *     verdict.c       the first line
 *     search_text.c   prints it for people
 *     search_json.c   the same for programs
 */
#ifndef KOLO_TOOL_EXPLAIN_SEARCH_H
#define KOLO_TOOL_EXPLAIN_SEARCH_H

#include "base/text.h"
#include "graph/load.h"
#include "graph/story.h"
#include "plan/planned.h"
#include "tools/kolo/explain/explain.h"
#include "topo/fault.h"

/** A graph in one line. */
struct kl_result {
    int id, nchannels;
    float bw_intra, bw_inter;
    bool nets, fallback;
};

/** A fault of the machine, and whether it costs anything. */
struct kl_cause {
    struct kl_fault fault;
    bool mended, helps;          /* could the document be mended; are the graphs better then */
    bool together;               /* they are only when all faults that can be are mended */
    int hosts;                   /* for which that was tried: as asked, or 2 where only the network is concerned */
    struct kl_result now, after; /* the graph that shows it */
};

/** Links, or ports of NETs, of one kind that carry the same. */
struct kl_link_group {
    bool port;
    int first, n, all; /* the first link or NET; how many carry the same, and how many of the kind there are */
    float bw, used;
    int nlacks;        /* of the n: how many lack something for one more channel */
    float more, lacks; /* most that it takes of one of them, and lacks there */
};

struct kl_told_graph {
    int id;
    const struct kl_graph *graph;
    const struct kl_graph_why *why;
    struct kl_story *story;
    struct kl_load *load;
    struct kl_link_group *group; /* what lacks something first, then the fullest */
    int ngroups;
};

enum kl_verdict {
    KL_VERDICT_FAULT,    /* a fault of the machine costs bandwidth */
    KL_VERDICT_REFUSED,  /* a graph file does not fit */
    KL_VERDICT_INJECTED, /* the graph comes from a file */
    KL_VERDICT_FALLBACK, /* nothing was found, and no fault explains it */
    KL_VERDICT_NONE,     /* the machine cannot have such a graph */
    KL_VERDICT_LIMIT     /* all is well: what limits the result */
};

enum { KL_VERDICT_TEXT = 1024 };

struct kl_search_told {
    const struct kl_cluster *cluster;
    struct kl_planned planned;
    const struct kl_plan_domain *domain; /* of rank 0 */
    bool all;                            /* every attempt is wanted */
    struct kl_told_graph graph[KL_GRAPHS];
    int ngraphs;
    struct kl_cause *cause;
    int ncauses;
    struct kl_plan *searched; /* without the graph file, where one was used; else NULL */
    int verdict;
    char text[KL_VERDICT_TEXT]; /* of the verdict: the first line */
};

/** The faults of the machine, each tried without; into `told`, whose graphs are there. */
ncclResult_t kl_tell_causes(struct kl_search_told *told);

/** The loads of a graph's links, grouped. */
ncclResult_t kl_tell_links(const struct kl_topo *topo, struct kl_told_graph *graph);

/** "GPU/0 → NVS/0-0 (NVL) and 2 like it", or "all 8 links GPU → NVS (NVL)": what a group is. */
void kl_link_group_text(const struct kl_topo *topo, const struct kl_link_group *group, struct kl_text *text);

/** The first line. */
void kl_tell_verdict(struct kl_search_told *told);
const char *kl_verdict_name(int verdict);

/** Is `a` the heavier: does it help an earlier graph, or the same one more? */
bool kl_cause_outweighs(const struct kl_search_told *told, const struct kl_cause *a, const struct kl_cause *b);

/** What the machine is called for which a cause was tried. */
const char *kl_cause_mended(const struct kl_cause *cause);

/** "8 channels of 20 GB/s". */
void kl_result_line(const struct kl_result *result, struct kl_text *text);
struct kl_result kl_result_of(const struct kl_graphs *graphs, int id);

void kl_search_told_text(const struct kl_search_told *told, FILE *to);
ncclResult_t kl_search_told_json(const struct kl_search_told *told, FILE *to);

#endif
