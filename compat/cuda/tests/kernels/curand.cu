/* SPDX-License-Identifier: Apache-2.0 */
/* Generators in kernels and in libcurand: bits that cuRAND gives, skips against steps, distributions, streams, graphs, errors. */
#include "check.h"

#include <cuda_runtime.h>
#include <curand.h>
#include <curand_kernel.h>

#include <cmath>
#include <vector>

template <class State>
__global__ void draw(unsigned long long seed, unsigned long long subsequence, unsigned long long offset, unsigned *out,
                     int n)
{
    State state;

    curand_init(seed, subsequence, offset, &state);
    for (int i = 0; i < n; i++) out[i] = curand(&state);
}

template <class State> __global__ void skip(unsigned long long seed, unsigned long long n, unsigned *out)
{
    State state;

    curand_init(seed, 5, 3, &state);
    skipahead(n, &state);
    out[0] = curand(&state);
}

template <class State> __global__ void moments(unsigned long long seed, int each, double *sums)
{
    State state;
    double sum[5] = {};

    curand_init(seed, blockIdx.x * blockDim.x + threadIdx.x, 0, &state);
    for (int i = 0; i < each; i++) {
        double u = curand_uniform(&state), v = curand_uniform_double(&state), n = curand_normal(&state),
               w = curand_normal_double(&state);

        if (!(u > 0 && u <= 1 && v > 0 && v <= 1)) sum[0] = 1e30;
        sum[0] += u;
        sum[1] += v;
        sum[2] += n;
        sum[3] += n * n;
        sum[4] += w * w;
    }
    for (int i = 0; i < 5; i++) atomicAdd(&sums[i], sum[i]);
}

/* Computed with NVIDIA's own header of cuRAND 10.4: seed 42, subsequence 1; and a far place of each. */
static const struct {
    unsigned long long seed, subsequence, offset;
    unsigned xorwow, philox, mrg;
} known[] = {
    {0, 0, 0, 3179217846u, 1713891541u, 545508615u},
    {1234, 0, 0, 624778773u, 546353992u, 3379073520u},
    {42, 1, 0, 687819970u, 43202409u, 473693671u},
    {99, 12345, 7, 2082942433u, 4234255846u, 2762947639u},
    {81985529216486895, 1099511627781, 1125899906842627, 3457367081u, 2776808350u, 2245188814u},
    {7, 0, 1000000007, 292523037u, 3068009759u, 1852345729u},
};

template <class State>
static unsigned first(unsigned long long seed, unsigned long long subsequence, unsigned long long offset)
{
    unsigned *out = managed<unsigned>(1), value;

    draw<State><<<1, 1>>>(seed, subsequence, offset, out, 1);
    DONE();
    value = out[0];
    CUDA(cudaFree(out));
    return value;
}

static void bits()
{
    for (const auto &k : known) {
        EXPECT(first<curandState>(k.seed, k.subsequence, k.offset) == k.xorwow);
        EXPECT(first<curandStatePhilox4_32_10_t>(k.seed, k.subsequence, k.offset) == k.philox);
        EXPECT(first<curandStateMRG32k3a_t>(k.seed, k.subsequence, k.offset) == k.mrg);
    }
}

/* Number n by steps, by the offset, and by a skip. */
template <class State> static void skips()
{
    enum { N = 1500 };
    unsigned *steps = managed<unsigned>(N), *at = managed<unsigned>(1);

    draw<State><<<1, 1>>>(9, 5, 3, steps, N);
    DONE();
    for (int n : {0, 1, 2, 3, 4, 7, 255, 256, 1023, 1499}) {
        EXPECT(first<State>(9, 5, 3 + (unsigned)n) == steps[n]);
        skip<State><<<1, 1>>>(9, (unsigned)n, at);
        DONE();
        EXPECT(at[0] == steps[n]);
    }
    CUDA(cudaFree(steps));
    CUDA(cudaFree(at));
}

static bool near(double value, double expected, double tolerance)
{
    return std::fabs(value - expected) < tolerance;
}

