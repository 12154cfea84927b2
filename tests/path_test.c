/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The system calls of an operation that need not wait: no allocation, no lock, no system call. Two ranks in one thread,
 * so that no thread waits for another; both are warm, so that all is connected and every choice is made. The thread's
 * calls in between are counted: the allocator and the locks stand before those of the C library, and system calls are
 * trapped (Syscall User Dispatch, Linux 5.11).
 */
#include "include/kolo.h"
#include "tests/kolo_test.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#ifdef __x86_64__

#ifndef PR_SET_SYSCALL_USER_DISPATCH
#define PR_SET_SYSCALL_USER_DISPATCH 59
#define PR_SYS_DISPATCH_OFF          0
#define PR_SYS_DISPATCH_ON           1
#endif

enum { ALLOW, BLOCK }; /* SYSCALL_DISPATCH_FILTER_* */
enum { SYSCALL_BYTES = 2, NONE = -1 };

/* ---- counting, in the thread that asks for it ---- */

static _Thread_local struct {
    bool on;
    unsigned allocations, locks;
    long call; /* number of the first system call, NONE if there was none */
} counted;

static char selector;

void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t n, size_t bytes);
void *__libc_realloc(void *old, size_t bytes);
void *__libc_memalign(size_t alignment, size_t bytes);
void __libc_free(void *memory);

void *malloc(size_t bytes)
{
    counted.allocations += counted.on;
    return __libc_malloc(bytes);
}

void *calloc(size_t n, size_t bytes)
{
    counted.allocations += counted.on;
    return __libc_calloc(n, bytes);
}

void *realloc(void *old, size_t bytes)
{
    counted.allocations += counted.on;
    return __libc_realloc(old, bytes);
}

void *aligned_alloc(size_t alignment, size_t bytes)
{
    counted.allocations += counted.on;
    return __libc_memalign(alignment, bytes);
}

void free(void *memory)
{
    counted.allocations += counted.on && memory;
    __libc_free(memory);
}

/* The C library's functions, found before main: finding them takes locks. */
static struct {
    int (*mutex)(pthread_mutex_t *), (*read)(pthread_rwlock_t *), (*write)(pthread_rwlock_t *);
} next;

static __attribute__((constructor)) void find_next(void)
{
    *(void **)&next.mutex = dlsym(RTLD_NEXT, "pthread_mutex_lock");
    *(void **)&next.read = dlsym(RTLD_NEXT, "pthread_rwlock_rdlock");
    *(void **)&next.write = dlsym(RTLD_NEXT, "pthread_rwlock_wrlock");
}

int pthread_mutex_lock(pthread_mutex_t *lock)
{
    counted.locks += counted.on;
    if (!next.mutex) find_next();
    return next.mutex(lock);
}

int pthread_rwlock_rdlock(pthread_rwlock_t *lock)
{
    counted.locks += counted.on;
    return next.read(lock);
}

int pthread_rwlock_wrlock(pthread_rwlock_t *lock)
{
    counted.locks += counted.on;
    return next.write(lock);
}

/* The first system call of the thread is noted, and repeated; this one and the following ones pass. */
static void note_call(int signal, siginfo_t *info, void *context)
{
    ucontext_t *c = context;

    (void)signal;
    selector = ALLOW;
    counted.call = info->si_syscall;
    c->uc_mcontext.gregs[REG_RAX] = info->si_syscall;
    c->uc_mcontext.gregs[REG_RIP] -= SYSCALL_BYTES;
}

/* False: the kernel cannot. */
static bool trap_calls(void)
{
    struct sigaction action = {.sa_sigaction = note_call, .sa_flags = SA_SIGINFO};

    if (sigaction(SIGSYS, &action, NULL)) return false;
    return !prctl(PR_SET_SYSCALL_USER_DISPATCH, PR_SYS_DISPATCH_ON, 0, 0, &selector);
}

static void leave_calls(void)
{
    prctl(PR_SET_SYSCALL_USER_DISPATCH, PR_SYS_DISPATCH_OFF, 0, 0, 0);
}

/* ---- operations ---- */

enum { RANKS = 2, WARM = 50, TIMES = 200, LARGEST = 1 << 20 };

static struct {
    ncclComm_t comm;
    koloStream_t stream;
    float *send, *recv;
} ranks[RANKS];

static void must(ncclResult_t rc)
{
    if (rc) fail_msg("%s: %s", ncclGetErrorString(rc), ncclGetLastError(NULL));
}

static ncclResult_t all_reduce(int r, size_t n)
{
    return ncclAllReduce(ranks[r].send, ranks[r].recv, n, ncclFloat, ncclSum, ranks[r].comm, ranks[r].stream);
}

static ncclResult_t reduce(int r, size_t n)
{
    return ncclReduce(ranks[r].send, ranks[r].recv, n, ncclFloat, ncclSum, 1, ranks[r].comm, ranks[r].stream);
}

static ncclResult_t broadcast(int r, size_t n)
{
    return ncclBroadcast(ranks[r].send, ranks[r].recv, n, ncclFloat, 1, ranks[r].comm, ranks[r].stream);
}

