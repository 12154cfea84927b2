/* SPDX-License-Identifier: Apache-2.0 */
/* A program for NCCL, for tests/ci_test.py: one process with all devices, or as many as WORLD_SIZE says, a device each. */
#include <cuda_runtime.h>
#include <nccl.h>
#include <stdio.h>
#include <stdlib.h>

enum { MAX = 64 };

#define CHECK(call)                                                                                                    \
    do {                                                                                                               \
        if (call) {                                                                                                    \
            fprintf(stderr, "%s: %s\n", #call, ncclGetLastError(NULL));                                                \
            exit(1);                                                                                                   \
        }                                                                                                              \
    } while (0)

static int number(const char *name, int otherwise)
{
    const char *text = getenv(name);

    return text ? atoi(text) : otherwise;
}

static void join(ncclComm_t *comm, int ranks)
{
    char address[256];
    ncclUniqueId id;

    snprintf(address, sizeof address, "%s:%s", getenv("MASTER_ADDR"), getenv("MASTER_PORT"));
    setenv("NCCL_COMM_ID", address, 1); /* instead of a way to send the id to all */
    CHECK(cudaSetDevice(number("LOCAL_RANK", 0)));
    CHECK(ncclGetUniqueId(&id));
    CHECK(ncclCommInitRank(comm, ranks, id, number("RANK", 0)));
}

int main(void)
{
    int ranks = number("WORLD_SIZE", 1), mine = 1, wrong = 0;
    ncclComm_t comm[MAX];
    float *data[MAX];

    if (ranks > 1) {
        join(&comm[0], ranks);
    } else {
        CHECK(cudaGetDeviceCount(&mine));
        if (mine > MAX) mine = MAX;
        ranks = mine;
        CHECK(ncclCommInitAll(comm, mine, NULL));
    }
    for (int i = 0; i < mine; i++) {
        const float one = 1;

        CHECK(cudaMalloc((void **)&data[i], sizeof one));
        CHECK(cudaMemcpy(data[i], &one, sizeof one, cudaMemcpyHostToDevice));
    }
    CHECK(ncclGroupStart());
    for (int i = 0; i < mine; i++) CHECK(ncclAllReduce(data[i], data[i], 1, ncclFloat, ncclSum, comm[i], NULL));
    CHECK(ncclGroupEnd());
    for (int i = 0; i < mine; i++) {
        float sum = 0;

        if (mine > 1) CHECK(cudaSetDevice(i));
        CHECK(cudaDeviceSynchronize());
        CHECK(cudaMemcpy(&sum, data[i], sizeof sum, cudaMemcpyDeviceToHost));
        wrong += sum != (float)ranks;
        CHECK(ncclCommDestroy(comm[i]));
    }
    printf("%d ranks, %d wrong\n", ranks, wrong);
    return wrong != 0;
}
