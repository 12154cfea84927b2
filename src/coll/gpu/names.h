/* SPDX-License-Identifier: Apache-2.0 */
/** names.h - the kernels' names, and the kernel of a reduction. */
#ifndef KL_COLL_GPU_NAMES_H
#define KL_COLL_GPU_NAMES_H

#include "coll/engine/task.h"
#include "coll/gpu/kernels.h"

/** By enum kl_kernel. */
extern const char *const kl_kernel_names[KL_KERNEL_COUNT];

/** The kernel of a task that reduces; it has been checked (type, operator). */
enum kl_kernel kl_kernel_of(const struct kl_task *task);

/** The same in switches (NVLS); KL_KERNEL_COUNT: they cannot do it. */
enum kl_kernel kl_nvls_kernel_of(const struct kl_task *task);

#endif
