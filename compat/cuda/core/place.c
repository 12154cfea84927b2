/* SPDX-License-Identifier: Apache-2.0 */
#include "compat/cuda/core/place.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Up to 8 hexadecimal digits at *at, which moves behind them. */
static bool read_field(const char **at, unsigned *value)
{
    char digits[9] = "";
    int n = 0;

    while (n < 8 && isxdigit((unsigned char)**at)) digits[n++] = *(*at)++;
    *value = (unsigned)strtoul(digits, NULL, 16);
    return n;
}

bool kl_cuda_place_read(const char *text, struct kl_cuda_place *place)
{
    unsigned field[3] = {0}, function = 0;
    int n = 0;
    bool more = true;

    while (more && n < 3) {
        if (!read_field(&text, &field[n++])) return false;
        more = *text == ':';
        text += more;
    }
    if (more || n < 2) return false;
    if (*text == '.' && (text++, !read_field(&text, &function))) return false;
    *place = (struct kl_cuda_place){
        .domain = n == 3 ? field[0] : 0, .bus = field[n - 2], .device = field[n - 1], .function = function};
    return !*text;
}

bool kl_cuda_place_text(const struct kl_cuda_place *p, char *text, int bytes)
{
    char whole[sizeof "ffffffff:ff:ff.f"];
    int length = snprintf(whole, sizeof whole, "%04x:%02x:%02x.%x", p->domain, p->bus & 0xff, p->device & 0xff,
                          p->function & 0xf);

    if (!text || bytes <= length) return false;
    memcpy(text, whole, (size_t)length + 1);
    return true;
}

bool kl_cuda_place_same(const struct kl_cuda_place *a, const struct kl_cuda_place *b)
{
    return a->domain == b->domain && a->bus == b->bus && a->device == b->device && a->function == b->function;
}
