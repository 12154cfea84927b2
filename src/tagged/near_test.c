/* SPDX-License-Identifier: Apache-2.0 */
/* Ranks that share memory: packets in fifos, beside a bootstrap of the test's, which delivers when the test likes. */
#include "base/clock.h"
#include "tagged/packet_fifo.h"
#include "tagged/state.h"
#include "tests/kolo_test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RANKS = 3, MOST = 40000 };

struct packet {
    struct packet *next;
    int from;
    size_t bytes;
    unsigned char data[];
};

struct queue {
    struct packet *first, **last;
};

static struct rank {
    struct kl_tagged *tagged;
    int rank;
    char text[KL_ERROR_TEXT];
    pthread_t courier;
    bool stops;
} ranks[RANKS];

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of all below */
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static struct queue queues[RANKS][RANKS]; /* to, from */
static int posted, posted_calls;
static bool sharing;

/* ---- a bootstrap ---- */

static ncclResult_t post(void *ctx, int peer, const void *head, size_t head_bytes, const void *data, size_t bytes)
{
    const struct rank *me = ctx;
    struct packet *p = malloc(sizeof *p + head_bytes + bytes);
    uint32_t kind;

    *p = (struct packet){.from = me->rank, .bytes = head_bytes + bytes};
    memcpy(p->data, head, head_bytes);
    if (bytes) memcpy(p->data + head_bytes, data, bytes);
    memcpy(&kind, head, sizeof kind);
    pthread_mutex_lock(&lock);
    struct queue *q = &queues[peer][me->rank];
    *q->last = p;
    q->last = &p->next;
    posted++;
    posted_calls += kind == KL_TAGGED_CALL;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
    return ncclSuccess;
}

static struct packet *next_packet(int to, int from)
{
    struct queue *q = &queues[to][from];
    struct packet *p = q->first;

    if (p && !(q->first = p->next)) q->last = &q->first;
    return p;
}

static bool deliver(int to, int from)
{
    pthread_mutex_lock(&lock);
    struct packet *p = next_packet(to, from);
    pthread_mutex_unlock(&lock);
    if (!p) return false;
    kl_tagged_on_packet(ranks[to].tagged, from, p->data, p->bytes);
    free(p);
    return true;
}

static void deliver_all(void)
{
    for (bool some = true; some;) {
        some = false;
        for (int i = 0; i < RANKS * RANKS; i++) some |= deliver(i / RANKS, i % RANKS);
    }
}

static ncclResult_t watch(void *ctx, int peer)
{
    (void)ctx;
    (void)peer;
    return ncclSuccess;
}

static void fail_comm(void *ctx, int culprit, ncclResult_t code, const char *text)
{
    struct rank *me = ctx;

    (void)culprit;
    assert_int_equal(code, ncclRemoteError);
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
    return true;
}

static bool shares(void *ctx, int peer)
{
    (void)ctx;
    (void)peer;
    return sharing;
}

static enum kl_wait_cores cores(void *ctx)
{
    (void)ctx;
    return KL_CORES_SHARED;
}

static int begin(void **state)
{
    (void)state;
    kl_error_quiet(1);
    sharing = true;
    posted = posted_calls = 0;
    for (int i = 0; i < RANKS * RANKS; i++) {
        struct queue *q = &queues[i / RANKS][i % RANKS];
        *q = (struct queue){.last = &q->first};
    }
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
                                                .shares = shares,
                                                .cores = cores,
                                                .ctx = &ranks[r]};
        ranks[r] = (struct rank){.rank = r};
        if (kl_tagged_create(&config, &ranks[r].tagged)) return 1;
    }
    return 0;
}

static int end(void **state)
{
    (void)state;
    for (int r = 0; r < RANKS; r++) kl_tagged_fail(ranks[r].tagged);
    for (int r = 0; r < RANKS; r++) kl_tagged_free(ranks[r].tagged);
    for (int i = 0; i < RANKS * RANKS; i++)
        for (struct packet *p; (p = next_packet(i / RANKS, i % RANKS));) free(p);
    return 0;
}

/* ---- calls of a rank ---- */

