/* SPDX-License-Identifier: Apache-2.0 */
/* Small grids of several streams at once, as fast as they can be launched: the threads that help come and go between them. */
#include "check.h"

#include <thread>

enum { THREADS = 3, LAUNCHES = 60000, TOGETHER = 8 };

__global__ void count(int *launched)
{
    atomicAdd(launched, 1);
}

static void launch(int *launched)
{
    cudaStream_t stream;

    CUDA(cudaStreamCreate(&stream));
    for (int i = 0; i < LAUNCHES; i++) {
        count<<<2, 1, 0, stream>>>(launched);
        if (i % TOGETHER == 0) CUDA(cudaStreamSynchronize(stream));
    }
    CUDA(cudaStreamSynchronize(stream));
    CUDA(cudaStreamDestroy(stream));
}

int main()
{
    int *launched = managed<int>(THREADS);
    std::thread thread[THREADS];

    for (int i = 0; i < THREADS; i++) thread[i] = std::thread(launch, &launched[i]);
    for (std::thread &t : thread) t.join();
    DONE();
    for (int i = 0; i < THREADS; i++) EXPECT(launched[i] == 2 * LAUNCHES);
    CUDA(cudaFree(launched));
    return 0;
}
