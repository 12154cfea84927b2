/* SPDX-License-Identifier: Apache-2.0 */
#include "device/host/event_node.h"

#include "base/error.h"
#include "device/host/capture.h"

#include <stdlib.h>

struct node {
    struct kl_event *event;
    uint32_t lane;
};

static ncclResult_t check_record(void *node)
{
    (void)node;
    return ncclSuccess;
}

static ncclResult_t check_wait(void *node)
{
    const struct node *n = node;

    return kl_event_refuse_mark(n->event, "koloGraphLaunch");
}

static ncclResult_t record(void *node, struct kl_stream *const *lanes)
{
    const struct node *n = node;

    kl_event_queue(n->event, lanes[n->lane]);
    return ncclSuccess;
}

static ncclResult_t order(void *node, struct kl_stream *const *lanes)
{
    const struct node *n = node;

    kl_event_follow(n->event, lanes[n->lane]);
    return ncclSuccess;
}

/* Any event may replace another. */
static bool alike(const void *node, const void *other)
{
    (void)node, (void)other;
    return true;
}

static void free_node(void *node)
{
    struct node *n = node;

    kl_event_destroy(n->event);
    free(n);
}

static const struct kl_recorded_kind records = {check_record, record, alike, free_node},
                                     waits = {check_wait, order, alike, free_node};

static ncclResult_t add(struct kl_event *event, struct kl_stream *stream, const struct kl_recorded_kind *kind)
{
    struct node *n = malloc(sizeof *n);

    if (!n) return KL_NOMEM("a graph's event");
    kl_event_hold(event);
    n->event = event;
    ncclResult_t rc = kl_capture_other(&stream, 1, kind, n, &n->lane);
    if (rc) free_node(n);
    return rc;
}

ncclResult_t kl_event_record_outside(struct kl_event *event, struct kl_stream *stream)
{
    return kl_capturing(stream) ? add(event, stream, &records) : kl_event_record(event, stream);
}

ncclResult_t kl_event_order_outside(struct kl_event *event, struct kl_stream *stream)
{
    return kl_capturing(stream) ? add(event, stream, &waits) : kl_event_order(event, stream);
}
