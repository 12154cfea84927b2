/* SPDX-License-Identifier: Apache-2.0 */
#include "net/verbs/send.h"

#include "net/verbs/queue.h"

#include <string.h>

/* ---- slots ---- */

/* Is there a free slot at the peer, and is its copy here no longer read? */
static bool has_slot(const struct kl_verbs_link *l)
{
    bool was_used = l->messages_out >= KL_VERBS_SLOTS;

    if (l->messages_out - l->peer_taken >= KL_VERBS_SLOTS) return false;
    return !was_used || l->slot_wr[l->messages_out % KL_VERBS_SLOTS] < l->queue[0].done;
}

static uint64_t place_of(const struct kl_verbs_link *l, size_t offset)
{
    return l->theirs.memory + offset;
}

static bool send_slot(struct kl_verbs_link *l, const struct kl_verbs_slot *head, const void *data, size_t bytes,
                      struct kl_verbs_send *of)
{
    uint64_t at = l->messages_out % KL_VERBS_SLOTS;
    struct kl_verbs_slot *slot = &l->rings->out[at];
    struct kl_verbs_write w = {.data = slot,
                               .bytes = offsetof(struct kl_verbs_slot, data) + bytes,
                               .lkey = l->mr->lkey,
                               .rkey = l->theirs.rkey,
                               .to = place_of(l, offsetof(struct kl_verbs_rings, in) + at * sizeof *slot),
                               .opcode = KL_IBV_WRITE_IMM,
                               .imm = kl_verbs_imm(KL_VERBS_MESSAGE, l->taken),
                               .signals = true,
                               .what = {.of = of, .stage = -1}};

    if (!has_slot(l)) return false;
    memcpy(slot, head, offsetof(struct kl_verbs_slot, data));
    if (bytes) memcpy(slot->data, data, bytes);
    l->slot_wr[at] = l->queue[0].posted;
    if (!kl_verbs_queue_write(l, 0, &w)) return false;
    l->messages_out++;
    l->told = l->taken;
    if (of) of->left++;
    return true;
}

bool kl_verbs_send_back(struct kl_verbs_link *l, uint32_t id)
{
    const struct kl_verbs_slot head = {.kind = KL_VERBS_GOES_BACK, .tag = id};

    return send_slot(l, &head, NULL, 0, NULL);
}

void kl_verbs_send_leave(struct kl_verbs_link *l, bool sender)
{
    const struct kl_verbs_slot head = {.kind = KL_VERBS_LEAVES};

    if (sender) (void)send_slot(l, &head, NULL, 0, NULL);
}

void kl_verbs_send_credit(struct kl_verbs_link *l)
{
    const struct kl_verbs_write w = {.to = l->theirs.memory,
                                     .rkey = l->theirs.rkey,
                                     .opcode = KL_IBV_WRITE_IMM,
                                     .imm = kl_verbs_imm(KL_VERBS_CREDIT, l->taken),
                                     .what = {.stage = -1}};

    if (l->taken - l->told >= KL_VERBS_CREDITS && kl_verbs_queue_write(l, 0, &w)) l->told = l->taken;
}

void kl_verbs_send_credited(struct kl_verbs_link *l, uint32_t imm)
{
    uint64_t more = kl_verbs_imm_ahead(imm, l->peer_taken);

    if (more > l->messages_out - l->peer_taken)
        kl_verbs_fail(l, ncclRemoteError, "rank %d at %s acknowledges messages that rank %d has not sent", l->peer,
                      l->where, l->rank);
    else
        l->peer_taken += more;
}

/* ---- messages ---- */

static bool is_eager(const struct kl_verbs_send *s)
{
    return s->bytes <= KL_VERBS_EAGER;
}

/* The receiver matches messages with receives, in their order; so a large message is announced, and requested when its
 * receive is known. A step of a pipeline posts the receive of its data when its line has come, so this costs no time. */
static bool send_message(struct kl_verbs_link *l, struct kl_verbs_send *s)
{
    const struct kl_verbs_slot head = {
        .kind = is_eager(s) ? KL_VERBS_HAS_DATA : KL_VERBS_ANNOUNCES, .tag = s->tag, .bytes = s->bytes};

    if (is_eager(s)) return send_slot(l, &head, s->data, s->bytes, s);
    return send_slot(l, &head, NULL, 0, NULL);
}

