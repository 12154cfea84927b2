/* SPDX-License-Identifier: Apache-2.0 */
#include "bootstrap/ranges.h"

#include "base/text.h"

#include <string.h>

enum { PIECE = 32 }; /* ", first-last" of two ints, with its zero */

static const char ellipsis[] = ", ...";

static void append(struct kl_text *text, int first, int last)
{
    if (text->length) kl_text_add(text, ", ");
    if (first == last)
        kl_text_add(text, "%d", first);
    else
        kl_text_add(text, "%d-%d", first, last);
}

int kl_ranges_format(int n, bool (*member)(const void *ctx, int rank), const void *ctx, char *to, size_t room)
{
    struct kl_text text = kl_text_in(to, room);
    int count = 0;
    bool fits = true;

    for (int first = 0; first < n; first++) {
        if (!member(ctx, first)) continue;
        int last = first;
        while (last + 1 < n && member(ctx, last + 1)) last++;
        count += last - first + 1;
        if (fits && text.length + PIECE + sizeof ellipsis > room) {
            fits = false;
            kl_text_add(&text, ellipsis);
        }
        if (fits) append(&text, first, last);
        first = last;
    }
    return count;
}
