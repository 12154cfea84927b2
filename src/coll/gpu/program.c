/* SPDX-License-Identifier: Apache-2.0 */
#include "coll/gpu/program.h"

_Static_assert((int)KL_ROW_REDUCE == (int)KL_HOP_REDUCE && (int)KL_ROW_FIRST == (int)KL_HOP_FIRST &&
                   (int)KL_ROW_FINISH == (int)KL_HOP_FINISH && (int)KL_ROW_KEEP == (int)KL_HOP_KEEP,
               "rows have the actions of hops");
_Static_assert((int)KL_ROW_LANES == (int)KL_LANES_MAX, "rows have the lanes of schedules");

enum { ACTIONS = KL_ROW_REDUCE | KL_ROW_FIRST | KL_ROW_FINISH | KL_ROW_KEEP };

/* A place of a buffer, as the part of a rank and a chunk of the loop. */
static void resolve(enum kl_layout layout, const struct kl_position *p, int place, uint32_t *part, uint32_t *chunk)
{
    *part = *chunk = 0;
    if (layout == KL_LAYOUT_CHUNKS) *chunk = (uint32_t)place;
    if (layout == KL_LAYOUT_PARTS)
        *part = (uint32_t)(p->order ? p->order[kl_wrap(place - p->index, p->nranks)] : place);
}

int kl_gpu_rows_of(const struct kl_schedule *s, const struct kl_position *p, int lane, struct kl_gpu_row *row)
{
    const int n = s->hops(p, lane);

    for (int i = 0; row && i < n; i++) {
        const struct kl_hop hop = s->hop(p, lane, i);
        row[i] = (struct kl_gpu_row){.recv = hop.recv, .send = hop.send, .actions = hop.actions};
        resolve(s->send, p, hop.own, &row[i].own_part, &row[i].own_chunk);
        resolve(s->recv, p, hop.result, &row[i].result_part, &row[i].result_chunk);
    }
    return n;
}

int kl_gpu_rows_chunks(const struct kl_schedule *s, const struct kl_position *p)
{
    return s->send == KL_LAYOUT_CHUNKS ? kl_chunks_of(p) : 1;
}

bool kl_gpu_rows_exist(const struct kl_schedule *s, const struct kl_position *p)
{
    uint32_t edges = 0, actions = 0;

    for (int lane = 0; lane < s->lanes; lane++)
        for (int i = 0; i < s->hops(p, lane); i++) {
            const struct kl_hop hop = s->hop(p, lane, i);
            edges |= hop.recv | hop.send;
            actions |= hop.actions;
        }
    return !s->follows && !(actions & ~(uint32_t)ACTIONS) && !(edges >> KL_ROW_EDGES);
}
