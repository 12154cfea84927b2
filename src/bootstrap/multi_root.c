/* SPDX-License-Identifier: Apache-2.0 */
/* Joining with several ids, whose roots share the load: the ranks are divided into as many shares, and each root
 * introduces one share.
 *
 *      root 0:  0 1 2 3 + 4 8   the first ranks of the other shares come here, too
 *      root 1:  4 5 6 7
 *      root 2:  8 9 10 11
 *
 * The first ranks send the addresses of their shares to rank 0, and bring those of all back to their shares. Then
 * every rank has all addresses, and the intermediate bootstraps are left. */
#include "base/error.h"
#include "bootstrap/id.h"
#include "bootstrap/join.h"
#include "bootstrap/root.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TAG_UP = 0x6d75, TAG_DOWN = 0x6d64, PIECE = 8 << 20 };

/* One rank's view. */
struct meeting {
    const struct kl_bootstrap_config *config;
    const ncclUniqueId *ids;
    int nids;
    int share;      /* the own one */
    int first, end; /* its ranks */
    /* bootstraps of the share, and of the first ranks at root 0, which is also root 0's share; NULL: not a member */
    struct kl_bootstrap *mine, *top;
    unsigned char *table; /* the session, and the records of all ranks as sent on the wire */
    size_t bytes;
};

static int first_of(const struct meeting *m, int share)
{
    return (int)((long)share * m->config->nranks / m->nids);
}

static int share_of(const struct meeting *m, int rank)
{
    int share = 0;

    while (share + 1 < m->nids && first_of(m, share + 1) <= rank) share++;
    return share;
}

static void find_share(struct meeting *m)
{
    m->share = share_of(m, m->config->rank);
    m->first = first_of(m, m->share);
    m->end = first_of(m, m->share + 1);
}

static unsigned char *record_in(const struct meeting *m, int rank)
{
    return m->table + KL_SESSION + (size_t)rank * KL_ADDRESS_RECORD_WIRE;
}

/* ---- at the roots ---- */

static void tell_owner(const struct meeting *m, struct kl_bootstrap *b)
{
    if (m->config->on_life) m->config->on_life(m->config->ctx, b);
}

/* A missing rank has another number there: translate it. */
static ncclResult_t in_share(const struct meeting *m, int share, ncclResult_t rc)
{
    char text[KL_ERROR_TEXT];

    if (!rc) return rc;
    snprintf(text, sizeof text, "%.900s (in share %d of %d, where ranks count from %d on)", kl_error_text(), share,
             m->nids, first_of(m, share));
    kl_error_adopt(text);
    return rc;
}

static ncclResult_t join_root(const struct meeting *m, int share, int rank, struct kl_bootstrap **b)
{
    struct kl_bootstrap_config config = *m->config;

    config.id = m->ids[share];
    config.rank = rank;
    config.nranks = first_of(m, share + 1) - first_of(m, share) + (share ? 0 : m->nids - 1);
    config.on_failure = NULL;
    return in_share(m, share, kl_bootstrap_join(&config, b));
}

static int place_at_top(const struct meeting *m, int share)
{
    return share ? first_of(m, 1) + share - 1 : 0;
}

static void decline(const ncclUniqueId *packed, int rank)
{
    struct kl_id id;

    if (kl_id_unpack(packed, &id)) kl_root_decline(&id, rank);
    kl_key_wipe(&id.secret);
}

/* Only the first rank of a share also comes to root 0. */
static bool leads_to_top(const struct meeting *m)
{
    return m->share && m->config->rank == m->first;
}

static ncclResult_t join_roots(struct meeting *m)
{
    ncclResult_t rc = join_root(m, m->share, m->config->rank - m->first, &m->mine);

    if (rc && leads_to_top(m)) decline(&m->ids[0], place_at_top(m, m->share));
    if (rc) return rc;
    if (!m->share) m->top = m->mine;
    return leads_to_top(m) ? join_root(m, 0, place_at_top(m, m->share), &m->top) : ncclSuccess;
}

/* ---- the table ---- */

