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

static size_t posts_bytes(int nranks)
{
    return (size_t)nranks * sizeof(struct kl_board_posts);
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
    return posts_bytes(nranks) + cells_bytes(nranks) + trays_bytes(nranks) +
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
    b->posts = memory;
    b->own = &b->posts[b->rank];
    b->neighbours = &b->posts[kl_board_neighbour(b)];
    b->cells = (unsigned char *)memory + posts_bytes(b->nranks);
    b->trays = b->cells + cells_bytes(b->nranks);
    b->slots = b->trays + trays_bytes(b->nranks);
    b->mark = mark;
}

/* Turns that a rank is done with; looks there only if it is not known to be done with `turns`. */
static uint64_t turns_of(struct kl_board *b, int rank, uint64_t turns)
{
    if (b->known[rank] < turns)
        b->known[rank] = kl_load_acquire(&b->posts[rank].done); /* pairs with kl_board_next_turn */
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

/* Turns until what is written now is written anew. */
static uint64_t round_of(const struct kl_board *b, size_t bytes)
{
    if (bytes <= KL_BOARD_INLINE) return kl_board_is_brief(b, bytes) ? KL_BOARD_AHEAD : KL_BOARD_LINES;
    if (bytes <= b->cell_bytes) return KL_BOARD_CELLS;
    return b->ahead && bytes <= b->tray_bytes ? KL_BOARD_TRAYS : b->nslots;
}

bool kl_board_may_post(struct kl_board *b, size_t bytes, int *blocker)
{
    const uint64_t round = round_of(b, bytes);

    if (b->turn < round || b->all_known >= b->turn - round + 1) return true;
    return ask_all(b, b->turn - round + 1 + round / PART, blocker);
}

/* ---- comparing ---- */

enum kl_comparison kl_board_compare(struct kl_board *b)
{
    for (; b->compared <= b->turn; b->compared++) {
        const size_t at = b->compared % KL_BOARD_POSTS;
        const uint64_t own = kl_load_relaxed(&b->own->call[at]);        /* of the same thread */
        const uint64_t his = kl_load_acquire(&b->neighbours->call[at]); /* pairs with kl_board_call */
        if (his != own) return kl_board_same_turn(his, own) ? KL_OTHER : KL_NOT_YET;
    }
    return KL_SAME;
}

/* Of another size it is posted elsewhere. What it calls lies in a line which it writes in every turn: it is not looked at each time. */
bool kl_board_calls_other(struct kl_board *b, int rank, uint64_t signature)
{
    const uint64_t call = kl_board_call_of(b, signature);

    if (++b->vain % KL_BOARD_VAIN) return false;
    const uint64_t his = kl_load_relaxed(&b->posts[rank].call[b->turn % KL_BOARD_POSTS]);
    return his != call && kl_board_same_turn(his, call);
}

static bool neighbour_has_called(const struct kl_board *b, uint64_t turn)
{
    const uint64_t his = kl_load_relaxed(&b->neighbours->call[turn % KL_BOARD_POSTS]);

    return kl_board_same_turn(his, (turn + 1) << KL_BOARD_CALL_BITS);
}

bool kl_board_neighbour_is_near(const struct kl_board *b)
{
    return neighbour_has_called(b, b->turn) || (b->turn && neighbour_has_called(b, b->turn - 1));
}

ncclResult_t kl_board_refuse(const struct kl_board *b, int from, const char *function)
{
    return KL_FAIL(ncclInvalidUsage,
                   "%s: rank %d sent what belongs to another call than that of rank %d: the ranks call with different "
                   "counts, types or operations",
                   function, from, b->rank);
}
