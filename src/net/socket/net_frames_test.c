/* SPDX-License-Identifier: Apache-2.0 */
/* The grouping of frames into system calls, observed with a socket that keeps records apart. */
#include "net/socket/stream.h"

#include "base/error.h"
#include "tests/kolo_test.h"

#include <sys/socket.h>
#include <unistd.h>

enum { ROOM = 1 << 20 };

struct ends {
    int fd[2];
    struct kl_out out;
    struct kl_in in;
};

static void open_ends(struct ends *e, int type, enum kl_cipher cipher)
{
    struct kl_key key;
    int room = 4 * ROOM;

    memset(e, 0, sizeof *e);
    memset(key.bytes, 7, sizeof key.bytes);
    assert_int_equal(socketpair(AF_UNIX, type, 0, e->fd), 0);
    (void)setsockopt(e->fd[0], SOL_SOCKET, SO_SNDBUF, &room, sizeof room);
    e->out.fd = e->fd[0];
    e->in.fd = e->fd[1];
    kl_cipher_init(&e->out.cipher_state, cipher, &key, "there");
    kl_cipher_init(&e->in.cipher_state, cipher, &key, "there");
    assert_int_equal(kl_out_init(&e->out), ncclSuccess);
}

static void close_ends(struct ends *e)
{
    kl_out_fini(&e->out);
    close(e->fd[0]);
    close(e->fd[1]);
}

static void expect_frame(struct ends *e, const unsigned char *data, size_t bytes)
{
    static unsigned char got[ROOM];
    struct kl_head head;
    enum kl_flow flow;

    assert_int_equal(kl_in_head(&e->in, &head), KL_FLOW_DONE);
    assert_int_equal(head.bytes, bytes);
    while ((flow = kl_in_data(&e->in, got, bytes)) == KL_FLOW_BLOCKED)
        assert_in_range(kl_out_move(&e->out), KL_FLOW_DONE, KL_FLOW_BLOCKED);
    assert_int_equal(flow, KL_FLOW_DONE);
    assert_memory_equal(got, data, bytes);
}

/* A head, its data, a head: the pattern of steps on links. */
static void small_frames_go_with_what_follows(void **state)
{
    static const size_t sizes[] = {16, 20000, 16, 8};
    static unsigned char data[ROOM], record[ROOM];
    struct ends e;

    (void)state;
    open_ends(&e, SOCK_SEQPACKET, KL_CIPHER_PLAIN);
    for (int i = 0; i < 2; i++) {
        assert_true(kl_out_has_room(&e.out));
        kl_out_begin(&e.out, KL_HEAD_MESSAGE, sizes[i], 0, data, sizes[i]);
    }
    assert_false(kl_out_has_room(&e.out)); /* behind data that is elsewhere in memory */
    assert_int_equal(kl_out_move(&e.out), KL_FLOW_DONE);
    assert_int_equal(recv(e.fd[1], record, sizeof record, 0), 2 * KL_CIPHER_SEALED_HEAD + 16 + 20000);
    for (int i = 2; i < 4; i++) kl_out_begin(&e.out, KL_HEAD_MESSAGE, sizes[i], 0, data, sizes[i]);
    assert_int_equal(kl_out_move(&e.out), KL_FLOW_DONE);
    assert_int_equal(recv(e.fd[1], record, sizeof record, 0), 2 * KL_CIPHER_SEALED_HEAD + 16 + 8);
    close_ends(&e);
}

/* Random sizes, in plain and encrypted, with as many frames together as there is room for. */
static void whatever_goes_together_arrives(void **state)
{
    static unsigned char data[ROOM];
    static const enum kl_cipher ciphers[] = {KL_CIPHER_PLAIN, KL_CIPHER_CHACHA20};
    uint64_t seed = 1;

    (void)state;
    for (size_t i = 0; i < ROOM; i++) data[i] = (unsigned char)(i * 2654435761u >> 9);
    FOR_EACH_CASE(cipher, ciphers)
    {
        struct ends e;
        size_t most = 0;

        open_ends(&e, SOCK_STREAM, *cipher);
        for (int round = 0; round < 500; round++) {
            size_t bytes[64], n = 0;

            for (bool room = true; room && n < 64; room = kl_out_has_room(&e.out)) {
                seed = seed * 6364136223846793005u + 1442695040888963407u;
                bytes[n] = (seed >> 33) % (seed >> 60 ? KL_STREAM_SMALL + 2 : 100000);
                kl_out_begin(&e.out, KL_HEAD_MESSAGE, bytes[n], 0, data + n, bytes[n]);
                n++;
            }
            assert_in_range(kl_out_move(&e.out), KL_FLOW_DONE, KL_FLOW_BLOCKED);
            for (size_t i = 0; i < n; i++) expect_frame(&e, data + i, bytes[i]);
            assert_false(e.out.busy);
            most = n > most ? n : most;
        }
        assert_true(most > 5);
        close_ends(&e);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(small_frames_go_with_what_follows),
        cmocka_unit_test(whatever_goes_together_arrives),
    };

    return sodium_init() < 0 ? 1 : cmocka_run_group_tests(tests, NULL, NULL);
}
