/* SPDX-License-Identifier: Apache-2.0 */
/**
 * tuner.c - a tuner plugin: all-reduce of up to EXAMPLE_TUNER_BYTES (all sizes) goes round a ring with protocol Simple, on one channel.
 *
 *     cc -shared -fPIC -o libnccl-tuner-ring.so tuner.c            (-DTUNER_VERSION=2 ... for an older ABI; 6 by default)
 *     NCCL_TUNER_PLUGIN=./libnccl-tuner-ring.so ...
 *
 * EXAMPLE_TUNER_FAILS=1: it fails instead. Functions return 0, or another value of ncclResult_t.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#ifndef TUNER_VERSION
#define TUNER_VERSION 6
#endif

enum { ALL_REDUCE = 4, RING = 1, SIMPLE = 2, SYSTEM_ERROR = 2 };

typedef void tuner_logger(int level, unsigned long subsys, const char *file, int line, const char *fmt, ...);

static int wants(int func, size_t bytes)
{
    const char *most = getenv("EXAMPLE_TUNER_BYTES");

    return func == ALL_REDUCE && (!most || bytes <= strtoull(most, NULL, 0));
}

static int fails(void)
{
    return getenv("EXAMPLE_TUNER_FAILS") ? SYSTEM_ERROR : 0;
}

static int start(size_t nranks, size_t nnodes, void **context)
{
    *context = malloc(1);
    return *context && nranks > 1 && nnodes > 0 ? 0 : SYSTEM_ERROR;
}

#if TUNER_VERSION >= 5
static int init(void **context, uint64_t comm, size_t nranks, size_t nnodes, tuner_logger *log, void *domain,
                double *constants)
{
    (void)comm, (void)log, (void)domain;
    return constants[RING * 3 + SIMPLE] > 0 ? start(nranks, nnodes, context) : SYSTEM_ERROR; /* latency of a ring */
}
#else
static int init(size_t nranks, size_t nnodes, tuner_logger *log, void **context)
{
    (void)log;
    return start(nranks, nnodes, context);
}
#endif

#if TUNER_VERSION == 2
static int get(void *context, int func, size_t bytes, int collnet, int nvls, int npipe, int *algo, int *proto,
               int *nchannels)
{
    (void)context, (void)collnet, (void)nvls, (void)npipe;
    if (!wants(func, bytes)) return fails();
    *algo = RING;
    *proto = SIMPLE;
    *nchannels = 1;
    return fails();
}
#else
#if TUNER_VERSION == 3
#define REGISTERED
#else
#define REGISTERED int registered,
#endif
static int get(void *context, int func, size_t bytes, int npipe, float **table, int nalgo, int nproto,
               REGISTERED int *nchannels)
{
    float(*cost)[3] = (float(*)[3])table; /* rows of times; the type is ABI-compatible only */

#if TUNER_VERSION > 3
    (void)registered;
#endif
    (void)context, (void)npipe;
    if (!wants(func, bytes) || nalgo <= RING || nproto != 3) return fails();
    if (cost[RING][SIMPLE] >= 0) cost[RING][SIMPLE] = 0;
    *nchannels = 1;
    return fails();
}
#endif

static int finalize(void *context)
{
    free(context);
    return 0;
}

struct tuner {
    const char *name;
    void (*init)(void), (*get)(void); /* of the types above */
    int (*finalize)(void *);
#if TUNER_VERSION >= 6
    int (*chunk)(void *, int, size_t, int, int, int, size_t *);
#endif
};

#define SYMBOL_OF(version) ncclTunerPlugin_v##version
#define SYMBOL_(version)   SYMBOL_OF(version)
#define SYMBOL             SYMBOL_(TUNER_VERSION)
__attribute__((visibility("default"))) const struct tuner SYMBOL;
const struct tuner SYMBOL = {
    .name = "ExampleRing", .init = (void (*)(void))init, .get = (void (*)(void))get, .finalize = finalize};
