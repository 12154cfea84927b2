/* SPDX-License-Identifier: Apache-2.0 */
/**
 * record.c - a net plugin around another one: each call is a line of NET_RECORD_FILE.PID.
 *
 *     cc -shared -fPIC -o libnccl-net-record.so record.c -ldl       (-DNET_VERSION=8: the version that the other plugin exports; 12)
 *     NCCL_NET_PLUGIN=./libnccl-net-record.so NET_RECORD_PLUGIN=./libnccl-net-other.so NET_RECORD_FILE=/tmp/calls ...
 *
 * It needs nothing of Kolo, and works in NCCL. A line is written when a call begins, so the last one of a thread
 * may be a call that has not returned:
 *
 *     call THREAD NANOSECONDS NAME OBJECT BYTES EXTRA           EXTRA: a registration, or a hash of a handle
 *     back THREAD NANOSECONDS NAME RESULT VALUE OBJECT EXTRA    VALUE: not NULL, or done; OBJECT: made by the call
 *
 * Devices are in BYTES; of makeVDevice these are the number of members, EXTRA has a byte for each, the first one lowest, and VALUE is
 * the new device.
 *
 * `kolo plugin replay` reads such files.
 */
#include "net_abi.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static const struct net_plugin *other;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static FILE *to;

/* ---- lines ---- */

static unsigned long long now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (unsigned long long)t.tv_sec * 1000000000u + (unsigned long long)t.tv_nsec;
}

static void begin(const char *name, const void *object, unsigned long long bytes, unsigned long long extra)
{
    pthread_mutex_lock(&lock);
    if (to)
        fprintf(to, "call %ld %llu %s %llx %llu %llx\n", (long)syscall(SYS_gettid), now(), name,
                (unsigned long long)(uintptr_t)object, bytes, extra);
    pthread_mutex_unlock(&lock);
}

static int end(const char *name, int rc, int value, const void *object, unsigned long long extra)
{
    pthread_mutex_lock(&lock);
    if (to)
        fprintf(to, "back %ld %llu %s %d %d %llx %llx\n", (long)syscall(SYS_gettid), now(), name, rc, value,
                (unsigned long long)(uintptr_t)object, extra);
    pthread_mutex_unlock(&lock);
    return rc;
}

/* Of a call that makes an object, or not yet. */
static int made(const char *name, int rc, const void *object)
{
    return end(name, rc, object != NULL, object, 0);
}

/* Handles pair the ends of a connection in the files of two processes (FNV-1a). */
static unsigned long long hash(const void *handle)
{
    const unsigned char *byte = handle;
    unsigned long long h = 14695981039346656037u;

    for (int i = 0; i < NET_HANDLE; i++) h = (h ^ byte[i]) * 1099511628211u;
    return h;
}

/* ---- the other plugin ---- */

#define TEXT_(x) #x
#define TEXT(x)  TEXT_(x)

static void open_file(void)
{
    const char *name = getenv("NET_RECORD_FILE");
    char path[1024];

    if (to || !name) return;
    snprintf(path, sizeof path, "%s.%d", name, (int)getpid());
    to = fopen(path, "w");
    if (to) setvbuf(to, NULL, _IOLBF, 1 << 16);
}

static int load(void)
{
    const char *name = getenv("NET_RECORD_PLUGIN");
    void *library = name ? dlopen(name, RTLD_NOW | RTLD_LOCAL) : NULL;

    open_file();
    if (!other && library) other = dlsym(library, "ncclNetPlugin_v" TEXT(NET_VERSION));
    return other ? NET_OK : NET_SYSTEM;
}

#if NET_VERSION >= 9
static int make_vdevice(int *device, void *members)
{
    int wanted[NET_MEMBERS + 1];
    unsigned long long list = 0;

    memcpy(wanted, members, sizeof wanted);
    for (int i = 0; i < wanted[0] && i < NET_MEMBERS; i++) list |= (unsigned long long)(wanted[i + 1] & 0xff) << 8 * i;
    begin("makeVDevice", NULL, (unsigned)wanted[0], list);
    const int rc = other->make_vdevice(device, members);
    return end("makeVDevice", rc, rc ? 0 : *device, NULL, 0);
}
#endif

static int init(NET_INIT_ARGS)
{
    if (load()) return NET_SYSTEM;
    begin("init", NULL, 0, 0);
#if NET_VERSION >= 11
    return end("init", other->init(context, comm, config, log, profile), 0, NULL, 0);
#elif NET_VERSION == 10
    return end("init", other->init(log, profile), 0, NULL, 0);
#else
    return end("init", other->init(log), 0, NULL, 0);
#endif
}

static int devices(int *n)
{
    begin("devices", NULL, 0, 0);
    const int rc = other->devices(n);
    return end("devices", rc, rc ? 0 : *n, NULL, 0);
}

