/* SPDX-License-Identifier: Apache-2.0 */
#include "net/plugin/library.h"

#include "base/error.h"
#include "base/log.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

enum { UNKNOWN_MBPS = 10000, DEVICE_HOST = 0, CANARY = 0x5a };

static const uint64_t most_of_all = UINT64_C(1) << 40; /* bytes of a message that a plugin may claim */

/* ---- its table ---- */

static bool has_functions(const struct kl_net_library *l)
{
    const struct kl_net_abi_table *t = l->table;
    const struct {
        const char *name;
        kl_plugin_fn *fn;
    } needed[] = {
        {"init", t->init},
        {"devices", t->devices},
        {"getProperties", t->properties},
        {"listen", t->listen},
        {"connect", t->connect},
        {"accept", t->accept},
        {"regMr", t->reg_mr},
        {"deregMr", t->dereg_mr},
        {"isend", t->isend},
        {"irecv", t->irecv},
        {"test", t->test},
        {"closeSend", t->close_send},
        {"closeRecv", t->close_recv},
        {"closeListen", t->close_listen},
        {"finalize", l->adapter->version >= 11 ? t->finalize : t->init},
    };

    for (size_t i = 0; i < sizeof needed / sizeof needed[0]; i++)
        if (!needed[i].fn) {
            KL_INFO(KL_INIT | KL_NET, "%s: its net plugin v%d has no function %s, and is not taken", l->file,
                    l->adapter->version, needed[i].name);
            return false;
        }
    return true;
}

static bool read_table(struct kl_net_library *l)
{
    int version;

    l->table = kl_plugin_symbol(l->library, l->file, "ncclNetPlugin_v", KL_NET_ABI_NEWEST, KL_NET_ABI_OLDEST, &version);
    if (!l->table) return false;
    l->adapter = kl_net_adapter(version);
    if (!kl_plugin_is_text(l->table->name, KL_NET_PLUGIN_NAME)) {
        KL_INFO(KL_INIT | KL_NET,
                "%s: its net plugin v%d has no printable name: its table has another layout, and is not taken", l->file,
                version);
        return false;
    }
    snprintf(l->name, sizeof l->name, "%s", l->table->name);
    return has_functions(l);
}

bool kl_net_library_open(struct kl_net_library *l, const char *name)
{
    *l = (struct kl_net_library){.library = NULL};
    l->library = kl_plugin_open("net", name, l->file);
    if (!l->library) return false;
    if (read_table(l)) return true;
    kl_net_library_close(l);
    return false;
}

void kl_net_library_close(struct kl_net_library *l)
{
    kl_plugin_close(l->library);
    l->library = NULL;
}

/* ---- its devices ---- */

static bool refuse(const struct kl_net_library *l, const char *call, int rc)
{
    KL_INFO(KL_INIT | KL_NET, "NET/%s (%s, v%d): %s returned %d, and it is not taken", l->name, l->file,
            l->adapter->version, call, rc);
    return false;
}

static int int_at(const unsigned char *p, int offset, int otherwise)
{
    int value = otherwise;

    if (offset >= 0) memcpy(&value, p + offset, sizeof value);
    return value;
}

static const char *text_at(const unsigned char *p, int offset)
{
    const char *text;

    memcpy(&text, p + offset, sizeof text);
    return text;
}

/* The bytes of one message: below 1 GiB in all versions, as test reports an int. */
static bool read_limit(const struct kl_net_library *l, const unsigned char *p, size_t *most)
{
    const int at = l->adapter->layout.max_p2p_bytes;
    uint64_t claimed = l->adapter->most_bytes;

    if (at >= 0) memcpy(&claimed, p + at, sizeof claimed);
    if (!claimed || claimed > most_of_all) {
        KL_INFO(KL_INIT | KL_NET, "NET/%s (%s): maxP2pBytes is %llu, outside 1 to 2^40, and it is not taken", l->name,
                l->file, (unsigned long long)claimed);
        return false;
    }
    *most = claimed < l->adapter->most_bytes ? (size_t)claimed : l->adapter->most_bytes;
    return true;
}

static bool is_overrun(const struct kl_net_library *l, const unsigned char *p)
{
    for (int i = l->adapter->layout.bytes; i < KL_NET_ABI_PROPERTIES; i++)
        if (p[i] != CANARY) return true;
    return false;
}

/* NULL: there is none, or it is no text. */
static const char *path_at(const unsigned char *p)
{
    const char *path = text_at(p, KL_NET_ABI_PCI_PATH);

    return kl_plugin_is_text(path, PATH_MAX) ? path : NULL;
}

