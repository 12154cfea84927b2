/* SPDX-License-Identifier: Apache-2.0 */
#include "coll/shm/shm_exchange.h"

#include "base/atomic.h"
#include "base/error.h"
#include "base/slot_permutation.h"
#include "device/host/bulk_copy.h"
#include "os/populate.h"

#include <string.h>

/* Bytes: the posts of all ranks in a round should stay in a core's cache. */
enum { SHARE = 256 << 10, MOST_SLOT = 32 << 10 };
enum {
    PART = 16
}; /* of a cycle: so much room is waited for. A rank that took each place as it came would read others' lines all the time */
enum { SLOT_IN_CELLS = 8 };
_Static_assert(1 << (KL_SHM_EXCHANGE_SIZES - 1) < SLOT_IN_CELLS, "a slot is the largest");
enum {
    PACKET_PLACE = 5 * KL_LINE
}; /* an odd number of them: powers of two would meet in the same sets of a cache; with 3, AMD's processors were slower */
_Static_assert((int)PACKET_PLACE >= (int)KL_SHM_EXCHANGE_PACKET, "there is room");
enum { ALL_LINES = 4096 }; /* of all ranks together, unless each has but the least */

/* ---- places ---- */

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

/* As many places as a rank goes through in a cycle of the caches, if so many ranks post. */
static struct kl_shm_exchange_area in_cycle(int posting, size_t bytes, uint32_t least, uint32_t most)
{
    const size_t cycle = kl_cache_cycle(posting);
    uint32_t n = least;

    while (n < most && n * bytes < cycle) n *= 2;
    return (struct kl_shm_exchange_area){.bytes = bytes, .places = n};
}

static uint32_t count_lines(int nranks)
{
    uint32_t n = KL_SHM_EXCHANGE_MOST_LINES;

    while (n > KL_SHM_EXCHANGE_LEAST_LINES && n * (uint32_t)nranks > ALL_LINES) n /= 2;
    return n;
}

/* Of so many cells. */
static struct kl_shm_exchange_area of_cells(int nranks, int times, int posting)
{
    return in_cycle(posting, (size_t)times * cell_bytes(nranks), KL_SHM_EXCHANGE_LEAST_CELLS / (uint32_t)times,
                    KL_SHM_EXCHANGE_AHEAD);
}

static struct kl_shm_exchange_area area_of(int nranks, int which)
{
    if (which == KL_SHM_EXCHANGE_PACKETS)
        return (struct kl_shm_exchange_area){.bytes = PACKET_PLACE, .places = count_lines(nranks)};
    if (which < KL_SHM_EXCHANGE_CELLS) return of_cells(nranks, 1 << (which - KL_SHM_EXCHANGE_SOLO), 1);
    if (which < KL_SHM_EXCHANGE_SLOTS) return of_cells(nranks, 1 << (which - KL_SHM_EXCHANGE_CELLS), nranks);
    return in_cycle(nranks, slot_bytes(nranks), KL_SHM_EXCHANGE_LEAST_SLOTS, KL_SHM_EXCHANGE_MOST_SLOTS);
}

static size_t bytes_of(int nranks, const struct kl_shm_exchange_area *area)
{
    return (size_t)nranks * area->places * area->bytes;
}

static size_t posts_bytes(int nranks)
{
    return (size_t)nranks * sizeof(struct kl_shm_exchange_posts);
}

size_t kl_shm_exchange_bytes(int nranks)
{
    size_t bytes = posts_bytes(nranks);

    for (int i = 0; i < KL_SHM_EXCHANGE_AREAS; i++) {
        const struct kl_shm_exchange_area area = area_of(nranks, i);
        bytes += bytes_of(nranks, &area);
    }
    return bytes;
}

static void order_lines(struct kl_shm_exchange *b)
{
    const unsigned bits = (unsigned)__builtin_ctz(b->nlines);

    for (uint32_t round = 0; round < b->nlines; round++) {
        b->order[0][round] = (uint16_t)round;
        b->order[1][round] = (uint16_t)kl_slot_permute(round, bits);
    }
}

void kl_shm_exchange_init(struct kl_shm_exchange *b, int nranks, int rank, bool oversubscribed)
{
    *b = (struct kl_shm_exchange){.nranks = nranks,
                                  .rank = rank,
                                  .oversubscribed = oversubscribed,
                                  .cell_bytes = cell_bytes(nranks),
                                  .slot_bytes = slot_bytes(nranks),
                                  .nlines = count_lines(nranks)};
    for (int i = 0; i < KL_SHM_EXCHANGE_AREAS; i++) {
        b->area[i] = area_of(nranks, i);
        b->area[i].used = KL_SHM_EXCHANGE_FIRST_PLACES;
    }
    order_lines(b);
    kl_shm_exchange_begin(b, false, false);
    kl_shm_exchange_group(b, NULL);
}

