/* SPDX-License-Identifier: Apache-2.0 */
#include "net/verbs/memory.h"

#include "base/error.h"
#include "net/net.h"
#include "net/verbs/device.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { ACCESS = KL_IBV_LOCAL_WRITE | KL_IBV_REMOTE_WRITE };

/* One of them is there if the kernel's module lets cards register addresses of GPUs. */
static const char *const peer_modules[] = {"/sys/module/nvidia_peermem/version",
                                           "/sys/kernel/mm/memory_peers/nv_mem/version",
                                           "/sys/kernel/mm/memory_peers/nv_mem_nc/version"};

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

/* ---- memory of GPUs ---- */

ncclResult_t kl_verbs_memory_register_gpu(const struct kl_verbs_device *d, void *data, size_t bytes, uint64_t offset,
                                          int fd, struct kl_verbs_memory **memory)
{
    struct kl_verbs_memory *m = calloc(1, sizeof *m);
    const uintptr_t at = (uintptr_t)data;
    char hint[256], reason[128];

    if (!m) return KL_NOMEM("a registration of memory");
    *m = (struct kl_verbs_memory){.start = at, .end = at + bytes, .of_gpu = true, .users = 1};
    m->mr = fd < 0 ? kl_verbs()->reg_mr(d->card->pd, data, bytes, ACCESS)
                   : kl_verbs()->reg_dmabuf_mr(d->card->pd, offset, bytes, at, fd, ACCESS);
    *memory = m;
    if (m->mr) return ncclSuccess;
    const int err = errno;
    free(m);
    return KL_FAIL(ncclSystemError, "%s cannot register %zu bytes of memory of a GPU by its %s: %s%s", d->name, bytes,
                   fd < 0 ? "address" : "DMA-BUF", strerror_r(err, reason, sizeof reason),
                   kl_verbs_memlock_hint(err, hint, sizeof hint));
}

/* A card that knows DMA-BUFs finds fault with the descriptor. */
static bool knows_dma_bufs(const struct kl_verbs_device *d)
{
    if (!kl_verbs()->reg_dmabuf_mr) return false;
    struct kl_ibv_mr *mr = kl_verbs()->reg_dmabuf_mr(d->card->pd, 0, 0, 0, -1, 0);
    const int err = errno;
    if (mr) (void)kl_verbs()->dereg_mr(mr);
    return mr || (err != EOPNOTSUPP && err != EPROTONOSUPPORT);
}

unsigned kl_verbs_memory_of_gpus(const struct kl_verbs_device *d)
{
    unsigned memory = knows_dma_bufs(d) ? KL_NET_DMABUF : 0;

    for (size_t i = 0; i < sizeof peer_modules / sizeof peer_modules[0]; i++)
        if (!access(peer_modules[i], F_OK)) memory |= KL_NET_CUDA;
    return memory;
}

/* ---- both ---- */

static void release_gpu(struct kl_verbs_memory *memory)
{
    kl_verbs()->dereg_mr(memory->mr);
    free(memory);
}

void kl_verbs_memory_release(const struct kl_verbs_device *d, struct kl_verbs_memory *memory)
{
    struct kl_verbs_memory **link = list_of(d);

    if (memory->of_gpu) {
        release_gpu(memory);
        return;
    }

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
