/* SPDX-License-Identifier: Apache-2.0 */
/**
 * causes.h - meanings of trouble, and their remedies. Which message has which meaning: patterns.h.
 *
 * A remedy consists of clauses with "; " between them. A clause that recommends NAME=VALUE is left out where the log shows
 * that this is set (remedy.h).
 *
 * Threads: const.
 */
#ifndef KL_LOGS_CAUSES_H
#define KL_LOGS_CAUSES_H

#include <stdbool.h>

/** Worst first: causes that stop a job, consequences, causes that cost bandwidth, remarks. */
enum kl_log_cause {
    KL_CAUSE_NONE,
    /* a job cannot go on */
    KL_CAUSE_VERSIONS,
    KL_CAUSE_NO_DRIVER,
    KL_CAUSE_DRIVER_OLD,
    KL_CAUSE_NO_KERNEL,
    KL_CAUSE_FABRIC_MANAGER,
    KL_CAUSE_GPU_BROKEN,
    KL_CAUSE_XID,
    KL_CAUSE_PROGRAM_FAULT,
    KL_CAUSE_TESTS_FAULT,
    KL_CAUSE_FORK,
    KL_CAUSE_DUPLICATE_GPU,
    KL_CAUSE_RANK_COUNT,
    KL_CAUSE_RANK_TWICE,
    KL_CAUSE_PEER_HIDDEN,
    KL_CAUSE_DEVICE_NUMBER,
    KL_CAUSE_NVML_HIDDEN,
    KL_CAUSE_USAGE,
    KL_CAUSE_NVLS_SLOTS,
    KL_CAUSE_NVLS_FABRIC,
    KL_CAUSE_NVLS_CUMEM,
    KL_CAUSE_NVLS_BIND,
    KL_CAUSE_MNNVL_IMEX,
    KL_CAUSE_XML_NODES,
    KL_CAUSE_GRAPH_FILE,
    KL_CAUSE_TOPO_FILE,
    KL_CAUSE_SHM_ZERO,
    KL_CAUSE_SHM_SMALL,
    KL_CAUSE_SHM_GONE,
    KL_CAUSE_SHM_PEER,
    KL_CAUSE_GPU_MEMORY,
    KL_CAUSE_REGISTER,
    KL_CAUSE_REG_MEMORY,
    KL_CAUSE_GDR_REGISTER,
    KL_CAUSE_MEMLOCK,
    KL_CAUSE_NIC_ACCESS,
    KL_CAUSE_OPEN_FILES,
    KL_CAUSE_THREADS,
    KL_CAUSE_NO_INTERFACE,
    KL_CAUSE_NO_NETWORK,
    KL_CAUSE_NO_TRANSPORT,
    KL_CAUSE_GID_EMPTY,
    KL_CAUSE_IB_NO_ROUTE,
    KL_CAUSE_IB_RETRY,
    KL_CAUSE_IB_ACCESS,
    KL_CAUSE_IB_PORT,
    KL_CAUSE_EFA_SECURITY,
    KL_CAUSE_EFA_PEER,
    KL_CAUSE_EFA_MEMORY,
    KL_CAUSE_EFA_DOMAIN,
    KL_CAUSE_TCPX_MANAGER,
    KL_CAUSE_FABRIC,
    KL_CAUSE_BOOTSTRAP_DEFECT,
    KL_CAUSE_BOOTSTRAP_SIZE,
    KL_CAUSE_IPC,
    KL_CAUSE_UNGROUPED,
    KL_CAUSE_SIZES,
    KL_CAUSE_NO_ALGORITHM,
    KL_CAUSE_RINGS,
    KL_CAUSE_NVML,
    KL_CAUSE_CUDA,
    KL_CAUSE_UNREACHABLE,
    /* consequences of other failures */
    KL_CAUSE_CALLS,
    KL_CAUSE_TIMEOUT,
    KL_CAUSE_STORE,
    KL_CAUSE_PEER_GONE,
    KL_CAUSE_PROXY,
    KL_CAUSE_FAILED,
    KL_CAUSE_KILLED,
    KL_CAUSE_ABORTED,
    KL_CAUSE_XID_CLEANUP,
    /* it goes on, slower or by another way */
    KL_CAUSE_FALLBACK,
    KL_CAUSE_TOPO_FILE_GONE,
    KL_CAUSE_P2P_OFF,
    KL_CAUSE_P2P_FAILED,
    KL_CAUSE_PLUGIN_FAILED,
    KL_CAUSE_PLUGIN_NO_GDR,
    KL_CAUSE_SHARP,
    KL_CAUSE_NO_IB,
    KL_CAUSE_NO_VERBS,
    KL_CAUSE_IOMMU,
    KL_CAUSE_NUMA_BALANCING,
    KL_CAUSE_FINE_GRAIN,
    KL_CAUSE_CUSTOM_OFF,
    KL_CAUSE_NO_CPU_HINT,
    KL_CAUSE_FABRIC_NOTE,
    KL_CAUSE_PLUGIN_SYMBOL,
    KL_CAUSE_RAS,
    KL_CAUSE_RETRY_CAME,
    KL_CAUSE_RETRY,
    KL_CAUSE_IB_EVENT,
    KL_CAUSES
};

enum kl_log_weight { KL_LOG_STOPS, KL_LOG_FOLLOWS, KL_LOG_COSTS, KL_LOG_REMARK, KL_LOG_WEIGHTS };

struct kl_cause_facts {
    const char *name; /* "no_kernel" */
    enum kl_log_weight weight;
    const char *text;   /* its meaning, a sentence without its full stop */
    const char *remedy; /* clauses, "; " between them, without a full stop; NULL: none */
};
const struct kl_cause_facts *kl_cause_facts(enum kl_log_cause cause);

/** The meaning of an Xid that the driver reports in a line of the kernel's log; KL_CAUSE_NONE: it has none. */
enum kl_log_cause kl_xid_cause(const char *text);

#endif
