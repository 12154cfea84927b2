/* SPDX-License-Identifier: Apache-2.0 */
#include "api/call_config.h"

#include "base/error.h"
#include "coll/schedule/func.h"
#include "comm/comm.h"
#include "device/cuda/context.h"
#include "graph/tuning.h"
#include "include/kolo.h"

#include <dlfcn.h>
#include <limits.h>
#include <string.h>

enum { HEAD_BYTES = 16 };

_Static_assert(sizeof(ncclCollConfig_t) == 72, "of NCCL 2.32.3");

/* ---- integers ---- */

/* Undefined stays as it was. */
static ncclResult_t read_int(int given, int min, int max, const char *name, const char *function, int *to)
{
    if (given == NCCL_CONFIG_UNDEF_INT) return ncclSuccess;
    if (given < min || given > max)
        return KL_FAIL(ncclInvalidArgument, "%s: %s is %d in the configuration of the call, and may be %d to %d",
                       function, name, given, min, max);
    *to = given;
    return ncclSuccess;
}

static ncclResult_t read_limits(const ncclCollConfig_t *c, const char *function, struct kl_limits *l)
{
    const int policies = NCCL_CTA_POLICY_EFFICIENCY | NCCL_CTA_POLICY_ZERO;
    int unused, force = 1;

    *l = (struct kl_limits){.min_channels = 1, .max_channels = INT_MAX, .nvls_channels = INT_MAX};
    KL_TRY(read_int(c->minCTAs, 1, INT_MAX, "minCTAs", function, &l->min_channels));
    KL_TRY(read_int(c->maxCTAs, 1, INT_MAX, "maxCTAs", function, &l->max_channels));
    KL_TRY(read_int(c->nvlsCTAs, 1, INT_MAX, "nvlsCTAs", function, &l->nvls_channels));
    KL_TRY(read_int(c->cgaClusterSize, 0, INT_MAX, "cgaClusterSize", function, &unused));
    KL_TRY(read_int(c->CTAPolicy, 0, policies, "CTAPolicy", function, &unused));
    KL_TRY(read_int(c->forceAlgSelection, 0, 1, "forceAlgSelection", function, &force));
    if (l->min_channels > l->max_channels)
        return KL_FAIL(ncclInvalidArgument, "%s: minCTAs %d of the configuration of the call exceeds maxCTAs %d",
                       function, l->min_channels, l->max_channels);
    l->force = force;
    l->tag = c->userProfilerTag;
    return ncclSuccess;
}

/* ---- algorithms ---- */

#define NONE (UINT32_C(1) << 31) /* no algorithm's bit */

/* Of a function that no entry concerns, all may be used. */
static uint32_t bits_of(const int on[KL_ALGOS])
{
    uint32_t bits = 0;
    int n = 0;

    for (int a = 0; a < KL_ALGOS; a++) {
        bits |= (uint32_t)on[a] << a;
        n += on[a];
    }
    return n == KL_ALGOS ? 0 : bits ? bits : NONE;
}

static ncclResult_t read_algorithms(const char *text, int func, struct kl_call_config *read)
{
    int on[KL_FUNCS][KL_ALGOS];

    if (!text || !*text) return ncclSuccess;
    for (int f = 0; f < KL_FUNCS; f++)
        for (int a = 0; a < KL_ALGOS; a++) on[f][a] = 1;
    KL_TRY(kl_tuning_parse("algSelection", text, kl_algo_name, KL_ALGOS, on));
    read->selects = true;
    if (func < KL_FUNCS) read->limits.algorithms = bits_of(on[func]);
    return ncclSuccess;
}

static ncclResult_t check_selection(const struct kl_call_config *read, int func, const char *function)
{
    if (func < KL_FUNCS || !read->selects || !read->limits.force) return ncclSuccess;
    return KL_FAIL(ncclInvalidUsage,
                   "%s: it is made of messages, and algSelection has nothing to select; with forceAlgSelection 0 it is "
                   "ignored",
                   function);
}

/* ---- all of it ---- */

ncclResult_t kl_call_config_read(const ncclCollConfig_t *config, int func, const char *function,
                                 struct kl_call_config *read)
{
    ncclCollConfig_t c = NCCL_COLLCONFIG_INITIALIZER;
    size_t size;

    memcpy(&size, config, sizeof size);
    if (size >= HEAD_BYTES) memcpy(&c, config, size < sizeof c ? size : sizeof c);
    if (size < HEAD_BYTES || c.magic != NCCL_API_MAGIC)
        return KL_FAIL(ncclInvalidArgument,
                       "%s: the configuration of the call does not begin as one does: start it with "
                       "NCCL_COLLCONFIG_INITIALIZER",
                       function);
    *read = (struct kl_call_config){.event = c.launchCompletionEvent};
    KL_TRY(read_limits(&c, function, &read->limits));
    KL_TRY(read_algorithms(c.algSelection, func, read));
    return check_selection(read, func, function);
}

/* ---- the event ---- */

/* A program's runtime may be linked into it, where nothing finds it: the driver knows the event as well. */
static ncclResult_t record_on_gpu(int device, cudaEvent_t event, cudaStream_t stream, const char *function)
{
    const struct kl_cuda_context *c;

    KL_TRY(kl_cuda_context_of(device, NULL, 0, &c));
    KL_TRY(kl_cuda_enter(c));
    const int rc = c->driver->cuEventRecord((kl_cu_event)(void *)event, stream);
    kl_cuda_leave(c);
    return rc ? KL_FAIL(ncclUnhandledCudaError, "%s: cuEventRecord of launchCompletionEvent failed with %s (%d)",
                        function, kl_cuda_error_name(c->driver, rc), rc)
              : ncclSuccess;
}

ncclResult_t kl_call_config_record(const struct kl_call_config *config, const struct ncclComm *comm,
                                   cudaStream_t stream, const char *function)
{
    int (*cuda_record)(cudaEvent_t, cudaStream_t);

    if (!config->event) return ncclSuccess;
    if (comm->devices != &kl_host_devices) return record_on_gpu(comm->device, config->event, stream, function);
    *(void **)&cuda_record = dlsym(RTLD_DEFAULT, "cudaEventRecord");
    if (!cuda_record) return koloEventRecord((koloEvent_t)(void *)config->event, stream);
    const int rc = cuda_record(config->event, stream);
    return rc ? KL_FAIL(ncclUnhandledCudaError, "%s: cudaEventRecord of launchCompletionEvent failed with %d", function,
                        rc)
              : ncclSuccess;
}
