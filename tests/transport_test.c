/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The behaviours of every transport: each one in kl_transports[], its two ends in every placement that it does not
 * refuse. A transport joins by being in the table, a behaviour by being in the list of transport_behaviours.h.
 *
 * Both ends run in processes of their own, forked before any thread is started, or as two threads of one.
 */
#include "base/error.h"
#include "tests/hang.h"
#include "tests/holdings.h"
#include "tests/transport_behaviours.h"
#include "tests/transport_ends.h"

#include <fcntl.h>
#include <net/if.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- resources left ---- */

struct holdings {
    int descriptors, segments;
};

/* Private memory that can be written, without reserved memory. */
static unsigned long private_bytes(void)
{
    FILE *f = fopen("/proc/self/maps", "r");
    char line[512];
    unsigned long from, to, sum = 0;

    while (f && fgets(line, sizeof line, f))
        if (sscanf(line, "%lx-%lx rw-p", &from, &to) == 2 && strstr(line, " rw-p ")) sum += to - from;
    if (f) fclose(f);
    return sum;
}

static struct holdings count_now(void)
{
    return (struct holdings){.descriptors = count_fds(), .segments = count_segments()};
}

/* Counting takes descriptors, too: threads take turns. */
static struct holdings count_holdings(const struct end *e)
{
    struct holdings h;

    meet(e);
    if (e->sends) meet(e);
    h = count_now();
    if (!e->sends) meet(e);
    meet(e);
    return h;
}

/* The event loop closes its own descriptors a little later. */
static void expect_nothing_left(const struct end *e, const struct holdings *before)
{
    uint64_t deadline = kl_deadline_in_ms(kolo_test_hang_ms());

    if (e->sends) meet(e);
    for (;;) {
        struct holdings now = count_now();
        if (now.descriptors == before->descriptors && now.segments == before->segments) break;
        if (kl_deadline_passed(deadline))
            snprintf(doing + strlen(doing), 60, " (%d descriptors, %d segments before; %d, %d now)",
                     before->descriptors, before->segments, now.descriptors, now.segments);
        must(!kl_deadline_passed(deadline));
        sched_yield();
    }
    if (!e->sends) meet(e);
    meet(e);
}

/* ---- an end's life ---- */

static void describe(struct end *e, int rank, uint64_t process)
{
    struct stat st;

    e->me = (struct kl_peer){.rank = rank, .pid = getpid(), .host = 1, .process = process};
    snprintf(e->me.host_name, sizeof e->me.host_name, "%s", rank ? "here" : "there");
    must(!stat("/proc/self/ns/net", &st));
    e->me.memory = st.st_ino;
    tell(e, &e->me, sizeof e->me);
    hear(e, &e->it, sizeof e->it);
}

/* Made and freed many times: leaks of each one would add up. Threads and their stacks come and go meanwhile. */
static void expect_no_growth(struct end *e)
{
    const int times = is_net(e) ? 100 : 400; /* a network end's leak is as large as a fifo: it shows sooner */
    unsigned long before = 0;

    for (int i = 0; i < times; i++) {
        if (i == 10) before = private_bytes();
        join(e);
        part(e);
        meet(e);
    }
    must(private_bytes() < before + (unsigned long)times / 2 * kl_fifo_size(&shape));
}

static void behave(struct end *e, const struct holdings *before)
{
    for (int i = 0; i < BEHAVIOURS; i++) {
        snprintf(doing, sizeof doing, "%s%s, %s, %s", e->transport->name, e->messages ? ", messages" : "",
                 e->sends ? "sender" : "receiver", behaviours[i].name);
        meet(e);
        behaviours[i].run(e);
        meet(e);
        expect_nothing_left(e, before);
    }
    expect_no_growth(e);
}

