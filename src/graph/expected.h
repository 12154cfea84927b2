/* SPDX-License-Identifier: Apache-2.0 */
/**
 * expected.h - the time an operation is expected to take, beside the time that NCCL's model predicts.
 *
 * NCCL's model serves to choose an algorithm; it is off by a factor of two at middle sizes. Here its latency is kept, and the
 * transfer is corrected: by the bandwidth that NVLinks, NVSwitches and NICs reach, and by the time that pipelines take to
 * fill. The constants were fitted to published measurements (tests/expected_fit.py). Nothing is chosen by these times.
 *
 *     expected = latency + start + ramp + tcp + bytes / bandwidth
 *
 * Units:   microseconds, GB/s (1e9 bytes), bytes.
 * Threads: pure functions.
 */
#ifndef KL_GRAPH_EXPECTED_H
#define KL_GRAPH_EXPECTED_H

#include "graph/tuning.h"

enum kl_expected_id {
    KL_EXPECTED_START,
    KL_EXPECTED_NET_START,
    KL_EXPECTED_NVLS_RAMP,
    KL_EXPECTED_TREE_RAMP,
    KL_EXPECTED_RAMP_SIZE,
    KL_EXPECTED_TCP_RAMP,
    KL_EXPECTED_TCP_SIZE,
    KL_EXPECTED_LINK_VOLTA,
    KL_EXPECTED_LINK_AMPERE,
    KL_EXPECTED_LINK_HOPPER,
    KL_EXPECTED_LINK_BLACKWELL,
    KL_EXPECTED_LINK_PAIR,
    KL_EXPECTED_NVLS_HOPPER,
    KL_EXPECTED_NVLS_BLACKWELL,
    KL_EXPECTED_NVLS_DOMAIN,
    KL_EXPECTED_NET,
    KL_EXPECTED_NET_TREE,
    KL_EXPECTED_NET_NVLS,
    KL_EXPECTED_NET_STAGED,
    KL_EXPECTED_CONSTANTS
};

struct kl_expected_constant {
    const char *name, *unit;
    double value;
    const char *meaning;
};
extern const struct kl_expected_constant kl_expected_constant[KL_EXPECTED_CONSTANTS];

enum kl_expected_limit { KL_EXPECTED_BY_MODEL, KL_EXPECTED_BY_LINKS, KL_EXPECTED_BY_SWITCHES, KL_EXPECTED_BY_NETWORK };

struct kl_expected {
    float time;                   /* 0: nothing is known that would correct the model */
    float latency;                /* of the model, with all corrections */
    float start, ramp, tcp;       /* `tcp`: until connections are at speed */
    float transfer;               /* all of these add up to `time` */
    float bandwidth;              /* GB/s of the transfer */
    enum kl_expected_limit limit; /* the part that sets the bandwidth */
};

/** Of a candidate that is not refused. Without a time: one rank, constants of CPUs, CollNet, and FP8 penalties. */
struct kl_expected kl_expected_of(const struct kl_tuning *t, const struct kl_tuning_op *op, int algo, int proto);

/** "network": stable, for programs. */
const char *kl_expected_limit_name(enum kl_expected_limit limit);

#endif
