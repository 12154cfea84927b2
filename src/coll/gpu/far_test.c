/* SPDX-License-Identifier: Apache-2.0 */
#include "coll/gpu/far.h"

#include "tests/kolo_test.h"

#include <stdlib.h>

/* ---- a driver that notes the mapped memory ---- */

enum { MOST = 2 * KL_GPU_IMPORTS };

static struct {
    bool mapped[MOST]; /* by the number in the handle */
} gpu;

static int push(kl_cu_context context)
{
    (void)context;
    return 0;
}

static int pop(kl_cu_context *context)
{
    *context = NULL;
    return 0;
}

static int exchange(int *mode)
{
    (void)mode;
    return 0;
}

static int synchronize(kl_cu_stream stream)
{
    (void)stream;
    return 0;
}

static int open_handle(uint64_t *at, struct kl_cu_ipc_handle handle, unsigned flags)
{
    int number;

    memcpy(&number, &handle, sizeof number);
    assert_int_equal(flags, KL_CU_IPC_PEER_ACCESS);
    assert_false(gpu.mapped[number]);
    gpu.mapped[number] = true;
    *at = 0x1000u * (uint64_t)(number + 1);
    return 0;
}

static int close_handle(uint64_t at)
{
    const size_t number = at / 0x1000 - 1;

    assert_true(number < MOST && gpu.mapped[number]);
    gpu.mapped[number] = false;
    return 0;
}

static const struct kl_cuda_driver driver = {
    .cuCtxPushCurrent = push,
    .cuCtxPopCurrent = pop,
    .cuThreadExchangeStreamCaptureMode = exchange,
    .cuStreamSynchronize = synchronize,
    .cuIpcOpenMemHandle = open_handle,
    .cuIpcCloseMemHandle = close_handle,
};
static const struct kl_cuda_context context = {.driver = &driver};
static const struct kl_gpu_worker worker = {.context = &context};

static int count_mapped(void)
{
    int n = 0;

    for (int i = 0; i < MOST; i++) n += gpu.mapped[i];
    return n;
}

/* An allocation of rank 1, which is another process's. */
static ncclResult_t import(struct kl_gpu_team *team, int number)
{
    struct kl_gpu_export_handle exported = {.base = 0x100u * (uint64_t)(number + 1), .id = (uint64_t)number + 1};
    void *at = NULL;

    memcpy(&exported.handle, &number, sizeof number);
    ncclResult_t rc = kl_gpu_far_import(team, &worker, 1, &exported, &at);
    if (!rc) assert_true(gpu.mapped[number] && (uintptr_t)at == 0x1000u * (uintptr_t)(number + 1));
    return rc;
}

static int32_t process_of_rank[] = {0, 1};

static struct kl_gpu_far *far_of(struct kl_gpu_team *team)
{
    struct kl_gpu_far *far = calloc(1, sizeof *far);

    assert_non_null(far);
    memset(&gpu, 0, sizeof gpu);
    far->process = process_of_rank;
    team->far = far;
    return far;
}

/* ---- cases ---- */

/* Of a later operation they may go. */
static void memory_of_an_operation_stays_mapped(void **state)
{
    struct kl_gpu_team team = {.nranks = 2};
    struct kl_gpu_far *far = far_of(&team);

    (void)state;
    far->looks = 1;
    for (int i = 0; i < KL_GPU_IMPORTS; i++) assert_int_equal(import(&team, i), ncclSuccess);
    assert_int_equal(import(&team, KL_GPU_IMPORTS), ncclInvalidUsage);
    assert_non_null(strstr(kl_error_text(), "rank 1: an operation and graphs use 256 allocations"));
    assert_int_equal(count_mapped(), KL_GPU_IMPORTS);
    for (int i = 0; i < KL_GPU_IMPORTS; i++) assert_int_equal(import(&team, i), ncclSuccess);
    far->looks = 2;
    for (int i = 1; i <= 5; i++) assert_int_equal(import(&team, KL_GPU_IMPORTS + i), ncclSuccess);
    for (int i = 1; i <= 5; i++) assert_true(gpu.mapped[KL_GPU_IMPORTS + i]);
    assert_int_equal(count_mapped(), KL_GPU_IMPORTS);
    free(far);
}

static void memory_of_graphs_stays_mapped(void **state)
{
    struct kl_gpu_team team = {.nranks = 2};
    struct kl_gpu_far *far = far_of(&team);

    (void)state;
    team.capture = 7;
    for (int i = 0; i < KL_GPU_IMPORTS; i++) {
        far->looks++;
        assert_int_equal(import(&team, i), ncclSuccess);
    }
    team.capture = 0;
    far->looks++;
    assert_int_equal(import(&team, KL_GPU_IMPORTS), ncclInvalidUsage);
    assert_int_equal(count_mapped(), KL_GPU_IMPORTS);
    free(far);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_of_an_operation_stays_mapped),
        cmocka_unit_test(memory_of_graphs_stays_mapped),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
