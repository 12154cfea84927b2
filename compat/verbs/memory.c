/* SPDX-License-Identifier: Apache-2.0 */
/* Protection domains and memory regions of the stand-in. */
#include "compat/verbs/standin.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

VS_EXPORT struct kl_ibv_pd *ibv_alloc_pd(struct kl_ibv_context *context);
VS_EXPORT struct kl_ibv_pd *ibv_alloc_pd(struct kl_ibv_context *context)
{
    struct kl_ibv_pd *pd = calloc(1, sizeof *pd);

    if (pd) pd->context = context;
    return pd;
}

VS_EXPORT int ibv_dealloc_pd(struct kl_ibv_pd *pd);
VS_EXPORT int ibv_dealloc_pd(struct kl_ibv_pd *pd)
{
    free(pd);
    return 0;
}

/* Keys are never used twice, so that one of a freed region is noticed. */
static uint32_t new_key(void)
{
    static uint32_t last;

    return ++last << 8 | (uint32_t)(random() & 0xff);
}

VS_EXPORT struct kl_ibv_mr *ibv_reg_mr(struct kl_ibv_pd *pd, void *addr, size_t length, int access);
VS_EXPORT struct kl_ibv_mr *ibv_reg_mr(struct kl_ibv_pd *pd, void *addr, size_t length, int access)
{
    struct vs_context *c = (struct vs_context *)pd->context;
    struct vs_mr *m = calloc(1, sizeof *m);

    vs_enter();
    int error = m ? vs_fault("reg_mr") : ENOMEM;
    if (!error) {
        m->ib = (struct kl_ibv_mr){.context = pd->context, .pd = pd, .addr = addr, .length = length};
        m->ib.lkey = m->ib.rkey = new_key();
        m->access = access;
        m->next = c->mrs;
        c->mrs = m;
    }
    vs_leave();
    if (!error) return &m->ib;
    free(m);
    errno = error;
    return NULL;
}

/* A DMA-BUF of the CUDA stand-in is a memfd, whose position is where it begins: it is mapped here, in whole pages. */
VS_EXPORT struct kl_ibv_mr *ibv_reg_dmabuf_mr(struct kl_ibv_pd *pd, uint64_t offset, size_t length, uint64_t iova,
                                              int fd, int access);
VS_EXPORT struct kl_ibv_mr *ibv_reg_dmabuf_mr(struct kl_ibv_pd *pd, uint64_t offset, size_t length, uint64_t iova,
                                              int fd, int access)
{
    const off_t begin = lseek(fd, 0, SEEK_CUR);

    if (begin < 0) return NULL; /* EBADF */
    void *map = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_SHARED, fd, begin + (off_t)offset);
    if (map == MAP_FAILED) return NULL;
    struct kl_ibv_mr *mr = ibv_reg_mr(pd, (void *)(uintptr_t)iova, length, access);
    if (mr)
        ((struct vs_mr *)mr)->map = map;
    else
        munmap(map, length);
    return mr;
}

VS_EXPORT int ibv_dereg_mr(struct kl_ibv_mr *mr);
VS_EXPORT int ibv_dereg_mr(struct kl_ibv_mr *mr)
{
    struct vs_mr **link = &((struct vs_context *)mr->context)->mrs;

    vs_enter();
    while (*link && &(*link)->ib != mr) link = &(*link)->next;
    struct vs_mr *found = *link;
    if (found) *link = found->next;
    vs_leave();
    if (found && found->map) munmap(found->map, found->ib.length);
    free(found);
    return found ? 0 : EINVAL;
}

unsigned char *vs_memory_at(const struct kl_ibv_context *context, uint32_t key, uint64_t addr, size_t bytes, int access)
{
    for (const struct vs_mr *m = ((const struct vs_context *)context)->mrs; m; m = m->next) {
        const uint64_t start = (uint64_t)(uintptr_t)m->ib.addr;
        if (m->ib.lkey != key) continue;
        const bool allowed = (m->access & access) == access && addr >= start && bytes <= m->ib.length &&
                             addr - start <= m->ib.length - bytes;
        if (!allowed) return NULL;
        return m->map ? m->map + (addr - start) : (unsigned char *)(uintptr_t)addr;
    }
    return NULL;
}
