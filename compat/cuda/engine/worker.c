/* SPDX-License-Identifier: Apache-2.0 */
#include "compat/cuda/engine/worker.h"

#include "compat/cuda/engine/fault.h"
#include "compat/cuda/include/kolo_cuda/abi.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>

enum { MORE = 64 << 10, STACK_MIN = 64 << 10, STACK_DEFAULT = 256 << 10, PAGE = 4096 };

KL_ENGINE_EXPORT __thread struct kl_engine_dim __koloThreadIdx __attribute__((tls_model("initial-exec")));
KL_ENGINE_EXPORT __thread struct kl_engine_dim __koloBlockIdx __attribute__((tls_model("initial-exec")));
KL_ENGINE_EXPORT __thread struct kl_engine_dim __koloBlockDim __attribute__((tls_model("initial-exec")));
KL_ENGINE_EXPORT __thread struct kl_engine_dim __koloGridDim __attribute__((tls_model("initial-exec")));
KL_ENGINE_EXPORT __thread void *__koloShared;
KL_ENGINE_EXPORT __thread int __koloImage;
KL_ENGINE_EXPORT __thread int __koloPatience;

__thread struct kl_worker *kl_worker_here;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct kl_worker *store;
static _Atomic size_t stack_bytes = STACK_DEFAULT;

static void *map_memory(size_t bytes)
{
    void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    return p == MAP_FAILED ? NULL : p;
}

static bool have_shared(struct kl_worker *w, size_t bytes)
{
    if (bytes <= w->shared_bytes && w->shared) return true;
    if (w->shared) (void)munmap(w->shared, w->shared_bytes);
    w->shared_bytes = (bytes + MORE) / PAGE * PAGE; /* more than requested: reads slightly beyond the end find zeros */
    w->shared = map_memory(w->shared_bytes);
    return w->shared != NULL;
}

static struct kl_worker *make(void)
{
    struct kl_worker *w = calloc(1, sizeof *w);

    if (!w) return NULL;
    w->signal_stack = map_memory(KL_SIGNAL_STACK);
    if (!w->signal_stack) {
        free(w);
        return NULL;
    }
    for (uint32_t i = 0; i < KL_BLOCK_BARRIERS; i++) w->barrier[i] = (struct kl_barrier){.first = KL_NO_THREAD};
    return w;
}

struct kl_worker *kl_worker_take(size_t shared_bytes)
{
    struct kl_worker *w;

    (void)pthread_mutex_lock(&lock);
    w = store;
    if (w) store = w->next;
    (void)pthread_mutex_unlock(&lock);
    if (!w) w = make();
    if (!w) return NULL;
    kl_stacks_resize(&w->stacks, kl_load_relaxed(&stack_bytes));
    if (have_shared(w, shared_bytes)) return w;
    kl_worker_give(w);
    return NULL;
}

void kl_worker_give(struct kl_worker *worker)
{
    worker->home = (struct kl_context){0};
    (void)pthread_mutex_lock(&lock);
    worker->next = store;
    store = worker;
    (void)pthread_mutex_unlock(&lock);
}

size_t kl_engine_stack_bytes(void)
{
    return kl_load_relaxed(&stack_bytes);
}

void kl_engine_set_stack_bytes(size_t bytes)
{
    bytes = (bytes + PAGE - 1) / PAGE * PAGE;
    kl_store_relaxed(&stack_bytes, bytes < STACK_MIN ? STACK_MIN : bytes);
}

bool kl_engine_inside(void)
{
    return kl_worker_here != NULL;
}
