/* SPDX-License-Identifier: Apache-2.0 */
#include "answer/trace_calls.h"

#include "answer/type_named.h"
#include "device/host/redop.h"
#include "plan/order.h"

#include <ctype.h>
#include <stdio.h>
#include <strings.h>

void kl_trace_plain_name(const char *name, char *plain, size_t size)
{
    size_t n = 0;

    for (; *name && n + 1 < size; name++)
        if (isalnum((unsigned char)*name)) plain[n++] = (char)tolower((unsigned char)*name);
    plain[n] = 0;
}

static bool type_of(const char *name, ncclDataType_t *type)
{
    static const struct {
        const char *name;
        ncclDataType_t type;
    } torch[] = {{"Long", ncclInt64}, {"Bool", ncclUint8}};

    if (kl_type_named(name, type)) return true;
    for (size_t i = 0; i < sizeof torch / sizeof torch[0]; i++)
        if (!strcasecmp(name, torch[i].name)) return *type = torch[i].type, true;
    return false;
}

int64_t kl_trace_bytes(const struct kl_record_call *c, ncclDataType_t *type)
{
    const int64_t n = c->in > c->out ? c->in : c->out;

    *type = ncclUint8;
    if (!type_of(c->type, type) || n < 1 || n > KL_ORDER_BYTES) return c->bytes;
    const int64_t bytes = n * (int64_t)kl_type_bytes(*type);

    return bytes > c->bytes ? bytes : c->bytes; /* Kolo may count one rank's part */
}

void kl_trace_skip(struct kl_traffic_trace *x, const char *name)
{
    x->skipped++;
    if (!*x->first_skipped) snprintf(x->first_skipped, sizeof x->first_skipped, "%s", *name ? name : "a call");
}
