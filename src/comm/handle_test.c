/* SPDX-License-Identifier: Apache-2.0 */
#include "comm/handle.h"

#include "base/error.h"
#include "comm/comm.h"
#include "os/process.h"
#include "os/thread.h"
#include "tests/kolo_test.h"

#include <pthread.h>
#include <stdlib.h>

/* A communicator with nothing but its handle. */
static struct ncclComm *make(void)
{
    struct ncclComm *comm = aligned_alloc(KL_LINE, sizeof *comm);

    memset(comm, 0, sizeof *comm);
    comm->generation = kl_process_generation();
    assert_int_equal(kl_handle_open(comm), ncclSuccess);
    return comm;
}

static void end(struct ncclComm *comm)
{
    assert_true(kl_handle_close(comm));
    kl_handle_drain(comm);
    kl_handle_release(comm);
    free(comm);
}

static void a_handle_leads_to_its_communicator_while_it_lives(void **state)
{
    struct ncclComm *comm = make(), *found = NULL;
    ncclComm_t handle = comm->handle;

    (void)state;
    assert_int_equal(kl_handle_enter(handle, "here", &found), ncclSuccess);
    assert_ptr_equal(found, comm);
    assert_ptr_equal(kl_handle_try(handle), comm);
    assert_int_equal(kl_handle_callers(handle), 2);
    kl_handle_leave(comm);
    kl_handle_leave(comm);
    assert_int_equal(kl_handle_callers(handle), 0);
    end(comm);
    kl_error_quiet(1);
    assert_int_equal(kl_handle_enter(handle, "here", &found), ncclInvalidArgument);
    assert_non_null(strstr(kl_error_text(), "here: 0x"));
    assert_int_equal(kl_handle_enter(NULL, "here", &found), ncclInvalidArgument);
    assert_null(kl_handle_try(handle));
    assert_null(kl_handle_try(NULL));
    kl_error_quiet(0);
}

static void what_is_no_handle_is_found_out(void **state)
{
    struct ncclComm *comm = make();
    uintptr_t handle = (uintptr_t)comm->handle;
    static const uintptr_t strangers[] = {1, 2, 63, 64, 65535, 65536, (uintptr_t)1 << 16 | 40, UINTPTR_MAX, 12345678};
    int anything;

    (void)state;
    FOR_EACH_CASE(s, strangers)
    if (*s != handle) assert_null(kl_handle_try((ncclComm_t)*s));
    assert_null(kl_handle_try((ncclComm_t)(void *)&anything));
    assert_null(kl_handle_try((ncclComm_t)(handle + ((uintptr_t)1 << 16)))); /* a future use */
    assert_null(kl_handle_try((ncclComm_t)(handle + ((uintptr_t)2 << 16))));
    assert_null(kl_handle_try((ncclComm_t)(handle + 1)));
    assert_null(kl_handle_try((ncclComm_t)(handle + ((uintptr_t)1 << 40)))); /* the word has no more bits of a use */
    assert_null(kl_handle_try((ncclComm_t)(handle + ((uintptr_t)1 << 63))));
    end(comm);
    assert_null(kl_handle_try((ncclComm_t)(handle + ((uintptr_t)1 << 16)))); /* the handle of the empty slot */
}

static void one_thread_at_a_time_gives_work(void **state)
{
    struct ncclComm *comm = make(), *found = NULL;
    int nested;

    (void)state;
    kl_error_quiet(1);
    assert_int_equal(kl_handle_enter_as_issuer(comm->handle, "here", &found), ncclSuccess);
    assert_ptr_equal(found, comm);
    found = NULL;
    assert_int_equal(kl_handle_enter_as_issuer(comm->handle, "there", &found), ncclInvalidUsage);
    assert_non_null(strstr(kl_error_text(), "there: another thread"));
    assert_null(found);
    assert_int_equal(kl_handle_enter(comm->handle, "anyone", &found), ncclSuccess); /* may ask */
    assert_int_equal(kl_handle_callers(comm->handle), 2);
    kl_handle_leave(comm);
    kl_store_relaxed(&comm->waits_inline, (const void *)&nested); /* another thread does */
    assert_int_equal(kl_handle_enter_as_issuer(comm->handle, "there", &found), ncclInvalidUsage);
    kl_store_relaxed(&comm->waits_inline, kl_thread_self());
    assert_int_equal(kl_handle_enter_as_issuer(comm->handle, "inside", &found), ncclSuccess);
    kl_handle_leave_as_issuer(comm);
    kl_handle_end_issuing(comm);
    assert_int_equal(kl_handle_enter_as_issuer(comm->handle, "next", &found), ncclSuccess);
    kl_handle_leave_as_issuer(comm);
    assert_int_equal(kl_handle_callers(comm->handle), 1);
    kl_handle_leave(comm);
    assert_int_equal(kl_handle_callers(comm->handle), 0);
    kl_error_quiet(0);
    end(comm);
}