static uint64_t send(int from, int to, int tag, const void *data, size_t bytes)
{
    uint64_t id = 0;

    assert_int_equal(kl_tagged_send(ranks[from].tagged, data, bytes, to, tag, 0, &id), ncclSuccess);
    return id;
}

static uint64_t receive(int rank, int from, int tag, void *data, size_t bytes)
{
    uint64_t id = 0;

    assert_int_equal(kl_tagged_receive(ranks[rank].tagged, data, bytes, from, tag, 0, &id), ncclSuccess);
    return id;
}

static ncclResult_t test(int rank, uint64_t id, struct kl_tagged_status *status)
{
    return kl_tagged_wait(ranks[rank].tagged, id, 0, "test", status);
}

static void finish(int rank, uint64_t id)
{
    assert_int_equal(kl_tagged_wait(ranks[rank].tagged, id, KL_NO_DEADLINE, "wait", NULL), ncclSuccess);
    assert_int_equal(kl_tagged_forget(ranks[rank].tagged, id, "forget"), ncclSuccess);
}

static bool has_fifo(int from, int to)
{
    struct kl_tagged *m = ranks[to].tagged;
    bool found = false;

    kl_tagged_lock(m);
    for (uint32_t i = 0; i < kl_load_relaxed(&m->nincoming); i++) found |= m->incoming[i].peer == from;
    kl_tagged_unlock(m);
    return found;
}

static int packets_posted(void)
{
    pthread_mutex_lock(&lock);
    int n = posted - posted_calls;
    pthread_mutex_unlock(&lock);
    return n;
}

/* Messages until one goes through a fifo: the event loop takes part in mapping it. */
static void join(int from, int to)
{
    int x = 0, before;

    do {
        before = packets_posted();
        finish(from, send(from, to, 1, &x, sizeof x));
        deliver_all();
        finish(to, receive(to, from, 1, &x, sizeof x));
    } while (packets_posted() != before);
}

/* ---- order ---- */

struct expected {
    int sent[RANKS], got[RANKS]; /* messages of each source to rank 0 */
    struct {
        uint64_t id;
        int source, number;
        unsigned char *data;
    } open[64];
    int nopen;
    struct {
        uint64_t id;
        int source;
        unsigned char *data;
    } sends[64];
    int nsends;
};

static size_t size_of(int number)
{
    return (unsigned)number * 2654435761u % 4 ? (unsigned)number * 40503u % 300 : (unsigned)number * 2654435761u % MOST;
}

static void start_send(struct expected *e, int source)
{
    int number = e->sent[source]++;
    size_t bytes = size_of(number);
    unsigned char *data = malloc(bytes + 1);

    memset(data, number + source, bytes);
    e->sends[e->nsends].source = source;
    e->sends[e->nsends].data = data;
    e->sends[e->nsends++].id = send(source, 0, 5, data, bytes);
}

static void start_receive(struct expected *e, int source)
{
    int number = e->got[source]++;

    e->open[e->nopen].source = source;
    e->open[e->nopen].number = number;
    e->open[e->nopen].data = calloc(1, MOST);
    e->open[e->nopen].id = receive(0, source, 5, e->open[e->nopen].data, MOST);
    e->nopen++;
}

static void check_receive(struct expected *e, int i)
{
    struct kl_tagged_status s;
    size_t bytes = size_of(e->open[i].number);

    if (test(0, e->open[i].id, &s) == ncclInProgress) return;
    assert_int_equal(s.bytes, bytes);
    for (size_t k = 0; k < bytes; k++)
        assert_int_equal(e->open[i].data[k], (unsigned char)(e->open[i].number + e->open[i].source));
    assert_int_equal(kl_tagged_forget(ranks[0].tagged, e->open[i].id, "forget"), ncclSuccess);
    free(e->open[i].data);
    e->open[i] = e->open[--e->nopen];
}

static void check_send(struct expected *e, int i)
{
    if (test(e->sends[i].source, e->sends[i].id, NULL) == ncclInProgress) return;
    assert_int_equal(kl_tagged_forget(ranks[e->sends[i].source].tagged, e->sends[i].id, "forget"), ncclSuccess);
    free(e->sends[i].data);
    e->sends[i] = e->sends[--e->nsends];
}

