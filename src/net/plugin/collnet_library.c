/* SPDX-License-Identifier: Apache-2.0 */
#include "net/plugin/collnet_library.h"

#include "base/error.h"
#include "base/log.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

/* A function of the table; NULL: the version has none, or the plugin leaves it out. */
static kl_plugin_fn *fn_at(const struct kl_collnet_library *l, int offset)
{
    kl_plugin_fn *fn = NULL;

    if (offset >= 0) memcpy(&fn, (const char *)l->table + offset, sizeof fn);
    return fn;
}

/* The mean is a sum to the network: its caller divides. */
static int op_of(struct kl_collnet_op op)
{
    return op.op == ncclAvg ? (int)ncclSum : (int)op.op;
}

/* ---- calls whose types differ between versions ---- */

static ncclResult_t init_v6(struct kl_collnet_library *l)
{
    typedef int call(kl_plugin_logger *);
    return (ncclResult_t)((call *)fn_at(l, KL_COLLNET_ABI_INIT))(kl_net_library_log);
}

static ncclResult_t init_v11(struct kl_collnet_library *l)
{
    typedef int call(void **, uint64_t, kl_plugin_logger *);
    return (ncclResult_t)((call *)fn_at(l, KL_COLLNET_ABI_INIT))(&l->context, (uint64_t)(uintptr_t)l,
                                                                 kl_net_library_log);
}

static ncclResult_t listen_v6(const struct kl_collnet_library *l, int device, void *handle, void **listener)
{
    typedef int call(int, void *, void **);
    return (ncclResult_t)((call *)fn_at(l, KL_COLLNET_ABI_LISTEN))(device, handle, listener);
}

static ncclResult_t listen_v11(const struct kl_collnet_library *l, int device, void *handle, void **listener)
{
    typedef int call(void *, int, void *, void **);
    return (ncclResult_t)((call *)fn_at(l, KL_COLLNET_ABI_LISTEN))(l->context, device, handle, listener);
}

static ncclResult_t reg_mr_v6(const struct kl_collnet_library *l, void *comm, void *data, size_t bytes, void **mr)
{
    typedef int call(void *, void *, int, int, void **);
    if (bytes > INT_MAX) return ncclInternalError;
    return (ncclResult_t)((call *)fn_at(l, KL_COLLNET_ABI_REG_MR))(comm, data, (int)bytes, KL_NET_ABI_HOST, mr);
}

static ncclResult_t reg_mr_v8(const struct kl_collnet_library *l, void *comm, void *data, size_t bytes, void **mr)
{
    typedef int call(void *, void *, size_t, int, void **);
    return (ncclResult_t)((call *)fn_at(l, KL_COLLNET_ABI_REG_MR))(comm, data, bytes, KL_NET_ABI_HOST, mr);
}

static ncclResult_t iallreduce_v6(const struct kl_collnet_library *l, void *comm, const void *send, void *recv,
                                  size_t count, struct kl_collnet_op op, void *send_mr, void *recv_mr, void **request)
{
    typedef int call(void *, const void *, void *, int, int, int, void *, void *, void **);
    if (count > INT_MAX) return ncclInternalError;
    return (ncclResult_t)((call *)fn_at(l, KL_COLLNET_ABI_IALLREDUCE))(comm, send, recv, (int)count, (int)op.type,
                                                                       op_of(op), send_mr, recv_mr, request);
}

static ncclResult_t iallreduce_v9(const struct kl_collnet_library *l, void *comm, const void *send, void *recv,
                                  size_t count, struct kl_collnet_op op, void *send_mr, void *recv_mr, void **request)
{
    typedef int call(void *, const void *, void *, size_t, int, int, void *, void *, void **);
    return (ncclResult_t)((call *)fn_at(l, KL_COLLNET_ABI_IALLREDUCE))(comm, send, recv, count, (int)op.type, op_of(op),
                                                                       send_mr, recv_mr, request);
}

/* iallgather, ireducescatter, iflush, test, close, close_listen, finalize */
#define ROW(v, init_, listen_, reg_mr_, iallreduce_, ...)                                                              \
    {                                                                                                                  \
        .version = (v), .layout = {__VA_ARGS__}, .init = (init_), .listen = (listen_), .reg_mr = (reg_mr_),            \
        .iallreduce = (iallreduce_)                                                                                    \
    }

