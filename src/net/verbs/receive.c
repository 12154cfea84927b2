/* SPDX-License-Identifier: Apache-2.0 */
#include "net/verbs/receive.h"

#include "net/verbs/queue.h"

#include <inttypes.h>
#include <string.h>

enum { PULLS = KL_NET_REQUESTS * KL_NET_RECVS, MOST_AT_ONCE = 1 << 30 };

static void nonsense(struct kl_verbs_link *l)
{
    kl_verbs_fail(l, ncclRemoteError, "rank %d at %s sends rank %d messages that make no sense", l->peer, l->where,
                  l->rank);
}

/* ---- matching ---- */

static struct kl_verbs_message *find_in(struct kl_verbs_recv *r, uint32_t tag)
{
    for (int i = 0; i < r->n; i++)
        if (!r->message[i].met && r->message[i].tag == tag) return &r->message[i];
    return NULL;
}

/* The first posted receive of this tag. */
static struct kl_verbs_message *find(const struct kl_verbs_link *l, uint32_t tag, struct kl_verbs_recv **of)
{
    struct kl_verbs_message *m = NULL;

    for (struct kl_verbs_request *r = l->posted.first; r && !m; r = r->next) {
        *of = (struct kl_verbs_recv *)r;
        m = find_in(*of, tag);
    }
    return m;
}

/* All requests are in use, so a message without a receive now would never get one. */
static void wait_for_receive(struct kl_verbs_link *l, uint32_t tag)
{
    if (!l->free_recvs)
        kl_verbs_fail(l, ncclInvalidUsage,
                      "rank %d has sent a message with tag %d, and none of the %d receives that rank %d has posted is "
                      "for that; the ranks disagree about the next message",
                      l->peer, (int)tag, KL_NET_REQUESTS, l->rank);
}

static void refuse(struct kl_verbs_link *l, const struct kl_verbs_slot *slot, const struct kl_verbs_message *m)
{
    const struct kl_verbs_record r = {
        .type = KL_VERBS_REFUSED, .sent = slot->bytes, .posted = m->bytes, .tag = slot->tag};

    kl_verbs_link_tell(l, &r);
    kl_verbs_fail(l, ncclInvalidUsage,
                  "rank %d at %s has sent %" PRIu64 " bytes (tag %d) to rank %d, which has posted %zu; sizes and "
                  "settings have to be alike on all ranks",
                  l->peer, l->where, slot->bytes, (int)slot->tag, l->rank, m->bytes);
}

static void message_done(struct kl_verbs_recv *r)
{
    if (!--r->left) r->request.done = true;
}

static void meet(struct kl_verbs_link *l, const struct kl_verbs_slot *slot, struct kl_verbs_recv *of,
                 struct kl_verbs_message *m)
{
    m->met = true;
    m->came = slot->bytes;
    if (!--of->unmet) kl_verbs_list_remove(&l->posted, &of->request);
    if (slot->kind == KL_VERBS_HAS_DATA) {
        memcpy(m->data, slot->data, slot->bytes);
        message_done(of);
        return;
    }
    l->pull[l->pulls % PULLS].of = of;
    l->pull[l->pulls++ % PULLS].message = m;
}

/* Consume the oldest message. False: it has to wait. */
static bool take(struct kl_verbs_link *l)
{
    const struct kl_verbs_slot *in = &l->rings->in[l->taken % KL_VERBS_SLOTS];
    struct kl_verbs_slot slot;
    struct kl_verbs_recv *of = NULL;

    memcpy(&slot, in, offsetof(struct kl_verbs_slot, data));
    bool has_data = slot.kind == KL_VERBS_HAS_DATA;
    if (has_data && slot.bytes <= KL_VERBS_EAGER) memcpy(slot.data, in->data, slot.bytes);
    if (slot.kind == KL_VERBS_GOES_BACK) {
        l->called_back = true;
        l->back = slot.tag;
        return true;
    }
    if (slot.kind == KL_VERBS_LEAVES) return l->left_in = true;
    if ((!has_data && slot.kind != KL_VERBS_ANNOUNCES) || (has_data != (slot.bytes <= KL_VERBS_EAGER))) {
        nonsense(l);
        return false;
    }
    if (!l->in) return false;
    struct kl_verbs_message *m = find(l, slot.tag, &of);
    if (!m)
        wait_for_receive(l, slot.tag);
    else if (slot.bytes > m->bytes)
        refuse(l, &slot, m);
    else
        meet(l, &slot, of, m);
    return m && !l->failed;
}

