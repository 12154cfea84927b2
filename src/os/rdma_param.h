/* SPDX-License-Identifier: Apache-2.0 */
/** rdma_param.h - rows of the parameters that select RDMA ports: the RDMA net declares them, and plans follow them. */
#ifndef KL_OS_RDMA_PARAM_H
#define KL_OS_RDMA_PARAM_H

#include "base/param.h"

/** `hca`: a text of KL_PARAM_TEXT bytes, for kl_netif_name_matches; `disable`: a bool. Fields of struct T. */
#define KL_RDMA_PORT_ROWS(T, hca, disable)                                                                             \
    KL_PARAM_STRING(                                                                                                   \
        T, hca, "NCCL_IB_HCA", KL_HOST_ALIKE, "",                                                                      \
        "RDMA ports to use: prefixes \"mlx5_0:1,mlx5_2\", all others \"^mlx5_3\", exact names \"=mlx5_0\""),           \
        KL_PARAM_BOOL(T, disable, "NCCL_IB_DISABLE", KL_HOST_ALIKE, "0",                                               \
                      "use sockets, even where a machine has InfiniBand or RoCE")

#endif
