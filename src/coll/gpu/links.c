/* SPDX-License-Identifier: Apache-2.0 */
#include "coll/gpu/links.h"

#include <stdio.h>
#include <string.h>

enum { LEAST = 70, LEAST_MIXED = 90 };

/* The driver's number of a worker's device; false: this process does not see it. */
static bool number_of(const struct kl_cuda_driver *driver, const struct kl_gpu_worker *w, int *number)
{
    unsigned char uuid[KL_GPU_UUID];
    int n = 0;

    if (driver->cuDeviceGetCount(&n)) return false;
    for (int i = 0; i < n; i++)
        if (!driver->cuDeviceGet(number, i) && !driver->cuDeviceGetUuid(uuid, *number) &&
            !memcmp(uuid, w->uuid, sizeof uuid))
            return true;
    return false;
}

/* Only NVLink has atomics from GPU to GPU. */
static bool is_joined(const struct kl_cuda_driver *driver, int from, const struct kl_gpu_worker *to)
{
    int number, atomics = 0;

    return number_of(driver, to, &number) &&
           !driver->cuDeviceGetP2PAttribute(&atomics, KL_CU_P2P_ATOMICS, from, number) && atomics;
}

ncclResult_t kl_gpu_links_find(const struct kl_gpu_team *team, int worker, struct kl_gpu_facts *facts)
{
    const struct kl_cuda_context *c = team->worker[worker].context;
    int number, major, minor;

    KL_CUDA_TRY(c->driver, cuDeviceGet(&number, c->device), "device %d", c->device);
    KL_CUDA_TRY(c->driver, cuDeviceGetAttribute(&major, KL_CU_CAPABILITY_MAJOR, number), "device %d", c->device);
    KL_CUDA_TRY(c->driver, cuDeviceGetAttribute(&minor, KL_CU_CAPABILITY_MINOR, number), "device %d", c->device);
    facts->capability = 10 * major + minor;
    facts->nvlink = true;
    for (int w = 0; w < team->nworkers; w++)
        if (w != worker) facts->nvlink &= is_joined(c->driver, number, &team->worker[w]);
    return ncclSuccess;
}

bool kl_gpu_links_have_ll128(const struct kl_gpu_facts *facts, int nworkers)
{
    for (int w = 0; w < nworkers; w++) {
        if (!facts[w].nvlink || facts[w].capability < LEAST) return false;
        if (facts[w].capability != facts[0].capability &&
            (facts[w].capability < LEAST_MIXED || facts[0].capability < LEAST_MIXED))
            return false;
    }
    return true;
}
