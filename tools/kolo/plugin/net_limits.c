/* SPDX-License-Identifier: Apache-2.0 */
/** net_limits.c - checks 10, 12 to 14: leaks, memory, threads, a peer that dies. */
#include "tools/kolo/plugin/check.h"
#include "tools/kolo/plugin/trial.h"

#include "base/atomic.h"
#include "base/clock.h"

#include <dirent.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum {
    OPERATIONS = 60000,
    WARM_UP = 10000,
    ROOM_KB = 2048,
    THREADS = 4,
    ROUNDS = 200,
    DEATH_S = 15,
    OUTSTANDING = 4,
    TURNS = 20,
    REGISTRATIONS = 400
};

/* ---- 10: leaks ---- */

static long resident_kb(void)
{
    char text[128], *size = NULL;
    FILE *f = fopen("/proc/self/statm", "re");

    if (!f) return 0;
    if (fgets(text, sizeof text, f)) size = strchr(text, ' '); /* the second number */
    fclose(f);
    return (size ? strtol(size, NULL, 10) : 0) * (sysconf(_SC_PAGESIZE) / 1024);
}

static int descriptors(void)
{
    DIR *d = opendir("/proc/self/fd");
    int n = 0;

    while (d && readdir(d)) n++;
    if (d) closedir(d);
    return n;
}

void kl_check_leaks(const char *file, struct kl_check_result *r)
{
    char from[64] = {0}, to[64];
    struct kl_trial b;
    struct kl_trial_pair p;
    long kb = 0;
    int fds = 0;

    if (!kl_trial_open(&b, file, r) || !kl_trial_pair(&b, &p)) return;
    for (int i = 0; i < OPERATIONS; i++) {
        if (i == WARM_UP) kb = resident_kb(), fds = descriptors();
        if (!kl_trial_move(&b, &p, from, to, sizeof from)) return;
    }
    const long more = resident_kb() - kb;
    if (more > ROOM_KB) kl_check_fails(r, "%d messages took %ld KiB", OPERATIONS - WARM_UP, more);
    if (descriptors() > fds) kl_check_fails(r, "%d descriptors more", descriptors() - fds);
    kl_check_notes(r, "%d messages, %ld KiB more", OPERATIONS - WARM_UP, more > 0 ? more : 0);
    kl_trial_unpair(&b, &p);
    kl_trial_close(&b);
}

/* ---- 12: memory ---- */

static bool register_range(struct kl_trial *b, void *comm, void *data, size_t bytes, const char *range)
{
    void *mr[3] = {NULL, NULL, NULL};

    for (int i = 0; i < 3; i++) {
        kl_trial_note(b, "regMr");
        if (b->library.adapter->reg_mr(&b->library, comm, data, bytes, KL_NET_HOST, &mr[i]))
            return kl_check_fails(b->result, "regMr fails: %s", range);
    }
    for (int i = 0; i < 3; i++) {
        kl_trial_note(b, "deregMr");
        if (kl_net_library_dereg_mr(&b->library, comm, mr[i]))
            return kl_check_fails(b->result, "deregMr fails: %s", range);
    }
    kl_trial_note(b, "");
    return true;
}

/* Unmapped, and mapped anew at the same address: data of now must move. */
static bool map_again(struct kl_trial *b, struct kl_trial_pair *p, size_t bytes)
{
    static char to[1 << 16];
    char *at = NULL;

    for (unsigned i = 0; i < 3; i++) {
        at = mmap(at, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | (at ? MAP_FIXED : 0), -1, 0);
        if (at == MAP_FAILED) return true;
        kl_trial_fill(at, bytes, i);
        if (!kl_trial_move(b, p, at, to, bytes)) return false;
        if (!kl_trial_is_filled(to, bytes, i))
            return kl_check_fails(b->result, "data of memory that was unmapped were sent");
        munmap(at, bytes);
    }
    return true;
}

void kl_check_memory(const char *file, struct kl_check_result *r)
{
    char *data = malloc(1 << 16);
    struct kl_trial b;
    struct kl_trial_pair p;

    if (!data || !kl_trial_open(&b, file, r)) return;
    const bool good = kl_trial_pair(&b, &p) &&
                      register_range(&b, p.send, data, 1 << 16, "the same range three times") &&
                      register_range(&b, p.recv, data + 1, 4097, "an unaligned range, overlapping") &&
                      register_range(&b, p.send, data + 3, 1, "one byte") && map_again(&b, &p, 1 << 16);
    if (good) kl_check_notes(r, "the same, unaligned, overlapping, small, unmapped and mapped again");
    if (good) kl_trial_unpair(&b, &p);
    if (good) kl_trial_close(&b);
    free(data);
}

/* ---- 13: threads ---- */

struct worker {
    struct kl_trial bench;
    struct kl_check_result result;
    unsigned number;
};

