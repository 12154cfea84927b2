/* SPDX-License-Identifier: Apache-2.0 */
/**
 * config.h - the user's settings for the machine and for the paths through it.
 *
 * Source: NCCL's documentation of its environment variables; the topology specification, 20.
 */
#ifndef KL_TOPO_CONFIG_H
#define KL_TOPO_CONFIG_H

#include "base/param.h"
#include "topo/options.h"

struct kl_topo_config {
    bool p2p_disable, shm_disable;
    int p2p_level;
    bool nvb_disable, pxn_disable, net_disable_intra, net_force_flush, p2p_cuda_memcpy, ignore_cpu_affinity;
    int gdr_level, merge_level, merge_policy;
    bool scatter_nets, rail_per_host, split_mlopart, gdr_mlopart;
    int64_t gdr_c2c, pxn_c2c;
    int64_t gdr_read, cross_nic, p2p_pxn_level, ignore_disabled_p2p;
    char nccl[KL_NCCL_TEXT], netdevs[KL_NCCL_TEXT];
    bool ib_merge;
    bool ib_disable;            /* of net/verbs/config.h */
    char ib_hca[KL_PARAM_TEXT]; /* the same; "": all */
    char force_merge[KL_PARAM_TEXT];
    char machine[KL_PARAM_TEXT];                                  /* name of a known machine; "": none */
    char topo_file[KL_PARAM_TEXT], topo_dump_file[KL_PARAM_TEXT]; /* "": none */
    int64_t topo_dump_rank;
};

extern const struct kl_param_set kl_topo_param_set;

/** kl_param_load, as options. `config` holds texts that the options point to and must outlive them. */
void kl_topo_config_load(struct kl_topo_config *config, struct kl_topo_options *options);

/** The same from elsewhere, for tests. Silent. */
void kl_topo_config_load_from(struct kl_topo_config *config, const struct kl_settings *from,
                              struct kl_topo_options *options);

/** The release that this process follows: KOLO_NCCL_VERSION, or the default. */
int kl_topo_config_release(void);

#endif
