/* SPDX-License-Identifier: Apache-2.0 */
/* Attacks on a connection from between its two ends: reading is impossible, and every change is noticed. */
#include "bootstrap/frame.h"
#include "bootstrap/handshake.h"
#include "bootstrap/outbox.h"
#include "tests/kolo_test.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

/* ---- a connection, and a recorded stream ---- */

enum { FRAMES = 4, STREAM_MAX = 2048 };
enum { PART = 8 }; /* bytes that do not meet by chance */

/* The last one is empty. */
static const char *const bodies[FRAMES] = {"a ticket: 0123456789abcdef", "an id: 00", "a message to all ranks", ""};

struct ends {
    struct kl_seal caller_out, caller_in, host_out, host_in;
};

static struct ends connect_with(int key)
{
    const struct kl_hello caller = {KL_PROTOCOL, KL_CONNECTION_PEER, KL_CALLER, 1, 2, 3};
    const struct kl_hello host = {KL_PROTOCOL, KL_CONNECTION_PEER, KL_HOST, 2, KL_NO_RANK, 3};
    struct kl_handshake h;
    struct ends e;

    memset(&h.key, key, sizeof h.key);
    kl_hello_encode(&caller, h.caller);
    kl_hello_encode(&host, h.host);
    kl_handshake_seals(&h, KL_CALLER, &e.caller_out, &e.caller_in);
    kl_handshake_seals(&h, KL_HOST, &e.host_out, &e.host_in);
    return e;
}

/* Where frame i lies in a stream. */
struct stream {
    unsigned char bytes[STREAM_MAX];
    size_t at[FRAMES + 1];
};

static struct stream say_all(struct kl_seal *out)
{
    struct stream s = {.at = {0}};

    for (int i = 0; i < FRAMES; i++) {
        struct kl_frame_head head = {.type = KL_FRAME_DATA, .tag = (uint32_t)i, .length = (uint32_t)strlen(bodies[i])};
        unsigned char *to = s.bytes + s.at[i];
        kl_frame_seal_head(out, &head, to);
        if (head.length) kl_frame_seal_piece(out, bodies[i], head.length, to + KL_FRAME_SEALED_HEAD);
        s.at[i + 1] = s.at[i] + (head.length ? KL_FRAME_SEALED(head.length) : KL_FRAME_SEALED_HEAD);
    }
    return s;
}

/* Read a stream to its end or to the first fault. All frames before it must be right. Returns how many frames. */
static int hear(struct kl_assembler *a, const unsigned char *bytes, size_t n, enum kl_frame_fault *fault)
{
    int heard = 0;

    *fault = KL_FRAME_SOUND;
    for (size_t at = 0; at < n && !*fault;) {
        struct kl_frame *f;
        size_t room;
        unsigned char *to = kl_assembler_room(a, &room);
        if (room > n - at) room = n - at;
        memcpy(to, bytes + at, room);
        at += room;
        *fault = kl_assembler_filled(a, room, KL_FRAME_MAX, &f);
        if (!f) continue;
        assert_int_equal(f->head.tag, heard);
        assert_int_equal(f->head.length, strlen(bodies[heard]));
        assert_memory_equal(f->body, bodies[heard], f->head.length);
        heard++;
        free(f);
    }
    return heard;
}

/* The alteration is noticed after `expected` frames. */
static void expect_altered(const struct kl_seal *in, const unsigned char *bytes, size_t n, int expected)
{
    struct kl_assembler a = {.seal = *in};
    enum kl_frame_fault fault;

    assert_int_equal(hear(&a, bytes, n, &fault), expected);
    assert_int_equal(fault, KL_FRAME_ALTERED);
    kl_assembler_fini(&a);
}

static void expect_all(const struct kl_seal *in, const struct stream *s)
{
    struct kl_assembler a = {.seal = *in};
    enum kl_frame_fault fault;

    assert_int_equal(hear(&a, s->bytes, s->at[FRAMES], &fault), FRAMES);
    assert_int_equal(fault, KL_FRAME_SOUND);
    kl_assembler_fini(&a);
}

static int frame_at(const struct stream *s, size_t at)
{
    int i = 0;

    while (at >= s->at[i + 1]) i++;
    return i;
}

/* ---- attacks ---- */

static void what_is_said_is_heard_both_ways(void **state)
{
    struct ends e = connect_with(1);

    (void)state;
    struct stream there = say_all(&e.caller_out), back = say_all(&e.host_out);
    expect_all(&e.host_in, &there);
    expect_all(&e.caller_in, &back);
}

