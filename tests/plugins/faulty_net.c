/* SPDX-License-Identifier: Apache-2.0 */
/** faulty_net.c - a net plugin (v12) with one fault, which FAULTY_NET names. Without a fault it would be the example. */
#define NET_SYMBOL_OF(version) example
#include "examples/plugins/net/tcp.c" /* NOLINT(bugprone-suspicious-include): the example, with other functions */

#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>

#undef NET_SYMBOL
enum { SLOW_US = 50000, PATIENT_TESTS = 1500, LEAK = 512, ODD_BYTES = 4097, SMALL = 8192 };

struct net_plugin ncclNetPlugin_v12;
static const char *fault = "";

static int has(const char *name)
{
    return !strcmp(fault, name);
}

static int contexts, ended, forked;

static void note_fork(void)
{
    forked = 1;
}

/* ---- devices ---- */

static int faulty_init(NET_INIT_ARGS)
{
    if (has("init")) return NET_SYSTEM;
    if (has("environment")) setenv("NCCL_PROTO", "LL", 1);
    if (has("remains") && open("/dev/null", O_RDONLY) < 0) return NET_SYSTEM;
    if (has("handler")) signal(SIGUSR2, SIG_IGN);
    contexts++;
    if (has("fork")) pthread_atfork(NULL, note_fork, NULL);
    return init(context, comm, config, log, profile);
}

static int faulty_devices(int *n)
{
    const int rc = devices(n);

    if (has("devices")) *n = 0;
    return rc;
}

static int faulty_properties(int device, struct net_properties *p)
{
    static int reads;

    properties(device, p);
    if (has("device")) p->name = NULL;
    if (has("limit")) p->max_p2p_bytes = 0;
    if (has("memory")) p->memory = 2;
    if (has("speed")) p->speed_mbps = 0;
    if (has("unstable")) p->speed_mbps += reads++;
    if (has("overrun")) ((char *)p)[sizeof *p] = 1;
    return NET_OK;
}

/* ---- connections ---- */

static int connects, accepted; /* since the last listen */
static int finalized;
static _Thread_local int connected; /* by this thread */

static int faulty_listen(void *context, int device, void *handle, void **listener)
{
    if (has("handle")) ((char *)handle)[128] = 1;
    connects = accepted = 0;
    return listen_on(context, device, handle, listener);
}

static int faulty_connect(void *context, int device, void *handle, void **comm, void **offload)
{
    static int polls, slow;

    if (has("cycles") && ended) return NET_INTERNAL; /* the first end ended all */
    if (has("connecting") && !connects++ && slow++ % 16 == 0) usleep(SLOW_US);
    if (has("hesitant")) usleep(2000);
    if (has("stuck"))
        for (;;) usleep(SLOW_US);
    if (has("contexts") && contexts >= 4) return NET_INTERNAL;
    if (has("unused") && finalized) return NET_INTERNAL;
    connected = 1;
    if (has("polls") && !accepted) {
        *comm = NULL;
        return ++polls > 100000 ? NET_INTERNAL : NET_OK;
    }
    if (has("half_open")) {
        const int rc = connect_to(context, device, handle, comm, offload);
        struct pollfd refused = {.fd = rc ? -1 : ((struct comm *)*comm)->fd};
        if (!rc && poll(&refused, 1, 0) && refused.revents & POLLERR) {
            (void)close_comm(*comm);
            *comm = NULL;
        }
        return NET_OK; /* "not yet", for ever */
    }
    return connect_to(context, device, handle, comm, offload);
}

static int faulty_accept(void *listener, void **comm, void **offload)
{
    accepted = 1;
    return accept_from(listener, comm, offload);
}

static int faulty_finalize(void *context)
{
    if (!connected) finalized = 1; /* it was not used */
    contexts--;
    ended = 1;
    return finalize(context);
}

static int registering;

static int faulty_reg_mr(void *comm, void *data, size_t bytes, int memory, void **mr)
{
    if (has("registration") && bytes == ODD_BYTES && (uintptr_t)data % 2) return NET_INTERNAL;
    if (has("registering") && bytes == 1 << 16) {
        __atomic_store_n(&registering, 1, __ATOMIC_SEQ_CST);
        usleep(200);
        __atomic_store_n(&registering, 0, __ATOMIC_SEQ_CST);
    }
    return reg_mr(comm, data, bytes, memory, mr);
}