/* Both ends ask the same questions and get the same answers. */
static bool agree_on_use(struct end *e)
{
    struct kl_pair_facts facts = {.a = &e->me, .b = &e->it, .network = true},
                         swapped = {.a = &e->it, .b = &e->me, .network = true};
    uint32_t why = e->transport->refuses(&facts), its = 0;

    must(e->transport->refuses(&swapped) == why);
    tell(e, &why, sizeof why);
    hear(e, &its, sizeof its);
    must(why == its);
    return why == KL_REFUSAL_NONE;
}

/* Some transport must take the pair, or the refusal names both ranks and every reason. */
static void choose(struct end *e, bool mappable)
{
    struct kl_pair_facts facts = {.a = &e->me, .b = &e->it};
    const struct kl_transport *chosen = NULL;
    uint32_t index = 99;
    ncclResult_t rc = kl_transport_choose(&facts, &chosen, &index);

    snprintf(doing, sizeof doing, "choosing");
    must(chosen == kl_transport_first(&facts));
    if (mappable) {
        must(rc == ncclSuccess && kl_transports[index] == chosen);
        return;
    }
    must(rc == ncclSystemError && !chosen);
    must(strstr(kl_error_text(), "rank 0 (there)") && strstr(kl_error_text(), "rank 1 (here)"));
    for (int i = 0; kl_transports[i]; i++) must(strstr(kl_error_text(), kl_transports[i]->name));
    must(strstr(kl_error_text(), "network namespace"));
}

/* A transport that refused a pair and is used nevertheless fails, and nothing is left. */
static void fail_to_connect(struct end *e, const struct holdings *before)
{
    set_up(e);
    if (e->sends) {
        struct kl_connect_info info = receive_info(e);
        struct kl_connect_reply reply = {.pool_bytes = 0};
        must(test_connect(&e->c, &info, &reply) == ncclRemoteError);
    }
    part(e);
    meet(e);
    expect_nothing_left(e, before);
}

/*
 * A network refuses no peer: an unreachable one fails when it connects. Here the sender has an interface of its own
 * kind only, without a route to the receiver's listener.
 */
static void fail_to_reach(struct end *e, const struct holdings *before)
{
    set_up(e);
    struct kl_connect_info info = e->sends ? receive_info(e) : (struct kl_connect_info){.version = 0};
    struct kl_connect_reply reply = {.pool_bytes = 0};
    uint64_t deadline = kl_deadline_in_ms(300);
    ncclResult_t rc;

    do
        rc = e->sends ? e->transport->connect(&e->c, &info, deadline, &reply)
                      : e->transport->settle(&e->c, deadline, NULL);
    while (rc == ncclInProgress);
    must(rc == ncclRemoteError && strstr(kl_error_text(), e->sends ? "rank 1" : "rank 0"));
    kl_connector_revoke(&e->c);
    part(e);
    meet(e);
    expect_nothing_left(e, before);
}

struct placement {
    const char *name;
    bool threads;
    int (*prepare)(void); /* the sender, before it begins; EXIT_CANNOT: not allowed here */
    bool mappable;        /* their memory */
};

static void live(struct end *e, const struct placement *p)
{
    struct kl_common common = {.pool = NULL};

    e->common = &common;
    kl_error_quiet(1);
    must(kl_net_socket.init() == ncclSuccess);
    const struct holdings before = count_holdings(e);
    choose(e, p->mappable);
    for (e->index = 0; kl_transports[e->index]; e->index++) {
        e->transport = kl_transports[e->index];
        snprintf(doing, sizeof doing, "%s", e->transport->name);
        bool usable = agree_on_use(e);
        if (usable && is_net(e) && !p->mappable) {
            fail_to_reach(e, &before);
        } else if (usable) {
            for (e->messages = false;; e->messages = true) {
                behave(e, &before);
                if (e->messages) break;
            }
        } else if (!p->mappable && e->transport == &kl_transport_shm) {
            fail_to_connect(e, &before);
        }
    }
}

static void *live_as_thread(void *arg)
{
    struct end *e = arg;
    static const struct placement threads = {.threads = true, .mappable = true};

    describe(e, !e->sends, 77);
    live(e, &threads);
    return NULL;
}