template <class State> static void distributions()
{
    enum { THREADS = 256, EACH = 200 };
    const double n = THREADS * EACH;
    double *sums = managed<double>(5);

    moments<State><<<4, THREADS / 4>>>(1234, EACH, sums);
    DONE();
    EXPECT(near(sums[0] / n, 0.5, 0.01) && near(sums[1] / n, 0.5, 0.01));
    EXPECT(near(sums[2] / n, 0, 0.03) && near(sums[3] / n, 1, 0.04) && near(sums[4] / n, 1, 0.04));
    CUDA(cudaFree(sums));
}

#define RAND(call) EXPECT((call) == CURAND_STATUS_SUCCESS)

/* The host's functions give the kernel's numbers, in the legacy ordering, whatever the sizes of the calls. */
template <class State> static void ordering(curandRngType_t type, bool by_lanes)
{
    enum { N = 4096 * 2 + 100 };
    unsigned *whole = managed<unsigned>(N), *parts = managed<unsigned>(N);
    curandGenerator_t generator;
    cudaStream_t stream;

    CUDA(cudaStreamCreate(&stream));
    RAND(curandCreateGenerator(&generator, type));
    RAND(curandSetStream(generator, stream));
    RAND(curandSetPseudoRandomGeneratorSeed(generator, 77));
    RAND(curandGenerate(generator, whole, N));
    RAND(curandSetPseudoRandomGeneratorSeed(generator, 77));
    RAND(curandGenerate(generator, parts, 1000));
    RAND(curandGenerate(generator, parts + 1000, 5000));
    RAND(curandGenerate(generator, parts + 6000, N - 6000));
    CUDA(cudaStreamSynchronize(stream));
    for (int i = 0; i < N; i++) EXPECT(whole[i] == parts[i]);
    for (unsigned i : {0u, 1u, 4095u, 4096u, 8191u, 8200u})
        EXPECT(whole[i] == (by_lanes ? first<State>(77, i % 4096, i / 4096) : first<State>(77, 0, i)));
    RAND(curandSetPseudoRandomGeneratorSeed(generator, 77));
    RAND(curandSetGeneratorOffset(generator, 4100));
    RAND(curandGenerate(generator, parts, 4150)); /* lanes behind and before the first */
    CUDA(cudaStreamSynchronize(stream));
    for (int i = 0; i < 4150; i++) EXPECT(parts[i] == whole[4100 + i]);
    RAND(curandDestroyGenerator(generator));
    CUDA(cudaStreamDestroy(stream));
    CUDA(cudaFree(whole));
    CUDA(cudaFree(parts));
}

template <class T> static void mean_and_variance(const T *x, int n, double *mean, double *variance)
{
    double sum = 0, squares = 0;

    for (int i = 0; i < n; i++) {
        sum += (double)x[i];
        squares += (double)x[i] * (double)x[i];
    }
    *mean = sum / n;
    *variance = squares / n - *mean * *mean;
}

static void host_distributions(curandRngType_t type)
{
    enum { N = 20000 };
    float *x = managed<float>(N);
    double *y = managed<double>(N), mean, variance;
    unsigned *events = managed<unsigned>(N);
    curandGenerator_t generator;

    RAND(curandCreateGenerator(&generator, type));
    RAND(curandGenerateNormal(generator, x, N, 3, 2));
    RAND(curandGenerateNormalDouble(generator, y, N, -1, 0.5));
    RAND(curandGeneratePoisson(generator, events, N, 1000));
    CUDA(cudaDeviceSynchronize());
    mean_and_variance(x, N, &mean, &variance);
    EXPECT(near(mean, 3, 0.1) && near(variance, 4, 0.2));
    mean_and_variance(y, N, &mean, &variance);
    EXPECT(near(mean, -1, 0.03) && near(variance, 0.25, 0.02));
    mean_and_variance(events, N, &mean, &variance);
    EXPECT(near(mean, 1000, 2) && near(variance, 1000, 50));
    RAND(curandGenerateLogNormalDouble(generator, y, N, 0, 1));
    RAND(curandGenerateUniform(generator, x, N));
    CUDA(cudaDeviceSynchronize());
    for (int i = 0; i < N; i++) EXPECT(y[i] > 0 && x[i] > 0 && x[i] <= 1);
    mean_and_variance(x, N, &mean, &variance);
    EXPECT(near(mean, 0.5, 0.02) && near(variance, 1.0 / 12, 0.01));
    RAND(curandDestroyGenerator(generator));
    CUDA(cudaFree(x));
    CUDA(cudaFree(y));
    CUDA(cudaFree(events));
}

