/* SPDX-License-Identifier: Apache-2.0 */
#include "plan/host_list.h"

#include "base/error.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DIGITS = 9 };

struct list {
    const char *place, *whole;
    kl_host_take *take;
    void *ctx;
    int n;
};

static ncclResult_t refuse(const struct list *l, const char *why)
{
    return KL_FAIL(ncclInvalidUsage, "%s: the list \"%.64s\" %s; expected names as in n[1-8],gpu-01", l->place,
                   l->whole, why);
}

static ncclResult_t expand(struct list *l, char *name, size_t n, const char *rest, size_t left);

static ncclResult_t append(struct list *l, char *name, size_t n, const char *text, size_t bytes, const char *rest,
                           size_t left)
{
    if (n + bytes >= KL_HOST_NAME) return refuse(l, "has a name of more than 255 bytes");
    memcpy(name + n, text, bytes);
    return expand(l, name, n + bytes, rest, left);
}

/* One number of brackets, or a range of them. Others are taken as they are. */
static ncclResult_t expand_range(struct list *l, char *name, size_t n, const char *item, size_t bytes, const char *rest,
                                 size_t left)
{
    const size_t digits = strspn(item, "0123456789");

    if (digits >= bytes || item[digits] != '-') return append(l, name, n, item, bytes, rest, left);
    const size_t last_digits = strspn(item + digits + 1, "0123456789");

    if (!digits || !last_digits || digits + 1 + last_digits != bytes || digits > DIGITS || last_digits > DIGITS)
        return refuse(l, "has a range that is none");
    const long first = strtol(item, NULL, 10), last = strtol(item + digits + 1, NULL, 10);

    if (last < first) return refuse(l, "has a range that counts down");
    for (long i = first; i <= last; i++) {
        char number[16];
        const int length = snprintf(number, sizeof number, "%0*ld", (int)digits, i);

        KL_TRY(append(l, name, n, number, (size_t)length, rest, left));
    }
    return ncclSuccess;
}

/* The part of one name up to its next brackets, then each of their items, then the rest. */
static ncclResult_t expand(struct list *l, char *name, size_t n, const char *rest, size_t left)
{
    const char *open = memchr(rest, '[', left);

    if (!open) {
        if (n + left >= KL_HOST_NAME) return refuse(l, "has a name of more than 255 bytes");
        memcpy(name + n, rest, left);
        name[n + left] = 0;
        if (l->n++ >= KL_HOSTS) return refuse(l, "has more than 100000 names");
        return l->take(l->ctx, name);
    }
    const size_t before = (size_t)(open - rest);
    const char *close = memchr(open, ']', left - before);

    if (!close) return refuse(l, "has brackets that do not close");
    if (n + before >= KL_HOST_NAME) return refuse(l, "has a name of more than 255 bytes");
    memcpy(name + n, rest, before);
    for (const char *item = open + 1; item <= close;) {
        size_t bytes = strcspn(item, ",]");

        if (!bytes) return refuse(l, "has brackets with an empty item");
        KL_TRY(expand_range(l, name, n + before, item, bytes, close + 1, left - before - (size_t)(close + 1 - open)));
        item += bytes + 1;
    }
    return ncclSuccess;
}

ncclResult_t kl_host_list(const char *place, const char *text, kl_host_take *take, void *ctx)
{
    struct list l = {place, text, take, ctx, 0};
    char name[KL_HOST_NAME];

    for (const char *at = text; *at;) {
        size_t n = 0;

        for (int deep = 0; at[n] && (deep || at[n] != ','); n++) {
            deep += (at[n] == '[') - (at[n] == ']');
            if (deep < 0 || deep > 1) return refuse(&l, "has brackets in disorder");
        }
        if (!n) return refuse(&l, "has an empty name");
        KL_TRY(expand(&l, name, 0, at, n));
        at += n + (at[n] == ',');
    }
    return ncclSuccess;
}

int kl_host_compare(const char *a, const char *b)
{
    const char *x = a, *y = b;

    while (*x && *y) {
        if (isdigit((unsigned char)*x) && isdigit((unsigned char)*y)) {
            x += strspn(x, "0");
            y += strspn(y, "0");
            const size_t nx = strspn(x, "0123456789"), ny = strspn(y, "0123456789");

            if (nx != ny) return nx < ny ? -1 : 1;
            const int order = memcmp(x, y, nx);

            if (order) return order;
            x += nx;
            y += ny;
        } else if (*x != *y) {
            return (unsigned char)*x < (unsigned char)*y ? -1 : 1;
        } else {
            x++, y++;
        }
    }
    return *x ? 1 : *y ? -1 : strcmp(a, b);
}
