/* SPDX-License-Identifier: Apache-2.0 */
#include "answer/trace_messages.h"

#include "answer/trace_calls.h"
#include "base/error.h"
#include "plan/order.h"

#include <stdlib.h>
#include <string.h>

enum { MOST = 1 << 22, SENT = 1, RECEIVED = 2 };

/* A side's view of messages, while it is not known which belong together. */
struct side {
    int from, to, way;
    int64_t bytes;
};

struct sides {
    struct side *side;
    int n, max;
};

bool kl_trace_is_message(const struct kl_record_call *c)
{
    char plain[64];

    if (c->kind == KL_CALL_SEND || c->kind == KL_CALL_RECV) return true;
    kl_trace_plain_name(c->name, plain, sizeof plain);
    return c->kind == KL_CALL_COLLECTIVE && !strncmp(plain, "alltoall", 8);
}

/* Room for one more element. */
static ncclResult_t grow(void **list, int n, int *max, size_t size)
{
    if (n < *max) return ncclSuccess;
    const int more = *max ? 2 * *max : 64;
    void *grown = realloc(*list, (size_t)more * size);

    if (!grown) return KL_NOMEM("messages of a trace");
    *list = grown;
    *max = more;
    return ncclSuccess;
}

static ncclResult_t add_message(struct kl_trace_messages *m, const struct kl_op_traffic_message *x)
{
    if (m->n >= MOST)
        return KL_FAIL(ncclInvalidUsage, "the trace has messages of more than %d kinds: give a part of it", MOST);
    KL_TRY(grow((void **)&m->message, m->n, &m->max, sizeof *m->message));
    m->message[m->n++] = *x;
    return ncclSuccess;
}

/* ---- sends and receives ---- */

static ncclResult_t add_side(struct kl_trace_messages *m, struct sides *s, const struct kl_record_call *c)
{
    const int own = m->record->member[c->member].rank;
    const bool sends = c->kind == KL_CALL_SEND;
    ncclDataType_t type;
    const int64_t bytes = kl_trace_bytes(c, &type);

    if (own < 0 || own >= m->nranks || c->peer < 0 || c->peer >= m->nranks || bytes < 1 || bytes > KL_ORDER_BYTES)
        return kl_trace_skip(m->trace, c->name), ncclSuccess;
    if (s->n >= MOST) return KL_FAIL(ncclInvalidUsage, "more than %d sends and receives: give a part of them", MOST);
    KL_TRY(grow((void **)&s->side, s->n, &s->max, sizeof *s->side));
    s->side[s->n++] = (struct side){sends ? own : c->peer, sends ? c->peer : own, sends ? SENT : RECEIVED, bytes};
    return ncclSuccess;
}

static int by_message(const void *a, const void *b)
{
    const struct side *x = a, *y = b;

    if (x->from != y->from) return x->from - y->from;
    if (x->to != y->to) return x->to - y->to;
    return (x->bytes > y->bytes) - (x->bytes < y->bytes);
}

/* Equal messages: as many as the side with the longer record has. */
static ncclResult_t join_sides(struct kl_trace_messages *m, struct sides *s)
{
    struct kl_traffic_trace *t = m->trace;

    if (s->n) qsort(s->side, (size_t)s->n, sizeof *s->side, by_message);
    for (int i = 0, next; i < s->n; i = next) {
        int64_t sent = 0, received = 0;

        for (next = i; next < s->n && !by_message(&s->side[i], &s->side[next]); next++)
            *(s->side[next].way == SENT ? &sent : &received) += 1;
        const int64_t pairs = sent < received ? sent : received, all = sent + received - pairs;
        const struct kl_op_traffic_message x = {s->side[i].from, s->side[i].to, s->side[i].bytes, all};

        t->messages += all;
        t->sends_alone += sent - pairs;
        t->receives_alone += received - pairs;
        KL_TRY(add_message(m, &x));
    }
    return ncclSuccess;
}

static ncclResult_t add_sides(struct kl_trace_messages *m)
{
    const struct kl_record *r = m->record;
    struct sides s = {.n = 0};
    ncclResult_t rc = ncclSuccess;

    for (int i = 0; !rc && i < r->ncall; i++)
        if (r->call[i].kind == KL_CALL_SEND || r->call[i].kind == KL_CALL_RECV) rc = add_side(m, &s, &r->call[i]);
    if (!rc) rc = join_sides(m, &s);
    free(s.side);
    return rc;
}

/* ---- all-to-all ---- */

/* All that a rank sends in a call; -1: unknown. */
static int64_t sent_bytes(const struct kl_record_call *c)
{
    struct kl_record_call input = *c;
    ncclDataType_t type;

    if (c->in > 0) input.out = -1;
    return kl_trace_bytes(&input, &type);
}

/* A part for each rank of the group: the same for all calls of one size, which follow each other in a program's loop. */
static ncclResult_t add_parts(struct kl_trace_messages *m, const struct kl_trace_ranks *g, int rank, int64_t bytes,
                              int64_t times)
{
    for (int i = 0; times && i < g->n; i++) {
        const struct kl_op_traffic_message x = {rank, g->rank[i], bytes / g->n, times};

        if (g->rank[i] != rank && x.bytes) KL_TRY(add_message(m, &x));
    }
    return ncclSuccess;
}