/* Those of a virtual device. A physical one has itself, or none. */
static void read_members(const struct kl_net_library *l, int device, const unsigned char *p,
                         struct kl_net_properties *q)
{
    const struct kl_net_abi_layout *at = &l->adapter->layout;
    const int n = int_at(p, at->members, 0);

    if (n < 1 || n > at->most_members) return;
    for (int i = 0; i < n; i++) {
        q->member[i] = int_at(p, at->members + (i + 1) * (int)sizeof(int), -1);
        if (q->member[i] < 0 || q->member[i] >= KL_NET_PLUGIN_DEVICES || q->member[i] == device) return;
    }
    q->nmembers = n;
}

/* Memory of GPUs is registered by allocations, which may be larger than an int says, as regMr wants it before v8. */
static unsigned memory_of(const struct kl_net_library *l, int said)
{
    unsigned known = KL_NET_ABI_HOST;

    if (l->adapter->version >= 8) known |= KL_NET_ABI_CUDA;
    if (l->table->reg_mr_dmabuf) known |= KL_NET_ABI_DMABUF;
    return (unsigned)said & known;
}

static bool read_properties(const struct kl_net_library *l, const unsigned char *p, struct kl_net_properties *q)
{
    const struct kl_net_abi_layout *at = &l->adapter->layout;
    const int memory = int_at(p, KL_NET_ABI_MEMORY, 0), speed = int_at(p, at->speed, 0);

    *q = (struct kl_net_properties){
        .name = text_at(p, KL_NET_ABI_NAME),
        .pci_path = path_at(p),
        .memory = memory_of(l, memory),
        .flushes = l->table->iflush,
        .force_flush = int_at(p, at->force_flush, 0),
        .speed_mbps = speed > 0 ? speed : UNKNOWN_MBPS,
        .port = int_at(p, at->port, 0),
        .max_comms = int_at(p, at->max_comms, 0),
        .max_recvs = int_at(p, at->max_recvs, 1),
    };
    memcpy(&q->guid, p + KL_NET_ABI_GUID, sizeof q->guid);
    memcpy(&q->latency_us, p + at->latency, sizeof q->latency_us);
    if (q->max_recvs < 1) q->max_recvs = 1;
    if (q->max_recvs > KL_NET_RECVS) q->max_recvs = KL_NET_RECVS;
    if (int_at(p, at->device_type, DEVICE_HOST) != DEVICE_HOST) {
        KL_INFO(KL_INIT | KL_NET, "NET/%s (%s): its devices are offloaded to GPUs (type %d), and it is not taken",
                l->name, l->file, int_at(p, at->device_type, DEVICE_HOST));
        return false;
    }
    if (!(memory & KL_NET_ABI_HOST)) {
        KL_INFO(KL_INIT | KL_NET, "NET/%s (%s): it takes no host memory (ptrSupport %#x), and it is not taken", l->name,
                l->file, (unsigned)memory);
        return false;
    }
    return read_limit(l, p, &q->max_bytes);
}

static bool describe(struct kl_net_library *l, int device)
{
    typedef int call(int, void *);
    const int bytes = l->adapter->layout.bytes;
    unsigned char p[KL_NET_ABI_PROPERTIES];

    memset(p, 0, (size_t)bytes);
    memset(p + bytes, CANARY, sizeof p - (size_t)bytes);
    const int rc = ((call *)l->table->properties)(device, p);
    if (rc) return refuse(l, "getProperties", rc);
    if (is_overrun(l, p)) {
        KL_INFO(KL_INIT | KL_NET, "NET/%s (%s): getProperties wrote more than the %d bytes of v%d, and it is not taken",
                l->name, l->file, bytes, l->adapter->version);
        return false;
    }
    if (!kl_plugin_is_text(text_at(p, KL_NET_ABI_NAME), KL_NET_PLUGIN_NAME)) {
        KL_INFO(KL_INIT | KL_NET, "NET/%s (%s): device %d has no printable name, and it is not taken", l->name, l->file,
                device);
        return false;
    }
    if (!read_properties(l, p, &l->device[device])) return false;
    read_members(l, device, p, &l->device[device]);
    return true;
}

static bool describe_all(struct kl_net_library *l)
{
    typedef int call(int *);
    int n = 0;
    const int rc = ((call *)l->table->devices)(&n);

    if (rc) return refuse(l, "devices", rc);
    if (n < 1) {
        KL_INFO(KL_INIT | KL_NET, "NET/%s (%s, v%d): it found no device, and is not taken", l->name, l->file,
                l->adapter->version);
        return false;
    }
    l->ndevices = n < KL_NET_PLUGIN_DEVICES ? n : KL_NET_PLUGIN_DEVICES;
    for (int i = 0; i < l->ndevices; i++)
        if (!describe(l, i)) return false;
    return true;
}

