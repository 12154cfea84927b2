/* SPDX-License-Identifier: Apache-2.0 */
#include "coll/sendrecv.h"

#include "base/error.h"
#include "tests/kolo_test.h"

#include <stdlib.h>

enum { SLOT_BYTES = 1024, MOST = 3 << 20 };

static const struct kl_transport *const transports[] = {&kl_transport_p2p, &kl_transport_shm};

struct link {
    struct kl_connector tx, rx;
};

static void make_link(struct link *l, const struct kl_transport *t)
{
    struct kl_fifo_shape shape = {.nslots = 4, .slot_bytes = SLOT_BYTES};
    struct kl_connect_record record = {0};

    *l = (struct link){.tx = {.sends = true, .segment = KL_SEGMENT_NONE}, .rx = {.segment = KL_SEGMENT_NONE}};
    assert_int_equal(t->setup(&l->rx, &shape, &record), ncclSuccess);
    assert_int_equal(t->connect(&l->tx, &record, UINT64_MAX), ncclSuccess);
    t->settle(&l->rx);
    l->tx.transport = l->rx.transport = t;
}

static void free_link(struct link *l)
{
    kl_connector_free(&l->tx);
    kl_connector_free(&l->rx);
}

/* Run both sides until both are done; the receiver's result. */
static ncclResult_t transfer(struct link *l, char *from, size_t sent, char *to, size_t received)
{
    struct kl_message out = {.data = from, .bytes = sent}, in = {.data = to, .bytes = received};
    enum kl_progress s = KL_STALLED, r = KL_STALLED;
    ncclResult_t rc = ncclSuccess;

    for (int i = 0; i < 100000 && (s != KL_DONE || r != KL_DONE); i++) {
        if (s != KL_DONE) s = kl_send_progress(&out, &l->tx);
        if (r != KL_DONE) r = kl_recv_progress(&in, &l->rx, &rc);
        if (rc) return rc;
    }
    assert_int_equal(s, KL_DONE);
    assert_int_equal(r, KL_DONE);
    return rc;
}

static void messages_arrive_whole_and_in_order(void **state)
{
    static const size_t sizes[] = {0, 1, 104, 105, 1023, 1024, 1025, 4095, 4096, 100000, MOST};
    char *from = malloc(MOST), *to = malloc(MOST);

    (void)state;
    for (size_t i = 0; i < MOST; i++) from[i] = (char)(i * 7 + i / 251);
    FOR_EACH_CASE(t, transports)
    {
        struct link l;
        make_link(&l, *t);
        FOR_EACH_CASE(bytes, sizes)
        {
            memset(to, 0, MOST);
            assert_int_equal(transfer(&l, from, *bytes, to, *bytes), ncclSuccess);
            assert_memory_equal(from, to, *bytes);
        }
        free_link(&l);
    }
    free(from);
    free(to);
}

static void different_sizes_are_an_error(void **state)
{
    static const size_t sizes[][2] = {{0, 1},       {1, 0},       {10, 20},     {20, 10},
                                      {1024, 1025}, {3000, 2048}, {2048, 3000}, {9000, 5000}};
    char from[9000] = {0}, to[9000];

    (void)state;
    FOR_EACH_CASE(t, transports)
    FOR_EACH_CASE(pair, sizes)
    {
        struct link l;
        make_link(&l, *t);
        assert_int_equal(transfer(&l, from, (*pair)[0], to, (*pair)[1]), ncclInvalidUsage);
        assert_non_null(strstr(kl_error_text(), "counts or types differ"));
        kl_connector_revoke(&l.tx); /* does not wait for a reader that has refused */
        free_link(&l);
    }
}

static void a_revoked_message_is_not_read(void **state)
{
    char from[8192] = {0}, to[8192];
    struct kl_message out = {.data = from, .bytes = sizeof from}, in = {.data = to, .bytes = sizeof to};
    ncclResult_t rc = ncclSuccess;
    struct link l;

    (void)state;
    make_link(&l, &kl_transport_p2p);
    assert_int_equal(kl_send_progress(&out, &l.tx), KL_MOVED); /* lent, not yet read */
    kl_connector_revoke(&l.tx);
    kl_recv_progress(&in, &l.rx, &rc);
    assert_int_equal(rc, ncclRemoteError);
    free_link(&l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(messages_arrive_whole_and_in_order),
        cmocka_unit_test(different_sizes_are_an_error),
        cmocka_unit_test(a_revoked_message_is_not_read),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
