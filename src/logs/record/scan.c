/* SPDX-License-Identifier: Apache-2.0 */
/** scan.c - numbers and words of lines. */
#include "logs/record/make.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

enum { DIGITS = 18 }; /* that 64 bits hold */

static const char *behind_blanks(const char *at)
{
    return at + strspn(at, " \t");
}

bool kl_scan_int(const char **at, int64_t *value)
{
    const char *digit = behind_blanks(*at);
    size_t n = 0;

    while (n <= DIGITS && isdigit((unsigned char)digit[n])) n++;
    if (!n || n > DIGITS) return false;
    *value = strtoll(digit, NULL, 10);
    *at = digit + n;
    return true;
}

bool kl_scan_word(const char **at, const char *word)
{
    const size_t n = strlen(word);

    if (strncmp(*at, word, n)) return false;
    *at += n;
    return true;
}

bool kl_scan_token(const char **at, char *token, size_t size)
{
    const char *start = behind_blanks(*at);
    const size_t n = strcspn(start, " \t\r\n");

    if (!n || n >= size) return false;
    memcpy(token, start, n);
    token[n] = 0;
    *at = start + n;
    return true;
}
