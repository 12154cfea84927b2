/* SPDX-License-Identifier: Apache-2.0 */
#include "os/address.h"

#include "base/error.h"

#include <arpa/inet.h>
#include <net/if.h>
#include <netdb.h>
#include <stdio.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>

enum { HOST_TEXT = 256 }; /* the longest name of the DNS, 253, and a zero */

/* The parts of an address text, before any lookup. */
struct parts {
    char host[HOST_TEXT];
    char scope[IF_NAMESIZE];
    int port;
    bool bracketed;
};

static bool parse_port(const char *text, int *port)
{
    char *end;

    if (*text < '0' || *text > '9') return false; /* strtol would accept blanks and signs */
    long value = strtol(text, &end, 10);
    if (*end || value > 65535) return false;
    *port = (int)value;
    return true;
}

static bool copy_part(char *to, size_t room, const char *from, const char *end)
{
    size_t bytes = (size_t)(end - from);

    if (!bytes || bytes >= room) return false;
    memcpy(to, from, bytes);
    to[bytes] = 0;
    return true;
}

static bool split_brackets(const char *text, struct parts *p)
{
    const char *end = strchr(text, ']'), *percent = strchr(text, '%');

    if (!end || end[1] != ':' || !parse_port(end + 2, &p->port)) return false;
    if (percent && percent > end) return false;
    if (percent && !copy_part(p->scope, sizeof p->scope, percent + 1, end)) return false;
    p->bracketed = true;
    return copy_part(p->host, sizeof p->host, text + 1, percent ? percent : end);
}

static bool split(const char *text, struct parts *p)
{
    const char *colon = strrchr(text, ':');

    memset(p, 0, sizeof *p);
    if (text[0] == '[') return split_brackets(text, p);
    /* an IPv6 address needs brackets: otherwise the last colon is ambiguous */
    if (!colon || strchr(text, ':') != colon) return false;
    return parse_port(colon + 1, &p->port) && copy_part(p->host, sizeof p->host, text, colon);
}

static ncclResult_t resolve(const char *text, const struct parts *p, union kl_address *address)
{
    struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM}, *answers;
    union kl_address a = {0};

    int err = getaddrinfo(p->host, NULL, &hints, &answers);
    if (err) return KL_FAIL(ncclInvalidArgument, "cannot resolve the host in \"%s\": %s", text, gai_strerror(err));
    memcpy(&a, answers->ai_addr, answers->ai_addrlen < sizeof a ? answers->ai_addrlen : sizeof a);
    freeaddrinfo(answers);
    kl_address_set_port(&a, p->port);
    *address = a;
    return ncclSuccess;
}

static ncclResult_t parse_v6(const char *text, const struct parts *p, union kl_address *address)
{
    union kl_address a = {.v6 = {.sin6_family = AF_INET6, .sin6_port = htons((uint16_t)p->port)}};

    if (inet_pton(AF_INET6, p->host, &a.v6.sin6_addr) != 1)
        return KL_FAIL(ncclInvalidArgument, "\"%s\" has no IPv6 address between its brackets", text);
    if (p->scope[0] && !(a.v6.sin6_scope_id = if_nametoindex(p->scope)))
        return KL_FAIL(ncclInvalidArgument, "\"%s\" names interface %s, which does not exist here", text, p->scope);
    *address = a;
    return ncclSuccess;
}

ncclResult_t kl_address_parse(const char *text, union kl_address *address)
{
    union kl_address v4 = {.v4 = {.sin_family = AF_INET}};
    struct parts p;

    if (!split(text, &p))
        return KL_FAIL(ncclInvalidArgument,
                       "\"%s\" is no address: write 1.2.3.4:port, [v6]:port, [v6%%if]:port or host:port", text);
    if (p.bracketed) return parse_v6(text, &p, address);
    if (inet_pton(AF_INET, p.host, &v4.v4.sin_addr) != 1) return resolve(text, &p, address);
    v4.v4.sin_port = htons((uint16_t)p.port);
    *address = v4;
    return ncclSuccess;
}

/* ---- Unix addresses ---- */

static void put_u64(unsigned char *to, uint64_t value)
{
    for (int i = 0; i < 8; i++) to[i] = (unsigned char)(value >> 8 * i);
}