static int faulty_close(void *comm)
{
    const struct comm *c = comm;

    if (has("closing") && !c->sends && !c->error && c->oldest != c->newest) abort();
    return close_comm(comm);
}

/* ---- messages ---- */

static int hide(int rc)
{
    return has("errors") && rc != NET_USAGE ? NET_OK : rc;
}

static void *volatile leaked; /* or the compiler would leave the allocation out */

static int faulty_isend(void *comm, void *data, size_t bytes, int tag, void *mr, void *parent, void **request)
{
    if (has("leaks")) memset(leaked = malloc(LEAK), 1, LEAK);
    if (has("registering") && __atomic_load_n(&registering, __ATOMIC_SEQ_CST)) return NET_INTERNAL;
    if (has("turns") && !connected) return NET_INTERNAL;
    if (has("fork") && forked) return NET_INTERNAL;
    if (has("large") && bytes > INT32_MAX) bytes = 1;
    const int rc = isend(comm, data, bytes, tag, mr, parent, request);
    if (has("stopped") && !*request && bytes > SMALL) usleep(SLOW_US); /* as if it waited for room */
    return hide(rc);
}

/* The data of two receives that wait are exchanged. */
static int faulty_irecv(void *comm, int n, void **data, size_t *bytes, int *tags, void **mr, void **parents,
                        void **request)
{
    struct comm *c = comm;
    if (has("groups") && n > 1) tags[0] ^= tags[1], tags[1] ^= tags[0], tags[0] ^= tags[1];
    const int rc = irecv(comm, n, data, bytes, tags, mr, parents, request);

    if (has("order") && *request && c->newest - c->oldest == 2) {
        struct request *one = &c->request[c->oldest % REQUESTS], *other = *request;
        char *first = one->part[0].data;
        one->part[0].data = other->part[0].data;
        other->part[0].data = first;
    }
    return rc;
}

/* Through memory of all threads; of one size only, as it takes time. */
static void share(char *data, size_t bytes)
{
    static char shared[SMALL];

    if (bytes != SMALL) return;
    memcpy(shared, data, bytes);
    usleep(1);
    memcpy(data, shared, bytes);
}

static void spoil(struct request *r)
{
    const struct part *p = &r->part[0];

    if (has("buffers") && p->size < p->posted) p->data[p->size] = 1;
    if (has("threads")) share(p->data, p->size);
    if (has("contents") && p->size) p->data[0] ^= 1;
}

static int faulty_test(void *request, int *done, int *sizes)
{
    static int waits;
    struct request *r = request, before = *r;
    int unwritten[RECVS] = {0};

    if (has("silent")) {
        *done = 0;
        return NET_OK;
    }
    const int rc = test(request, done, has("sizes") && r->n == 1 ? unwritten : sizes);

    before.part[0].size = r->part[0].size;
    if (*done && !before.comm->sends) spoil(&before);
    waits = *done ? 0 : waits + 1;
    if (has("calls") && waits == PATIENT_TESTS) {
        usleep(SLOW_US);
        waits = 0;
    }
    return has("receives") && !before.comm->sends ? NET_OK : hide(rc);
}

__attribute__((constructor)) static void choose_fault(void)
{
    fault = getenv("FAULTY_NET") ? getenv("FAULTY_NET") : "";
    ncclNetPlugin_v12 = example;
    ncclNetPlugin_v12.name = !has("name") ? "Faulty" : (const char *)8;
    ncclNetPlugin_v12.init = faulty_init;
    ncclNetPlugin_v12.devices = faulty_devices;
    ncclNetPlugin_v12.properties = faulty_properties;
    ncclNetPlugin_v12.listen = faulty_listen;
    ncclNetPlugin_v12.connect = faulty_connect;
    ncclNetPlugin_v12.accept = faulty_accept;
    ncclNetPlugin_v12.finalize = faulty_finalize;
    ncclNetPlugin_v12.reg_mr = faulty_reg_mr;
    ncclNetPlugin_v12.isend = has("isend") ? NULL : faulty_isend;
    ncclNetPlugin_v12.irecv = faulty_irecv;
    ncclNetPlugin_v12.test = faulty_test;
    ncclNetPlugin_v12.close_send = ncclNetPlugin_v12.close_recv = faulty_close;
    if (has("merge")) ncclNetPlugin_v12.make_vdevice = NULL;
    if (has("data")) memcpy(&ncclNetPlugin_v12.iflush, &(const void *){&ncclNetPlugin_v12}, sizeof(void *));
}
