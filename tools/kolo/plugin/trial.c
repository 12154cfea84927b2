/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/kolo/plugin/trial.h"

#include <string.h>
#include <unistd.h>

void kl_trial_note(struct kl_trial *b, const char *call)
{
    b->result->thread = gettid();
    snprintf(b->result->call, sizeof b->result->call, "%s", call);
}

/* ---- how long calls took ---- */

void kl_trial_pace_add(struct kl_trial_pace *pace, const struct kl_call_times *times)
{
    const uint64_t p99 = kl_call_times_quantile(times, 0.99);

    if (!pace->calls || times->most_ns < pace->most_ns) pace->most_ns = times->most_ns;
    if (!pace->calls || p99 < pace->p99_ns) pace->p99_ns = p99;
    pace->calls += times->calls;
}

bool kl_trial_pace_judge(const struct kl_trial_pace *pace, struct kl_check_result *result)
{
    if (pace->most_ns > KL_TRIAL_SLOW_MS * 1000000u)
        return kl_check_fails(result, "the slowest call took %.1f ms", (double)pace->most_ns / 1e6);
    if (pace->p99_ns > KL_TRIAL_MOST_MS * 1000000u)
        return kl_check_fails(result, "one of 100 calls takes %.1f ms", (double)pace->p99_ns / 1e6);
    return true;
}

/* ---- calls ---- */

static void begin(struct kl_trial *b, const char *call)
{
    kl_trial_note(b, call);
    kl_call_clock_begin(&b->clock);
}

static bool end(struct kl_trial *b, struct kl_call_times *times, ncclResult_t rc)
{
    char call[KL_CHECK_CALL];

    kl_call_times_add(times, kl_call_clock_took(&b->clock));
    snprintf(call, sizeof call, "%s", b->result->call);
    kl_trial_note(b, "");
    return rc ? kl_check_fails(b->result, "%s returned %d", call, (int)rc) : true;
}

bool kl_trial_open(struct kl_trial *b, const char *file, struct kl_check_result *result)
{
    *b = (struct kl_trial){.result = result};
    kl_call_clock_open(&b->clock);
    kl_trial_note(b, "dlopen");
    const bool open = kl_net_library_open(&b->library, file);
    kl_trial_note(b, "init");
    if (!open) {
        kl_check_skips(result, "no net plugin (see check 1)");
        return false;
    }
    if (kl_net_library_init(&b->library)) return true;
    return kl_check_fails(result, "init, devices or properties were refused; NCCL_DEBUG=INFO says why");
}

void kl_trial_close(struct kl_trial *b)
{
    kl_trial_note(b, "finalize");
    kl_net_library_finalize(&b->library);
    kl_net_library_close(&b->library);
    kl_call_clock_close(&b->clock);
    kl_trial_note(b, "");
}

/* ---- connections ---- */

bool kl_trial_listen(struct kl_trial *b, struct kl_trial_pair *p)
{
    *p = (struct kl_trial_pair){.listener = NULL};
    begin(b, "listen");
    const ncclResult_t rc = b->library.adapter->listen(&b->library, 0, p->handle, &p->listener);
    return end(b, &b->connecting, rc) && (p->listener || kl_check_fails(b->result, "listen gave no listener"));
}

bool kl_trial_connect_once(struct kl_trial *b, struct kl_trial_pair *p, unsigned char *handle)
{
    if (p->send) return true;
    begin(b, "connect");
    const ncclResult_t rc = b->library.adapter->connect(&b->library, 0, handle, &p->send);
    return end(b, &b->connecting, rc);
}

bool kl_trial_accept_once(struct kl_trial *b, struct kl_trial_pair *p)
{
    if (p->recv) return true;
    begin(b, "accept");
    const ncclResult_t rc = b->library.adapter->accept(&b->library, p->listener, &p->recv);
    return end(b, &b->connecting, rc);
}

bool kl_trial_pair(struct kl_trial *b, struct kl_trial_pair *p)
{
    if (!kl_trial_listen(b, p)) return false;
    while (!p->send || !p->recv)
        if (!kl_trial_connect_once(b, p, p->handle) || !kl_trial_accept_once(b, p)) return false;
    return true;
}

