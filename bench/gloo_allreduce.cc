/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gloo_allreduce BYTES:ITERATIONS ...: gloo's all-reduce of floats over TCP, measured as mpi_allreduce.c does. RANK and SIZE are this
 * process's; ADDRESS its own; STORE a folder that all ranks share.
 */
#include <gloo/allreduce.h>
#include <gloo/barrier.h>
#include <gloo/math.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/transport/tcp/device.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <vector>

using Context = std::shared_ptr<gloo::rendezvous::Context>;

static double run(const Context &context, std::vector<float> &data, int iterations)
{
    gloo::AllreduceOptions options(context);
    options.setOutput(data.data(), data.size());
    options.setReduceFunction([](void *c, const void *a, const void *b, size_t n) { gloo::sum<float>(c, a, b, n); });
    gloo::BarrierOptions barrier(context);
    gloo::barrier(barrier);
    auto begin = std::chrono::steady_clock::now();
    for (int i = 0; i < iterations; i++) gloo::allreduce(options);
    std::chrono::duration<double, std::micro> took = std::chrono::steady_clock::now() - begin;
    return took.count() / iterations;
}

int main(int argc, char **argv)
{
    int rank = std::atoi(std::getenv("RANK")), size = std::atoi(std::getenv("SIZE"));
    gloo::transport::tcp::attr address;
    address.hostname = std::getenv("ADDRESS");
    auto store = std::make_shared<gloo::rendezvous::FileStore>(std::getenv("STORE"));
    auto context = std::make_shared<gloo::rendezvous::Context>(rank, size);
    auto device = gloo::transport::tcp::CreateDevice(address);
    context->connectFullMesh(*store, device);

    for (int i = 1; i < argc; i++) {
        long bytes = 0;
        int iterations = 0;
        if (std::sscanf(argv[i], "%ld:%d", &bytes, &iterations) != 2) continue;
        std::vector<float> data(static_cast<size_t>(bytes) / sizeof(float));
        run(context, data, iterations / 10 + 1);
        double us = run(context, data, iterations);
        if (!rank) std::printf("%ld %.3f\n", bytes, us);
    }
    return 0;
}
