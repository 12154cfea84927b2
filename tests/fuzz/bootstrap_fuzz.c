/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as input of a bootstrap: frames with their records, below their seals and above, a handshake, an id. The
   first byte selects the kind; nothing may be read or written out of bounds, and accepted input must survive being
   written again. */
#include "bootstrap/bootstrap.h"
#include "bootstrap/frame.h"
#include "bootstrap/handshake.h"
#include "bootstrap/id.h"
#include "bootstrap/record.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define CHECK(cond)                                                                                                    \
    do {                                                                                                               \
        if (!(cond)) abort();                                                                                          \
    } while (0)

enum { BODY_MAX = 1 << 16 }; /* a lower limit than for peers, so that inputs reach it */

/* ---- records ---- */

static void check_text(const char *text, size_t room)
{
    CHECK(memchr(text, 0, room));
    for (; *text; text++) CHECK((unsigned char)*text >= ' ' && *text != 127);
}

static void check_record(const struct kl_address_record *record)
{
    unsigned char wire[KL_ADDRESS_RECORD_WIRE];
    struct kl_address_record again;

    CHECK(record->rank >= 0 && record->rank < KL_MAX_RANKS);
    CHECK(record->naddresses >= 0 && record->naddresses <= KL_ADDRESSES);
    check_text(record->host, sizeof record->host);
    kl_address_record_encode(record, wire);
    CHECK(kl_address_record_decode(wire, &again) && again.rank == record->rank &&
          again.naddresses == record->naddresses);
}

static void read_announce(const struct kl_frame *m)
{
    struct kl_announce a;

    if (!kl_announce_decode(m->body, m->head.length, &a)) return;
    CHECK(a.record.rank < a.nranks && a.nranks <= KL_MAX_RANKS && a.record.naddresses > 0);
    check_record(&a.record);
}

static void read_introduction(const struct kl_frame *m)
{
    struct kl_introduction i;

    if (!kl_introduction_decode(m->body, m->head.length, &i)) return;
    CHECK(i.npartners <= KL_MAX_PARTNERS && i.nleaders <= KL_MAX_PARTNERS);
    CHECK(i.placement.process < i.placement.nprocesses && i.placement.place < i.placement.nmembers);
    for (int k = 0; k < i.npartners + i.nleaders; k++) check_record(&i.partner[k]);
}

static void read_notice(const struct kl_frame *m)
{
    unsigned char wire[KL_NOTICE_WIRE_MAX];
    struct kl_notice n, again;

    if (!kl_notice_decode(m->body, m->head.length, &n)) return;
    CHECK(n.culprit >= -1 && n.culprit < KL_MAX_RANKS && n.code > ncclSuccess && n.code < ncclInProgress);
    check_text(n.text, sizeof n.text);
    CHECK(kl_notice_decode(wire, kl_notice_encode(&n, wire), &again) && !strcmp(n.text, again.text));
}

/* ---- streams ---- */

static void read_message(const struct kl_frame *m)
{
    CHECK(m->head.length <= BODY_MAX);
    read_announce(m); /* any contents: decoders trust nothing */
    read_introduction(m);
    read_notice(m);
}

static const struct kl_seal seal = {.key = {{1, 2, 3}}};

/* As from a socket, in pieces of one to 64 bytes. False: the stream cannot be used any more. */
static bool feed(struct kl_assembler *a, const uint8_t *data, size_t size, enum kl_frame_fault *fault)
{
    *fault = KL_FRAME_SOUND;
    for (size_t at = 0, piece = 1; at < size && !*fault; piece = piece % 64 + 1) {
        struct kl_frame *m;
        size_t room, n = piece < size - at ? piece : size - at;
        unsigned char *to = kl_assembler_room(a, &room);
        CHECK(room > 0);
        if (n > room) n = room;
        memcpy(to, data + at, n);
        at += n;
        *fault = kl_assembler_filled(a, n, BODY_MAX, &m);
        CHECK(!*fault || !m);
        if (m) read_message(m);
        free(m);
    }
    return !*fault;
}