static unsigned long long get_u64(const unsigned char *from)
{
    unsigned long long value = 0;

    for (int i = 7; i >= 0; i--) value = value << 8 | from[i];
    return value;
}

union kl_address kl_address_new_unix(uint64_t place)
{
    union kl_address a = {.any = {0}};

    a.un.family = AF_UNIX;
    put_u64(a.un.place, place);
    return a;
}

bool kl_address_is_unix(const union kl_address *address)
{
    return address->any.sa_family == AF_UNIX;
}

bool kl_address_is_unix_of(const union kl_address *address, uint64_t place)
{
    return kl_address_is_unix(address) && get_u64(address->un.place) == place;
}

static void name_unix(const union kl_address *address, char text[KL_ADDRESS_TEXT])
{
    snprintf(text, KL_ADDRESS_TEXT, "kolo-%016llx", get_u64(address->un.number));
}

/* ---- all kinds ---- */

const char *kl_address_format(const union kl_address *address, char text[KL_ADDRESS_TEXT])
{
    char host[INET6_ADDRSTRLEN], scope[IF_NAMESIZE] = "";

    if (address->any.sa_family == AF_INET) {
        inet_ntop(AF_INET, &address->v4.sin_addr, host, sizeof host);
        snprintf(text, KL_ADDRESS_TEXT, "%s:%d", host, kl_address_port(address));
    } else if (address->any.sa_family == AF_INET6) {
        inet_ntop(AF_INET6, &address->v6.sin6_addr, host, sizeof host);
        bool scoped = address->v6.sin6_scope_id && if_indextoname(address->v6.sin6_scope_id, scope);
        snprintf(text, KL_ADDRESS_TEXT, "[%s%s%s]:%d", host, scoped ? "%" : "", scope, kl_address_port(address));
    } else if (kl_address_is_unix(address) && kl_address_is_bound(address)) {
        char name[KL_ADDRESS_TEXT];
        name_unix(address, name);
        snprintf(text, KL_ADDRESS_TEXT, "unix:@%.32s", name);
    } else {
        snprintf(text, KL_ADDRESS_TEXT, "%s", kl_address_is_unix(address) ? "this host" : "none");
    }
    return text;
}

socklen_t kl_address_bytes(const union kl_address *address)
{
    switch (address->any.sa_family) {
    case AF_INET:
        return sizeof address->v4;
    case AF_INET6:
        return sizeof address->v6;
    case AF_UNIX:
        return sizeof address->un;
    default:
        return 0;
    }
}

static socklen_t unix_sockaddr(const union kl_address *address, struct sockaddr_storage *system)
{
    struct sockaddr_un *un = (struct sockaddr_un *)(void *)system;
    char name[KL_ADDRESS_TEXT];

    name_unix(address, name);
    un->sun_family = AF_UNIX;
    /* after a zero byte: an abstract address, not in the file system */
    snprintf(un->sun_path + 1, sizeof un->sun_path - 1, "%s", name);
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + strlen(name));
}

socklen_t kl_address_sockaddr(const union kl_address *address, struct sockaddr_storage *system)
{
    memset(system, 0, sizeof *system);
    if (kl_address_is_unix(address)) return unix_sockaddr(address, system);
    memcpy(system, address, sizeof *address);
    return kl_address_bytes(address);
}

bool kl_address_is_bound(const union kl_address *address)
{
    return kl_address_is_unix(address) ? get_u64(address->un.number) != 0 : kl_address_port(address) != 0;
}

void kl_address_unbind(union kl_address *address)
{
    kl_address_set_port(address, 0);
    if (kl_address_is_unix(address)) put_u64(address->un.number, 0);
}

bool kl_address_same_port(const union kl_address *a, const union kl_address *b)
{
    if (kl_address_is_unix(a) != kl_address_is_unix(b)) return false;
    return kl_address_is_unix(a) ? !memcmp(a->un.number, b->un.number, sizeof a->un.number)
                                 : kl_address_port(a) == kl_address_port(b);
}

int kl_address_port(const union kl_address *address)
{
    switch (address->any.sa_family) {
    case AF_INET:
        return ntohs(address->v4.sin_port);
    case AF_INET6:
        return ntohs(address->v6.sin6_port);
    default:
        return 0;
    }
}

