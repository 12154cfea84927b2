/* SPDX-License-Identifier: Apache-2.0 */
/** tell.h - the state of waiting operations, in lines for people. Called by the runner: only it may read the state. */
#ifndef KL_COLL_TELL_H
#define KL_COLL_TELL_H

#include "coll/algorithm.h"
#include "coll/message.h"

/** Where lines go. */
struct kl_teller {
    void (*line)(void *ctx, const char *text);
    void *ctx;
};

void kl_tell(const struct kl_teller *to, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/** Print an operation on a channel, which waits for a rank (-1: for none), and the state of its connectors. */
void kl_tell_operation(const struct kl_teller *to, const char *algorithm, int channel, int waits_for,
                       const struct kl_links *links);

/** Print a send to a peer, or a receive from it. `connector`: NULL: none yet. */
void kl_tell_message(const struct kl_teller *to, bool sends, int peer, const struct kl_message *message,
                     const struct kl_connector *connector);

#endif