/* Without the key: only messages sealed with it open, such as some of the corpus. */
static void read_stream(const uint8_t *data, size_t size)
{
    struct kl_assembler a = {.seal = seal};
    enum kl_frame_fault fault;

    (void)feed(&a, data, size, &fault);
    CHECK(fault != KL_FRAME_NO_MEMORY);
    kl_assembler_fini(&a);
}

/* Seal the available part of a body, and zeros for the rest. Returns the available bytes. */
static size_t feed_body(struct kl_assembler *a, struct kl_seal *out, const uint8_t *data, size_t size, size_t length)
{
    size_t used = size < length ? size : length;
    unsigned char *body = calloc(1, length + 1), sealed[KL_FRAME_PIECE + KL_SEAL_BYTES];
    enum kl_frame_fault fault;

    CHECK(body);
    if (used) memcpy(body, data, used);
    for (size_t done = 0, piece; done < length; done += piece) {
        piece = kl_frame_seal_piece(out, body + done, length - done, sealed);
        CHECK(feed(a, sealed, piece + KL_SEAL_BYTES, &fault));
    }
    free(body);
    return used;
}

/* With the key: the input's heads and bodies, sealed as they are. */
static void read_frames(const uint8_t *data, size_t size)
{
    struct kl_assembler a = {.seal = seal};
    struct kl_seal out = seal;
    enum kl_frame_fault fault = KL_FRAME_SOUND;

    for (size_t at = 0; at + KL_FRAME_HEAD <= size;) {
        unsigned char sealed[KL_FRAME_SEALED_HEAD];
        kl_seal_close(&out, data + at, KL_FRAME_HEAD, sealed);
        at += KL_FRAME_HEAD;
        if (!feed(&a, sealed, sizeof sealed, &fault)) break;
        if (a.frame) at += feed_body(&a, &out, data + at, size - at, a.frame->head.length);
        CHECK(!a.frame);
    }
    CHECK(fault == KL_FRAME_SOUND || fault == KL_FRAME_NONSENSE);
    kl_assembler_fini(&a);
}

/* ---- handshakes ---- */

/* Both hellos and an answer are the input's; a peer without the key gets no further. */
static void shake_hands(const uint8_t *data, size_t size)
{
    struct kl_handshake h = {.key = {{1, 2, 3}}};
    unsigned char rest[KL_ANSWER_BYTES] = {0};
    enum kl_handshake_outcome outcome;

    if (size < 2 * KL_HELLO_BYTES) return;
    memcpy(h.caller, data, KL_HELLO_BYTES);
    memcpy(h.host, data + KL_HELLO_BYTES, KL_HELLO_BYTES);
    size -= 2 * KL_HELLO_BYTES;
    memcpy(rest, data + 2 * KL_HELLO_BYTES, size < sizeof rest ? size : sizeof rest);
    (void)kl_hello_plausible(h.caller);
    (void)kl_handshake_judge(&h);
    CHECK(!kl_handshake_proved(&h, rest));
    if (kl_handshake_answered(&h, rest, &outcome)) CHECK(outcome == KL_REFUSED || outcome == KL_UNKNOWN);
}

/* ---- ids ---- */

static void read_id(const uint8_t *data, size_t size)
{
    ncclUniqueId bytes = {{0}}, again;
    struct kl_id id;
    char text[2 * NCCL_UNIQUE_ID_BYTES + 1];

    memcpy(&bytes, data, size < sizeof bytes ? size : sizeof bytes);
    kl_bootstrap_id_format(&bytes, text);
    if (!kl_id_unpack(&bytes, &id)) return;
    CHECK(id.naddresses > 0 && id.naddresses <= KL_ADDRESSES);
    kl_id_pack(&id, &again);
    CHECK(kl_id_unpack(&again, &id));
    CHECK(!kl_bootstrap_id_parse(text, &again) && !memcmp(&bytes, &again, sizeof bytes));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static void (*const readers[])(const uint8_t *, size_t) = {read_frames, shake_hands, read_id, read_stream};

    if (size) readers[data[0] % 4](data + 1, size - 1);
    return 0;
}
