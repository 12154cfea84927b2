/* SPDX-License-Identifier: Apache-2.0 */
#include "coll/shm/nvls_tree.h"

#include "base/error.h"

#include <string.h>

enum { PARENT = 1u << KL_TREE_UP };

/* ---- edges ---- */

static uint32_t children(const struct kl_edges *tree)
{
    return (1u << tree->position.ndown) - 1;
}

/* The destination of a sum: the parent's slot, at the root the result. */
static uint32_t after_rising(const struct kl_edges *tree)
{
    return tree->position.up ? PARENT : children(tree);
}

static bool all_here(const struct kl_edges *tree, uint32_t set)
{
    for (; set; set &= set - 1)
        if (!kl_fifo_ready(&tree->recv[__builtin_ctz(set)]->rx)) return false;
    return true;
}

static bool have_room(const struct kl_edges *tree, uint32_t set)
{
    for (; set; set &= set - 1)
        if (!kl_fifo_can_send(&tree->send[__builtin_ctz(set)]->tx)) return false;
    return true;
}

static ncclResult_t refuse_call(const struct kl_nvls_chunk *chunk, const struct kl_connector *from)
{
    return KL_FAIL(ncclInvalidUsage,
                   "%s: rank %d sent data of another call: the ranks call with different counts, types or operations",
                   chunk->name, from->peer);
}

static ncclResult_t refuse(const struct kl_nvls_chunk *chunk, const struct kl_connector *from, size_t bytes)
{
    return KL_FAIL(ncclInvalidUsage,
                   "%s: rank %d sent %zu bytes of a slice of %zu: do the ranks have the same settings?", chunk->name,
                   from->peer, bytes, chunk->bytes);
}

/* The data that have arrived on an edge, to be released at once; NULL with an error, or without one when they were
 * revoked a moment ago. */
static const void *open_chunk(struct kl_connector *c, const struct kl_nvls_chunk *chunk, ncclResult_t *rc)
{
    size_t bytes;
    bool more;

    if (kl_fifo_signature(&c->rx) != chunk->signature) {
        *rc = refuse_call(chunk, c); /* nothing is claimed: the sender revokes it */
        return NULL;
    }
    const void *in = kl_fifo_open(&c->rx, &bytes, &more);
    if (in && bytes == chunk->bytes) return in;
    if (!in && kl_fifo_revoked(&c->rx)) return NULL;
    *rc = refuse(chunk, c, bytes);
    if (in) kl_fifo_release(&c->rx); /* the sender waits for its end */
    return NULL;
}

/* ---- up ---- */

bool kl_nvls_tree_can_send_up(const struct kl_edges *tree)
{
    return all_here(tree, children(tree)) && have_room(tree, after_rising(tree));
}

void *kl_nvls_tree_target(const struct kl_edges *tree, size_t bytes)
{
    return kl_fifo_reserve(&tree->send[KL_TREE_UP]->tx, bytes);
}

bool kl_nvls_tree_add(const struct kl_edges *tree, const struct kl_nvls_chunk *chunk, void *sum, ncclResult_t *rc)
{
    for (int i = 0; i < tree->position.ndown; i++) {
        const void *in = open_chunk(tree->recv[i], chunk, rc);
        if (!in) return false;
        chunk->redop->merge(chunk->redop, sum, sum, in, chunk->count);
        kl_fifo_release(&tree->recv[i]->rx);
    }
    return true;
}

void kl_nvls_tree_send_up(const struct kl_edges *tree, size_t bytes)
{
    kl_fifo_publish(&tree->send[KL_TREE_UP]->tx, bytes, false);
}

/* ---- down ---- */

bool kl_nvls_tree_can_send_down(const struct kl_edges *tree)
{
    return all_here(tree, PARENT) && have_room(tree, children(tree));
}

bool kl_nvls_tree_take(const struct kl_edges *tree, const struct kl_nvls_chunk *chunk, void *to, ncclResult_t *rc)
{
    struct kl_connector *parent = tree->recv[KL_TREE_UP];
    const void *in = open_chunk(parent, chunk, rc);

    if (!in) return false;
    memcpy(to, in, chunk->bytes);
    kl_fifo_release(&parent->rx);
    return true;
}

void kl_nvls_tree_send_down(const struct kl_edges *tree, const void *result, size_t bytes)
{
    for (int i = 0; i < tree->position.ndown; i++) kl_edges_send_step(&tree->send[i]->tx, result, bytes, true);
}

/* ---- diagnosis ---- */

static int waits_for_data(const struct kl_edges *tree, uint32_t set, bool gone)
{
    for (; set; set &= set - 1) {
        const struct kl_connector *c = tree->recv[__builtin_ctz(set)];
        if (gone ? kl_fifo_sender_gone(&c->rx) : !kl_fifo_ready(&c->rx) || kl_fifo_revoked(&c->rx)) return c->peer;
    }
    return -1;
}

int kl_nvls_tree_blocked_on(const struct kl_edges *tree, bool rises, bool falls, bool gone)
{
    uint32_t recv = (rises ? children(tree) : 0) | (falls ? PARENT : 0);
    uint32_t send = (rises ? after_rising(tree) : 0) | (falls ? children(tree) : 0);
    int peer = waits_for_data(tree, recv, gone);

    return peer < 0 ? kl_edges_waits_for_room(tree, send, gone) : peer;
}
