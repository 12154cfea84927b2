/* SPDX-License-Identifier: Apache-2.0 */
/** adapters.c - the calls of net plugins whose types differ between versions, and the table that says which version has which. */
#include "net/plugin/library.h"

#include "base/error.h"
#include "base/log.h"
#include "os/profiler.h"

#include <limits.h>
#include <stdarg.h>
#include <stdio.h>

/* ---- callbacks that a plugin gets ---- */

static enum kl_log_level level_of(int level)
{
    static const enum kl_log_level levels[] = {KL_LOG_NONE, KL_LOG_VERSION, KL_LOG_WARN,
                                               KL_LOG_INFO, KL_LOG_ABORT,   KL_LOG_TRACE};

    return level < 0 || level > 5 ? KL_LOG_INFO : levels[level];
}

void kl_net_library_log(int level, unsigned long subsys, const char *file, int line, const char *fmt, ...)
{
    const unsigned bits = subsys ? (unsigned)(subsys & KL_LOG_ALL) : KL_LOG_ALL;
    char text[2000];
    va_list args;

    if (!kl_log_on(level_of(level), bits)) return;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    kl_log(level_of(level), bits, file ? file : "plugin", line, "%s", text);
}

/* ---- init ---- */

static const struct kl_net_abi_config no_class = {.traffic_class = -1};

static ncclResult_t init_v6(struct kl_net_library *l)
{
    typedef int call(kl_plugin_logger *);
    return (ncclResult_t)((call *)l->table->init)(kl_net_library_log);
}

static ncclResult_t init_v10(struct kl_net_library *l)
{
    typedef int call(kl_plugin_logger *, kl_plugin_profile *);
    return (ncclResult_t)((call *)l->table->init)(kl_net_library_log, kl_profile_net_event);
}

static ncclResult_t init_v11(struct kl_net_library *l)
{
    typedef int call(void **, uint64_t, const struct kl_net_abi_config *, kl_plugin_logger *, kl_plugin_profile *);
    return (ncclResult_t)((call *)l->table->init)(&l->context, (uint64_t)(uintptr_t)l, &no_class, kl_net_library_log,
                                                  kl_profile_net_event);
}

static ncclResult_t finalize_v6(struct kl_net_library *l)
{
    (void)l; /* these are initialised once for the life of the process */
    return ncclSuccess;
}

static ncclResult_t finalize_v11(struct kl_net_library *l)
{
    typedef int call(void *);
    return (ncclResult_t)((call *)l->table->finalize)(l->context);
}

/* ---- connections ---- */

static ncclResult_t listen_v6(const struct kl_net_library *l, int device, void *handle, void **listener)
{
    typedef int call(int, void *, void **);
    return (ncclResult_t)((call *)l->table->listen)(device, handle, listener);
}

static ncclResult_t listen_v11(const struct kl_net_library *l, int device, void *handle, void **listener)
{
    typedef int call(void *, int, void *, void **);
    return (ncclResult_t)((call *)l->table->listen)(l->context, device, handle, listener);
}

static ncclResult_t connect_v6(const struct kl_net_library *l, int device, void *handle, void **comm)
{
    typedef int call(int, void *, void **);
    return (ncclResult_t)((call *)l->table->connect)(device, handle, comm);
}

static ncclResult_t connect_v7(const struct kl_net_library *l, int device, void *handle, void **comm)
{
    typedef int call(int, void *, void **, void **);
    void *offload = NULL;
    return (ncclResult_t)((call *)l->table->connect)(device, handle, comm, &offload);
}

static ncclResult_t connect_v10(const struct kl_net_library *l, int device, void *handle, void **comm)
{
    typedef int call(int, const struct kl_net_abi_config *, void *, void **, void **);
    void *offload = NULL;
    return (ncclResult_t)((call *)l->table->connect)(device, &no_class, handle, comm, &offload);
}

static ncclResult_t connect_v11(const struct kl_net_library *l, int device, void *handle, void **comm)
{
    typedef int call(void *, int, void *, void **, void **);
    void *offload = NULL;
    return (ncclResult_t)((call *)l->table->connect)(l->context, device, handle, comm, &offload);
}