static void *work(void *arg)
{
    struct worker *w = arg;
    char from[8192], to[8192];
    struct kl_trial_pair p;

    if (!kl_trial_pair(&w->bench, &p)) return NULL;
    for (unsigned i = 0; i < ROUNDS; i++) {
        kl_trial_fill(from, sizeof from, w->number * ROUNDS + i);
        if (!kl_trial_move(&w->bench, &p, from, to, sizeof from)) return NULL;
        if (kl_trial_is_filled(to, sizeof to, w->number * ROUNDS + i)) continue;
        kl_check_fails(&w->result, "thread %u got other data in message %u", w->number, i);
        return NULL;
    }
    kl_trial_unpair(&w->bench, &p);
    return NULL;
}

/* Registers memory with a communicator that another thread uses. */
struct registrar {
    struct kl_trial bench;
    struct kl_check_result result;
    struct kl_trial_pair p;
    _Atomic int ended;
};

static void *register_meanwhile(void *arg)
{
    struct registrar *g = arg;
    static char data[1 << 16];

    for (int i = 0; i < REGISTRATIONS; i++)
        if (!register_range(&g->bench, i % 2 ? g->p.send : g->p.recv, data, sizeof data, "beside messages")) break;
    kl_store_release(&g->ended, 1);
    return NULL;
}

static bool move_meanwhile(struct kl_trial *b, struct kl_trial_pair *p)
{
    static struct registrar g;
    char from[4096], to[4096];
    pthread_t thread;
    bool good = true;

    g = (struct registrar){.bench = *b, .p = *p};
    g.bench.result = &g.result;
    if (pthread_create(&thread, NULL, register_meanwhile, &g))
        return kl_check_fails(b->result, "cannot start a thread");
    for (unsigned i = 0; good && (i < ROUNDS || !kl_load_acquire(&g.ended)); i++) {
        kl_trial_fill(from, sizeof from, i);
        good = kl_trial_move(b, p, from, to, sizeof from) &&
               (kl_trial_is_filled(to, sizeof to, i) || kl_check_fails(b->result, "other data came beside regMr"));
    }
    pthread_join(thread, NULL);
    if (g.result.verdict == KL_CHECK_FAILS) kl_check_fails(b->result, "%s", g.result.figure);
    return b->result->verdict == KL_CHECK_OK;
}

struct turn {
    struct kl_trial *b;
    struct kl_trial_pair *p;
};

static void *take_turn(void *arg)
{
    const struct turn *t = arg;
    char from[4096] = {0}, to[4096];

    (void)kl_trial_move(t->b, t->p, from, to, sizeof from);
    return NULL;
}

/* One thread at a time, each time another one. */
static bool move_in_turn(struct kl_trial *b, struct kl_trial_pair *p)
{
    struct turn t = {.b = b, .p = p};
    pthread_t thread;

    for (int i = 0; i < TURNS && b->result->verdict == KL_CHECK_OK; i++) {
        if (pthread_create(&thread, NULL, take_turn, &t)) return kl_check_fails(b->result, "cannot start a thread");
        pthread_join(thread, NULL);
    }
    return b->result->verdict == KL_CHECK_OK;
}

static bool share_one(struct kl_trial *b)
{
    struct kl_trial_pair p;

    if (!kl_trial_pair(b, &p) || !move_meanwhile(b, &p) || !move_in_turn(b, &p)) return false;
    kl_trial_unpair(b, &p);
    return true;
}

void kl_check_threads(const char *file, struct kl_check_result *r)
{
    struct worker w[THREADS];
    pthread_t thread[THREADS];
    struct kl_trial b;

    if (!kl_trial_open(&b, file, r)) return;
    for (unsigned i = 0; i < THREADS; i++) {
        w[i] = (struct worker){.bench = b, .number = i};
        w[i].bench.result = &w[i].result;
        if (pthread_create(&thread[i], NULL, work, &w[i])) kl_check_fails(r, "cannot start a thread");
    }
    for (unsigned i = 0; i < THREADS; i++) {
        pthread_join(thread[i], NULL);
        if (w[i].result.verdict == KL_CHECK_FAILS) kl_check_fails(r, "%s", w[i].result.figure);
    }
    if (r->verdict != KL_CHECK_OK || !share_one(&b)) return;
    kl_check_notes(r,
                   "%d threads with a communicator each, %d messages; %d registrations meanwhile; %d threads in turn",
                   THREADS, ROUNDS, 3 * REGISTRATIONS, TURNS);
    kl_trial_close(&b);
}

/* ---- 14: errors ---- */

