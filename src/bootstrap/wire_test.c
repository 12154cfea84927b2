/* SPDX-License-Identifier: Apache-2.0 */
/* Data on the wire, as bytes: frames, records, handshakes, ids. */
#include "base/error.h"
#include "bootstrap/bootstrap.h"
#include "bootstrap/frame.h"
#include "bootstrap/handshake.h"
#include "bootstrap/id.h"
#include "bootstrap/partners.h"
#include "bootstrap/ranges.h"
#include "bootstrap/record.h"
#include "bootstrap/wire.h"
#include "tests/kolo_test.h"

#include <stdio.h>
#include <stdlib.h>

/* ---- cursors ---- */

static void cursors_stop_at_their_end(void **state)
{
    unsigned char bytes[7] = {0};
    struct kl_writer w = kl_writer_on(bytes, sizeof bytes);
    struct kl_reader r = kl_reader_on(bytes, sizeof bytes);

    (void)state;
    kl_put_u16(&w, 0x1234);
    kl_put_u32(&w, 0x56789abc);
    assert_false(w.bad);
    kl_put_u16(&w, 0xffff); /* one byte is left */
    kl_put_u8(&w, 0xff);    /* it would fit, but the record is bad already */
    assert_true(w.bad);
    assert_memory_equal(bytes, "\x34\x12\xbc\x9a\x78\x56\x00", 7);
    assert_int_equal(kl_get_u32(&r), 0x9abc1234);
    assert_int_equal(kl_get_u32(&r), 0);
    assert_true(r.bad);
    assert_int_equal(kl_get_u8(&r), 0);
}

/* ---- frames ---- */

static const struct head_case {
    const char *label;
    unsigned char head[KL_FRAME_HEAD];
    bool good;
} head_cases[] = {
    {"data", {1, 4, 3, 2, 1, 0, 0, 0, 1}, true}, /* 16 MiB exactly */
    {"too long", {1, 0, 0, 0, 0, 1, 0, 0, 1}, false},
    {"far too long", {1, 0, 0, 0, 0, 255, 255, 255, 255}, false},
    {"type 0", {0, 0, 0, 0, 0, 0, 0, 0, 0}, false},
    {"type too large", {KL_FRAME_TYPES, 0, 0, 0, 0, 0, 0, 0, 0}, false},
};

static const struct kl_seal seal = {.key = {{4, 5, 6}}};

static void heads_are_checked(void **state)
{
    (void)state;
    FOR_EACH_CASE(c, head_cases)
    {
        struct kl_assembler a = {.seal = seal};
        struct kl_seal out = seal;
        struct kl_frame *f = NULL;
        size_t room;

        kl_seal_close(&out, c->head, sizeof c->head, kl_assembler_room(&a, &room));
        enum kl_frame_fault fault = kl_assembler_filled(&a, KL_FRAME_SEALED_HEAD, KL_FRAME_MAX, &f);
        expect_case(c->label, fault == (c->good ? KL_FRAME_SOUND : KL_FRAME_NONSENSE) && !f);
        expect_case(c->label, !a.frame == !c->good);
        if (c->good) expect_case(c->label, a.frame->head.tag == 0x01020304);
        if (c->good) expect_case(c->label, a.frame->head.length == KL_FRAME_MAX);
        kl_assembler_fini(&a);
    }
}

/* Feed a stream in pieces of `piece` bytes; the messages found must be those that were encoded. */
static void feed(const unsigned char *stream, size_t bytes, size_t piece, int nmessages)
{
    struct kl_assembler a = {.seal = seal};
    int seen = 0;

    for (size_t at = 0; at < bytes;) {
        struct kl_frame *m;
        size_t room, n = piece < bytes - at ? piece : bytes - at;
        unsigned char *to = kl_assembler_room(&a, &room);
        assert_in_range(room, 1, KL_FRAME_MAX);
        if (n > room) n = room;
        memcpy(to, stream + at, n);
        at += n;
        assert_int_equal(kl_assembler_filled(&a, n, 100, &m), KL_FRAME_SOUND);
        if (!m) continue;
        assert_int_equal(m->head.tag, seen);
        assert_int_equal(m->head.length, seen * 3);
        for (uint32_t i = 0; i < m->head.length; i++) assert_int_equal(m->body[i], (seen + (int)i) & 255);
        free(m);
        seen++;
    }
    assert_int_equal(seen, nmessages);
    kl_assembler_fini(&a);
}

