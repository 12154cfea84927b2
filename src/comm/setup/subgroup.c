/* SPDX-License-Identifier: Apache-2.0 */
#include "comm/setup/subgroup.h"

#include "base/error.h"

#include <stdlib.h>
#include <string.h>

enum { TAG = 0x4b4c, PIECE = 8 << 20 }; /* a message of the bootstrap has a limit */
static const uint64_t most = (uint64_t)1 << 30;

/* The place k further in the list. */
static int at(const struct kl_subgroup *a, int k)
{
    return ((a->own + k) % a->n + a->n) % a->n;
}

/* ---- any number of bytes ---- */

static ncclResult_t send_all(const struct kl_subgroup *a, int to, const void *data, size_t bytes)
{
    for (size_t done = 0; done < bytes; done += PIECE) {
        size_t piece = bytes - done < PIECE ? bytes - done : PIECE;
        KL_TRY(kl_bootstrap_send(a->bootstrap, a->rank[to], TAG, (const char *)data + done, piece));
    }
    return ncclSuccess;
}

static ncclResult_t recv_all(const struct kl_subgroup *a, int from, void *data, size_t bytes)
{
    for (size_t done = 0; done < bytes; done += PIECE) {
        size_t piece = bytes - done < PIECE ? bytes - done : PIECE;
        KL_TRY(kl_bootstrap_recv(a->bootstrap, a->rank[from], TAG, (char *)data + done, piece));
    }
    return ncclSuccess;
}

/* ---- broadcast ---- */

static ncclResult_t receive(const struct kl_subgroup *a, int from, void **data, size_t *bytes)
{
    uint64_t announced;

    KL_TRY(recv_all(a, from, &announced, sizeof announced));
    if (announced > most)
        return KL_FAIL(ncclInternalError, "rank %d announces %llu bytes, more than anybody sends", a->rank[from],
                       (unsigned long long)announced);
    char *room = malloc((size_t)announced + 1);
    if (!room) return KL_NOMEM("another process's findings");
    room[announced] = 0;
    ncclResult_t rc = recv_all(a, from, room, (size_t)announced);
    if (rc) {
        free(room);
        return rc;
    }
    *data = room;
    *bytes = (size_t)announced;
    return ncclSuccess;
}

static ncclResult_t pass_on(const struct kl_subgroup *a, int to, const void *data, size_t bytes)
{
    uint64_t announced = bytes;

    KL_TRY(send_all(a, to, &announced, sizeof announced));
    return send_all(a, to, data, bytes);
}

/* A binomial tree: the process that is `place` after the root receives from the one without its lowest bit. */
ncclResult_t kl_subgroup_broadcast(const struct kl_subgroup *a, int root, void **data, size_t *bytes)
{
    int place = (a->own - root + a->n) % a->n, bit = 1;
    void *mine = *data;
    size_t size = place ? 0 : *bytes;
    ncclResult_t rc = ncclSuccess;

    while (bit < a->n && !(place & bit)) bit *= 2;
    if (place) KL_TRY(receive(a, at(a, -bit), &mine, &size));
    while (!rc && (bit /= 2))
        if (place + bit < a->n) rc = pass_on(a, at(a, bit), mine, size);
    if (rc && place) free(mine);
    if (rc) return rc;
    *data = mine;
    *bytes = size;
    return ncclSuccess;
}

/* ---- all tell all ---- */

static size_t bytes_of(const struct kl_subgroup *a, const size_t *block, int count)
{
    size_t bytes = 0;

    for (int k = 0; k < count; k++) bytes += block[at(a, k)];
    return bytes;
}

/* Bruck: after each step every rank has twice as many blocks, its own and the following ones, in order. */
static ncclResult_t gather_onwards(const struct kl_subgroup *a, char *mine, const size_t *block)
{
    for (int have = 1; have < a->n; have *= 2) {
        int more = have < a->n - have ? have : a->n - have;
        size_t had = bytes_of(a, block, have);

        KL_TRY(send_all(a, at(a, -have), mine, bytes_of(a, block, more)));
        KL_TRY(recv_all(a, at(a, have), mine + had, bytes_of(a, block, have + more) - had));
    }
    return ncclSuccess;
}

ncclResult_t kl_subgroup_allgather(const struct kl_subgroup *a, void *all, const size_t *block)
{
    size_t total = bytes_of(a, block, a->n), before = 0;
    char *mine = malloc(total + 1), *to = all;

    if (!mine) return KL_NOMEM("an all-gather");
    for (int i = 0; i < a->own; i++) before += block[i];
    memcpy(mine, to + before, block[a->own]);
    ncclResult_t rc = gather_onwards(a, mine, block);
    if (!rc) { /* rotate from "mine first" to "the first of the list first" */
        memcpy(to + before, mine, total - before);
        memcpy(to, mine + (total - before), before);
    }
    free(mine);
    return rc;
}
