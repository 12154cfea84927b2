/* SPDX-License-Identifier: Apache-2.0 */
#include "net/plugin/plugin.h"

#include "base/error.h"
#include "base/log.h"
#include "net/plugin/collnet.h"
#include "net/plugin/join.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

enum { MOST_PLUGINS = 14 };

struct params {
    char names[KL_PARAM_TEXT];
};

static const struct kl_param rows[] = {
    KL_PARAM_STRING(
        struct params, names, "NCCL_NET_PLUGIN", KL_OWN, "",
        "net plugins to look for, in this order, \"NAME,FILE,...\"; \"none\": no plugin; without it, libnccl-net.so"),
};

const struct kl_param_set kl_net_plugin_param_set = KL_PARAM_SET("net_plugin", struct params, rows);

static struct {
    struct kl_net_library library;
    bool taken;       /* `library` is the one of this process */
    bool initialised; /* now */
    bool none;        /* all of NCCL_NET_PLUGIN were looked at, and none can be used */
    int users;
} process;

/* ---- which one ---- */

static bool take(const char *file, const char *wanted)
{
    struct kl_net_library *l = &process.library;

    if (!kl_net_library_open(l, file)) return false;
    if (*wanted && strcasecmp(wanted, l->name)) {
        KL_INFO(KL_INIT | KL_NET, "NET/%s (%s, v%d): not taken, as \"%s\" is asked for (NCCL_NET)", l->name, l->file,
                l->adapter->version, wanted);
        kl_net_library_close(l);
        return false;
    }
    if (kl_net_library_init(l)) return true;
    kl_net_library_close(l);
    return false;
}

/* The next name of a list, "" for an empty one. Moves on. */
static const char *next_name(const char **list, char name[KL_PARAM_TEXT])
{
    const size_t n = strcspn(*list, ",");

    snprintf(name, KL_PARAM_TEXT, "%.*s", (int)n, *list);
    *list += n + ((*list)[n] == ',');
    return name;
}

static bool take_first_of(const char *names, const char *wanted)
{
    char name[KL_PARAM_TEXT];

    if (!*names) return take("", wanted);
    for (int i = 0; *names; i++) {
        next_name(&names, name);
        if (i == MOST_PLUGINS) {
            KL_WARN("NCCL_NET_PLUGIN: of more than %d plugins, \"%s\" and those behind it are not looked at",
                    MOST_PLUGINS, name);
            return false;
        }
        if (*name && take(name, wanted)) return true;
    }
    return false;
}

static void say_taken(void)
{
    const struct kl_net_library *l = &process.library;

    KL_INFO(KL_INIT | KL_NET, "NET/Plugin: using %s (ncclNetPlugin_v%d of %s), %d device%s", l->name,
            l->adapter->version, l->file, l->ndevices, l->ndevices == 1 ? "" : "s");
    for (int i = 0; i < l->ndevices; i++)
        KL_INFO(KL_INIT | KL_NET, "NET/%s : [%d]%s %d Mb/s", l->name, i, l->device[i].name, l->device[i].speed_mbps);
}

static bool find(const char *wanted)
{
    struct params params;

    if (process.none) return false;
    kl_param_load(&kl_net_plugin_param_set, &params);
    process.taken = process.initialised = take_first_of(params.names, wanted);
    if (process.taken) {
        kl_net_plugin.name = process.library.name;
        say_taken();
        kl_collnet_plugin_open(&process.library);
    }
    process.none = !process.taken && !*wanted;
    return process.taken;
}

/* Versions without a context are initialised once in a process. */
static bool initialise(void)
{
    if (process.initialised) return true;
    process.initialised = kl_net_library_init(&process.library);
    if (process.initialised) kl_collnet_plugin_open(&process.library);
    return process.initialised;
}

bool kl_net_plugin_ref(const char *wanted)
{
    if (process.taken && *wanted && strcasecmp(wanted, process.library.name)) return false;
    if (!(process.taken ? initialise() : find(wanted))) return false;
    process.users++;
    return true;
}

void kl_net_plugin_unref(void)
{
    if (--process.users || process.library.adapter->version < 11) return;
    kl_collnet_plugin_close();
    kl_net_library_finalize(&process.library);
    process.initialised = false;
}

void *kl_net_plugin_open_again(char *file)
{
    return process.taken ? kl_plugin_open("net", process.library.file, file) : NULL;
}

/* ---- the table ---- */

static ncclResult_t init(void)
{
    return process.initialised ? ncclSuccess : KL_FAIL(ncclInternalError, "no net plugin is in use");
}

/* Communicators that are made at the same time may merge devices. */
static pthread_mutex_t merging = PTHREAD_MUTEX_INITIALIZER;

static int devices(void)
{
    pthread_mutex_lock(&merging);
    const int n = process.library.ndevices;
    pthread_mutex_unlock(&merging);
    return n;
}

static ncclResult_t find_device(int device)
{
    const int n = devices();

    if (device >= 0 && device < n) return ncclSuccess;
    return KL_FAIL(ncclInvalidArgument, "there is no NET device %d of %s; there are %d", device, process.library.name,
                   n);
}

static ncclResult_t properties(int device, struct kl_net_properties *p)
{
    KL_TRY(find_device(device));
    *p = process.library.device[device]; /* complete since it was counted */
    return ncclSuccess;
}

static ncclResult_t merge(const int *member, int n, int *device)
{
    for (int i = 0; i < n; i++) KL_TRY(find_device(member[i]));
    pthread_mutex_lock(&merging);
    const ncclResult_t rc = kl_net_library_merge(&process.library, member, n, device);
    pthread_mutex_unlock(&merging);
    return rc;
}

