/* SPDX-License-Identifier: Apache-2.0 */
/**
 * config.h - the settings of communicators, and the values in force.
 *
 * Each communicator loads its own copy when it is created and never reads them again.
 * Source: NCCL's documentation of its environment variables; the runtime specification, 8.3.
 */
#ifndef KL_COMM_CONFIG_H
#define KL_COMM_CONFIG_H

#include "base/param.h"
#include "comm/setup/nccl_config.h"

struct kl_comm_config {
    int64_t bootstrap_timeout_s; /* for joining, and for each exchange of the bootstrap */
    int64_t timeout_s;           /* for operations; 0: no limit */

    int64_t buffer_bytes; /* of one connection with protocol SIMPLE; -2: default */
    bool runtime_connect; /* connect at first use; else when the communicator is made */
    int64_t round_peers;  /* ranks connected to at a time */

    int check_mode;              /* enum kl_check_mode */
    int kernel_copies;           /* enum kl_kernel_copies */
    uint32_t select;             /* bits, enum kl_select_word */
    char profile[KL_PARAM_TEXT]; /* words of kl_profile_parse; "": none */
    bool peer_direct;            /* let other ranks read and write user buffers in place, if they can map them */
    bool huge_pages;             /* for memory that large operations use repeatedly */
    bool ahead;                  /* post the data of queued operations before their turn */
    bool deterministic;          /* sums of floating-point numbers have the bits of a loop over the ranks */
    bool local_register;         /* ncclCommRegister registers memory */
    int64_t blocking;            /* 0 or 1, overrides the program's choice; -1: the program's choice */
    char net[KL_PARAM_TEXT];     /* name of the network; "" */

    int64_t dump_signal; /* at which states are printed; -1: none */
    bool ras_enable;
    char ras_address[256]; /* host:port */
    int64_t ras_timeout_factor;
    char trace[KL_PARAM_TEXT];           /* pattern of a file; "": there is no trace */
    int64_t trace_events;                /* capacity; rounded up to a power of two */
    char flight_recorder[KL_PARAM_TEXT]; /* pattern of a file; "": it is written only when the program asks */

    char hostid[KL_PARAM_TEXT]; /* "": this host's own name */
    int64_t mnnvl;              /* emulated hosts with the same number form one NVLink domain; 0: this host is in
                                 * none */
};

extern const struct kl_param_set kl_comm_param_set;

/** kl_param_load. */
void kl_comm_config_load(struct kl_comm_config *config);

/** The name of this host: NCCL_HOSTID, or the system's. */
void kl_comm_config_host(const struct kl_comm_config *config, char *name, size_t bytes);
/** Do calls of a communicator block until they are done? */
bool kl_comm_config_blocking(const struct kl_comm_config *config, const struct kl_nccl_config *nccl_config);

/** Name of the requested network; "": any. */
const char *kl_comm_config_net(const struct kl_comm_config *config, const struct kl_nccl_config *nccl_config);

#endif
