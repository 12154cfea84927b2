/* SPDX-License-Identifier: Apache-2.0 */
#include "bootstrap/admission.h"

#include "base/error.h"

#include <arpa/inet.h>

#include <stdlib.h>
#include <string.h>

/* An address prefix: an address and the number of its bits that count. */
struct network {
    union kl_address address, mask;
};

static bool set_mask(union kl_address *mask, int family, const char *bits)
{
    unsigned char *byte = family == AF_INET ? (unsigned char *)&mask->v4.sin_addr : mask->v6.sin6_addr.s6_addr;
    long most = family == AF_INET ? 32 : 128, n = most;
    char *end;

    if (bits) {
        n = *bits >= '0' && *bits <= '9' ? strtol(bits, &end, 10) : -1;
        if (n < 0 || n > most || *end) return false;
    }
    mask->any.sa_family = (sa_family_t)family;
    for (long i = 0; i < n; i++) byte[i / 8] = (unsigned char)(byte[i / 8] | 0x80 >> i % 8);
    return true;
}

static bool parse(char *item, struct network *n)
{
    char *slash = strchr(item, '/');

    *n = (struct network){0};
    if (slash) *slash++ = '\0';
    if (inet_pton(AF_INET, item, &n->address.v4.sin_addr) == 1)
        n->address.any.sa_family = AF_INET;
    else if (inet_pton(AF_INET6, item, &n->address.v6.sin6_addr) == 1)
        n->address.any.sa_family = AF_INET6;
    else
        return false;
    return set_mask(&n->mask, n->address.any.sa_family, slash);
}

struct item {
    const char *text; /* in the list: `bytes` characters */
    size_t bytes;
};

/* False at the end. */
static bool next_item(const char **list, struct item *item)
{
    *list += strspn(*list, ", ");
    *item = (struct item){.text = *list, .bytes = strcspn(*list, ", ")};
    *list += item->bytes;
    return item->bytes;
}

/* No valid network is longer than the buffer. */
static bool parse_item(const struct item *item, struct network *n)
{
    char text[64];

    if (item->bytes >= sizeof text) return false;
    memcpy(text, item->text, item->bytes);
    text[item->bytes] = '\0';
    return parse(text, n);
}

bool kl_admission_is_open(const char *list)
{
    return !strcmp(list, "1");
}

ncclResult_t kl_admission_check(const char *list)
{
    struct item item;
    struct network n;

    if (kl_admission_is_open(list)) return ncclSuccess;
    while (next_item(&list, &item))
        if (!parse_item(&item, &n))
            return KL_FAIL(ncclInvalidArgument,
                           "KOLO_OPEN_TO: \"%.*s\" is no address or network; it is a list such as "
                           "10.99.0.0/24,192.0.2.7, or 1 for everybody",
                           item.bytes < 100 ? (int)item.bytes : 100, item.text);
    return ncclSuccess;
}

bool kl_admission_allows(const char *list, union kl_address here, union kl_address there)
{
    struct item item;
    struct network n;

    if (kl_address_is_loopback(&there) || kl_address_same_host(&here, &there)) return true;
    if (kl_admission_is_open(list)) return true;
    if (there.any.sa_family == AF_INET6) there.v6.sin6_scope_id = 0; /* networks in lists have no scope */
    while (next_item(&list, &item))
        if (parse_item(&item, &n) && kl_address_same_subnet(&n.address, &there, &n.mask)) return true;
    return false;
}
