/* SPDX-License-Identifier: Apache-2.0 */
/**
 * choose.h - which algorithm and protocol an operation uses, and which ones exist.
 */
#ifndef KL_COLL_CHOOSE_H
#define KL_COLL_CHOOSE_H

#include "include/nccl.h"

/** The one algorithm and protocol that there is for host devices. */
extern const char kl_choose_algo[], kl_choose_proto[];

/**
 * Do the texts of NCCL_ALGO and NCCL_PROTO ("" is unset) leave something that is implemented? A list of names, `^` before
 * it excludes them; NCCL_ALGO may be "function:list;function:list". Otherwise ncclInvalidUsage, saying what there is.
 */
ncclResult_t kl_choose_check(const char *algo, const char *proto);

#endif