/* Cores with ranks are numbered as these appear; false: some have more than others, or each has one. */
static bool group_by(struct kl_shm_exchange_groups *g, int nranks, const int32_t *core)
{
    uint8_t number[KL_SHM_EXCHANGE_RANKS], members[KL_SHM_EXCHANGE_RANKS] = {0};

    memset(number, KL_SHM_EXCHANGE_RANKS, sizeof number);
    for (int r = 0; r < nranks; r++) {
        uint8_t *group = &number[core[r]];
        if (*group == KL_SHM_EXCHANGE_RANKS) *group = (uint8_t)g->n++;
        g->group[r] = *group;
        g->place[r] = members[*group]++;
    }
    g->size = nranks / g->n;
    for (int i = 0; i < g->n; i++)
        if (members[i] != g->size) return false;
    for (int r = 0; r < nranks; r++) g->rank[g->group[r] * g->size + g->place[r]] = (uint8_t)r;
    return g->size > 1;
}

static void group_all(struct kl_shm_exchange_groups *g, int nranks)
{
    *g = (struct kl_shm_exchange_groups){.n = 1, .size = nranks};
    for (int r = 0; r < nranks; r++) g->place[r] = g->rank[r] = (uint8_t)r;
}

void kl_shm_exchange_group(struct kl_shm_exchange *b, const int32_t *core)
{
    b->groups = (struct kl_shm_exchange_groups){0};
    if (!core || !group_by(&b->groups, b->nranks, core)) group_all(&b->groups, b->nranks);
}

void kl_shm_exchange_attach(struct kl_shm_exchange *b, void *memory, const struct kl_arena_mark *mark)
{
    const bool is_first = b->posts != memory;
    unsigned char *at = memory;

    b->posts = memory;
    b->own = &b->posts[b->rank];
    b->neighbours = &b->posts[kl_shm_exchange_neighbour(b)];
    at += posts_bytes(b->nranks);
    for (int i = 0; i < KL_SHM_EXCHANGE_AREAS; i++) {
        b->area[i].at = at;
        at += bytes_of(b->nranks, &b->area[i]);
    }
    b->mark = mark;
    if (is_first) kl_populate(b->own, sizeof *b->own);
}

/* Between two lines that are timed. */
enum { COPIED = 256 << 10 };

/* Not one of the first: these may have been fetched ahead. Posts lie where caches keep them (kl_cache_cycle). */
void kl_shm_exchange_copies(struct kl_shm_exchange *b, void *line, size_t bytes)
{
    b->copied += bytes;
    if (b->copied < COPIED) return;
    b->copied = 0;
    const uint64_t began = kl_copy_out_time();
    *(char *)line = 0;
    kl_fetch_add_seq_cst(&b->timed, 1); /* waits for that store */
    kl_copy_out_timed(&b->out, began);
}

/* Rounds that a rank is done with; looks there only if it is not known to be done with `rounds`. */
static uint64_t rounds_of(struct kl_shm_exchange *b, int rank, uint64_t rounds)
{
    if (b->known[rank] < rounds)
        b->known[rank] = kl_load_acquire(&b->posts[rank].done); /* pairs with kl_shm_exchange_next_round */
    return b->known[rank];
}

static bool ask_all(struct kl_shm_exchange *b, uint64_t rounds, int *blocker)
{
    uint64_t least = UINT64_MAX;

    for (int r = 0; r < b->nranks; r++) {
        if (r == b->rank) continue;
        const uint64_t done = rounds_of(b, r, rounds);
        if (done < rounds) {
            *blocker = r;
            return false;
        }
        if (done < least) least = done;
    }
    b->all_known = least;
    return true;
}

static bool all_done(struct kl_shm_exchange *b, uint64_t rounds, int *blocker)
{
    return b->all_known >= rounds || ask_all(b, rounds, blocker);
}

bool kl_shm_exchange_all_done(struct kl_shm_exchange *b, int *blocker)
{
    return all_done(b, b->round, blocker);
}

/*
 * Posts in an area until the place of the next one is written anew, at least. When places were doubled, the first half of them was used as long ago as there were
 * places before.
 */