static const struct kl_collnet_adapter adapters[] = {
    ROW(6, init_v6, listen_v6, reg_mr_v6, iallreduce_v6, -1, -1, 88, 96, 104, 112, -1),
    ROW(7, init_v6, listen_v6, reg_mr_v6, iallreduce_v6, -1, -1, 88, 96, 104, 112, -1),
    ROW(8, init_v6, listen_v6, reg_mr_v8, iallreduce_v6, 88, 96, 104, 112, 120, 128, -1),
    ROW(9, init_v6, listen_v6, reg_mr_v8, iallreduce_v9, 88, 96, 104, 112, 120, 128, -1),
    ROW(10, init_v6, listen_v6, reg_mr_v8, iallreduce_v9, 88, 96, 104, 112, 120, 128, -1),
    ROW(11, init_v11, listen_v11, reg_mr_v8, iallreduce_v9, 88, 96, 104, 112, 120, 128, 144),
    ROW(12, init_v11, listen_v11, reg_mr_v8, iallreduce_v9, 88, 96, 104, 112, 120, 128, 144),
};

/* ---- its table ---- */

static bool refuse(const struct kl_collnet_library *l, const char *why, int number)
{
    char text[160];

    snprintf(text, sizeof text, why, number);
    KL_INFO(KL_INIT | KL_NET, "COLLNET/%s (%s, v%d): %s, and it is not taken", l->name, l->file, l->adapter->version,
            text);
    return false;
}

static bool has_functions(const struct kl_collnet_library *l)
{
    const struct kl_collnet_abi_layout *at = &l->adapter->layout;
    const int needed[] = {KL_COLLNET_ABI_PROPERTIES,
                          KL_COLLNET_ABI_LISTEN,
                          KL_COLLNET_ABI_CONNECT,
                          KL_COLLNET_ABI_REDUCE_SUPPORT,
                          KL_COLLNET_ABI_REG_MR,
                          KL_COLLNET_ABI_DEREG_MR,
                          KL_COLLNET_ABI_IALLREDUCE,
                          at->test,
                          at->close,
                          at->close_listen};

    for (size_t i = 0; i < sizeof needed / sizeof needed[0]; i++)
        if (!fn_at(l, needed[i])) return refuse(l, "the function at byte %d of its table is NULL", needed[i]);
    if (at->finalize >= 0 && !fn_at(l, at->finalize)) return refuse(l, "it has no finalize", 0);
    return true;
}

static bool read_table(struct kl_collnet_library *l, const struct kl_net_library *net)
{
    const char *name;
    int version;

    l->table = kl_plugin_symbol(net->library, net->file, "ncclCollNetPlugin_v", KL_NET_ABI_NEWEST, KL_NET_ABI_OLDEST,
                                &version);
    if (!l->table) return false;
    l->adapter = &adapters[version - KL_NET_ABI_OLDEST];
    memcpy(&name, l->table, sizeof name);
    if (!kl_plugin_is_text(name, KL_NET_PLUGIN_NAME)) return refuse(l, "it has no printable name", 0);
    snprintf(l->name, sizeof l->name, "%s", name);
    if (!fn_at(l, KL_COLLNET_ABI_INIT) || !fn_at(l, KL_COLLNET_ABI_DEVICES))
        return refuse(l, "it has no init or devices", 0);
    return true;
}

/* Without its own gathering, parts are gathered by a sum with zeros, in bytes. */
static bool can_gather(const struct kl_collnet_library *l)
{
    const struct kl_collnet_op bytes = {.type = ncclUint8, .op = ncclSum};

    return kl_collnet_library_has_gather(l) || kl_collnet_library_reduces(l, bytes);
}

static bool start(struct kl_collnet_library *l)
{
    typedef int count(int *);
    int rc = (int)l->adapter->init(l);

    if (rc) return refuse(l, "init returned %d", rc);
    rc = ((count *)fn_at(l, KL_COLLNET_ABI_DEVICES))(&l->ndevices);
    const bool good = rc                  ? refuse(l, "devices returned %d", rc)
                      : l->ndevices < 1   ? refuse(l, "it found no device", 0)
                      : !has_functions(l) ? false
                                          : can_gather(l) || refuse(l, "it neither gathers nor adds up bytes", 0);
    if (!good) kl_collnet_library_finalize(l);
    return good;
}