static void every_bit_counts(void **state)
{
    struct ends e = connect_with(1);
    struct stream s = say_all(&e.caller_out);

    (void)state;
    for (size_t bit = 0; bit < 8 * s.at[FRAMES]; bit++) {
        s.bytes[bit / 8] ^= (unsigned char)(1u << bit % 8);
        expect_altered(&e.host_in, s.bytes, s.at[FRAMES], frame_at(&s, bit / 8));
        s.bytes[bit / 8] ^= (unsigned char)(1u << bit % 8);
    }
    expect_all(&e.host_in, &s);
}

/* No memory is allocated for an altered length. */
static void an_altered_length_is_not_believed(void **state)
{
    struct ends e = connect_with(1);
    struct stream s = say_all(&e.caller_out);

    (void)state;
    for (size_t i = 0; i < KL_FRAME_SEALED_HEAD; i++) {
        struct kl_assembler a = {.seal = e.host_in};
        enum kl_frame_fault fault;
        s.bytes[i] ^= 0x80;
        assert_int_equal(hear(&a, s.bytes, KL_FRAME_SEALED_HEAD, &fault), 0);
        assert_int_equal(fault, KL_FRAME_ALTERED);
        assert_null(a.frame);
        s.bytes[i] ^= 0x80;
        kl_assembler_fini(&a);
    }
}

static void append(unsigned char *to, size_t *n, const struct stream *s, int frame)
{
    memcpy(to + *n, s->bytes + s->at[frame], s->at[frame + 1] - s->at[frame]);
    *n += s->at[frame + 1] - s->at[frame];
}

static void frames_come_once_and_in_order(void **state)
{
    static const struct {
        int order[3], n, heard;
    } cases[] = {
        {{0, 0}, 2, 1},    /* repeated */
        {{0, 1, 0}, 3, 2}, /* repeated later */
        {{1, 0}, 2, 0},    /* exchanged */
        {{0, 2}, 2, 1},    /* left out */
        {{1, 2}, 2, 0},    /* the first one left out */
    };
    struct ends e = connect_with(1);
    struct stream s = say_all(&e.caller_out);

    (void)state;
    FOR_EACH_CASE(c, cases)
    {
        unsigned char bytes[STREAM_MAX];
        size_t n = 0;
        for (int i = 0; i < c->n; i++) append(bytes, &n, &s, c->order[i]);
        expect_altered(&e.host_in, bytes, n, c->heard);
    }
}

/* A body does not pass for a head, nor for the body of another frame. */
static void pieces_stay_where_they_are(void **state)
{
    struct ends e = connect_with(1);
    struct stream s = say_all(&e.caller_out);
    unsigned char bytes[STREAM_MAX];
    size_t first = s.at[1], head = KL_FRAME_SEALED_HEAD;

    (void)state;
    expect_altered(&e.host_in, s.bytes + head, s.at[FRAMES] - head, 0);
    memcpy(bytes, s.bytes, first);
    memcpy(bytes + head, s.bytes + s.at[2] + head, strlen(bodies[0])); /* another body of about the same length */
    expect_altered(&e.host_in, bytes, first, 0);
}

static void a_connection_has_its_own_keys(void **state)
{
    struct ends e = connect_with(1), again = connect_with(1), other = connect_with(2);
    struct stream s = say_all(&e.caller_out);

    (void)state;
    expect_altered(&e.caller_in, s.bytes, s.at[FRAMES], 0); /* reflected to its sender */
    expect_altered(&again.host_in, s.bytes, s.at[FRAMES], 0);
    expect_altered(&again.caller_in, s.bytes, s.at[FRAMES], 0);
    expect_altered(&other.host_in, s.bytes, s.at[FRAMES], 0);
    assert_memory_not_equal(&e.caller_out.key, &e.host_out.key, sizeof e.caller_out.key);
}

static void every_byte_of_the_hellos_is_in_the_keys(void **state)
{
    struct kl_handshake h;
    struct kl_seal out, in, out2, in2;

    (void)state;
    memset(&h, 7, sizeof h);
    kl_handshake_seals(&h, KL_CALLER, &out, &in);
    for (size_t i = 0; i < 2 * KL_HELLO_BYTES; i++) {
        unsigned char *at = i < KL_HELLO_BYTES ? &h.caller[i] : &h.host[i - KL_HELLO_BYTES];
        *at ^= 1;
        kl_handshake_seals(&h, KL_CALLER, &out2, &in2);
        assert_memory_not_equal(&out.key, &out2.key, sizeof out.key);
        assert_memory_not_equal(&in.key, &in2.key, sizeof in.key);
        *at ^= 1;
    }
}

