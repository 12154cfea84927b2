/* SPDX-License-Identifier: Apache-2.0 */
/**
 * event_node.h - events outside of a graph: each replay of the graph records them, or waits for them.
 *
 * On a stream that does not capture it is the same as event.h. A graph keeps a reference to the events of its nodes.
 */
#ifndef KL_DEVICE_HOST_EVENT_NODE_H
#define KL_DEVICE_HOST_EVENT_NODE_H

#include "device/host/event.h"

ncclResult_t kl_event_record_outside(struct kl_event *event, struct kl_stream *stream);

/** A replay waits for the event's last record at the time of its launch. */
ncclResult_t kl_event_order_outside(struct kl_event *event, struct kl_stream *stream);

#endif