static ncclResult_t listen_on(int device, const struct kl_net_end *me, struct kl_net_handle *handle, void **listener)
{
    struct kl_plugin_listener *p = NULL;

    KL_TRY(find_device(device));
    KL_TRY(kl_plugin_listen(&process.library, device, me, handle, &p));
    *listener = p;
    return ncclSuccess;
}

static ncclResult_t connect_to(int device, const struct kl_net_end *me, const struct kl_net_handle *handle, void **send)
{
    struct kl_plugin_conn *c = *send;

    KL_TRY(find_device(device));
    ncclResult_t rc = kl_plugin_connect(&process.library, device, me, handle, &c);
    *send = c;
    return rc;
}

static ncclResult_t accept_from(void *listener, const struct kl_net_end *me, void **recv)
{
    struct kl_plugin_conn *c = NULL;
    ncclResult_t rc = kl_plugin_accept(listener, me, &c);

    *recv = c;
    return rc;
}

static ncclResult_t reg_mr(void *connection, void *data, size_t bytes, enum kl_net_memory memory, void **mr)
{
    struct kl_plugin_conn *c = connection;

    if (!(c->library->device[c->device].memory & memory))
        return KL_FAIL(ncclInvalidArgument, "NET/%s: its device %d takes no memory of kind %d", c->library->name,
                       c->device, (int)memory);
    if (c->failed) return kl_plugin_conn_fail(c, "regMr", c->failed);
    ncclResult_t rc = c->library->adapter->reg_mr(c->library, c->comm, data, bytes, (int)memory, mr);
    return rc ? kl_plugin_conn_fail(c, "regMr", rc) : ncclSuccess;
}

static ncclResult_t reg_mr_dmabuf(void *connection, void *data, size_t bytes, uint64_t offset, int fd, void **mr)
{
    struct kl_plugin_conn *c = connection;

    if (!(c->library->device[c->device].memory & KL_NET_DMABUF))
        return KL_FAIL(ncclInvalidArgument, "NET/%s: its device %d takes no DMA-BUF", c->library->name, c->device);
    if (c->failed) return kl_plugin_conn_fail(c, "regMrDmaBuf", c->failed);
    ncclResult_t rc = kl_net_library_reg_dmabuf(c->library, c->comm, data, bytes, offset, fd, mr);
    return rc ? kl_plugin_conn_fail(c, "regMrDmaBuf", rc) : ncclSuccess;
}

static ncclResult_t dereg_mr(void *connection, void *mr)
{
    struct kl_plugin_conn *c = connection;
    ncclResult_t rc = c->comm ? kl_net_library_dereg_mr(c->library, c->comm, mr) : ncclSuccess;

    return rc ? kl_plugin_conn_fail(c, "deregMr", rc) : ncclSuccess;
}

static ncclResult_t isend(void *send, const void *data, size_t bytes, int tag, void *mr, void **request)
{
    const struct kl_net_recv part = {.data = (void *)(uintptr_t)data, .bytes = bytes, .tag = tag, .mr = mr};
    struct kl_plugin_request *r;
    ncclResult_t rc = kl_plugin_conn_post(send, 1, &part, &r);

    *request = r;
    return rc;
}

static ncclResult_t irecv(void *recv, int n, const struct kl_net_recv *recvs, void **request)
{
    struct kl_plugin_request *r;
    ncclResult_t rc = kl_plugin_conn_post(recv, n, recvs, &r);

    *request = r;
    return rc;
}

static ncclResult_t iflush(void *recv, int n, const struct kl_net_recv *recvs, void **request)
{
    struct kl_plugin_conn *c = recv;
    struct kl_plugin_request *r = NULL;
    const ncclResult_t rc = c->library->table->iflush ? kl_plugin_conn_flush(c, n, recvs, &r) : ncclSuccess;

    *request = r;
    return rc;
}

static ncclResult_t test(void *request, bool *done, size_t *sizes)
{
    return kl_plugin_conn_test(request, done, sizes);
}

static ncclResult_t sleep_on(void *connection, int *fd)
{
    (void)connection; /* plugins have no descriptors */
    *fd = -1;
    return ncclSuccess;
}

static ncclResult_t sleep_on_listener(void *listener, int *fd)
{
    return kl_plugin_listener_sleep_on(listener, fd);
}

static void cancel(void *connection)
{
    kl_plugin_conn_cancel(connection);
}

static bool wants_goodbye(void *send)
{
    return kl_plugin_conn_peer_is_there(send);
}

static void close_connection(void *connection)
{
    kl_plugin_conn_close(connection);
}

static void close_listen(void *listener)
{
    kl_plugin_listener_free(listener);
}

struct kl_net kl_net_plugin = {
    .name = "Plugin",
    .init = init,
    .devices = devices,
    .properties = properties,
    .merge = merge,
    .listen = listen_on,
    .connect = connect_to,
    .accept = accept_from,
    .reg_mr = reg_mr,
    .reg_mr_dmabuf = reg_mr_dmabuf,
    .dereg_mr = dereg_mr,
    .isend = isend,
    .irecv = irecv,
    .iflush = iflush,
    .test = test,
    .sleep_on = sleep_on,
    .sleep_on_listener = sleep_on_listener,
    .cancel = cancel,
    .wants_goodbye = wants_goodbye,
    .close_send = close_connection,
    .close_recv = close_connection,
    .close_listen = close_listen,
};