/* A truncated stream never becomes a frame; the bytes of another do not complete it. */
static void what_is_cut_is_no_frame(void **state)
{
    struct ends e = connect_with(1);
    struct stream s = say_all(&e.caller_out);

    (void)state;
    for (size_t n = 0; n < s.at[FRAMES]; n++) {
        struct kl_assembler a = {.seal = e.host_in};
        enum kl_frame_fault fault;
        assert_int_equal(hear(&a, s.bytes, n, &fault), frame_at(&s, n));
        assert_int_equal(fault, KL_FRAME_SOUND); /* incomplete, not faulty */
        kl_assembler_fini(&a);
    }
    for (size_t cut = 1; cut < s.at[1]; cut++) { /* one byte is missing */
        unsigned char bytes[STREAM_MAX];
        memcpy(bytes, s.bytes, cut);
        memcpy(bytes + cut, s.bytes + cut + 1, s.at[FRAMES] - cut - 1);
        expect_altered(&e.host_in, bytes, s.at[FRAMES] - 1,
                       memcmp(bytes, s.bytes, s.at[1]) ? 0 : 1); /* equal by chance */
    }
}

static void nothing_can_be_read(void **state)
{
    struct ends e = connect_with(1);
    struct stream s = say_all(&e.caller_out);

    (void)state;
    for (int i = 0; i < FRAMES; i++)
        for (size_t part = 0; part + PART <= strlen(bodies[i]); part++)
            assert_null(memmem(s.bytes, s.at[FRAMES], bodies[i] + part, PART));
}

/* Equal plaintexts have different ciphertexts. */
static void the_same_twice_looks_different(void **state)
{
    struct kl_seal out = {.key = {{1}}}, in = out;
    unsigned char twice[2][8 + KL_SEAL_BYTES];

    (void)state;
    for (int i = 0; i < 2; i++) kl_seal_close(&out, "the same", 8, twice[i]);
    assert_memory_not_equal(twice[0], twice[1], sizeof twice[0]);
    for (int i = 0; i < 2; i++) {
        assert_true(kl_seal_open(&in, twice[i], 8));
        assert_memory_equal(twice[i], "the same", 8);
    }
    assert_int_equal(in.number, 2);
}

static void numbers_go_on_beyond_32_bits(void **state)
{
    struct kl_seal out = {.number = UINT32_MAX}, in = out, low = {.number = 0};
    unsigned char sealed[3][1 + KL_SEAL_BYTES];

    (void)state;
    for (int i = 0; i < 3; i++) kl_seal_close(&out, "x", 1, sealed[i]);
    assert_int_equal(out.number, (uint64_t)UINT32_MAX + 3);
    assert_false(kl_seal_open(&low, sealed[1], 1)); /* number 2^32 is not number 0 */
    assert_int_equal(low.number, 0);
    for (int i = 0; i < 3; i += 2) {
        in.number = (uint64_t)UINT32_MAX + (uint64_t)i;
        assert_true(kl_seal_open(&in, sealed[i], 1));
    }
}

/* ---- bodies of several pieces ---- */

enum { LONG = 3 * KL_FRAME_PIECE + 5, SEALED_PIECE = KL_FRAME_PIECE + KL_SEAL_BYTES };

static size_t say_long(struct kl_seal *out, const unsigned char *body, unsigned char *to)
{
    struct kl_frame_head head = {.type = KL_FRAME_DATA, .length = LONG};
    size_t n = KL_FRAME_SEALED_HEAD;

    kl_frame_seal_head(out, &head, to);
    for (size_t done = 0, piece; done < LONG; done += piece, n += piece + KL_SEAL_BYTES)
        piece = kl_frame_seal_piece(out, body + done, LONG - done, to + n);
    return n;
}

/* NULL: altered. */
static struct kl_frame *hear_long(const struct kl_seal *in, const unsigned char *bytes, size_t n)
{
    struct kl_assembler a = {.seal = *in};
    enum kl_frame_fault fault = KL_FRAME_SOUND;
    struct kl_frame *f = NULL;

    for (size_t at = 0; at < n && !fault;) {
        size_t room;
        unsigned char *to = kl_assembler_room(&a, &room);
        if (room > 10007) room = 10007;
        if (room > n - at) room = n - at;
        memcpy(to, bytes + at, room);
        at += room;
        fault = kl_assembler_filled(&a, room, KL_FRAME_MAX, &f);
    }
    assert_int_equal(!f, fault == KL_FRAME_ALTERED);
    kl_assembler_fini(&a);
    return f;
}

