/* SPDX-License-Identifier: Apache-2.0 */
/**
 * host.c - CPUs that emulate GPUs, as a row of the table of devices.
 */
#include "device/device.h"
#include "device/host/copy.h"
#include "device/host/current.h"
#include "device/host/event.h"
#include "device/host/event_node.h"
#include "device/host/memory.h"
#include "device/host/ranges.h"
#include "device/host/stream.h"
#include "device/host/submit.h"
#include "device/host/user_stream.h"

static int count(const struct kl_device_hints *hints)
{
    return kl_host_count(hints->setting, hints->file_gpus);
}

const struct kl_device_kind kl_host_devices = {
    .name = "host",
    .mappable = false, /* operations may use any memory of the program */

    .count = count,
    .node = kl_host_node,
    .select = kl_host_select,
    .current = kl_host_current,
    .chosen = kl_host_chosen,
    .adopt = kl_host_adopt,

    .stream_create = kl_stream_create,
    .stream_destroy = kl_user_stream_destroy,
    .stream_release = kl_user_stream_release,
    .stream_of = kl_user_stream_of,
    .stream_push = kl_stream_push,
    .stream_synchronize = kl_user_stream_synchronize,
    .stream_query = kl_user_stream_query,
    .synchronize = kl_user_stream_synchronize_all,
    .stream_call = kl_submit_function,

    .event_create = kl_event_create,
    .event_destroy = kl_event_destroy,
    .event_record = kl_event_record,
    .event_order = kl_event_order,
    .event_record_outside = kl_event_record_outside,
    .event_order_outside = kl_event_order_outside,
    .event_elapsed = kl_event_elapsed,
    .event_query = kl_event_query,
    .event_synchronize = kl_event_synchronize,

    .alloc = kl_block_alloc,
    .free = kl_block_free,
    .lookup = kl_block_lookup,
    .copy = kl_host_copy,
    .copy_on = kl_host_copy_on,
    .fill_on = kl_host_fill_on,

    .pin = kl_range_pin,
    .unpin = kl_range_unpin,
    .export_range = kl_range_export,
    .unexport = kl_range_unexport,
    .import = kl_range_import,
    .unimport = kl_range_unimport,
};
