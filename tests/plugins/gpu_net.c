/* SPDX-License-Identifier: Apache-2.0 */
/**
 * gpu_net.c - a net plugin (v12) for memory of GPUs, the example otherwise. As a NIC, it gets at that by a mapping of its own
 * and never by the program's address, so a test can take the address from the CPU. It counts its calls (gpu_net.h).
 *
 * GPU_NET: the memory that it takes beside the host's: dmabuf, cuda, both, none. GPU_NET_FLUSH=0: it has no iflush, =always: it wants
 * flushes. When so many bytes of a GPU were posted to be sent, or received, GPU_NET_KILL kills the process; GPU_NET_STOP sends no more of them.
 */
#define NET_SYMBOL_OF(version) example
#include "examples/plugins/net/tcp.c" /* NOLINT(bugprone-suspicious-include): the example, with other functions */

#include "tests/plugins/gpu_net.h"

#include <dlfcn.h>
#include <signal.h>
#include <sys/mman.h>

#undef NET_SYMBOL
enum { CUDA_MEMORY = 2, DMA_BUF_MEMORY = 4, FLUSHES = 256, PAGE = 4096 };

struct net_plugin ncclNetPlugin_v12;
struct gpu_net_counts gpu_net_counts;

static struct gpu_net_counts *const counts = &gpu_net_counts;

static int is_set(const char *name, const char *value)
{
    const char *set = getenv(name);

    return set && !strcmp(set, value);
}

static int gpu_properties(int device, struct net_properties *p)
{
    const int rc = properties(device, p);

    if (is_set("GPU_NET", "cuda") || is_set("GPU_NET", "both")) p->memory |= CUDA_MEMORY;
    if (is_set("GPU_NET", "dmabuf") || is_set("GPU_NET", "both")) p->memory |= DMA_BUF_MEMORY;
    p->flush = is_set("GPU_NET_FLUSH", "always");
    return rc;
}

/* ---- memory ---- */

/* The program's memory of a GPU from `data` on, and the same here. */
struct region {
    char *data, *here;
    size_t bytes, mapped;
};

/* The descriptor of whole pages: its position is where they begin (docs/cuda.md). */
static int map_pages(char *data, size_t bytes, size_t before, int fd, void **mr)
{
    struct region *r = malloc(sizeof *r);
    char *map = r ? mmap(NULL, before + bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, lseek(fd, 0, SEEK_CUR))
                  : (char *)MAP_FAILED;

    if (map == (char *)MAP_FAILED) {
        free(r);
        return NET_SYSTEM;
    }
    *r = (struct region){.data = data, .here = map + before, .bytes = bytes, .mapped = before + bytes};
    *mr = r;
    return NET_OK;
}

static int gpu_reg_mr_dmabuf(void *comm, void *data, size_t bytes, int memory, uint64_t offset, int fd, void **mr)
{
    (void)comm;
    if (memory != CUDA_MEMORY || offset || (uintptr_t)data % PAGE || bytes % PAGE) return NET_INTERNAL;
    counts->dma_bufs++;
    return map_pages(data, bytes, 0, fd, mr);
}

static void *driver(const char *name)
{
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);

    return library ? dlsym(library, name) : NULL;
}

/* As nvidia_peermem does, it asks the GPU's driver for the pages behind an address. */
static int find_pages(uintptr_t start, size_t bytes, int *fd)
{
    int (*retain)(void **, int), (*push)(void *), (*pop)(void **);
    int (*export)(void *, unsigned long long, size_t, int, unsigned long long);
    void *context, *found[] = {driver("cuDevicePrimaryCtxRetain"), driver("cuCtxPushCurrent_v2"),
                               driver("cuCtxPopCurrent_v2"), driver("cuMemGetHandleForAddressRange")};

    memcpy(&retain, &found[0], sizeof retain);
    memcpy(&push, &found[1], sizeof push);
    memcpy(&pop, &found[2], sizeof pop);
    memcpy(&export, &found[3], sizeof export);
    for (int i = 0; i < 4; i++)
        if (!found[i]) return NET_SYSTEM;
    if (retain(&context, 0) || push(context)) return NET_SYSTEM;
    const int rc = export(fd, start, bytes, 1, 0);
    (void)pop(&context);
    return rc ? NET_SYSTEM : NET_OK;
}

