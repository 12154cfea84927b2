/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Jobs that a rank cannot join - the secret, the address, the interface, the topology, too few descriptors - and jobs that run with little: each
 * rank reports the reason itself. Its ranks are processes (own_ranks.h).
 */
#include "include/kolo.h"

#include "tests/free_port.h"
#include "tests/kolo_test.h"
#include "tests/own_ranks.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

enum { RANKS = 4, COUNT = 1 << 18, FEW_FILES = 32, USED_UP_FILES = 80, NO_FILES = 6 };

/* ---- a rank ---- */

static ncclResult_t reduce(ncclComm_t comm)
{
    float *data = calloc(COUNT, sizeof *data);
    ncclResult_t rc = ncclAllReduce(data, data, COUNT, ncclFloat, ncclSum, comm, NULL);

    rc = rc ? rc : koloStreamSynchronize(NULL);
    free(data);
    return rc;
}

/* The topology file cannot be read: this machine is used instead. Or there are no more descriptors than the standard ones, the loop's, the
 * rendezvous's, one for each connection, and two or three for memory. */
static int reduce_once(int rank, ncclComm_t comm)
{
    ncclResult_t rc = reduce(comm);

    if (rc) fprintf(stderr, "rank %d: %d %s\n", rank, rc, ncclGetLastError(comm));
    return rc || ncclCommDestroy(comm) ? 1 : EXIT_AS_EXPECTED;
}

/* Communicator after communicator, until one of the processes has no descriptor left: all ranks get its name and the
 * reason at once. */
static int use_up_files(int rank, ncclComm_t comm)
{
    ncclResult_t rc = ncclSuccess;
    ncclComm_t child;
    float data[8] = {0};

    for (int i = 0; i < 1000 && !rc; i++) {
        rc = ncclCommSplit(comm, 0, rank, &child, NULL);
        rc = rc ? rc : ncclAllReduce(data, data, 8, ncclFloat, ncclSum, child, NULL);
        rc = rc ? rc : koloStreamSynchronize(NULL);
    }
    bool fine = says(ncclGetLastError(NULL), "raise `ulimit -n`") && says(ncclGetLastError(NULL), "rank ");
    if (!fine) fprintf(stderr, "rank %d: %d %s\n", rank, rc, ncclGetLastError(NULL));
    return rc && fine ? EXIT_AS_EXPECTED : 1; /* the others may still be told */
}

static const struct role {
    const char *name;
    rlim_t files;                          /* descriptors of its process; 0: as many as the test's */
    int (*run)(int rank, ncclComm_t comm); /* after joining, or */
    ncclResult_t rc;                       /* the result of joining */
    const char *words;                     /* and words of its text */
} roles[] = {
    {"missing", 0, NULL, ncclRemoteError, "rank 1"},
    {"secret", 0, NULL, ncclRemoteError, "secret"},
    {"malformed", 0, NULL, ncclInternalError, "topology.xml:3:"},
    {"version", 0, NULL, ncclInvalidUsage, "version"},
    {"unreadable", 0, reduce_once, ncclSuccess, NULL},
    {"taken", 0, NULL, ncclSystemError, "in use"},
    {"nointerface", 0, NULL, ncclSystemError, "interface"},
    {"few_files", FEW_FILES, reduce_once, ncclSuccess, NULL},
    {"use_up_files", USED_UP_FILES, use_up_files, ncclSuccess, NULL},
    {"no_files", NO_FILES, NULL, ncclSystemError, "raise `ulimit -n`"},
};

static const struct role *role_named(const char *name)
{
    for (size_t i = 0; i < sizeof roles / sizeof roles[0]; i++)
        if (!strcmp(roles[i].name, name)) return &roles[i];
    return NULL;
}

static int run_rank(char **argv)
{
    const struct role *role = role_named(argv[1]);
    ncclComm_t comm = NULL;
    int rank;

    if (role->files) setrlimit(RLIMIT_NOFILE, &(struct rlimit){.rlim_cur = role->files, .rlim_max = role->files});
    ncclResult_t rc = join_job(argv, &rank, &comm);
    if (!role->run) return expect_no_join(rc, comm, role->rc, role->words);
    if (rc) fprintf(stderr, "rank %d cannot join: %s\n", rank, ncclGetLastError(NULL));
    return rc ? 1 : role->run(rank, comm);
}

