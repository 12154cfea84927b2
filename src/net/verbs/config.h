/* SPDX-License-Identifier: Apache-2.0 */
/**
 * config.h - parameters of the RDMA net: the NCCL_IB_* settings that have an effect in Kolo.
 *
 * Source:   NCCL's documentation of NCCL_IB_*; the specification of plugins and RDMA, C6.
 */
#ifndef KL_NET_VERBS_CONFIG_H
#define KL_NET_VERBS_CONFIG_H

#include "base/param.h"

enum { KL_VERBS_QPS_MAX = 8 };

enum kl_verbs_family { KL_VERBS_IPV4, KL_VERBS_IPV6 };

struct kl_verbs_params {
    bool disable;
    char hca[KL_PARAM_TEXT];     /* "": all */
    char library[KL_PARAM_TEXT]; /* "": the usual names */
    int64_t gid_index;           /* -1: choose */
    int64_t roce_version;
    int family; /* enum kl_verbs_family */
    int64_t timeout, retry_count;
    int64_t service_level, traffic_class; /* -1: 0 */
    int64_t pkey;
    int64_t qps;
};

#endif
