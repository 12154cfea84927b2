/* SPDX-License-Identifier: Apache-2.0 */
/* Connections through a relay that changes, repeats, drops or reflects bytes, and listeners that strangers connect
 * to. */
#include "net/socket/test_pairs.h"

#include "net/socket/head.h"
#include "net/socket/opening.h"
#include "os/socket.h"

#include "tests/hang.h"

#include <errno.h>

enum {
    OPENING_FORTH = KL_HELLO_BYTES + KL_PROOF_BYTES + KL_TERMS_BYTES, /* bytes before the first head, by direction */
    HEAD = KL_GUARD_HEAD,
    MESSAGE = 5000, /* bytes of the first message */
};

/* ---- the relay ---- */

enum deed { NOTHING, FLIP, REPEAT, DROP, CUT, REFLECT };

/* The attack, on the bytes of one direction from `at` on. */
struct plan {
    const char *what;
    bool back; /* from listener to sender */
    enum deed deed;
    size_t at, bytes;
};

struct relay {
    int listener, sender_side, listener_side;
    union kl_address target;
    const struct plan *plan;
    size_t passed[2];
    unsigned char kept[MESSAGE + HEAD]; /* for REPEAT */
};

static void relay_open(struct relay *r, struct kl_net_handle *handle, const struct plan *plan)
{
    union kl_address here;

    *r = (struct relay){.sender_side = -1, .listener_side = -1, .plan = plan};
    assert_true(kl_terms_get_handle(handle, &r->target));
    here = r->target;
    kl_address_set_port(&here, 0);
    assert_int_equal(kl_socket_listen(&here, &r->listener), ncclSuccess);
    kl_terms_put_handle(&here, handle);
}

static void relay_hang_up(struct relay *r)
{
    kl_socket_close(r->sender_side);
    kl_socket_close(r->listener_side);
    r->sender_side = r->listener_side = -1;
    r->passed[0] = r->passed[1] = 0;
}

static void relay_close(struct relay *r)
{
    relay_hang_up(r);
    kl_socket_close(r->listener);
}

static void pass(int to, const unsigned char *data, size_t bytes)
{
    const struct kl_wait wait = {.deadline = kl_deadline_in_ms(kolo_test_hang_ms())};

    if (bytes) (void)kl_socket_send(to, data, bytes, &wait);
}

/* The byte at stream position `at` passes. False: the connection is cut. */
static bool tamper(struct relay *r, bool back, unsigned char byte)
{
    const struct plan *p = r->plan;
    int forth = back ? r->sender_side : r->listener_side;
    size_t at = r->passed[back]++;
    bool meant = p->back == back && at >= p->at && at < p->at + p->bytes;

    if (meant && p->deed == CUT) return false;
    if (meant && p->deed == DROP) return true;
    if (meant && p->deed == FLIP) byte ^= 0x10;
    if (meant && p->deed == REFLECT) pass(back ? r->listener_side : r->sender_side, &byte, 1);
    pass(forth, &byte, 1);
    if (meant && p->deed == REPEAT) r->kept[at - p->at] = byte;
    if (meant && p->deed == REPEAT && at + 1 == p->at + p->bytes) pass(forth, r->kept, p->bytes);
    return true;
}

static void relay_direction(struct relay *r, bool back)
{
    int from = back ? r->listener_side : r->sender_side;
    unsigned char data[512];

    if (from < 0) return;
    ssize_t n = recv(from, data, sizeof data, MSG_DONTWAIT);
    if (!n || (n < 0 && errno != EAGAIN)) {
        relay_hang_up(r);
        return;
    }
    for (ssize_t i = 0; i < n; i++)
        if (!tamper(r, back, data[i])) {
            relay_hang_up(r);
            return;
        }
}

static void relay_step(struct relay *r)
{
    const struct kl_wait at_once = {.deadline = 0};
    int fd;

    if (r->sender_side < 0 && kl_socket_accept(r->listener, &at_once, &fd) == KL_IO_DONE) {
        r->sender_side = fd;
        assert_int_equal(kl_socket_connect_begin(&r->target, &r->listener_side), KL_IO_DONE);
    }
    relay_direction(r, false);
    relay_direction(r, true);
}

/* ---- one message through it ---- */

struct outcome {
    ncclResult_t connect, accept, send, receive;
    bool arrived, right; /* the second of two messages was received; both with the right contents */
};

static void step_messages(void **request, ncclResult_t *rc)
{
    for (int i = 0; i < 4; i++) {
        ncclResult_t *of = &rc[i < 2 ? 0 : 1];
        bool done = false;

        if (!request[i] || *of) continue;
        *of = net->test(request[i], &done, NULL);
        if (done) request[i] = NULL;
    }
}

