/* SPDX-License-Identifier: Apache-2.0 */
/* Ranks of one thread, whose packets wait in a queue until the test delivers them. */
#include "tagged/tagged.h"

#include "base/clock.h"
#include "tagged/state.h"
#include "tests/kolo_test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RANKS = 3, LONG = (5 * KL_TAGGED_PIECES * KL_TAGGED_PIECE_BYTES) / 2 + 3 };

struct packet {
    struct packet *next;
    int from, to;
    size_t bytes;
    unsigned char data[];
};

struct rank {
    struct kl_tagged *tagged;
    int rank, watched;
    bool failed;
    char text[KL_ERROR_TEXT];
};

static struct rank ranks[RANKS];
static struct packet *first, **last = &first;
static int delivered;    /* packets */
static size_t most_open; /* bytes of data on their way at a time */
static size_t open_bytes;
static bool near;

static ncclResult_t post(void *ctx, int peer, const void *head, size_t head_bytes, const void *data, size_t bytes)
{
    const struct rank *me = ctx;
    struct packet *l = malloc(sizeof *l + head_bytes + bytes);

    *l = (struct packet){.from = me->rank, .to = peer, .bytes = head_bytes + bytes};
    memcpy(l->data, head, head_bytes);
    if (bytes) memcpy(l->data + head_bytes, data, bytes);
    *last = l;
    last = &l->next;
    open_bytes += bytes;
    if (open_bytes > most_open) most_open = open_bytes;
    return ncclSuccess;
}

static ncclResult_t watch(void *ctx, int peer)
{
    (void)peer;
    ((struct rank *)ctx)->watched++;
    return ncclSuccess;
}

static void fail_comm(void *ctx, int culprit, ncclResult_t code, const char *text)
{
    struct rank *me = ctx;

    (void)culprit;
    assert_int_equal(code, ncclRemoteError);
    me->failed = true;
    snprintf(me->text, sizeof me->text, "%s", text);
    kl_tagged_fail(me->tagged);
}

static ncclResult_t failure(void *ctx)
{
    kl_error_adopt(((struct rank *)ctx)->text);
    return ncclRemoteError;
}

static bool is_near(void *ctx, int peer)
{
    (void)ctx;
    (void)peer;
    return near;
}

static bool deliver_one(void)
{
    struct packet *l = first;

    if (!l) return false;
    first = l->next;
    if (!first) last = &first;
    delivered++;
    open_bytes -= l->bytes - sizeof(struct kl_tagged_head);
    kl_tagged_on_packet(ranks[l->to].tagged, l->from, l->data, l->bytes);
    free(l);
    return true;
}

static void deliver(void)
{
    while (deliver_one()) continue;
}

static int begin(void **state)
{
    (void)state;
    kl_error_quiet(1);
    delivered = 0;
    most_open = open_bytes = 0;
    near = false;
    for (int r = 0; r < RANKS; r++) {
        const struct kl_tagged_config config = {.rank = r,
                                                .nranks = RANKS,
                                                .number = (uint16_t)(100 + r),
                                                .reads = true,
                                                .post = post,
                                                .watch = watch,
                                                .fail = fail_comm,
                                                .failure = failure,
                                                .is_near = is_near,
                                                .ctx = &ranks[r]};
        ranks[r] = (struct rank){.rank = r};
        if (kl_tagged_create(&config, &ranks[r].tagged)) return 1;
    }
    return 0;
}

static int end(void **state)
{
    (void)state;
    while (first) {
        struct packet *l = first;
        first = l->next;
        free(l);
    }
    last = &first;
    for (int r = 0; r < RANKS; r++) kl_tagged_free(ranks[r].tagged);
    return 0;
}

static void restart(void **state)
{
    end(state);
    assert_int_equal(begin(state), 0);
}

/* ---- calls of a rank ---- */

static uint64_t send(int from, int to, int tag, const void *data, size_t bytes)
{
    uint64_t id = 0;

    assert_int_equal(kl_tagged_send(ranks[from].tagged, data, bytes, to, tag, 0, &id), ncclSuccess);
    assert_int_not_equal(id, 0);
    return id;
}

static uint64_t receive(int rank, int from, int tag, void *data, size_t bytes)
{
    uint64_t id = 0;

    assert_int_equal(kl_tagged_receive(ranks[rank].tagged, data, bytes, from, tag, 0, &id), ncclSuccess);
    assert_int_equal(id & UINT16_MAX, 100 + rank);
    return id;
}

