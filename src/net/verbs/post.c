/* SPDX-License-Identifier: Apache-2.0 */
#include "net/verbs/post.h"

#include "net/verbs/progress.h"
#include "net/verbs/send.h"

#include <stdlib.h>

/* ---- post ---- */

ncclResult_t kl_verbs_isend(struct kl_verbs_end *end, const void *data, size_t bytes, int tag, void *mr, void **request)
{
    struct kl_verbs_link *l = end->link;
    struct kl_verbs_send *s = (struct kl_verbs_send *)l->free_sends;

    *request = NULL;
    if (!l->failed && !s) kl_verbs_progress(l);
    if (l->failed || !s) return kl_verbs_report(l);
    l->free_sends = s->request.next;
    *s = (struct kl_verbs_send){.request.end = end, .data = data, .bytes = bytes, .tag = (uint32_t)tag, .memory = mr};
    kl_verbs_list_append(&l->waiting, &s->request);
    kl_verbs_progress(l);
    *request = &s->request;
    return kl_verbs_report(l);
}

static void fill(struct kl_verbs_recv *r, struct kl_verbs_end *end, int n, const struct kl_net_recv *recvs)
{
    *r = (struct kl_verbs_recv){.request.end = end, .n = n, .unmet = n, .left = n};
    for (int i = 0; i < n; i++)
        r->message[i] = (struct kl_verbs_message){
            .data = recvs[i].data, .bytes = recvs[i].bytes, .tag = (uint32_t)recvs[i].tag, .memory = recvs[i].mr};
}

ncclResult_t kl_verbs_irecv(struct kl_verbs_end *end, int n, const struct kl_net_recv *recvs, void **request)
{
    struct kl_verbs_link *l = end->link;
    struct kl_verbs_recv *r = (struct kl_verbs_recv *)l->free_recvs;

    *request = NULL;
    if (n < 1 || n > KL_NET_RECVS)
        return KL_FAIL(ncclInvalidArgument, "a receive of %d messages; 1 to %d are possible", n, KL_NET_RECVS);
    if (l->failed || !r) return kl_verbs_report(l);
    l->free_recvs = r->request.next;
    fill(r, end, n, recvs);
    kl_verbs_list_append(&l->posted, &r->request);
    kl_verbs_progress(l);
    *request = &r->request;
    return kl_verbs_report(l);
}

/* ---- test ---- */

static void give_back(struct kl_verbs_link *l, struct kl_verbs_request *r, bool sends)
{
    struct kl_verbs_request **list = sends ? &l->free_sends : &l->free_recvs;

    r->next = *list;
    *list = r;
}

static void report_sizes(const struct kl_verbs_request *r, size_t *sizes)
{
    const struct kl_verbs_recv *recv = (const struct kl_verbs_recv *)r;

    if (r->end->sends)
        sizes[0] = ((const struct kl_verbs_send *)r)->bytes;
    else
        for (int i = 0; i < recv->n; i++) sizes[i] = recv->message[i].came;
}

ncclResult_t kl_verbs_test(struct kl_verbs_request *r, bool *done, size_t *sizes)
{
    struct kl_verbs_link *l = r->end->link;

    if (!r->done) kl_verbs_progress(l);
    *done = r->done;
    if (!*done) {
        kl_verbs_progress_again(l);
        *done = r->done;
    }
    if (!*done) return kl_verbs_report(l);
    if (sizes) report_sizes(r, sizes);
    give_back(l, r, r->end->sends);
    return ncclSuccess;
}

/* ---- the end of a direction ---- */

static bool is_idle(const struct kl_verbs_link *l, bool sends)
{
    const struct kl_verbs_request *free_ones = sends ? l->free_sends : l->free_recvs;
    int n = 0;

    for (; free_ones; free_ones = free_ones->next) n++;
    return n == KL_NET_REQUESTS;
}

void kl_verbs_give_up(struct kl_verbs_link *l)
{
    int quiet = kl_error_quiet(1); /* the code that cancels has reported the reason */

    kl_verbs_fail(l, ncclInternalError, "the connection of rank %d with rank %d was given up", l->rank, l->peer);
    kl_error_quiet(quiet);
}

void kl_verbs_end_free(struct kl_verbs_end *end)
{
    struct kl_verbs_link *l = end ? end->link : NULL;

    if (l) {
        *(end->sends ? &l->out : &l->in) = NULL;
        bool is_last = !l->out && !l->in;
        if (is_last)
            kl_verbs_link_free(l);
        else if (!is_idle(l, end->sends))
            kl_verbs_give_up(l);
        else
            kl_verbs_send_leave(l, end->sends);
    }
    free(end);
}
