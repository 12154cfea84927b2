/* SPDX-License-Identifier: Apache-2.0 */
/** net_data.c - checks 6 to 9: messages. */
#include "tools/kolo/plugin/check.h"
#include "tools/kolo/plugin/trial.h"

#include <stdlib.h>
#include <string.h>

enum { MANY = 32, MOST = 4096, GUARD = 256, CANARY = 0x5a, POLLS = 2000, LARGE = 4 << 20 };

/* ---- 6: calls never block ---- */

/* A receive whose message does not come is tested again and again. */
static bool poll_alone(struct kl_trial *b, struct kl_trial_pair *p, char *to, const char *from)
{
    struct kl_trial_request r, s;

    if (!kl_trial_irecv(b, p, to, MOST, 0, &r)) return false;
    for (int i = 0; i < POLLS; i++) {
        if (!kl_trial_test(b, &r)) return false;
        if (r.done) return kl_check_fails(b->result, "a receive was done without a message");
    }
    return kl_trial_isend(b, p, from, MOST, 0, &s) && kl_trial_finish(b, &s, &r);
}

void kl_check_calls(const char *file, struct kl_check_result *r)
{
    char from[MOST] = {0}, to[MOST];
    uint64_t best = UINT64_MAX;
    struct kl_trial b;
    struct kl_trial_pair p;

    if (!kl_trial_open(&b, file, r) || !kl_trial_pair(&b, &p)) return;
    for (int try = 0; try < KL_TRIAL_TRIES; try++) {
        b.data.most_ns = 0;
        if (!poll_alone(&b, &p, to, from)) return;
        if (b.data.most_ns < best) best = b.data.most_ns;
    }
    if (best > KL_TRIAL_SLOW_MS * 1000000u) kl_check_fails(r, "the slowest call took %.1f ms", (double)best / 1e6);
    kl_check_notes(r, "%llu calls, the slowest %.2f ms", (unsigned long long)b.data.calls, (double)best / 1e6);
    kl_trial_unpair(&b, &p);
    kl_trial_close(&b);
}

/* ---- 7: order ---- */

static bool finish_all(struct kl_trial *b, struct kl_trial_request *s, struct kl_trial_request *q)
{
    for (int i = 0; i < MANY; i++)
        if (!kl_trial_finish(b, &s[i], &q[i])) return false;
    return true;
}

static bool exchange_many(struct kl_trial *b, struct kl_trial_pair *p, unsigned round)
{
    static char from[MANY][MOST], to[MANY][MOST];
    struct kl_trial_request s[MANY], q[MANY];

    for (unsigned i = 0; i < MANY; i++) {
        memset(to[i], 0, MOST);
        kl_trial_fill(from[i], MOST, round * MANY + i);
        if (!kl_trial_irecv(b, p, to[i], MOST, 0, &q[i])) return false;
    }
    for (unsigned i = 0; i < MANY; i++)
        if (!kl_trial_isend(b, p, from[i], MOST, 0, &s[i])) return false;
    if (!finish_all(b, s, q)) return false;
    for (unsigned i = 0; i < MANY; i++)
        if (!kl_trial_is_filled(to[i], MOST, round * MANY + i))
            return kl_check_fails(b->result, "receive %u of %d has not message %u", i, MANY, i);
    return true;
}

void kl_check_order(const char *file, struct kl_check_result *r)
{
    struct kl_trial b;
    struct kl_trial_pair p;

    if (!kl_trial_open(&b, file, r) || !kl_trial_pair(&b, &p)) return;
    for (unsigned round = 0; round < 10; round++)
        if (!exchange_many(&b, &p, round)) return;
    kl_check_notes(r, "%d outstanding, 10 rounds", MANY);
    kl_trial_unpair(&b, &p);
    kl_trial_close(&b);
}

/* ---- 8: sizes ---- */

static bool check_size(struct kl_trial *b, struct kl_trial_pair *p, size_t sent, size_t posted)
{
    static char from[LARGE], to[LARGE];
    struct kl_trial_request s, q;

    if (!kl_trial_irecv(b, p, to, posted, 0, &q) || !kl_trial_test(b, &q)) return false;
    if (!q.done && q.size != -1) return kl_check_fails(b->result, "test wrote the size %d before it was done", q.size);
    if (!kl_trial_isend(b, p, from, sent, 0, &s) || !kl_trial_finish(b, &s, &q)) return false;
    if (q.size == -1) return kl_check_fails(b->result, "test wrote no size of %zu bytes", sent);
    if ((size_t)q.size != sent) return kl_check_fails(b->result, "%zu bytes came as %d", sent, q.size);
    return true;
}

void kl_check_sizes(const char *file, struct kl_check_result *r)
{
    static const size_t sizes[] = {0, 1, 3, 127, 4095, 65537, LARGE - 1, LARGE};
    struct kl_trial b;
    struct kl_trial_pair p;

    if (!kl_trial_open(&b, file, r) || !kl_trial_pair(&b, &p)) return;
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
        if (!check_size(&b, &p, sizes[i], sizes[i]) || !check_size(&b, &p, sizes[i], LARGE)) return;
    kl_check_notes(r, "0 bytes to 4 MiB, posted alike and larger");
    kl_trial_unpair(&b, &p);
    kl_trial_close(&b);
}

/* ---- 9: buffers ---- */

static bool check_guards(struct kl_trial *b, const unsigned char *room, size_t bytes, size_t posted)
{
    for (size_t i = 0; i < GUARD; i++)
        if (room[i] != CANARY) return kl_check_fails(b->result, "a byte before the buffer was written");
    for (size_t i = GUARD + bytes; i < GUARD + posted + GUARD; i++)
        if (room[i] != CANARY)
            return kl_check_fails(b->result, "byte %zu was written by a message of %zu", i - GUARD, bytes);
    return true;
}

static bool check_buffer(struct kl_trial *b, struct kl_trial_pair *p, size_t bytes, unsigned seed)
{
    static unsigned char from[LARGE], room[GUARD + LARGE + GUARD];
    struct kl_trial_request s, q;

    memset(room, CANARY, sizeof room);
    kl_trial_fill(from, bytes, seed);
    if (!kl_trial_irecv(b, p, room + GUARD, LARGE, 0, &q) || !kl_trial_isend(b, p, from, bytes, 0, &s)) return false;
    while (!s.done)
        if (!kl_trial_test(b, &s) || !kl_trial_test(b, &q)) return false;
    memset(from, 0, bytes); /* from now on it may change */
    if (!kl_trial_finish(b, &s, &q)) return false;
    if (!kl_trial_is_filled(room + GUARD, bytes, seed))
        return kl_check_fails(b->result, "%zu bytes came with other contents", bytes);
    return check_guards(b, room, bytes, LARGE);
}

void kl_check_buffers(const char *file, struct kl_check_result *r)
{
    static const size_t sizes[] = {1, 1000, 65536, LARGE - 3};
    struct kl_trial b;
    struct kl_trial_pair p;

    if (!kl_trial_open(&b, file, r) || !kl_trial_pair(&b, &p)) return;
    for (unsigned i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
        if (!check_buffer(&b, &p, sizes[i], i)) return;
    kl_check_notes(r, "1 byte to 4 MiB, with guards");
    kl_trial_unpair(&b, &p);
    kl_trial_close(&b);
}
