/* SPDX-License-Identifier: Apache-2.0 */
#include "net/socket/socket_handshake.h"

#include "bootstrap/handshake_io.h"
#include "net/socket/cipher.h"
#include "os/socket.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/epoll.h>

void kl_socket_handshake_call(struct kl_socket_handshake *o, int fd, const struct kl_hello *me,
                              const struct kl_key *key, const struct kl_session_params *params)
{
    *o = (struct kl_socket_handshake){
        .side = KL_CALLER, .stage = KL_HANDSHAKE_CONNECTS, .fd = fd, .me = *me, .mine = *params};
    o->handshake.key = *key;
}

void kl_socket_handshake_host(struct kl_socket_handshake *o, int fd, const struct kl_hello *me,
                              const struct kl_key *key, bool crypt)
{
    *o = (struct kl_socket_handshake){.side = KL_HOST, .stage = KL_HANDSHAKE_AWAITS_HELLO, .fd = fd, .me = *me};
    o->handshake.key = *key;
    o->mine.crypt = crypt;
}

void kl_socket_handshake_close(struct kl_socket_handshake *o)
{
    kl_socket_close(o->fd);
    o->fd = -1;
    kl_key_wipe(&o->handshake.key);
}

uint32_t kl_socket_handshake_events(const struct kl_socket_handshake *o)
{
    return o->stage == KL_HANDSHAKE_CONNECTS ? EPOLLOUT : o->stage == KL_HANDSHAKE_DONE ? 0 : EPOLLIN;
}

static bool say(const struct kl_socket_handshake *o, const void *bytes, size_t n)
{
    return !kl_handshake_say(o->fd, bytes, n);
}

/* Read until `whole` bytes of the current message are here. */
static enum kl_socket_handshake_result receive(struct kl_socket_handshake *o, size_t whole)
{
    enum kl_io io = kl_handshake_receive(o->fd, o->in, &o->have, whole);

    return !io ? KL_HANDSHAKE_OK : io == KL_IO_TIMEOUT ? KL_HANDSHAKE_PENDING : KL_HANDSHAKE_LOST;
}

static void await(struct kl_socket_handshake *o, enum kl_socket_handshake_stage stage)
{
    o->stage = stage;
    o->have = 0;
}

static enum kl_socket_handshake_result not_ours(void)
{
    errno = EPROTO;
    return KL_HANDSHAKE_LOST;
}

/* ---- the sender's part ---- */

static enum kl_socket_handshake_result connected(struct kl_socket_handshake *o)
{
    struct pollfd p = {.fd = o->fd, .events = POLLOUT};

    if (poll(&p, 1, 0) <= 0) return KL_HANDSHAKE_PENDING;
    if (kl_socket_connect_finish(o->fd)) return KL_HANDSHAKE_LOST;
    kl_hello_encode(&o->me, o->handshake.caller);
    if (!say(o, o->handshake.caller, KL_HELLO_BYTES)) return KL_HANDSHAKE_LOST;
    await(o, KL_HANDSHAKE_AWAITS_HELLO);
    return KL_HANDSHAKE_OK;
}

static enum kl_socket_handshake_result greeted(struct kl_socket_handshake *o)
{
    unsigned char said[KL_PROOF_BYTES + KL_SESSION_PARAMS_BYTES];
    enum kl_socket_handshake_result heard = receive(o, KL_HELLO_BYTES);

    if (heard) return heard;
    if (!kl_hello_plausible(o->in)) return not_ours();
    memcpy(o->handshake.host, o->in, KL_HELLO_BYTES);
    kl_handshake_prove(&o->handshake, said);
    struct kl_key session = kl_session_params_session_key(&o->handshake);
    kl_session_params_encode(&o->mine, &session, KL_CALLER, said + KL_PROOF_BYTES);
    kl_key_wipe(&session);
    if (!say(o, said, sizeof said)) return KL_HANDSHAKE_LOST;
    await(o, KL_HANDSHAKE_AWAITS_PROOF);
    return KL_HANDSHAKE_OK;
}

/* The answer is complete, and after an admission the parameters. */
static enum kl_socket_handshake_result answered(struct kl_socket_handshake *o)
{
    enum kl_socket_handshake_result heard = receive(o, KL_ANSWER_BYTES);

