/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/kolo/escaped.h"

#include <errno.h>
#include <stdbool.h>
#include <sys/types.h>

enum { MOST = 16 };

struct escaped {
    FILE *below;
    bool lead; /* the last byte was 0xc2, which has not been written */
};

static bool is_control(unsigned char c)
{
    return (c < ' ' && c != '\n' && c != '\t') || c == 0x7f;
}

static void put(struct escaped *e, unsigned char c)
{
    if (e->lead && c >= 0x80 && c < 0xa0) { /* C1 controls in UTF-8 */
        e->lead = false;
        fprintf(e->below, "\\x%02x", c);
        return;
    }
    if (e->lead) putc(0xc2, e->below);
    e->lead = c == 0xc2;
    if (e->lead) return;
    if (is_control(c))
        fprintf(e->below, "\\x%02x", c);
    else
        putc(c, e->below);
}

/* All of it, or an error: the stream above is flushed to `below` at once. */
static ssize_t write_escaped(void *cookie, const char *bytes, size_t n)
{
    struct escaped *e = cookie;

    errno = 0;
    for (size_t i = 0; i < n; i++) put(e, (unsigned char)bytes[i]);
    if (!fflush(e->below) && !ferror(e->below)) return (ssize_t)n;
    if (!errno) errno = EIO;
    return 0;
}

FILE *kl_escaped(FILE *below)
{
    static struct escaped streams[MOST];
    static int used;

    if (used == MOST) return below;
    struct escaped *e = &streams[used++];
    *e = (struct escaped){.below = below};
    FILE *stream = fopencookie(e, "w", (cookie_io_functions_t){.write = write_escaped});
    return stream ? stream : below;
}