static int gpu_reg_mr(void *comm, void *data, size_t bytes, int memory, void **mr)
{
    const uintptr_t at = (uintptr_t)data, start = at / PAGE * PAGE;
    const size_t pages = (at + bytes - start + PAGE - 1) / PAGE * PAGE;
    int fd, rc;

    if (memory == NET_HOST_MEMORY) return reg_mr(comm, data, bytes, memory, mr);
    if (memory != CUDA_MEMORY) return NET_INTERNAL;
    counts->addresses++;
    if ((rc = find_pages(start, pages, &fd))) return rc;
    rc = map_pages(data, bytes, at - start, fd, mr);
    close(fd);
    return rc;
}

static int gpu_dereg_mr(void *comm, void *mr)
{
    struct region *r = mr;

    (void)comm;
    if (!r) return NET_OK;
    counts->ended++;
    munmap(r->here + r->bytes - r->mapped, r->mapped);
    free(r);
    return NET_OK;
}

/* Where the net finds it; NULL: it is not in the region. */
static void *here(const struct region *r, void *data, size_t bytes)
{
    const size_t at = (size_t)((char *)data - r->data);

    return (char *)data >= r->data && at <= r->bytes && bytes <= r->bytes - at ? r->here + at : NULL;
}

/* ---- messages ---- */

static void die_when_due(unsigned long moved)
{
    const char *most = getenv("GPU_NET_KILL");

    if (most && moved >= strtoul(most, NULL, 10)) raise(SIGKILL);
}

static int is_stopped(void)
{
    const char *most = getenv("GPU_NET_STOP");

    return most && counts->sent >= strtoul(most, NULL, 10);
}

static int gpu_isend(void *comm, void *data, size_t bytes, int tag, void *mr, void *parent, void **request)
{
    *request = NULL;
    if (mr && is_stopped()) return NET_OK;
    if (mr && !(data = here(mr, data, bytes))) return NET_INTERNAL;
    const int rc = isend(comm, data, bytes, tag, NULL, parent, request);
    if (rc || !mr || !*request) return rc;
    counts->sends++;
    counts->sent += bytes;
    die_when_due(counts->sent);
    return rc;
}

static int gpu_irecv(void *comm, int n, void **data, size_t *bytes, int *tags, void **mr, void **parents,
                     void **request)
{
    const int of_gpu = mr[0] != NULL;

    if (of_gpu && (n != 1 || !(data[0] = here(mr[0], data[0], bytes[0])))) return NET_INTERNAL;
    const int rc = irecv(comm, n, data, bytes, tags, mr, parents, request);
    if (rc || !of_gpu || !*request) return rc;
    counts->recvs++;
    counts->received += bytes[0];
    die_when_due(counts->received);
    return rc;
}

/* ---- flushes: each is done at its second test ---- */

static atomic_int flushes[FLUSHES]; /* tests so far, and 1; 0: free */

static int gpu_iflush(void *comm, int n, void **data, int *bytes, void **mr, void **request)
{
    (void)comm;
    *request = NULL;
    if (n != 1 || !mr[0] || !here(mr[0], data[0], (size_t)bytes[0])) return NET_INTERNAL;
    counts->flushes++;
    for (int i = 0; i < FLUSHES; i++) {
        int none = 0;
        if (!atomic_compare_exchange_strong(&flushes[i], &none, 1)) continue;
        *request = &flushes[i];
        return NET_OK;
    }
    return NET_INTERNAL;
}

static int gpu_test(void *request, int *done, int *sizes)
{
    atomic_int *flush = request;

    if (flush < flushes || flush >= flushes + FLUSHES) return test(request, done, sizes);
    *done = *flush == 2;
    *flush = *done ? 0 : 2;
    return NET_OK;
}

__attribute__((constructor)) static void make_table(void)
{
    ncclNetPlugin_v12 = example;
    ncclNetPlugin_v12.name = "GPUNet";
    ncclNetPlugin_v12.properties = gpu_properties;
    ncclNetPlugin_v12.reg_mr = gpu_reg_mr;
    ncclNetPlugin_v12.reg_mr_dmabuf = gpu_reg_mr_dmabuf;
    ncclNetPlugin_v12.dereg_mr = gpu_dereg_mr;
    ncclNetPlugin_v12.isend = gpu_isend;
    ncclNetPlugin_v12.irecv = gpu_irecv;
    ncclNetPlugin_v12.iflush = is_set("GPU_NET_FLUSH", "0") ? NULL : gpu_iflush;
    ncclNetPlugin_v12.test = gpu_test;
}