/* ---- placements ---- */

static void make_sockets(int sock[2])
{
    struct timeval hang = {.tv_sec = kolo_test_hang_s()};

    must(!socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sock));
    for (int i = 0; i < 2; i++) must(!setsockopt(sock[i], SOL_SOCKET, SO_RCVTIMEO, &hang, sizeof hang));
}

/* Two threads of a child. */
static int run_threads(void)
{
    static struct end ends[2];
    int sock[2];
    pthread_t thread;

    make_sockets(sock);
    ends[0] = (struct end){.sock = sock[0]};
    ends[1] = (struct end){.sock = sock[1], .sends = true};
    must(!pthread_create(&thread, NULL, live_as_thread, &ends[1]));
    live_as_thread(&ends[0]);
    pthread_join(thread, NULL);
    return EXIT_FINE;
}

static int run_end(const struct placement *p, int sock, bool sends)
{
    static struct end e;
    char ready = p->prepare && sends ? (char)p->prepare() : EXIT_FINE, its = 0;

    e = (struct end){.sock = sock, .sends = sends};
    tell(&e, &ready, 1);
    hear(&e, &its, 1);
    if (ready || its) return ready ? ready : its;
    describe(&e, !sends, sends ? 1 : 2);
    live(&e, p);
    return EXIT_FINE;
}

/* A crashing child has to crash, and not go on with the next test, as cmocka would have it. */
static pid_t fork_child(void)
{
    static const int signals[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGSYS};
    fflush(NULL);
    pid_t pid = fork();

    if (!pid) FOR_EACH_CASE(number, signals) signal(*number, SIG_DFL);
    return pid;
}

static pid_t start(const struct placement *p, int sock[2], bool sends)
{
    pid_t pid = fork_child();

    if (pid) return pid;
    if (p->threads) _exit(run_threads());
    close(sock[!sends]);
    _exit(run_end(p, sock[sends], sends));
}

