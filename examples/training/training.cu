/* SPDX-License-Identifier: Apache-2.0 */
/*
 * training.cu - data-parallel training whose gradients are added up while others are still computed.
 *
 *     training [PROCESSES [DEVICES [STEPS]]]
 *
 * Each device has a copy of the weights and its share of the samples. It computes the gradients of the last layer first; as soon as those of a
 * bucket of layers are there, another stream adds them up over all devices, and the compute stream goes on with the layers before. Events order
 * the two. Gradients are rounded to multiples of 1/1024 for each sample, so that sums are exact in any order, and the weights have to be those
 * of one loop over all samples on the host, to the last bit.
 */
#include "../processes.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <thread>
#include <vector>

constexpr int N = 32, LAYERS = 6, BUCKET = 2 /* layers */, BUCKETS = LAYERS / BUCKET;
constexpr int SAMPLES = 8; /* of a device */
constexpr int MATRIX = N * N, WEIGHTS = LAYERS * MATRIX;

/* ---- arithmetic, the same on host and device: every operation is rounded once ---- */

__host__ __device__ inline float rounded(float x)
{
    return rintf(x * 1024) / 1024;
}

/* Output j of a layer: what is negative counts a tenth. */
__host__ __device__ inline float forward_one(const float *weights, const float *in, int j)
{
    float sum = 0;

    for (int i = 0; i < N; i++) sum = fmaf(weights[j * N + i], in[i], sum);
    return sum > 0 ? sum : sum * 0.125f;
}

/* How the loss depends on input i of a layer, times the slope of what made that input. */
__host__ __device__ inline float backward_one(const float *weights, const float *delta, const float *in, int i)
{
    float sum = 0;

    for (int j = 0; j < N; j++) sum = fmaf(weights[j * N + i], delta[j], sum);
    return in[i] > 0 ? sum : sum * 0.125f;
}

__host__ __device__ inline float updated(float weight, float gradient, int samples)
{
    return fmaf(-0.0625f / (float)samples, gradient, weight);
}

/* ---- kernels ---- */

/* A block is a sample, a thread a neuron. Layer l's inputs are at l * N in `state`, the outputs of the last at LAYERS * N. */
__global__ void forward(const float *weights, float *state, float *delta, const float *target, float *loss)
{
    __shared__ float in[N];
    float *mine = state + blockIdx.x * (LAYERS + 1) * N;
    int j = threadIdx.x;
    float value = mine[j], error;

    for (int layer = 0; layer < LAYERS; layer++) {
        in[j] = value;
        __syncthreads();
        value = forward_one(weights + layer * MATRIX, in, j);
        mine[(layer + 1) * N + j] = value;
        __syncthreads();
    }
    error = value - target[blockIdx.x * N + j];
    delta[blockIdx.x * N + j] = value > 0 ? error : error * 0.125f;
    atomicAdd(loss, rounded(error * error));
}

/* One layer: a block is a row of its matrix, which adds up over the samples of this device. */
__global__ void weight_gradients(const float *state, const float *delta, float *gradient, int layer)
{
    int j = blockIdx.x, i = threadIdx.x;
    float sum = 0;

    for (int s = 0; s < SAMPLES; s++) sum += rounded(delta[s * N + j] * state[(s * (LAYERS + 1) + layer) * N + i]);
    gradient[layer * MATRIX + j * N + i] = sum;
}

__global__ void backward(const float *weights, const float *state, const float *delta, float *before, int layer)
{
    const float *in = state + (blockIdx.x * (LAYERS + 1) + layer) * N;

    before[blockIdx.x * N + threadIdx.x] =
        backward_one(weights + layer * MATRIX, delta + blockIdx.x * N, in, threadIdx.x);
}

__global__ void update(float *weights, const float *gradient, int samples)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;

    weights[i] = updated(weights[i], gradient[i], samples);
}

/* ---- data ---- */

static std::vector<float> first_weights()
{
    std::vector<float> w(WEIGHTS);

    for (int i = 0; i < WEIGHTS; i++) w[i] = (float)((i * 37 + i / 11) % 64 - 32) / 128 + (i % (N + 1) == 0 ? 0.5f : 0);
    return w;
}

static float sample_input(int sample, int i)
{
    return (float)((sample * 13 + i * 5) % 17 - 8) / 8;
}