static void exchange(struct pair *p, struct relay *r, struct outcome *o)
{
    static unsigned char from[MESSAGE], to[MESSAGE], second[8];
    uint64_t deadline = kl_deadline_in_ms(kolo_test_hang_ms());
    ncclResult_t rc[2] = {ncclSuccess, ncclSuccess};

    fill(from, MESSAGE, 9);
    memset(to, 0, MESSAGE);
    memset(second, 0, sizeof second);
    void *request[4] = {post_send(p->send, from, MESSAGE, 1), post_send(p->send, "whatever", 8, 1),
                        post_recv(p->recv, to, MESSAGE, 1), post_recv(p->recv, second, 8, 1)};
    while ((request[2] || request[3]) && !rc[1]) {
        relay_step(r);
        step_messages(request, rc);
        assert_false(kl_deadline_passed(deadline));
    }
    o->send = rc[0];
    o->receive = rc[1];
    o->arrived = !request[3];
    o->right = o->arrived && filled(to, MESSAGE, 9) && !memcmp(second, "whatever", 8);
}

static struct outcome outcome_of_plan(const struct plan *plan)
{
    struct outcome o = {.connect = ncclInProgress, .accept = ncclInProgress};
    struct relay r;
    struct pair p;

    pair_listen(&p);
    relay_open(&r, &p.handle, plan);
    if (plan->bytes) p.sender.deadline = kl_deadline_in_ms(1000); /* an omission is only noticed at the deadline */
    while (o.connect == ncclInProgress || (!o.connect && o.accept == ncclInProgress)) {
        relay_step(&r);
        pair_step(&p, &o.connect, &o.accept);
    }
    if (!o.connect && !o.accept) exchange(&p, &r, &o);
    pair_close(&p);
    relay_close(&r);
    return o;
}

static bool encrypts(void)
{
    return *getenv("KOLO_NET_CRYPT") == '1';
}

static void an_honest_relay_is_fine(void **state)
{
    static const struct plan honest = {.what = "nothing"};
    struct outcome o = outcome_of_plan(&honest);

    (void)state;
    assert_true(o.right);
}

/* If the handshake is changed, at most one end gets a connection. */
static void a_changed_handshake_fails(void **state)
{
    static const struct plan plans[] = {
        {"mark", false, FLIP, 0, 1},
        {"version", false, FLIP, 8, 1},
        {"type", false, FLIP, 10, 1},
        {"sender's rank", false, FLIP, 12, 1},
        {"listener's rank", false, FLIP, 16, 1},
        {"id", false, FLIP, 20, 1},
        {"sender's nonce", false, FLIP, 30, 1},
        {"proof", false, FLIP, KL_HELLO_BYTES + 5, 1},
        {"terms", false, FLIP, KL_HELLO_BYTES + KL_PROOF_BYTES + 1, 1},
        {"lanes", false, FLIP, KL_HELLO_BYTES + KL_PROOF_BYTES + 6, 1},
        {"terms' proof", false, FLIP, KL_HELLO_BYTES + KL_PROOF_BYTES + KL_TERMS_BODY, 1},
        {"cut", false, CUT, KL_HELLO_BYTES + 1, 1},
        {"other side's mark", true, FLIP, 0, 1},
        {"other side's nonce", true, FLIP, 30, 1},
        {"answer", true, FLIP, KL_HELLO_BYTES, 1},
        {"answer's proof", true, FLIP, KL_HELLO_BYTES + 8, 1},
        {"other side's terms", true, FLIP, KL_HELLO_BYTES + KL_ANSWER_BYTES + 1, 1},
        {"other side's cut", true, CUT, KL_HELLO_BYTES + 50, 1},
    };

    (void)state;
    FOR_EACH_CASE(plan, plans)
    {
        struct outcome o = outcome_of_plan(plan);
        expect_case(plan->what, o.connect == ncclRemoteError || o.connect == ncclInvalidUsage);
    }
}

