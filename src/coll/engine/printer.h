/* SPDX-License-Identifier: Apache-2.0 */
/** printer.h - the state of waiting operations, in lines for people. Called by the runner: only it may read the state. */
#ifndef KL_COLL_ENGINE_PRINTER_H
#define KL_COLL_ENGINE_PRINTER_H

#include "coll/pipeline/algorithm.h"
#include "coll/engine/message.h"

/** Where lines go. */
struct kl_printer {
    void (*line)(void *ctx, const char *text);
    void *ctx;
};

void kl_print_line(const struct kl_printer *to, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/** Print an operation on a channel, which waits for a rank (-1: for none), and the state of its connectors. */
void kl_print_operation(const struct kl_printer *to, const char *algorithm, int channel, int waits_for,
                        const struct kl_edges *edges);

/** Print a send to a peer, or a receive from it. `connector`: NULL: none yet. */
void kl_print_message(const struct kl_printer *to, bool sends, int peer, const struct kl_message *message,
                      const struct kl_connector *connector);

#endif
