/* SPDX-License-Identifier: Apache-2.0 */
#include "comm/children.h"

#include "base/error.h"
#include "base/log.h"

#include <sodium.h>
#include <stdlib.h>
#include <string.h>

/* ---- the child of known members ---- */

static ncclResult_t make(const struct kl_child *child, struct kl_birth *birth)
{
    struct ncclComm *made;
    ncclComm_t handle;

    birth->parent = child->parent;
    birth->device = child->parent->device;
    birth->wish = child->wish;
    KL_TRY(kl_comm_begin(birth, &handle, &made));
    KL_TRY(kl_comm_complete(made, birth, &handle));
    kl_comm_publish(child->user, handle);
    return ncclSuccess;
}

/* The members in order, and the data that distinguish this child from others. */
static struct kl_salt salt_of(const char *label, const struct kl_birth *birth, uint64_t number)
{
    crypto_generichash_state state;
    struct kl_salt salt;

    crypto_generichash_init(&state, NULL, 0, sizeof salt.bytes);
    crypto_generichash_update(&state, (const unsigned char *)label, strlen(label));
    crypto_generichash_update(&state, (const unsigned char *)&number, sizeof number);
    crypto_generichash_update(&state, (const unsigned char *)birth->member, (size_t)birth->nranks * sizeof(int32_t));
    crypto_generichash_final(&state, salt.bytes, sizeof salt.bytes);
    return salt;
}

/* ---- split ---- */

struct ask {
    int32_t color, key, rank;
};

static int by_key(const void *a, const void *b)
{
    const struct ask *x = a, *y = b;

    if (x->key != y->key) return x->key < y->key ? -1 : 1;
    return (x->rank > y->rank) - (x->rank < y->rank);
}

/* Move the ranks of our colour to the beginning, in order. Returns their number. */
static int gather_color(struct ask *asks, int nranks, int color)
{
    int n = 0;

    for (int r = 0; r < nranks; r++)
        if (asks[r].color == color) asks[n++] = asks[r];
    qsort(asks, (size_t)n, sizeof *asks, by_key);
    return n;
}

static ncclResult_t ask_all(struct ncclComm *parent, int color, int key, struct ask *asks)
{
    asks[parent->rank] = (struct ask){.color = color, .key = key, .rank = parent->rank};
    kl_bootstrap_phase(parent->bootstrap, "split");
    KL_TRY(kl_bootstrap_allgather(parent->bootstrap, asks, sizeof *asks));
    kl_bootstrap_phase(parent->bootstrap, KL_PHASE_RUNNING);
    for (int r = 0; r < parent->nranks; r++)
        if (asks[r].rank != r)
            return KL_FAIL(ncclInternalError, "rank %d is told rank %d for %d", parent->rank, asks[r].rank, r);
    return ncclSuccess;
}

static ncclResult_t join_color(const struct kl_child *child, struct ask *asks, int32_t *member, int color,
                               uint32_t split)
{
    struct kl_birth birth = {.member = member, .follows = !kl_load_relaxed(&child->parent->revoked)};

    birth.nranks = gather_color(asks, child->parent->nranks, color);
    for (int i = 0; i < birth.nranks; i++) {
        member[i] = asks[i].rank;
        if (asks[i].rank == child->parent->rank) birth.rank = i;
    }
    birth.salt = salt_of("split", &birth, split);
    return make(child, &birth);
}

static ncclResult_t split(const struct kl_child *child, int color, int key)
{
    size_t n = (size_t)child->parent->nranks;
    uint32_t number = child->parent->family.splits++;
    struct ask *asks = calloc(n, sizeof *asks);
    int32_t *member = calloc(n, sizeof *member);
    ncclResult_t rc = asks && member ? ask_all(child->parent, color, key, asks) : KL_NOMEM("a split");

    if (!rc && color != NCCL_SPLIT_NOCOLOR) rc = join_color(child, asks, member, color, number);
    free(asks);
    free(member);
    return rc;
}

ncclResult_t kl_comm_split(const struct kl_child *child, int color, int key)
{
    return kl_job_end(child->parent, split(child, color, key));
}

/* ---- shrink ---- */

static int list_survivors(const struct ncclComm *parent, const int *excluded, int nexcluded, int32_t *member)
{
    int n = 0;

    for (int r = 0; r < parent->nranks; r++) member[r] = 1;
    for (int i = 0; i < nexcluded; i++) member[excluded[i]] = 0;
    for (int r = 0; r < parent->nranks; r++)
        if (member[r]) member[n++] = r;
    return n;
}

static int place_of(const int32_t *member, int rank)
{
    int i = 0;

    while (member[i] != rank) i++;
    return i;
}