static ncclResult_t send_all(struct kl_bootstrap *b, int peer, uint32_t tag, const unsigned char *data, size_t bytes)
{
    for (size_t done = 0; done < bytes; done += PIECE)
        KL_TRY(kl_bootstrap_send(b, peer, tag, data + done, bytes - done < PIECE ? bytes - done : PIECE));
    return ncclSuccess;
}

static ncclResult_t recv_all(struct kl_bootstrap *b, int peer, uint32_t tag, unsigned char *data, size_t bytes)
{
    for (size_t done = 0; done < bytes; done += PIECE)
        KL_TRY(kl_bootstrap_recv(b, peer, tag, data + done, bytes - done < PIECE ? bytes - done : PIECE));
    return ncclSuccess;
}

static void write_own_share(struct meeting *m)
{
    for (int r = m->first; r < m->end; r++) {
        struct kl_address_record record = m->mine->address_records[r - m->first];
        record.rank = r;
        kl_address_record_encode(&record, record_in(m, r));
    }
}

static size_t bytes_of_share(const struct meeting *m, int share)
{
    return (size_t)(first_of(m, share + 1) - first_of(m, share)) * KL_ADDRESS_RECORD_WIRE;
}

static ncclResult_t collect(struct meeting *m)
{
    kl_key_random(m->table, KL_SESSION);
    for (int s = 1; s < m->nids; s++)
        KL_TRY(recv_all(m->top, place_at_top(m, s), TAG_UP, record_in(m, first_of(m, s)), bytes_of_share(m, s)));
    return ncclSuccess;
}

/* From rank 0 down a binomial tree. */
static ncclResult_t pass_down(struct meeting *m, struct kl_bootstrap *b)
{
    int mask = 1;

    while (mask < b->nranks && !(b->rank & mask)) mask <<= 1;
    if (b->rank) KL_TRY(recv_all(b, b->rank - mask, TAG_DOWN, m->table, m->bytes));
    for (mask >>= 1; mask; mask >>= 1)
        if (b->rank + mask < b->nranks) KL_TRY(send_all(b, b->rank + mask, TAG_DOWN, m->table, m->bytes));
    return ncclSuccess;
}

static ncclResult_t fill_table(struct meeting *m)
{
    bool leads = m->config->rank == m->first;

    write_own_share(m);
    if (leads && !m->share) KL_TRY(collect(m));
    if (leads && m->share) KL_TRY(send_all(m->top, 0, TAG_UP, record_in(m, m->first), bytes_of_share(m, m->share)));
    if (m->top) KL_TRY(pass_down(m, m->top));
    tell_owner(m, m->mine);
    return m->share ? pass_down(m, m->mine) : ncclSuccess;
}

/* ---- the bootstrap of all ranks ---- */

static ncclResult_t read_table(const struct meeting *m, struct kl_bootstrap *b)
{
    struct kl_id id;

    for (int r = 0; r < b->nranks; r++)
        if (!kl_address_record_decode(record_in(m, r), &b->address_records[r]) || b->address_records[r].rank != r)
            return KL_FAIL(ncclInternalError, "rank %d: the record of rank %d is damaged", b->rank, r);
    if (!kl_id_unpack(&m->ids[0], &id)) return KL_FAIL(ncclInvalidArgument, "the first id is none");
    b->key = kl_key_derive(&id.secret, "kolo peer of many", m->table, KL_SESSION);
    kl_key_wipe(&id.secret);
    b->retry = m->mine->retry;
    b->scope = m->mine->scope;
    b->place = m->mine->place;
    return ncclSuccess;
}

/* Add the traffic of the intermediate bootstraps. */
static void take_over_traffic(const struct meeting *m, struct kl_bootstrap *b)
{
    struct kl_bootstrap *before[] = {m->mine, m->top == m->mine ? NULL : m->top};

    for (int i = 0; i < 2; i++) {
        if (!before[i]) continue;
        const struct kl_bootstrap_traffic t = kl_bootstrap_traffic(before[i]);
        b->traffic.messages += t.messages;
        b->traffic.bytes += t.bytes;
        b->traffic.connections += t.connections;
    }
}

