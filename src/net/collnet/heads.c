/* SPDX-License-Identifier: Apache-2.0 */
#include "net/collnet/heads.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

/* ---- failures ---- */

ncclResult_t kl_heads_fail(struct kl_heads *g, ncclResult_t code)
{
    if (g->failed) return kl_heads_report(g);
    snprintf(g->why, sizeof g->why, "%s", kl_error_text());
    return g->failed = code;
}

ncclResult_t kl_heads_report(const struct kl_heads *g)
{
    if (g->failed) kl_error_adopt(g->why);
    return g->failed;
}

/* ---- life ---- */

static size_t round_up(size_t bytes, size_t to)
{
    return (bytes + to - 1) / to * to;
}

ncclResult_t kl_heads_create(int device, const struct kl_collnet_end *me, struct kl_heads **group)
{
    struct kl_heads *g = calloc(1, sizeof *g);
    size_t n = (size_t)me->n;

    if (!g) return KL_NOMEM("a group of CollNet");
    *g = (struct kl_heads){.me = *me, .device = device, .slot_bytes = round_up(me->most, 64)};
    g->slots_bytes = KL_COLLNET_REQUESTS * n * g->slot_bytes;
    g->member = calloc(n, sizeof *g->member);
    g->with = calloc(KL_COLLNET_REQUESTS * n, sizeof *g->with);
    /* Zero pages, allocated when touched. */
    g->slots = mmap(NULL, g->slots_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (g->slots == MAP_FAILED) g->slots = NULL;
    if (!g->member || !g->with || !g->slots) {
        kl_heads_free(g);
        return KL_NOMEM("a group of CollNet");
    }
    for (size_t i = 0; i < KL_COLLNET_REQUESTS; i++) g->request[i].with = g->with + i * n;
    *group = g;
    return ncclSuccess;
}

void kl_heads_free(struct kl_heads *g)
{
    if (!g) return;
    for (int m = 0; g->member && m < g->me.n; m++) {
        if (g->member[m].send) g->me.net->close_send(g->member[m].send);
        if (g->member[m].recv) g->me.net->close_recv(g->member[m].recv);
    }
    if (g->slots) munmap(g->slots, g->slots_bytes);
    kl_key_wipe(&g->me.secret);
    free(g->member);
    free(g->with);
    free(g);
}

/* ---- connections ---- */

static struct kl_net_end end_of(const struct kl_heads *g, int member)
{
    return (struct kl_net_end){.secret = g->me.secret,
                               .rank = g->me.ranks[g->me.own],
                               .peer = g->me.ranks[member],
                               .id = g->me.id,
                               .deadline = g->me.deadline};
}

static ncclResult_t join_one(struct kl_heads *g, int member, const struct kl_net_handle *handle, void *listener)
{
    struct kl_heads_member *m = &g->member[member];
    struct kl_net_end end = end_of(g, member);
    ncclResult_t sent = ncclSuccess, received = ncclSuccess;

    if (!m->sends) sent = g->me.net->connect(g->device, &end, handle, &m->send);
    m->sends = m->sends || !sent;
    if ((!sent || sent == ncclInProgress) && !m->receives) {
        received = g->me.net->accept(listener, &end, &m->recv);
        m->receives = !received;
    }
    kl_key_wipe(&end.secret);
    return sent && sent != ncclInProgress ? sent : received ? received : sent;
}

ncclResult_t kl_heads_expect(struct kl_heads *g, int member, uint64_t end)
{
    struct kl_heads_member *m = &g->member[member];

    for (; m->expected < end; m->expected++) {
        const struct kl_net_recv recv = {
            .data = kl_heads_slot(g, member, m->expected), .bytes = g->slot_bytes, .tag = KL_TAG_CONTRIBUTION};
        void **posted = &m->contribution[m->expected % KL_COLLNET_REQUESTS];

        KL_TRY(g->me.net->irecv(m->recv, 1, &recv, posted));
        if (!*posted) break;
    }
    return ncclSuccess;
}

ncclResult_t kl_heads_join(struct kl_heads *g, const struct kl_net_handle *handles, void *listener)
{
    bool all = true;

    for (int m = 0; m < g->me.n; m++) {
        if (m == g->me.own) continue;
        ncclResult_t rc = join_one(g, m, &handles[m], listener);
        if (rc && rc != ncclInProgress) return rc;
        all = all && !rc;
    }
    if (!all) return ncclInProgress;
    for (int m = 0; m < g->me.n; m++)
        if (m != g->me.own) KL_TRY(kl_heads_expect(g, m, KL_COLLNET_REQUESTS));
    g->connected = true;
    return ncclSuccess;
}
