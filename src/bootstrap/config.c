/* SPDX-License-Identifier: Apache-2.0 */
#include "bootstrap/config.h"

static const char *const families[] = {"AF_INET", "AF_INET6", NULL};

static const struct kl_param rows[] = {
    KL_PARAM_KEY_OR_ADDRESS(struct kl_bootstrap_params, nccl_comm_id, "NCCL_COMM_ID", KL_OWN, "",
                            "host:port where rank 0 waits for the others; no id needs to be exchanged"),
    KL_PARAM_KEY_OR_ADDRESS(struct kl_bootstrap_params, kolo_comm_id, "KOLO_COMM_ID", KL_OWN, "",
                            "the job's id for koloInitFromEnv: 256 hex digits, or host:port of a rendezvous"),
    KL_PARAM_SECRET(struct kl_bootstrap_params, secret, "KOLO_SECRET", KL_OWN, "",
                    "password that all ranks of a job share when an id is only host:port"),
    KL_PARAM_SECRET(struct kl_bootstrap_params, psk, "KOLO_PSK", KL_OWN, "",
                    "pre-shared key (ncclSetEncryption): a rank with an id can join only if it has the same key"),
    KL_PARAM_STRING(struct kl_bootstrap_params, open_to, "KOLO_OPEN_TO", KL_OWN, "",
                    "other hosts that may join at a host:port without KOLO_SECRET: addresses, networks, or 1 for all"),
    KL_PARAM_STRING(struct kl_bootstrap_params, socket_ifname, "NCCL_SOCKET_IFNAME", KL_OWN, "",
                    "network interfaces to use: prefixes \"eth,ib\", all others \"^docker,lo\", exact names \"=eth0\""),
    KL_PARAM_ENUM(struct kl_bootstrap_params, socket_family, "NCCL_SOCKET_FAMILY", KL_OWN, "", families,
                  "addresses to use: IPv4 or IPv6; unset takes either"),
    KL_PARAM_INT(struct kl_bootstrap_params, retries, "NCCL_SOCKET_RETRY_CNT", KL_OWN, "34", 0, 10000,
                 "how often a refused connection is tried again"),
    KL_PARAM_INT(struct kl_bootstrap_params, retry_sleep_ms, "NCCL_SOCKET_RETRY_SLEEP_MSEC", KL_OWN, "100", 0, 60000,
                 "milliseconds before the first retry; the n-th waits n times as long"),
};

const struct kl_param_set kl_bootstrap_param_set = KL_PARAM_SET("bootstrap", struct kl_bootstrap_params, rows);
