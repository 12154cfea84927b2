/* SPDX-License-Identifier: Apache-2.0 */
/* The RDMA net over the stand-in of compat/verbs: the behaviour of every net, faults of the device, and their sentences. */
#include "net/test_own_nets.h"

#include "net/verbs/device.h"
#include "net/verbs/reason.h"
#include "net/verbs/ring.h"
#include "tests/leftovers.h"
#include "tests/sysfs_tree.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>

/* ---- settings; each case runs in a process of its own, because a process finds its devices once ---- */

struct with {
    const char *name, *value;
};

static int (*child_body)(void);
static int child_result;

static void run_body(void **state)
{
    (void)state;
    child_result = child_body();
}

enum { FAILED = 99 };

/* `body` runs as a test, or runs tests itself. */
static int run_in_child(const struct with *with, int (*body)(void), bool is_group)
{
    int status = -1;

    fflush(stdout);
    pid_t pid = fork();
    if (!pid) {
        setenv("NCCL_IBVERBS_LIB", KOLO_VERBS_STANDIN, 1);
        setenv("NCCL_SOCKET_IFNAME", "=lo", 1);
        setenv("NCCL_SOCKET_RETRY_CNT", "2", 1);
        for (const struct with *w = with; w && w->name; w++) setenv(w->name, w->value, 1);
        kl_error_quiet(1);
        if (is_group) exit(body());
        child_body = body;
        const struct CMUnitTest tests[] = {cmocka_unit_test(run_body)};
        exit(cmocka_run_group_tests(tests, NULL, NULL) ? FAILED : child_result);
    }
    if (pid < 0 || waitpid(pid, &status, 0) != pid) return -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static int in_child(const struct with *with, int (*body)(void))
{
    return run_in_child(with, body, false);
}

static void expect_tests_under(const struct with *with, int (*tests)(void))
{
    assert_int_equal(run_in_child(with, tests, true), 0);
}

static void expect_under(const struct with *with, int (*body)(void))
{
    assert_int_equal(in_child(with, body), 0);
}

static void fault(const char *text)
{
    void *library = dlopen(KOLO_VERBS_STANDIN, RTLD_NOW | RTLD_NOLOAD);
    void (*set)(const char *) = NULL;

    if (library) *(void **)&set = dlsym(library, "kolo_verbs_fault");
    assert_non_null(set);
    set(text);
    dlclose(library);
}

/* ---- the behaviour of every net ---- */

#define T(f) cmocka_unit_test_setup_teardown(f, note_fds, expect_no_more_fds)

static void both_directions_of_one_link(void **state)
{
    unsigned char from[2][4096], to[2][4096];
    void *back = NULL, *from_back = NULL, *request[4];
    struct kl_net_end back_sender = end_of(1, 0, 9), back_receiver = end_of(0, 1, 9);
    struct pair p;

    (void)state;
    pair_listen(&p);
    p.sender.both_ways = true;
    pair_join(&p);
    assert_int_equal(net->recv_back(p.send, &back_receiver, &from_back), ncclInProgress);
    assert_int_equal(net->send_back(p.recv, &back_sender, &back), ncclSuccess);
    assert_non_null(back);
    ncclResult_t rc;
    do rc = net->recv_back(p.send, &back_receiver, &from_back);
    while (rc == ncclInProgress);
    assert_int_equal(rc, ncclSuccess);
    for (unsigned round = 0; round < 300; round++) {
        size_t bytes = round % 3 ? 100 : 4096;
        for (unsigned i = 0; i < 2; i++) fill(from[i], bytes, round + i);
        request[0] = post_recv(p.recv, to[0], 4096, 1);
        request[1] = post_recv(from_back, to[1], 4096, 1);
        request[2] = post_send(p.send, from[0], bytes, 1);
        request[3] = post_send(back, from[1], bytes, 1);
        assert_int_equal(finish(request, 4, NULL), ncclSuccess);
        for (unsigned i = 0; i < 2; i++) assert_true(filled(to[i], bytes, round + i));
    }
    void *last = post_recv(from_back, to[1], 10, 1);
    net->close_send(back);
    assert_int_equal(outcome_of(last), ncclRemoteError);
    net->close_recv(from_back);
    pair_close(&p);
}

static void registered_memory_is_used_in_place(void **state)
{
    enum { BYTES = 3 << 20 };
    unsigned char *from = malloc(BYTES), *to = malloc(BYTES);
    void *mr[3], *request[2] = {NULL, NULL};
    struct pair p;

    (void)state;
    pair_open(&p);
    fill(from, BYTES, 3);
    assert_int_equal(net->reg_mr(p.send, from, BYTES, KL_NET_HOST, &mr[0]), ncclSuccess);
    assert_int_equal(net->reg_mr(p.recv, to, BYTES, KL_NET_HOST, &mr[1]), ncclSuccess);
    assert_int_equal(net->reg_mr(p.send, from + 100, 100, KL_NET_HOST, &mr[2]), ncclSuccess);
    assert_ptr_equal(mr[2], mr[0]); /* its pages are registered */
    const struct kl_net_recv one = {.data = to, .bytes = BYTES, .mr = mr[1]};
    assert_int_equal(net->irecv(p.recv, 1, &one, &request[0]), ncclSuccess);
    assert_int_equal(net->isend(p.send, from, BYTES, 0, mr[0], &request[1]), ncclSuccess);
    assert_int_equal(finish(request, 2, NULL), ncclSuccess);
    assert_true(filled(to, BYTES, 3));
    assert_int_equal(net->reg_mr(p.send, from, BYTES, KL_NET_CUDA, &mr[2]), ncclInvalidArgument);
    net->dereg_mr(p.send, mr[0]);
    net->dereg_mr(p.send, mr[0]);
    net->dereg_mr(p.recv, mr[1]);
    pair_close(&p);
    free(from);
    free(to);
}

/* Whole pages that only their descriptor leads to, as to memory of a GPU. */
static int pages_apart(size_t bytes, void **at)
{
    const int fd = memfd_create("verbs_test", MFD_CLOEXEC);

    *at = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(fd >= 0 && !ftruncate(fd, (off_t)bytes) && *at != MAP_FAILED);
    return fd;
}

static void memory_behind_a_descriptor_is_used_in_place(void **state)
{
    enum { BYTES = 3 << 20, PART = BYTES - 5000 };
    unsigned char *data = malloc(BYTES);
    void *at[2], *mr[2], *request[2] = {NULL, NULL};
    struct pair p;

    (void)state;
    pair_open(&p);
    const int from = pages_apart(BYTES, &at[0]), to = pages_apart(BYTES, &at[1]);
    fill(data, BYTES, 3);
    assert_int_equal(pwrite(from, data, BYTES, 0), BYTES);
    assert_int_equal(lseek(from, 0, SEEK_SET), 0);
    assert_int_equal(net->reg_mr_dmabuf(p.send, at[0], BYTES, 0, from, &mr[0]), ncclSuccess);
    assert_int_equal(net->reg_mr_dmabuf(p.recv, at[1], BYTES, 0, to, &mr[1]), ncclSuccess);
    assert_int_equal(net->reg_mr_dmabuf(p.recv, at[1], BYTES, 0, -1, &mr[1]), ncclInvalidArgument);
    const struct kl_net_recv one = {.data = (char *)at[1] + 100, .bytes = PART, .mr = mr[1]};
    assert_int_equal(net->irecv(p.recv, 1, &one, &request[0]), ncclSuccess);
    assert_int_equal(net->isend(p.send, (char *)at[0], PART, 0, mr[0], &request[1]), ncclSuccess);
    assert_int_equal(finish(request, 2, NULL), ncclSuccess);
    memset(data, 0, BYTES);
    assert_int_equal(pread(to, data, PART, 100), PART);
    assert_true(filled(data, PART, 3));
    net->dereg_mr(p.send, mr[0]);
    net->dereg_mr(p.recv, mr[1]);
    pair_close(&p);
    for (int i = 0; i < 2; i++) munmap(at[i], BYTES);
    close(from);
    close(to);
    free(data);
}

static int conformance(void)
{
    const struct CMUnitTest tests[] = {CONFORMANCE_TESTS, OWN_NETS_TESTS, T(both_directions_of_one_link),
                                       T(registered_memory_is_used_in_place)};

    if (net->init()) return 1;
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* With retries of days: a process that dies is noticed by other means, or not at all. */
static void it_conforms(void **state)
{
    static const struct with patient[] = {{"NCCL_IB_TIMEOUT", "31"}, {"NCCL_IB_RETRY_CNT", "7"}, {NULL, NULL}};

    (void)state;
    expect_tests_under(patient, conformance);
}

/* Small limits of a device: several writes for one message, no inline data; and several queue pairs. */
static int messages(void)
{
    const struct CMUnitTest tests[] = {T(every_size_arrives), T(many_are_outstanding), T(both_directions_of_one_link),
                                       T(registered_memory_is_used_in_place),
                                       T(memory_behind_a_descriptor_is_used_in_place)};

    if (net->init()) return 1;
    return cmocka_run_group_tests(tests, NULL, NULL);
}

static void limits_of_cards(void **state)
{
    static const struct with small[] = {{"KOLO_VERBS_MAX_MSG", "8192"}, {"KOLO_VERBS_INLINE", "0"}, {NULL, NULL}},
                             pairs[] = {{"NCCL_IB_QPS_PER_CONNECTION", "3"}, {NULL, NULL}},
                             infiniband[] = {{"KOLO_VERBS_LINK", "IB"}, {NULL, NULL}};

    (void)state;
    expect_tests_under(small, messages);
    expect_tests_under(pairs, messages);
    expect_tests_under(infiniband, messages);
}

/* ---- faults ---- */

/* Each status of a completion ends the connection with its number, its name and a cause, at the end that sees it. */
static int every_status(void)
{
    char text[32], byte = 0;

    if (net->init()) return 1;
    for (int status = 1; status < KL_IBV_WC_STATUSES; status++) {
        struct pair p;
        void *request;
        pair_open(&p);
        snprintf(text, sizeof text, "send:%d@1", status);
        fault(text);
        ncclResult_t rc = net->isend(p.send, &byte, 1, 0, NULL, &request);
        if (!rc) rc = outcome_of(request);
        fault("");
        assert_int_equal(rc, ncclRemoteError);
        snprintf(text, sizeof text, "status %d (%.16s", status, kl_verbs()->wc_status_str(status));
        expect_in_error(text);
        expect_in_error(kl_verbs_status_cause(status));
        expect_in_error("rank 0 has lost its connection with rank 1 at 127.0.0.1:");
        expect_in_error("kolo0 port 1");
        expect_in_error("GID [3] ::ffff:127.0.0.1");
        pair_close(&p);
    }
    return 0;
}

static void a_receive_that_fails(void)
{
    struct pair p;
    char byte;

    pair_open(&p);
    fault("recv:4@1");
    void *recv = post_recv(p.recv, &byte, 1, 0), *send = post_send(p.send, "x", 1, 0);
    assert_int_equal(outcome_beside(recv, send), ncclRemoteError);
    fault("");
    expect_in_error("status 4 (local protection error), vendor code 0, of a receive");
    pair_close(&p);
}

static void a_card_that_fails(void)
{
    struct pair p;
    char byte;

    pair_open(&p);
    fault("async:8@1"); /* DEVICE_FATAL */
    (void)post_recv(p.recv, &byte, 1, 0);
    void *never = post_recv(p.recv, &byte, 1, 0), *send = NULL;
    ncclResult_t rc = net->isend(p.send, "x", 1, 0, NULL, &send); /* it may notice the event, too */
    if (!rc) rc = outcome_beside(never, send);
    fault("");
    assert_int_equal(rc, ncclSystemError);
    expect_in_error("kolo0 has failed: local catastrophic error");
    pair_close(&p);
}

static int other_faults(void)
{
    if (net->init()) return 1;
    a_receive_that_fails();
    a_card_that_fails(); /* the last: the device stays so */
    return 0;
}

static void faults_are_named(void **state)
{
    (void)state;
    expect_under(NULL, every_status);
    expect_under(NULL, other_faults);
}

/* Connect both ends; the sender's and the receiver's result. */
static void join_results(struct pair *p, ncclResult_t *sent, ncclResult_t *received)
{
    uint64_t deadline = kl_deadline_in_ms(kolo_test_hang_ms());

    *sent = *received = ncclInProgress;
    pair_listen(p);
    while (*sent == ncclInProgress || *received == ncclInProgress) {
        pair_step(p, sent, received);
        if (kl_deadline_passed(deadline)) fail_msg("connecting does not end");
    }
}

static void refused_connection(const char *faults, const char *sentence, const char *peers)
{
    ncclResult_t sent, received;
    struct pair p;

    fault(faults);
    pair_listen(&p);
    sent = received = ncclInProgress;
    while (sent == ncclInProgress) pair_step(&p, &sent, &received);
    fault("");
    if (received == ncclInProgress) {
        expect_in_error(sentence);
        while (received == ncclInProgress) received = net->accept(p.listener, &p.receiver, &p.recv);
        expect_in_error(peers);
    }
    assert_true(sent && received);
    pair_close(&p);
}

/* Of the sender: it creates its queue pair before it says anything. */
static int connecting_fails(void)
{
    static const char says[] = "rank 1 cannot connect with rank 0 at 127.0.0.1";

    if (net->init()) return 1;
    refused_connection("create_qp:12@1", "kolo0 cannot create a queue pair for rank 1: Cannot allocate memory", says);
    refused_connection("create_cq:12@1", "kolo0 cannot create a completion queue for rank 1", says);
    refused_connection("reg_mr:12@1", "kolo0 cannot register", says);
    refused_connection("modify_init:22@1", "to INIT", says);
    return 0;
}

static int receiver_cannot_connect(void)
{
    static const struct {
        const char *fault, *cause;
    } rows[] = {{"modify_rtr:110@1", "does not answer (ARP, neighbour discovery)"},
                {"modify_rtr:101@1", "there is no route from this GID to the peer's"},
                {"modify_rtr:22@1", "the GID has gone from the port's table"},
                {"modify_rts:12@1", "the limit of locked memory is exhausted"}};

    if (net->init()) return 1;
    FOR_EACH_CASE(row, rows)
    {
        ncclResult_t sent, received;
        struct pair p;
        fault(row->fault);
        join_results(&p, &sent, &received);
        fault("");
        assert_int_equal(received, ncclSystemError);
        assert_int_equal(sent, ncclRemoteError);
        expect_in_error(row->cause); /* the sender's sentence has the receiver's in it */
        expect_in_error("which says: rank 1 cannot connect kolo0 port 1 with rank 0");
        pair_close(&p);
    }
    return 0;
}

static void connecting_that_fails_is_explained(void **state)
{
    (void)state;
    expect_under(NULL, connecting_fails);
    expect_under(NULL, receiver_cannot_connect);
}

/* ---- memory that may not be locked ---- */

static int limited(void)
{
    struct pair p;
    void *mr;

    setrlimit(RLIMIT_MEMLOCK, &(struct rlimit){.rlim_cur = 64 << 10, .rlim_max = 64 << 10});
    if (net->init()) return 1;
    pair_open(&p);
    fault("reg_mr:12@1");
    assert_int_equal(net->reg_mr(p.send, &p, sizeof p, KL_NET_HOST, &mr), ncclSystemError);
    fault("");
    expect_in_error("the limit of locked memory is 64 KiB: raise it (`ulimit -l unlimited`");
    pair_close(&p);
    return 0;
}

static void the_limit_of_locked_memory_is_named(void **state)
{
    (void)state;
    expect_under(NULL, limited);
}

/* ---- GIDs ---- */

static int absent_gid(void)
{
    ncclResult_t sent, received;
    struct pair p;

    if (net->init()) return 1;
    pair_listen(&p);
    sent = received = ncclInProgress;
    while (sent == ncclInProgress) pair_step(&p, &sent, &received);
    assert_int_equal(sent, ncclInvalidUsage);
    expect_in_error("NCCL_IB_GID_INDEX=6: kolo0 port 1 has no GID there, but [0] fe80::1");
    pair_close(&p);
    return 0;
}

/* A link-local GID: the peer is not reached, which the device notices after its retries. */
static int wrong_gid(void)
{
    ncclResult_t sent, received;
    struct pair p;
    char byte;

    if (net->init()) return 1;
    join_results(&p, &sent, &received);
    assert_true(!sent && !received);
    void *recv = post_recv(p.recv, &byte, 1, 0);
    assert_int_equal(outcome_of(post_send(p.send, "x", 1, 0)), ncclRemoteError);
    expect_in_error("status 12 (transport retry counter exceeded), vendor code 129");
    expect_in_error("GID [1] fe80::1 (RoCE v2) to [1] fe80::1 (RoCE v2)");
    expect_in_error("likely: a wrong GID (NCCL_IB_GID_INDEX)");
    expect_in_error("counters that moved: local_ack_timeout_err +1");
    assert_int_equal(outcome_of(recv), ncclRemoteError);
    pair_close(&p);
    return 0;
}

static void make_ports(char root[64])
{
    static const char port[] = "class/infiniband/kolo0/ports/1";
    char line[256];

    strcpy(root, "/tmp/kolo_sysfs_XXXXXX");
    assert_non_null(mkdtemp(root));
    for (int i = 0; i < 4; i++) {
        snprintf(line, sizeof line, "%s/gid_attrs/types/%d : %s", port, i, i % 2 ? "RoCE v2" : "IB/RoCE v1");
        sysfs_tree_line(root, line);
    }
    snprintf(line, sizeof line, "%s/hw_counters/local_ack_timeout_err : 5", port);
    sysfs_tree_line(root, line);
}

static void wrong_gids_are_explained(void **state)
{
    char root[64];

    (void)state;
    make_ports(root);
    const struct with absent[] = {{"NCCL_IB_GID_INDEX", "6"}, {NULL, NULL}}, wrong[] = {{"NCCL_IB_GID_INDEX", "1"},
                                                                                        {"NCCL_IB_TIMEOUT", "8"},
                                                                                        {"NCCL_IB_RETRY_CNT", "1"},
                                                                                        {"KOLO_VERBS_SYSFS", root},
                                                                                        {NULL, NULL}};
    expect_under(absent, absent_gid);
    expect_under(wrong, wrong_gid);
    sysfs_tree_remove(root);
}

/* ---- devices ---- */

static int starts(void)
{
    return net->init();
}

static int is_described(void)
{
    struct kl_net_properties p;

    if (net->init() || net->devices() != 3) return 1;
    assert_int_equal(net->properties(1, &p), ncclSuccess);
    assert_string_equal(p.name, "kolo1");
    assert_int_equal(p.speed_mbps, 100000);
    assert_int_equal(p.guid, 2);
    assert_int_equal(p.port, 1);
    assert_int_equal(p.memory & ~(unsigned)KL_NET_CUDA, KL_NET_HOST | KL_NET_DMABUF);
    return net->properties(3, &p) != ncclInvalidArgument;
}

/* libibverbs knows speeds that the attributes of a port have no number for. */
static int is_of_800_gbps(void)
{
    struct kl_net_properties p;

    if (net->init() || net->properties(0, &p)) return 1;
    return p.speed_mbps != 800000;
}

static int is_not_there(void)
{
    ncclResult_t rc = net->init();

    if (rc) expect_in_error(getenv("EXPECTED"));
    return rc ? 0 : 1;
}

static int is_selected(void)
{
    const struct kl_net *chosen = NULL;
    ncclResult_t rc = kl_net_ref(getenv("WANTED"), &chosen);

    return rc ? 10 : chosen == &kl_net_verbs ? 0 : 1;
}

static void devices_and_why_not(void **state)
{
    static const struct with
        three[] = {{"KOLO_VERBS_DEVICES", "3"}, {NULL, NULL}},
        fast[] = {{"KOLO_VERBS_SPEED", "800000"}, {NULL, NULL}},
        none[] = {{"KOLO_VERBS_DEVICES", "0"}, {"EXPECTED", "no RDMA device"}, {NULL, NULL}},
        others[] = {{"NCCL_IB_HCA", "mlx5"}, {"EXPECTED", "kolo0:1 is not in NCCL_IB_HCA"}, {NULL, NULL}},
        down[] = {{"KOLO_VERBS_FAULT", "port_down:1"}, {"EXPECTED", "kolo0:1 is not active"}, {NULL, NULL}},
        off[] = {{"NCCL_IB_DISABLE", "1"}, {"EXPECTED", "NCCL_IB_DISABLE=1"}, {NULL, NULL}},
        shut[] = {{"KOLO_VERBS_FAULT", "open:13"}, {"EXPECTED", "kolo0:1 cannot be opened"}, {NULL, NULL}},
        crypt[] = {{"KOLO_NET_CRYPT", "1"},
                   {"EXPECTED", "KOLO_NET_CRYPT=1 asks for encryption, which RDMA does not have"},
                   {NULL, NULL}},
        missing[] = {{"NCCL_IBVERBS_LIB", "/nowhere/x.so"},
                     {"EXPECTED", "NCCL_IBVERBS_LIB=/nowhere/x.so cannot be loaded"},
                     {NULL, NULL}},
        stranger[] = {{"NCCL_IBVERBS_LIB", "libm.so.6"}, {"EXPECTED", "has no function ibv_"}, {NULL, NULL}};

    (void)state;
    expect_under(NULL, starts);
    expect_under(three, is_described);
    expect_under(fast, is_of_800_gbps);
    expect_under(none, is_not_there);
    expect_under(others, is_not_there);
    expect_under(down, is_not_there);
    expect_under(off, is_not_there);
    expect_under(shut, is_not_there);
    expect_under(crypt, is_not_there);
    expect_under(missing, is_not_there);
    expect_under(stranger, is_not_there);
}

static void selection_is_as_of_nccl(void **state)
{
    static const struct with any[] = {{"WANTED", ""}, {NULL, NULL}}, ib[] = {{"WANTED", "ib"}, {NULL, NULL}},
                             verbs[] = {{"WANTED", "verbs"}, {NULL, NULL}},
                             socket[] = {{"WANTED", "Socket"}, {NULL, NULL}},
                             none[] = {{"WANTED", ""}, {"KOLO_VERBS_DEVICES", "0"}, {NULL, NULL}},
                             refused[] = {{"WANTED", "IB"}, {"KOLO_VERBS_DEVICES", "0"}, {NULL, NULL}},
                             crypt[] = {{"WANTED", "IB"}, {"KOLO_NET_CRYPT", "1"}, {NULL, NULL}};

    (void)state;
    assert_int_equal(in_child(any, is_selected), 0);
    assert_int_equal(in_child(ib, is_selected), 0);
    assert_int_equal(in_child(verbs, is_selected), 0);
    assert_int_equal(in_child(socket, is_selected), 1);
    assert_int_equal(in_child(none, is_selected), 1);
    assert_int_equal(in_child(refused, is_selected), 10);
    assert_int_equal(in_child(crypt, is_selected), 10);
}

/* The devices stay open. */
struct kolo_test_keep kolo_test_keeps[] = {
    {"/dev/infiniband/", 1, 0}, {"anon_inode:[infinibandevent]", 1, 0}, {NULL, 0, 0}};

/* Over libibverbs as it is, and the first port: without processes that are forked with an open device. */
static int on_hardware(void)
{
    const struct CMUnitTest tests[] = {CONFORMANCE_TESTS_ALONE, OWN_NETS_TESTS, T(both_directions_of_one_link),
                                       T(registered_memory_is_used_in_place)};

    kl_error_quiet(1);
    if (net->init()) {
        printf("skipped: %s\n", kl_error_text());
        return KOLO_TEST_SKIP;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(devices_and_why_not),
        cmocka_unit_test(selection_is_as_of_nccl),
        cmocka_unit_test(faults_are_named),
        cmocka_unit_test(connecting_that_fails_is_explained),
        cmocka_unit_test(the_limit_of_locked_memory_is_named),
        cmocka_unit_test(wrong_gids_are_explained),
        cmocka_unit_test(limits_of_cards),
        cmocka_unit_test(it_conforms),
    };

    net = &kl_net_verbs;
    if (argc > 1 && !strcmp(argv[1], "--hardware")) return on_hardware();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
