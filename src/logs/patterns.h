/* SPDX-License-Identifier: Apache-2.0 */
/**
 * patterns.h - the table of messages that mean trouble: those of NCCL 2.18 and later, RCCL, plugins, PyTorch, vLLM, launchers.
 *
 * A row names words of the message, the place it comes from (a part of its source file or function), the CUDA error in it, the
 * releases that print it, and facts that other lines of the log must show. The first row that fits decides. Meaning and
 * remedy belong to its cause (causes.h).
 *
 * Threads: const.
 */
#ifndef KL_LOGS_PATTERNS_H
#define KL_LOGS_PATTERNS_H

#include "logs/causes.h"

/** Facts of the whole log on which a meaning can depend. */
enum kl_log_when {
    KL_WHEN_TESTS = 1,     /* nccl-tests or rccl-tests printed lines */
    KL_WHEN_CUMEM_OFF = 2, /* NCCL_CUMEM_ENABLE=0 */
    KL_WHEN_GDR_OFF = 4,   /* GPUDirect RDMA is refused by the driver of a NIC, or DMA-BUF is missing */
    KL_WHEN_CONNECTED = 8  /* a retried connection came about */
};

/** Programs that print messages. */
enum kl_log_source {
    KL_SOURCE_NCCL,
    KL_SOURCE_RCCL,
    KL_SOURCE_OFI,
    KL_SOURCE_LIBFABRIC,
    KL_SOURCE_TCPX,
    KL_SOURCE_FASTSOCKET,
    KL_SOURCE_SHARP,
    KL_SOURCE_TESTS,
    KL_SOURCE_PYTORCH,
    KL_SOURCE_VLLM,
    KL_SOURCE_SYSTEM, /* kernel, scheduler, launcher */
    KL_SOURCES
};

enum { KL_PATTERN_WORDS = 3 };

struct kl_log_pattern {
    enum kl_log_source source;
    const char *word[KL_PATTERN_WORDS]; /* all of them stand in the message; NULL: none */
    const char *place; /* one of these stands in its source file or function: "p2p.cc|nvls.cc"; NULL: any */
    int cuda;          /* number of the CUDA error in it; 0: any or none, -1: any */
    int since, until;  /* releases that print it: 21900; 0: no bound */
    unsigned when;     /* of enum kl_log_when: all must hold */
    enum kl_log_cause cause;
};

/** A message, with all that decides about its meaning. */
struct kl_log_message {
    const char *text, *where;
    bool loud;     /* a warning of a library */
    int release;   /* 0 unknown: rows of any release fit */
    unsigned when; /* of enum kl_log_when */
};

/** The row for a message; NULL: none fits. */
const struct kl_log_pattern *kl_pattern_of(const struct kl_log_message *message);

/** "NCCL", "aws-ofi-nccl", ... */
const char *kl_source_name(enum kl_log_source source);

/** Rows of the table, for tests and documents. */
const struct kl_log_pattern *kl_pattern_at(int row);
int kl_patterns(void);

#endif