static int find_merged(const struct kl_net_library *l, const int *member, int n)
{
    for (int i = 0; i < l->ndevices; i++)
        if (l->device[i].nmembers == n && !memcmp(l->device[i].member, member, (size_t)n * sizeof *member)) return i;
    return -1;
}

static ncclResult_t make_virtual(struct kl_net_library *l, const int *member, int n, int *device)
{
    typedef int call(int *, void *);
    struct {
        int n, member[KL_NET_MEMBERS];
    } wanted = {.n = n};

    memcpy(wanted.member, member, (size_t)n * sizeof *member);
    *device = -1;
    const int rc = ((call *)l->table->make_vdevice)(device, &wanted);
    if (rc) {
        KL_INFO(KL_INIT | KL_NET, "NET/%s: makeVDevice of %d devices from %s on returned %d: they stay apart", l->name,
                n, l->device[member[0]].name, rc);
        return ncclInvalidUsage;
    }
    if (*device == l->ndevices && *device < KL_NET_PLUGIN_DEVICES && describe(l, *device)) return ncclSuccess;
    KL_INFO(KL_INIT | KL_NET, "NET/%s: makeVDevice gave device %d, which is not the next one (%d), or cannot be used",
            l->name, *device, l->ndevices);
    return ncclInvalidUsage;
}

ncclResult_t kl_net_library_merge(struct kl_net_library *l, const int *member, int n, int *device)
{
    *device = find_merged(l, member, n);
    if (*device >= 0) return ncclSuccess;
    if (n > l->adapter->layout.most_members || !l->table->make_vdevice) return ncclInvalidUsage; /* 0 before v9 */
    KL_TRY(make_virtual(l, member, n, device));
    l->device[*device].nmembers = n; /* whatever it says */
    memcpy(l->device[*device].member, member, (size_t)n * sizeof *member);
    l->ndevices++;
    KL_INFO(KL_INIT | KL_NET, "NET/%s : [%d]%s %d Mb/s, merged of %d devices", l->name, *device,
            l->device[*device].name, l->device[*device].speed_mbps, n);
    return ncclSuccess;
}

bool kl_net_library_init(struct kl_net_library *l)
{
    const ncclResult_t rc = l->adapter->init(l);

    if (rc) return refuse(l, "init", (int)rc);
    if (describe_all(l)) return true;
    kl_net_library_finalize(l);
    return false;
}

void kl_net_library_finalize(struct kl_net_library *l)
{
    const ncclResult_t rc = l->adapter->finalize(l);

    if (rc) KL_INFO(KL_INIT | KL_NET, "NET/%s: finalize returned %d", l->name, (int)rc);
    l->context = NULL;
}

/* ---- calls ---- */

ncclResult_t kl_net_library_reg_dmabuf(const struct kl_net_library *l, void *comm, void *data, size_t bytes,
                                       uint64_t offset, int fd, void **mr)
{
    typedef int call(void *, void *, size_t, int, uint64_t, int, void **);
    return (ncclResult_t)((call *)l->table->reg_mr_dmabuf)(comm, data, bytes, KL_NET_ABI_CUDA, offset, fd, mr);
}

ncclResult_t kl_net_library_dereg_mr(const struct kl_net_library *l, void *comm, void *mr)
{
    typedef int call(void *, void *);
    return (ncclResult_t)((call *)l->table->dereg_mr)(comm, mr);
}

ncclResult_t kl_net_library_test(const struct kl_net_library *l, void *request, int *done, int *sizes)
{
    typedef int call(void *, int *, int *);
    return (ncclResult_t)((call *)l->table->test)(request, done, sizes);
}

void kl_net_library_end(const char *kind, const char *plugin, const char *function, kl_plugin_fn *fn, void *object)
{
    typedef int call(void *);
    const int rc = ((call *)fn)(object);

    if (rc) KL_INFO(KL_INIT | KL_NET, "%s/%s: %s returned %d", kind, plugin, function, rc);
}

void kl_net_library_close_send(const struct kl_net_library *l, void *comm)
{
    kl_net_library_end("NET", l->name, "closeSend", l->table->close_send, comm);
}

void kl_net_library_close_recv(const struct kl_net_library *l, void *comm)
{
    kl_net_library_end("NET", l->name, "closeRecv", l->table->close_recv, comm);
}

void kl_net_library_close_listen(const struct kl_net_library *l, void *listener)
{
    kl_net_library_end("NET", l->name, "closeListen", l->table->close_listen, listener);
}