static float sample_target(int sample, int j)
{
    return (float)((sample + j) % 5) / 4;
}

/* ---- the host, in sequence ---- */

static std::vector<float> train_on_host(int samples, int steps, std::vector<float> &losses)
{
    std::vector<float> weights = first_weights(), gradient(WEIGHTS), state((LAYERS + 1) * N), delta(N), before(N);

    for (int step = 0; step < steps; step++) {
        float loss = 0;

        std::fill(gradient.begin(), gradient.end(), 0.0f);
        for (int s = 0; s < samples; s++) {
            for (int i = 0; i < N; i++) state[i] = sample_input(s, i);
            for (int k = 0; k < LAYERS * N; k++)
                state[N + k] = forward_one(&weights[k / N * MATRIX], &state[k / N * N], k % N);
            for (int j = 0; j < N; j++) {
                float value = state[LAYERS * N + j], error = value - sample_target(s, j);

                delta[j] = value > 0 ? error : error * 0.125f;
                loss += rounded(error * error);
            }
            for (int layer = LAYERS - 1; layer >= 0; layer--) {
                const float *in = &state[layer * N], *w = &weights[layer * MATRIX];

                for (int k = 0; k < MATRIX; k++) gradient[layer * MATRIX + k] += rounded(delta[k / N] * in[k % N]);
                for (int i = 0; i < N; i++) before[i] = backward_one(w, delta.data(), in, i);
                delta.swap(before);
            }
        }
        for (int k = 0; k < WEIGHTS; k++) weights[k] = updated(weights[k], gradient[k], samples);
        losses.push_back(loss);
    }
    return weights;
}

/* ---- a device ---- */

struct trainer {
    int rank, ranks, steps;
    ncclComm_t comm;
    cudaStream_t compute, exchange;
    cudaEvent_t computed[BUCKETS], exchanged[BUCKETS];
    float *weights, *gradient, *state, *delta[2], *target, *loss; /* loss: of each step */
};

static float *device_copy(const std::vector<float> &from)
{
    float *to;

    CUDACHECK(cudaMalloc((void **)&to, from.size() * sizeof(float)));
    CUDACHECK(cudaMemcpy(to, from.data(), from.size() * sizeof(float), cudaMemcpyHostToDevice));
    return to;
}

static void open_trainer(trainer &t, ncclUniqueId id, int device)
{
    std::vector<float> state(SAMPLES * (LAYERS + 1) * N), target(SAMPLES * N);

    for (int k = 0; k < SAMPLES * N; k++) {
        int sample = t.rank * SAMPLES + k / N;

        state[k / N * (LAYERS + 1) * N + k % N] = sample_input(sample, k % N);
        target[k] = sample_target(sample, k % N);
    }
    CUDACHECK(cudaSetDevice(device));
    CUDACHECK(cudaStreamCreateWithFlags(&t.compute, cudaStreamNonBlocking));
    CUDACHECK(cudaStreamCreateWithFlags(&t.exchange, cudaStreamNonBlocking));
    for (int b = 0; b < BUCKETS; b++) {
        CUDACHECK(cudaEventCreateWithFlags(&t.computed[b], cudaEventDisableTiming));
        CUDACHECK(cudaEventCreateWithFlags(&t.exchanged[b], cudaEventDisableTiming));
    }
    t.weights = device_copy(first_weights());
    t.gradient = device_copy(std::vector<float>(WEIGHTS));
    t.state = device_copy(state);
    t.target = device_copy(target);
    for (float *&delta : t.delta) delta = device_copy(std::vector<float>(SAMPLES * N));
    t.loss = device_copy(std::vector<float>(t.steps));
    CUDACHECK(cudaDeviceSynchronize()); /* the streams are non-blocking: they do not wait for the copies */
    NCCLCHECK(ncclCommInitRank(&t.comm, t.ranks, id, t.rank));
}

static void close_trainer(trainer &t)
{
    NCCLCHECK(ncclCommDestroy(t.comm));
    for (int b = 0; b < BUCKETS; b++) {
        CUDACHECK(cudaEventDestroy(t.computed[b]));
        CUDACHECK(cudaEventDestroy(t.exchanged[b]));
    }
    for (float *p : {t.weights, t.gradient, t.state, t.target, t.delta[0], t.delta[1], t.loss}) CUDACHECK(cudaFree(p));
    CUDACHECK(cudaStreamDestroy(t.compute));
    CUDACHECK(cudaStreamDestroy(t.exchange));
}