static void frames_are_assembled_from_any_pieces(void **state)
{
    unsigned char stream[4096], body[100];
    struct kl_seal out = seal;
    size_t bytes = 0;

    (void)state;
    for (int k = 0; k < 20; k++) {
        struct kl_frame_head f = {.type = KL_FRAME_DATA, .tag = (uint32_t)k, .length = (uint32_t)k * 3};
        for (int i = 0; i < k * 3; i++) body[i] = (unsigned char)(k + i);
        kl_frame_seal_head(&out, &f, stream + bytes);
        bytes += KL_FRAME_SEALED_HEAD;
        if (!k) continue;
        assert_int_equal(kl_frame_seal_piece(&out, body, f.length, stream + bytes), f.length);
        bytes += f.length + KL_SEAL_BYTES;
    }
    for (size_t piece = 1; piece <= bytes; piece += piece < 70 ? 1 : 61) feed(stream, bytes, piece, 20);
}

static void an_assembler_refuses_what_is_too_long(void **state)
{
    struct kl_frame_head f = {.type = KL_FRAME_DATA, .length = 101};
    struct kl_assembler a = {.seal = seal};
    struct kl_seal out = seal;
    struct kl_frame *m = NULL;
    size_t room;

    (void)state;
    kl_frame_seal_head(&out, &f, kl_assembler_room(&a, &room));
    assert_int_equal(room, KL_FRAME_SEALED_HEAD);
    assert_int_equal(kl_assembler_filled(&a, room, 100, &m), KL_FRAME_NONSENSE);
    assert_null(m);
    assert_null(a.frame);
    kl_assembler_fini(&a);
}

/* ---- records ---- */

static struct kl_address_record some_record(int rank)
{
    struct kl_address_record record = {.rank = rank, .pid = 123456789012, .naddresses = 2};

    snprintf(record.host, sizeof record.host, "host-%d", rank);
    assert_int_equal(kl_address_parse("10.0.0.7:4660", &record.address[0]), ncclSuccess);
    assert_int_equal(kl_address_parse("[fd00::7]:4661", &record.address[1]), ncclSuccess);
    return record;
}

static void announcements_survive(void **state)
{
    struct kl_announce a = {.nranks = 8, .library = 22809, .timeout_ms = 60000, .record = some_record(7)}, b;
    unsigned char wire[KL_ANNOUNCE_WIRE + 1];

    (void)state;
    kl_announce_encode(&a, wire);
    memset(&b, 0x55, sizeof b);
    assert_true(kl_announce_decode(wire, KL_ANNOUNCE_WIRE, &b));
    assert_int_equal(b.nranks, 8);
    assert_int_equal(b.library, 22809);
    assert_int_equal(b.timeout_ms, 60000);
    assert_memory_equal(&a.record, &b.record, sizeof a.record);
    for (size_t n = 0; n <= sizeof wire; n++) assert_int_equal(kl_announce_decode(wire, n, &b), n == KL_ANNOUNCE_WIRE);
}

static void announcements_out_of_range_are_refused(void **state)
{
    static const struct {
        const char *label;
        int nranks, rank, naddresses;
    } cases[] = {
        {"no ranks", 0, 0, 1},
        {"too many ranks", KL_MAX_RANKS + 1, 0, 1},
        {"rank = nranks", 8, 8, 1},
        {"negative rank", 8, -1, 1},
        {"negative nranks", -8, 0, 1},
        {"nowhere to reach it", 8, 0, 0},
        {"a rank beyond all", 8, KL_MAX_RANKS, 1},
    };

    (void)state;
    FOR_EACH_CASE(c, cases)
    {
        struct kl_announce a = {.nranks = c->nranks, .record = some_record(c->rank)};
        unsigned char wire[KL_ANNOUNCE_WIRE];
        a.record.naddresses = c->naddresses;
        kl_announce_encode(&a, wire);
        expect_case(c->label, !kl_announce_decode(wire, sizeof wire, &a));
    }
}

