/* SPDX-License-Identifier: Apache-2.0 */
#include "bootstrap/call.h"

#include "base/clock.h"
#include "base/error.h"

#include <errno.h>

enum { TURN_MS = 1000 }; /* for one of several addresses */

struct answer {
    struct kl_call_answer heard;
    int fd; /* -1, unless welcome */

    /* of the last round: */
    int nrefused; /* addresses at which nobody listens */
    bool again;   /* another round may do better */
};

static const struct kl_retry once = {.count = 0};

union kl_address kl_call_as_seen_from_here(const union kl_address *address, uint32_t scope)
{
    union kl_address a = *address;

    if (scope && kl_address_is_link_local(&a)) a.v6.sin6_scope_id = scope;
    return a;
}

static enum kl_io call_address(const struct kl_call *call, const union kl_address *address, const struct kl_wait *wait,
                               struct answer *answer)
{
    struct answer a = *answer;

    a.heard.from = kl_call_as_seen_from_here(address, call->scope);
    enum kl_io io = kl_socket_connect(&a.heard.from, &once, wait, &a.fd);

    if (!io) io = kl_handshake_call(a.fd, call->key, &call->hello, wait, &a.heard.verdict, &a.heard.version);
    int err = errno;
    if (io || a.heard.verdict != KL_WELCOME) {
        kl_socket_close(a.fd);
        a.fd = -1;
    }
    if (!io) *answer = a;
    errno = err;
    return io;
}

static bool settled(enum kl_verdict verdict)
{
    return verdict == KL_WELCOME || verdict == KL_ELSEWHERE;
}

/* Not there yet, too busy, too slow, or another service at an address that means something else here. */
bool kl_call_worth_another(enum kl_io io, int err)
{
    return io == KL_IO_CLOSED || io == KL_IO_LATE || (io == KL_IO_BROKEN && (kl_retry_worth(err) || err == EPROTO));
}

/* Every address once. KL_IO_DONE: somebody answered, be it to refuse us. Otherwise how the last one failed. */
static enum kl_io call_round(const struct kl_call *call, const struct kl_wait *wait, struct answer *answer)
{
    enum kl_io io = KL_IO_LATE;

    answer->nrefused = 0;
    answer->again = false;
    for (int i = 0; i < call->naddresses && !settled(answer->heard.verdict); i++) {
        uint64_t turn = kl_deadline_in_ms(TURN_MS);
        bool whole = call->naddresses == 1 || turn >= wait->deadline;
        struct kl_wait mine = {.deadline = whole ? wait->deadline : turn, .stop = wait->stop};

        io = call_address(call, &call->addresses[i], &mine, answer);
        if (io == KL_IO_STOPPED || (io == KL_IO_LATE && whole)) return io;
        answer->nrefused += io == KL_IO_BROKEN && errno == ECONNREFUSED;
        answer->again |= kl_call_worth_another(io, errno);
    }
    return answer->heard.verdict ? KL_IO_DONE : io;
}

static enum kl_io call_until_answered(const struct kl_call *call, const struct kl_wait *wait, struct answer *answer)
{
    for (int tries = 1;; tries++) {
        enum kl_io io = call_round(call, wait, answer);
        int err = errno;
        bool gone = call->listening && answer->nrefused == call->naddresses;
        if (!io || gone || !answer->again || tries > call->retry.count) return io;

        enum kl_io pause = kl_socket_pause(kl_retry_pause_ms(&call->retry, tries), wait);
        errno = err;
        if (pause == KL_IO_LATE) return io; /* why nobody answered says more than "too late" */
        if (pause) return pause;
    }
}

ncclResult_t kl_call_judge(const struct kl_call_answer *answer, const char *who_calls_whom)
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

ncclResult_t kl_call(const struct kl_call *call, const struct kl_wait *wait, const char *who_calls_whom, int *fd)
{
    struct answer answer = {.fd = -1};
    uint64_t start = kl_now_ns();
    enum kl_io io = call_until_answered(call, wait, &answer);

    if (io == KL_IO_LATE)
        return KL_FAIL(ncclRemoteError, "%s: no answer within %.3g s", who_calls_whom,
                       (double)(kl_now_ns() - start) / 1e9);
    if (io) return kl_io_fail(io, "%s", who_calls_whom);
    KL_TRY(kl_call_judge(&answer.heard, who_calls_whom));
    *fd = answer.fd;
    return ncclSuccess;
}
