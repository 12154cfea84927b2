/* SPDX-License-Identifier: Apache-2.0 */
#include "net/plugin/rma_library.h"

#include "base/error.h"
#include "base/log.h"

#include <dlfcn.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { DEVICE_HOST = 0, DEVICE_GIN_PROXY = 2, CANARY = 0x5a, PROPERTIES = 128, TYPE_AT = 56, NO_CLASS = -1 };

static const char rma[] = "ncclRmaPlugin_v", gin[] = "ncclGinPlugin_v";

/* ---- contexts and memory ---- */

static ncclResult_t create_context_v13(const struct kl_rma_library *l, void *comm, void **context)
{
    typedef int call(void *, const void *, void **, void **);
    const int32_t config[] = {0, 0, 1, 0, NO_CLASS}; /* signals, counters, contexts, depth of queues, traffic class */
    void *offload = NULL;

    return (ncclResult_t)((call *)l->table->create_context)(comm, config, context, &offload);
}

static ncclResult_t create_context_v14(const struct kl_rma_library *l, void *comm, void **context)
{
    typedef int call(void *, const void *, void **);
    const int32_t config[] = {1, NO_CLASS, 1}; /* contexts, traffic class, distance of ranks */

    return (ncclResult_t)((call *)l->table->create_context)(comm, config, context);
}

static ncclResult_t reg_mr_v13(const struct kl_rma_library *l, void *comm, void *data, size_t bytes, uint64_t flags,
                               void **mr)
{
    typedef int call(void *, void *, size_t, int, uint64_t, void **, void **);
    void *of_device = NULL;

    return (ncclResult_t)((call *)l->table->reg_mr)(comm, data, bytes, KL_NET_ABI_HOST, flags, mr, &of_device);
}

static ncclResult_t reg_mr_v14(const struct kl_rma_library *l, void *comm, void *data, size_t bytes, uint64_t flags,
                               void **mr)
{
    typedef int call(void *, void *, size_t, int, uint64_t, void **);

    return (ncclResult_t)((call *)l->table->reg_mr)(comm, data, bytes, KL_NET_ABI_HOST, flags, mr);
}

/* ---- puts: in context 0, with signals that come behind all data before them ---- */

static ncclResult_t put_v13(const struct kl_rma_library *l, void *context, const struct kl_net_rma_put *p,
                            void **request)
{
    typedef int call(void *, int, uint64_t, void *, size_t, uint64_t, void *, uint32_t, void **);

    return (ncclResult_t)((call *)l->table->iput)(context, 0, p->from, p->from_mr, p->bytes, p->to, p->to_mr,
                                                  (uint32_t)p->peer, request);
}

static ncclResult_t put_v15(const struct kl_rma_library *l, void *context, const struct kl_net_rma_put *p,
                            void **request)
{
    typedef int call(void *, int, uint64_t, void *, size_t, uint64_t, void *, uint32_t, uint32_t, void **);

    return (ncclResult_t)((call *)l->table->iput)(context, 0, p->from, p->from_mr, p->bytes, p->to, p->to_mr,
                                                  (uint32_t)p->peer, 0, request);
}

static ncclResult_t put_signal_v13(const struct kl_rma_library *l, void *context, const struct kl_net_rma_put *p,
                                   void **request)
{
    typedef int call(void *, int, uint64_t, void *, size_t, uint64_t, void *, uint32_t, uint64_t, void *, uint64_t,
                     uint32_t, void **);

    return (ncclResult_t)((call *)l->table->iput_signal)(context, 0, p->from, p->from_mr, p->bytes, p->to, p->to_mr,
                                                         (uint32_t)p->peer, p->counter, p->counter_mr, 1,
                                                         KL_RMA_ABI_ADD, request);
}

static ncclResult_t put_signal_v14(const struct kl_rma_library *l, void *context, const struct kl_net_rma_put *p,
                                   void **request)
{
    typedef int call(void *, int, uint64_t, void *, size_t, uint64_t, void *, uint32_t, uint64_t, void *, uint64_t,
                     uint32_t, bool, void **);

    return (ncclResult_t)((call *)l->table->iput_signal)(context, 0, p->from, p->from_mr, p->bytes, p->to, p->to_mr,
                                                         (uint32_t)p->peer, p->counter, p->counter_mr, 1,
                                                         KL_RMA_ABI_ADD, true, request);
}

