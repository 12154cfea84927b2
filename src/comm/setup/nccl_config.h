/* SPDX-License-Identifier: Apache-2.0 */
/**
 * nccl_config.h - the program's configuration of a communicator: ncclConfig_t, of every version of NCCL that has one.
 *
 * The struct grew at its end from version to version, and twice into its tail padding: so its size bounds the readable
 * bytes, and its version tells which of them are defined.
 *
 * Values:  an integer that is undefined is NCCL_CONFIG_UNDEF_INT, a text that is undefined is "".
 * Source:  features.md 1.11, the runtime specification 1.5; NCCL's documentation of ncclConfig_t.
 */
#ifndef KL_COMM_SETUP_NCCL_CONFIG_H
#define KL_COMM_SETUP_NCCL_CONFIG_H

#include "include/nccl.h"

#include <stdbool.h>

enum { KL_NCCL_CONFIG_TEXT = 64, KL_WISH_RMA_SIGNALS = 1024 /* at most */ };

struct kl_nccl_config {
    /* these have an effect: */
    int blocking;                   /* 0: long operations return ncclInProgress */
    int min_ctas, max_ctas;         /* limits of the number of channels */
    int nvls_ctas;                  /* channels of NVLS */
    int per_net_peer;               /* channels of messages towards ranks of other nodes */
    int collnet;                    /* reductions in the network are allowed */
    int rma_contexts;               /* of one-sided operations */
    int rma_signals;                /* of each of these contexts */
    int nvls_mode;                  /* flags of ncclNvlsHostMode_t */
    char net[KL_NCCL_CONFIG_TEXT];  /* the network by name */
    char name[KL_NCCL_CONFIG_TEXT]; /* of the communicator, for logs */

    /* only checked; host devices do not use them: */
    int cga_cluster;                 /* thread blocks of a cluster */
    int split_share, shrink_share;   /* children have connections of their own, made at first use */
    int traffic_class;               /* of a network that knows classes */
    int cta_policy;                  /* number of a GPU's cores to leave */
    int nvlink_centric;              /* order of all-to-all in kernels */
    int graph_usage, graph_ordering; /* CUDA graphs */
    int p2p_peers;                   /* resources of kernels for each peer */
    int launch_order;                /* order of kernels of several communicators */
    int rma_eager;                   /* when one-sided operations are set up */
    int cft;                         /* counted fabric writes; never ncclHostCftEnable */
};

/** Nothing is asked for. */
extern const struct kl_nccl_config kl_nccl_config_unset;

/**
 * Read an ncclConfig_t, of any version; NULL asks for nothing. A wrong magic or value: ncclInvalidArgument,
 * naming it; a feature that host devices lack: ncclInvalidUsage.
 */
ncclResult_t kl_nccl_config_read(const ncclConfig_t *config, const char *function, struct kl_nccl_config *nccl_config);

/** Call `visit` for every field that all ranks of a communicator have to set alike; "": undefined. */
typedef void kl_nccl_config_visitor(void *ctx, const char *name, const char *value);
void kl_nccl_config_visit_alike(const struct kl_nccl_config *nccl_config, kl_nccl_config_visitor *visit, void *ctx);

/** Does the program forbid NVLS? */
static inline bool kl_nccl_config_forbids_nvls(const struct kl_nccl_config *nccl_config)
{
    return nccl_config->nvls_mode != NCCL_CONFIG_UNDEF_INT && nccl_config->nvls_mode & ncclNvlsHostModeDisableTransport;
}

/** A value, or the default where it is undefined. */
static inline int kl_nccl_config_or(int value, int otherwise)
{
    return value == NCCL_CONFIG_UNDEF_INT ? otherwise : value;
}

#endif