/* ---- the parent ---- */

static void expect_alone(const char *variable, const char *value, const char *role)
{
    struct child c;

    setenv(variable, value, 1);
    start_child(&c, role, 0, 2, "");
    assert_int_equal(wait_for_exit(&c), EXIT_AS_EXPECTED);
    unsetenv(variable);
}

static void expect_job(const char *role)
{
    char id[2 * NCCL_UNIQUE_ID_BYTES + 1];
    struct child c[RANKS];

    make_id(id);
    for (int r = 0; r < RANKS; r++) start_child(&c[r], role, r, RANKS, id);
    for (int r = 0; r < RANKS; r++) assert_int_equal(wait_for_exit(&c[r]), EXIT_AS_EXPECTED);
}

/* ---- descriptors ---- */

static void few_descriptors_are_enough_and_too_few_are_an_error(void **state)
{
    (void)state;
    expect_job("few_files");
    expect_alone("KOLO_BOOTSTRAP_TIMEOUT", "5", "no_files");
}

static void running_out_of_descriptors_is_reported(void **state)
{
    (void)state;
    expect_job("use_up_files"); /* whose timeout is longer than the test's */
}

/* ---- rendezvous by address ---- */

static void another_secret_is_refused(void **state)
{
    struct child zero, one;
    char address[32];

    (void)state;
    snprintf(address, sizeof address, "127.0.0.1:%d", kolo_test_free_port());
    setenv("KOLO_BOOTSTRAP_TIMEOUT", "3600", 1);
    setenv("KOLO_SECRET", "one", 1);
    start_child(&zero, "missing", 0, 2, address); /* waits for rank 1, which never comes */
    setenv("KOLO_SECRET", "two", 1);
    start_child(&one, "secret", 1, 2, address);
    assert_int_equal(wait_for_exit(&one), EXIT_AS_EXPECTED);
    kill(zero.pid, SIGKILL);
    wait_for_exit(&zero);
    unsetenv("KOLO_SECRET");
    unsetenv("KOLO_BOOTSTRAP_TIMEOUT");
}

/* A port that no other process can have. */
static int take_port(uint16_t *port)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof a;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    assert_int_equal(bind(fd, (struct sockaddr *)&a, sizeof a), 0);
    assert_int_equal(listen(fd, 1), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&a, &size), 0);
    *port = ntohs(a.sin_port);
    return fd;
}

static void a_taken_port_and_a_missing_interface_are_system_errors(void **state)
{
    char address[32];
    uint16_t port;
    int taken = take_port(&port);

    (void)state;
    snprintf(address, sizeof address, "127.0.0.1:%u", port);
    expect_alone("NCCL_COMM_ID", address, "taken");
    close(taken);
    expect_alone("NCCL_SOCKET_IFNAME", "=nosuchinterface", "nointerface");
}

/* ---- topology files ---- */

static void run_with_topology(const char *path, const char *text, const char *role)
{
    struct child c;
    FILE *f = text ? fopen(path, "w") : NULL;

    if (f) fputs(text, f);
    if (f) fclose(f);
    setenv("NCCL_TOPO_FILE", path, 1);
    start_child(&c, role, 0, 1, "");
    assert_int_equal(wait_for_exit(&c), EXIT_AS_EXPECTED);
    unsetenv("NCCL_TOPO_FILE");
    unlink(path);
}

static void wrong_topology_files_are_told_apart(void **state)
{
    char folder[] = "/tmp/kolo-failures-XXXXXX", path[64];

    (void)state;
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/topology.xml", folder);
    run_with_topology(path, NULL, "unreadable");
    run_with_topology(path, "<system version=\"1\">\n<cpu numaid=\"0\">\n</system>\n", "malformed");
    run_with_topology(path, "<system version=\"7\"/>\n", "version");
    rmdir(folder);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(few_descriptors_are_enough_and_too_few_are_an_error),
        cmocka_unit_test(running_out_of_descriptors_is_reported),
        cmocka_unit_test(another_secret_is_refused),
        cmocka_unit_test(a_taken_port_and_a_missing_interface_are_system_errors),
        cmocka_unit_test(wrong_topology_files_are_told_apart),
    };

    return argc > 1 ? run_rank(argv) : cmocka_run_group_tests(tests, NULL, NULL);
}