void kl_verbs_recv_message(struct kl_verbs_link *l)
{
    if (l->messages_in - l->taken == KL_VERBS_SLOTS)
        nonsense(l);
    else
        l->messages_in++;
}

/* ---- data of large messages ---- */

/* Request the next piece of a message. False: not now. */
static bool request_piece(struct kl_verbs_link *l, struct kl_verbs_recv *of, struct kl_verbs_message *m)
{
    uint64_t at = l->cts_out % KL_VERBS_REQUESTED;
    struct kl_verbs_piece *p = &l->piece[at];
    size_t bytes = m->came - m->asked, most = l->mine.max_message;
    unsigned char *to = m->data + m->asked;
    int stage = -1;

    if (p->of) return false;
    if (l->theirs.max_message < most) most = l->theirs.max_message;
    if (most > MOST_AT_ONCE) most = MOST_AT_ONCE;
    if (!m->memory) {
        stage = kl_verbs_stage_take(l, &l->stage_in);
        if (stage < 0) return false;
        to = l->stage_in.data + (size_t)stage * KL_VERBS_STAGE_BYTES;
        if (most > KL_VERBS_STAGE_BYTES) most = KL_VERBS_STAGE_BYTES;
    }
    if (bytes > most) bytes = most;
    l->rings->cts_out[at] = (struct kl_verbs_cts){.addr = (uint64_t)(uintptr_t)to,
                                                  .bytes = bytes,
                                                  .rkey = m->memory ? m->memory->mr->rkey : l->stage_in.mr->rkey,
                                                  .number = (uint32_t)l->cts_out};
    const struct kl_verbs_write w = {.data = &l->rings->cts_out[at],
                                     .bytes = sizeof l->rings->cts_out[at],
                                     .lkey = l->mr->lkey,
                                     .rkey = l->theirs.rkey,
                                     .to = l->theirs.memory + offsetof(struct kl_verbs_rings, cts_in) +
                                           at * sizeof l->rings->cts_in[0],
                                     .opcode = KL_IBV_WRITE_IMM,
                                     .imm = kl_verbs_imm(KL_VERBS_CTS, l->taken),
                                     .what = {.stage = -1}};
    if (!kl_verbs_queue_write(l, 0, &w)) {
        if (stage >= 0) l->stage_in.used &= ~(1u << stage);
        return false;
    }
    l->told = l->taken;
    *p = (struct kl_verbs_piece){
        .number = l->cts_out++, .of = of, .message = m, .from = m->asked, .bytes = bytes, .stage = (int8_t)stage};
    m->asked += bytes;
    return true;
}

static void request_data(struct kl_verbs_link *l)
{
    while (l->pulled < l->pulls) {
        struct kl_verbs_message *m = l->pull[l->pulled % PULLS].message;
        if (!request_piece(l, l->pull[l->pulled % PULLS].of, m)) return;
        if (m->asked == m->came) l->pulled++;
    }
}

void kl_verbs_recv_data(struct kl_verbs_link *l, uint32_t number)
{
    struct kl_verbs_piece *p = &l->piece[number % KL_VERBS_REQUESTED];

    if (!p->of || kl_verbs_imm_ahead(number, p->number)) {
        nonsense(l);
        return;
    }
    struct kl_verbs_message *m = p->message;
    if (p->stage >= 0) {
        memcpy(m->data + p->from, l->stage_in.data + (size_t)p->stage * KL_VERBS_STAGE_BYTES, p->bytes);
        l->stage_in.used &= ~(1u << p->stage);
    }
    m->arrived += p->bytes;
    if (m->arrived == m->came) message_done(p->of);
    p->of = NULL;
}

/* The peer has left, and nothing of it can complete a receive any more. */
static bool is_over(const struct kl_verbs_link *l)
{
    return l->left_in && l->taken == l->messages_in && l->posted.first;
}

void kl_verbs_recv_work(struct kl_verbs_link *l)
{
    while (!l->failed && l->taken < l->messages_in && take(l)) l->taken++;
    if (l->failed) return;
    request_data(l);
    if (is_over(l))
        kl_verbs_fail(l, ncclRemoteError,
                      "rank %d has lost its connection with rank %d at %s: the other side closed it", l->rank, l->peer,
                      l->where);
}