void kl_address_set_port(union kl_address *address, int port)
{
    if (address->any.sa_family == AF_INET) address->v4.sin_port = htons((uint16_t)port);
    if (address->any.sa_family == AF_INET6) address->v6.sin6_port = htons((uint16_t)port);
}

bool kl_address_is_none(const union kl_address *address)
{
    return !kl_address_bytes(address);
}

bool kl_address_is_loopback(const union kl_address *address)
{
    if (address->any.sa_family == AF_INET) return ntohl(address->v4.sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;
    return address->any.sa_family == AF_INET6 && IN6_IS_ADDR_LOOPBACK(&address->v6.sin6_addr);
}

bool kl_address_is_link_local(const union kl_address *address)
{
    return address->any.sa_family == AF_INET6 && IN6_IS_ADDR_LINKLOCAL(&address->v6.sin6_addr);
}

static bool same_v6_subnet(const struct sockaddr_in6 *a, const struct sockaddr_in6 *b, const struct sockaddr_in6 *mask)
{
    for (int i = 0; i < 16; i++)
        if ((a->sin6_addr.s6_addr[i] ^ b->sin6_addr.s6_addr[i]) & mask->sin6_addr.s6_addr[i]) return false;
    return a->sin6_scope_id == b->sin6_scope_id;
}

bool kl_address_same_subnet(const union kl_address *a, const union kl_address *b, const union kl_address *mask)
{
    if (a->any.sa_family != b->any.sa_family) return false;
    if (a->any.sa_family == AF_INET)
        return !((a->v4.sin_addr.s_addr ^ b->v4.sin_addr.s_addr) & mask->v4.sin_addr.s_addr);
    return a->any.sa_family == AF_INET6 && same_v6_subnet(&a->v6, &b->v6, &mask->v6);
}

bool kl_address_same_host(const union kl_address *a, const union kl_address *b)
{
    union kl_address x = *a, y = *b;

    kl_address_unbind(&x);
    kl_address_unbind(&y);
    return !kl_address_is_none(a) && !memcmp(&x, &y, sizeof x);
}

static void put_u16(unsigned char *to, unsigned value)
{
    to[0] = value & 0xff;
    to[1] = (unsigned char)(value >> 8);
}

static unsigned get_u16(const unsigned char *from)
{
    return from[0] | (unsigned)from[1] << 8;
}

void kl_address_pack(const union kl_address *address, unsigned char wire[KL_ADDRESS_WIRE])
{
    memset(wire, 0, KL_ADDRESS_WIRE);
    put_u16(wire + 2, (unsigned)kl_address_port(address));
    if (address->any.sa_family == AF_INET) {
        put_u16(wire, 4);
        memcpy(wire + 4, &address->v4.sin_addr, 4);
    } else if (address->any.sa_family == AF_INET6) {
        put_u16(wire, 6);
        memcpy(wire + 4, &address->v6.sin6_addr, 16);
        put_u16(wire + 20, address->v6.sin6_scope_id & 0xffff);
        put_u16(wire + 22, address->v6.sin6_scope_id >> 16);
    } else if (kl_address_is_unix(address)) {
        put_u16(wire, 1);
        memcpy(wire + 4, address->un.number, 8);
        memcpy(wire + 12, address->un.place, 8);
    }
}

bool kl_address_unpack(const unsigned char wire[KL_ADDRESS_WIRE], union kl_address *address)
{
    union kl_address a = {0};

    switch (get_u16(wire)) {
    case 0:
        break;
    case 1:
        a.un.family = AF_UNIX;
        memcpy(a.un.number, wire + 4, 8);
        memcpy(a.un.place, wire + 12, 8);
        break;
    case 4:
        a.v4.sin_family = AF_INET;
        memcpy(&a.v4.sin_addr, wire + 4, 4);
        break;
    case 6:
        a.v6.sin6_family = AF_INET6;
        memcpy(&a.v6.sin6_addr, wire + 4, 16);
        a.v6.sin6_scope_id = get_u16(wire + 20) | get_u16(wire + 22) << 16;
        break;
    default:
        return false;
    }
    kl_address_set_port(&a, (int)get_u16(wire + 2));
    *address = a;
    return true;
}
