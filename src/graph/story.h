/* SPDX-License-Identifier: Apache-2.0 */
/**
 * story.h - a summary of a search: consecutive attempts without a better result are one entry, an attempt with one another.
 */
#ifndef KL_GRAPH_STORY_H
#define KL_GRAPH_STORY_H

#include "graph/graph.h"

/** Smallest and largest of a wish over a chapter's attempts, or the first and the last. */
struct kl_range {
    int from, to;
};

struct kl_chapter {
    int first, last; /* attempts */
    int pass;
    struct kl_range type_intra, type_inter, cross_nic, same_channels, pattern;
    float bw_from, bw_to;         /* inside the machine, first and last */
    float inter_from, inter_to;   /* the same to the network */
    int stored;                   /* channels of the solution that it stored; 0: nothing better */
    int made, repeated, hopeless; /* attempts: really made, like an earlier one, and not made; the sum is all */
    int timeouts;                 /* of those made */
    long long steps;
    int limiting_link; /* that refused most often; -1 if none did */
    int next;          /* enum kl_relaxation after the last attempt */
};

struct kl_story {
    int nchapters;
    struct kl_chapter chapter[];
};

/** The i-th attempt as a chapter of its own. */
struct kl_chapter kl_story_attempt(const struct kl_graph_why *why, int i);

/** All attempts as one chapter; without any, one in which nothing was tried. */
ncclResult_t kl_story_whole(const struct kl_graph_why *why, const struct kl_topo *topo, struct kl_chapter *chapter);

/** Free with free(). */
ncclResult_t kl_story_create(const struct kl_graph_why *why, const struct kl_topo *topo, struct kl_story **story);

#endif
