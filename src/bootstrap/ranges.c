/* SPDX-License-Identifier: Apache-2.0 */
#include "bootstrap/ranges.h"

#include <stdio.h>
#include <string.h>

enum { PIECE = 32 }; /* ", first-last" of two ints, with its zero */

static const char ellipsis[] = ", ...";

/* False when there is no room for it and an ellipsis. */
static bool append(char *text, size_t room, int first, int last)
{
    char piece[PIECE];
    size_t used = strlen(text);

    if (first == last)
        snprintf(piece, sizeof piece, "%s%d", used ? ", " : "", first);
    else
        snprintf(piece, sizeof piece, "%s%d-%d", used ? ", " : "", first, last);
    bool fits = used + strlen(piece) + sizeof ellipsis <= room;
    const char *more = fits ? piece : ellipsis;
    if (fits || used + sizeof ellipsis <= room) memcpy(text + used, more, strlen(more) + 1);
    return fits;
}

int kl_ranges_format(int n, bool (*member)(const void *ctx, int rank), const void *ctx, char *text, size_t room)
{
    int count = 0;
    bool fits = true;

    if (room) text[0] = 0;
    for (int first = 0; first < n; first++) {
        if (!member(ctx, first)) continue;
        int last = first;
        while (last + 1 < n && member(ctx, last + 1)) last++;
        if (fits) fits = append(text, room, first, last);
        count += last - first + 1;
        first = last;
    }
    return count;
}
