/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as messages with tags from two other ranks, beside sends and receives of this one: each is understood or fails the communicator. */
#include "tagged/state.h"
#include "tagged/tagged.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { RANKS = 3, REQUESTS = 8, ROOM = 100, LONG = KL_TAGGED_EAGER_BYTES + 1 };

static struct kl_tagged *tagged;
static uint64_t request[REQUESTS];

static ncclResult_t post(void *ctx, int peer, const void *head, size_t head_bytes, const void *from, size_t bytes)
{
    static uint8_t sink[sizeof(struct kl_tagged_head) + KL_TAGGED_PIECE_BYTES];

    (void)ctx;
    if (peer <= 0 || peer >= RANKS || head_bytes + bytes > sizeof sink) abort();
    memcpy(sink, head, head_bytes);
    if (bytes) memcpy(sink + head_bytes, from, bytes);
    return ncclSuccess;
}

static ncclResult_t watch(void *ctx, int peer)
{
    (void)ctx;
    (void)peer;
    return ncclSuccess;
}

static void fail_comm(void *ctx, int culprit, ncclResult_t code, const char *text)
{
    (void)ctx;
    if (culprit < 0 || culprit >= RANKS || !code || !*text) abort();
    kl_tagged_fail(tagged);
}

static ncclResult_t failure(void *ctx)
{
    (void)ctx;
    return ncclRemoteError;
}

static bool is_near(void *ctx, int peer)
{
    (void)ctx;
    (void)peer;
    return false; /* no process of this machine: the kernel copies nothing */
}

/* Receives of any and of one rank, and long sends whose data are asked for. */
static void begin(char *memory[REQUESTS])
{
    const struct kl_tagged_config config = {.nranks = RANKS,
                                            .number = 1,
                                            .post = post,
                                            .watch = watch,
                                            .fail = fail_comm,
                                            .failure = failure,
                                            .is_near = is_near};

    if (kl_tagged_create(&config, &tagged)) abort();
    for (int i = 0; i < REQUESTS; i++) {
        const bool sends = i % 4 == 3;
        memory[i] = calloc(1, sends || i == 4 ? LONG : ROOM);
        if (!memory[i]) abort();
        if (sends ? kl_tagged_send(tagged, memory[i], LONG, 1 + i / 4, i, 0, &request[i])
                  : kl_tagged_receive(tagged, memory[i], i == 4 ? LONG : ROOM, i % 2 ? KL_TAGGED_ANY : 1 + i / 4,
                                      i % 3 ? KL_TAGGED_ANY : i, 0, &request[i]))
            abort();
    }
}

/* A small number in place of a request's id stands for this rank's request: ids differ each time. */
static void name_request(uint8_t *packet, size_t bytes)
{
    struct kl_tagged_head h;

    if (bytes < sizeof h) return;
    memcpy(&h, packet, sizeof h);
    if (h.to >= REQUESTS) return;
    h.to = request[h.to];
    memcpy(packet, &h, sizeof h);
}

/* Packets: a byte for the sender, a byte for the length, and the packet. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *memory[REQUESTS];
    struct kl_tagged_status status;

    kl_error_quiet(1);
    begin(memory);
    while (size >= 2) {
        const int from = 1 + data[0] % (RANKS - 1);
        const size_t bytes = data[1] < size - 2 ? data[1] : size - 2;
        uint8_t *packet = malloc(bytes ? bytes : 1);
        if (!packet) abort();
        memcpy(packet, data + 2, bytes);
        name_request(packet, bytes);
        if (data[0] >= 250)
            kl_tagged_on_left(tagged, from);
        else
            kl_tagged_on_packet(tagged, from, packet, bytes);
        free(packet);
        data += 2 + bytes;
        size -= 2 + bytes;
    }
    (void)kl_tagged_probe(tagged, KL_TAGGED_ANY, KL_TAGGED_ANY, &status);
    kl_tagged_fail(tagged);
    kl_tagged_free(tagged);
    for (int i = 0; i < REQUESTS; i++) free(memory[i]);
    return 0;
}
