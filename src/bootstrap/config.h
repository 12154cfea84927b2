/* SPDX-License-Identifier: Apache-2.0 */
/**
 * config.h - parameters of the bootstrap.
 *
 * Source: NCCL's documentation of its environment variables; the runtime specification, 2.1, 2.2 and 8.3.
 */
#ifndef KL_BOOTSTRAP_CONFIG_H
#define KL_BOOTSTRAP_CONFIG_H

#include "base/param.h"

enum kl_socket_family { KL_SOCKET_ANY = -1, KL_SOCKET_IPV4, KL_SOCKET_IPV6 };

struct kl_bootstrap_params {
    char nccl_comm_id[KL_PARAM_TEXT]; /* "host:port" of the root, or "" */
    char kolo_comm_id[KL_PARAM_TEXT]; /* 256 hex digits, or "host:port" of a rendezvous, or "" */
    char secret[KL_PARAM_TEXT];
    char psk[KL_PARAM_TEXT];
    char open_to[KL_PARAM_TEXT];       /* admission.h */
    char socket_ifname[KL_PARAM_TEXT]; /* list of prefixes, ^ excludes, = is exact; "": automatic */
    int socket_family;                 /* enum kl_socket_family */
    int64_t retries, retry_sleep_ms;
};

extern const struct kl_param_set kl_bootstrap_param_set;

#endif