/* Number of children made with these members. Excluded ranks need not know, so there is no common count. */
static ncclResult_t count_same(struct kl_family *family, const struct kl_birth *birth, uint64_t *count)
{
    struct kl_salt whole = salt_of("members", birth, 0);
    uint64_t members;

    memcpy(&members, whole.bytes, sizeof members);
    *count = 0;
    for (size_t i = 0; i < family->nshrunk; i++) *count += family->shrunk[i] == members;
    uint64_t *grown = realloc(family->shrunk, (family->nshrunk + 1) * sizeof *grown);
    if (!grown) return KL_NOMEM("a shrink");
    family->shrunk = grown;
    family->shrunk[family->nshrunk++] = members;
    return ncclSuccess;
}

static void give_up_work(struct ncclComm *parent)
{
    char text[256], me[128];

    snprintf(text, sizeof text, "%s ended the communicator to shrink it",
             kl_comm_describe(parent, parent->rank, me, sizeof me));
    kl_comm_fail(parent, parent->rank, ncclInternalError, text, false);
    kl_comm_stop(parent, text);
    kl_comm_withdraw(parent);
}

static ncclResult_t shrink(const struct kl_child *child, const int *excluded, int nexcluded, int32_t *member)
{
    struct ncclComm *parent = child->parent;
    struct kl_birth birth = {.member = member};
    uint64_t count;

    birth.nranks = list_survivors(parent, excluded, nexcluded, member);
    birth.rank = place_of(member, parent->rank);
    KL_TRY(count_same(&parent->family, &birth, &count));
    birth.salt = salt_of("shrink", &birth, count);
    return make(child, &birth);
}

ncclResult_t kl_comm_shrink(const struct kl_child *child, const int *excluded, int nexcluded, bool abort)
{
    int32_t *member = calloc((size_t)child->parent->nranks, sizeof *member);

    if (abort) give_up_work(child->parent);
    ncclResult_t rc = member ? shrink(child, excluded, nexcluded, member) : KL_NOMEM("a shrink");
    free(member);
    return kl_job_end(child->parent, rc);
}

/* ---- grow ---- */

ncclResult_t kl_comm_mint_id(struct ncclComm *comm, ncclUniqueId *id)
{
    KL_TRY(kl_bootstrap_id_create(&comm->family.id));
    comm->family.has_id = true;
    *id = comm->family.id;
    return ncclSuccess;
}

struct offer {
    uint64_t has_id;
    ncclUniqueId id;
};

static ncclResult_t agree_on_id(const struct ncclComm *parent, const struct offer *offers, ncclUniqueId *id)
{
    const struct offer *first = NULL;

    for (int r = 0; r < parent->nranks; r++) {
        if (!offers[r].has_id) continue;
        if (first && memcmp(&first->id, &offers[r].id, sizeof *id))
            return KL_FAIL(ncclInvalidUsage,
                           "ncclCommGrow: rank %d has another id than rank %d: only one of those that "
                           "ncclCommGetUniqueId gave is for it",
                           r, (int)(first - offers));
        if (!first) first = &offers[r];
    }
    if (!first)
        return KL_FAIL(ncclInvalidUsage,
                       "ncclCommGrow: no rank has an id: one of them calls ncclCommGetUniqueId on this communicator");
    *id = first->id;
    return ncclSuccess;
}

static ncclResult_t find_id(struct ncclComm *parent, const ncclUniqueId *given, struct offer *offers, ncclUniqueId *id)
{
    struct offer *mine = &offers[parent->rank];

    if (given || parent->family.has_id) *mine = (struct offer){.has_id = 1, .id = given ? *given : parent->family.id};
    parent->family.has_id = false;
    kl_bootstrap_phase(parent->bootstrap, "grow");
    KL_TRY(kl_bootstrap_allgather(parent->bootstrap, offers, sizeof *offers));
    kl_bootstrap_phase(parent->bootstrap, KL_PHASE_RUNNING);
    return agree_on_id(parent, offers, id);
}

static ncclResult_t grow(const struct kl_child *child, int nranks, const ncclUniqueId *given)
{
    struct ncclComm *parent = child->parent;
    struct offer *offers = calloc((size_t)parent->nranks, sizeof *offers);
    ncclUniqueId id;
    struct kl_birth birth = {.ids = &id, .nids = 1, .nranks = nranks, .rank = parent->rank};
    ncclResult_t rc = offers ? find_id(parent, given, offers, &id) : KL_NOMEM("growing");

    free(offers);
    if (rc) return rc;
    birth.follows = !kl_load_relaxed(&parent->revoked);
    return make(child, &birth);
}

ncclResult_t kl_comm_grow(const struct kl_child *child, int nranks, const ncclUniqueId *id)
{
    return kl_job_end(child->parent, grow(child, nranks, id));
}
