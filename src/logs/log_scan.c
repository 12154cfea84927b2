/* SPDX-License-Identifier: Apache-2.0 */
/** log_scan.c - finding words and numbers in lines. */
#include "logs/log_make.h"

#include <ctype.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

const char *kl_log_after(const char *text, const char *word)
{
    const char *found = strstr(text, word);

    return found ? found + strlen(word) : NULL;
}

bool kl_log_int(const char **at, int *value)
{
    const char *start = *at, *digit = *start == '-' ? start + 1 : start;
    size_t n = 0;

    while (n <= 9 && isdigit((unsigned char)digit[n])) n++;
    if (!n || n > 9) return false;
    *value = (int)strtol(start, NULL, 10);
    *at = digit + n;
    return true;
}

long kl_log_number(const char *text, const char *word, long absent)
{
    const char *at = kl_log_after(text, word);
    int value;

    return at && kl_log_int(&at, &value) ? value : absent;
}

int kl_log_path_type(const char *word)
{
    size_t n = 0;

    while (isalnum((unsigned char)word[n])) n++;
    for (int t = 0; n && t < KL_PATH_TYPES; t++)
        if (strlen(kl_path_type_name[t]) == n && !strncmp(word, kl_path_type_name[t], n)) return t;
    if (n == 4 && !strncmp(word, "XGMI", 4)) return KL_PATH_NVL;
    if (n == 3 && !strncmp(word, "PCI", 3)) return KL_PATH_PCI;
    return -1;
}
