/* SPDX-License-Identifier: Apache-2.0 */
/** net_limits.c - checks 10, 12 to 14: leaks, memory, threads, a peer that dies. */
#include "tools/kolo/plugin/check.h"
#include "tools/kolo/plugin/trial.h"

#include "base/clock.h"

#include <dirent.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { OPERATIONS = 60000, WARM_UP = 10000, ROOM_KB = 2048, THREADS = 4, ROUNDS = 200, DEATH_S = 15 };

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
        if (b->library.adapter->reg_mr(&b->library, comm, data, bytes, &mr[i]))
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
    kl_check_notes(r, "%d threads with a communicator each, %d messages", THREADS, ROUNDS);
    kl_trial_close(&b);
}

/* ---- 14: errors ---- */

/* The peer: it receives one message, and then waits until it is killed. */
static void be_killed(const char *file, int to, int from)
{
    struct kl_check_result result = {.verdict = KL_CHECK_OK};
    struct kl_trial b;
    struct kl_trial_pair p;
    struct kl_trial_request q;
    char data[64], byte;

    if (!kl_trial_open(&b, file, &result) || !kl_trial_listen(&b, &p)) _exit(1);
    if (write(to, p.handle, sizeof p.handle) < 0) _exit(1);
    while (!p.recv)
        if (!kl_trial_accept_once(&b, &p)) _exit(1);
    if (!kl_trial_irecv(&b, &p, data, sizeof data, 0, &q)) _exit(1);
    while (!q.done)
        if (!kl_trial_test(&b, &q)) _exit(1);
    if (write(to, "d", 1) < 0 || read(from, &byte, 1) < 0) _exit(1);
    for (;;) pause();
}

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

static bool meet_and_kill(struct kl_trial *b, pid_t peer, int from)
{
    static char data[64];
    struct kl_trial_pair p = {.listener = NULL};
    struct kl_trial_request s;
    char byte;

    if (read(from, p.handle, sizeof p.handle) != (ssize_t)sizeof p.handle)
        return kl_check_fails(b->result, "the peer could not listen");
    while (!p.send)
        if (!kl_trial_connect_once(b, &p, p.handle)) return false;
    if (!kl_trial_isend(b, &p, data, sizeof data, 0, &s)) return false;
    while (!s.done)
        if (!kl_trial_test(b, &s)) return false;
    if (read(from, &byte, 1) != 1) return kl_check_fails(b->result, "the peer got no message");
    kill(peer, SIGKILL);
    waitpid(peer, NULL, 0);
    if (!find_error(b, &p)) return false;
    kl_trial_unpair(b, &p);
    return true;
}

void kl_check_errors(const char *file, struct kl_check_result *r)
{
    int there[2], back[2];
    struct kl_trial b;

    if (pipe(there) || pipe(back)) {
        kl_check_fails(r, "no pipe");
        return;
    }
    signal(SIGPIPE, SIG_IGN);
    const pid_t peer = fork();
    if (!peer) be_killed(file, there[1], back[0]);
    close(there[1]);
    if (!kl_trial_open(&b, file, r)) {
        kill(peer, SIGKILL);
        return;
    }
    if (meet_and_kill(&b, peer, there[0])) kl_trial_close(&b);
}
