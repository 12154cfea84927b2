/* SPDX-License-Identifier: Apache-2.0 */
#include "compat/cuda/include/curand.h"
#include "compat/cuda/libraries/curand_fill.h"

#include <stdbool.h>
#include <stdlib.h>

#define EXPORT __attribute__((visibility("default")))

struct curandGenerator_st {
    struct kl_curand_state state;
    unsigned long long seed, offset;
    cudaStream_t stream;
    bool seeded; /* the stream has the work that brings `state` to seed and offset */
    bool waits;  /* for the memory to be filled */
};

static curandStatus_t create(curandGenerator_t *generator, curandRngType_t type, bool waits)
{
    curandGenerator_t g;

    if (!generator) return CURAND_STATUS_OUT_OF_RANGE;
    if (type == CURAND_RNG_PSEUDO_DEFAULT) type = CURAND_RNG_PSEUDO_XORWOW;
    if (type != CURAND_RNG_PSEUDO_XORWOW && type != CURAND_RNG_PSEUDO_MRG32K3A &&
        type != CURAND_RNG_PSEUDO_PHILOX4_32_10)
        return CURAND_STATUS_TYPE_ERROR;
    g = calloc(1, sizeof *g);
    if (!g) return CURAND_STATUS_ALLOCATION_FAILED;
    g->state.type = type;
    g->waits = waits;
    *generator = g;
    return CURAND_STATUS_SUCCESS;
}

EXPORT curandStatus_t curandCreateGenerator(curandGenerator_t *generator, curandRngType_t rng_type)
{
    int devices;

    if (cudaGetDeviceCount(&devices) != cudaSuccess) return CURAND_STATUS_INITIALIZATION_FAILED;
    return create(generator, rng_type, false);
}

EXPORT curandStatus_t curandCreateGeneratorHost(curandGenerator_t *generator, curandRngType_t rng_type)
{
    return create(generator, rng_type, true);
}

EXPORT curandStatus_t curandDestroyGenerator(curandGenerator_t generator)
{
    if (!generator) return CURAND_STATUS_NOT_INITIALIZED;
    if (generator->seeded) (void)cudaStreamSynchronize(generator->stream); /* its kernels use the state */
    free(generator);
    return CURAND_STATUS_SUCCESS;
}

EXPORT curandStatus_t curandGetVersion(int *version)
{
    if (!version) return CURAND_STATUS_OUT_OF_RANGE;
    *version = CURAND_VERSION;
    return CURAND_STATUS_SUCCESS;
}

EXPORT curandStatus_t curandGetProperty(libraryPropertyType type, int *value)
{
    static const int properties[] = {CURAND_VER_MAJOR, CURAND_VER_MINOR, CURAND_VER_PATCH};

    if (!value || (unsigned)type > PATCH_LEVEL) return CURAND_STATUS_OUT_OF_RANGE;
    *value = properties[type];
    return CURAND_STATUS_SUCCESS;
}

EXPORT curandStatus_t curandSetStream(curandGenerator_t generator, cudaStream_t stream)
{
    if (!generator) return CURAND_STATUS_NOT_INITIALIZED;
    generator->stream = stream;
    return CURAND_STATUS_SUCCESS;
}

EXPORT curandStatus_t curandSetPseudoRandomGeneratorSeed(curandGenerator_t generator, unsigned long long seed)
{
    if (!generator) return CURAND_STATUS_NOT_INITIALIZED;
    generator->seed = seed;
    generator->seeded = false;
    return CURAND_STATUS_SUCCESS;
}

EXPORT curandStatus_t curandSetGeneratorOffset(curandGenerator_t generator, unsigned long long offset)
{
    if (!generator) return CURAND_STATUS_NOT_INITIALIZED;
    generator->offset = offset;
    generator->seeded = false;
    return CURAND_STATUS_SUCCESS;
}

