/* SPDX-License-Identifier: Apache-2.0 */
/* A relay between a rank and the others flips one bit of the data: then every rank joins and receives correct data,
 * or every rank fails soon, with a sentence. Wrong data is never received. This program starts itself again for each
 * rank.
 *
 * The relay is this program's connect(2): in the rank behind it, each connection to another process leads through a
 * thread that forwards the bytes. */
#include "bootstrap/bootstrap.h"

#include "bootstrap/test_jobs.h"

#include "tests/hang.h"

#include <arpa/inet.h>
#include <errno.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { RANKS = 3, BETWEEN = 1, PASSAGES = 64 };

/* ---- the relay ---- */

/* Of this process. The bit is in the `at`th byte of one direction, over all connections together. */
static struct {
    bool active, inwards;
    long at;
    _Atomic long passed;
    int n; /* connections; used on the event loop, until it has ended */
    pthread_t threads[PASSAGES];
} relay = {.at = -1};

struct passage {
    int listener, ends[2]; /* ours, and theirs */
    struct sockaddr_storage to;
    socklen_t bytes;
};

static bool pass(int from, int to, bool counts)
{
    unsigned char piece[512];
    ssize_t n = read(from, piece, sizeof piece);

    if (n <= 0) {
        shutdown(to, SHUT_WR);
        return false;
    }
    long before = counts ? kl_fetch_add_acq_rel(&relay.passed, n) : 0;
    if (counts && relay.at >= before && relay.at < before + n) piece[relay.at - before] ^= 0x10;
    for (ssize_t done = 0, some; done < n; done += some)
        if ((some = send(to, piece + done, (size_t)(n - done), MSG_NOSIGNAL)) <= 0) return false;
    return true;
}

static void pass_both_ways(const int ends[2])
{
    struct pollfd p[2] = {{.fd = ends[0], .events = POLLIN}, {.fd = ends[1], .events = POLLIN}};

    while (p[0].fd >= 0 || p[1].fd >= 0) {
        if (poll(p, 2, -1) < 0) continue;
        for (int i = 0; i < 2; i++)
            if (p[i].revents && !pass(ends[i], ends[1 - i], relay.inwards == (i == 1))) p[i].fd = -1;
    }
}

static int connect_for_real(int fd, const struct sockaddr *to, socklen_t bytes)
{
    return (int)syscall(SYS_connect, fd, to, bytes);
}

