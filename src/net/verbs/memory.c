/* SPDX-License-Identifier: Apache-2.0 */
#include "net/verbs/memory.h"

#include "base/error.h"
#include "net/verbs/device.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { ACCESS = KL_IBV_LOCAL_WRITE | KL_IBV_REMOTE_WRITE };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of all lists */
static struct kl_verbs_memory *known[KL_VERBS_DEVICES];  /* by the number of the device's first device */

static struct kl_verbs_memory **list_of(const struct kl_verbs_device *d)
{
    struct kl_verbs_device *other;
    int i = 0;

    while (i < kl_verbs_devices() - 1 && !kl_verbs_device_find(i, &other) && other->card != d->card) i++;
    return &known[i];
}

static ncclResult_t register_range(const struct kl_verbs_device *d, uintptr_t start, uintptr_t end,
                                   struct kl_ibv_mr **mr)
{
    char hint[256], reason[128];

    *mr = kl_verbs()->reg_mr(d->card->pd, (void *)start, end - start, ACCESS);
    if (*mr) return ncclSuccess;
    int err = errno;
    return KL_FAIL(ncclSystemError, "%s cannot register %zu bytes of memory: %s%s", d->name, (size_t)(end - start),
                   strerror_r(err, reason, sizeof reason), kl_verbs_memlock_hint(err, hint, sizeof hint));
}

static ncclResult_t add(const struct kl_verbs_device *d, struct kl_verbs_memory **list, uintptr_t start, uintptr_t end,
                        struct kl_verbs_memory **memory)
{
    struct kl_verbs_memory *m = calloc(1, sizeof *m);

    if (!m) return KL_NOMEM("a registration of memory");
    ncclResult_t rc = register_range(d, start, end, &m->mr);
    if (rc) {
        free(m);
        return rc;
    }
    m->start = start;
    m->end = end;
    m->users = 1;
    m->next = *list;
    *list = *memory = m;
    return ncclSuccess;
}

ncclResult_t kl_verbs_memory_register(const struct kl_verbs_device *d, void *data, size_t bytes,
                                      struct kl_verbs_memory **memory)
{
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), start = (uintptr_t)data / page * page,
              end = ((uintptr_t)data + bytes + page - 1) / page * page;
    struct kl_verbs_memory **list = list_of(d), *m;
    ncclResult_t rc = ncclSuccess;

    pthread_mutex_lock(&lock);
    for (m = *list; m && (m->start > start || m->end < end);) m = m->next;
    if (m)
        m->users++;
    else
        rc = add(d, list, start, end > start ? end : start + page, &m);
    pthread_mutex_unlock(&lock);
    if (!rc) *memory = m;
    return rc;
}

void kl_verbs_memory_release(const struct kl_verbs_device *d, struct kl_verbs_memory *memory)
{
    struct kl_verbs_memory **link = list_of(d);

    pthread_mutex_lock(&lock);
    if (!--memory->users) {
        while (*link != memory) link = &(*link)->next;
        *link = memory->next;
        kl_verbs()->dereg_mr(memory->mr);
        free(memory);
    }
    pthread_mutex_unlock(&lock);
}

ncclResult_t kl_verbs_memory_map(const struct kl_verbs_device *d, size_t bytes, void **data, struct kl_ibv_mr **mr)
{
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (memory == MAP_FAILED) return KL_NOMEM("the buffers of an RDMA connection");
    ncclResult_t rc = register_range(d, (uintptr_t)memory, (uintptr_t)memory + bytes, mr);
    if (rc)
        munmap(memory, bytes);
    else
        *data = memory;
    return rc;
}

void kl_verbs_memory_unmap(void *data, size_t bytes, struct kl_ibv_mr *mr)
{
    if (mr) kl_verbs()->dereg_mr(mr);
    if (data) munmap(data, bytes);
}
