/* SPDX-License-Identifier: Apache-2.0 */
/**
 * op_traffic.h - bytes of an operation over each link, NIC and host: which is the busiest, and which NICs idle.
 *
 * Units:   bytes on the wire (flags of low-latency protocols included), GB/s (1e9 bytes), microseconds.
 * Errors:  ncclSystemError when memory is short; ncclInvalidUsage for CollNet, whose network is not modelled.
 * Threads: const once made.
 * Source:  the specification of the order of summation, 6.
 */
#ifndef KL_PLAN_OP_TRAFFIC_H
#define KL_PLAN_OP_TRAFFIC_H

#include "plan/order_ranges.h"
#include "plan/planned.h"

struct kl_op_traffic_request {
    int func;
    ncclDataType_t type;
    ncclRedOp_t op;
    int64_t bytes; /* of the operation: nccl-tests' size */
    int root;
    const int *pod; /* of each host; NULL: there are no pods */
};

/** Data of a NIC, or of a host through its NICs. */
struct kl_op_traffic_flow {
    int64_t payload[2], wire[2], messages[2]; /* out, in */
};

struct kl_op_traffic_nic {
    int host, dev;
    float bw;
    struct kl_op_traffic_flow flow;
};

/** A link of a host's topology in its direction. */
struct kl_op_traffic_link {
    int host, domain, link; /* link: of the domain's topology */
    float bw;
    int64_t wire;
};

/** Bytes from NICs of one number to NICs of another. */
struct kl_op_traffic_rail {
    int from, to; /* device numbers */
    int64_t wire;
};

/** Bytes from one host to another. */
struct kl_op_traffic_flight {
    int from, to;
    int64_t wire;
};

struct kl_op_traffic {
    struct kl_order_rules rules;
    struct kl_order_group group; /* the operation as it is cut: group.ops[0] */
    struct kl_op_traffic_nic *nic;
    struct kl_op_traffic_link *link; /* those with load, busiest first */
    struct kl_op_traffic_flow *host;
    struct kl_op_traffic_rail *rail;
    int nnics, nlinks, nhosts, nrails, nidle;
    int busiest_nic;                                 /* -1: none has load */
    int64_t payload, wire, messages;                 /* between ranks, and between GPUs and switches */
    int64_t across_hosts, across_rails, across_pods; /* of wire */

    /* with pods */
    struct kl_op_traffic_flight *flight; /* ascending */
    int nflights;
    int *best_order; /* of hosts: the host that takes each place. The fewest bytes across pods that were found */
    int64_t best_across_pods;
};

/** Free with kl_op_traffic_fini, also after a failure. */
ncclResult_t kl_op_traffic_find(const struct kl_op_traffic_request *request, const struct kl_cluster *cluster,
                                const struct kl_planned *planned, struct kl_op_traffic *load);
void kl_op_traffic_fini(struct kl_op_traffic *load);

/** Microseconds that a number of bytes takes at a bandwidth. */
static inline double kl_op_traffic_us(int64_t wire, float bw)
{
    return bw > 0 ? (double)wire / (1e3 * (double)bw) : 0;
}

/* ---- many operations ---- */

enum { KL_OP_TRAFFIC_NAME = 160 };

/** A sum over operations of groups of a cluster's GPUs. */
struct kl_op_traffic_sum {
    struct kl_op_traffic all; /* without rules and group */
    const int *pod;           /* of each host; NULL: there are no pods */
    int per_host;             /* links */
    char (*name)[KL_OP_TRAFFIC_NAME];
};

/**
 * Begin with the plan of all GPUs, add operations `times`, end. `host`: the host of the whole for each host of an operation's
 * plan; with pods the operation has flights (any `pod` in its request). Free with kl_op_traffic_sum_fini, also after a failure.
 */
ncclResult_t kl_op_traffic_sum_begin(const struct kl_plan *whole, const int *pod, struct kl_op_traffic_sum *sum);
ncclResult_t kl_op_traffic_sum_add(struct kl_op_traffic_sum *sum, const struct kl_plan *plan,
                                   const struct kl_op_traffic *one, const int *host, int64_t times);

/** Messages of so many bytes from one rank of the whole to another. */
struct kl_op_traffic_message {
    int from, to;
    int64_t bytes, times;
};

/** Add messages, in ascending order of `from`. ncclInvalidUsage: their bytes are too many to count. */
ncclResult_t kl_op_traffic_sum_messages(struct kl_op_traffic_sum *sum, const struct kl_plan *whole,
                                        const struct kl_op_traffic_message *message, int n);

ncclResult_t kl_op_traffic_sum_end(const struct kl_plan *whole, struct kl_op_traffic_sum *sum);
void kl_op_traffic_sum_fini(struct kl_op_traffic_sum *sum);

/** Parts of both: a NIC by its number, NULL if there is none; bytes between rails and hosts; links busiest first, idle NICs. */
struct kl_op_traffic_nic *kl_op_traffic_nic_at(const struct kl_op_traffic *traffic, int host, int dev);
ncclResult_t kl_op_traffic_add_rail(struct kl_op_traffic *traffic, int from, int to, int64_t wire);
ncclResult_t kl_op_traffic_add_flight(struct kl_op_traffic *traffic, int from, int to, int64_t wire);
void kl_op_traffic_rank(struct kl_op_traffic *traffic);

/** Look for the order of hosts that keeps the most bytes inside pods: `pod` of each host. With flights that are made. */
ncclResult_t kl_op_traffic_order(struct kl_op_traffic *traffic, const int *pod);

/** The time of the busier direction of a NIC. */
double kl_op_traffic_nic_us(const struct kl_op_traffic_nic *nic);

#endif