static void *relay_main(void *arg)
{
    struct passage *p = arg;

    p->ends[0] = accept4(p->listener, NULL, NULL, SOCK_CLOEXEC);
    p->ends[1] = socket(p->to.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    close(p->listener);
    if (!connect_for_real(p->ends[1], (struct sockaddr *)&p->to, p->bytes)) pass_both_ways(p->ends);
    close(p->ends[0]);
    close(p->ends[1]);
    free(p);
    return NULL;
}

static int connect_through_a_relay(int fd, const struct sockaddr *to, socklen_t bytes)
{
    struct passage *p = calloc(1, sizeof *p);
    const bool local = to->sa_family == AF_UNIX;
    struct sockaddr_in lo = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct sockaddr_storage here = {.ss_family = AF_UNIX}; /* bound without a name, it becomes an abstract address */
    socklen_t here_bytes = local ? sizeof(sa_family_t) : sizeof lo;

    must(p && relay.n < PASSAGES);
    if (!local) memcpy(&here, &lo, sizeof lo);
    memcpy(&p->to, to, bytes);
    p->bytes = bytes;
    p->listener = socket(to->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    must(!bind(p->listener, (struct sockaddr *)&here, here_bytes) && !listen(p->listener, 1));
    here_bytes = sizeof here;
    must(!getsockname(p->listener, (struct sockaddr *)&here, &here_bytes));
    int rc = connect_for_real(fd, (struct sockaddr *)&here, here_bytes), err = errno;
    must(!pthread_create(&relay.threads[relay.n++], NULL, relay_main, p));
    errno = err;
    return rc;
}

/* Until all data has been forwarded, and the others have left, too. */
static void await_relay(void)
{
    for (int i = 0; i < relay.n; i++) pthread_join(relay.threads[i], NULL);
}

/* Replaces the system's. */
int connect(int fd, const struct sockaddr *to, socklen_t bytes)
{
    if (!relay.active || (to->sa_family != AF_INET && to->sa_family != AF_UNIX)) return connect_for_real(fd, to, bytes);
    return connect_through_a_relay(fd, to, bytes);
}

/* ---- a rank ---- */

enum { WORDS = 500 };

static int word(int from, int to, int i)
{
    return 1000003 * from + 10007 * to + i;
}

/* All ranks send to all. Returns whether it succeeded; received data is always right. */
static bool talk(const struct rank *me, struct kl_bootstrap *b)
{
    int rank = me->config.rank, words[WORDS], all[RANKS];

    for (int peer = 0; peer < RANKS; peer++) {
        for (int i = 0; i < WORDS; i++) words[i] = word(rank, peer, i);
        if (kl_bootstrap_send(b, peer, 1, words, sizeof words)) return false;
    }
    for (int peer = 0; peer < RANKS; peer++) {
        if (kl_bootstrap_recv(b, peer, 1, words, sizeof words)) return false;
        for (int i = 0; i < WORDS; i++) must(words[i] == word(peer, rank, i));
    }
    all[rank] = rank;
    if (kl_bootstrap_allgather(b, all, sizeof all[0])) return false;
    for (int r = 0; r < RANKS; r++) must(all[r] == r);
    return !kl_bootstrap_barrier(b);
}

/* Outcome for a rank: its exit code. */
enum end { WELL, ALTERED, OTHERWISE, ENDS };

static enum end end_of(const char *text)
{
    if (strstr(text, " was altered on the way to ")) return ALTERED;
    return *text ? OTHERWISE : WELL;
}

/* argv: id, rank, at, inwards. Exits with the outcome; prints how many bytes were forwarded if none was altered. */
static int play(char **argv)
{
    struct kl_bootstrap *b = NULL;
    struct rank me;
    ncclUniqueId id;
    char text[KL_ERROR_TEXT] = "";

    alarm(kolo_test_hang_s()); /* a rank that hangs is killed */
    signal(SIGPIPE, SIG_IGN);
    must(!kl_bootstrap_id_parse(argv[1], &id));
    setup_ranks(&me, 1, &id, NULL);
    me.config.rank = (int)strtol(argv[2], NULL, 10);
    me.config.nranks = RANKS;
    me.config.timeout_ms = kolo_test_hang_ms();
    relay.active = me.config.rank == BETWEEN;
    relay.at = strtol(argv[3], NULL, 10);
    relay.inwards = *argv[4] == '1';
    kl_error_quiet(1);
    if (kl_bootstrap_join(&me.config, &b) || !talk(&me, b)) snprintf(text, sizeof text, "%s", kl_error_text());
    kl_bootstrap_leave(b);
    await_relay();
    if (relay.active && relay.at < 0) printf("%ld\n", kl_load_acquire(&relay.passed));
    fflush(stdout);
    _exit((int)end_of(text));
}

/* ---- the test ---- */

static pid_t start_rank(const char *id, int rank, long at, bool inwards, int out)
{
    char rank_text[16], at_text[32];

    snprintf(rank_text, sizeof rank_text, "%d", rank);
    snprintf(at_text, sizeof at_text, "%ld", at);
    pid_t pid = fork();
    assert_int_not_equal(pid, -1);
    if (!pid) {
        if (out >= 0) dup2(out, STDOUT_FILENO);
        execl("/proc/self/exe", "relay_test", id, rank_text, at_text, inwards ? "1" : "0", (char *)NULL);
        _exit(127);
    }
    return pid;
}

/* Counts of outcomes, with a bit of that byte flipped. */
static void run_with(long at, bool inwards, int out, int ends[ENDS])
{
    char text[2 * NCCL_UNIQUE_ID_BYTES + 1];
    pid_t pids[RANKS];
    ncclUniqueId id;

    memset(ends, 0, ENDS * sizeof *ends);
    assert_int_equal(kl_bootstrap_id_create(&id), ncclSuccess); /* the rendezvous runs in this process */
    kl_bootstrap_id_format(&id, text);
    for (int r = 0; r < RANKS; r++) pids[r] = start_rank(text, r, at, inwards, out);
    for (int r = 0; r < RANKS; r++) {
        int status = -1;
        assert_int_equal(waitpid(pids[r], &status, 0), pids[r]);
        if (!WIFEXITED(status) || WEXITSTATUS(status) >= ENDS)
            fail_msg("byte %ld %s: rank %d ended with status %x", at, inwards ? "in" : "out", r, status);
        ends[WEXITSTATUS(status)]++;
    }
}

/* The number of bytes in one direction. */
static long count_bytes(bool inwards)
{
    char text[32] = "";
    int ends[ENDS], out[2];

    assert_int_equal(pipe(out), 0);
    run_with(-1, inwards, out[1], ends);
    assert_int_equal(ends[WELL], RANKS);
    close(out[1]);
    assert_true(read(out[0], text, sizeof text - 1) > 0);
    close(out[0]);
    return strtol(text, NULL, 10);
}

/* How many bytes are tried, spread over all: for some the relay makes no difference, such as those of a call that is
 * repeated. */
enum { TRIES = 16 };

static void flip_bits(bool inwards)
{
    long bytes = count_bytes(inwards), altered = 0, well = 0;

    assert_in_range(bytes, sizeof(int) * WORDS, 1000000);
    for (int i = 0; i < TRIES; i++) {
        long at = (bytes - 1) * i / (TRIES - 1);
        int ends[ENDS];
        run_with(at, inwards, -1, ends);
        well += ends[WELL] == RANKS;
        altered += ends[ALTERED] > 0;
    }
    assert_in_range(altered, TRIES / 2, TRIES); /* most bytes belong to frames */
    assert_in_range(well, 0, TRIES / 4);
}

static void what_a_rank_says_cannot_be_altered(void **state)
{
    (void)state;
    flip_bits(false);
}

static void what_a_rank_hears_cannot_be_altered(void **state)
{
    (void)state;
    flip_bits(true);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_a_rank_says_cannot_be_altered),
        cmocka_unit_test(what_a_rank_hears_cannot_be_altered),
    };

    setenv("NCCL_SOCKET_FAMILY", "AF_INET", 1); /* the relay forwards only this family */
    if (argc == 5) return play(argv);
    return cmocka_run_group_tests_name("somebody in between", tests, NULL, NULL);
}
