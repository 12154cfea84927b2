/* SPDX-License-Identifier: Apache-2.0 */
#include "base/parse.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* strtoll and strtoull skip blanks and accept signs, which are not allowed here. */
static bool starts_with_digit(const char *text)
{
    return isdigit((unsigned char)text[0]);
}

bool kl_parse_int(const char *text, int64_t *value)
{
    char *end;

    if (!starts_with_digit(text + (*text == '-' || *text == '+'))) return false;
    errno = 0;
    long long v = strtoll(text, &end, 0);
    if (errno || *end) return false;
    *value = v;
    return true;
}

/* Bits by which a suffix shifts, -1 if unknown: "", K, M or G, each optionally followed by B or iB; B alone. */
static int suffix_shift(const char *suffix)
{
    static const char letters[] = "KMG";
    const char *letter = *suffix ? strchr(letters, toupper((unsigned char)*suffix)) : NULL;
    const char *unit = suffix + (letter != NULL);

    if (*unit && strcasecmp(unit, "B") != 0 && !(letter && !strcasecmp(unit, "iB"))) return -1;
    return letter ? 10 * (int)(letter - letters + 1) : 0;
}

/* The digits after the point of "1.5K" as bytes: that fraction of 2^shift, rounded to whole bytes. */
static uint64_t fraction_of(const char *digits, int shift)
{
    double part = 0, place = 0.1;

    for (; isdigit((unsigned char)*digits); digits++) {
        part += (*digits - '0') * place;
        place /= 10;
    }
    return (uint64_t)(part * (double)(UINT64_C(1) << shift) + 0.5);
}

bool kl_parse_size(const char *text, uint64_t *bytes)
{
    char *end;
    const char *digits = NULL;

    if (!starts_with_digit(text)) return false;
    errno = 0;
    unsigned long long v = strtoull(text, &end, 0);
    if (*end == '.' && isdigit((unsigned char)end[1])) {
        digits = end + 1;
        v = strtoull(text, &end, 10); /* base 10: "0.5" is not octal */
        end += 1 + strspn(digits, "0123456789");
    }
    int shift = suffix_shift(end);
    if (errno || shift < 0 || v > (uint64_t)INT64_MAX >> shift || (digits && !shift)) return false;
    uint64_t part = digits ? fraction_of(digits, shift) : 0;
    if (part > (uint64_t)INT64_MAX - ((uint64_t)v << shift)) return false;
    *bytes = ((uint64_t)v << shift) + part;
    return true;
}

uint64_t kl_parse_hex(const char *text)
{
    return text ? strtoull(text, NULL, 16) : 0;
}

bool kl_parse_bool(const char *text, bool *value)
{
    static const char *const words[] = {"0", "1", "off", "on", NULL};
    int index;

    if (!kl_parse_choice(text, words, &index)) return false;
    *value = index & 1;
    return true;
}

/* Like kl_parse_choice, for the first `length` characters of a text. */
static int find_choice(const char *text, size_t length, const char *const *choices)
{
    for (int i = 0; choices[i]; i++)
        if (strlen(choices[i]) == length && !strncasecmp(text, choices[i], length)) return i;
    return -1;
}

bool kl_parse_choice(const char *text, const char *const *choices, int *index)
{
    int i = find_choice(text, strlen(text), choices);

    if (i < 0) return false;
    *index = i;
    return true;
}

static uint32_t all_bits(const char *const *choices)
{
    uint32_t bits = 0;

    for (int i = 0; choices[i]; i++) bits |= UINT32_C(1) << i;
    return bits;
}

bool kl_parse_list(const char *text, const char *const *choices, uint32_t *bits)
{
    uint32_t all = all_bits(choices), chosen = 0;
    bool complement = *text == '^';

    for (text += complement; *text;) {
        size_t length = strcspn(text, ",");
        int i = find_choice(text, length, choices);

        if (i >= 0)
            chosen |= UINT32_C(1) << i;
        else if (length == 3 && !strncasecmp(text, "ALL", 3))
            chosen = all;
        else if (length)
            return false;
        text += length + (text[length] == ',');
    }
    *bits = complement ? all & ~chosen : chosen;
    return true;
}