static void send_waiting(struct kl_verbs_link *l)
{
    struct kl_verbs_request *r;

    while ((r = l->waiting.first)) {
        struct kl_verbs_send *s = (struct kl_verbs_send *)r;
        if (!send_message(l, s)) return;
        kl_verbs_list_remove(&l->waiting, r);
        if (!is_eager(s)) kl_verbs_list_append(&l->announced, r);
    }
}

void kl_verbs_send_requested(struct kl_verbs_link *l)
{
    struct kl_verbs_asked *a = &l->asked[l->cts_seen % KL_VERBS_REQUESTED];
    struct kl_verbs_send *s = (struct kl_verbs_send *)l->announced.first;
    struct kl_verbs_cts cts;

    memcpy(&cts, &l->rings->cts_in[l->cts_seen % KL_VERBS_REQUESTED], sizeof cts);
    bool expected = s && l->cts_seen - l->cts_done < KL_VERBS_REQUESTED && cts.number == (uint32_t)l->cts_seen;
    if (!expected || !cts.bytes || cts.bytes > s->bytes - s->asked) {
        kl_verbs_fail(l, ncclRemoteError, "rank %d at %s requests data that rank %d does not send", l->peer, l->where,
                      l->rank);
        return;
    }
    *a = (struct kl_verbs_asked){.cts = cts, .of = s, .from = s->asked};
    s->asked += cts.bytes;
    l->cts_seen++;
    if (s->asked == s->bytes) kl_verbs_list_remove(&l->announced, &s->request);
}

/* Write the next part of the requested data: all of it from registered memory, else as much as a piece of the stage holds.
 * False: not now. */
static bool write_part(struct kl_verbs_link *l, struct kl_verbs_asked *a)
{
    struct kl_verbs_send *s = a->of;
    const unsigned char *data = s->data + a->from + a->written;
    size_t bytes = a->cts.bytes - a->written;
    int stage = -1;

    if (!s->memory) {
        stage = kl_verbs_stage_take(l, &l->stage_out);
        if (stage < 0) return false;
        if (bytes > KL_VERBS_STAGE_BYTES) bytes = KL_VERBS_STAGE_BYTES;
        data = memcpy(l->stage_out.data + (size_t)stage * KL_VERBS_STAGE_BYTES, data, bytes);
    }
    bool last = a->written + bytes == a->cts.bytes;
    const struct kl_verbs_write w = {.data = data,
                                     .bytes = bytes,
                                     .lkey = s->memory ? s->memory->mr->lkey : l->stage_out.mr->lkey,
                                     .rkey = a->cts.rkey,
                                     .to = a->cts.addr + a->written,
                                     .opcode = last ? KL_IBV_WRITE_IMM : KL_IBV_WRITE,
                                     .imm = kl_verbs_imm(KL_VERBS_DATA, a->cts.number),
                                     .signals = true,
                                     .of_gpu = s->memory && s->memory->of_gpu,
                                     .what = {.of = s, .stage = (int8_t)stage}};
    if (!kl_verbs_queue_write(l, (int)(a->cts.number % (uint32_t)l->nqueues), &w)) {
        if (stage >= 0) l->stage_out.used &= ~(1u << stage);
        return false;
    }
    a->written += bytes;
    s->written += bytes;
    s->left++;
    return true;
}

void kl_verbs_send_work(struct kl_verbs_link *l)
{
    while (l->cts_done < l->cts_seen) {
        struct kl_verbs_asked *a = &l->asked[l->cts_done % KL_VERBS_REQUESTED];
        while (a->written < a->cts.bytes)
            if (!write_part(l, a)) break;
        if (a->written < a->cts.bytes) break;
        l->cts_done++;
    }
    send_waiting(l);
}

static void complete(struct kl_verbs_link *l, const struct kl_verbs_wr *wr)
{
    struct kl_verbs_send *s = wr->of;

    if (wr->stage >= 0) l->stage_out.used &= ~(1u << wr->stage);
    if (s && !--s->left && (is_eager(s) || s->written == s->bytes)) s->request.done = true;
}

void kl_verbs_send_completed(struct kl_verbs_link *l, int queue, uint64_t number)
{
    struct kl_verbs_queue *q = &l->queue[queue];

    while (q->done <= number && q->done < q->posted) complete(l, &q->wr[q->done++ % KL_VERBS_SQ]);
}