    if (heard) return heard;
    if (!kl_handshake_answered(&o->handshake, o->in, &o->outcome)) o->outcome = KL_REFUSED;
    if (o->outcome != KL_ADMITTED) return KL_HANDSHAKE_REFUSED;
    heard = receive(o, sizeof o->in);
    if (heard) return heard;
    struct kl_key session = kl_session_params_session_key(&o->handshake);
    bool right = kl_session_params_decode(o->in + KL_ANSWER_BYTES, &session, KL_HOST, &o->theirs);
    kl_key_wipe(&session);
    if (!right) return not_ours();
    o->stage = KL_HANDSHAKE_DONE;
    return KL_HANDSHAKE_OK;
}

/* ---- the listener's part ---- */

static enum kl_socket_handshake_result greet(struct kl_socket_handshake *o)
{
    enum kl_socket_handshake_result heard = receive(o, KL_HELLO_BYTES);

    if (heard) return heard;
    if (!kl_hello_plausible(o->in)) return not_ours();
    memcpy(o->handshake.caller, o->in, KL_HELLO_BYTES);
    kl_hello_encode(&o->me, o->handshake.host);
    if (!say(o, o->handshake.host, KL_HELLO_BYTES)) return KL_HANDSHAKE_LOST;
    await(o, KL_HANDSHAKE_AWAITS_PROOF);
    return KL_HANDSHAKE_OK;
}

static enum kl_socket_handshake_result refuse(struct kl_socket_handshake *o, enum kl_handshake_outcome outcome)
{
    unsigned char answer[KL_ANSWER_BYTES];

    o->outcome = outcome;
    kl_handshake_answer(&o->handshake, outcome, answer);
    (void)say(o, answer, sizeof answer);
    return KL_HANDSHAKE_REFUSED;
}

static enum kl_socket_handshake_result admit(struct kl_socket_handshake *o)
{
    unsigned char said[KL_ANSWER_BYTES + KL_SESSION_PARAMS_BYTES];
    struct kl_key session = kl_session_params_session_key(&o->handshake);
    bool right = kl_session_params_decode(o->in + KL_PROOF_BYTES, &session, KL_CALLER, &o->theirs);
    bool crypt = o->mine.crypt;

    if (right) {
        o->mine = o->theirs;
        o->mine.crypt = crypt;
        o->mine.ciphers = crypt ? kl_cipher_choose(o->theirs.ciphers & kl_cipher_available()) : KL_CIPHER_PLAIN;
        kl_handshake_answer(&o->handshake, KL_ADMITTED, said);
        kl_session_params_encode(&o->mine, &session, KL_HOST, said + KL_ANSWER_BYTES);
    }
    kl_key_wipe(&session);
    if (!right) return not_ours();
    if (!say(o, said, sizeof said)) return KL_HANDSHAKE_LOST;
    o->stage = KL_HANDSHAKE_DONE;
    o->outcome = KL_ADMITTED;
    return KL_HANDSHAKE_OK;
}

static enum kl_socket_handshake_result judge(struct kl_socket_handshake *o)
{
    enum kl_socket_handshake_result heard = receive(o, KL_PROOF_BYTES);

    if (heard) return heard;
    if (!kl_handshake_proved(&o->handshake, o->in)) return refuse(o, KL_REFUSED);
    enum kl_handshake_outcome outcome = kl_handshake_judge(&o->handshake);
    if (outcome != KL_ADMITTED) return refuse(o, outcome);
    heard = receive(o, KL_PROOF_BYTES + KL_SESSION_PARAMS_BYTES);
    return heard ? heard : admit(o);
}

/* ---- both ---- */

static enum kl_socket_handshake_result step(struct kl_socket_handshake *o)
{
    bool caller = o->side == KL_CALLER;

    switch (o->stage) {
    case KL_HANDSHAKE_CONNECTS:
        return connected(o);
    case KL_HANDSHAKE_AWAITS_HELLO:
        return caller ? greeted(o) : greet(o);
    case KL_HANDSHAKE_AWAITS_PROOF:
        return caller ? answered(o) : judge(o);
    case KL_HANDSHAKE_DONE:
        break;
    }
    return KL_HANDSHAKE_OK;
}

enum kl_socket_handshake_result kl_socket_handshake_progress(struct kl_socket_handshake *o)
{
    enum kl_socket_handshake_result opened = KL_HANDSHAKE_OK;

    while (!opened && o->stage != KL_HANDSHAKE_DONE) opened = step(o);
    return opened;
}
