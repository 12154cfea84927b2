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
 *     call THREAD NANOSECONDS NAME ARGUMENT...
 *     back THREAD NANOSECONDS NAME RESULT VALUE      VALUE: not NULL, or done
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

static void begin(const char *name, const void *object, unsigned long long bytes)
{
    pthread_mutex_lock(&lock);
    if (to) fprintf(to, "call %ld %llu %s %p %llu\n", (long)syscall(SYS_gettid), now(), name, object, bytes);
    pthread_mutex_unlock(&lock);
}

static int end(const char *name, int rc, int value)
{
    pthread_mutex_lock(&lock);
    if (to) fprintf(to, "back %ld %llu %s %d %d\n", (long)syscall(SYS_gettid), now(), name, rc, value);
    pthread_mutex_unlock(&lock);
    return rc;
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

static int init(NET_INIT_ARGS)
{
    if (load()) return NET_SYSTEM;
    begin("init", NULL, 0);
#if NET_VERSION >= 11
    return end("init", other->init(context, comm, config, log, profile), 0);
#elif NET_VERSION == 10
    return end("init", other->init(log, profile), 0);
#else
    return end("init", other->init(log), 0);
#endif
}

static int devices(int *n)
{
    begin("devices", NULL, 0);
    const int rc = other->devices(n);
    return end("devices", rc, rc ? 0 : *n);
}

static int properties(int device, struct net_properties *p)
{
    begin("getProperties", NULL, (unsigned)device);
    return end("getProperties", other->properties(device, p), 0);
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
    begin("listen", NULL, 0);
    return end("listen", other->listen(CONTEXT device, handle, listener), *listener != NULL);
}

static int connect_to(NET_CONNECT_ARGS void *handle, void **comm NET_OFFLOAD)
{
    begin("connect", NULL, 0);
    return end("connect", other->connect(CONNECT handle, comm OFFLOAD), *comm != NULL);
}

static int accept_from(void *listener, void **comm NET_OFFLOAD)
{
    begin("accept", listener, 0);
    return end("accept", other->accept(listener, comm OFFLOAD), *comm != NULL);
}

static int reg_mr(void *comm, void *data, net_mr_size bytes, int memory, void **mr)
{
    begin("regMr", comm, (unsigned long long)bytes);
    return end("regMr", other->reg_mr(comm, data, bytes, memory, mr), *mr != NULL);
}

static int dereg_mr(void *comm, void *mr)
{
    begin("deregMr", comm, 0);
    return end("deregMr", other->dereg_mr(comm, mr), 0);
}

/* ---- messages ---- */

static int isend(void *comm, void *data, net_size bytes, int tag, void *mr, NET_PARENT void **request)
{
    begin("isend", comm, (unsigned long long)bytes);
    return end("isend", other->isend(comm, data, bytes, tag, mr, PARENT request), *request != NULL);
}

static int irecv(void *comm, int n, void **data, net_size *bytes, int *tags, void **mr, NET_PARENTS void **request)
{
    begin("irecv", comm, n > 0 ? (unsigned long long)bytes[0] : 0);
    return end("irecv", other->irecv(comm, n, data, bytes, tags, mr, PARENTS request), *request != NULL);
}

static int iflush(void *comm, int n, void **data, int *bytes, void **mr, void **request)
{
    begin("iflush", comm, 0);
    return end("iflush", other->iflush(comm, n, data, bytes, mr, request), *request != NULL);
}

static int test(void *request, int *done, int *sizes)
{
    begin("test", request, 0);
    const int rc = other->test(request, done, sizes);
    return end("test", rc, *done);
}

static int close_send(void *comm)
{
    begin("closeSend", comm, 0);
    return end("closeSend", other->close_send(comm), 0);
}

static int close_recv(void *comm)
{
    begin("closeRecv", comm, 0);
    return end("closeRecv", other->close_recv(comm), 0);
}

static int close_listen(void *listener)
{
    begin("closeListen", listener, 0);
    return end("closeListen", other->close_listen(listener), 0);
}

#if NET_VERSION >= 11
static int finalize(void *context)
{
    begin("finalize", context, 0);
    return end("finalize", other->finalize(context), 0);
}
#endif

extern const struct net_plugin NET_SYMBOL;
__attribute__((visibility("default"))) const struct net_plugin NET_SYMBOL = {
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
#if NET_VERSION >= 11
    .finalize = finalize,
#endif
};
