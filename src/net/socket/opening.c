/* SPDX-License-Identifier: Apache-2.0 */
#include "net/socket/opening.h"

#include "net/socket/guard.h"
#include "os/chaos.h"
#include "os/socket.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/epoll.h>

void kl_opening_call(struct kl_opening *o, int fd, const struct kl_hello *me, const struct kl_key *key,
                     const struct kl_terms *terms)
{
    *o = (struct kl_opening){.side = KL_CALLER, .stage = KL_OPENING_CONNECTS, .fd = fd, .me = *me, .mine = *terms};
    o->handshake.key = *key;
}

void kl_opening_host(struct kl_opening *o, int fd, const struct kl_hello *me, const struct kl_key *key, bool crypt)
{
    *o = (struct kl_opening){.side = KL_HOST, .stage = KL_OPENING_AWAITS_HELLO, .fd = fd, .me = *me};
    o->handshake.key = *key;
    o->mine.crypt = crypt;
}

void kl_opening_close(struct kl_opening *o)
{
    kl_socket_close(o->fd);
    o->fd = -1;
    kl_key_wipe(&o->handshake.key);
}

uint32_t kl_opening_events(const struct kl_opening *o)
{
    return o->stage == KL_OPENING_CONNECTS ? EPOLLOUT : o->stage == KL_OPENING_DONE ? 0 : EPOLLIN;
}

/* A new socket has room for these few bytes, or is dead. */
static bool say(const struct kl_opening *o, const void *bytes, size_t n)
{
    return send(o->fd, bytes, n, MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t)n;
}

/* Read until `whole` bytes of the current message are here. */
static enum kl_opened hear(struct kl_opening *o, size_t whole)
{
    while (o->have < whole) {
        ssize_t n = kl_chaos_recv(o->fd, o->in + o->have, whole - o->have, MSG_DONTWAIT);

        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return errno == EAGAIN || errno == EWOULDBLOCK ? KL_OPENED_NOT_YET : KL_OPENED_LOST;
        errno = 0;
        if (!n) return KL_OPENED_LOST;
        o->have += (size_t)n;
    }
    return KL_OPENED;
}

static void await(struct kl_opening *o, enum kl_opening_stage stage)
{
    o->stage = stage;
    o->have = 0;
}

static enum kl_opened not_ours(void)
{
    errno = EPROTO;
    return KL_OPENED_LOST;
}

/* ---- the sender's part ---- */

static enum kl_opened connected(struct kl_opening *o)
{
    struct pollfd p = {.fd = o->fd, .events = POLLOUT};

    if (poll(&p, 1, 0) <= 0) return KL_OPENED_NOT_YET;
    if (kl_socket_connect_finish(o->fd)) return KL_OPENED_LOST;
    kl_hello_encode(&o->me, o->handshake.caller);
    if (!say(o, o->handshake.caller, KL_HELLO_BYTES)) return KL_OPENED_LOST;
    await(o, KL_OPENING_AWAITS_HELLO);
    return KL_OPENED;
}

static enum kl_opened greeted(struct kl_opening *o)
{
    unsigned char said[KL_PROOF_BYTES + KL_TERMS_BYTES];
    enum kl_opened heard = hear(o, KL_HELLO_BYTES);

    if (heard) return heard;
    if (!kl_hello_plausible(o->in)) return not_ours();
    memcpy(o->handshake.host, o->in, KL_HELLO_BYTES);
    kl_handshake_prove(&o->handshake, said);
    struct kl_key session = kl_terms_session_key(&o->handshake);
    kl_terms_encode(&o->mine, &session, KL_CALLER, said + KL_PROOF_BYTES);
    kl_key_wipe(&session);
    if (!say(o, said, sizeof said)) return KL_OPENED_LOST;
    await(o, KL_OPENING_AWAITS_PROOF);
    return KL_OPENED;
}

/* The answer is complete, and after an admission the terms. */
static enum kl_opened answered(struct kl_opening *o)
{
    enum kl_opened heard = hear(o, KL_ANSWER_BYTES);

