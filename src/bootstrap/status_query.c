/* SPDX-License-Identifier: Apache-2.0 */
#include "bootstrap/status_query.h"

#include "base/clock.h"
#include "base/error.h"
#include "bootstrap/link.h"
#include "bootstrap/partners.h"
#include "bootstrap/peer_connect.h"
#include "bootstrap/wire.h"

#include <stdlib.h>
#include <string.h>

enum {
    GATHER_MS = 2, /* for which a rank collects answers before it forwards them */
    KEY_WIRE = 8 + 8 + 4,
    ENTRY_WIRE = 4 + 1 + 4 + KL_STATUS_BYTES,
    MOST_AT_ONCE = 1 << 20 /* bytes of answers in a frame */
};

/** Identity of a query. */
struct key {
    uint64_t epoch, question; /* epoch 0: none yet */
    int origin;
};

struct kl_status_query {
    struct kl_source *clock;                                             /* NULL: this rank is leaving */
    void (*answer)(void *ctx, uint64_t question, unsigned char *answer); /* NULL: no handler */
    void *ctx;

    struct key key;
    uint64_t since;      /* when it was received, or asked */
    int parent;          /* the rank it came from; of an own query: this rank */
    unsigned char *wait; /* answers to forward to the parent */
    size_t used, room;

    /* of own queries, by rank: */
    unsigned char *state; /* enum kl_reply_state */
    unsigned char (*answers)[KL_STATUS_BYTES];
    int32_t *waits_for;
    int known;
    bool asks;
};

/* ---- frames ---- */

static void put_key(struct kl_writer *w, const struct key *k)
{
    kl_put_uint(w, k->epoch, 8);
    kl_put_uint(w, k->question, 8);
    kl_put_uint(w, (uint32_t)k->origin, 4);
}

static struct key get_key(struct kl_reader *r)
{
    struct key k = {.epoch = kl_get_uint(r, 8), .question = kl_get_uint(r, 8)};

    k.origin = (int)kl_get_uint(r, 4);
    return k;
}

static bool is_same(const struct key *a, const struct key *b)
{
    return a->epoch == b->epoch && a->question == b->question && a->origin == b->origin;
}

static bool goes_before(const struct key *a, const struct key *b)
{
    if (a->epoch != b->epoch) return a->epoch > b->epoch;
    if (a->question != b->question) return a->question < b->question;
    return a->origin < b->origin;
}

/* Connects first if there is no connection. */
static void call_partners(struct kl_bootstrap *b, const struct kl_frame_head *head, const unsigned char *wire)
{
    int partner[KL_MAX_PARTNERS], n = kl_partners(b->rank, b->nranks, partner);

    for (int i = 0; i < n; i++) {
        struct kl_contact *peer;
        if (!b->address_records[partner[i]].naddresses || kl_contact_make(b, partner[i], &peer) ||
            peer->state != KL_LINK_NONE)
            continue;
        /* on failure its answer is missing, as if the rank was silent */
        if (kl_link_post(peer, head, wire)) (void)kl_peer_connect_begin(peer);
    }
}

static void pass_on(struct kl_bootstrap *b, int but)
{
    unsigned char wire[KEY_WIRE];
    struct kl_writer w = kl_writer_on(wire, sizeof wire);
    const struct kl_frame_head head = {.type = KL_FRAME_STATUS_QUERY, .length = sizeof wire};

    put_key(&w, &b->query->key);
    for (int rank = 0; rank < b->nranks; rank++) {
        struct kl_contact *peer = kl_contact_find(b, rank);
        if (peer && rank != but && peer->state == KL_LINK_UP) kl_link_post(peer, &head, wire);
    }
    if (b->query->key.question == KL_STATUS_QUERY_PRESENCE) call_partners(b, &head, wire);
}

static void send_answers(struct kl_bootstrap *b)
{
    struct kl_status_query *c = b->query;
    struct kl_contact *to = kl_contact_find(b, c->parent);
    const struct kl_frame_head head = {.type = KL_FRAME_STATUS_REPLIES, .length = (uint32_t)c->used};

    /* the rank on the way there has left */
    if (!to || to->state != KL_LINK_UP) to = kl_contact_find(b, c->key.origin);

    if (c->used > KEY_WIRE && to && to->state == KL_LINK_UP) kl_link_post(to, &head, c->wait);
    c->used = 0;
}

/* ---- answers ---- */

struct entry {
    int rank;
    enum kl_reply_state how;
    int32_t waits_for;
    const unsigned char *answer;
};

/* An answer to this rank's own query. A rank that has answered and then leaves stays answered. */
static void take(struct kl_bootstrap *b, const struct entry *e)
{
    struct kl_status_query *c = b->query;

    if (c->state[e->rank]) return;
    c->state[e->rank] = (unsigned char)e->how;
    c->waits_for[e->rank] = e->waits_for;
    memcpy(c->answers[e->rank], e->answer, KL_STATUS_BYTES);
    if (++c->known == b->nranks) pthread_cond_broadcast(&b->changed);
}

