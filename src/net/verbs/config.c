/* SPDX-License-Identifier: Apache-2.0 */
#include "net/verbs/config.h"

#include "net/net.h"
#include "os/rdma_param.h"

static const char *const families[] = {"AF_INET", "AF_INET6", NULL};

/* KL_OWN: each end chooses for itself, and both use the lower number of queue pairs. GID tables differ between hosts. */
static const struct kl_param rows[] = {
    KL_RDMA_PORT_ROWS(struct kl_verbs_params, hca, disable),
    KL_PARAM_STRING(struct kl_verbs_params, library, "NCCL_IBVERBS_LIB", KL_OWN, "",
                    "file of libibverbs; without it libibverbs.so and libibverbs.so.1 are tried"),
    KL_PARAM_INT(struct kl_verbs_params, gid_index, "NCCL_IB_GID_INDEX", KL_OWN, "-1", 0, 255,
                 "GID of the port's table to use over RoCE; -1 chooses one for each connection"),
    KL_PARAM_INT(struct kl_verbs_params, roce_version, "NCCL_IB_ROCE_VERSION_NUM", KL_OWN, "2", 1, 2,
                 "version of RoCE that a GID is chosen for"),
    KL_PARAM_ENUM(struct kl_verbs_params, family, "NCCL_IB_ADDR_FAMILY", KL_OWN, "AF_INET", families,
                  "address family that a GID is chosen for"),
    KL_PARAM_INT(struct kl_verbs_params, timeout, "NCCL_IB_TIMEOUT", KL_OWN, "20", 1, 31,
                 "time until an unanswered packet is sent again, 4.096 us times two to the power of this"),
    KL_PARAM_INT(struct kl_verbs_params, retry_count, "NCCL_IB_RETRY_CNT", KL_OWN, "7", 0, 7,
                 "how often it is sent again before the connection fails"),
    KL_PARAM_INT(struct kl_verbs_params, service_level, "NCCL_IB_SL", KL_OWN, "-1", 0, 15,
                 "InfiniBand service level; -1: from NCCL_IB_TC, else 0"),
    KL_PARAM_INT(struct kl_verbs_params, traffic_class, "NCCL_IB_TC", KL_OWN, "-1", 0, 255,
                 "traffic class of RoCE packets (DSCP in the upper six bits); -1: 0"),
    KL_PARAM_INT(struct kl_verbs_params, pkey, "NCCL_IB_PKEY", KL_OWN, "0", 0, 65535,
                 "index of the partition key in the port's table"),
    KL_PARAM_INT(struct kl_verbs_params, qps, "NCCL_IB_QPS_PER_CONNECTION", KL_OWN, "1", 1, KL_VERBS_QPS_MAX,
                 "queue pairs that the data of a connection are spread over"),
};

const struct kl_param_set kl_verbs_param_set = KL_PARAM_SET("verbs", struct kl_verbs_params, rows);