static ncclResult_t test(int rank, uint64_t id, struct kl_tagged_status *status)
{
    return kl_tagged_wait(ranks[rank].tagged, id, 0, "test", status);
}

static void expect_over(int rank, uint64_t id, int source, int tag, size_t bytes)
{
    struct kl_tagged_status s = {.source = -5};

    assert_int_equal(test(rank, id, &s), ncclSuccess);
    assert_int_equal(test(rank, id, NULL), ncclSuccess); /* as often as one likes */
    assert_int_equal(s.source, source);
    assert_int_equal(s.tag, tag);
    assert_int_equal(s.bytes, bytes);
    assert_int_equal(kl_tagged_forget(ranks[rank].tagged, id, "forget"), ncclSuccess);
    assert_int_equal(test(rank, id, NULL), ncclInvalidArgument);
}

static void expect_failure(int rank, uint64_t id, ncclResult_t rc, const char *text)
{
    assert_int_equal(test(rank, id, NULL), rc);
    if (!strstr(kl_error_text(), text)) fail_msg("\"%s\" is not in \"%s\"", text, kl_error_text());
}

static unsigned char *bytes_of(size_t n, int seed)
{
    unsigned char *data = malloc(n + 1);

    for (size_t i = 0; i < n; i++) data[i] = (unsigned char)((size_t)seed + i * 7 + i / 251);
    return data;
}

/* ---- which message a receive gets ---- */

static void tags_and_sources_decide(void **state)
{
    int got[4] = {0}, sent[4] = {10, 11, 12, 13};
    uint64_t tag9, any1, any, same;

    (void)state;
    tag9 = receive(0, 1, 9, &got[0], sizeof got[0]);
    any1 = receive(0, 1, KL_TAGGED_ANY, &got[1], sizeof got[1]);
    any = receive(0, KL_TAGGED_ANY, KL_TAGGED_ANY, &got[2], sizeof got[2]);
    send(2, 0, 9, &sent[0], sizeof sent[0]); /* the first receive wants rank 1 */
    send(1, 0, 4, &sent[1], sizeof sent[1]);
    send(1, 0, 9, &sent[2], sizeof sent[2]);
    send(1, 0, 9, &sent[3], sizeof sent[3]); /* no receive takes it */
    deliver();
    expect_over(0, any, 2, 9, sizeof(int));
    expect_over(0, any1, 1, 4, sizeof(int));
    expect_over(0, tag9, 1, 9, sizeof(int));
    same = receive(0, KL_TAGGED_ANY, 9, &got[3], sizeof got[3]);
    expect_over(0, same, 1, 9, sizeof(int));
    assert_int_equal(got[2], 10);
    assert_int_equal(got[1], 11);
    assert_int_equal(got[0], 12);
    assert_int_equal(got[3], 13);
}

/* Small and large ones of one sender, before and after the receives. */
static void messages_of_a_sender_keep_their_order(void **state)
{
    enum { N = 6 };
    unsigned char *sent[N], *got[N];
    uint64_t s[N], r[N];

    (void)state;
    for (int i = 0; i < N; i++) {
        size_t n = i & 1 ? LONG : 100;
        sent[i] = bytes_of(n, i);
        got[i] = calloc(1, LONG);
        s[i] = send(1, 0, 3, sent[i], n);
    }
    for (int i = 0; i < N / 2; i++) r[i] = receive(0, KL_TAGGED_ANY, 3, got[i], LONG);
    deliver();
    for (int i = N / 2; i < N; i++) r[i] = receive(0, 1, KL_TAGGED_ANY, got[i], LONG);
    deliver();
    for (int i = 0; i < N; i++) {
        size_t n = i & 1 ? LONG : 100;
        expect_over(0, r[i], 1, 3, n);
        expect_over(1, s[i], 0, 3, n);
        assert_memory_equal(got[i], sent[i], n);
        free(sent[i]);
        free(got[i]);
    }
    assert_true(most_open <= (size_t)(N + KL_TAGGED_PIECES) * KL_TAGGED_PIECE_BYTES); /* not all at once */
}

static void sizes_arrive_whole(void **state)
{
    static const size_t sizes[] = {0, 1, KL_TAGGED_EAGER_BYTES, KL_TAGGED_EAGER_BYTES + 1, KL_TAGGED_PIECE_BYTES, LONG};

    (void)state;
    for (int mapped = 0; mapped < 2; mapped++) {
        near = mapped;
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
            size_t n = sizes[i];
            unsigned char *sent = bytes_of(n, (int)i), *got = calloc(1, n + 1);
            uint64_t r = receive(2, 0, 0, got, n), s = send(0, 2, 0, sent, n);
            deliver();
            expect_over(2, r, 0, 0, n);
            expect_over(0, s, 2, 0, n);
            assert_memory_equal(got, sent, n);
            free(sent);
            free(got);
        }
    }
}

