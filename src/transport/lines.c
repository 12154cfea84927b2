/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/lines.h"

#include "transport/lines_wide.h"

#include <string.h>

struct line {
    alignas(64) unsigned char data[KL_LINES_DATA];
    _Atomic uint64_t flag;
};
_Static_assert(sizeof(struct line) == 64, "a line is a cache line");
_Static_assert(KL_LINES_LL_BYTES % KL_LINE == 0, "a fifo wants whole lines");

static size_t line_count(size_t bytes)
{
    return bytes <= KL_FIFO_INLINE ? 0 : (bytes - KL_FIFO_INLINE + KL_LINES_DATA - 1) / KL_LINES_DATA;
}

/* ---- sender ---- */

/* Copy whole lines with a constant size: compilers turn this into a few moves. */
static void store_lines(struct line *lines, const unsigned char *data, size_t bytes, uint64_t flag)
{
    for (; bytes >= KL_LINES_DATA; lines++, data += KL_LINES_DATA, bytes -= KL_LINES_DATA) {
        memcpy(lines->data, data, KL_LINES_DATA);
        kl_store_release(&lines->flag, flag); /* pairs with kl_lines_ready */
    }
    if (!bytes) return;
    memcpy(lines->data, data, bytes);
    kl_store_release(&lines->flag, flag); /* the same */
}

void kl_lines_publish(struct kl_fifo_tx *tx, const void *data, size_t bytes, bool wide)
{
    size_t first = bytes < KL_FIFO_INLINE ? bytes : KL_FIFO_INLINE;
    struct line *lines = kl_fifo_lines(tx->fifo, tx->step, &tx->shape);
    uint64_t flag = tx->step + 1;

    memcpy(kl_fifo_line(tx->fifo, tx->step, &tx->shape)->payload, data, first);
    kl_fifo_publish_as(tx, first == bytes ? KL_CLAIM_NONE : KL_CLAIM_LINES, bytes, false);
    if (first == bytes) return;
    if (wide)
        kl_lines_store_wide(lines, (const unsigned char *)data + first, bytes - first, flag);
    else
        store_lines(lines, (const unsigned char *)data + first, bytes - first, flag);
}

/* ---- receiver ---- */

/* Can flagged lines hold this published step? Always true if its own line holds it all. */
static bool fits(const struct kl_fifo_rx *rx, const struct kl_fifo_line *line, uint32_t bytes)
{
    uint32_t claim = kl_load_relaxed(&line->claim);

    if (bytes <= KL_FIFO_INLINE) return claim == KL_CLAIM_NONE;
    return claim == KL_CLAIM_LINES && bytes <= KL_LINES_BYTES &&
           line_count(bytes) <= rx->shape.ll_bytes / sizeof(struct line);
}

bool kl_lines_ready(struct kl_fifo_rx *rx)
{
    const struct kl_fifo_line *line = kl_fifo_line(rx->fifo, rx->step, &rx->shape);

    if (!kl_fifo_ready(rx)) return false;
    uint32_t bytes = kl_read_once(&line->bytes);
    if (bytes <= KL_FIFO_INLINE || !fits(rx, line, bytes)) return true; /* kl_lines_open accepts or refuses it */

    struct line *lines = kl_fifo_lines(rx->fifo, rx->step, &rx->shape);
    uint32_t n = (uint32_t)line_count(bytes);
    while (rx->lines_seen < n && kl_load_acquire(&lines[rx->lines_seen].flag) == rx->step + 1) rx->lines_seen++;
    return rx->lines_seen == n;
}

const void *kl_lines_open(struct kl_fifo_rx *rx, void *scratch, size_t *bytes)
{
    const struct kl_fifo_line *line = kl_fifo_line(rx->fifo, rx->step, &rx->shape);
    const struct line *lines = kl_fifo_lines(rx->fifo, rx->step, &rx->shape);
    uint32_t said = kl_read_once(&line->bytes);
    unsigned char *to = scratch;

    *bytes = said & ~KL_FIFO_MORE;
    rx->lines_seen = 0;
    if (!fits(rx, line, said)) return NULL;
    if (*bytes <= KL_FIFO_INLINE) return line->payload;
    memcpy(to, line->payload, KL_FIFO_INLINE);
    to += KL_FIFO_INLINE;
    size_t left = *bytes - KL_FIFO_INLINE;
    for (; left >= KL_LINES_DATA; lines++, to += KL_LINES_DATA, left -= KL_LINES_DATA)
        memcpy(to, lines->data, KL_LINES_DATA);
    memcpy(to, lines->data, left);
    return scratch;
}
