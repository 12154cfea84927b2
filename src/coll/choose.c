/* SPDX-License-Identifier: Apache-2.0 */
#include "coll/choose.h"

#include "base/error.h"

#include <stdbool.h>
#include <string.h>
#include <strings.h>

/* The one algorithm and protocol that there is. */
const char kl_choose_algo[] = "Ring", kl_choose_proto[] = "Simple";

static bool names(const char *list, size_t length, const char *word)
{
    for (const char *p = list, *end = list + length; p < end;) {
        const char *comma = memchr(p, ',', (size_t)(end - p));
        size_t n = (size_t)((comma ? comma : end) - p);
        if (n == strlen(word) && !strncasecmp(p, word, n)) return true;
        p += n + 1;
    }
    return false;
}

/* One list, with or without ^. */
static bool allows(const char *list, size_t length, const char *word)
{
    if (length && *list == '^') return !names(list + 1, length - 1, word);
    return !length || names(list, length, word);
}

/* Every list of the text, each possibly after "function:". */
static bool all_allow(const char *text, const char *word)
{
    for (const char *p = text; *p;) {
        size_t length = strcspn(p, ";");
        const char *colon = memchr(p, ':', length), *list = colon ? colon + 1 : p;
        if (!allows(list, length - (size_t)(list - p), word)) return false;
        p += length + (p[length] == ';');
    }
    return true;
}

ncclResult_t kl_choose_check(const char *algo, const char *proto)
{
    if (!all_allow(algo, kl_choose_algo))
        return KL_FAIL(ncclInvalidUsage, "NCCL_ALGO=%s leaves no algorithm on host devices: there is %s", algo,
                       kl_choose_algo);
    if (!all_allow(proto, kl_choose_proto))
        return KL_FAIL(ncclInvalidUsage, "NCCL_PROTO=%s leaves no protocol on host devices: there is %s", proto,
                       kl_choose_proto);
    return ncclSuccess;
}