static ncclResult_t put_signal_v15(const struct kl_rma_library *l, void *context, const struct kl_net_rma_put *p,
                                   void **request)
{
    typedef int call(void *, int, uint64_t, void *, size_t, uint64_t, void *, uint32_t, uint64_t, void *, uint64_t,
                     uint32_t, bool, uint32_t, void **);

    return (ncclResult_t)((call *)l->table->iput_signal)(context, 0, p->from, p->from_mr, p->bytes, p->to, p->to_mr,
                                                         (uint32_t)p->peer, p->counter, p->counter_mr, 1,
                                                         KL_RMA_ABI_ADD, true, 0, request);
}

/* ---- the table of versions, newest first ---- */

static const struct kl_rma_adapter adapters[] = {
    {rma, 15, create_context_v14, reg_mr_v14, put_signal_v15, put_v15},
    {rma, 14, create_context_v14, reg_mr_v14, put_signal_v14, put_v13},
    {rma, 13, create_context_v13, reg_mr_v13, put_signal_v13, put_v13},
    {gin, 13, create_context_v13, reg_mr_v13, put_signal_v13, put_v13},
};

/* ---- a library's table ---- */

__attribute__((format(printf, 2, 3))) static bool refuse(const struct kl_rma_library *l, const char *why, ...)
{
    char text[200];
    va_list args;

    va_start(args, why);
    vsnprintf(text, sizeof text, why, args);
    va_end(args);
    KL_INFO(KL_INIT | KL_NET, "RMA/%s (%s%d of %s): %s, and it is not taken", l->name, l->adapter->prefix,
            l->adapter->version, l->file, text);
    return false;
}

static bool has_functions(const struct kl_rma_library *l)
{
    const struct kl_rma_abi_table *t = l->table;
    const struct {
        const char *name;
        kl_plugin_fn *fn;
    } needed[] = {
        {"init", t->init},
        {"devices", t->devices},
        {"getProperties", t->properties},
        {"listen", t->listen},
        {"connect", t->connect},
        {"createContext", t->create_context},
        {"regMrSym", t->reg_mr},
        {"deregMrSym", t->dereg_mr},
        {"destroyContext", t->destroy_context},
        {"closeColl", t->close_coll},
        {"closeListen", t->close_listen},
        {"iput", t->iput},
        {"iputSignal", t->iput_signal},
        {"test", t->test},
        {l->adapter->version > 13 ? "rmaProgress" : "ginProgress", t->progress},
        {"finalize", t->finalize},
    };

    for (size_t i = 0; i < sizeof needed / sizeof needed[0]; i++)
        if (!needed[i].fn) return refuse(l, "it has no function %s", needed[i].name);
    return true;
}

static const struct kl_rma_adapter *find_symbol(struct kl_rma_library *l)
{
    for (size_t i = 0; i < sizeof adapters / sizeof adapters[0]; i++) {
        char symbol[64];
        snprintf(symbol, sizeof symbol, "%s%d", adapters[i].prefix, adapters[i].version);
        l->table = dlsym(l->library, symbol);
        if (l->table) return &adapters[i];
    }
    KL_INFO(KL_INIT | KL_NET, "%s: looked for the symbols %s%d to %s%d and %s13, and found none", l->file, rma,
            KL_RMA_ABI_NEWEST, rma, KL_RMA_ABI_OLDEST, gin);
    if (dlsym(l->library, "ncclGinPlugin_v14"))
        KL_INFO(KL_INIT | KL_NET, "%s: its ncclGinPlugin_v14 is of use to kernels of GPUs only: it has no iput",
                l->file);
    return NULL;
}

bool kl_rma_library_read(struct kl_rma_library *l)
{
    l->adapter = find_symbol(l);
    if (!l->adapter) return false;
    snprintf(l->name, sizeof l->name, "?");
    if (!kl_plugin_is_text(l->table->name, KL_NET_PLUGIN_NAME))
        return refuse(l, "it has no printable name: its table has another layout");
    snprintf(l->name, sizeof l->name, "%s", l->table->name);
    return has_functions(l);
}

/* ---- its devices ---- */

static int int_at(const unsigned char *p, int at)
{
    int value;

    memcpy(&value, p + at, sizeof value);
    return value;
}

