/* SPDX-License-Identifier: Apache-2.0 */
/**
 * redop_table.h - the tables from which redop.c selects kernels: type by operation, one for each instruction set.
 *
 * The tables are listed best first. A table may lack kernels (combine is NULL): a later one has them, and runs on any
 * processor. Every table gives the same results, bit for bit.
 */
#ifndef KL_DEVICE_HOST_REDOP_TABLE_H
#define KL_DEVICE_HOST_REDOP_TABLE_H

#include "device/host/redop.h"

#include <stdbool.h>

/** As in struct kl_redop. */
struct kl_redop_kernels {
    void (*first)(const struct kl_redop *op, void *dst, const void *own, size_t count);
    void (*combine)(const struct kl_redop *op, void *dst, const void *partial, const void *own, size_t count);
    void (*last)(const struct kl_redop *op, void *dst, size_t count);
    /* combine three times; not for means. May be NULL */
    void (*four)(void *dst, const void *const in[4], size_t count);
};

struct kl_redop_table {
    const char *name;
    bool (*usable)(void);                                 /* does this processor have the instructions? */
    const struct kl_redop_kernels (*kernels)[ncclNumOps]; /* [type][op] */
};

/** All tables of this build, best first, ended by one without name. */
extern const struct kl_redop_table kl_redop_tables[];

/** Everything but the arithmetic of fp16 and fp8. */
extern const struct kl_redop_kernels kl_redop_baseline[ncclNumTypes][ncclNumOps];
extern const struct kl_redop_kernels kl_redop_avx2[ncclNumTypes][ncclNumOps];
extern const struct kl_redop_kernels kl_redop_avx512[ncclNumTypes][ncclNumOps];

/** The arithmetic of fp16 and fp8. */
extern const struct kl_redop_kernels kl_redop_smallfloat[ncclNumTypes][ncclNumOps];
extern const struct kl_redop_kernels kl_redop_f16c[ncclNumTypes][ncclNumOps];

#endif
