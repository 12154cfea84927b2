/* SPDX-License-Identifier: Apache-2.0 */
/**
 * search_log.h - a summary of a search: consecutive attempts without a better result are one entry, an attempt with one another.
 */
#ifndef KL_GRAPH_SEARCH_LOG_H
#define KL_GRAPH_SEARCH_LOG_H

#include "graph/graph.h"

/** Smallest and largest value of a limit over an entry's attempts, or the first and the last. */
struct kl_range {
    int from, to;
};

struct kl_search_log_entry {
    int first, last; /* attempts */
    int pass;
    struct kl_range type_intra, type_inter, cross_nic, same_channels, pattern;
    float bw_from, bw_to;         /* inside the machine, first and last */
    float inter_from, inter_to;   /* the same to the network */
    int stored;                   /* channels of the solution that was stored; 0: no better solution */
    int made, repeated, hopeless; /* numbers of attempts: made, equal to an earlier one, pruned; they add up to all */
    int timeouts;                 /* among the made ones */
    long long steps;
    int limiting_link; /* the link that refused most often; -1 if none did */
    int next;          /* enum kl_relaxation after the last attempt */
};

struct kl_search_log {
    int log_entries;
    struct kl_search_log_entry entry[];
};

/** The i-th attempt as an entry of its own. */
struct kl_search_log_entry kl_search_log_attempt(const struct kl_graph_why *why, int i);

/** All attempts as one entry, also if there are none. */
ncclResult_t kl_search_log_total(const struct kl_graph_why *why, const struct kl_topo *topo,
                                 struct kl_search_log_entry *entry);

/** Free with free(). */
ncclResult_t kl_search_log_create(const struct kl_graph_why *why, const struct kl_topo *topo,
                                  struct kl_search_log **log);

#endif