static ncclResult_t all_gather(int r, size_t n)
{
    return ncclAllGather(ranks[r].send, ranks[r].recv, n / RANKS, ncclFloat, ranks[r].comm, ranks[r].stream);
}

static ncclResult_t reduce_scatter(int r, size_t n)
{
    return ncclReduceScatter(ranks[r].send, ranks[r].recv, n / RANKS, ncclFloat, ncclSum, ranks[r].comm,
                             ranks[r].stream);
}

static ncclResult_t all_to_all(int r, size_t n)
{
    return ncclAlltoAll(ranks[r].send, ranks[r].recv, n / RANKS, ncclFloat, ranks[r].comm, ranks[r].stream);
}

static ncclResult_t send_recv(int r, size_t n)
{
    ncclResult_t rc = ncclSend(ranks[r].send, n, ncclFloat, 1 - r, ranks[r].comm, ranks[r].stream);

    return rc ? rc : ncclRecv(ranks[r].recv, n, ncclFloat, 1 - r, ranks[r].comm, ranks[r].stream);
}

static const struct {
    const char *name;
    ncclResult_t (*issue)(int rank, size_t count);
} operations[] = {
    {"all_reduce", all_reduce},         {"reduce", reduce},
    {"broadcast", broadcast},           {"all_gather", all_gather},
    {"reduce_scatter", reduce_scatter}, {"all_to_all", all_to_all},
    {"send_recv", send_recv},
};

static ncclResult_t run_all(ncclResult_t (*issue)(int, size_t), size_t count, int times)
{
    ncclResult_t rc = ncclSuccess;

    for (int i = 0; i < times && !rc; i++) {
        rc = ncclGroupStart();
        for (int r = 0; r < RANKS && !rc; r++) rc = issue(r, count);
        if (!rc) rc = ncclGroupEnd();
        for (int r = 0; r < RANKS && !rc; r++) rc = koloStreamSynchronize(ranks[r].stream);
    }
    return rc;
}

static int set_up(void **state)
{
    ncclUniqueId id;

    (void)state;
    must(ncclGetUniqueId(&id));
    must(ncclGroupStart());
    for (int r = 0; r < RANKS; r++) {
        must(koloSetDevice(r));
        must(ncclCommInitRank(&ranks[r].comm, RANKS, id, r));
        must(koloStreamCreate(&ranks[r].stream, KOLO_STREAM_INLINE));
        must(koloMalloc((void **)&ranks[r].send, LARGEST));
        must(koloMalloc((void **)&ranks[r].recv, LARGEST));
        memset(ranks[r].send, 0, LARGEST);
    }
    must(ncclGroupEnd());
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    for (int r = 0; r < RANKS; r++) must(ncclCommDestroy(ranks[r].comm));
    for (int r = 0; r < RANKS; r++) {
        must(koloStreamDestroy(ranks[r].stream));
        must(koloFree(ranks[r].send));
        must(koloFree(ranks[r].recv));
    }
    return 0;
}

/* ---- tests ---- */

static void begin_counting(void)
{
    memset(&counted, 0, sizeof counted);
    counted.call = NONE;
    counted.on = true;
    selector = BLOCK;
}

static void end_counting(void)
{
    selector = ALLOW;
    counted.on = false;
}

static void expect_nothing(const char *name, size_t bytes)
{
    if (counted.allocations || counted.locks || counted.call != NONE)
        fail_msg("%s of %zu bytes, %d times: %u allocations, %u locks, first system call %ld (%d: none)", name, bytes,
                 TIMES, counted.allocations, counted.locks, counted.call, NONE);
}

static void what_need_not_wait_asks_nobody(void **state)
{
    static const size_t sizes[] = {8, 256, 16 << 10, 256 << 10, LARGEST};

    (void)state;
    if (!trap_calls()) {
        print_message("skipped: this kernel does not trap system calls: %s\n", strerror(errno));
        skip();
    }
    FOR_EACH_CASE(o, operations)
    FOR_EACH_CASE(bytes, sizes)
    {
        size_t count = *bytes / sizeof(float);

        must(run_all(o->issue, count, WARM));
        begin_counting();
        ncclResult_t rc = run_all(o->issue, count, TIMES);
        end_counting();
        must(rc);
        expect_nothing(o->name, *bytes);
    }
    leave_calls();
}

/* The counters count. */
static void what_asks_is_seen(void **state)
{
    pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

    (void)state;
    if (!trap_calls()) skip();
    begin_counting();
    void *volatile memory = malloc(8);
    pthread_mutex_lock(&lock);
    pthread_mutex_unlock(&lock);
    long parent = syscall(SYS_getppid);
    end_counting();
    leave_calls();
    free(memory);
    assert_int_equal(parent, getppid());
    assert_int_equal(counted.allocations, 1);
    assert_int_equal(counted.locks, 1);
    assert_int_equal(counted.call, SYS_getppid);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_asks_is_seen),
        cmocka_unit_test(what_need_not_wait_asks_nobody),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}

#else

int main(void)
{
    puts("skipped: system calls are trapped on x86_64 only");
    return KOLO_TEST_SKIP;
}

#endif
