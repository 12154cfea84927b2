/* SPDX-License-Identifier: Apache-2.0 */
/** net_data.c - checks 6 to 9: messages. */
#include "tools/kolo/plugin/check.h"
#include "tools/kolo/plugin/trial.h"

#include "base/clock.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum {
    MANY = 32,
    MOST = 4096,
    GUARD = 256,
    CANARY = 0x5a,
    POLLS = 2000,
    LARGE = 4 << 20,
    STOPPED = 256 << 10,
    FIRST_TAG = 100,
    HUGE_BYTES = 1 << 30,
    PAGE_BYTES = 2 << 20
};

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

/* One more message to a peer that is stopped, if there is room, and a look at those before. */
static bool push(struct kl_trial *b, void *comm, char *data, void *request[MANY])
{
    const struct kl_net_recv m = {.data = data, .bytes = STOPPED};
    int done, size;

    for (int i = 0; i < MANY; i++) {
        kl_trial_note(b, request[i] ? "test" : "isend");
        kl_call_clock_begin(&b->clock);
        const ncclResult_t rc = request[i] ? kl_net_library_test(&b->library, request[i], &done, &size)
                                           : b->library.adapter->isend(&b->library, comm, &m, &request[i]);
        kl_call_times_add(&b->data, kl_call_clock_took(&b->clock));
        if (rc) return kl_check_fails(b->result, "%s to a stopped peer returned %d", b->result->call, (int)rc);
        kl_trial_note(b, "");
        if (!request[i]) break; /* there is no room */
    }
    return true;
}

/* Connections of others go on meanwhile. */
static bool talk_to_stopped(struct kl_trial *b, struct kl_trial_peer *peer, struct kl_trial_pace *pace)
{
    static char data[STOPPED], from[MOST], to[MOST];
    struct kl_trial_pair p = {.listener = NULL}, own;
    void *request[MANY] = {NULL}, *more[MANY] = {NULL};

    if (!kl_trial_peer_meet(b, peer, &p) || !kl_trial_pair(b, &own)) return false;
    kill(peer->pid, SIGSTOP);
    for (int try = 0; try < KL_TRIAL_TRIES; try++) {
        b->data = (struct kl_call_times){.calls = 0};
        for (int i = 0; i < 20; i++)
            if (!push(b, p.send, data, request) || !push(b, p.send, data, more) ||
                !kl_trial_move(b, &own, from, to, MOST))
                return false;
        kl_trial_pace_add(pace, &b->data);
    }
    kl_trial_unpair(b, &own);
    kl_trial_unpair(b, &p);
    return true;
}