/* The members that are looked at have the same place in properties of v9 to v12. */
static bool describe(const struct kl_rma_library *l, int device)
{
    typedef int call(int, void *);
    const int wanted = l->adapter->prefix == gin ? DEVICE_GIN_PROXY : DEVICE_HOST;
    unsigned char p[KL_NET_ABI_PROPERTIES];

    memset(p, 0, PROPERTIES);
    memset(p + PROPERTIES, CANARY, sizeof p - PROPERTIES);
    const int rc = ((call *)l->table->properties)(device, p);
    if (rc) return refuse(l, "getProperties returned %d", rc);
    for (size_t i = PROPERTIES; i < sizeof p; i++)
        if (p[i] != CANARY) return refuse(l, "getProperties wrote more than %d bytes", PROPERTIES);
    if (!(int_at(p, KL_NET_ABI_MEMORY) & KL_NET_ABI_HOST))
        return refuse(l, "it takes no host memory (ptrSupport %#x)", (unsigned)int_at(p, KL_NET_ABI_MEMORY));
    const int type = int_at(p, TYPE_AT);
    if (type != DEVICE_GIN_PROXY && type != wanted)
        return refuse(l, "its devices are of type %d, and kernels of GPUs make their puts", type);
    return true;
}

bool kl_rma_library_start(const struct kl_rma_library *l, uint64_t comm, void **context, int *ndevices)
{
    typedef int start(void **, uint64_t, kl_plugin_logger *);
    typedef int count(int *);

    *context = NULL;
    *ndevices = 0;
    int rc = ((start *)l->table->init)(context, comm, kl_net_library_log);
    if (rc) return refuse(l, "init returned %d", rc);
    rc = ((count *)l->table->devices)(ndevices);
    bool good = rc ? refuse(l, "devices returned %d", rc) : *ndevices >= 1 || refuse(l, "it found no device");
    for (int i = 0; good && i < *ndevices; i++) good = describe(l, i);
    if (!good) kl_rma_library_finalize(l, *context);
    return good;
}

/* ---- calls ---- */

void kl_rma_library_finalize(const struct kl_rma_library *l, void *context)
{
    kl_net_library_end("RMA", l->name, "finalize", l->table->finalize, context);
}

ncclResult_t kl_rma_library_listen(const struct kl_rma_library *l, void *context, int device, void *handle,
                                   void **listener)
{
    typedef int call(void *, int, void *, void **);
    return (ncclResult_t)((call *)l->table->listen)(context, device, handle, listener);
}

ncclResult_t kl_rma_library_connect(const struct kl_rma_library *l, void *context, void **handles, int n, int rank,
                                    void *listener, void **comm)
{
    typedef int call(void *, void **, int, int, void *, void **);
    return (ncclResult_t)((call *)l->table->connect)(context, handles, n, rank, listener, comm);
}

ncclResult_t kl_rma_library_dereg_mr(const struct kl_rma_library *l, void *comm, void *mr)
{
    typedef int call(void *, void *);
    return (ncclResult_t)((call *)l->table->dereg_mr)(comm, mr);
}

ncclResult_t kl_rma_library_test(const struct kl_rma_library *l, void *comm, void *request, int *done)
{
    typedef int call(void *, void *, int *);
    return (ncclResult_t)((call *)l->table->test)(comm, request, done);
}

ncclResult_t kl_rma_library_progress(const struct kl_rma_library *l, void *context)
{
    typedef int call(void *);
    return (ncclResult_t)((call *)l->table->progress)(context);
}

bool kl_rma_library_has_failed(const struct kl_rma_library *l, void *context)
{
    typedef int call(void *, bool *);
    bool failed = false;

    return l->table->query_last_error && !((call *)l->table->query_last_error)(context, &failed) && failed;
}

void kl_rma_library_destroy_context(const struct kl_rma_library *l, void *context)
{
    kl_net_library_end("RMA", l->name, "destroyContext", l->table->destroy_context, context);
}

void kl_rma_library_close(const struct kl_rma_library *l, void *comm)
{
    kl_net_library_end("RMA", l->name, "closeColl", l->table->close_coll, comm);
}

void kl_rma_library_close_listen(const struct kl_rma_library *l, void *listener)
{
    kl_net_library_end("RMA", l->name, "closeListen", l->table->close_listen, listener);
}
