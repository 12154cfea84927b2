/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as input of the socket net: a handle, a stranger's handshake, parameters, and frames, from strangers and from a
   hostile peer that has the keys. The first byte selects the kind. */
#include "base/error.h"
#include "net/socket/socket_handshake.h"
#include "net/socket/receive.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define CHECK(cond)                                                                                                    \
    do {                                                                                                               \
        if (!(cond)) abort();                                                                                          \
    } while (0)

enum { POSTED = 300, POSTED_LARGE = 200000 };

static const struct kl_key key = {{1, 2, 3}};

static void socket_pair(int fd[2])
{
    CHECK(!socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fd));
}

/* ---- handles ---- */

static void read_handle(const uint8_t *data, size_t size)
{
    struct kl_net_handle handle = {{0}}, again;
    union kl_address address, same;

    memcpy(&handle, data, size < sizeof handle ? size : sizeof handle);
    if (!kl_session_params_get_handle(&handle, &address)) return;
    CHECK(!kl_address_is_none(&address) && kl_address_port(&address));
    kl_session_params_put_handle(&address, &again);
    CHECK(kl_session_params_get_handle(&again, &same) && !memcmp(&address, &same, sizeof same));
}

/* ---- strangers ---- */

/* Says the input in two pieces, to a listener or as one. Without the key it never gets in. */
static void shake_hands(const uint8_t *data, size_t size, bool calls)
{
    const struct kl_hello me = {.version = KL_PROTOCOL, .type = KL_CONNECTION_NET, .side = KL_HOST, .from = 1};
    const struct kl_session_params params = {.lanes = 2};
    struct kl_socket_handshake o;
    enum kl_socket_handshake_result opened = KL_HANDSHAKE_PENDING;
    int fd[2];

    socket_pair(fd);
    if (calls) {
        kl_socket_handshake_call(&o, fd[0], &me, &key, &params);
        o.stage = KL_HANDSHAKE_AWAITS_HELLO; /* a socket of a pair is connected */
        kl_hello_encode(&me, o.handshake.caller);
    } else {
        kl_socket_handshake_host(&o, fd[0], &me, &key, true);
    }
    for (size_t at = 0; at < size && opened == KL_HANDSHAKE_PENDING; at += (size + 1) / 2) {
        size_t n = size - at < (size + 1) / 2 ? size - at : (size + 1) / 2;
        if (write(fd[1], data + at, n) < 0) break;
        opened = kl_socket_handshake_progress(&o);
    }
    CHECK(opened != KL_HANDSHAKE_OK);
    kl_socket_handshake_close(&o);
    close(fd[1]);
}

static void visit(const uint8_t *data, size_t size)
{
    shake_hands(data, size, false);
}

static void be_visited(const uint8_t *data, size_t size)
{
    shake_hands(data, size, true);
}

/* ---- parameters that are signed ---- */

static void read_params(const uint8_t *data, size_t size)
{
    unsigned char wire[KL_SESSION_PARAMS_BYTES] = {0}, again[KL_SESSION_PARAMS_BYTES];
    struct kl_session_params params;

    memcpy(wire, data, size < KL_SESSION_PARAMS_BODY ? size : KL_SESSION_PARAMS_BODY);
    CHECK(!kl_session_params_decode(wire, &key, KL_CALLER, &params));
    kl_key_prove(&key, "kolo net sender's terms", wire, KL_SESSION_PARAMS_BODY, wire + KL_SESSION_PARAMS_BODY);
    if (!kl_session_params_decode(wire, &key, KL_CALLER, &params)) return;
    CHECK(params.lane <= params.lanes && params.lanes <= KL_SOCKET_MAX_LANES);
    kl_session_params_encode(&params, &key, KL_CALLER, again);
    CHECK(kl_session_params_decode(again, &key, KL_CALLER, &params));
    CHECK(!kl_session_params_decode(again, &key, KL_HOST, &params));
}

/* ---- frames ---- */

/* A receiver with one lane, some receives, and the socket through which its peer speaks. */
static struct kl_conn *receiver(enum kl_cipher cipher, int peer[2])
{
    static unsigned char small[POSTED], large[POSTED_LARGE];
    const struct kl_net_end me = {.rank = 1, .peer = 0};
    const struct kl_socket_shape shape = {.lanes = 1};
    const struct kl_net_recv recvs[] = {{small, sizeof small, 0, NULL}, {large, sizeof large, 1, NULL}};
    struct kl_conn *c;
    struct kl_request *r;

    CHECK(!kl_conn_create(false, &me, shape, &c));
    for (int i = 0; i < 2; i++) {
        int fd[2];
        socket_pair(fd);
        CHECK(!kl_conn_attach(c, i, fd[0], cipher, &key));
        peer[i] = fd[1];
    }
    for (int i = 0; i < 4; i++) CHECK(!kl_receive_post(c, 2, recvs, &r));
    return c;
}

static void hang_up(struct kl_conn *c, const int peer[2])
{
    kl_conn_free(c);
    close(peer[0]);
    close(peer[1]);
}

/* A peer without the keys gets no frame in. */
static void hear_stranger(const uint8_t *data, size_t size)
{
    int peer[2];
    struct kl_conn *c = receiver(size % 2 ? KL_CIPHER_CHACHA20 : KL_CIPHER_PLAIN, peer);

    if (write(peer[0], data, size) == (ssize_t)size) {
        kl_receive_work(c);
        CHECK(c->failed == (size >= KL_CIPHER_SEALED_HEAD ? ncclRemoteError : ncclSuccess));
        CHECK(!c->message);
    }
    hang_up(c, peer);
}

/* A piece of the input: its first byte limits its length. */
static size_t piece(const uint8_t **data, size_t *size, const uint8_t **at)
{
    size_t n = *size ? (*data)[0] : 0;

    if (*size) {
        ++*data;
        --*size;
    }
    if (n > *size) n = *size;
    *at = *data;
    *data += n;
    *size -= n;
    return n;
}

/* A peer with the keys seals heads of any content, puts any bytes behind them, on both sockets. */
static void hear_peer(const uint8_t *data, size_t size)
{
    int peer[2];
    struct kl_conn *c = receiver(KL_CIPHER_PLAIN, peer);
    struct kl_cipher_state cipher_state;
    uint64_t sequence[2] = {0, 0};

    kl_cipher_init(&cipher_state, KL_CIPHER_PLAIN, &key, "kolo net sender to listener");
    while (size && !c->failed) {
        unsigned char plain[KL_CIPHER_PLAIN_HEAD] = {0}, wire[KL_CIPHER_SEALED_HEAD];
        int lane = data[0] & 1;
        const uint8_t *at;
        size_t n = piece(&data, &size, &at);

        memcpy(plain, at, n < 16 ? n : 16);
        for (int i = 0; i < 8; i++) plain[16 + i] = (unsigned char)(sequence[lane] >> (8 * i));
        sequence[lane]++;
        kl_cipher_seal_head(&cipher_state, plain, wire);
        if (write(peer[lane], wire, sizeof wire) < 0) break;
        n = piece(&data, &size, &at);
        if (n && write(peer[lane], at, n) < 0) break;
        kl_receive_work(c);
    }
    hang_up(c, peer);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static void (*const readers[])(const uint8_t *, size_t) = {read_handle, visit,         be_visited,
                                                               read_params, hear_stranger, hear_peer};

    kl_error_quiet(1);
    if (size) readers[data[0] % 6](data + 1, size - 1);
    return 0;
}