/* Sends until one fails. */
static bool find_error(struct kl_trial *b, struct kl_trial_pair *p)
{
    static char data[1 << 20];
    const uint64_t begun = kl_now_ns(), deadline = kl_deadline_in_ms(DEATH_S * 1000);
    const struct kl_net_adapter *a = b->library.adapter;
    const struct kl_net_recv m = {.data = data, .bytes = sizeof data};
    void *request = NULL;
    ncclResult_t rc = ncclSuccess;

    while (!rc && !kl_deadline_passed(deadline)) {
        int done = 0, size = 0;
        kl_trial_note(b, request ? "test" : "isend");
        rc = request ? kl_net_library_test(&b->library, request, &done, &size)
                     : a->isend(&b->library, p->send, &m, &request);
        if (done) request = NULL;
    }
    kl_trial_note(b, "");
    if (!rc) return kl_check_fails(b->result, "no error in %d s after the peer was killed", DEATH_S);
    if (rc == ncclInProgress) return kl_check_fails(b->result, "a call returned 7 (ncclInProgress)");
    kl_check_notes(b->result, "error %d after %.1f ms%s", (int)rc, (double)(kl_now_ns() - begun) / 1e6,
                   rc == ncclRemoteError ? "" : " (6, ncclRemoteError, would tell more)");
    return true;
}

/* Each of these ends, with an error where `must_fail`: otherwise its data may have left before. */
static bool end_all(struct kl_trial *b, void **request, int n, bool must_fail)
{
    const uint64_t deadline = kl_deadline_in_ms(DEATH_S * 1000);

    for (int i = 0; i < n; i++) {
        int done = 0, sizes[KL_NET_RECVS];
        ncclResult_t rc = ncclSuccess;
        kl_trial_note(b, "test");
        while (request[i] && !rc && !done) {
            rc = kl_net_library_test(&b->library, request[i], &done, sizes);
            if (!rc && !done && kl_deadline_passed(deadline))
                return kl_check_fails(b->result, "request %d of %d that were outstanding %s has no error in %d s", i, n,
                                      must_fail ? "at a receiver" : "at a sender", DEATH_S);
        }
        kl_trial_note(b, "");
        if (must_fail && done) return kl_check_fails(b->result, "a receive was done after its sender was killed");
    }
    return true;
}

static bool post_some(struct kl_trial *b, struct kl_trial_pair *p, void **sends, void **recvs)
{
    static char data[OUTSTANDING][1 << 20], room[OUTSTANDING][64];

    for (int i = 0; i < OUTSTANDING; i++) {
        const struct kl_net_recv m = {.data = data[i], .bytes = sizeof data[i]}, q = {.data = room[i], .bytes = 64};
        sends[i] = recvs[i] = NULL;
        kl_trial_note(b, "isend");
        if (b->library.adapter->isend(&b->library, p->send, &m, &sends[i]))
            return kl_check_fails(b->result, "isend failed");
        kl_trial_note(b, "irecv");
        if (b->library.adapter->irecv(&b->library, p->recv, 1, &q, &recvs[i]))
            return kl_check_fails(b->result, "irecv failed");
        kl_trial_note(b, "");
    }
    return true;
}

static bool meet_and_kill(struct kl_trial *b, struct kl_trial_peer *peer)
{
    struct kl_trial_pair p = {.listener = NULL};
    void *sends[OUTSTANDING], *recvs[OUTSTANDING];

    if (!kl_trial_peer_meet(b, peer, &p) || !post_some(b, &p, sends, recvs)) return false;
    kl_trial_peer_kill(peer);
    if (!end_all(b, recvs, OUTSTANDING, true) || !end_all(b, sends, OUTSTANDING, false) || !find_error(b, &p))
        return false;
    kl_trial_unpair(b, &p);
    return true;
}

/* The peer is killed before it has accepted: connect, or a message, ends with an error. */
static bool connect_to_killed(struct kl_trial *b, struct kl_trial_peer *peer)
{
    const uint64_t deadline = kl_deadline_in_ms(DEATH_S * 1000);
    struct kl_trial_pair p = {.listener = NULL};
    ncclResult_t rc = ncclSuccess;

    if (read(peer->from, p.handle, sizeof p.handle) != (ssize_t)sizeof p.handle)
        return kl_check_fails(b->result, "the peer could not listen");
    kl_trial_peer_kill(peer);
    kl_trial_note(b, "connect");
    while (!rc && !p.send) {
        rc = b->library.adapter->connect(&b->library, 0, p.handle, &p.send);
        if (!rc && !p.send && kl_deadline_passed(deadline))
            return kl_check_fails(b->result, "connect to a listener that has died has no error in %d s", DEATH_S);
    }
    kl_trial_note(b, "");
    if (!rc && !find_error(b, &p)) return false;
    kl_trial_unpair(b, &p);
    return true;
}

void kl_check_errors(const char *file, struct kl_check_result *r)
{
    struct kl_trial_peer first, second;
    struct kl_trial b;

    signal(SIGPIPE, SIG_IGN);
    if (!kl_trial_peer_start(&first, file, r) || !kl_trial_peer_start(&second, file, r)) return;
    if (!kl_trial_open(&b, file, r)) {
        kl_trial_peer_kill(&first);
        kl_trial_peer_kill(&second);
        return;
    }
    if (meet_and_kill(&b, &first) && connect_to_killed(&b, &second)) kl_trial_close(&b);
}