/* The layers of a bucket, the last one first. `layer` counts down. */
static void compute_bucket(const trainer &t, int bucket)
{
    for (int layer = (bucket + 1) * BUCKET - 1; layer >= bucket * BUCKET; layer--) {
        const float *delta = t.delta[(LAYERS - 1 - layer) % 2];

        weight_gradients<<<N, N, 0, t.compute>>>(t.state, delta, t.gradient, layer);
        backward<<<SAMPLES, N, 0, t.compute>>>(t.weights, t.state, delta, t.delta[(LAYERS - layer) % 2], layer);
    }
    CUDACHECK(cudaEventRecord(t.computed[bucket], t.compute));
}

static void exchange_bucket(const trainer &t, int bucket)
{
    float *gradient = t.gradient + bucket * BUCKET * MATRIX;

    CUDACHECK(cudaStreamWaitEvent(t.exchange, t.computed[bucket], 0));
    NCCLCHECK(ncclAllReduce(gradient, gradient, BUCKET * MATRIX, ncclFloat, ncclSum, t.comm, t.exchange));
    CUDACHECK(cudaEventRecord(t.exchanged[bucket], t.exchange));
}

static void update_bucket(const trainer &t, int bucket)
{
    int at = bucket * BUCKET * MATRIX;

    CUDACHECK(cudaStreamWaitEvent(t.compute, t.exchanged[bucket], 0));
    update<<<BUCKET * MATRIX / 256, 256, 0, t.compute>>>(t.weights + at, t.gradient + at, t.ranks * SAMPLES);
}

static void train(const trainer &t)
{
    for (int step = 0; step < t.steps; step++) {
        forward<<<SAMPLES, N, 0, t.compute>>>(t.weights, t.state, t.delta[0], t.target, t.loss + step);
        for (int b = BUCKETS - 1; b >= 0; b--) {
            compute_bucket(t, b);
            exchange_bucket(t, b);
        }
        for (int b = BUCKETS - 1; b >= 0; b--) update_bucket(t, b); /* not before: the layers before need the weights */
    }
    CUDACHECK(cudaGetLastError());
    NCCLCHECK(ncclAllReduce(t.loss, t.loss, t.steps, ncclFloat, ncclSum, t.comm, t.compute));
    CUDACHECK(cudaStreamSynchronize(t.compute));
}

static int differences(const float *device, const std::vector<float> &expected)
{
    std::vector<float> got(expected.size());
    int differ = 0;

    CUDACHECK(cudaMemcpy(got.data(), device, got.size() * sizeof(float), cudaMemcpyDeviceToHost));
    for (size_t i = 0; i < got.size(); i++) differ += got[i] != expected[i];
    return differ;
}

static int run(trainer t, ncclUniqueId id, int device)
{
    std::vector<float> losses, weights = train_on_host(t.ranks * SAMPLES, t.steps, losses);
    int wrong;

    open_trainer(t, id, device);
    train(t);
    wrong = differences(t.weights, weights) + differences(t.loss, losses) + !(losses.back() < losses.front());
    if (t.rank == 0) printf("training: loss %g, after %d steps %g\n", losses.front(), t.steps, losses.back());
    close_trainer(t);
    return wrong;
}

int main(int argc, char **argv)
{
    int processes = argc > 1 ? atoi(argv[1]) : 1, devices = argc > 2 ? atoi(argv[2]) : 0;
    int steps = argc > 3 ? atoi(argv[3]) : 10;
    std::vector<std::thread> threads;
    std::atomic<int> wrong{0};
    ncclUniqueId id;
    int process = become_processes(processes, &id), present;

    CUDACHECK(cudaGetDeviceCount(&present));
    if (!devices) devices = std::max(present / processes, 1);
    for (int d = 0; d < devices; d++) {
        trainer t = {};

        t.rank = process * devices + d;
        t.ranks = processes * devices;
        t.steps = steps;
        threads.emplace_back([=, &wrong] { wrong += run(t, id, t.rank % present); });
    }
    for (std::thread &thread : threads) thread.join();

    if (process) return wrong != 0;
    int failed = failed_processes();
    printf("training: %d processes with %d devices: %d wrong, %d processes failed\n", processes, devices, wrong.load(),
           failed);
    return wrong || failed;
}
