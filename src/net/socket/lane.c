/* SPDX-License-Identifier: Apache-2.0 */
#include "net/socket/lane.h"

#include <errno.h>

bool kl_lane_has_room(const struct kl_socket_lane *lane)
{
    return kl_load_relaxed(&lane->put) - kl_load_acquire(&lane->taken) < KL_PARTS;
}

void kl_lane_put(struct kl_socket_lane *lane, const struct kl_lane_part *part)
{
    uint64_t put = kl_load_relaxed(&lane->put);

    lane->part[put % KL_PARTS] = *part;
    kl_store_release(&lane->put, put + 1);
}

bool kl_lane_is_idle(const struct kl_socket_lane *lane)
{
    return kl_load_acquire(&lane->taken) == kl_load_acquire(&lane->put);
}

static enum kl_flow send_part(struct kl_socket_lane *lane, const struct kl_lane_part *part)
{
    if (!lane->out.busy) kl_out_begin(&lane->out, KL_HEAD_PART, part->bytes, 0, part->data, part->bytes);
    return kl_out_move(&lane->out);
}

static enum kl_flow receive_part(struct kl_socket_lane *lane, const struct kl_lane_part *part)
{
    struct kl_head head;

    if (!lane->headed) {
        enum kl_flow flow = kl_in_head(&lane->in, &head);
        if (flow) return flow;
        if (head.kind != KL_HEAD_PART || head.bytes != part->bytes) return KL_FLOW_FORGED;
        lane->headed = true;
    }
    enum kl_flow flow = kl_in_data(&lane->in, part->data, part->bytes);
    if (!flow) lane->headed = false;
    return flow;
}

bool kl_lane_move(struct kl_socket_lane *lane, bool sends)
{
    while (!kl_load_relaxed(&lane->flow) && !kl_lane_is_idle(lane)) {
        uint64_t taken = kl_load_relaxed(&lane->taken);
        const struct kl_lane_part part = lane->part[taken % KL_PARTS];
        enum kl_flow flow = sends ? send_part(lane, &part) : receive_part(lane, &part);

        if (flow == KL_FLOW_BLOCKED) return true;
        if (flow) {
            lane->err = errno;
            kl_store_release(&lane->flow, flow);
            return false;
        }
        kl_store_release(&lane->taken, taken + 1); /* before the count reaches 0: a finished request may be reused */
        kl_fetch_sub_acq_rel(part.left, 1);
    }
    return false;
}
