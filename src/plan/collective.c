/* SPDX-License-Identifier: Apache-2.0 */
#include "plan/collective.h"

#include "graph/tuning.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

enum { PIECE_BYTES = 16 }; /* pieces are multiples of it */

/* clang-format off */
const struct kl_coll kl_colls[KL_NCOLLS] = {
    [KL_ALL_REDUCE]     = {"all_reduce",     KL_CUT_WHOLE,   true,  true,  false, true,  "reduce, result on all ranks"},
    [KL_ALL_GATHER]     = {"all_gather",     KL_CUT_GATHER,  false, false, false, true,  "every rank's piece to all ranks"},
    [KL_REDUCE_SCATTER] = {"reduce_scatter", KL_CUT_SCATTER, true,  true,  false, true,  "reduce, a piece of the result on each rank"},
    [KL_BROADCAST]      = {"broadcast",      KL_CUT_WHOLE,   false, false, true,  true,  "the root's buffer to all ranks"},
    [KL_REDUCE]         = {"reduce",         KL_CUT_WHOLE,   true,  true,  true,  true,  "reduce, result on the root"},
    [KL_ALLTOALL]       = {"alltoall",       KL_CUT_ALL,     false, false, false, false, "a piece from every rank to every rank"},
    [KL_ALLTOALLV]      = {"alltoallv",      KL_CUT_ALL,     false, false, false, false, "the same with pieces of different sizes"},
    [KL_GATHER]         = {"gather",         KL_CUT_GATHER,  false, false, true,  true,  "every rank's piece to the root"},
    [KL_SCATTER]        = {"scatter",        KL_CUT_SCATTER, false, false, true,  true,  "a piece of the root's buffer to each rank"},
    [KL_SENDRECV]       = {"sendrecv",       KL_CUT_WHOLE,   false, true,  false, false, "to the next rank, from the previous one"},
    [KL_HYPERCUBE]      = {"hypercube",      KL_CUT_GATHER,  false, false, false, true,  "all_gather by doubling exchanges; 2^k ranks"},
    [KL_BARRIER]        = {"barrier",        KL_CUT_ONE,     true,  false, false, false, "all_reduce of one element; time only"},
};
/* clang-format on */

static bool same_letters(const char *a, const char *b)
{
    for (;; a++, b++) {
        while (*a == '_' || *a == '-') a++;
        while (*b == '_' || *b == '-') b++;
        if (tolower((unsigned char)*a) != tolower((unsigned char)*b)) return false;
        if (!*a) return true;
    }
}

const struct kl_coll *kl_coll_find(const char *name)
{
    if (!strncasecmp(name, "nccl", 4)) name += 4;
    for (int i = 0; i < KL_NCOLLS; i++)
        if (same_letters(kl_colls[i].name, name)) return &kl_colls[i];
    return NULL;
}

enum kl_coll_id kl_coll_id(const struct kl_coll *coll)
{
    return (enum kl_coll_id)(coll - kl_colls);
}

struct kl_coll_shape kl_coll_shape(enum kl_coll_id id, size_t bytes, size_t element_bytes, int nranks, int root)
{
    struct kl_coll_shape s = {.id = id, .nranks = nranks, .root = root};
    size_t count = bytes / element_bytes, n = (size_t)nranks;
    size_t grain = PIECE_BYTES / element_bytes, piece = count / n / grain * grain;

    switch (kl_colls[id].cut) {
    case KL_CUT_WHOLE:
        s.count = s.send = s.recv = count;
        break;
    case KL_CUT_GATHER:
        s.count = s.send = s.send_at = piece;
        s.recv = piece * n;
        break;
    case KL_CUT_SCATTER:
        s.count = s.recv = s.recv_at = piece;
        s.send = piece * n;
        break;
    case KL_CUT_ALL:
        s.count = piece;
        s.send = s.recv = piece * n;
        break;
    case KL_CUT_ONE:
        s.count = s.send = s.recv = 1;
        break;
    }
    return s;
}

/* Between ranks that add up to k modulo n, (k + 1) / (n + 1) of twice the piece: from nearly nothing to nearly double, and
 * no rank sends or receives more than n pieces in all. */
