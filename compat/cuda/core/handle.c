/* SPDX-License-Identifier: Apache-2.0 */
#include "compat/cuda/core/handle.h"

#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>

/* A handle: how often its slot was used << 32 | number of the slot + 1 << 4. Never 0, 1 or 2, which are streams. */
struct slot {
    void *object; /* NULL: free */
    uint32_t generation, next_free;
    enum kl_cuda_kind kind;
};

static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
static struct slot *slots;
static uint32_t nslots, used_slots, first_free; /* first_free: number + 1; 0: none */

static void *handle_of(uint32_t i)
{
    return (void *)((uintptr_t)slots[i].generation << 32 | (uintptr_t)(i + 1) << 4);
}

static bool reserve(void)
{
    if (first_free || used_slots < nslots) return true;
    uint32_t more = nslots ? nslots * 2 : 256;
    struct slot *grown = realloc(slots, more * sizeof *grown);
    if (!grown) return false;
    slots = grown;
    nslots = more;
    return true;
}

void *kl_cuda_handle_make(enum kl_cuda_kind kind, void *object)
{
    void *handle = NULL;

    pthread_rwlock_wrlock(&lock);
    if (reserve()) {
        uint32_t i = first_free ? first_free - 1 : used_slots;

        if (first_free) {
            first_free = slots[i].next_free;
        } else {
            slots[i] = (struct slot){0};
            used_slots++;
        }
        slots[i].object = object;
        slots[i].kind = kind;
        slots[i].generation = (slots[i].generation + 1) & 0x7fff; /* handles look like addresses of a process */
        handle = handle_of(i);
    }
    pthread_rwlock_unlock(&lock);
    return handle;
}

static struct slot *find(enum kl_cuda_kind kind, const void *handle)
{
    uintptr_t number = (uintptr_t)handle, i = (number & 0xffffffff) >> 4;

    if (!i || i > used_slots || number & 0xf) return NULL;
    struct slot *s = &slots[i - 1];
    return s->object && s->kind == kind && s->generation == number >> 32 ? s : NULL;
}

void *kl_cuda_handle_find(enum kl_cuda_kind kind, const void *handle)
{
    pthread_rwlock_rdlock(&lock);
    struct slot *s = find(kind, handle);
    void *object = s ? s->object : NULL;
    pthread_rwlock_unlock(&lock);
    return object;
}

void *kl_cuda_handle_take(enum kl_cuda_kind kind, const void *handle)
{
    void *object = NULL;

    pthread_rwlock_wrlock(&lock);
    struct slot *s = find(kind, handle);
    if (s) {
        object = s->object;
        s->object = NULL;
        s->next_free = first_free;
        first_free = (uint32_t)(s - slots) + 1;
    }
    pthread_rwlock_unlock(&lock);
    return object;
}

void kl_cuda_handle_each(enum kl_cuda_kind kind, bool (*visit)(void *ctx, void *handle, void *object), void *ctx)
{
    pthread_rwlock_rdlock(&lock);
    for (uint32_t i = 0; i < used_slots; i++)
        if (slots[i].object && slots[i].kind == kind && visit(ctx, handle_of(i), slots[i].object)) break;
    pthread_rwlock_unlock(&lock);
}