bool kl_collnet_library_open(struct kl_collnet_library *l, const struct kl_net_library *net)
{
    *l = (struct kl_collnet_library){.file = net->file};
    if (read_table(l, net) && start(l)) {
        KL_INFO(KL_INIT | KL_NET, "COLLNET/Plugin: using %s (ncclCollNetPlugin_v%d of %s), %d device%s", l->name,
                l->adapter->version, l->file, l->ndevices, l->ndevices == 1 ? "" : "s");
        return true;
    }
    l->table = NULL;
    return false;
}

void kl_collnet_library_finalize(struct kl_collnet_library *l)
{
    kl_plugin_fn *finalize = fn_at(l, l->adapter->layout.finalize);

    if (finalize) kl_net_library_end("COLLNET", l->name, "finalize", finalize, l->context);
    l->context = NULL;
}

/* ---- calls ---- */

bool kl_collnet_library_reduces(const struct kl_collnet_library *l, struct kl_collnet_op op)
{
    typedef int call(int, int, int *);
    int yes = 0;
    const int rc = ((call *)fn_at(l, KL_COLLNET_ABI_REDUCE_SUPPORT))((int)op.type, op_of(op), &yes);

    return !rc && yes;
}

ncclResult_t kl_collnet_library_connect(const struct kl_collnet_library *l, void **handles, int n, int own,
                                        void *listener, void **comm)
{
    typedef int call(void **, int, int, void *, void **);
    return (ncclResult_t)((call *)fn_at(l, KL_COLLNET_ABI_CONNECT))(handles, n, own, listener, comm);
}

ncclResult_t kl_collnet_library_dereg_mr(const struct kl_collnet_library *l, void *comm, void *mr)
{
    typedef int call(void *, void *);
    return (ncclResult_t)((call *)fn_at(l, KL_COLLNET_ABI_DEREG_MR))(comm, mr);
}

ncclResult_t kl_collnet_library_test(const struct kl_collnet_library *l, void *request, int *done)
{
    typedef int call(void *, int *, int *);
    int size = 0;
    return (ncclResult_t)((call *)fn_at(l, l->adapter->layout.test))(request, done, &size);
}

void kl_collnet_library_close(const struct kl_collnet_library *l, void *comm)
{
    kl_net_library_end("COLLNET", l->name, "closeColl", fn_at(l, l->adapter->layout.close), comm);
}

void kl_collnet_library_close_listen(const struct kl_collnet_library *l, void *listener)
{
    kl_net_library_end("COLLNET", l->name, "closeListen", fn_at(l, l->adapter->layout.close_listen), listener);
}

/* ---- parts ---- */

bool kl_collnet_library_has_gather(const struct kl_collnet_library *l)
{
    return fn_at(l, l->adapter->layout.iallgather);
}

bool kl_collnet_library_has_scatter(const struct kl_collnet_library *l)
{
    return fn_at(l, l->adapter->layout.ireducescatter);
}

/* A part's place, as the calls take it: of v8 the size has 32 bits, and the upper half of the word is zero. */
struct abi_part {
    void *mr, *data;
    size_t bytes;
};
_Static_assert(sizeof(struct abi_part) == 24, "as measured");

ncclResult_t kl_collnet_library_gather(const struct kl_collnet_library *l, void *comm, const void *send, void *send_mr,
                                       void *all, void *mr, int n, size_t bytes, void **request)
{
    typedef int call(void *, const void *, int, struct abi_part *, size_t, size_t, size_t, void *, void **);
    struct abi_part part = {.mr = mr, .data = all, .bytes = (size_t)n * bytes};

    return (ncclResult_t)((call *)fn_at(l, l->adapter->layout.iallgather))(comm, send, 1, &part, bytes, 0, part.bytes,
                                                                           send_mr, request);
}

ncclResult_t kl_collnet_library_scatter(const struct kl_collnet_library *l, void *comm, void *all, void *mr, void *recv,
                                        void *recv_mr, int n, size_t bytes, struct kl_collnet_op op, void **request)
{
    typedef int call(void *, int, struct abi_part *, void *, size_t, size_t, size_t, int, int, void *, void **);
    struct abi_part part = {.mr = mr, .data = all, .bytes = (size_t)n * bytes};

    return (ncclResult_t)((call *)fn_at(l, l->adapter->layout.ireducescatter))(
        comm, 1, &part, recv, bytes, 0, part.bytes, (int)op.type, op_of(op), recv_mr, request);
}