static void step(struct expected *e)
{
    int source = 1 + rand() % (RANKS - 1);

    switch (rand() % 6) {
    case 0:
        if (e->nsends < 60) start_send(e, source);
        break;
    case 1:
        if (e->nopen < 60 && e->got[source] < e->sent[source]) start_receive(e, source);
        break;
    case 2:
        if (e->nopen) check_receive(e, rand() % e->nopen);
        break;
    case 3:
        if (e->nsends) check_send(e, rand() % e->nsends);
        break;
    case 4:
        (void)deliver(0, source);
        break;
    default:
        (void)deliver(source, 0);
    }
}

/* Packets of the bootstrap come late, and some are too large for the room that is left in the fifo. */
static void two_ways_keep_one_order(void **state)
{
    struct expected e = {.nopen = 0};

    (void)state;
    for (int s = 1; s < RANKS; s++) {
        join(s, 0);
        join(0, s);
    }
    for (int i = 0; i < 60000; i++) step(&e);
    while (e.nopen || e.nsends || e.got[1] < e.sent[1] || e.got[2] < e.sent[2]) {
        for (int s = 1; s < RANKS; s++)
            if (e.nopen < 60 && e.got[s] < e.sent[s]) start_receive(&e, s);
        deliver_all();
        for (int i = e.nopen; i--;) check_receive(&e, i);
        for (int i = e.nsends; i--;) check_send(&e, i);
    }
    assert_true(e.sent[1] > 500 && posted < e.sent[1] + e.sent[2]); /* most went through fifos */
    assert_true(posted > 100);
}

static void without_common_memory_all_goes_over_the_bootstrap(void **state)
{
    int x = 3;

    (void)state;
    sharing = false;
    for (int i = 0; i < 20; i++) {
        finish(1, send(1, 0, 1, &x, sizeof x));
        deliver_all();
        finish(0, receive(0, 1, 1, &x, sizeof x));
    }
    assert_int_equal(posted, 20);
    assert_false(has_fifo(1, 0));
}

/* ---- waiting ---- */

static void *courier(void *arg)
{
    struct rank *me = arg;

    pthread_mutex_lock(&lock);
    while (!me->stops) {
        struct packet *p = NULL;
        for (int from = 0; !p && from < RANKS; from++) p = next_packet(me->rank, from);
        if (!p) {
            pthread_cond_wait(&changed, &lock);
            continue;
        }
        pthread_mutex_unlock(&lock);
        kl_tagged_on_packet(me->tagged, p->from, p->data, p->bytes);
        free(p);
        pthread_mutex_lock(&lock);
    }
    pthread_mutex_unlock(&lock);
    return NULL;
}

static void start_couriers(void)
{
    for (int r = 0; r < RANKS; r++) pthread_create(&ranks[r].courier, NULL, courier, &ranks[r]);
}

static void stop_couriers(void)
{
    pthread_mutex_lock(&lock);
    for (int r = 0; r < RANKS; r++) ranks[r].stops = true;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
    for (int r = 0; r < RANKS; r++) pthread_join(ranks[r].courier, NULL);
}

enum { ROUNDS = 3000 };

static void *answer(void *arg)
{
    unsigned char *data = malloc(MOST);

    for (int i = 0; i < ROUNDS; i++) {
        finish(0, receive(0, KL_TAGGED_ANY, KL_TAGGED_ANY, data, MOST));
        data[0]++;
        finish(0, send(0, 1, 9, data, size_of(i) + 1));
    }
    free(data);
    return arg;
}

static void waiting_threads_exchange(void **state)
{
    pthread_t thread;
    unsigned char *data = calloc(1, MOST);

    (void)state;
    start_couriers();
    pthread_create(&thread, NULL, answer, NULL);
    for (int i = 0; i < ROUNDS; i++) {
        data[0] = (unsigned char)i;
        finish(1, send(1, 0, 2, data, size_of(i) + 1));
        finish(1, receive(1, 0, 9, data, MOST));
        assert_int_equal(data[0], (unsigned char)(i + 1));
    }
    pthread_join(thread, NULL);
    stop_couriers();
    free(data);
}

