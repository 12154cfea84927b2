/* SPDX-License-Identifier: Apache-2.0 */
/**
 * machine.h - the machine of a log's "=== System" lines, as a document that can be planned for.
 *
 * The lines hold links, bandwidths and numbers, not everything: what they leave out is assumed, and said (kl_log_assumed).
 *
 * Errors:  ncclInvalidUsage when the lines hold no GPU, or are cut; ncclSystemError without memory.
 */
#ifndef KL_LOGS_MACHINE_H
#define KL_LOGS_MACHINE_H

#include "logs/log.h"
#include "topo/xml.h"

struct kl_log_assumed {
    int sm;              /* of all GPUs */
    const char *sm_from; /* "by its name", "by its NVLinks", "as the log does not tell" */
};

/** The document of a system that release `nccl` printed. Free with kl_xml_free. */
ncclResult_t kl_log_machine(const struct kl_log *log, int system, int nccl, struct kl_xml **xml,
                            struct kl_log_assumed *assumed);

/** The system to plan for: complete, of the lowest rank of the communicator; -1: none. */
int kl_log_system_of(const struct kl_log *log, const struct kl_log_comm *comm);

/** Are two systems alike but for ranks, NICs' identifiers and numbers of hosts? */
bool kl_log_same_machine(const struct kl_log *log, int a, int b);

#endif
