/* SPDX-License-Identifier: Apache-2.0 */
#include "answer/channels.h"

#include "base/text.h"

#include <stdbool.h>

static bool has(uint64_t channels, int c)
{
    return c < 64 && (channels >> c & 1);
}

const char *kl_channels_text(uint64_t channels, char *text, size_t size)
{
    struct kl_text t = kl_text_in(text, size);

    for (int c = 0; c < 64; c++) {
        int last = c;

        if (!has(channels, c)) continue;
        while (has(channels, last + 1)) last++;
        kl_text_add(&t, t.length ? ", %d" : "%d", c);
        if (last > c) kl_text_add(&t, last == c + 1 ? ", %d" : "-%d", last);
        c = last;
    }
    if (!t.length) kl_text_add(&t, "-");
    return text;
}

json_t *kl_channels_json(uint64_t channels)
{
    json_t *a = json_array();

    for (int c = 0; c < 64; c++)
        if (has(channels, c)) json_array_append_new(a, json_integer(c));
    return a;
}