void kl_check_calls(const char *file, struct kl_check_result *r)
{
    char from[MOST] = {0}, to[MOST];
    struct kl_trial_pace pace = {.calls = 0}, stopped = {.calls = 0};
    struct kl_trial_peer peer;
    struct kl_trial b;
    struct kl_trial_pair p;

    if (!kl_trial_peer_start(&peer, file, r)) return;
    if (!kl_trial_open(&b, file, r) || !kl_trial_pair(&b, &p)) return;
    for (int try = 0; try < KL_TRIAL_TRIES; try++) {
        b.data = (struct kl_call_times){.calls = 0};
        if (!poll_alone(&b, &p, to, from)) return;
        kl_trial_pace_add(&pace, &b.data);
    }
    kl_trial_unpair(&b, &p);
    if (!kl_trial_pace_judge(&pace, r) || !talk_to_stopped(&b, &peer, &stopped)) return;
    kl_trial_peer_kill(&peer);
    if (stopped.most_ns > KL_TRIAL_SLOW_MS * 1000000u)
        kl_check_fails(r, "with a peer that is stopped, the slowest call took %.1f ms", (double)stopped.most_ns / 1e6);
    kl_check_notes(r, "%llu calls, the slowest %.2f ms, 99%% within %.3f ms; with a stopped peer %.2f ms",
                   (unsigned long long)pace.calls, (double)pace.most_ns / 1e6, (double)pace.p99_ns / 1e6,
                   (double)stopped.most_ns / 1e6);
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

/* One receive of several messages, which come in any order, each with its tag and size. */
static bool exchange_group(struct kl_trial *b, struct kl_trial_pair *p, int n, unsigned round)
{
    static char from[KL_NET_RECVS][MOST], to[KL_NET_RECVS][MOST];
    const struct kl_net_adapter *a = b->library.adapter;
    struct kl_net_recv recv[KL_NET_RECVS];
    struct kl_trial_request s[KL_NET_RECVS];
    int sizes[KL_NET_RECVS], done = 0;
    void *request = NULL;

    for (int i = 0; i < n; i++) {
        recv[i] = (struct kl_net_recv){.data = to[i], .bytes = MOST, .tag = FIRST_TAG + i};
        sizes[i] = -1;
        kl_trial_fill(from[i], MOST, round * MANY + (unsigned)i);
        kl_trial_note(b, "regMr");
        if (a->reg_mr(&b->library, p->recv, to[i], MOST, KL_NET_HOST, &recv[i].mr))
            return kl_check_fails(b->result, "regMr failed");
    }
    kl_trial_note(b, "irecv of several");
    while (!request)
        if (a->irecv(&b->library, p->recv, n, recv, &request))
            return kl_check_fails(b->result, "irecv of %d messages failed", n);
    for (int i = 0; i < n; i++) {
        const int k = (n - 1 - i + (int)round) % n;
        if (!kl_trial_isend(b, p, from[k], MOST - (size_t)k, FIRST_TAG + k, &s[k])) return false;
    }
    while (!done) {
        kl_trial_note(b, "test");
        if (kl_net_library_test(&b->library, request, &done, sizes)) return kl_check_fails(b->result, "test failed");
        for (int i = 0; i < n; i++)
            if (!kl_trial_test(b, &s[i])) return false;
    }
    for (int i = 0; i < n; i++) {
        while (!s[i].done)
            if (!kl_trial_test(b, &s[i])) return false;
        if (kl_net_library_dereg_mr(&b->library, p->recv, recv[i].mr))
            return kl_check_fails(b->result, "deregMr failed");
        if (sizes[i] != MOST - i)
            return kl_check_fails(b->result, "size %d of a receive of %d messages is %d, not %d", i, n, sizes[i],
                                  MOST - i);
        if (!kl_trial_is_filled(to[i], (size_t)sizes[i], round * MANY + (unsigned)i))
            return kl_check_fails(b->result, "message %d of a receive of %d has other contents than its tag's", i, n);
    }
    kl_trial_note(b, "");
    return true;
}

void kl_check_order(const char *file, struct kl_check_result *r)
{
    struct kl_trial b;
    struct kl_trial_pair p;

    if (!kl_trial_open(&b, file, r) || !kl_trial_pair(&b, &p)) return;
    for (unsigned round = 0; round < 10; round++)
        if (!exchange_many(&b, &p, round)) return;
    const int most = b.library.device[0].max_recvs;
    for (int n = 2; n <= most; n++)
        for (unsigned round = 0; round < 5; round++)
            if (!exchange_group(&b, &p, n, round)) return;
    kl_check_notes(r, "%d outstanding, 10 rounds; up to %d in a receive", MANY, most);
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
    if (s.size != -1 && (size_t)s.size != sent)
        return kl_check_fails(b->result, "test wrote the size %d of a message of %zu bytes that was sent", s.size,
                              sent);
    if ((size_t)q.size != sent) return kl_check_fails(b->result, "%zu bytes came as %d", sent, q.size);
    return true;
}

/* Memory of 2 MiB, again and again, so that no machine is too small. NULL: there is none. */
static char *map_huge(void)
{
    char *at = mmap(NULL, HUGE_BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    const int fd = memfd_create("kolo check", MFD_CLOEXEC);
    bool good = at != MAP_FAILED && fd >= 0 && !ftruncate(fd, PAGE_BYTES);

    for (size_t i = 0; good && i < HUGE_BYTES; i += PAGE_BYTES)
        good = mmap(at + i, PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0) != MAP_FAILED;
    if (fd >= 0) close(fd);
    return good ? at : NULL;
}

static bool check_huge(struct kl_trial *b, struct kl_trial_pair *p)
{
    const size_t bytes = b->library.device[0].max_bytes;
    char *from = map_huge(), *to = map_huge();
    struct kl_trial_request s, q;

    if (!from || !to) return true;
    kl_trial_fill(from, PAGE_BYTES, 1);
    if (!kl_trial_irecv(b, p, to, bytes, 0, &q) || !kl_trial_isend(b, p, from, bytes, 0, &s) ||
        !kl_trial_finish(b, &s, &q))
        return false;
    if ((size_t)q.size != bytes) return kl_check_fails(b->result, "%zu bytes came as %d", bytes, q.size);
    const bool right = bytes % PAGE_BYTES || kl_trial_is_filled(to, PAGE_BYTES, 1);
    munmap(from, HUGE_BYTES);
    munmap(to, HUGE_BYTES);
    return right || kl_check_fails(b->result, "a message of %zu bytes has other contents", bytes);
}

/* test could not report its size. Versions before 9 have no words for it. */
static bool refuses_too_large(struct kl_trial *b)
{
    static char data[MOST];
    const struct kl_net_recv m = {.data = data, .bytes = ((size_t)1 << 31) + 1};
    struct kl_trial_pair p;
    void *request = NULL;

    if (b->library.adapter->version < 9) return true;
    if (!kl_trial_pair(b, &p)) return false;
    kl_trial_note(b, "isend of more than 2 GiB");
    const ncclResult_t rc = b->library.adapter->isend(&b->library, p.send, &m, &request);
    kl_trial_note(b, "");
    kl_trial_unpair(b, &p);
    return rc || kl_check_fails(b->result, "isend takes more than 2 GiB, whose size test cannot report as an int");
}

void kl_check_sizes(const char *file, struct kl_check_result *r)
{
    static const size_t sizes[] = {0, 1, 3, 127, 4095, 65537, LARGE - 1, LARGE};
    struct kl_trial b;
    struct kl_trial_pair p;

    if (!kl_trial_open(&b, file, r) || !kl_trial_pair(&b, &p)) return;
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
        if (!check_size(&b, &p, sizes[i], sizes[i]) || !check_size(&b, &p, sizes[i], LARGE)) return;
    if (!check_huge(&b, &p)) return;
    kl_trial_unpair(&b, &p);
    if (!refuses_too_large(&b)) return;
    kl_check_notes(r, "0 bytes to 4 MiB, posted alike and larger; one of %zu MiB", b.library.device[0].max_bytes >> 20);
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
