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

struct kl_comm_config {
    int64_t bootstrap_timeout_s; /* for joining, and for each exchange of the bootstrap */
    int64_t timeout_s;           /* for operations; 0: no limit */

    int64_t buffer_bytes; /* of one connection with protocol SIMPLE; -2: Kolo decides */
    bool runtime_connect; /* at first use; else when the communicator is made */
    int64_t round_peers;  /* ranks connected with at a time */
    bool shm_disable, p2p_disable;
    int p2p_level; /* farthest path for P2P, numbered as LOC NVL NVB C2C PIX PXB PXN PHB SYS; -1: Kolo decides */
    char algo[KL_PARAM_TEXT], proto[KL_PARAM_TEXT]; /* "" or a list, as NCCL_ALGO is written */

    char hostid[KL_PARAM_TEXT]; /* "": this host is who it is */
    int64_t host_devices;       /* 0: as the topology, the job or the CPUs suggest */

    char topo_file[KL_PARAM_TEXT], topo_dump_file[KL_PARAM_TEXT]; /* "": none */
    char graph_file[KL_PARAM_TEXT], graph_dump_file[KL_PARAM_TEXT];
    int64_t topo_dump_rank, graph_dump_rank;
};

extern const struct kl_param_set kl_comm_param_set;

/** kl_param_load, and old spellings replaced by what they stand for. */
void kl_comm_config_load(struct kl_comm_config *config);

/** The same from elsewhere, for tests. Silent. */
void kl_comm_config_load_from(struct kl_comm_config *config, const struct kl_settings *from);

#endif