static bool make_room(struct kl_status_query *c, size_t bytes)
{
    size_t room = c->room ? c->room : 4096;

    while (room < c->used + bytes) room *= 2;
    if (room == c->room) return true;
    unsigned char *grown = realloc(c->wait, room);
    if (!grown) return false; /* out of memory: this answer is missing, as if the rank was silent */
    c->wait = grown;
    c->room = room;
    return true;
}

/* Collect an answer for the parent. */
static void gather(struct kl_bootstrap *b, const struct entry *e)
{
    struct kl_status_query *c = b->query;

    if (!make_room(c, KEY_WIRE + ENTRY_WIRE)) return;
    if (!c->used) {
        struct kl_writer head = kl_writer_on(c->wait, KEY_WIRE);
        put_key(&head, &c->key);
        c->used = KEY_WIRE;
        if (c->clock) kl_source_deadline(c->clock, kl_deadline_in_ms(GATHER_MS));
    }
    struct kl_writer w = kl_writer_on(c->wait + c->used, ENTRY_WIRE);
    kl_put_uint(&w, (uint32_t)e->rank, 4);
    kl_put_uint(&w, (unsigned)e->how, 1);
    kl_put_uint(&w, (uint32_t)e->waits_for, 4);
    kl_put_bytes(&w, e->answer, KL_STATUS_BYTES);
    c->used += ENTRY_WIRE;
    if (c->used >= MOST_AT_ONCE || !c->clock) send_answers(b);
}

static void hand_in(struct kl_bootstrap *b, const struct entry *e)
{
    if (b->query->key.origin == b->rank)
        take(b, e);
    else
        gather(b, e);
}

static void hand_in_left(struct kl_bootstrap *b, const struct kl_contact *peer)
{
    static const unsigned char nothing[KL_STATUS_BYTES];

    hand_in(b, &(struct entry){.rank = peer->rank,
                               .how = KL_REPLY_LEFT,
                               .waits_for = -1,
                               .answer = peer->final_status ? peer->final_status : nothing});
}

/* This rank's answer, and those of ranks that have said goodbye to it. */
static void reply_own_status(struct kl_bootstrap *b)
{
    struct kl_status_query *c = b->query;
    unsigned char own[KL_STATUS_BYTES] = {0};

    if (c->answer) c->answer(c->ctx, c->key.question, own);
    hand_in(b, &(struct entry){.rank = b->rank,
                               .how = c->answer ? KL_REPLY_RECEIVED : KL_REPLY_LEFT,
                               .waits_for = b->waits_for,
                               .answer = c->answer ? own : b->final_status});
    for (int rank = 0; rank < b->nranks; rank++) {
        struct kl_contact *peer = kl_contact_find(b, rank);
        if (peer && peer->state == KL_LINK_LEFT) hand_in_left(b, peer);
    }
}

static void on_clock(void *ctx, uint32_t events)
{
    struct kl_bootstrap *b = ctx;

    (void)events;
    pthread_mutex_lock(&b->lock);
    send_answers(b);
    pthread_mutex_unlock(&b->lock);
}

/* ---- receiving ---- */

static void on_question(struct kl_contact *peer, const struct key *key)
{
    struct kl_bootstrap *b = peer->bootstrap;
    struct kl_status_query *c = b->query;

    if (key->origin < 0 || key->origin >= b->nranks || key->origin == b->rank || !goes_before(key, &c->key)) return;
    c->key = *key;
    c->parent = peer->rank;
    c->since = kl_now_ns();
    c->used = 0;
    pass_on(b, peer->rank);
    reply_own_status(b);
}

static void on_answers(struct kl_contact *peer, const struct key *key, struct kl_reader *r)
{
    struct kl_bootstrap *b = peer->bootstrap;

    if (!is_same(key, &b->query->key)) return;
    while (r->at < r->end) {
        unsigned char answer[KL_STATUS_BYTES];
        uint64_t rank = kl_get_uint(r, 4), how = kl_get_uint(r, 1);
        int32_t waits_for = (int32_t)kl_get_uint(r, 4);
        kl_get_bytes(r, answer, sizeof answer);
        if (r->bad || rank >= (uint64_t)b->nranks || how < KL_REPLY_RECEIVED || how > KL_REPLY_LEFT || waits_for < -1 ||
            waits_for >= b->nranks)
            return;
        hand_in(b, &(struct entry){(int)rank, (enum kl_reply_state)how, waits_for, answer});
    }
}

/* Also while a query is on its way to it. */
static void on_final_status(struct kl_contact *peer, const struct kl_frame *f)
{
    unsigned char *words = f->head.length == KL_STATUS_BYTES ? malloc(KL_STATUS_BYTES) : NULL;

    if (words) memcpy(words, f->body, KL_STATUS_BYTES);
    free(peer->final_status);
    peer->final_status = words;
    if (peer->bootstrap->query->key.epoch) hand_in_left(peer->bootstrap, peer);
}