static void introductions_survive(void **state)
{
    static const int counts[] = {0, 1, KL_MAX_PARTNERS};
    struct kl_introduction a = {.placement = {.process = 1, .nprocesses = 3, .place = 4, .nmembers = 5}}, b;
    unsigned char wire[KL_INTRODUCTION_WIRE(2 * KL_MAX_PARTNERS) + 1];

    (void)state;
    memset(a.session, 0xab, sizeof a.session);
    for (int i = 0; i < 2 * KL_MAX_PARTNERS; i++) a.partner[i] = some_record(i);
    FOR_EACH_CASE(n, counts)
    {
        FOR_EACH_CASE(m, counts)
        {
            size_t nrecords = (size_t)(*n + *m);
            a.npartners = *n;
            a.nleaders = *m;
            kl_introduction_encode(&a, wire);
            assert_true(kl_introduction_decode(wire, KL_INTRODUCTION_WIRE(nrecords), &b));
            assert_int_equal(b.npartners, *n);
            assert_int_equal(b.nleaders, *m);
            assert_memory_equal(b.session, a.session, sizeof a.session);
            assert_memory_equal(&b.placement, &a.placement, sizeof a.placement);
            assert_memory_equal(b.partner, a.partner, nrecords * sizeof a.partner[0]);
            assert_false(kl_introduction_decode(wire, KL_INTRODUCTION_WIRE(nrecords) + 1, &b));
            assert_false(kl_introduction_decode(wire, KL_INTRODUCTION_WIRE(nrecords) - 1, &b));
        }
    }
    wire[KL_SESSION + 16] = KL_MAX_PARTNERS + 1; /* partners, behind four numbers of the placement */
    assert_false(kl_introduction_decode(wire, sizeof wire, &b));
    assert_false(kl_introduction_decode(wire, 3, &b));
}

static void lodgings_out_of_range_are_refused(void **state)
{
    static const struct {
        const char *label;
        struct kl_placement placement;
    } cases[] = {{"no process", {0, 0, 0, 1}},        {"nobody in it", {0, 1, 0, 0}},
                 {"a process too far", {2, 2, 0, 1}}, {"a place too far", {0, 1, 3, 3}},
                 {"a negative place", {0, 1, -1, 3}}, {"too many", {0, KL_MAX_RANKS + 1, 0, 1}}};
    unsigned char wire[KL_INTRODUCTION_WIRE(0)];
    struct kl_introduction b;

    (void)state;
    FOR_EACH_CASE(c, cases)
    {
        const struct kl_introduction a = {.placement = c->placement};
        kl_introduction_encode(&a, wire);
        expect_case(c->label, !kl_introduction_decode(wire, sizeof wire, &b));
    }
}

static void notices_survive(void **state)
{
    struct kl_notice a = {.culprit = -1, .code = ncclRemoteError, .text = "rank 1 is gone"}, b;
    unsigned char wire[KL_NOTICE_WIRE_MAX + 8];

    (void)state;
    size_t n = kl_notice_encode(&a, wire);
    assert_true(kl_notice_decode(wire, n, &b));
    assert_int_equal(b.culprit, -1);
    assert_int_equal(b.code, ncclRemoteError);
    assert_string_equal(b.text, a.text);
    wire[n - 1] = 27; /* an escape character, which a terminal would interpret */
    assert_true(kl_notice_decode(wire, n, &b));
    assert_string_equal(b.text, "rank 1 is gon?");
    memset(a.text, 'x', sizeof a.text);
    assert_true(kl_notice_decode(wire, kl_notice_encode(&a, wire), &b));
    assert_int_equal(strlen(b.text), KL_ERROR_TEXT - 1);
}

static void notices_out_of_range_are_refused(void **state)
{
    static const struct {
        const char *label;
        int culprit, code;
    } cases[] = {
        {"success", 0, ncclSuccess}, {"in progress", 0, ncclInProgress}, {"no code", 0, 99},
        {"negative code", 0, -1},    {"no rank", -2, ncclRemoteError},   {"beyond all ranks", KL_MAX_RANKS, 6},
    };
    unsigned char wire[KL_NOTICE_WIRE_MAX + 8] = {0};
    struct kl_notice n;

    (void)state;
    FOR_EACH_CASE(c, cases)
    {
        struct kl_notice bad = {.culprit = c->culprit, .code = (ncclResult_t)c->code, .text = "x"};
        expect_case(c->label, !kl_notice_decode(wire, kl_notice_encode(&bad, wire), &n));
    }
    memset(wire, 6, 8);
    wire[0] = 0, wire[1] = 0, wire[2] = 0, wire[3] = 0, wire[5] = 0, wire[6] = 0, wire[7] = 0;
    assert_true(kl_notice_decode(wire, 8, &n)); /* no text */
    assert_false(kl_notice_decode(wire, 7, &n));
    assert_false(kl_notice_decode(wire, 8 + KL_ERROR_TEXT, &n)); /* too long a text */
}

