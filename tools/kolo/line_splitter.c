/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/kolo/line_splitter.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* The newline is ours, so that a line that was broken or never finished is one too. */
static void put_line(const struct kl_line_splitter *l, const char *tail, size_t ntail, FILE *to)
{
    fputs(l->prefix, to);
    if (l->used) fwrite(l->rest, 1, l->used, to);
    fwrite(tail, 1, ntail, to);
    fputc('\n', to);
}

static int keep(struct kl_line_splitter *l, const char *bytes, size_t nbytes)
{
    if (!nbytes) return 0;
    if (l->used + nbytes > l->size) {
        size_t size = 2 * (l->used + nbytes);
        char *rest = realloc(l->rest, size);
        if (!rest) return -1;
        l->rest = rest;
        l->size = size;
    }
    memcpy(l->rest + l->used, bytes, nbytes);
    l->used += nbytes;
    return 0;
}

int kl_line_splitter_feed(struct kl_line_splitter *l, const char *bytes, size_t nbytes, FILE *to)
{
    while (nbytes) {
        size_t room = KL_LINE_SPLITTER_MAX - l->used;
        const char *newline = memchr(bytes, '\n', nbytes);
        size_t n = newline ? (size_t)(newline - bytes) : nbytes;

        if (!newline && n <= room) {
            fflush(to);
            return keep(l, bytes, nbytes);
        }
        bool whole = newline && n <= room;
        if (n > room) n = room;
        put_line(l, bytes, n, to);
        l->used = 0;
        n += whole; /* its newline is written */
        bytes += n;
        nbytes -= n;
    }
    fflush(to);
    return 0;
}

void kl_line_splitter_end(struct kl_line_splitter *l, FILE *to)
{
    if (l->used) put_line(l, "", 0, to);
    fflush(to);
    free(l->rest);
    *l = (struct kl_line_splitter){.prefix = l->prefix};
}
