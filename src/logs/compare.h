/* SPDX-License-Identifier: Apache-2.0 */
/**
 * compare.h - a log beside the plan for its machine, by the rules of its release and with its settings.
 *
 * The machine is the one that was asked for, else the one in the log's "=== System" lines. Facts that the log does not
 * print are not compared; cut lines are compared as far as they go.
 *
 * Errors:  reported with KL_FAIL for a machine that was asked for and cannot be planned; a machine of the log that cannot is
 *          no error: `why` names the missing part.
 */
#ifndef KL_LOGS_COMPARE_H
#define KL_LOGS_COMPARE_H

#include "base/text.h"
#include "logs/machine.h"
#include "plan/cluster.h"

enum kl_log_part {
    KL_PART_GRAPH,    /* channel: pattern; want, have: channels; bandwidths */
    KL_PART_CHANNELS, /* of rings and trees */
    KL_PART_NVLS,
    KL_PART_P2P,
    KL_PART_PER_PEER,
    KL_PART_RING,
    KL_PART_TREE,
    KL_PART_NIC,
    KL_PARTS
};

struct kl_log_difference {
    enum kl_log_part part;
    struct kl_log_at at;
    int channel, rank;
    int have, want; /* log, plan: numbers, or the first rank that differs (ring), the parent (tree), the NET */
    double have_bw, want_bw;
};

struct kl_log_compare {
    bool made;
    char why[256]; /* if not: the missing part; "" when nothing in the log could be compared */
    char machine[512];
    bool from_log;
    struct kl_log_assumed assumed; /* of the log's machine */
    char nccl[16];                 /* the release whose rules count */
    bool other_release;            /* it is not the log's: that is older than any that is followed, or none was found */
    int hosts, gpus, settings;     /* settings: of the log, that count for the plan */
    struct kl_log_difference *difference;
    int n, max;
    int checked[KL_PARTS], same[KL_PARTS];
};

/** `request`: the machine that was asked for, or none; its release, if given, counts instead of the log's. */
ncclResult_t kl_log_compare_make(const struct kl_log *log, const struct kl_cluster_request *request,
                                 struct kl_log_compare *compare);
void kl_log_compare_fini(struct kl_log_compare *compare);

/** "ring" */
const char *kl_log_part_name(enum kl_log_part part);

/** A sentence without its full stop. */
void kl_log_difference_text(const struct kl_log_difference *difference, struct kl_text *text);

#endif
