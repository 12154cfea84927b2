/* SPDX-License-Identifier: Apache-2.0 */
#include "coll/flat_direct.h"

#include "base/error.h"
#include "os/peer_memory.h"

#include <errno.h>
#include <string.h>

enum {
    MOST_READ = 256 << 10 /* bytes at a time, then others may go on */
};

bool kl_flat_is_direct(const struct kl_board *b, const struct kl_share *s)
{
    return s->func == KL_FUNC_ALL_TO_ALL && b->reads && s->count * s->elem_bytes * (size_t)b->nranks > KL_FLAT_DIRECT;
}

void kl_flat_post_address(const struct kl_flat_op *op)
{
    uint64_t address = (uint64_t)(uintptr_t)op->share.send;

    memcpy(kl_board_data(op->board, op->board->rank, sizeof address), &address, sizeof address);
}

/* Ranks begin with different ones, and end with themselves. */
static int source(const struct kl_flat_op *op)
{
    return (op->board->rank + 1 + op->taken) % op->board->nranks;
}

static ncclResult_t read_peer(const struct kl_flat_op *op, int from, char *to, size_t at, size_t bytes)
{
    uint64_t address;

    memcpy(&address, kl_board_data(op->board, from, sizeof address), sizeof address);
    const bool read = kl_peer_memory_read(op->board->pid[from], to, address + at, bytes);
    if (read && kl_arena_lends(op->board->mark, from)) return ncclSuccess;
    return KL_FAIL(ncclRemoteError, "%s: rank %d cannot read from the memory of rank %d into its own (%s)",
                   kl_func_info[op->share.func].name, op->board->rank, from,
                   read ? "that rank has failed" : strerror(errno));
}

bool kl_flat_read_some(struct kl_flat_op *op, ncclResult_t *rc)
{
    const struct kl_share *s = &op->share;
    const size_t part = s->count * s->elem_bytes, left = part - op->moved, some = left < MOST_READ ? left : MOST_READ;
    const int from = source(op);
    char *to = (char *)s->recv + (size_t)from * part + op->moved;
    const size_t at = (size_t)op->board->rank * part + op->moved;

    if (from == op->board->rank)
        memcpy(to, (const char *)s->send + at, some);
    else
        *rc = read_peer(op, from, to, at, some);
    if (*rc) return false;
    op->moved += some;
    if (op->moved < part) return false;
    op->moved = 0;
    return ++op->taken == op->board->nranks;
}