/* ---- handshake ---- */

static struct kl_handshake greeted(uint32_t from, uint32_t to)
{
    struct kl_handshake h;
    struct kl_hello caller = {KL_PROTOCOL, KL_CONNECTION_PEER, KL_CALLER, from, to, 0xfedcba98};
    struct kl_hello host = {KL_PROTOCOL, KL_CONNECTION_PEER, KL_HOST, to, KL_NO_RANK, 0xfedcba98};

    memset(&h.key, 7, sizeof h.key);
    kl_hello_encode(&caller, h.caller);
    kl_hello_encode(&host, h.host);
    return h;
}

static void only_the_same_handshake_accepts_a_proof(void **state)
{
    struct kl_handshake h = greeted(1, 2), other = greeted(1, 2), wrong = h;
    unsigned char proof[KL_PROOF_BYTES];

    (void)state;
    kl_handshake_prove(&h, proof);
    assert_true(kl_handshake_proved(&h, proof));
    assert_false(kl_handshake_proved(&other, proof)); /* fresh random bytes: a replay is of no use */
    wrong.key.bytes[31] ^= 1;
    assert_false(kl_handshake_proved(&wrong, proof));
    for (size_t i = 0; i < KL_HELLO_BYTES; i++) { /* nor may any byte of the hellos be changed */
        wrong = h;
        wrong.caller[i] ^= 1;
        assert_false(kl_handshake_proved(&wrong, proof));
        wrong = h;
        wrong.host[i] ^= 1;
        assert_false(kl_handshake_proved(&wrong, proof));
    }
    for (size_t i = 0; i < sizeof proof; i++) {
        proof[i] ^= 0x80;
        assert_false(kl_handshake_proved(&h, proof));
        proof[i] ^= 0x80;
    }
}

static void answers_are_proofs_too(void **state)
{
    struct kl_handshake h = greeted(1, 2), wrong = h;
    unsigned char answer[KL_ANSWER_BYTES], proof[KL_PROOF_BYTES];
    enum kl_handshake_outcome outcome;

    (void)state;
    for (int o = KL_ADMITTED; o < KL_HANDSHAKE_OUTCOMES; o++) {
        kl_handshake_answer(&h, (enum kl_handshake_outcome)o, answer);
        assert_true(kl_handshake_answered(&h, answer, &outcome));
        assert_int_equal(outcome, o);
    }
    kl_handshake_answer(&h, KL_ELSEWHERE, answer);
    answer[0] = KL_ADMITTED; /* the outcome is proved, too */
    assert_false(kl_handshake_answered(&h, answer, &outcome));
    kl_handshake_answer(&h, KL_ADMITTED, answer);
    wrong.key.bytes[0] ^= 1;
    assert_false(kl_handshake_answered(&wrong, answer, &outcome));
    kl_handshake_prove(&h, proof); /* reflection of the caller's own proof */
    memcpy(answer + 8, proof, sizeof proof);
    assert_false(kl_handshake_answered(&h, answer, &outcome));
    memset(answer, 0, sizeof answer);
    assert_false(kl_handshake_answered(&h, answer, &outcome));
    answer[0] = KL_HANDSHAKE_OUTCOMES;
    assert_false(kl_handshake_answered(&h, answer, &outcome));
    for (int o = KL_REFUSED; o <= KL_UNKNOWN;
         o += KL_UNKNOWN - KL_REFUSED) { /* these need no key, and reveal nothing about it */
        kl_handshake_answer(&h, (enum kl_handshake_outcome)o, answer);
        for (size_t i = 8; i < sizeof answer; i++) assert_int_equal(answer[i], 0);
    }
}

static void hellos_say_what_they_mean(void **state)
{
    struct kl_handshake h = greeted(0x01020304, 5);
    struct kl_hello hello = kl_hello_decode(h.caller);

    (void)state;
    assert_int_equal(hello.version, KL_PROTOCOL);
    assert_int_equal(hello.type, KL_CONNECTION_PEER);
    assert_int_equal(hello.side, KL_CALLER);
    assert_int_equal(hello.from, 0x01020304);
    assert_int_equal(hello.to, 5);
    assert_int_equal(hello.name, 0xfedcba98);
    assert_true(kl_hello_plausible(h.caller));
    h.caller[7] ^= 1;
    assert_false(kl_hello_plausible(h.caller));
}