/* In plain, every byte of every head is protected; encrypted, every byte. */
static void a_changed_frame_ends_the_connection(void **state)
{
    static const struct plan plans[] = {
        {"length", false, FLIP, OPENING_FORTH, 1},
        {"length's highest byte", false, FLIP, OPENING_FORTH + 7, 1},
        {"tag", false, FLIP, OPENING_FORTH + 8, 1},
        {"kind", false, FLIP, OPENING_FORTH + 12, 1},
        {"sequence", false, FLIP, OPENING_FORTH + 16, 1},
        {"MAC", false, FLIP, OPENING_FORTH + 24, 1},
        {"MAC's last byte", false, FLIP, OPENING_FORTH + 39, 1},
        {"the second head", false, FLIP, OPENING_FORTH + HEAD + MESSAGE + 1 + KL_GUARD_TAG, 1},
        {"a head repeated", false, REPEAT, OPENING_FORTH, HEAD},
        {"a byte left out", false, DROP, OPENING_FORTH + 3, 1},
        {"a byte of data left out", false, DROP, OPENING_FORTH + HEAD + 77, 1},
        {"a head left out", false, DROP, OPENING_FORTH, HEAD},
        {"cut in the head", false, CUT, OPENING_FORTH + 3, 1},
        {"cut in the data", false, CUT, OPENING_FORTH + HEAD + 1000, 1},
    };

    (void)state;
    FOR_EACH_CASE(plan, plans)
    {
        struct outcome o = outcome_of_plan(plan);
        expect_case(plan->what, !o.connect && !o.accept);
        expect_case(plan->what, o.receive == ncclRemoteError);
        expect_case(plan->what, strstr(kl_error_text(), "rank 0 at 127.0.0.1:"));
        expect_case(plan->what, plan->deed == CUT ? strstr(kl_error_text(), "lost its connection")
                                                  : strstr(kl_error_text(), "changes it on the way"));
    }
}

/* A whole frame that is repeated or omitted is noticed by the sequence. */
static void a_whole_frame_counts(void **state)
{
    const size_t frame = HEAD + MESSAGE + (encrypts() ? KL_GUARD_TAG : 0u);
    const struct plan plans[] = {{"repeated", false, REPEAT, OPENING_FORTH, MESSAGE + HEAD},
                                 {"left out", false, DROP, OPENING_FORTH, frame}};

    (void)state;
    if (!encrypts()) assert_int_equal(outcome_of_plan(&plans[0]).receive, ncclRemoteError);
    assert_int_equal(outcome_of_plan(&plans[1]).receive, ncclRemoteError);
}

static void changed_data(void **state)
{
    static const struct plan plan = {"data", false, FLIP, OPENING_FORTH + HEAD + 4000, 1};
    struct outcome o = outcome_of_plan(&plan);

    (void)state;
    assert_int_equal(o.receive, encrypts() ? ncclRemoteError : ncclSuccess);
    assert_int_equal(o.arrived, !encrypts());
    assert_false(o.right);
}

/* A sender's own frames, reflected to it: the other direction has another key. */
static void reflected_frames(void **state)
{
    static const struct plan plan = {"reflected", false, REFLECT, OPENING_FORTH, HEAD};
    enum { BYTES = 128 << 20 };
    unsigned char *from = calloc(1, BYTES);
    uint64_t deadline = kl_deadline_in_ms(kolo_test_hang_ms());
    ncclResult_t s = ncclInProgress, r = ncclInProgress, rc = ncclSuccess;
    struct relay relay;
    struct pair p;
    bool done = false;

    (void)state;
    pair_listen(&p);
    relay_open(&relay, &p.handle, &plan);
    while (s == ncclInProgress || r == ncclInProgress) {
        relay_step(&relay);
        pair_step(&p, &s, &r);
    }
    void *send = post_send(p.send, from, BYTES, 0);
    while (!rc && !done && !kl_deadline_passed(deadline)) {
        if (relay.passed[0] < OPENING_FORTH + HEAD) relay_step(&relay);
        rc = net->test(send, &done, NULL);
    }
    assert_int_equal(rc, ncclRemoteError);
    expect_in_error("changes it on the way");
    pair_close(&p);
    relay_close(&relay);
    free(from);
}

/* ---- strangers ---- */

static int visit(const struct kl_net_handle *handle)
{
    union kl_address address;
    int fd = -1;

    assert_true(kl_terms_get_handle(handle, &address));
    assert_int_equal(kl_socket_connect_begin(&address, &fd), KL_IO_DONE);
    return fd;
}

static void say(int fd, const void *data, size_t bytes)
{
    const struct kl_wait wait = {.deadline = kl_deadline_in_ms(kolo_test_hang_ms())};

    (void)kl_socket_send(fd, data, bytes, &wait);
}

static void expect_hung_up(struct pair *p, int fd)
{
    uint64_t deadline = kl_deadline_in_ms(kolo_test_hang_ms());
    unsigned char byte[256];
    ssize_t n;

    do {
        assert_int_equal(net->accept(p->listener, &p->receiver, &p->recv), ncclInProgress);
        n = recv(fd, byte, sizeof byte, MSG_DONTWAIT);
        assert_false(kl_deadline_passed(deadline));
    } while (n > 0 || (n < 0 && errno == EAGAIN));
}

