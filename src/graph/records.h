/* SPDX-License-Identifier: Apache-2.0 */
/** records.h - access to the records of ranks, where one record may serve many ranks. */
#ifndef KL_GRAPH_RECORDS_H
#define KL_GRAPH_RECORDS_H

#include "graph/connect.h"

static inline const struct kl_rank_record *kl_record(const struct kl_ranks *ranks, int rank)
{
    return &ranks->record[ranks->which ? ranks->which[rank] : rank];
}

static inline int kl_shift(const struct kl_ranks *ranks, int rank)
{
    return ranks->shift ? ranks->shift[rank] : 0;
}

/** A rank out of a record, seen from a machine `shift` ranks further; -1 stays. */
static inline int kl_shifted(int rank, int shift)
{
    return rank < 0 ? rank : rank + shift;
}

#endif