static void keys_are_for_one_purpose(void **state)
{
    struct kl_key secret = kl_key_from_text("open sesame"), other = kl_key_from_text("open sesam");
    struct kl_key a = kl_key_derive(&secret, "root", NULL, 0), b = kl_key_derive(&secret, "peer", NULL, 0),
                  c = kl_key_derive(&secret, "peer", "salt", 4), d = kl_key_derive(&secret, "peer", "salt", 4),
                  e = kl_key_derive(&other, "peer", "salt", 4);

    (void)state;
    assert_memory_not_equal(&a, &b, sizeof a);
    assert_memory_not_equal(&b, &c, sizeof a);
    assert_memory_equal(&c, &d, sizeof a);
    assert_memory_not_equal(&d, &e, sizeof a);
    kl_key_wipe(&a);
    for (size_t i = 0; i < sizeof a; i++) assert_int_equal(a.bytes[i], 0);
}

/* ---- ids ---- */

static struct kl_id some_id(int naddresses)
{
    struct kl_id id = {.kind = KL_ID_ROOT_RUNS, .naddresses = naddresses};

    memset(&id.secret, 9, sizeof id.secret);
    for (int i = 0; i < naddresses; i++)
        assert_int_equal(kl_address_parse(i ? "[fd00::9]:1234" : "10.0.0.9:1234", &id.address[i]), ncclSuccess);
    return id;
}

static void ids_survive_as_bytes_and_digits(void **state)
{
    (void)state;
    for (int n = 1; n <= KL_ADDRESSES; n++) {
        struct kl_id id = some_id(n), back = {0};
        ncclUniqueId bytes, again;
        char text[2 * NCCL_UNIQUE_ID_BYTES + 1];

        kl_id_pack(&id, &bytes);
        assert_true(kl_id_unpack(&bytes, &back));
        assert_memory_equal(&id, &back, sizeof id);
        kl_bootstrap_id_format(&bytes, text);
        assert_int_equal(strlen(text), 256);
        assert_int_equal(kl_bootstrap_id_parse(text, &again), ncclSuccess);
        assert_memory_equal(&bytes, &again, sizeof bytes);
    }
}

static void bytes_that_are_no_id_are_refused(void **state)
{
    static const struct {
        const char *label;
        size_t at;
        char value;
    } cases[] = {
        {"mark", 0, 'X'},   {"version", 6, 99}, {"kind", 7, 3},   {"family", 40, 5},
        {"no port", 42, 0}, {"gap", 40, 0},     {"tail", 127, 1},
    };
    struct kl_id id = some_id(2), back;
    ncclUniqueId good, zero = {{0}};

    (void)state;
    kl_id_pack(&id, &good);
    good.internal[43] = 0; /* a port below 256, so that one byte can make it 0 */
    assert_true(kl_id_unpack(&good, &back));
    assert_false(kl_id_unpack(&zero, &back));
    FOR_EACH_CASE(c, cases)
    {
        ncclUniqueId bad = good;
        bad.internal[c->at] = c->value;
        expect_case(c->label, !kl_id_unpack(&bad, &back));
    }
}

static void rendezvous_are_ids(void **state)
{
    static const char *const bad[] = {"", "10.0.0.9", "10.0.0.9:0", "10.0.0.9:x", "0123456789abcdef"};
    char digits[2 * NCCL_UNIQUE_ID_BYTES + 1];
    ncclUniqueId a, b;
    struct kl_id id;

    (void)state;
    assert_int_equal(kl_bootstrap_id_parse("10.0.0.9:1234", &a), ncclSuccess);
    assert_int_equal(kl_bootstrap_id_parse("10.0.0.9:1234", &b), ncclSuccess);
    assert_memory_equal(&a, &b, sizeof a); /* every rank makes the same */
    assert_true(kl_id_unpack(&a, &id));
    assert_int_equal(id.kind, KL_ID_RANK0_OPENS);
    assert_true(kl_id_is_public(&id));
    assert_int_equal(kl_id_rendezvous("10.0.0.9:1234", "secret", &id), ncclSuccess);
    assert_false(kl_id_is_public(&id));
    kl_error_quiet(1);
    FOR_EACH_CASE(text, bad) expect_case(*text, kl_bootstrap_id_parse(*text, &b) == ncclInvalidArgument);
    memset(digits, '0', sizeof digits - 1);
    digits[sizeof digits - 1] = 0;
    assert_int_equal(kl_bootstrap_id_parse(digits, &b), ncclInvalidArgument);
    assert_memory_equal(&a, &b, sizeof a);
}

