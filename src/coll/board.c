/* SPDX-License-Identifier: Apache-2.0 */
#include "coll/board.h"

#include "base/clock.h"
#include "os/peer_memory.h"

#include <string.h>
#include <unistd.h>

enum {
    SHARE = 1 << 20,
    MOST_SLOT = 32 << 10,
    SLOT_IN_CELLS = 8
}; /* bytes: all slots that are in use at a time should stay in a core's cache */

/* Of a slot: what a rank posts at most. */
static size_t slot_bytes(int nranks)
{
    size_t share = (size_t)SHARE / KL_BOARD_SLOTS / (size_t)nranks * 2;

    return share < MOST_SLOT ? share / KL_LINE * KL_LINE : MOST_SLOT;
}

static size_t cell_bytes(int nranks)
{
    return slot_bytes(nranks) / SLOT_IN_CELLS / KL_LINE * KL_LINE;
}

static size_t lines_bytes(int nranks)
{
    return (size_t)nranks * (KL_BOARD_POSTS + 1) * sizeof(struct kl_board_line);
}

static size_t cells_bytes(int nranks)
{
    return (size_t)nranks * KL_BOARD_CELLS * cell_bytes(nranks);
}

size_t kl_board_bytes(int nranks)
{
    return lines_bytes(nranks) + cells_bytes(nranks) + (size_t)nranks * KL_BOARD_SLOTS * slot_bytes(nranks);
}

void kl_board_init(struct kl_board *b, int nranks, int rank)
{
    *b = (struct kl_board){
        .nranks = nranks, .rank = rank, .cell_bytes = cell_bytes(nranks), .slot_bytes = slot_bytes(nranks)};
}

void kl_board_attach(struct kl_board *b, void *memory, const struct kl_arena_mark *mark)
{
    b->lines = memory;
    b->cells = (unsigned char *)memory + lines_bytes(b->nranks);
    b->slots = b->cells + cells_bytes(b->nranks);
    b->mark = mark;
}

static bool is_done(struct kl_board *b, int rank, uint64_t turns)
{
    if (rank == b->rank || b->known[rank] >= turns) return true;
    b->known[rank] = kl_load_acquire(&kl_board_done(b, rank)->ready); /* pairs with kl_board_next_turn */
    return b->known[rank] >= turns;
}

static bool all_done(struct kl_board *b, uint64_t turns, int *blocker)
{
    for (int r = 0; r < b->nranks; r++) {
        if (is_done(b, r, turns)) continue;
        *blocker = r;
        return false;
    }
    return true;
}

bool kl_board_all_done(struct kl_board *b, int *blocker)
{
    return all_done(b, b->turn, blocker);
}

bool kl_board_may_post(struct kl_board *b, size_t bytes, int *blocker)
{
    const bool small = bytes <= KL_BOARD_INLINE || bytes <= b->cell_bytes;
    const uint64_t round = small ? KL_BOARD_CELLS : KL_BOARD_SLOTS;

    return b->turn < round || all_done(b, b->turn - round + 1, blocker);
}

/* ---- comparing ---- */

enum kl_comparison kl_board_compare(struct kl_board *b)
{
    const int neighbour = kl_board_neighbour(b);

    for (; b->compared <= b->turn; b->compared++) {
        const struct kl_board_line *his = kl_board_post_of(b, neighbour, b->compared);
        if (kl_load_acquire(&his->ready) != b->compared + 1) return KL_NOT_YET; /* pairs with kl_board_announce */
        if (his->signature != kl_board_post_of(b, b->rank, b->compared)->signature) return KL_OTHER;
    }
    return KL_SAME;
}

/* ---- meeting ---- */

struct introduction {
    int64_t pid;
    uint64_t address, word; /* what lies there */
};

/* Something that does not lie at this address of another process by chance. */
static uint64_t some_word(const struct kl_board *b)
{
    return (kl_now_ns() ^ (uint64_t)(uintptr_t)b ^ (uint64_t)getpid() << 40) * 0x9e3779b97f4a7c15u;
}

static void introduce(struct kl_board *b)
{
    b->word = some_word(b);
    const struct introduction mine = {getpid(), (uint64_t)(uintptr_t)&b->word, b->word};
    memcpy(kl_board_data(b, b->rank, sizeof mine), &mine, sizeof mine);
}

static bool can_read(struct kl_board *b, int rank)
{
    struct introduction his;
    uint64_t word;

    memcpy(&his, kl_board_data(b, rank, sizeof his), sizeof his);
    b->pid[rank] = (int32_t)his.pid;
    return kl_peer_memory_read(b->pid[rank], &word, his.address, sizeof word) && word == his.word;
}

/* In the first turn all try to read; in the second they say whether they could. */
static void post_meeting(struct kl_board *b, bool reader)
{
    if (!b->turn) {
        b->reads = reader;
        introduce(b);
    } else {
        memcpy(kl_board_data(b, b->rank, sizeof b->reads), &b->reads, sizeof b->reads);
    }
    kl_board_announce(b, 0);
    b->posted = true;
}

static void hear(struct kl_board *b, int rank)
{
    bool his;

    if (rank == b->rank) return;
    if (!b->turn) {
        b->reads = b->reads && can_read(b, rank);
    } else {
        memcpy(&his, kl_board_data(b, rank, sizeof his), sizeof his);
        b->reads = b->reads && his;
    }
}

enum kl_progress kl_board_meet(struct kl_board *b, bool reader)
{
    enum kl_progress got = KL_STALLED;

    while (!kl_board_has_met(b)) {
        if (!b->posted) post_meeting(b, reader), got = KL_MOVED;
        for (; b->heard < b->nranks; b->heard++, got = KL_MOVED) {
            if (!kl_board_ready(b, b->heard)) return got;
            hear(b, b->heard);
        }
        b->heard = 0;
        b->posted = false;
        kl_board_next_turn(b);
        b->compared = b->turn;
    }
    return KL_DONE;
}
