/* SPDX-License-Identifier: Apache-2.0 */
/** data.h - the numbers that these programs send, and whether those that they receive are right. */
#ifndef EXAMPLES_DATA_H
#define EXAMPLES_DATA_H

#include "../check.h"

enum { COUNT = 1 << 18, MAX_DEVICES = 64 };

/** Device memory of COUNT floats, `factor` times 0, 1, ..., 999, 0, 1, ...: sums of them are exact. */
static inline float *device_data(int factor)
{
    float *host = (float *)malloc(COUNT * sizeof *host), *device;

    for (int i = 0; i < COUNT; i++) host[i] = (float)(factor * (i % 1000));
    CUDACHECK(cudaMalloc((void **)&device, COUNT * sizeof *device));
    CUDACHECK(cudaMemcpy(device, host, COUNT * sizeof *host, cudaMemcpyHostToDevice));
    free(host);
    return device;
}

/** How many of the COUNT floats at `device` are not `factor` times 0, 1, ..., 999, 0, 1, ... */
static inline int wrong_data(const float *device, int factor)
{
    float *host = (float *)malloc(COUNT * sizeof *host);
    int wrong = 0;

    CUDACHECK(cudaMemcpy(host, device, COUNT * sizeof *host, cudaMemcpyDeviceToHost));
    for (int i = 0; i < COUNT; i++) wrong += host[i] != (float)(factor * (i % 1000));
    free(host);
    return wrong;
}

/** 1 + 2 + ... + n, which is what ranks 0 to n-1 with the factors 1 to n add up to. */
static inline int sum_to(int n)
{
    return n * (n + 1) / 2;
}

/** The last line of each program; its exit status. */
static inline int report(const char *what, int ranks, int wrong)
{
    printf("%s: %d ranks, %d wrong\n", what, ranks, wrong);
    return wrong != 0;
}

#endif