/* An id that lost a digit, or is not Kolo's, may still be a secret. */
static void what_is_said_about_a_damaged_id_holds_none_of_its_digits(void **state)
{
    char whole[2 * NCCL_UNIQUE_ID_BYTES + 1], text[sizeof whole + 1];
    struct kl_id id = some_id(1);
    ncclUniqueId bytes;

    (void)state;
    kl_id_pack(&id, &bytes);
    kl_bootstrap_id_format(&bytes, whole);
    kl_error_quiet(1);
    for (int damage = 0; damage < 4; damage++) {
        snprintf(text, sizeof text, damage == 1 ? "%s0" : "%s", whole);
        if (damage == 0) text[sizeof whole - 2] = 0;
        if (damage == 2) text[0] = '0'; /* another library's id */
        if (damage == 3) text[100] = ':';
        assert_int_equal(kl_bootstrap_id_parse(text, &bytes), ncclInvalidArgument);
        for (size_t i = 0; i + 8 <= strlen(text); i++) {
            char part[9] = "";
            memcpy(part, text + i, 8);
            if (strstr(kl_error_text(), part)) fail_msg("\"%s\" says \"%s\"", kl_error_text(), part);
        }
    }
    kl_error_quiet(0);
}

/* ---- ranges and partners ---- */

static bool listed(const void *ctx, int rank)
{
    return ((const char *)ctx)[rank] == 'x';
}

static const struct range_case {
    const char *members, *text;
    int count;
} range_cases[] = {
    {"", "", 0},        {"...", "", 0},          {"x", "0", 1},    {"...x", "3", 1}, {"...x.xxx", "3, 5-7", 4},
    {"xxxx", "0-3", 4}, {"x.x.x", "0, 2, 4", 3}, {"xx", "0-1", 2},
};

static void ranges_are_compressed(void **state)
{
    char text[64], all[2000];

    (void)state;
    FOR_EACH_CASE(c, range_cases)
    {
        int n = kl_ranges_format((int)strlen(c->members), listed, c->members, text, sizeof text);
        expect_case(c->members, n == c->count && !strcmp(text, c->text));
    }
    for (size_t i = 0; i < sizeof all; i++) all[i] = i % 2 ? 'x' : '.';
    assert_int_equal(kl_ranges_format(sizeof all, listed, all, text, sizeof text), 1000);
    assert_string_equal(text, "1, 3, 5, 7, 9, 11, 13, 15, 17, ...");
}

static void partners_are_mutual(void **state)
{
    (void)state;
    for (int n = 1; n <= 70; n++)
        for (int r = 0; r < n; r++) {
            int mine[64], theirs[64], count = kl_partners(r, n, mine);
            assert_in_range(count, n > 1, 14);
            for (int i = 0; i < count; i++) {
                int back = kl_partners(mine[i], n, theirs), found = 0;
                assert_int_not_equal(mine[i], r);
                for (int k = 0; k < back; k++) found += theirs[k] == r;
                assert_int_equal(found, 1);
            }
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cursors_stop_at_their_end),
        cmocka_unit_test(heads_are_checked),
        cmocka_unit_test(frames_are_assembled_from_any_pieces),
        cmocka_unit_test(an_assembler_refuses_what_is_too_long),
        cmocka_unit_test(announcements_survive),
        cmocka_unit_test(announcements_out_of_range_are_refused),
        cmocka_unit_test(introductions_survive),
        cmocka_unit_test(lodgings_out_of_range_are_refused),
        cmocka_unit_test(notices_survive),
        cmocka_unit_test(notices_out_of_range_are_refused),
        cmocka_unit_test(only_the_same_handshake_accepts_a_proof),
        cmocka_unit_test(answers_are_proofs_too),
        cmocka_unit_test(hellos_say_what_they_mean),
        cmocka_unit_test(keys_are_for_one_purpose),
        cmocka_unit_test(ids_survive_as_bytes_and_digits),
        cmocka_unit_test(bytes_that_are_no_id_are_refused),
        cmocka_unit_test(rendezvous_are_ids),
        cmocka_unit_test(what_is_said_about_a_damaged_id_holds_none_of_its_digits),
        cmocka_unit_test(ranges_are_compressed),
        cmocka_unit_test(partners_are_mutual),
    };

    return cmocka_run_group_tests_name("wire", tests, NULL, NULL);
}
