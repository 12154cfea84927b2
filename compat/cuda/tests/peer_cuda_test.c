/* SPDX-License-Identifier: Apache-2.0 */
/** peer_cuda_test.c - KOLO_CUDA_P2P: devices without access to each other's memory, and paths that lose writes. */
#include "compat/cuda/tests/cuda_test.h"

#include "compat/cuda/core/peer.h"

#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { BYTES = 4096 };

static void make(int device, char **memory, int value)
{
    assert_int_equal(cudaSetDevice(device), cudaSuccess);
    assert_int_equal(cudaMalloc((void **)memory, BYTES), cudaSuccess);
    assert_int_equal(cudaMemset(*memory, value, BYTES), cudaSuccess);
    assert_int_equal(cudaDeviceSynchronize(), cudaSuccess);
}

static void there_is_no_access(void **state)
{
    char *a, *b;
    int can = 1;

    (void)state;
    setenv("KOLO_CUDA_P2P", "0", 1);
    setenv("KOLO_CUDA_STRICT", "1", 1);
    make(0, &a, 1);
    make(1, &b, 2);
    assert_int_equal(cudaDeviceCanAccessPeer(&can, 0, 1), cudaSuccess);
    assert_int_equal(can, 0);
    assert_int_equal(cudaDeviceEnablePeerAccess(0, 0), cudaErrorPeerAccessUnsupported);
    assert_int_equal(kl_cuda_peer_reach(0, b), KL_CUDA_REACH_NONE);
    assert_int_equal(kl_cuda_peer_reach(1, b + BYTES - 1), KL_CUDA_REACH_ALL);
    assert_int_equal(kl_cuda_peer_reach(0, &can), KL_CUDA_REACH_ALL);
    assert_int_equal(cudaMemcpyAsync(a, b, BYTES, cudaMemcpyDefault, NULL), cudaErrorPeerAccessUnsupported);
    assert_int_equal(cudaMemcpyAsync(b, a, BYTES, cudaMemcpyDefault, NULL), cudaErrorPeerAccessUnsupported);
    assert_int_equal(cudaMemcpy(b, b, BYTES, cudaMemcpyDefault), cudaSuccess);
}

static void writes_get_lost(void **state)
{
    char *a, *b, there[BYTES];
    int can = 0;

    (void)state;
    setenv("KOLO_CUDA_P2P", "lost", 1);
    make(0, &a, 1);
    make(1, &b, 2);
    assert_int_equal(cudaDeviceCanAccessPeer(&can, 1, 0), cudaSuccess);
    assert_int_equal(can, 1);
    assert_int_equal(cudaMemcpyAsync(a, b, BYTES, cudaMemcpyDefault, NULL), cudaSuccess);
    assert_int_equal(cudaDeviceSynchronize(), cudaSuccess);
    assert_int_equal(cudaMemcpy(there, a, BYTES, cudaMemcpyDefault), cudaSuccess);
    assert_int_equal(there[0], 1);
    assert_int_equal(cudaMemcpy(there, b, BYTES, cudaMemcpyDefault), cudaSuccess);
    assert_int_equal(there[BYTES - 1], 2);
}

/* The variable is read once: a process for each value. */
static int in_a_process(void (*test)(void **))
{
    const struct CMUnitTest tests[] = {{"peers", test, NULL, NULL, NULL}};
    int status = 1;
    pid_t child = fork();

    if (!child) exit(cmocka_run_group_tests(tests, NULL, NULL));
    return child < 0 || waitpid(child, &status, 0) != child || status;
}

int main(void)
{
    setenv("KOLO_HOST_DEVICES", "2", 1);
    return in_a_process(there_is_no_access) | in_a_process(writes_get_lost);
}