/* Read by the kernel: an offer, and the notice that it was taken. */
static void near_data_are_read_where_they_are(void **state)
{
    unsigned char *sent = bytes_of(LONG, 1), *got = calloc(1, LONG);

    (void)state;
    near = true;
    uint64_t r = receive(1, 0, 5, got, LONG), s = send(0, 1, 5, sent, LONG);
    deliver();
    if (delivered != 2) print_message("the kernel does not let this process read: pieces instead\n");
    expect_over(1, r, 0, 5, LONG);
    expect_over(0, s, 1, 5, LONG);
    assert_memory_equal(got, sent, LONG);
    free(sent);
    free(got);
}

static void a_rank_sends_to_itself(void **state)
{
    unsigned char *large = bytes_of(LONG, 2), *got = calloc(1, LONG);
    int small = 7, also = 0;

    (void)state;
    uint64_t s1 = send(0, 0, 1, &small, sizeof small), s2 = send(0, 0, 2, large, LONG);
    assert_int_equal(test(0, s2, NULL), ncclInProgress);
    uint64_t r2 = receive(0, 0, 2, got, LONG), r1 = receive(0, KL_TAGGED_ANY, KL_TAGGED_ANY, &also, sizeof also);
    expect_over(0, r2, 0, 2, LONG);
    expect_over(0, r1, 0, 1, sizeof also);
    expect_over(0, s1, 0, 1, sizeof small);
    expect_over(0, s2, 0, 2, LONG);
    assert_memory_equal(got, large, LONG);
    assert_int_equal(also, 7);
    uint64_t r3 = receive(0, 0, 3, got, LONG), s3 = send(0, 0, 3, large, LONG); /* the receive is there first */
    expect_over(0, r3, 0, 3, LONG);
    expect_over(0, s3, 0, 3, LONG);
    assert_int_equal(delivered, 0);
    free(large);
    free(got);
}

/* A sender keeps the messages that exceed its credit, and messages that are taken give credit back. */
static void waiting_messages_are_limited(void **state)
{
    enum { N = 3 * KL_TAGGED_CREDIT / KL_TAGGED_EAGER_BYTES };
    static unsigned char data[KL_TAGGED_EAGER_BYTES], got[KL_TAGGED_EAGER_BYTES];
    uint64_t s[N];
    int there = 0;

    (void)state;
    for (int i = 0; i < N; i++) s[i] = send(1, 0, i, data, sizeof data);
    for (int i = 0; i < N; i++) there += test(1, s[i], NULL) == ncclSuccess;
    assert_true(there < KL_TAGGED_CREDIT / KL_TAGGED_EAGER_BYTES && there > N / 4);
    deliver();
    for (int i = N - 1; i >= 0; i--) {
        uint64_t r = receive(0, 1, i, got, sizeof got);
        deliver();
        expect_over(0, r, 1, i, sizeof got);
    }
    expect_over(1, send(1, 0, 0, data, sizeof data), 0, 0, sizeof data); /* it may wait there again */
}

static void probes_see_and_leave(void **state)
{
    struct kl_tagged_status s = {.source = -5};
    int x = 3;

    (void)state;
    assert_int_equal(kl_tagged_probe(ranks[0].tagged, KL_TAGGED_ANY, 8, &s), ncclInProgress);
    send(2, 0, 8, &x, sizeof x);
    deliver();
    for (int i = 0; i < 2; i++) assert_int_equal(kl_tagged_probe(ranks[0].tagged, KL_TAGGED_ANY, 8, &s), ncclSuccess);
    assert_int_equal(s.source, 2);
    assert_int_equal(s.bytes, sizeof x);
    assert_int_equal(kl_tagged_probe(ranks[0].tagged, 1, 8, &s), ncclInProgress);
}

/* ---- failures ---- */

static void a_long_message_ends_its_receive_only(void **state)
{
    static const size_t sizes[] = {40, LONG};
    char got[16];
    int x = 5;

    (void)state;
    for (int i = 0; i < 2; i++) {
        unsigned char *sent = bytes_of(sizes[i], i);
        uint64_t r = receive(0, 1, 6, got, sizeof got), s = send(1, 0, 6, sent, sizes[i]);
        deliver();
        expect_failure(0, r, ncclInvalidUsage, "rank 1 with tag 6 has");
        expect_over(1, s, 0, 6, sizes[i]);
        free(sent);
    }
    send(1, 0, 6, &x, sizeof x);
    deliver();
    expect_over(0, receive(0, 1, 6, got, sizeof got), 1, 6, sizeof x);
}