static ncclResult_t accept_v6(const struct kl_net_library *l, void *listener, void **comm)
{
    typedef int call(void *, void **);
    return (ncclResult_t)((call *)l->table->accept)(listener, comm);
}

static ncclResult_t accept_v7(const struct kl_net_library *l, void *listener, void **comm)
{
    typedef int call(void *, void **, void **);
    void *offload = NULL;
    return (ncclResult_t)((call *)l->table->accept)(listener, comm, &offload);
}

/* ---- memory ---- */

static ncclResult_t reg_mr_v6(const struct kl_net_library *l, void *comm, void *data, size_t bytes, int memory,
                              void **mr)
{
    typedef int call(void *, void *, int, int, void **);
    if (bytes > INT_MAX)
        return KL_FAIL(ncclInternalError, "NET/%s: plugins of v%d register at most %d bytes, not %zu", l->name,
                       l->adapter->version, INT_MAX, bytes);
    return (ncclResult_t)((call *)l->table->reg_mr)(comm, data, (int)bytes, memory, mr);
}

static ncclResult_t reg_mr_v8(const struct kl_net_library *l, void *comm, void *data, size_t bytes, int memory,
                              void **mr)
{
    typedef int call(void *, void *, size_t, int, void **);
    return (ncclResult_t)((call *)l->table->reg_mr)(comm, data, bytes, memory, mr);
}

/* ---- messages ---- */

/* Of events of the plugin, which it names in its callback. */
static void *parent(void)
{
    return (void *)(uintptr_t)kl_profile_parent;
}

static ncclResult_t isend_v6(const struct kl_net_library *l, void *comm, const struct kl_net_recv *m, void **request)
{
    typedef int call(void *, void *, int, int, void *, void **);
    return (ncclResult_t)((call *)l->table->isend)(comm, m->data, (int)m->bytes, m->tag, m->mr, request);
}

static ncclResult_t isend_v9(const struct kl_net_library *l, void *comm, const struct kl_net_recv *m, void **request)
{
    typedef int call(void *, void *, size_t, int, void *, void **);
    return (ncclResult_t)((call *)l->table->isend)(comm, m->data, m->bytes, m->tag, m->mr, request);
}

static ncclResult_t isend_v10(const struct kl_net_library *l, void *comm, const struct kl_net_recv *m, void **request)
{
    typedef int call(void *, void *, size_t, int, void *, void *, void **);
    return (ncclResult_t)((call *)l->table->isend)(comm, m->data, m->bytes, m->tag, m->mr, parent(), request);
}

/* The messages of one irecv, as arrays. */
struct columns {
    void *data[KL_NET_RECVS], *mr[KL_NET_RECVS], *parents[KL_NET_RECVS];
    size_t bytes[KL_NET_RECVS];
    int sizes[KL_NET_RECVS], tags[KL_NET_RECVS];
};

static struct columns columns_of(int n, const struct kl_net_recv *recvs)
{
    struct columns c = {.parents = {NULL}};

    for (int i = 0; i < n && i < KL_NET_RECVS; i++) {
        c.data[i] = recvs[i].data;
        c.bytes[i] = recvs[i].bytes;
        c.sizes[i] = (int)recvs[i].bytes;
        c.tags[i] = recvs[i].tag;
        c.mr[i] = recvs[i].mr;
        c.parents[i] = parent();
    }
    return c;
}

static ncclResult_t irecv_v6(const struct kl_net_library *l, void *comm, int n, const struct kl_net_recv *recvs,
                             void **request)
{
    typedef int call(void *, int, void **, int *, int *, void **, void **);
    struct columns c = columns_of(n, recvs);
    return (ncclResult_t)((call *)l->table->irecv)(comm, n, c.data, c.sizes, c.tags, c.mr, request);
}

