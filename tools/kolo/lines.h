/* SPDX-License-Identifier: Apache-2.0 */
/**
 * lines.h - cut a rank's output into whole lines, so that the lines of several ranks never mix.
 *
 * Sizes:   a line longer than KL_LINES_MAX bytes is broken into lines of that length.
 * Errors:  output that cannot be written is dropped; the caller checks ferror(to).
 */
#ifndef KOLO_TOOL_LINES_H
#define KOLO_TOOL_LINES_H

#include <stddef.h>
#include <stdio.h>

enum { KL_LINES_MAX = 1 << 20 };

struct kl_lines {
    const char *prefix; /* put before every line; "" for none. Owned by the caller */
    char *rest;         /* the start of an unfinished line */
    size_t used, size;
};

/** Write the whole lines that `bytes` completes to `to`, keep the rest, and flush. -1: out of memory. */
int kl_lines_feed(struct kl_lines *lines, const char *bytes, size_t nbytes, FILE *to);

/** Write the rest as a line of its own, and free. Also for lines that were never fed. */
void kl_lines_end(struct kl_lines *lines, FILE *to);

#endif
