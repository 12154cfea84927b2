/* SPDX-License-Identifier: Apache-2.0 */
/**
 * config.h - what users may set for communicators, and the values in force.
 *
 * Each communicator loads its own copy when it is created and does not look again.
 * Source: NCCL's documentation of its environment variables; the runtime specification, 8.3.
 */
#ifndef KL_COMM_CONFIG_H
#define KL_COMM_CONFIG_H

#include "base/param.h"
#include "comm/wish.h"

struct kl_comm_config {
    int64_t bootstrap_timeout_s; /* for joining, and for each exchange of the bootstrap */
    int64_t timeout_s;           /* for operations; 0: no limit */

    int64_t buffer_bytes; /* of one connection with protocol SIMPLE; -2: Kolo decides */
    bool runtime_connect; /* at first use; else when the communicator is made */
    int64_t round_peers;  /* ranks connected with at a time */

    int check_mode;              /* enum kl_check_mode */
    int kernel_copies;           /* enum kl_kernel_copies */
    uint32_t select;             /* bits, enum kl_select_word */
    char profile[KL_PARAM_TEXT]; /* words of kl_profile_parse; "": none */
    bool lends;              /* let others read and write what is sent and received where it lies, if they can map it */
    bool huge_pages;         /* for memory that large operations use again and again */
    bool ahead;              /* post what queued operations send before their turn */
    bool deterministic;      /* sums of floating-point numbers have the bits of a loop over the ranks */
    bool local_register;     /* ncclCommRegister does what it says */
    int64_t blocking;        /* 0 or 1, over what a program asks for; -1: as that says */
    char net[KL_PARAM_TEXT]; /* the same for the network; "" */

    int64_t dump_signal; /* at which states are printed; -1: none */
    bool ras_enable;
    char ras_address[256]; /* host:port */
    int64_t ras_timeout_factor;
    char trace[KL_PARAM_TEXT];           /* pattern of a file; "": there is no trace */
    int64_t trace_events;                /* room for so many; a power of two is used */
    char flight_recorder[KL_PARAM_TEXT]; /* pattern of a file; "": it is written only when the program asks */

    char hostid[KL_PARAM_TEXT]; /* "": this host is who it is */
    int64_t mnnvl;              /* emulated hosts with the same number form one NVLink domain; 0: this one is none's */
};

extern const struct kl_param_set kl_comm_param_set;

/** kl_param_load. */
void kl_comm_config_load(struct kl_comm_config *config);

/** What this host is called: NCCL_HOSTID, or what the system says. */
void kl_comm_config_host(const struct kl_comm_config *config, char *name, size_t bytes);
/** Does a call of a communicator return when it is done? */
bool kl_comm_config_blocking(const struct kl_comm_config *config, const struct kl_wish *wish);

/** Which network is asked for, by name; "": any. */
const char *kl_comm_config_net(const struct kl_comm_config *config, const struct kl_wish *wish);

#endif