static void *wait_for_one(void *arg)
{
    finish(0, receive(0, 1, 3, arg, 4));
    return NULL;
}

static void rest(int rank)
{
    kl_tagged_lock(ranks[rank].tagged);
    (void)kl_tagged_rest(ranks[rank].tagged);
    kl_tagged_unlock(ranks[rank].tagged);
}

static void a_receiver_that_does_not_look_is_called(void **state)
{
    char got[4] = "";

    (void)state;
    join(1, 0);
    uint64_t id = receive(0, 1, 3, got, sizeof got);
    rest(0);
    int before = posted_calls;
    finish(1, send(1, 0, 3, "abc", 4));
    finish(1, send(1, 0, 4, "def", 4)); /* it was called already */
    assert_int_equal(posted_calls, before + 1);
    deliver_all();
    finish(0, id);
    assert_string_equal(got, "abc");
    finish(0, receive(0, 1, 4, got, sizeof got));
    assert_string_equal(got, "def");
}

static void a_thread_that_waits_is_woken(void **state)
{
    pthread_t thread;
    char got[4];

    (void)state;
    join(1, 0);
    start_couriers();
    for (int i = 0; i < 50; i++) {
        memset(got, 0, sizeof got);
        pthread_create(&thread, NULL, wait_for_one, got);
        if (i % 2) rest(0);
        finish(1, send(1, 0, 3, "abc", 4));
        pthread_join(thread, NULL);
        assert_string_equal(got, "abc");
    }
    stop_couriers();
}

/* ---- peers that go, and bad ones ---- */

static void messages_of_a_departed_rank_are_read(void **state)
{
    int x = 5, y = 0;

    (void)state;
    join(1, 0);
    (void)send(1, 0, 4, &x, sizeof x);
    kl_tagged_on_left(ranks[0].tagged, 1);
    finish(0, receive(0, 1, 4, &y, sizeof y));
    assert_int_equal(y, 5);
}

static void broken_contents_fail_the_communicator(void **state)
{
    int x = 0;

    (void)state;
    join(1, 0);
    uint64_t id = receive(0, 1, 6, &x, sizeof x);
    kl_fetch_add_relaxed(&ranks[0].tagged->incoming[0].fifo->tail, 4);
    while (test(0, id, NULL) == ncclInProgress) continue;
    assert_int_equal(test(0, id, NULL), ncclRemoteError);
    if (!strstr(ranks[0].text, "rank 0: rank 1 has written invalid packets")) fail_msg("%s", ranks[0].text);
}

static void forged_offers_fail_the_communicator(void **state)
{
    for (int i = 0; i < 4; i++) {
        struct {
            struct kl_tagged_head head;
            uint64_t place[5]; /* handle; offset; bytes */
        } packet = {.head = {.kind = KL_TAGGED_FIFO}, .place = {0, 0, 0, 0, 2 * sizeof(struct kl_packet_fifo)}};

        end(state);
        begin(state);
        if (i == 0) packet.place[3] = 64;
        if (i == 1) packet.place[3] = 2 * sizeof(struct kl_packet_fifo);
        if (i == 2) packet.place[4] = 64;
        if (i == 3) packet.head.kind = KL_TAGGED_FIFO_REPLY;
        kl_tagged_on_packet(ranks[0].tagged, 1, &packet, i == 3 ? sizeof packet.head : sizeof packet);
        if (!strstr(ranks[0].text, "has sent an invalid packet")) fail_msg("%d: %s", i, ranks[0].text);
    }
}

#define near_test(f) cmocka_unit_test_setup_teardown(f, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        near_test(two_ways_keep_one_order),
        near_test(without_common_memory_all_goes_over_the_bootstrap),
        near_test(waiting_threads_exchange),
        near_test(a_receiver_that_does_not_look_is_called),
        near_test(a_thread_that_waits_is_woken),
        near_test(messages_of_a_departed_rank_are_read),
        near_test(broken_contents_fail_the_communicator),
        near_test(forged_offers_fail_the_communicator),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