static size_t uneven(const struct kl_coll_shape *s, int from, int to)
{
    size_t n = (size_t)s->nranks;

    return 2 * s->count * ((size_t)(from + to) % n + 1) / (n + 1);
}

struct kl_coll_piece kl_coll_piece(const struct kl_coll_shape *s, int from, int to)
{
    struct kl_coll_piece p = {.count = uneven(s, from, to)};

    for (int before = 0; before < to; before++) p.send_first += uneven(s, from, before);
    for (int before = 0; before < from; before++) p.recv_first += uneven(s, before, to);
    return p;
}

static struct kl_coll_part uneven_part(const struct kl_coll_shape *s, int from, int to)
{
    struct kl_coll_piece p = kl_coll_piece(s, from, to);

    return (struct kl_coll_part){p.recv_first, p.count, from, p.send_first};
}

bool kl_coll_part(const struct kl_coll_shape *s, int rank, int i, struct kl_coll_part *part)
{
    size_t own = (size_t)rank * s->count, other = (size_t)i * s->count;
    int previous = (rank + s->nranks - 1) % s->nranks;

    switch (s->id) {
    case KL_ALL_REDUCE:
        *part = (struct kl_coll_part){0, s->count, KL_COLL_REDUCED, 0};
        return i < 1;
    case KL_REDUCE:
        *part = (struct kl_coll_part){0, s->count, KL_COLL_REDUCED, 0};
        return i < 1 && rank == s->root;
    case KL_REDUCE_SCATTER:
        *part = (struct kl_coll_part){0, s->count, KL_COLL_REDUCED, own};
        return i < 1;
    case KL_BROADCAST:
        *part = (struct kl_coll_part){0, s->count, s->root, 0};
        return i < 1;
    case KL_SCATTER:
        *part = (struct kl_coll_part){0, s->count, s->root, own};
        return i < 1;
    case KL_SENDRECV:
        *part = (struct kl_coll_part){0, s->count, previous, 0};
        return i < 1;
    case KL_ALL_GATHER:
    case KL_HYPERCUBE:
        *part = (struct kl_coll_part){other, s->count, i, 0};
        return i < s->nranks;
    case KL_GATHER:
        *part = (struct kl_coll_part){other, s->count, i, 0};
        return i < s->nranks && rank == s->root;
    case KL_ALLTOALL:
        *part = (struct kl_coll_part){other, s->count, i, own};
        return i < s->nranks;
    case KL_ALLTOALLV:
        if (i >= s->nranks) return false;
        *part = uneven_part(s, i, rank);
        return true;
    default:
        return false;
    }
}

int kl_coll_steps(enum kl_coll_id id, int nranks)
{
    int steps = 1;

    if (id != KL_HYPERCUBE) return 1;
    for (int reach = 1; reach < nranks; reach *= 2) steps++;
    return steps;
}

double kl_coll_bus_factor(enum kl_coll_id id, int nranks)
{
    switch (id) {
    case KL_ALL_REDUCE:
        return kl_tuning_bus_factor(KL_FUNC_ALL_REDUCE, nranks);
    case KL_ALL_GATHER:
    case KL_REDUCE_SCATTER:
    case KL_ALLTOALL:
    case KL_ALLTOALLV:
    case KL_GATHER:
    case KL_SCATTER: /* each rank has a part of the whole, and keeps its own */
        return kl_tuning_bus_factor(KL_FUNC_ALL_GATHER, nranks);
    default:
        return 1;
    }
}

struct kl_coll_bandwidth kl_coll_bandwidth(const struct kl_coll_shape *s, size_t element_bytes, double seconds)
{
    double pieces = kl_colls[s->id].cut == KL_CUT_WHOLE ? 1 : s->nranks;

    if (s->id == KL_HYPERCUBE) pieces = s->nranks - 1;
    if (s->id == KL_BARRIER || seconds <= 0) return (struct kl_coll_bandwidth){0, 0};
    double algorithm = pieces * (double)s->count * (double)element_bytes / seconds / 1e9;
    return (struct kl_coll_bandwidth){algorithm, algorithm * kl_coll_bus_factor(s->id, s->nranks)};
}
