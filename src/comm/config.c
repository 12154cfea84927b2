/* SPDX-License-Identifier: Apache-2.0 */
#include "comm/config.h"

/* The names of path types in their order, then the numbers that NCCL took before it had names. */
static const char *const levels[] = {"LOC", "NVL", "NVB", "C2C", "PIX", "PXB", "PXN", "PHB",
                                     "SYS", "0",   "1",   "2",   "3",   "4",   "5",   NULL};
enum { LOC = 0, PIX = 4, PXB = 5, PHB = 7, SYS = 8, FIRST_NUMBER = 9 };

static const struct kl_param rows[] = {
    KL_PARAM_INT(struct kl_comm_config, bootstrap_timeout_s, "KOLO_BOOTSTRAP_TIMEOUT", "60", 1, 86400,
                 "seconds to wait for other ranks while a communicator is set up"),
    KL_PARAM_INT(struct kl_comm_config, timeout_s, "KOLO_TIMEOUT", "0", 0, 604800,
                 "seconds after which an operation that makes no progress fails; 0 is never"),
    KL_PARAM_SIZE(struct kl_comm_config, buffer_bytes, "NCCL_BUFFSIZE", "-2", 4096, 1 << 30,
                  "buffer of one connection between two ranks; -2 lets Kolo decide"),
    KL_PARAM_BOOL(struct kl_comm_config, runtime_connect, "NCCL_RUNTIME_CONNECT", "1",
                  "connect what an algorithm needs at its first use; 0: when a communicator is made"),
    KL_PARAM_INT(struct kl_comm_config, round_peers, "NCCL_CONNECT_ROUND_MAX_PEERS", "128", 1, INT32_MAX,
                 "ranks that one rank connects with at a time"),
    KL_PARAM_BOOL(struct kl_comm_config, shm_disable, "NCCL_SHM_DISABLE", "0",
                  "do not connect ranks of one host through shared memory"),
    KL_PARAM_BOOL(struct kl_comm_config, p2p_disable, "NCCL_P2P_DISABLE", "0",
                  "do not let ranks access each other's buffers directly"),
    KL_PARAM_ENUM(struct kl_comm_config, p2p_level, "NCCL_P2P_LEVEL", "", levels,
                  "longest path between two devices for which direct access is used; unset lets Kolo decide"),
    KL_PARAM_STRING(struct kl_comm_config, algo, "NCCL_ALGO", "",
                    "algorithms to choose from, as in \"ring,tree\", \"^tree\" or \"ring;allreduce:tree\""),
    KL_PARAM_STRING(struct kl_comm_config, proto, "NCCL_PROTO", "",
                    "protocols to choose from, written like NCCL_ALGO: LL, LL128, Simple"),
    KL_PARAM_STRING(struct kl_comm_config, hostid, "NCCL_HOSTID", "",
                    "name of this host for the question which ranks share one; tells emulated hosts apart"),
    KL_PARAM_INT(
        struct kl_comm_config, host_devices, "KOLO_HOST_DEVICES", "0", 1, 4096,
        "CPU devices of this process; 0: the topology file's, else the job's ranks here, else the CPUs (at least 8)"),
    KL_PARAM_STRING(struct kl_comm_config, topo_file, "NCCL_TOPO_FILE", "",
                    "topology to use instead of what is found on this machine (XML)"),
    KL_PARAM_STRING(struct kl_comm_config, topo_dump_file, "NCCL_TOPO_DUMP_FILE", "",
                    "file to write the topology in use to (XML)"),
    KL_PARAM_INT(struct kl_comm_config, topo_dump_rank, "NCCL_TOPO_DUMP_FILE_RANK", "0", 0, INT32_MAX,
                 "the rank that writes NCCL_TOPO_DUMP_FILE"),
    KL_PARAM_STRING(struct kl_comm_config, graph_file, "NCCL_GRAPH_FILE", "",
                    "rings and trees to use instead of searching them (XML)"),
    KL_PARAM_STRING(struct kl_comm_config, graph_dump_file, "NCCL_GRAPH_DUMP_FILE", "",
                    "file to write the rings and trees in use to (XML)"),
    KL_PARAM_INT(struct kl_comm_config, graph_dump_rank, "NCCL_GRAPH_DUMP_FILE_RANK", "0", 0, INT32_MAX,
                 "the rank that writes NCCL_GRAPH_DUMP_FILE"),
};

const struct kl_param_set kl_comm_param_set = KL_PARAM_SET("comm", struct kl_comm_config, rows);

static int level_of_number(int number)
{
    static const int meanings[] = {LOC, PIX, PXB, PHB, SYS, SYS};

    return meanings[number];
}

static void replace_old_spellings(struct kl_comm_config *config)
{
    if (config->p2p_level >= FIRST_NUMBER) config->p2p_level = level_of_number(config->p2p_level - FIRST_NUMBER);
}

void kl_comm_config_load(struct kl_comm_config *config)
{
    kl_param_load(&kl_comm_param_set, config);
    replace_old_spellings(config);
}

void kl_comm_config_load_from(struct kl_comm_config *config, const struct kl_settings *from)
{
    kl_param_load_from(&kl_comm_param_set, config, from);
    replace_old_spellings(config);
}
