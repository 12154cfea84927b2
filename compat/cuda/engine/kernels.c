/* SPDX-License-Identifier: Apache-2.0 */
/* The kernels of the process by the address of their host function: a table with open addressing, filled while objects are loaded. */
#include "compat/cuda/engine/engine.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

struct entry {
    const void *function;
    const struct kl_engine_kernel *kernel; /* NULL: it was there, and is gone */
};

static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
static struct entry *table;
static size_t slots, used;

static struct entry *place_of(struct entry *in, size_t size, const void *function)
{
    size_t at = (size_t)(((uintptr_t)function >> 4) * 0x9e3779b97f4a7c15U >> 20) & (size - 1);

    while (in[at].function && in[at].function != function) at = (at + 1) & (size - 1);
    return &in[at];
}

/* Room for one more, at most half full. */
static bool have_room(void)
{
    size_t size = slots ? 2 * slots : 64;
    struct entry *larger;

    if (2 * (used + 1) <= slots) return true;
    larger = calloc(size, sizeof *larger);
    if (!larger) return false;
    for (size_t i = 0; i < slots; i++)
        if (table[i].function) *place_of(larger, size, table[i].function) = table[i];
    free(table);
    table = larger;
    slots = size;
    return true;
}

void __koloRegisterKernel(const void *host_function, const struct kl_engine_kernel *kernel)
{
    struct entry *e;

    (void)pthread_rwlock_wrlock(&lock);
    if (have_room()) {
        e = place_of(table, slots, host_function);
        used += !e->function;
        *e = (struct entry){host_function, kernel};
    }
    (void)pthread_rwlock_unlock(&lock);
}

void __koloUnregisterKernel(const void *host_function, const struct kl_engine_kernel *kernel)
{
    struct entry *e;

    (void)pthread_rwlock_wrlock(&lock);
    e = slots ? place_of(table, slots, host_function) : NULL;
    if (e && e->kernel == kernel) e->kernel = NULL;
    (void)pthread_rwlock_unlock(&lock);
}

const struct kl_engine_kernel *kl_engine_find_kernel(const void *host_function)
{
    const struct kl_engine_kernel *kernel = NULL;

    if (!host_function) return NULL;
    (void)pthread_rwlock_rdlock(&lock);
    if (slots) kernel = place_of(table, slots, host_function)->kernel;
    (void)pthread_rwlock_unlock(&lock);
    return kernel;
}

void kl_engine_pack(const struct kl_engine_kernel *kernel, void *const *arguments, void *block)
{
    for (uint32_t i = 0; i < kernel->parameter_count; i++)
        memcpy((char *)block + kernel->parameters[i].offset, arguments[i], kernel->parameters[i].bytes);
}
