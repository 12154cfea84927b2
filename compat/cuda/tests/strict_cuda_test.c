/* SPDX-License-Identifier: Apache-2.0 */
/** strict_cuda_test.c - KOLO_CUDA_STRICT: queues that streams share, the room for blocks, and kernels of two processes. */
#include "driver_test.h"

#include "compat/cuda/core/strict.h"
#include "src/base/atomic.h"

#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- queues ---- */

enum { STREAMS = 2 * KL_CUDA_QUEUES };

/* The value that the head of a queue waits for comes from a stream of the same queue, or of another one. */
static void a_waiting_head_holds_up_its_queue(void **state)
{
    cudaStream_t stream[STREAMS];
    uint32_t *word;

    (void)state;
    OK(cudaSetDevice(0));
    OK(cudaMallocHost((void **)&word, 2 * sizeof *word));
    for (int i = 0; i < STREAMS; i++) OK(cudaStreamCreateWithFlags(&stream[i], cudaStreamNonBlocking));
    word[0] = word[1] = 0;
    CU(cuStreamWaitValue32((CUstream)stream[0], (CUdeviceptr)(uintptr_t)&word[0], 1, CU_STREAM_WAIT_VALUE_EQ));
    CU(cuStreamWriteValue32((CUstream)stream[KL_CUDA_QUEUES], (CUdeviceptr)(uintptr_t)&word[0], 1, 0));
    CU(cuStreamWriteValue32((CUstream)stream[1], (CUdeviceptr)(uintptr_t)&word[1], 1, 0));
    OK(cudaStreamSynchronize(stream[1])); /* another queue goes on */
    assert_int_equal(cudaStreamQuery(stream[KL_CUDA_QUEUES]), cudaErrorNotReady);
    assert_int_equal(word[0], 0);
    __atomic_store_n(&word[0], 1, __ATOMIC_RELEASE);
    OK(cudaStreamSynchronize(stream[0]));
    OK(cudaStreamSynchronize(stream[KL_CUDA_QUEUES]));

    word[0] = 0;
    CU(cuStreamWaitValue32((CUstream)stream[0], (CUdeviceptr)(uintptr_t)&word[0], 1, CU_STREAM_WAIT_VALUE_EQ));
    CU(cuStreamWriteValue32((CUstream)stream[1], (CUdeviceptr)(uintptr_t)&word[0], 1, 0));
    OK(cudaStreamSynchronize(stream[0]));
    for (int i = 0; i < STREAMS; i++) OK(cudaStreamDestroy(stream[i]));
    OK(cudaFreeHost(word));
    cudaGetLastError();
}

/* An event that has not come is a wait, too. */
static void a_stream_behind_an_event_holds_up_its_queue(void **state)
{
    cudaStream_t stream[STREAMS];
    cudaEvent_t event;
    uint32_t *word;

    (void)state;
    OK(cudaMallocHost((void **)&word, 2 * sizeof *word));
    for (int i = 0; i < STREAMS; i++) OK(cudaStreamCreateWithFlags(&stream[i], cudaStreamNonBlocking));
    OK(cudaEventCreate(&event));
    word[0] = word[1] = 0;
    CU(cuStreamWaitValue32((CUstream)stream[1], (CUdeviceptr)(uintptr_t)&word[0], 1, CU_STREAM_WAIT_VALUE_EQ));
    OK(cudaEventRecord(event, stream[1]));
    OK(cudaStreamWaitEvent(stream[0], event, 0));
    CU(cuStreamWriteValue32((CUstream)stream[KL_CUDA_QUEUES], (CUdeviceptr)(uintptr_t)&word[0], 1, 0));
    CU(cuStreamWriteValue32((CUstream)stream[2], (CUdeviceptr)(uintptr_t)&word[1], 1, 0));
    OK(cudaStreamSynchronize(stream[2]));
    assert_int_equal(cudaStreamQuery(stream[KL_CUDA_QUEUES]), cudaErrorNotReady);
    __atomic_store_n(&word[0], 1, __ATOMIC_RELEASE);
    for (int i = 0; i < STREAMS; i++) OK(cudaStreamSynchronize(stream[i]));
    for (int i = 0; i < STREAMS; i++) OK(cudaStreamDestroy(stream[i]));
    OK(cudaEventDestroy(event));
    OK(cudaFreeHost(word));
    cudaGetLastError();
}

/* ---- blocks ---- */

enum { THREADS = 16, ROUNDS = 50 };

static _Atomic int inside, most;

static void *run_blocks(void *nothing)
{
    for (int i = 0; i < ROUNDS; i++) {
        kl_cuda_strict_enter_block(0, 1024, 3000);
        int now = ++inside, seen = most;
        while (now > seen && !kl_cas_acq_rel(&most, &seen, now)) {
        }
        while (most < 2) sched_yield(); /* until another one comes: there is room for two */
        inside--;
        kl_cuda_strict_leave_block(0, 1024);
    }
    return nothing;
}

static void blocks_have_room_for_their_threads(void **state)
{
    pthread_t thread[THREADS];

    (void)state;
    for (int i = 0; i < THREADS; i++) assert_int_equal(pthread_create(&thread[i], NULL, run_blocks, NULL), 0);
    for (int i = 0; i < THREADS; i++) pthread_join(thread[i], NULL);
    assert_int_equal(most, 2);
}

/* ---- processes ---- */

/* Two processes count up together, each under the device: no count is lost. */
static int count_up(volatile int *counter)
{
    for (int i = 0; i < ROUNDS; i++) {
        kl_cuda_strict_enter(0);
        int now = *counter;
        sched_yield();
        *counter = now + 1;
        kl_cuda_strict_leave(0);
    }
    return 0;
}

static int processes_take_turns(void)
{
    int *counter = mmap(NULL, sizeof *counter, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0), status = 1;
    pid_t child = fork();

    if (!child) _exit(count_up(counter));
    (void)count_up(counter);
    if (waitpid(child, &status, 0) != child || status || *counter != 2 * ROUNDS) {
        fprintf(stderr, "the processes counted to %d, not to %d\n", *counter, 2 * ROUNDS);
        return 1;
    }
    return munmap(counter, sizeof *counter);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_waiting_head_holds_up_its_queue),
        cmocka_unit_test(a_stream_behind_an_event_holds_up_its_queue),
        cmocka_unit_test(blocks_have_room_for_their_threads),
    };

    setenv("KOLO_CUDA_STRICT", "1", 1);
    unsetenv("CUDA_DEVICE_MAX_CONNECTIONS");
    if (processes_take_turns()) return 1; /* before this process uses CUDA, which a child could not */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
