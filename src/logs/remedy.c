/* SPDX-License-Identifier: Apache-2.0 */
#include "logs/remedy.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

enum { NAME = 64 };

static bool is_name(char c)
{
    return isupper((unsigned char)c) || isdigit((unsigned char)c) || c == '_';
}

/* Does any rank have NAME=VALUE, which stands at `at`? */
static bool is_applied(const struct kl_log *log, const char *at, size_t n, const char *value, size_t m)
{
    for (int i = 0; i < log->nsetting; i++) {
        const struct kl_log_setting *s = &log->setting[i];

        if (strlen(s->name) == n && !strncmp(s->name, at, n) && strlen(s->value) == m &&
            !strncasecmp(s->value, value, m))
            return true;
    }
    return false;
}

/* Is a setting that the clause recommends applied? Only names in capitals count, with a word or number as value. */
static bool has_applied(const struct kl_log *log, const char *clause, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        size_t n = 0, m = 0;

        while (i + n < length && n < NAME && is_name(clause[i + n])) n++;
        const char *value = clause + i + n + 1;

        if (n > 5 && i + n < length && clause[i + n] == '=') {
            while (i + n + 1 + m < length && (isalnum((unsigned char)value[m]) || strchr("^_-", value[m]))) m++;
            if (m && is_applied(log, clause + i, n, value, m)) return true;
        }
        i += n;
    }
    return false;
}

void kl_remedy_add(const struct kl_log *log, const char *remedy, struct kl_text *text)
{
    const char *separator = "";

    for (const char *at = remedy ? remedy : ""; *at;) {
        const char *end = strstr(at, "; ");
        size_t n = end ? (size_t)(end - at) : strlen(at);

        if (!has_applied(log, at, n)) {
            kl_text_add(text, "%s%.*s", separator, (int)n, at);
            separator = "; ";
        }
        at += n + (end ? 2 : 0);
    }
}
