/* SPDX-License-Identifier: Apache-2.0 */
/** type_named.h - data types by the names that people give them: NCCL's, nccl-tests', and those of frameworks. */
#ifndef KL_ANSWER_TYPE_NAMED_H
#define KL_ANSWER_TYPE_NAMED_H

#include "include/nccl.h"

#include <stdbool.h>

/** "float", "fp32", "ncclFloat32", "bf16", in either case. */
bool kl_type_named(const char *name, ncclDataType_t *type);

#endif
