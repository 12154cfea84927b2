/* SPDX-License-Identifier: Apache-2.0 */
#include "coll/board.h"

#include "base/error.h"
#include "device/host/bulk_copy.h"

/* Bytes: what all ranks post in a turn should stay in a core's cache. */
enum { SHARE = 256 << 10, MOST_SLOT = 32 << 10 };
enum {
    PART = 16
}; /* of a round: so much room is waited for. Who took each place as it came would look at others' lines all the time */
enum { SLOT_IN_CELLS = 8, SLOT_IN_TRAYS = 4 };

/* Of a slot: what a rank posts at most. */
static size_t slot_bytes(int nranks)
{
    size_t share = (size_t)SHARE / (size_t)nranks;

    return share < MOST_SLOT ? share / KL_LINE * KL_LINE : MOST_SLOT;
}

static size_t cell_bytes(int nranks)
{
    return slot_bytes(nranks) / SLOT_IN_CELLS / KL_LINE * KL_LINE;
}

static size_t tray_bytes(int nranks)
{
    return slot_bytes(nranks) / SLOT_IN_TRAYS / KL_LINE * KL_LINE;
}

/* A cycle of the caches. */
static uint32_t count_slots(int nranks)
{
    const size_t cycle = kl_cache_cycle(nranks);
    uint32_t n = KL_BOARD_LEAST_SLOTS;

    while (n < KL_BOARD_MOST_SLOTS && n * slot_bytes(nranks) < cycle) n *= 2;
    return n;
}

static size_t lines_bytes(int nranks)
{
    return (size_t)nranks * (KL_BOARD_POSTS + 1) * sizeof(struct kl_board_line);
}

static size_t cells_bytes(int nranks)
{
    return (size_t)nranks * KL_BOARD_CELLS * cell_bytes(nranks);
}

static size_t trays_bytes(int nranks)
{
    return (size_t)nranks * KL_BOARD_TRAYS * tray_bytes(nranks);
}

size_t kl_board_bytes(int nranks)
{
    return lines_bytes(nranks) + cells_bytes(nranks) + trays_bytes(nranks) +
           (size_t)nranks * count_slots(nranks) * slot_bytes(nranks);
}

void kl_board_init(struct kl_board *b, int nranks, int rank)
{
    *b = (struct kl_board){.nranks = nranks,
                           .rank = rank,
                           .cell_bytes = cell_bytes(nranks),
                           .tray_bytes = tray_bytes(nranks),
                           .slot_bytes = slot_bytes(nranks),
                           .nslots = count_slots(nranks)};
}

void kl_board_attach(struct kl_board *b, void *memory, const struct kl_arena_mark *mark)
{
    b->lines = memory;
    b->own = kl_board_done(b, b->rank);
    b->neighbours = kl_board_done(b, kl_board_neighbour(b));
    b->cells = (unsigned char *)memory + lines_bytes(b->nranks);
    b->trays = b->cells + cells_bytes(b->nranks);
    b->slots = b->trays + trays_bytes(b->nranks);
    b->mark = mark;
}

/* Turns that a rank is done with; looks there only if it is not known to be done with `turns`. */
static uint64_t turns_of(struct kl_board *b, int rank, uint64_t turns)
{
    if (b->known[rank] < turns)
        b->known[rank] = kl_load_acquire(&kl_board_done(b, rank)->ready); /* pairs with kl_board_next_turn */
    return b->known[rank];
}

static bool ask_all(struct kl_board *b, uint64_t turns, int *blocker)
{
    uint64_t least = UINT64_MAX;

    for (int r = 0; r < b->nranks; r++) {
        if (r == b->rank) continue;
        const uint64_t done = turns_of(b, r, turns);
        if (done < turns) {
            *blocker = r;
            return false;
        }
        if (done < least) least = done;
    }
    b->all_known = least;
    return true;
}

static bool all_done(struct kl_board *b, uint64_t turns, int *blocker)
{
    return b->all_known >= turns || ask_all(b, turns, blocker);
}

bool kl_board_all_done(struct kl_board *b, int *blocker)
{
    return all_done(b, b->turn, blocker);
}

bool kl_board_may_post(struct kl_board *b, size_t bytes, int *blocker)
{
    const uint64_t round = bytes <= KL_BOARD_INLINE             ? KL_BOARD_AHEAD
                           : bytes <= b->cell_bytes             ? KL_BOARD_CELLS
                           : b->ahead && bytes <= b->tray_bytes ? KL_BOARD_TRAYS
                                                                : b->nslots;

    if (b->turn < round || b->all_known >= b->turn - round + 1) return true;
    return ask_all(b, b->turn - round + 1 + round / PART, blocker);
}

/* ---- comparing ---- */

enum kl_comparison kl_board_compare(struct kl_board *b)
{
    for (; b->compared <= b->turn; b->compared++) {
        const size_t post = 1 + b->compared % KL_BOARD_POSTS;
        const struct kl_board_line *his = &b->neighbours[post];
        if (kl_load_acquire(&his->ready) != b->compared + 1) return KL_NOT_YET; /* pairs with kl_board_announce */
        if (his->signature != b->own[post].signature) return KL_OTHER;
    }
    return KL_SAME;
}

static bool neighbour_has_posted(const struct kl_board *b, uint64_t turn)
{
    return kl_load_relaxed(&b->neighbours[1 + turn % KL_BOARD_POSTS].ready) == turn + 1;
}

bool kl_board_neighbour_is_near(const struct kl_board *b)
{
    return neighbour_has_posted(b, b->turn) || (b->turn && neighbour_has_posted(b, b->turn - 1));
}

ncclResult_t kl_board_refuse(const struct kl_board *b, int from, const char *function)
{
    return KL_FAIL(ncclInvalidUsage,
                   "%s: rank %d sent what belongs to another call than that of rank %d: the ranks call with different "
                   "counts, types or operations",
                   function, from, b->rank);
}
