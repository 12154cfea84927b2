/* SPDX-License-Identifier: Apache-2.0 */
/**
 * rankenv.h - the environment of one rank: the launcher's own, with the variables that describe the job put in.
 *
 * KOLO_RANK, KOLO_SIZE, KOLO_LOCAL_RANK, KOLO_LOCAL_SIZE, KOLO_COMM_ID, and torchrun's RANK, WORLD_SIZE, LOCAL_RANK,
 * LOCAL_WORLD_SIZE, MASTER_ADDR, MASTER_PORT; NCCL_HOSTID, NCCL_TOPO_FILE, KOLO_MNNVL, KOLO_HOST_DEVICES and KOLO_NET_SPEED where they apply.
 */
#ifndef KOLO_TOOL_RANKENV_H
#define KOLO_TOOL_RANKENV_H

struct kl_rank_env {
    int rank, size, local_rank, local_size;
    const char *comm_id; /* NULL: none, and none inherited */
    const char *master_addr;
    int master_port;
    const char *host_id; /* NULL: as inherited; the same for the two below */
    const char *topo_file;
    int host_devices; /* 0: as inherited; the same for the next two */
    int mnnvl;        /* the number of its NVLink domain */
    int link_mbps;    /* of the host's interface, in Mb/s */
};

/** A new environment, to be freed by kl_rank_environ_free. NULL: out of memory. */
char **kl_rank_environ(char *const *inherited, const struct kl_rank_env *rank);
void kl_rank_environ_free(char **env);

#endif
