/* SPDX-License-Identifier: Apache-2.0 */
/* An all-reduce of two processes with a device each, through a multicast object: each reduces a half, and all get it. */
#include "multicast.cuh"

#include <cstdio>
#include <fcntl.h>
#include <string>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { COUNT = 1 << 12, ROUNDS = 20, FLAG = COUNT * 4 }; /* numbers; behind them a counter of arrivals */

/* All processes are here: each adds to the counters of all, and waits for its own. */
static __device__ void meet(char *all, const char *own, unsigned expected)
{
    unsigned seen;

    asm volatile("multimem.red.release.sys.global.add.u32 [%0], %1;" ::"l"(all + FLAG), "r"(1) : "memory");
    do asm volatile("ld.acquire.sys.global.u32 %0, [%1];" : "=r"(seen) : "l"(own + FLAG) : "memory");
    while (seen < expected);
}

__global__ void all_reduce(char *all, char *own, int rank, unsigned round)
{
    float *mine = (float *)own;

    for (int i = threadIdx.x; i < COUNT; i += blockDim.x) mine[i] = (float)(i + rank * 1000 + round);
    __syncthreads();
    if (threadIdx.x == 0) meet(all, own, 4 * round + 2);
    __syncthreads();
    for (int i = rank * COUNT / 2 + 4 * threadIdx.x; i < (rank + 1) * COUNT / 2; i += 4 * blockDim.x) {
        float a, b, c, d;

        asm volatile("multimem.ld_reduce.relaxed.sys.global.add.v4.f32 {%0, %1, %2, %3}, [%4];"
                     : "=f"(a), "=f"(b), "=f"(c), "=f"(d) : "l"(all + 4 * i) : "memory");
        asm volatile("multimem.st.relaxed.sys.global.v4.f32 [%0], {%1, %2, %3, %4};" ::"l"(all + 4 * i), "f"(a), "f"(b), "f"(c), "f"(d)
                     : "memory");
    }
    __syncthreads();
    if (threadIdx.x == 0) meet(all, own, 4 * round + 4);
}

/* Both processes are here. */
static void meet_host(int other)
{
    char word = 0;

    EXPECT(write(other, &word, 1) == 1 && read(other, &word, 1) == 1);
}

/* One process, with the object, and a socket of the other one. */
static void run(CUmemGenericAllocationHandle object, int rank, int other)
{
    CUmemGenericAllocationHandle memory = memory_of(rank);
    char *own = place(memory, rank), *all;

    CU(cuMulticastAddDevice(object, rank));
    CU(cuMulticastBindMem(object, 0, memory, 0, unit, 0)); /* waits for the other process */
    all = place(object, rank);
    meet_host(other); /* both have bound their memory */
    for (unsigned round = 0; round < ROUNDS; round++) {
        all_reduce<<<1, 128>>>(all, own, rank, round);
        DONE();
        const std::vector<float> got = fetch<float>(own, COUNT);
        for (int i = 0; i < COUNT; i++) EXPECT(got[(size_t)i] == (float)(2 * (i + (int)round) + 1000));
    }
    meet_host(other); /* neither has a kernel that needs it */
    displace(all);
    CU(cuMulticastUnbind(object, rank, 0, unit));
    displace(own);
    CU(cuMemRelease(memory));
    CU(cuMemRelease(object));
}

static void begin(int rank)
{
    CU(cuInit(0));
    CUDA(cudaSetDevice(rank));
    CUDA(cudaFree(nullptr));
}

static int second(int fd, int other)
{
    CUmemGenericAllocationHandle object;

    begin(1);
    CU(cuMemImportFromShareableHandle(&object, (void *)(intptr_t)fd, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
    close(fd);
    run(object, 1, other);
    return 0;
}

int main(int argc, char **argv)
{
    int devices = 0, fd, status, ends[2];

    setenv("KOLO_HOST_DEVICES", "4", 0);
    setenv("KOLO_CUDA_MULTICAST", "1", 1);
    if (argc > 2) return second(std::atoi(argv[1]), std::atoi(argv[2]));
    CUDA(cudaGetDeviceCount(&devices));
    if (devices < 2) return 0;
    begin(0);
    CUmemGenericAllocationHandle object = object_of(2);
    CU(cuMemExportToShareableHandle(&fd, object, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
    EXPECT(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0);
    const pid_t child = fork();
    if (!child) {
        fcntl(fd, F_SETFD, 0);
        fcntl(ends[1], F_SETFD, 0);
        execl("/proc/self/exe", argv[0], std::to_string(fd).c_str(), std::to_string(ends[1]).c_str(), (char *)nullptr);
        _exit(99);
    }
    close(fd);
    close(ends[1]);
    run(object, 0, ends[0]);
    EXPECT(waitpid(child, &status, 0) == child && status == 0);
    std::printf("done\n");
    return 0;
}