static void strangers_do_not_disturb(void **state)
{
    struct kl_hello hello = {.version = KL_PROTOCOL, .type = KL_CONNECTION_NET, .side = KL_CALLER, .from = 0, .to = 1};
    unsigned char garbage[1000], wire[KL_HELLO_BYTES];
    struct pair p;
    int fd;

    (void)state;
    pair_listen(&p);
    fill(garbage, sizeof garbage, 1);
    fd = visit(&p.handle); /* a port scanner */
    kl_socket_close(fd);
    fd = visit(&p.handle); /* garbage instead of a hello */
    say(fd, garbage, sizeof garbage);
    expect_hung_up(&p, fd);
    kl_socket_close(fd);
    fd = visit(&p.handle); /* garbage instead of a proof */
    kl_hello_encode(&hello, wire);
    say(fd, wire, sizeof wire);
    say(fd, garbage, sizeof garbage);
    expect_hung_up(&p, fd);
    kl_socket_close(fd);
    int slow = visit(&p.handle); /* stops in the middle of its hello */
    say(slow, wire, 20);
    int silent = visit(&p.handle);
    pair_join(&p);
    assert_int_equal(outcome_of(post_send(p.send, "x", 1, 0)), ncclSuccess);
    kl_socket_close(slow);
    kl_socket_close(silent);
    pair_close(&p);
}

/* More than a listener keeps: the oldest are closed, and the real sender gets in. */
static void crowds_are_bounded(void **state)
{
    enum { CROWD = 300 };
    int fd[CROWD];
    struct pair p;

    (void)state;
    pair_listen(&p);
    int before = count_fds();
    for (int i = 0; i < CROWD; i++) fd[i] = visit(&p.handle);
    for (int i = 0; i < CROWD; i++) assert_int_equal(net->accept(p.listener, &p.receiver, &p.recv), ncclInProgress);
    assert_int_equal(count_fds(), before + CROWD + 256);
    pair_join(&p);
    assert_int_equal(outcome_of(post_send(p.send, "x", 1, 0)), ncclSuccess);
    for (int i = 0; i < CROWD; i++) kl_socket_close(fd[i]);
    pair_close(&p);
}

static int attacks(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, note_fds, expect_no_more_fds)
    const struct CMUnitTest tests[] = {
        T(an_honest_relay_is_fine),
        T(a_changed_handshake_fails),
        T(a_changed_frame_ends_the_connection),
        T(a_whole_frame_counts),
        T(changed_data),
        T(reflected_frames),
        T(strangers_do_not_disturb),
        T(crowds_are_bounded),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* ---- settings that differ ---- */

/* One end, in a process with its own settings; the handle goes through a pipe. 0: it failed as expected. */
static int line[2];

static int be_listener(void)
{
    struct pair p;
    ncclResult_t rc = ncclInProgress;

    pair_listen(&p);
    if (write(line[1], &p.handle, sizeof p.handle) != sizeof p.handle) return 1;
    while (rc == ncclInProgress) rc = net->accept(p.listener, &p.receiver, &p.recv);
    printf("%s\n", kl_error_text());
    pair_close(&p);
    return rc != ncclInvalidUsage || !strstr(kl_error_text(), "set it alike on all ranks");
}

static int be_sender(void)
{
    struct pair p = {.sender = end_of(0, 1, 7)};
    ncclResult_t rc = ncclInProgress;

    if (read(line[0], &p.handle, sizeof p.handle) != sizeof p.handle) return 1;
    while (rc == ncclInProgress) rc = net->connect(0, &p.sender, &p.handle, &p.send);
    printf("%s\n", kl_error_text());
    return rc != ncclInvalidUsage || !strstr(kl_error_text(), "set it alike on all ranks");
}

static int differ(const struct setting *listener, const struct setting *sender)
{
    int status = -1;

    if (pipe(line)) return 1;
    fflush(stdout);
    pid_t pid = fork();
    if (!pid) exit(run_under(listener, be_listener));
    int failed = run_under(sender, be_sender);
    close(line[0]);
    close(line[1]);
    return failed | (waitpid(pid, &status, 0) != pid || status);
}

int main(void)
{
    static const struct setting settings[] = {
        {"in plain", "=lo", "AF_INET", "1", "0", "0"},
        {"encrypted", "=lo", "AF_INET", "1", "0", "1"},
    };
    int failed = 0;

    FOR_EACH_CASE(s, settings) failed += run_under(s, attacks);
    failed += differ(&settings[0], &settings[1]);
    failed += differ(&settings[1], &settings[0]);
    return failed;
}
