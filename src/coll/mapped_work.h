/* SPDX-License-Identifier: Apache-2.0 */
/** mapped_work.h - Mapped (mapped.h) once all ranks' buffers are known: a rank's share of the work, piece by piece. */
#ifndef KL_COLL_MAPPED_WORK_H
#define KL_COLL_MAPPED_WORK_H

#include "coll/mapped.h"

/** Bytes of a rank's buffers. */
size_t kl_mapped_send_bytes(const struct kl_mapped_op *op);
size_t kl_mapped_recv_bytes(const struct kl_mapped_op *op);

/** Work on the next piece, between kl_arena_touch and kl_arena_let_go. True: there is no more. */
bool kl_mapped_work(struct kl_mapped_op *op);

#endif