static ncclResult_t irecv_v9(const struct kl_net_library *l, void *comm, int n, const struct kl_net_recv *recvs,
                             void **request)
{
    typedef int call(void *, int, void **, size_t *, int *, void **, void **);
    struct columns c = columns_of(n, recvs);
    return (ncclResult_t)((call *)l->table->irecv)(comm, n, c.data, c.bytes, c.tags, c.mr, request);
}

static ncclResult_t irecv_v10(const struct kl_net_library *l, void *comm, int n, const struct kl_net_recv *recvs,
                              void **request)
{
    typedef int call(void *, int, void **, size_t *, int *, void **, void **, void **);
    struct columns c = columns_of(n, recvs);
    return (ncclResult_t)((call *)l->table->irecv)(comm, n, c.data, c.bytes, c.tags, c.mr, c.parents, request);
}

ncclResult_t kl_net_library_iflush(const struct kl_net_library *l, void *comm, int n, const struct kl_net_recv *recvs,
                                   void **request)
{
    typedef int call(void *, int, void **, int *, void **, void **);
    struct columns c = columns_of(n, recvs);
    return (ncclResult_t)((call *)l->table->iflush)(comm, n, c.data, c.sizes, c.mr, request);
}

/* ---- the table ---- */

#define LAYOUT(...) .layout = {__VA_ARGS__}, .most_bytes = 1 << 30
#define V6(listen_, connect_, accept_)                                                                                 \
    .init = init_v6, .finalize = finalize_v6, .listen = listen_, .connect = connect_, .accept = accept_

/* bytes, speed, port, latency, max_comms, max_recvs, device_type, max_p2p_bytes, members, most_members, force_flush */
static const struct kl_net_adapter adapters[] = {
    {.version = 6,
     LAYOUT(48, 28, 32, 36, 40, 44, -1, -1, -1, 0, -1),
     V6(listen_v6, connect_v6, accept_v6),
     .reg_mr = reg_mr_v6,
     .isend = isend_v6,
     .irecv = irecv_v6},
    {.version = 7,
     LAYOUT(56, 28, 32, 36, 40, 44, 48, -1, -1, 0, -1),
     V6(listen_v6, connect_v7, accept_v7),
     .reg_mr = reg_mr_v6,
     .isend = isend_v6,
     .irecv = irecv_v6},
    {.version = 8,
     LAYOUT(64, 32, 36, 40, 44, 48, 52, -1, -1, 0, -1),
     V6(listen_v6, connect_v7, accept_v7),
     .reg_mr = reg_mr_v8,
     .isend = isend_v6,
     .irecv = irecv_v6},
    {.version = 9,
     LAYOUT(104, 36, 40, 44, 48, 52, 56, 88, 64, 4, 32),
     V6(listen_v6, connect_v7, accept_v7),
     .reg_mr = reg_mr_v8,
     .isend = isend_v9,
     .irecv = irecv_v9},
    {.version = 10,
     LAYOUT(104, 36, 40, 44, 48, 52, 56, 88, 64, 4, 32),
     .init = init_v10,
     .finalize = finalize_v6,
     .listen = listen_v6,
     .connect = connect_v10,
     .accept = accept_v7,
     .reg_mr = reg_mr_v8,
     .isend = isend_v10,
     .irecv = irecv_v10},
    {.version = 11,
     LAYOUT(112, 36, 40, 44, 48, 52, 56, 88, 64, 4, 32),
     .init = init_v11,
     .finalize = finalize_v11,
     .listen = listen_v11,
     .connect = connect_v11,
     .accept = accept_v7,
     .reg_mr = reg_mr_v8,
     .isend = isend_v10,
     .irecv = irecv_v10},
    {.version = 12,
     LAYOUT(128, 36, 40, 44, 48, 52, 56, 104, 64, 8, 32),
     .init = init_v11,
     .finalize = finalize_v11,
     .listen = listen_v11,
     .connect = connect_v11,
     .accept = accept_v7,
     .reg_mr = reg_mr_v8,
     .isend = isend_v10,
     .irecv = irecv_v10},
};

const struct kl_net_adapter *kl_net_adapter(int version)
{
    return &adapters[version - KL_NET_ABI_OLDEST];
}
