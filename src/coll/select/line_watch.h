/* SPDX-License-Identifier: Apache-2.0 */
/**
 * line_watch.h - the sign that the machine has changed: lines take much longer than the table was made for, or much less, and keep doing so.
 *
 * Ranks that copy to other cores meter lines anyway (device/host/copy_out.h). Looked at now and then, not at each operation.
 *
 * Threads: one at a time.
 */
#ifndef KL_COLL_SELECT_LINE_WATCH_H
#define KL_COLL_SELECT_LINE_WATCH_H

#include <stdbool.h>
#include <stdint.h>

enum { KL_LINE_WATCH_MS = 100 }; /* for which the sign has to hold */

struct kl_line_watch {
    uint64_t since;  /* ns, kl_now_ns: the sign has held; 0: it does not */
    uint32_t number; /* of metered lines, when it was last looked at */
};

/** Lines have taken `line_ns` recently, as the `number`-th metered one says. True: a table for `made_for_ns` should be replaced by one for this time. */
bool kl_line_watch(struct kl_line_watch *watch, uint32_t made_for_ns, uint32_t line_ns, uint32_t number, uint64_t now);

#endif