static ncclResult_t found(const struct meeting *m, struct kl_bootstrap **out)
{
    struct kl_bootstrap *b = NULL;
    ncclResult_t rc;

    KL_TRY_OR(rc, out, kl_join_begin(m->config, &b));
    tell_owner(m, b);
    KL_TRY_OR(rc, out, read_table(m, b));
    take_over_traffic(m, b);
    KL_TRY_OR(rc, out, kl_join_known(b));
    *out = b;
    return ncclSuccess;
out:
    tell_owner(m, NULL);
    kl_bootstrap_leave(b);
    return rc;
}

static ncclResult_t meet(struct meeting *m, struct kl_bootstrap **out)
{
    m->bytes = KL_SESSION + (size_t)m->config->nranks * KL_ADDRESS_RECORD_WIRE;
    m->table = malloc(m->bytes);
    if (!m->table) return KL_NOMEM("the addresses of all ranks");
    KL_TRY(join_roots(m));
    ncclResult_t rc = fill_table(m);
    if (rc) tell_owner(m, NULL);
    return rc ? rc : found(m, out);
}

/* ---- public functions ---- */

/* Ids that rank 0 opens name one rendezvous. */
static bool is_one_rendezvous(const ncclUniqueId *ids, int nids)
{
    bool one = nids == 1;

    for (int i = 0; i < nids && !one; i++) {
        struct kl_id id = {.kind = KL_ID_ROOT_RUNS};
        one = kl_id_unpack(&ids[i], &id) && id.kind == KL_ID_RANK0_OPENS;
        kl_key_wipe(&id.secret);
    }
    return one;
}

static ncclResult_t check_ids(const ncclUniqueId *ids, int nids)
{
    for (int i = 0; i < nids; i++) {
        struct kl_id id = {0};
        bool sound = kl_id_unpack(&ids[i], &id);
        kl_key_wipe(&id.secret);
        if (!sound)
            return KL_FAIL(ncclInvalidArgument, "id %d is no unique id of this library; use ncclGetUniqueId", i);
    }
    return ncclSuccess;
}

static ncclResult_t check_differ(const ncclUniqueId *ids, int nids)
{
    for (int i = 1; i < nids; i++)
        for (int k = 0; k < i; k++)
            if (!memcmp(&ids[i], &ids[k], sizeof ids[i]))
                return KL_FAIL(ncclInvalidArgument, "ids %d and %d are the same: each needs a call of ncclGetUniqueId",
                               k, i);
    return ncclSuccess;
}

static ncclResult_t join_first(const struct kl_bootstrap_config *config, const ncclUniqueId *ids,
                               struct kl_bootstrap **out)
{
    struct kl_bootstrap_config one = *config;

    one.id = ids[0];
    return kl_bootstrap_join(&one, out);
}

ncclResult_t kl_bootstrap_join_many(const struct kl_bootstrap_config *config, const ncclUniqueId *ids, int nids,
                                    struct kl_bootstrap **out)
{
    struct meeting m = {.config = config, .ids = ids, .nids = nids};

    if (nids < 1 || nids > config->nranks)
        return KL_FAIL(ncclInvalidArgument, "%d ids for %d ranks; there may be one for each", nids, config->nranks);
    if (nids > 1) KL_TRY(check_ids(ids, nids));
    if (is_one_rendezvous(ids, nids)) return join_first(config, ids, out);
    KL_TRY(check_differ(ids, nids));
    find_share(&m);
    ncclResult_t rc = meet(&m, out);
    if (m.top != m.mine) kl_bootstrap_leave(m.top);
    kl_bootstrap_leave(m.mine);
    free(m.table);
    return rc;
}

void kl_bootstrap_decline(const ncclUniqueId *ids, int nids, int rank, int nranks)
{
    const struct kl_bootstrap_config config = {.rank = rank, .nranks = nranks};
    struct meeting m = {.config = &config, .ids = ids, .nids = nids};

    if (nids < 1 || nids > nranks) return;
    if (is_one_rendezvous(ids, nids)) m.nids = 1;
    find_share(&m);
    decline(&ids[m.share], rank - m.first);
    if (leads_to_top(&m)) decline(&ids[0], place_at_top(&m, m.share));
}