    if (heard) return heard;
    if (!kl_handshake_answered(&o->handshake, o->in, &o->outcome)) o->outcome = KL_REFUSED;
    if (o->outcome != KL_ADMITTED) return KL_OPENED_REFUSED;
    heard = hear(o, sizeof o->in);
    if (heard) return heard;
    struct kl_key session = kl_terms_session_key(&o->handshake);
    bool right = kl_terms_decode(o->in + KL_ANSWER_BYTES, &session, KL_HOST, &o->theirs);
    kl_key_wipe(&session);
    if (!right) return not_ours();
    o->stage = KL_OPENING_DONE;
    return KL_OPENED;
}

/* ---- the listener's part ---- */

static enum kl_opened greet(struct kl_opening *o)
{
    enum kl_opened heard = hear(o, KL_HELLO_BYTES);

    if (heard) return heard;
    if (!kl_hello_plausible(o->in)) return not_ours();
    memcpy(o->handshake.caller, o->in, KL_HELLO_BYTES);
    kl_hello_encode(&o->me, o->handshake.host);
    if (!say(o, o->handshake.host, KL_HELLO_BYTES)) return KL_OPENED_LOST;
    await(o, KL_OPENING_AWAITS_PROOF);
    return KL_OPENED;
}

static enum kl_opened refuse(struct kl_opening *o, enum kl_handshake_outcome outcome)
{
    unsigned char answer[KL_ANSWER_BYTES];

    o->outcome = outcome;
    kl_handshake_answer(&o->handshake, outcome, answer);
    (void)say(o, answer, sizeof answer);
    return KL_OPENED_REFUSED;
}

static enum kl_opened admit(struct kl_opening *o)
{
    unsigned char said[KL_ANSWER_BYTES + KL_TERMS_BYTES];
    struct kl_key session = kl_terms_session_key(&o->handshake);
    bool right = kl_terms_decode(o->in + KL_PROOF_BYTES, &session, KL_CALLER, &o->theirs);
    bool crypt = o->mine.crypt;

    if (right) {
        o->mine = o->theirs;
        o->mine.crypt = crypt;
        o->mine.ciphers = crypt ? kl_guard_choose(o->theirs.ciphers & kl_guard_ciphers()) : KL_CIPHER_PLAIN;
        kl_handshake_answer(&o->handshake, KL_ADMITTED, said);
        kl_terms_encode(&o->mine, &session, KL_HOST, said + KL_ANSWER_BYTES);
    }
    kl_key_wipe(&session);
    if (!right) return not_ours();
    if (!say(o, said, sizeof said)) return KL_OPENED_LOST;
    o->stage = KL_OPENING_DONE;
    o->outcome = KL_ADMITTED;
    return KL_OPENED;
}

static enum kl_opened judge(struct kl_opening *o)
{
    enum kl_opened heard = hear(o, KL_PROOF_BYTES);

    if (heard) return heard;
    if (!kl_handshake_proved(&o->handshake, o->in)) return refuse(o, KL_REFUSED);
    enum kl_handshake_outcome outcome = kl_handshake_judge(&o->handshake);
    if (outcome != KL_ADMITTED) return refuse(o, outcome);
    heard = hear(o, KL_PROOF_BYTES + KL_TERMS_BYTES);
    return heard ? heard : admit(o);
}

/* ---- both ---- */

static enum kl_opened step(struct kl_opening *o)
{
    bool caller = o->side == KL_CALLER;

    switch (o->stage) {
    case KL_OPENING_CONNECTS:
        return connected(o);
    case KL_OPENING_AWAITS_HELLO:
        return caller ? greeted(o) : greet(o);
    case KL_OPENING_AWAITS_PROOF:
        return caller ? answered(o) : judge(o);
    case KL_OPENING_DONE:
        break;
    }
    return KL_OPENED;
}

enum kl_opened kl_opening_move(struct kl_opening *o)
{
    enum kl_opened opened = KL_OPENED;

    while (!opened && o->stage != KL_OPENING_DONE) opened = step(o);
    return opened;
}
