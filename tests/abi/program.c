/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program for NCCL that knows nothing of Kolo's headers: compiled with the headers of a CUDA toolkit, run with Kolo's
 * library. Waiting for streams and choosing devices are CUDA's functions; here Kolo's functions of the same shape do
 * it.
 */
#include <nccl.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

extern ncclResult_t koloSetDevice(int device);
extern ncclResult_t koloStreamSynchronize(cudaStream_t stream);

enum { RANKS = 3, COUNT = 5000 };

static ncclComm_t comms[RANKS];
static float in[RANKS][RANKS * COUNT], out[RANKS][RANKS * COUNT];

#define must(condition)                                                                                                \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            fprintf(stderr, "%s:%d: %s (%s)\n", __FILE__, __LINE__, #condition, ncclGetLastError(NULL));               \
            exit(1);                                                                                                   \
        }                                                                                                              \
    } while (0)
#define ok(call) must((call) == ncclSuccess)

static void synchronize(void)
{
    for (int r = 0; r < RANKS; r++) {
        ok(koloSetDevice(r));
        ok(koloStreamSynchronize(NULL));
    }
}

static void fill(void)
{
    for (int r = 0; r < RANKS; r++)
        for (int i = 0; i < RANKS * COUNT; i++) in[r][i] = (float)(i % 100 + r), out[r][i] = -1;
}

static void create(int blocking)
{
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    ncclUniqueId id;

    config.blocking = blocking;
    config.minCTAs = 2;
    config.maxCTAs = 4;
    config.splitShare = 1;
    config.netName = "Socket";
    ok(ncclGetUniqueId(&id));
    ok(ncclGroupStart());
    for (int r = 0; r < RANKS; r++) {
        ok(koloSetDevice(r));
        ok(ncclCommInitRankConfig(&comms[r], RANKS, id, r, &config));
    }
    must(ncclGroupEnd() == (blocking ? ncclSuccess : ncclInProgress));
    for (int r = 0; r < RANKS; r++) {
        ncclResult_t state;
        do ok(ncclCommGetAsyncError(comms[r], &state));
        while (state == ncclInProgress);
        ok(state);
    }
}

static void reduce(ncclComm_t *which)
{
    fill();
    ok(ncclGroupStart());
    for (int r = 0; r < RANKS; r++) ok(ncclAllReduce(in[r], out[r], COUNT, ncclFloat, ncclSum, which[r], NULL));
    ok(ncclGroupEnd());
    synchronize();
    for (int r = 0; r < RANKS; r++)
        for (int i = 0; i < COUNT; i++) must(out[r][i] == (float)(RANKS * (i % 100) + 3));
}

static void exchange(void)
{
    fill();
    ok(ncclGroupStart());
    for (int r = 0; r < RANKS; r++) ok(ncclAlltoAll(in[r], out[r], COUNT, ncclFloat, comms[r], NULL));
    ok(ncclGroupEnd());
    synchronize();
    for (int r = 0; r < RANKS; r++)
        for (int k = 0; k < RANKS; k++)
            for (int i = 0; i < COUNT; i++) must(out[r][k * COUNT + i] == in[k][r * COUNT + i]);
}

static void split(void)
{
    ncclComm_t children[RANKS];

    ok(ncclGroupStart());
    for (int r = 0; r < RANKS; r++) ok(ncclCommSplit(comms[r], 0, RANKS - r, &children[r], NULL));
    ok(ncclGroupEnd());
    for (int r = 0; r < RANKS; r++) {
        int rank;
        ok(ncclCommUserRank(children[r], &rank));
        must(rank == RANKS - 1 - r);
    }
    reduce(children);
    for (int r = 0; r < RANKS; r++) ok(ncclCommDestroy(children[r]));
}

static void simulate(void)
{
    ncclSimInfo_t info = NCCL_SIM_INFO_INITIALIZER;

    ok(ncclGroupStart());
    for (int r = 0; r < RANKS; r++) ok(ncclAllReduce(in[r], out[r], COUNT, ncclFloat, ncclSum, comms[r], NULL));
    ok(ncclGroupSimulateEnd(&info));
    must(info.estimatedTime > 0);
}

int main(void)
{
    int version;

    ok(ncclGetVersion(&version));
    must(version >= 22800);
    must(!strcmp(ncclGetErrorString(ncclSuccess), "no error"));
    create(1);
    reduce(comms);
    exchange();
    split();
    simulate();
    for (int r = 0; r < RANKS; r++) ok(ncclCommFinalize(comms[r]));
    for (int r = 0; r < RANKS; r++) ok(ncclCommDestroy(comms[r]));
    create(0);
    reduce(comms);
    for (int r = 0; r < RANKS; r++) ok(ncclCommAbort(comms[r]));
    printf("%zu bytes of configuration, version %d\n", sizeof(ncclConfig_t), NCCL_VERSION_CODE);
    return 0;
}
