/* SPDX-License-Identifier: Apache-2.0 */
#include "os/profiler_abi.h"

#include "base/log.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* ---- writing at offsets ---- */

#define PUT(type, at, value) put(d, (at), &(type){(type)(value)}, sizeof(type))

static void put(unsigned char *descr, int at, const void *value, size_t bytes)
{
    if (at >= 0) memcpy(descr + at, value, bytes);
}

/* The numbers of functions, types, algorithms and protocols in v1: this text is found in a list. */
static uint8_t number_in(const char *const *list, const char *text)
{
    uint8_t i = 0;

    while (list[i] && text && strcmp(list[i], text)) i++;
    return i;
}

static uint8_t func_number(const char *func)
{
    static const char *const funcs[] = {"Broadcast", "Reduce", "AllGather", "ReduceScatter", "AllReduce", "SendRecv",
                                        "Send",      "Recv",   NULL};
    return number_in(funcs, func);
}

static uint8_t type_number(const char *type)
{
    static const char *const types[] = {"ncclInt8",    "ncclUint8",    "ncclInt32",   "ncclUint32",
                                        "ncclInt64",   "ncclUint64",   "ncclFloat16", "ncclFloat32",
                                        "ncclFloat64", "ncclBfloat16", NULL};
    return number_in(types, type);
}

static uint8_t algo_number(const char *algo)
{
    static const char *const algos[] = {"TREE", "RING", "COLLNET_DIRECT", "COLLNET_CHAIN", "NVLS", "NVLS_TREE",
                                        "PAT",  NULL};
    return number_in(algos, algo);
}

static uint8_t proto_number(const char *proto)
{
    static const char *const protos[] = {"LL", "LL128", "SIMPLE", NULL};
    return number_in(protos, proto);
}

/* ---- collectives and messages ---- */

static void describe_coll_v1(const struct kl_profile_descr *e, unsigned char *d)
{
    PUT(uint8_t, 48, func_number(e->func));
    PUT(uint8_t, 84, type_number(e->datatype));
    PUT(uint8_t, 104, e->channels);
    PUT(uint8_t, 106, algo_number(e->algo));
    PUT(uint8_t, 107, proto_number(e->proto));
}

static void describe_coll(int v, const struct kl_profile_descr *e, unsigned char *d)
{
    const int base = v <= 3 ? 40 : 24; /* of the sequence number, on which the others follow */

    PUT(uint64_t, base, e->seq);
    PUT(const void *, base + 16, e->send);
    PUT(const void *, base + 24, e->recv);
    PUT(uint64_t, base + 32, e->count);
    PUT(int, base + 40, e->root);
    if (v == 1) {
        describe_coll_v1(e, d);
        return;
    }
    PUT(const char *, base + 8, e->func);
    PUT(const char *, base + 48, e->datatype);
    PUT(uint8_t, v == 2 ? 104 : v == 3 ? 96 : 80, e->channels);
    PUT(const char *, v == 2 ? 112 : v == 3 ? 104 : 88, e->algo);
    PUT(const char *, v == 2 ? 120 : v == 3 ? 112 : 96, e->proto);
    if (v >= 5) PUT(void *, 104, e->parent_group);
    if (v >= 7) PUT(uint64_t, 128, e->tag);
}

static void describe_p2p(int v, const struct kl_profile_descr *e, unsigned char *d)
{
    const int base = v <= 3 ? 40 : 24; /* of the function */

    if (v == 1)
        PUT(uint8_t, 40, func_number(e->func));
    else
        PUT(const char *, base, e->func);
    PUT(const void *, base + 8, e->send);
    if (v == 1)
        PUT(uint8_t, 56, type_number(e->datatype));
    else
        PUT(const char *, base + 16, e->datatype);
    PUT(uint64_t, base + 24, e->count);
    PUT(int, base + 32, e->peer);
    if (v >= 4) PUT(uint8_t, 60, e->channels);
    if (v >= 5) PUT(void *, 64, e->parent_group);
    if (v >= 7) PUT(uint64_t, 72, e->tag);
}

static void describe_api(int v, const struct kl_profile_descr *e, unsigned char *d)
{
    const bool coll = e->type == KL_PROFILE_COLL_API;

    PUT(const char *, 24, e->func);
    PUT(uint64_t, 32, e->count);
    PUT(const char *, 40, e->datatype);
    if (coll) PUT(int, 48, e->root);
    PUT(void *, coll ? 56 : 48, e->stream);
    PUT(bool, coll ? 64 : 56, e->captured);
    if (v >= 7) PUT(uint64_t, coll ? 72 : 64, e->tag);
}