/* A thousand uses of a slot have a thousand handles and the memory of one. */
static void slots_are_reused_and_handles_are_not(void **state)
{
    ncclComm_t old[1000];

    (void)state;
    for (int i = 0; i < 1000; i++) {
        struct ncclComm *comm = make();
        old[i] = comm->handle;
        for (int k = 0; k < i; k++) assert_null(kl_handle_try(old[k]));
        assert_int_equal((uintptr_t)old[i] & 0xffff, (uintptr_t)old[0] & 0xffff);
        end(comm);
    }
}

static void many_live_side_by_side(void **state)
{
    enum { MANY = 300 }; /* several blocks of slots */
    struct ncclComm *comm[MANY];

    (void)state;
    for (int i = 0; i < MANY; i++) comm[i] = make();
    for (int i = 0; i < MANY; i++) {
        assert_ptr_equal(kl_handle_try(comm[i]->handle), comm[i]);
        kl_handle_leave(comm[i]);
    }
    for (int i = 0; i < MANY; i++) end(comm[i]);
}

static void one_of_those_who_close_ends_it(void **state)
{
    struct ncclComm *comm = make();

    (void)state;
    assert_ptr_equal(kl_handle_try(comm->handle), comm);
    assert_true(kl_handle_close(comm));
    assert_false(kl_handle_close(comm));
    assert_null(kl_handle_try(comm->handle));
    kl_handle_leave(comm);
    kl_handle_drain(comm);
    kl_handle_release(comm);
    free(comm);
}

/* ---- a thread calls while another destroys the communicator, over and over ---- */

struct race {
    _Atomic(ncclComm_t) handle;
    _Atomic uint32_t over, entered;
};

static void *call(void *arg)
{
    struct race *r = arg;

    while (!kl_load_acquire(&r->over)) {
        struct ncclComm *comm = kl_handle_try(kl_load_relaxed(&r->handle));
        if (!comm) continue;
        assert_int_equal(comm->rank, 7); /* neither freed nor another's */
        comm->nranks++;                  /* by one thread at a time; the other reads it when it has drained */
        kl_fetch_add_relaxed(&r->entered, 1);
        kl_handle_leave(comm);
    }
    return NULL;
}

static void nothing_is_freed_under_a_caller(void **state)
{
    struct race r = {.handle = NULL};
    pthread_t caller;

    (void)state;
    assert_int_equal(pthread_create(&caller, NULL, call, &r), 0);
    for (int i = 0; i < 20000 || !kl_load_relaxed(&r.entered); i++) {
        struct ncclComm *comm = aligned_alloc(KL_LINE, sizeof *comm);
        memset(comm, 0, sizeof *comm);
        comm->rank = 7;
        comm->generation = kl_process_generation();
        assert_int_equal(kl_handle_open(comm), ncclSuccess);
        kl_store_relaxed(&r.handle, comm->handle); /* the registry orders it all */
        assert_true(kl_handle_close(comm));
        kl_handle_drain(comm);
        assert_true(comm->nranks >= 0);
        comm->rank = -1;
        kl_handle_release(comm);
        free(comm);
    }
    kl_store_release(&r.over, 1);
    pthread_join(caller, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_handle_leads_to_its_communicator_while_it_lives),
        cmocka_unit_test(what_is_no_handle_is_found_out),
        cmocka_unit_test(one_thread_at_a_time_gives_work),
        cmocka_unit_test(slots_are_reused_and_handles_are_not),
        cmocka_unit_test(many_live_side_by_side),
        cmocka_unit_test(one_of_those_who_close_ends_it),
        cmocka_unit_test(nothing_is_freed_under_a_caller),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
