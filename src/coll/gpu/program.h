/* SPDX-License-Identifier: Apache-2.0 */
/** program.h - a schedule of a rank as rows: pure. */
#ifndef KL_COLL_GPU_PROGRAM_H
#define KL_COLL_GPU_PROGRAM_H

#include "coll/gpu/rows.h"
#include "coll/schedule/schedule.h"

/** The number of rows of a lane, and the rows. `row`: room for them; NULL: only count. */
int kl_gpu_rows_of(const struct kl_schedule *schedule, const struct kl_position *position, int lane,
                   struct kl_gpu_row *row);

/** Can rows say all that the schedule does? Exchanges (KL_HOP_MERGE) and lanes that follow each other have none. */
bool kl_gpu_rows_exist(const struct kl_schedule *schedule, const struct kl_position *position);

/** Chunks of a loop. */
int kl_gpu_rows_chunks(const struct kl_schedule *schedule, const struct kl_position *position);

#endif