/* ---- the others ---- */

static void describe_proxy_op(const struct kl_profile_descr *e, unsigned char *d)
{
    PUT(pid_t, 24, getpid());
    PUT(uint8_t, 28, e->channel);
    PUT(int, 32, e->peer);
    PUT(int, 36, e->steps);
    PUT(int, 40, e->chunk_bytes);
    PUT(int, 44, e->is_send);
}

static void describe_others(int v, const struct kl_profile_descr *e, unsigned char *d)
{
    switch (e->type) {
    case KL_PROFILE_PROXY_OP:
        describe_proxy_op(e, d);
        break;
    case KL_PROFILE_PROXY_STEP:
        PUT(int, 24, e->step);
        break;
    case KL_PROFILE_KERNEL_CH:
        PUT(uint8_t, 24, e->channel);
        if (v >= 4) PUT(uint64_t, 32, e->timer);
        break;
    case KL_PROFILE_NET_PLUGIN:
        PUT(int64_t, 24, e->plugin);
        PUT(void *, 32, e->data);
        break;
    case KL_PROFILE_GROUP_API:
        PUT(bool, 24, e->captured);
        PUT(int, 28, e->depth);
        break;
    case KL_PROFILE_KERNEL_LAUNCH:
        PUT(void *, 24, e->stream);
        break;
    default:
        break;
    }
}

uint64_t kl_profiler_known(int version)
{
    if (version <= 2) return 0x3f; /* the first events of 2.23: up to proxy control */
    if (version <= 4) return 0xff;
    return 0xfff; /* later ones are events of copy engines and phases, which Kolo has not */
}

void kl_profiler_describe(int v, const struct kl_profile_descr *e, const struct kl_profiler_place *place,
                          unsigned char d[KL_PROFILER_DESCR])
{
    const bool coll = e->type == KL_PROFILE_COLL, p2p = e->type == KL_PROFILE_P2P;
    void *parent = v <= 4 && (coll || p2p) ? e->parent_group : e->parent;

    memset(d, 0, KL_PROFILER_DESCR);
    if (v <= 4)
        PUT(uint8_t, 0, e->type);
    else
        PUT(uint64_t, 0, e->type);
    PUT(void *, 8, parent);
    PUT(int, 16, place->rank);
    if (v <= 3 && (coll || p2p)) {
        PUT(const char *, 24, place->name ? place->name : "");
        PUT(uint64_t, 32, place->comm);
    }
    if (coll)
        describe_coll(v, e, d);
    else if (p2p)
        describe_p2p(v, e, d);
    else if (e->type == KL_PROFILE_COLL_API || e->type == KL_PROFILE_P2P_API)
        describe_api(v, e, d);
    else
        describe_others(v, e, d);
}

/* ---- calls ---- */

__attribute__((format(printf, 5, 6))) static void log_line(int level, unsigned long subsys, const char *file, int line,
                                                           const char *fmt, ...)
{
    char text[1000];
    va_list args;

    (void)subsys, (void)file, (void)line;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    if (level == 2)
        KL_WARN("PROFILER/Plugin: %s", text);
    else
        KL_INFO(KL_PROFILE, "PROFILER/Plugin: %s", text);
}

typedef void logger(int, unsigned long, const char *, int, const char *, ...);

int kl_profiler_call_init(int version, const struct kl_profiler_table *t, const struct kl_profiler_place *p,
                          void **context, int *mask)
{
    typedef int init_v1(void **, int *);
    typedef int init_v4(void **, int *, const char *, uint64_t, int, int, int, logger *);
    typedef int init_v5(void **, uint64_t, int *, const char *, int, int, int, logger *);

    if (version <= 3) return ((init_v1 *)t->init)(context, mask);
    if (version == 4)
        return ((init_v4 *)t->init)(context, mask, p->name, p->comm, p->nnodes, p->nranks, p->rank, log_line);
    return ((init_v5 *)t->init)(context, p->comm, mask, p->name, p->nnodes, p->nranks, p->rank, log_line);
}

/* Up to v3: bytes and steps of an operation, or appended operations; then a union. */
void kl_profiler_state_args(int version, enum kl_profile_state state, uint64_t value, unsigned char args[16])
{
    const int appended = (int)value;

    (void)version;
    memset(args, 0, 16);
    if (state >= 13 && state <= 18)
        memcpy(args, &appended, sizeof appended);
    else
        memcpy(args, &value, sizeof value);
}
