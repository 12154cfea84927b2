/* SPDX-License-Identifier: Apache-2.0 */
/**
 * timeline_make.h - shared by the files of a timeline.
 *
 *     timeline_flows.c   the edges of all channels, and over which links they run
 *     timeline.c         their loads over time
 *     timeline_rows.c    links that are busy at the same times
 */
#ifndef KL_PLAN_TIMELINE_MAKE_H
#define KL_PLAN_TIMELINE_MAKE_H

#include "plan/timeline.h"

enum { KL_FLOW_AFTER = 3 };

/** An edge of a channel, in one direction. */
struct kl_flow {
    int first_link, nlinks;           /* in kl_flows.link */
    int after[KL_FLOW_AFTER], nafter; /* flows whose chunks it passes on; none: it has all */
    double own;                       /* bytes that it can send before any of these have arrived */
    double total, sent;               /* bytes */
    double most, rate;                /* bytes per microsecond: of its channel, and now */
};

/** Links of all hosts are numbered host by host, and within a host domain by domain. */
struct kl_flows {
    const struct kl_plan *plan;
    int graph;
    double chunk; /* bytes */
    struct kl_flow *flow;
    int nflows, room;
    int *link; /* of all flows */
    int nuses, uses_room;
    int nlinks, links_per_host;
    int *first_of_domain; /* in a host */
    double *bw, *demand;  /* by link: bytes per microsecond */
    float *carried;       /* by link and bin: bytes */
};

ncclResult_t kl_flows_init(struct kl_flows *flows, int64_t bytes);
ncclResult_t kl_timeline_fold(const struct kl_flows *flows, struct kl_timeline *timeline);

#endif