static uint32_t cycle_of_area(const struct kl_shm_exchange_area *area)
{
    const bool doubled = area->uses < (uint64_t)(KL_SHM_EXCHANGE_USES_PER_PLACE / 2 + 1) * area->used;

    return doubled && area->used > KL_SHM_EXCHANGE_FIRST_PLACES ? area->used / 2 : area->used;
}

/* Rounds until the place of the data, or the line of their flag, is written anew. */
static uint64_t cycle_of(const struct kl_shm_exchange *b, size_t bytes)
{
    if (kl_shm_exchange_is_packed(b, bytes)) return KL_SHM_EXCHANGE_AHEAD;
    if (bytes <= KL_SHM_EXCHANGE_INLINE) return b->nlines;
    const uint32_t places = cycle_of_area(kl_shm_exchange_area_of(b, bytes));
    return bytes >= b->packed_from || places < b->nlines ? places : b->nlines;
}

bool kl_shm_exchange_may_post(struct kl_shm_exchange *b, size_t bytes, int *blocker)
{
    const uint64_t cycle = cycle_of(b, bytes);

    if (b->round < cycle || b->all_known >= b->round - cycle + 1) return true;
    return ask_all(b, b->round - cycle + 1 + cycle / PART, blocker);
}

/* ---- notices ---- */

bool kl_shm_exchange_give_notice(struct kl_shm_exchange *b, uint32_t number, uint32_t word, int *blocker)
{
    for (int r = 1; r < b->nranks; r++)
        if (kl_load_acquire(&b->posts[r].heard) + 2 < number) { /* pairs with kl_shm_exchange_receive_notice */
            *blocker = r;
            return false;
        }
    kl_store_release(&b->posts[0].notice[number % 2],
                     (uint64_t)number << 32 | word); /* pairs with kl_shm_exchange_receive_notice */
    return true;
}

bool kl_shm_exchange_receive_notice(struct kl_shm_exchange *b, uint32_t number, uint32_t *word)
{
    const uint64_t notice =
        kl_load_acquire(&b->posts[0].notice[number % 2]); /* pairs with kl_shm_exchange_give_notice */

    if (notice >> 32 != number) return false;
    *word = (uint32_t)notice;
    kl_store_release(&b->own->heard, number); /* pairs with kl_shm_exchange_give_notice */
    return true;
}

/* ---- comparing ---- */

enum kl_comparison kl_shm_exchange_compare(struct kl_shm_exchange *b)
{
    for (; b->compared <= b->round; b->compared++) {
        const size_t at = b->compared % KL_SHM_EXCHANGE_POSTS;
        const uint64_t own = kl_load_relaxed(&b->own->call[at]);        /* of the same thread */
        const uint64_t his = kl_load_acquire(&b->neighbours->call[at]); /* pairs with kl_shm_exchange_call */
        if (his != own) return kl_shm_exchange_same_round(his, own) ? KL_OTHER : KL_NOT_YET;
    }
    return KL_SAME;
}

/* A call of another size is posted elsewhere. Its signature lies in a line that the rank writes in every round, so it is not read each time. */
bool kl_shm_exchange_calls_other(struct kl_shm_exchange *b, int rank, uint64_t signature)
{
    const uint64_t call = kl_shm_exchange_call_of(b, signature);

    if (++b->misses % KL_SHM_EXCHANGE_MISSES) return false;
    const uint64_t his = kl_load_relaxed(&b->posts[rank].call[b->round % KL_SHM_EXCHANGE_POSTS]);
    return his != call && kl_shm_exchange_same_round(his, call);
}

enum { CALLS_OF_LINE = KL_PREFETCH_LINE / sizeof(uint64_t) };

static bool neighbour_has_called(const struct kl_shm_exchange *b, uint64_t round)
{
    const uint64_t his = kl_load_relaxed(&b->neighbours->call[round % KL_SHM_EXCHANGE_POSTS]);

    return kl_shm_exchange_same_round(his, (round + 1) << KL_SHM_EXCHANGE_CALL_BITS);
}

bool kl_shm_exchange_neighbour_is_near(const struct kl_shm_exchange *b)
{
    if (b->round - b->taken >= CALLS_OF_LINE && b->round % CALLS_OF_LINE != CALLS_OF_LINE - 1) return false;
    return neighbour_has_called(b, b->round) || (b->round && neighbour_has_called(b, b->round - 1));
}

ncclResult_t kl_shm_exchange_refuse(const struct kl_shm_exchange *b, int from, const char *function)
{
    return KL_FAIL(ncclInvalidUsage,
                   "%s: rank %d sent data of another call than rank %d: the ranks call with different "
                   "counts, types or operations",
                   function, from, b->rank);
}
