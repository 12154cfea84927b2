/* SPDX-License-Identifier: Apache-2.0 */
#include "bootstrap/call.h"

#include "base/clock.h"
#include "base/error.h"

enum { AGAIN_MS = 20, AGAIN_MAX_MS = 500 };

struct answer {
    enum kl_verdict verdict;
    uint16_t version;
    union kl_address from;
};

/* One connection, one handshake. */
static enum kl_io call_once(const struct kl_call *call, const struct kl_wait *wait, struct answer *answer, int *out)
{
    int fd = -1;
    enum kl_io io = kl_socket_connect(call->addresses, call->naddresses, &call->retry, wait, &fd);

    if (io) return io;
    answer->from = kl_socket_peer(fd);
    io = kl_handshake_call(fd, call->key, &call->hello, wait, &answer->verdict, &answer->version);
    if (io || answer->verdict != KL_WELCOME) {
        kl_socket_close(fd);
        fd = -1;
    }
    *out = fd;
    return io;
}

static ncclResult_t judge(const struct answer *answer, const char *who_calls_whom)
{
    char text[KL_ADDRESS_TEXT];

    kl_address_format(&answer->from, text);
    switch (answer->verdict) {
    case KL_WELCOME:
    case KL_ELSEWHERE:
        return ncclSuccess;
    case KL_OTHER_VERSION:
        return KL_FAIL(ncclInvalidUsage,
                       "%s: %s speaks version %u of the protocol, we speak %d; use one version of Kolo on all ranks",
                       who_calls_whom, text, answer->version, KL_PROTOCOL);
    case KL_NOT_HERE:
        return KL_FAIL(ncclRemoteError, "%s: %s is somebody else, perhaps of another job", who_calls_whom, text);
    case KL_REFUSED:
        break;
    }
    return KL_FAIL(ncclRemoteError,
                   "%s: secret mismatch with %s; all ranks need the same unique id, or the same KOLO_SECRET",
                   who_calls_whom, text);
}

ncclResult_t kl_call(const struct kl_call *call, const struct kl_wait *wait, const char *who_calls_whom, int *out)
{
    struct answer answer = {0};
    int fd = -1;
    enum kl_io io;

    for (int ms = AGAIN_MS;; ms = 2 * ms < AGAIN_MAX_MS ? 2 * ms : AGAIN_MAX_MS) {
        io = call_once(call, wait, &answer, &fd);
        if (io != KL_IO_CLOSED) break;
        enum kl_io pause = kl_socket_pause(ms, wait);
        if (pause == KL_IO_STOPPED) io = pause;
        if (pause) break;
    }
    if (io) return kl_io_fail(io, "%s", who_calls_whom);
    KL_TRY(judge(&answer, who_calls_whom));
    *out = fd;
    return ncclSuccess;
}
