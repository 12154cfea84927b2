/* SPDX-License-Identifier: Apache-2.0 */
/** env.h - the settings of the bootstrap, as the user gave them. The only place of this folder that looks for them. */
#ifndef KL_BOOTSTRAP_ENV_H
#define KL_BOOTSTRAP_ENV_H

#include "os/socket.h"

struct kl_bootstrap_env {
    const char *comm_id;   /* NCCL_COMM_ID; NULL: not set. So with the other texts */
    const char *secret;    /* KOLO_SECRET */
    const char *ifname;    /* NCCL_SOCKET_IFNAME */
    const char *family;    /* NCCL_SOCKET_FAMILY */
    struct kl_retry retry; /* NCCL_SOCKET_RETRY_CNT, NCCL_SOCKET_RETRY_SLEEP_MSEC */
    uint64_t timeout_ms;   /* KOLO_BOOTSTRAP_TIMEOUT */
};

struct kl_bootstrap_env kl_bootstrap_env(void);

#endif
