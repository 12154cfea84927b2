/* SPDX-License-Identifier: Apache-2.0 */
/* Connections over sockets: messages of all sizes, order and tags, errors, deadlines, sleeping. */
#include "net/test_own_nets.h"

#include "net/socket/session_params.h"
#include "os/socket.h"

#include "tests/hang.h"

#include <poll.h>

/* ---- messages ---- */

/* ---- sleeping ---- */

/* Send until `fd` becomes readable. One attempt may find the sockets full: the kernel frees read buffers at its own
 * pace. */
static void wake_by_sending(void **send, struct pollfd *fd)
{
    uint64_t deadline = kl_deadline_in_ms(kolo_test_hang_ms());
    bool done;

    while (poll(fd, 1, 1) != 1) {
        if (kl_deadline_passed(deadline)) fail_msg("a wake-up is lost");
        if (!*send) continue;
        assert_int_equal(net->test(*send, &done, NULL), ncclSuccess);
        if (done) *send = NULL;
    }
}

/* A test between sleep_on and the sleep reads the head of a message whose data comes on other sockets. */
static void what_work_finds_is_waited_for(void **state)
{
    enum { BYTES = 32 << 20, ENOUGH = 100 }; /* more than the sockets hold; rounds that empty them */
    unsigned char *from = calloc(1, BYTES), *to = malloc(BYTES);
    struct pollfd fd = {.events = POLLIN};
    struct pair p;
    bool done;

    (void)state;
    pair_open(&p);
    void *recv = post_recv(p.recv, to, BYTES, 0);
    assert_int_equal(net->sleep_on(p.recv, &fd.fd), ncclSuccess);
    void *send = post_send(p.send, from, BYTES, 0);
    for (int i = 0; i < ENOUGH; i++) {
        assert_int_equal(net->test(recv, &done, NULL), ncclSuccess);
        if (done) break; /* threads of the sender moved the rest */
    }
    if (!done) {
        wake_by_sending(&send, &fd);
        while (send || recv) {
            if (send) assert_int_equal(net->test(send, &done, NULL), ncclSuccess);
            if (send && done) send = NULL;
            if (recv) assert_int_equal(net->test(recv, &done, NULL), ncclSuccess);
            if (recv && done) recv = NULL;
        }
    } else if (send) {
        assert_int_equal(outcome_of(send), ncclSuccess);
    }
    assert_memory_equal(from, to, BYTES);
    pair_close(&p);
    free(from);
    free(to);
}

/* ---- failures ---- */

/* ---- devices ---- */

static void devices_describe_themselves(void **state)
{
    struct kl_net_properties q;
    struct pair p;
    void *mr;

    (void)state;
    assert_true(net->devices() >= 1);
    assert_int_equal(net->properties(0, &q), ncclSuccess);
    assert_true(q.speed_mbps > 0 && q.max_recvs == KL_NET_RECVS && q.memory == KL_NET_HOST && q.max_bytes >> 40);
    if (*getenv("NCCL_SOCKET_IFNAME")) assert_string_equal(q.name, getenv("NCCL_SOCKET_IFNAME") + 1);
    assert_int_equal(net->properties(net->devices(), &q), ncclInvalidArgument);
    assert_int_equal(net->properties(-1, &q), ncclInvalidArgument);
    pair_open(&p);
    assert_int_equal(net->reg_mr(p.send, &p, sizeof p, KL_NET_HOST, &mr), ncclSuccess);
    assert_int_equal(net->dereg_mr(p.send, mr), ncclSuccess);
    assert_int_equal(net->reg_mr(p.send, &p, sizeof p, KL_NET_CUDA, &mr), ncclInvalidArgument);
    assert_int_equal(net->iflush(p.recv, 0, NULL, &mr), ncclSuccess);
    assert_null(mr);
    pair_close(&p);
}

static int traffic(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, note_fds, expect_no_more_fds)
    const struct CMUnitTest tests[] = {
        CONFORMANCE_TESTS,
        OWN_NETS_TESTS,
        T(what_work_finds_is_waited_for),
        T(devices_describe_themselves),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(void)
{
    return run_under_all(traffic);
}
