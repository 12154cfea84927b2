/* SPDX-License-Identifier: Apache-2.0 */
/** order_chunk.h - bytes of a chunk of an operation, which is reduced and passed on in one step. */
#ifndef KL_PLAN_ORDER_CHUNK_H
#define KL_PLAN_ORDER_CHUNK_H

#include "plan/order_cut.h"

/** For `count` elements on `nchannels` channels: a part of one channel, or the whole of all of them. */
int64_t kl_order_chunk(const struct kl_order_rules *rules, int func, ncclDataType_t type,
                       const struct kl_tuning_choice *choice, int nchannels, int64_t count);

#endif
