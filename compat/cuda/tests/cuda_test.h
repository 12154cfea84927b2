/* SPDX-License-Identifier: Apache-2.0 */
/** cuda_test.h - shared by tests of the stand-in. */
#ifndef KOLO_CUDA_TEST_H
#define KOLO_CUDA_TEST_H

#include "cuda_runtime_api.h"
#include "tests/kolo_test.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

/** A call that must succeed; says which did not. */
#define OK(call)                                                                                                       \
    do {                                                                                                               \
        cudaError_t ok_rc = (call);                                                                                    \
        if (ok_rc) fail_msg("%s: %s", #call, cudaGetErrorName(ok_rc));                                                 \
    } while (0)

/** A call that must fail so. */
#define FAILS(code, call)                                                                                              \
    do {                                                                                                               \
        cudaError_t fails_rc = (call);                                                                                 \
        if (fails_rc != (code)) fail_msg("%s: %s, not %s", #call, cudaGetErrorName(fails_rc), #code);                  \
    } while (0)

/* ---- callbacks of streams and graphs ---- */

static inline void wait_for_flag(void *flag)
{
    while (!atomic_load((atomic_int *)flag)) continue;
}

static inline void add_one(void *count)
{
    ++*(int *)count;
}

/* ---- a call that must wait, in another thread ---- */

struct freeing {
    void *ptr;
    atomic_int begun, go; /* of the work that it has to wait for */
    atomic_int thread, done;
};

/** The work: it has begun in another thread before a wait for it, so that the wait blocks. */
static inline void until_go(void *arg)
{
    struct freeing *f = arg;

    atomic_store(&f->begun, 1);
    while (!atomic_load(&f->go)) continue;
}

static inline void *free_in_a_thread(void *arg)
{
    struct freeing *f = arg;
    enum cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;

    cudaThreadExchangeStreamCaptureMode(&mode);
    atomic_store(&f->thread, (int)syscall(SYS_gettid));
    cudaFree(f->ptr);
    atomic_store(&f->done, 1);
    return NULL;
}

static inline bool sleeps(int thread)
{
    char path[64], state = 0;

    snprintf(path, sizeof path, "/proc/self/task/%d/stat", thread);
    FILE *f = fopen(path, "re");
    if (!f) return false;
    int got = fscanf(f, "%*d (%*[^)]) %c", &state);
    fclose(f);
    return got == 1 && state == 'S';
}

/** Free `f->ptr` while work that was queued, until_go(f), runs: the call comes to rest, and returns behind the work. */
static inline void expect_free_to_wait(struct freeing *f)
{
    pthread_t thread;

    while (!atomic_load(&f->begun)) continue;
    pthread_create(&thread, NULL, free_in_a_thread, f);
    while (!atomic_load(&f->thread)) continue;
    while (!atomic_load(&f->done) && !sleeps(atomic_load(&f->thread))) continue;
    assert_int_equal(atomic_load(&f->done), 0);
    atomic_store(&f->go, 1);
    pthread_join(thread, NULL);
}

#endif