void kl_trial_unpair(struct kl_trial *b, struct kl_trial_pair *p)
{
    kl_trial_note(b, "closeSend");
    if (p->send) kl_net_library_close_send(&b->library, p->send);
    kl_trial_note(b, "closeRecv");
    if (p->recv) kl_net_library_close_recv(&b->library, p->recv);
    kl_trial_note(b, "closeListen");
    if (p->listener) kl_net_library_close_listen(&b->library, p->listener);
    kl_trial_note(b, "");
    *p = (struct kl_trial_pair){.listener = NULL};
}

/* ---- messages ---- */

static bool post(struct kl_trial *b, void *comm, bool sends, const struct kl_net_recv *part, struct kl_trial_request *r)
{
    const struct kl_net_adapter *a = b->library.adapter;
    struct kl_net_recv m = *part;

    *r = (struct kl_trial_request){.comm = comm, .size = -1};
    kl_trial_note(b, "regMr");
    if (m.bytes && a->reg_mr(&b->library, comm, m.data, m.bytes, KL_NET_HOST, &r->mr))
        return kl_check_fails(b->result, "regMr of %zu bytes failed", m.bytes);
    m.mr = r->mr;
    while (!r->request) {
        begin(b, sends ? "isend" : "irecv");
        const ncclResult_t rc =
            sends ? a->isend(&b->library, comm, &m, &r->request) : a->irecv(&b->library, comm, 1, &m, &r->request);
        if (!end(b, &b->data, rc)) return false;
    }
    return true;
}

bool kl_trial_isend(struct kl_trial *b, struct kl_trial_pair *p, const void *data, size_t bytes, int tag,
                    struct kl_trial_request *r)
{
    const struct kl_net_recv m = {.data = (void *)(uintptr_t)data, .bytes = bytes, .tag = tag};

    return post(b, p->send, true, &m, r);
}

bool kl_trial_irecv(struct kl_trial *b, struct kl_trial_pair *p, void *data, size_t bytes, int tag,
                    struct kl_trial_request *r)
{
    const struct kl_net_recv m = {.data = data, .bytes = bytes, .tag = tag};

    return post(b, p->recv, false, &m, r);
}

bool kl_trial_test(struct kl_trial *b, struct kl_trial_request *r)
{
    if (r->done) return true;
    begin(b, "test");
    const ncclResult_t rc = kl_net_library_test(&b->library, r->request, &r->done, &r->size);
    if (!end(b, &b->data, rc)) return false;
    if (!r->done || !r->mr) return true;
    kl_trial_note(b, "deregMr");
    const bool good = !kl_net_library_dereg_mr(&b->library, r->comm, r->mr);
    kl_trial_note(b, "");
    return good || kl_check_fails(b->result, "deregMr failed");
}

bool kl_trial_finish(struct kl_trial *b, struct kl_trial_request *one, struct kl_trial_request *other)
{
    while (!one->done || !other->done)
        if (!kl_trial_test(b, one) || !kl_trial_test(b, other)) return false;
    return true;
}

bool kl_trial_move(struct kl_trial *b, struct kl_trial_pair *p, const void *from, void *to, size_t bytes)
{
    struct kl_trial_request s, r;

    if (!kl_trial_irecv(b, p, to, bytes, 0, &r) || !kl_trial_isend(b, p, from, bytes, 0, &s)) return false;
    return kl_trial_finish(b, &s, &r);
}

/* ---- data ---- */

static unsigned char byte_at(size_t i, unsigned seed)
{
    return (unsigned char)((i * 2654435761u + seed * 40503u) >> 7);
}

void kl_trial_fill(void *data, size_t bytes, unsigned seed)
{
    for (size_t i = 0; i < bytes; i++) ((unsigned char *)data)[i] = byte_at(i, seed);
}

bool kl_trial_is_filled(const void *data, size_t bytes, unsigned seed)
{
    for (size_t i = 0; i < bytes; i++)
        if (((const unsigned char *)data)[i] != byte_at(i, seed)) return false;
    return true;
}