static void long_bodies_are_sealed_piece_by_piece(void **state)
{
    enum { ROOM = LONG + KL_FRAME_SEALED_HEAD + 4 * KL_SEAL_BYTES };
    unsigned char *body = malloc(LONG), *bytes = malloc(ROOM), *other = malloc(ROOM);
    struct ends e = connect_with(1);

    (void)state;
    for (size_t i = 0; i < LONG; i++) body[i] = (unsigned char)(i * 7 + i / 251);
    assert_int_equal(say_long(&e.caller_out, body, bytes), ROOM);
    struct kl_frame *f = hear_long(&e.host_in, bytes, ROOM);
    assert_non_null(f);
    assert_memory_equal(f->body, body, LONG);
    free(f);

    memcpy(other, bytes, ROOM); /* pieces 1 and 2 in the other order */
    memcpy(other + KL_FRAME_SEALED_HEAD + SEALED_PIECE, bytes + KL_FRAME_SEALED_HEAD + 2 * SEALED_PIECE, SEALED_PIECE);
    memcpy(other + KL_FRAME_SEALED_HEAD + 2 * SEALED_PIECE, bytes + KL_FRAME_SEALED_HEAD + SEALED_PIECE, SEALED_PIECE);
    assert_null(hear_long(&e.host_in, other, ROOM));
    for (size_t at = KL_FRAME_SEALED_HEAD; at < ROOM; at += 997) {
        memcpy(other, bytes, ROOM);
        other[at] ^= 1;
        assert_null(hear_long(&e.host_in, other, ROOM));
    }
    free(body);
    free(bytes);
    free(other);
}

/* ---- outbox ---- */

/* Frames of all kinds through a small pipe, some of them taken back while queued. */
static void an_outbox_seals_in_the_order_in_which_it_sends(void **state)
{
    static unsigned char body[LONG];
    struct kl_outbox out = {.seal = {.key = {{9}}}};
    struct kl_assembler a = {.seal = {.key = {{9}}}};
    struct kl_queued_frame *borrowed = NULL;
    int ends[2], seen = 0;
    bool gone = false;

    (void)state;
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    for (size_t i = 0; i < LONG; i++) body[i] = (unsigned char)(i % 253);
    for (uint32_t i = 0; i < 12; i++) {
        struct kl_frame_head head = {.type = KL_FRAME_DATA, .tag = i, .length = i % 3 ? i : LONG - i};
        if (i == 3)
            borrowed = kl_outbox_add_borrowed(&out, &head, body);
        else
            assert_true(kl_outbox_add(&out, &head, body));
    }
    while (seen < 12) {
        struct kl_frame *f;
        size_t room;
        int err = kl_outbox_flush(&out, ends[0], &gone);
        assert_true(!err || err == EAGAIN);
        if (seen == 3 && borrowed && a.frame) { /* partly written */
            assert_true(kl_outbox_reclaim(&out, borrowed));
            borrowed = NULL;
        }
        unsigned char *to = kl_assembler_room(&a, &room);
        ssize_t n = recv(ends[1], to, room, 0);
        assert_true(n > 0);
        assert_int_equal(kl_assembler_filled(&a, (size_t)n, KL_FRAME_MAX, &f), KL_FRAME_SOUND);
        if (!f) continue;
        assert_int_equal(f->head.tag, seen);
        assert_int_equal(f->head.length, seen % 3 ? seen : LONG - seen);
        assert_memory_equal(f->body, body, f->head.length);
        free(f);
        seen++;
    }
    assert_null(borrowed);
    kl_assembler_fini(&a);
    kl_outbox_fini(&out);
    close(ends[0]);
    close(ends[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_said_is_heard_both_ways),
        cmocka_unit_test(every_bit_counts),
        cmocka_unit_test(an_altered_length_is_not_believed),
        cmocka_unit_test(frames_come_once_and_in_order),
        cmocka_unit_test(pieces_stay_where_they_are),
        cmocka_unit_test(a_connection_has_its_own_keys),
        cmocka_unit_test(every_byte_of_the_hellos_is_in_the_keys),
        cmocka_unit_test(what_is_cut_is_no_frame),
        cmocka_unit_test(nothing_can_be_read),
        cmocka_unit_test(the_same_twice_looks_different),
        cmocka_unit_test(numbers_go_on_beyond_32_bits),
        cmocka_unit_test(long_bodies_are_sealed_piece_by_piece),
        cmocka_unit_test(an_outbox_seals_in_the_order_in_which_it_sends),
    };

    return cmocka_run_group_tests_name("seals", tests, NULL, NULL);
}