static void only_waiting_receives_are_cancelled(void **state)
{
    unsigned char *large = bytes_of(LONG, 1), *got = calloc(1, LONG);

    (void)state;
    uint64_t gone = receive(0, 1, 6, got, LONG), stays = receive(0, 1, 6, got, LONG);
    assert_int_equal(kl_tagged_forget(ranks[0].tagged, gone, "forget"), ncclInvalidUsage);
    assert_int_equal(kl_tagged_cancel(ranks[0].tagged, gone, "cancel"), ncclSuccess);
    assert_int_equal(kl_tagged_cancel(ranks[0].tagged, gone, "cancel"), ncclInvalidArgument);
    uint64_t s = send(1, 0, 6, large, LONG);
    deliver_one(); /* the offer */
    assert_int_equal(kl_tagged_cancel(ranks[0].tagged, stays, "cancel"), ncclInProgress);
    assert_int_equal(kl_tagged_cancel(ranks[1].tagged, s, "cancel"), ncclInProgress);
    deliver();
    expect_over(0, stays, 1, 6, LONG);
    free(large);
    free(got);
}

static void a_departed_rank_ends_its_requests(void **state)
{
    unsigned char *large = bytes_of(LONG, 1);
    char got[16];
    int x = 1;

    (void)state;
    send(1, 0, 1, &x, sizeof x); /* arrives before it leaves: it stays */
    send(1, 0, 2, large, LONG);
    deliver_one();
    deliver_one();
    uint64_t r = receive(0, 1, 6, got, sizeof got), other = receive(0, 2, 6, got, sizeof got);
    uint64_t any = receive(0, KL_TAGGED_ANY, 6, got, sizeof got), s = send(0, 1, 0, large, LONG);
    assert_int_equal(ranks[0].watched, 2);
    kl_tagged_on_left(ranks[0].tagged, 1);
    expect_failure(0, r, ncclRemoteError, "rank 1 has left, and sends nothing more");
    expect_failure(0, s, ncclRemoteError, "rank 1 has left, and does not take the message");
    expect_failure(0, receive(0, 1, 6, got, sizeof got), ncclRemoteError, "rank 1 has left");
    expect_failure(0, send(0, 1, 6, got, sizeof got), ncclRemoteError, "rank 1 has left");
    expect_failure(0, receive(0, 1, 2, got, sizeof got), ncclRemoteError, "rank 1 has left"); /* the data have, too */
    expect_over(0, receive(0, 1, 1, got, sizeof got), 1, 1, sizeof x);
    assert_int_equal(test(0, other, NULL), ncclInProgress);
    assert_int_equal(test(0, any, NULL), ncclInProgress);
    kl_tagged_on_left(ranks[0].tagged, 2);
    expect_failure(0, other, ncclRemoteError, "rank 2 has left");
    expect_failure(0, any, ncclRemoteError, "has left");
    free(large);
}

static void a_failure_ends_all(void **state)
{
    char got[16];
    uint64_t id;

    (void)state;
    uint64_t r = receive(0, 1, 6, got, sizeof got);
    fail_comm(&ranks[0], 1, ncclRemoteError, "rank 1 is gone");
    expect_failure(0, r, ncclRemoteError, "rank 1 is gone");
    assert_int_equal(kl_tagged_receive(ranks[0].tagged, got, sizeof got, 1, 1, 0, &id), ncclRemoteError);
    assert_int_equal(kl_tagged_forget(ranks[0].tagged, r, "forget"), ncclSuccess);
}

static void silence_fails_the_communicator(void **state)
{
    char got[16];
    uint64_t id;

    (void)state;
    assert_int_equal(kl_tagged_receive(ranks[0].tagged, got, sizeof got, 1, 6, 1, &id), ncclSuccess);
    assert_int_equal(kl_tagged_wait(ranks[0].tagged, id, KL_NO_DEADLINE, "wait", NULL), ncclRemoteError);
    assert_true(ranks[0].failed);
    if (!strstr(ranks[0].text, "no message with tag 6 has come from rank 1: nothing moved for"))
        fail_msg("%s", ranks[0].text);
}

