/* SPDX-License-Identifier: Apache-2.0 */
#include "coll/engine/printer.h"

#include <stdarg.h>
#include <stdio.h>

void kl_print_line(const struct kl_printer *to, const char *fmt, ...)
{
    char text[256];
    va_list args;

    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    to->line(to->ctx, text);
}

static void print_connector(const struct kl_printer *to, const char *what, const struct kl_connector *c)
{
    char state[128];

    if (c) kl_print_line(to, "%s: %s", what, kl_connector_state(c, state, sizeof state));
}

void kl_print_operation(const struct kl_printer *to, const char *algorithm, int channel, int waits_for,
                        const struct kl_edges *edges)
{
    char what[32];

    snprintf(what, sizeof what, "channel %02d", channel);
    if (waits_for < 0)
        kl_print_line(to, "%s: %s, waits for nobody", what, algorithm);
    else
        kl_print_line(to, "%s: %s, waits for rank %d", what, algorithm, waits_for);
    for (int i = 0; i < edges->nrecv; i++) print_connector(to, what, edges->recv[i]);
    for (int i = 0; i < edges->nsend; i++) print_connector(to, what, edges->send[i]);
}

void kl_print_message(const struct kl_printer *to, bool sends, int peer, const struct kl_message *message,
                      const struct kl_connector *connector)
{
    const char *what = sends ? "send" : "receive";

    kl_print_line(to, "%s: %zu of %zu bytes moved %s rank %d", what, message->moved, message->bytes,
                  sends ? "to" : "from", peer);
    print_connector(to, what, connector);
}