static int status_of(pid_t pid)
{
    int status;

    waitpid(pid, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

static void run_placement(const struct placement *p)
{
    int sock[2];

    make_sockets(sock);
    pid_t receiver = start(p, sock, false), sender = p->threads ? 0 : start(p, sock, true);
    close(sock[0]);
    close(sock[1]);
    int got = status_of(receiver), its = sender ? status_of(sender) : EXIT_FINE;
    if (got == EXIT_CANNOT || its == EXIT_CANNOT) {
        print_message("%s: not permitted here\n", p->name);
        skip();
    }
    if (got || its) fail_msg("%s: the receiver ended with %d, the sender with %d", p->name, got, its);
}

static int enter_user_namespace(void)
{
    return unshare(CLONE_NEWUSER) ? EXIT_CANNOT : EXIT_FINE;
}

/* As `unshare -r`: root there, whatever user it is here. */
static int enter_user_namespace_as_root(void)
{
    char map[32];
    int n = snprintf(map, sizeof map, "0 %u 1", (unsigned)geteuid());

    if (unshare(CLONE_NEWUSER)) return EXIT_CANNOT;
    int fd = open("/proc/self/uid_map", O_WRONLY | O_CLOEXEC);
    bool mapped = fd >= 0 && write(fd, map, (size_t)n) == n;
    if (fd >= 0) close(fd);
    return mapped ? EXIT_FINE : EXIT_CANNOT;
}

/* With its own loopback interface, so that there is a network. */
static int enter_network_namespace(void)
{
    struct ifreq lo = {.ifr_name = "lo", .ifr_flags = IFF_UP};

    if (unshare(CLONE_NEWUSER | CLONE_NEWNET)) return EXIT_CANNOT;
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    bool up = fd >= 0 && !ioctl(fd, SIOCSIFFLAGS, &lo);
    if (fd >= 0) close(fd);
    return up ? EXIT_FINE : EXIT_CANNOT;
}

static void threads_of_a_process(void **state)
{
    (void)state;
    run_placement(&(struct placement){.name = "threads", .threads = true, .mappable = true});
}

static void processes(void **state)
{
    (void)state;
    run_placement(&(struct placement){.name = "processes", .mappable = true});
}

static void processes_of_two_user_namespaces(void **state)
{
    (void)state;
    run_placement(
        &(struct placement){.name = "another user namespace", .prepare = enter_user_namespace, .mappable = true});
}

static void root_of_another_user_namespace(void **state)
{
    (void)state;
    run_placement(&(struct placement){
        .name = "root of another user namespace", .prepare = enter_user_namespace_as_root, .mappable = true});
}

/* Descriptors cannot be passed: nothing connects them, and the refusal names the peer and the reason. */
static void processes_of_two_network_namespaces(void **state)
{
    (void)state;
    run_placement(&(struct placement){.name = "another network namespace", .prepare = enter_network_namespace});
}

/* ---- an end that dies ---- */

static void die_or_survive(int sock, const struct kl_transport *t, uint32_t index, bool sends, bool dies)
{
    struct kl_common common = {.pool = NULL};
    struct end e = {.sock = sock, .sends = sends, .transport = t, .index = index, .messages = true, .common = &common};

    kl_error_quiet(1);
    must(kl_net_socket.init() == ncclSuccess);
    snprintf(doing, sizeof doing, "%s: the %s dies", t->name, sends == dies ? "sender" : "receiver");
    join(&e);
    if (sends) put(&e, 7, 5000);
    drain(&e);
    meet(&e);
    if (dies) kill(getpid(), SIGKILL);
    char end;
    must(recv(sock, &end, 1, 0) == 0); /* it is dead */
    if (!sends)
        take(&e, 7, 5000);
    else if (is_net(&e))
        expect_lost(&e);
    else
        for (uint64_t step = 0; step + 1 < SLOTS; step++) put(&e, step, SLOT_BYTES);
    if (!sends && is_net(&e)) expect_sender_gone(&e);
    kl_connector_revoke(&e.c);
    kl_connector_leave(&e.c);
    let_go(&e);
    _exit(EXIT_FINE);
}

/* Its published data are there, its buffers can be written, and everything can be freed. */
static void an_end_that_dies_takes_nothing_along(void **state)
{
    (void)state;
    for (uint32_t i = 0; kl_transports[i]; i++)
        for (int sender_dies = 0; sender_dies < 2; sender_dies++) {
            pid_t pid[2];
            int sock[2];
            if (kl_transports[i] == &kl_transport_p2p) continue; /* both in one process */
            make_sockets(sock);
            for (int sends = 0; sends < 2; sends++) {
                pid[sends] = fork_child();
                if (pid[sends]) continue;
                close(sock[!sends]);
                die_or_survive(sock[sends], kl_transports[i], i, sends, sends == sender_dies);
            }
            close(sock[0]);
            close(sock[1]);
            assert_int_equal(status_of(pid[sender_dies]), 1000 + SIGKILL);
            assert_int_equal(status_of(pid[!sender_dies]), EXIT_FINE);
        }
}

int main(void)
{
    const struct CMUnitTest threads[] = {cmocka_unit_test(threads_of_a_process)};
    const struct CMUnitTest others[] = {
        cmocka_unit_test(processes),
        cmocka_unit_test(processes_of_two_user_namespaces),
        cmocka_unit_test(root_of_another_user_namespace),
        cmocka_unit_test(processes_of_two_network_namespaces),
        cmocka_unit_test(an_end_that_dies_takes_nothing_along),
    };

    setenv("NCCL_SOCKET_RETRY_CNT", "2", 1); /* a missing peer does not come later */
    setenv("NCCL_SOCKET_RETRY_SLEEP_MSEC", "1", 1);
    const int failed = cmocka_run_group_tests(threads, NULL, NULL);
    return KOLO_TEST_THREADS_ONLY ? failed : failed + cmocka_run_group_tests(others, NULL, NULL);
}