EXPORT curandStatus_t curandSetGeneratorOrdering(curandGenerator_t generator, curandOrdering_t order)
{
    if (!generator) return CURAND_STATUS_NOT_INITIALIZED;
    if (order == CURAND_ORDERING_QUASI_DEFAULT) return CURAND_STATUS_TYPE_ERROR;
    return order >= CURAND_ORDERING_PSEUDO_BEST && order <= CURAND_ORDERING_PSEUDO_DYNAMIC ? CURAND_STATUS_SUCCESS
                                                                                           : CURAND_STATUS_OUT_OF_RANGE;
}

EXPORT curandStatus_t curandGenerateSeeds(curandGenerator_t generator)
{
    cudaError_t rc;

    if (!generator) return CURAND_STATUS_NOT_INITIALIZED;
    if (generator->seeded) return CURAND_STATUS_SUCCESS;
    rc = kl_curand_seed(&generator->state, generator->seed, generator->offset, generator->stream);
    generator->seeded = rc == cudaSuccess;
    return rc == cudaSuccess ? CURAND_STATUS_SUCCESS : CURAND_STATUS_LAUNCH_FAILURE;
}

static curandStatus_t generate(curandGenerator_t g, enum kl_curand_kind kind, void *output, size_t count, double a,
                               double b)
{
    curandStatus_t status = curandGenerateSeeds(g);

    if (status != CURAND_STATUS_SUCCESS) return status;
    if (kl_curand_pairs(kind) && count % 2) return CURAND_STATUS_LENGTH_NOT_MULTIPLE;
    if (count == 0) return CURAND_STATUS_SUCCESS;
    if (!output) return CURAND_STATUS_OUT_OF_RANGE;
    if (kl_curand_fill(&g->state, kind, output, count, a, b, g->stream)) return CURAND_STATUS_LAUNCH_FAILURE;
    if (g->waits && cudaStreamSynchronize(g->stream)) return CURAND_STATUS_LAUNCH_FAILURE;
    return CURAND_STATUS_SUCCESS;
}

EXPORT curandStatus_t curandGenerate(curandGenerator_t generator, unsigned int *output, size_t num)
{
    return generate(generator, KL_CURAND_BITS, output, num, 0, 0);
}

EXPORT curandStatus_t curandGenerateUniform(curandGenerator_t generator, float *output, size_t num)
{
    return generate(generator, KL_CURAND_UNIFORM, output, num, 0, 0);
}

EXPORT curandStatus_t curandGenerateUniformDouble(curandGenerator_t generator, double *output, size_t num)
{
    return generate(generator, KL_CURAND_UNIFORM_DOUBLE, output, num, 0, 0);
}

EXPORT curandStatus_t curandGenerateNormal(curandGenerator_t generator, float *output, size_t n, float mean,
                                           float stddev)
{
    return generate(generator, KL_CURAND_NORMAL, output, n, mean, stddev);
}

EXPORT curandStatus_t curandGenerateNormalDouble(curandGenerator_t generator, double *output, size_t n, double mean,
                                                 double stddev)
{
    return generate(generator, KL_CURAND_NORMAL_DOUBLE, output, n, mean, stddev);
}

EXPORT curandStatus_t curandGenerateLogNormal(curandGenerator_t generator, float *output, size_t n, float mean,
                                              float stddev)
{
    return generate(generator, KL_CURAND_LOG_NORMAL, output, n, mean, stddev);
}

EXPORT curandStatus_t curandGenerateLogNormalDouble(curandGenerator_t generator, double *output, size_t n, double mean,
                                                    double stddev)
{
    return generate(generator, KL_CURAND_LOG_NORMAL_DOUBLE, output, n, mean, stddev);
}

EXPORT curandStatus_t curandGeneratePoisson(curandGenerator_t generator, unsigned int *output, size_t n, double lambda)
{
    if (!(lambda > 0 && lambda <= 400000))
        return generator ? CURAND_STATUS_OUT_OF_RANGE : CURAND_STATUS_NOT_INITIALIZED;
    return generate(generator, KL_CURAND_POISSON, output, n, lambda, 0);
}
