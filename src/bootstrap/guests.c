/* SPDX-License-Identifier: Apache-2.0 */
#include "bootstrap/guests.h"

#include "base/error.h"

#include <arpa/inet.h>

#include <stdlib.h>
#include <string.h>

/* An address and how many of its bits count. */
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

/* The next item, copied to where it can be cut; false at the end. */
static bool next_item(const char **list, char item[64])
{
    while (**list == ',' || **list == ' ') ++*list;
    if (!**list) return false;
    size_t n = strcspn(*list, ", ");
    size_t kept = n < 63 ? n : 63;
    memcpy(item, *list, kept);
    item[kept] = '\0';
    *list += n;
    return true;
}

static bool is_all(const char *list)
{
    return !strcmp(list, "1");
}

ncclResult_t kl_guests_check(const char *list)
{
    char item[64], cut[64];
    struct network n;

    if (is_all(list)) return ncclSuccess;
    while (next_item(&list, item)) {
        memcpy(cut, item, sizeof cut);
        if (!parse(cut, &n))
            return KL_FAIL(
                ncclInvalidArgument,
                "KOLO_OPEN_TO: \"%s\" is no address or network; it is a list such as 10.99.0.0/24,192.0.2.7, "
                "or 1 for everybody",
                item);
    }
    return ncclSuccess;
}

static bool is_this_host(union kl_address here, union kl_address there)
{
    kl_address_set_port(&here, 0);
    kl_address_set_port(&there, 0);
    return kl_address_is_loopback(&there) || !memcmp(&here, &there, sizeof here);
}

bool kl_guests_admit(const char *list, union kl_address here, union kl_address there)
{
    struct network n;
    char item[64];

    if (is_this_host(here, there) || is_all(list)) return true;
    if (there.any.sa_family == AF_INET6) there.v6.sin6_scope_id = 0; /* lists have none */
    while (next_item(&list, item))
        if (parse(item, &n) && kl_address_same_subnet(&n.address, &there, &n.mask)) return true;
    return false;
}