/* All-to-alls of known size, by member in the order of its record. */
struct calls {
    int *n, *first; /* by member */
    int *call;
};

static bool is_told(const struct kl_trace_messages *m, const struct kl_record_call *c)
{
    const struct kl_trace_ranks *g = &m->ranks[m->record->member[c->member].group];
    const int64_t sent = sent_bytes(c);

    return sent > 0 && sent <= KL_ORDER_BYTES && g->n > 0 && g->rank[g->n - 1] < m->nranks;
}

static bool is_all_to_all(const struct kl_record_call *c)
{
    return c->kind == KL_CALL_COLLECTIVE && kl_trace_is_message(c);
}

static void list_calls(const struct kl_trace_messages *m, struct calls *l)
{
    const struct kl_record *r = m->record;

    for (int i = 0; i < r->ncall; i++)
        if (is_all_to_all(&r->call[i]) && is_told(m, &r->call[i])) l->n[r->call[i].member]++;
    for (int i = 1; i < r->nmember; i++) l->first[i] = l->first[i - 1] + l->n[i - 1];
    memset(l->n, 0, (size_t)r->nmember * sizeof *l->n);
    for (int i = 0; i < r->ncall; i++) {
        const int member = r->call[i].member;

        if (is_all_to_all(&r->call[i]) && is_told(m, &r->call[i])) l->call[l->first[member] + l->n[member]++] = i;
    }
}

/* Those of group leaders count, and are left out where a fact is missing. */
static void count_calls(struct kl_trace_messages *m)
{
    for (int i = 0; i < m->record->ncall; i++) {
        const struct kl_record_call *c = &m->record->call[i];

        if (!is_all_to_all(c) || m->leader[m->record->member[c->member].group] != c->member) continue;
        if (is_told(m, c))
            m->trace->all_to_alls++;
        else
            kl_trace_skip(m->trace, c->name);
    }
}

/* The calls of one member as calls of a rank. */
static ncclResult_t add_member(struct kl_trace_messages *m, const struct calls *l, int member, int rank)
{
    const struct kl_trace_ranks *g = &m->ranks[m->record->member[member].group];
    int64_t bytes = 0, times = 0;

    for (int i = 0; i < l->n[member]; i++) {
        const int64_t sent = sent_bytes(&m->record->call[l->call[l->first[member] + i]]);

        if (sent != bytes) {
            KL_TRY(add_parts(m, g, rank, bytes, times));
            bytes = sent;
            times = 0;
        }
        times++;
    }
    return add_parts(m, g, rank, bytes, times);
}

/* The last member of a group that is this rank and has as many calls as the leader; else the leader. */
static int leader_for(const struct kl_trace_messages *m, const struct calls *l, int group, int rank)
{
    const struct kl_record *r = m->record;

    for (int i = r->nmember - 1; i >= 0; i--)
        if (r->member[i].group == group && r->member[i].rank == rank && l->n[i] == l->n[m->leader[group]]) return i;
    return m->leader[group];
}

static ncclResult_t add_groups(struct kl_trace_messages *m, const struct calls *l)
{
    for (int g = 0; g < m->record->ngroup; g++) {
        if (m->leader[g] < 0 || !l->n[m->leader[g]]) continue;
        for (int i = 0; i < m->ranks[g].n; i++)
            KL_TRY(add_member(m, l, leader_for(m, l, g, m->ranks[g].rank[i]), m->ranks[g].rank[i]));
    }
    return ncclSuccess;
}

static ncclResult_t add_all_to_alls(struct kl_trace_messages *m)
{
    const size_t members = (size_t)m->record->nmember + 1;
    struct calls l = {.n = calloc(members, sizeof *l.n),
                      .first = calloc(members, sizeof *l.first),
                      .call = calloc((size_t)m->record->ncall + 1, sizeof *l.call)};
    ncclResult_t rc = l.n && l.first && l.call ? ncclSuccess : KL_NOMEM("all-to-alls");

    if (!rc) list_calls(m, &l);
    if (!rc) count_calls(m);
    if (!rc) rc = add_groups(m, &l);
    free(l.n);
    free(l.first);
    free(l.call);
    return rc;
}

/* ---- all ---- */

static int by_ranks(const void *a, const void *b)
{
    const struct kl_op_traffic_message *x = a, *y = b;

    if (x->from != y->from) return x->from - y->from;
    if (x->to != y->to) return x->to - y->to;
    return (x->bytes > y->bytes) - (x->bytes < y->bytes);
}

ncclResult_t kl_trace_messages_find(struct kl_trace_messages *m)
{
    int n = 0;

    KL_TRY(add_sides(m));
    KL_TRY(add_all_to_alls(m));
    if (m->n) qsort(m->message, (size_t)m->n, sizeof *m->message, by_ranks);
    for (int i = 0; i < m->n; i++) {
        if (n && !by_ranks(&m->message[n - 1], &m->message[i]))
            m->message[n - 1].times += m->message[i].times;
        else
            m->message[n++] = m->message[i];
    }
    m->n = n;
    return ncclSuccess;
}