void kl_status_query_on_frame(struct kl_contact *peer, const struct kl_frame *f)
{
    struct kl_bootstrap *b = peer->bootstrap;
    struct kl_reader r = kl_reader_on(f->body, f->head.length);
    const struct key key = get_key(&r);

    pthread_mutex_lock(&b->lock);
    if (f->head.type == KL_FRAME_BYE) on_final_status(peer, f);
    if (!r.bad && f->head.type == KL_FRAME_STATUS_QUERY) on_question(peer, &key);
    if (!r.bad && f->head.type == KL_FRAME_STATUS_REPLIES) on_answers(peer, &key, &r);
    pthread_mutex_unlock(&b->lock);
}

/* ---- asking ---- */

static ncclResult_t make_tables(struct kl_bootstrap *b)
{
    struct kl_status_query *c = b->query;
    size_t n = (size_t)b->nranks;

    free(c->state);
    free(c->answers);
    free(c->waits_for);
    c->state = calloc(n, 1);
    c->waits_for = calloc(n, sizeof *c->waits_for);
    c->answers = calloc(n, sizeof *c->answers); /* zero pages: touched when answers arrive */
    c->known = 0;
    return c->state && c->answers && c->waits_for ? ncclSuccess : KL_NOMEM("the answers of all ranks");
}

/* May another rank's query be used in place of an own one? */
static bool serves(const struct kl_bootstrap *b, uint64_t question, uint64_t fresh_ms)
{
    const struct kl_status_query *c = b->query;

    return c->key.epoch && c->key.origin != b->rank && c->key.question <= question &&
           kl_now_ns() - c->since < fresh_ms * 1000000u;
}

static ncclResult_t ask(struct kl_bootstrap *b, uint64_t question, uint64_t fresh_ms)
{
    struct kl_status_query *c = b->query;

    c->asks = !serves(b, question, fresh_ms);
    if (!c->asks) return ncclSuccess;
    ncclResult_t rc = make_tables(b);
    c->asks = !rc;
    if (rc) return rc;
    c->key = (struct key){.epoch = c->key.epoch + 1, .question = question, .origin = b->rank};
    c->parent = b->rank;
    c->since = kl_now_ns();
    c->used = 0;
    reply_own_status(b);
    pass_on(b, b->rank);
    return ncclSuccess;
}

ncclResult_t kl_bootstrap_query(struct kl_bootstrap *b, uint64_t question, uint64_t fresh_ms)
{
    KL_TRY(kl_state_check_owner(b));
    pthread_mutex_lock(&b->lock);
    ncclResult_t rc = ask(b, question, fresh_ms);
    pthread_mutex_unlock(&b->lock);
    return rc;
}

/* Under lock. */
static int known_of(const struct kl_status_query *c, const struct kl_bootstrap *b)
{
    return c->asks && c->key.origin == b->rank ? c->known : -1;
}

int kl_status_query_presence(struct kl_bootstrap *b, unsigned char *state, int32_t *waits_for)
{
    const struct kl_status_query *c = b->query;
    size_t n = (size_t)b->nranks;

    pthread_mutex_lock(&b->lock);
    int known = known_of(c, b);
    if (known >= 0) {
        memcpy(state, c->state, n);
        memcpy(waits_for, c->waits_for, n * sizeof *waits_for);
    }
    pthread_mutex_unlock(&b->lock);
    return known;
}

int kl_bootstrap_query_replies(struct kl_bootstrap *b, unsigned char *state, unsigned char (*answers)[KL_STATUS_BYTES])
{
    const struct kl_status_query *c = b->query;
    size_t n = (size_t)b->nranks;

    if (kl_state_inherited(b)) return -1;
    pthread_mutex_lock(&b->lock);
    int known = known_of(c, b);
    if (known >= 0 && state) memcpy(state, c->state, n);
    if (known >= 0 && answers) memcpy(answers, c->answers, n * sizeof *answers);
    pthread_mutex_unlock(&b->lock);
    return known;
}

void kl_bootstrap_on_query(struct kl_bootstrap *b, void (*answer)(void *ctx, uint64_t question, unsigned char *answer),
                           void *ctx)
{
    struct kl_status_query *c = b->query;

    pthread_mutex_lock(&b->lock);
    if (!answer && c->answer) {
        c->answer(c->ctx, KL_STATUS_FINAL, b->final_status);
        b->has_last_words = true;
    }
    c->answer = answer;
    c->ctx = ctx;
    pthread_mutex_unlock(&b->lock);
}

/* ---- life ---- */

ncclResult_t kl_status_query_create(struct kl_bootstrap *b)
{
    b->query = calloc(1, sizeof *b->query);
    if (!b->query) return KL_NOMEM("a bootstrap");
    b->query->parent = b->rank;
    return kl_loop_add(b->loop, -1, 0, on_clock, b, &b->query->clock);
}

void kl_status_query_stop(struct kl_bootstrap *b)
{
    if (!b->query) return;
    pthread_mutex_lock(&b->lock);
    struct kl_source *clock = b->query->clock;
    b->query->clock = NULL;
    send_answers(b);
    pthread_mutex_unlock(&b->lock);
    kl_source_remove(clock);
}

void kl_status_query_free(struct kl_bootstrap *b)
{
    if (!b->query) return;
    free(b->query->wait);
    free(b->query->state);
    free(b->query->answers);
    free(b->query->waits_for);
    free(b->query);
    b->query = NULL;
}