static int properties(int device, struct net_properties *p)
{
    begin("getProperties", NULL, (unsigned)device, 0);
    return end("getProperties", other->properties(device, p), 0, NULL, 0);
}

/* ---- connections ---- */

#if NET_VERSION >= 11
#define CONTEXT context,
#define CONNECT context, device,
#elif NET_VERSION == 10
#define CONTEXT
#define CONNECT device, config,
#else
#define CONTEXT
#define CONNECT device,
#endif
#if NET_VERSION >= 7
#define OFFLOAD , offload
#else
#define OFFLOAD
#endif
#if NET_VERSION >= 10
#define PARENT  parent,
#define PARENTS parents,
#else
#define PARENT
#define PARENTS
#endif

static int listen_on(NET_CONTEXT int device, void *handle, void **listener)
{
    begin("listen", NULL, (unsigned)device, 0);
    const int rc = other->listen(CONTEXT device, handle, listener);
    return end("listen", rc, *listener != NULL, *listener, hash(handle));
}

static int connect_to(NET_CONNECT_ARGS void *handle, void **comm NET_OFFLOAD)
{
    begin("connect", NULL, (unsigned)device, hash(handle));
    const int rc = other->connect(CONNECT handle, comm OFFLOAD);
    return made("connect", rc, *comm);
}

static int accept_from(void *listener, void **comm NET_OFFLOAD)
{
    begin("accept", listener, 0, 0);
    const int rc = other->accept(listener, comm OFFLOAD);
    return made("accept", rc, *comm);
}

static int reg_mr(void *comm, void *data, net_mr_size bytes, int memory, void **mr)
{
    begin("regMr", comm, (unsigned long long)bytes, 0);
    const int rc = other->reg_mr(comm, data, bytes, memory, mr);
    return made("regMr", rc, *mr);
}

static int dereg_mr(void *comm, void *mr)
{
    begin("deregMr", comm, 0, (uintptr_t)mr);
    return end("deregMr", other->dereg_mr(comm, mr), 0, NULL, 0);
}

/* ---- messages ---- */

static int isend(void *comm, void *data, net_size bytes, int tag, void *mr, NET_PARENT void **request)
{
    begin("isend", comm, (unsigned long long)bytes, (uintptr_t)mr);
    const int rc = other->isend(comm, data, bytes, tag, mr, PARENT request);
    return made("isend", rc, *request);
}

static int irecv(void *comm, int n, void **data, net_size *bytes, int *tags, void **mr, NET_PARENTS void **request)
{
    begin("irecv", comm, n > 0 ? (unsigned long long)bytes[0] : 0, n > 0 ? (uintptr_t)mr[0] : 0);
    const int rc = other->irecv(comm, n, data, bytes, tags, mr, PARENTS request);
    return made("irecv", rc, *request);
}

static int iflush(void *comm, int n, void **data, int *bytes, void **mr, void **request)
{
    begin("iflush", comm, 0, 0);
    const int rc = other->iflush(comm, n, data, bytes, mr, request);
    return made("iflush", rc, *request);
}

static int test(void *request, int *done, int *sizes)
{
    begin("test", request, 0, 0);
    const int rc = other->test(request, done, sizes);
    return end("test", rc, *done, NULL, 0);
}

static int close_send(void *comm)
{
    begin("closeSend", comm, 0, 0);
    return end("closeSend", other->close_send(comm), 0, NULL, 0);
}

static int close_recv(void *comm)
{
    begin("closeRecv", comm, 0, 0);
    return end("closeRecv", other->close_recv(comm), 0, NULL, 0);
}

static int close_listen(void *listener)
{
    begin("closeListen", listener, 0, 0);
    return end("closeListen", other->close_listen(listener), 0, NULL, 0);
}

#if NET_VERSION >= 11
static int finalize(void *context)
{
    begin("finalize", context, 0, 0);
    return end("finalize", other->finalize(context), 0, NULL, 0);
}
#endif

extern struct net_plugin NET_SYMBOL;
__attribute__((visibility("default"))) struct net_plugin NET_SYMBOL = {
    .name = "Record",
    .init = init,
    .devices = devices,
    .properties = properties,
    .listen = listen_on,
    .connect = connect_to,
    .accept = accept_from,
    .reg_mr = reg_mr,
    .dereg_mr = dereg_mr,
    .isend = isend,
    .irecv = irecv,
    .iflush = iflush,
    .test = test,
    .close_send = close_send,
    .close_recv = close_recv,
    .close_listen = close_listen,
#if NET_VERSION >= 9
    .make_vdevice = make_vdevice,
#endif
#if NET_VERSION >= 11
    .finalize = finalize,
#endif
};

/* NCCL tests for a function that a plugin may lack before it calls any. */
__attribute__((constructor)) static void leave_out_missing_functions(void)
{
#if NET_VERSION >= 9
    if (!load() && !other->make_vdevice) NET_SYMBOL.make_vdevice = NULL;
#endif
}