static void a_wait_may_be_given_up(void **state)
{
    int x = 1, got;

    (void)state;
    uint64_t r = receive(0, 1, 6, &got, sizeof got);
    assert_int_equal(kl_tagged_wait(ranks[0].tagged, r, kl_deadline_in_ms(2), "wait", NULL), ncclInProgress);
    send(1, 0, 6, &x, sizeof x);
    deliver();
    expect_over(0, r, 1, 6, sizeof x);
}

/* A peer sends anything: the communicator fails, with its name, and nothing is written outside of a buffer. */
static void forged_packets_fail_the_communicator(void **state)
{
    const struct kl_tagged_head forged[] = {
        {.kind = 0},
        {.kind = KL_TAGGED_KINDS},
        {.kind = KL_TAGGED_EAGER, .tag = -1},
        {.kind = KL_TAGGED_EAGER, .bytes = 5},
        {.kind = KL_TAGGED_OFFER, .bytes = 5, .from = 1},
        {.kind = KL_TAGGED_ASK, .bytes = 5, .to = 77},
        {.kind = KL_TAGGED_PIECE, .to = 77},
        {.kind = KL_TAGGED_TAKEN, .to = 77},
        {.kind = KL_TAGGED_REPAID, .bytes = 1},
    };

    for (size_t i = 0; i <= sizeof forged / sizeof *forged; i++) {
        restart(state);
        if (i < sizeof forged / sizeof *forged)
            kl_tagged_on_packet(ranks[0].tagged, 1, &forged[i], sizeof forged[i]);
        else
            kl_tagged_on_packet(ranks[0].tagged, 1, &forged[0], sizeof forged[0] - 1);
        if (!ranks[0].failed || !strstr(ranks[0].text, "rank 1 has sent")) fail_msg("%zu: %s", i, ranks[0].text);
    }
}

/* Of a request that exists: more than the buffer has, from another rank, or out of order. */
static void forged_pieces_write_nothing(void **state)
{
    for (int i = 0; i < 5; i++) {
        unsigned char *large = bytes_of(LONG, 1), *got = calloc(1, LONG), zero[8] = {0};
        struct {
            struct kl_tagged_head head;
            unsigned char data[8];
        } packet = {.head = {.kind = i < 3 ? KL_TAGGED_PIECE : KL_TAGGED_ASK, .bytes = 8}, .data = "8 bytes"};

        restart(state);
        uint64_t r = receive(0, 1, 6, got, LONG), s = send(0, 2, 6, large, LONG);
        send(1, 0, 6, large, LONG);
        deliver_one(); /* to rank 2: an offer */
        deliver_one(); /* to rank 0: it asks */
        packet.head.to = i < 3 ? r : s;
        if (i == 0) packet.head.offset = 8;
        if (i == 1) packet.head.bytes = 9;
        if (i == 3) packet.head.offset = LONG;
        size_t bytes = i < 3 ? sizeof packet : sizeof packet.head;
        kl_tagged_on_packet(ranks[0].tagged, i == 2 ? 2 : i == 4 ? 1 : i == 3 ? 2 : 1, &packet, bytes);
        assert_true(ranks[0].failed);
        assert_memory_equal(got, zero, sizeof zero);
        free(large);
        free(got);
    }
}

static void ids_are_not_used_again(void **state)
{
    int x = 0;

    (void)state;
    for (int i = 0; i < 200; i++) {
        uint64_t id = send(0, 1, 0, &x, sizeof x);
        assert_int_equal(kl_tagged_forget(ranks[0].tagged, id, "forget"), ncclSuccess);
        assert_int_equal(kl_tagged_forget(ranks[0].tagged, id, "forget"), ncclInvalidArgument);
        assert_int_not_equal(send(0, 1, 0, &x, sizeof x), id);
    }
    deliver();
}

#define tagged_test(f) cmocka_unit_test_setup_teardown(f, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        tagged_test(tags_and_sources_decide),
        tagged_test(messages_of_a_sender_keep_their_order),
        tagged_test(sizes_arrive_whole),
        tagged_test(near_data_are_read_where_they_are),
        tagged_test(a_rank_sends_to_itself),
        tagged_test(waiting_messages_are_limited),
        tagged_test(probes_see_and_leave),
        tagged_test(a_long_message_ends_its_receive_only),
        tagged_test(only_waiting_receives_are_cancelled),
        tagged_test(a_departed_rank_ends_its_requests),
        tagged_test(a_failure_ends_all),
        tagged_test(silence_fails_the_communicator),
        tagged_test(a_wait_may_be_given_up),
        tagged_test(forged_packets_fail_the_communicator),
        tagged_test(forged_pieces_write_nothing),
        tagged_test(ids_are_not_used_again),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