/* A graph that is launched again goes on in the sequence. */
static void captured()
{
    unsigned *out = managed<unsigned>(8), *expected = managed<unsigned>(24);
    curandGenerator_t generator;
    cudaGraphExec_t executable;
    cudaGraph_t graph;
    cudaStream_t stream;

    CUDA(cudaStreamCreate(&stream));
    RAND(curandCreateGenerator(&generator, CURAND_RNG_PSEUDO_PHILOX4_32_10));
    RAND(curandSetPseudoRandomGeneratorSeed(generator, 3));
    RAND(curandSetStream(generator, stream));
    RAND(curandGenerate(generator, expected, 24));
    RAND(curandSetPseudoRandomGeneratorSeed(generator, 3));
    RAND(curandGenerateSeeds(generator));
    CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    RAND(curandGenerate(generator, out, 8));
    CUDA(cudaStreamEndCapture(stream, &graph));
    CUDA(cudaGraphInstantiate(&executable, graph, 0));
    for (int round = 0; round < 3; round++) {
        CUDA(cudaGraphLaunch(executable, stream));
        CUDA(cudaStreamSynchronize(stream));
        for (int i = 0; i < 8; i++) EXPECT(out[i] == expected[8 * round + i]);
    }
    CUDA(cudaGraphExecDestroy(executable));
    CUDA(cudaGraphDestroy(graph));
    RAND(curandDestroyGenerator(generator));
    CUDA(cudaStreamDestroy(stream));
    CUDA(cudaFree(out));
    CUDA(cudaFree(expected));
}

static void errors()
{
    curandGenerator_t generator;
    float x[3];
    int version;

    EXPECT(curandCreateGenerator(&generator, CURAND_RNG_QUASI_SOBOL32) == CURAND_STATUS_TYPE_ERROR);
    EXPECT(curandSetPseudoRandomGeneratorSeed(nullptr, 1) == CURAND_STATUS_NOT_INITIALIZED);
    RAND(curandGetVersion(&version));
    EXPECT(version == CURAND_VERSION);
    RAND(curandCreateGeneratorHost(&generator, CURAND_RNG_PSEUDO_DEFAULT));
    EXPECT(curandGenerateNormal(generator, x, 3, 0, 1) == CURAND_STATUS_LENGTH_NOT_MULTIPLE);
    EXPECT(curandSetGeneratorOrdering(generator, CURAND_ORDERING_QUASI_DEFAULT) != CURAND_STATUS_SUCCESS);
    RAND(curandGenerateUniform(generator, x, 3));
    for (float value : x) EXPECT(value > 0 && value <= 1);
    RAND(curandDestroyGenerator(generator));
}

int main()
{
    return on_all_devices([](int device) {
        bits();
        skips<curandState>();
        skips<curandStatePhilox4_32_10_t>();
        skips<curandStateMRG32k3a_t>();
        if (device) return; /* all the same */
        distributions<curandState>();
        distributions<curandStatePhilox4_32_10_t>();
        distributions<curandStateMRG32k3a_t>();
        ordering<curandState>(CURAND_RNG_PSEUDO_XORWOW, true);
        ordering<curandStateMRG32k3a_t>(CURAND_RNG_PSEUDO_MRG32K3A, true);
        ordering<curandStatePhilox4_32_10_t>(CURAND_RNG_PSEUDO_PHILOX4_32_10, false);
        host_distributions(CURAND_RNG_PSEUDO_XORWOW);
        host_distributions(CURAND_RNG_PSEUDO_MRG32K3A);
        host_distributions(CURAND_RNG_PSEUDO_PHILOX4_32_10);
        captured();
        errors();
    });
}
