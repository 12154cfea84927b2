/* SPDX-License-Identifier: Apache-2.0 */
#include "bootstrap/id.h"

#include "base/error.h"
#include "base/log.h"
#include "bootstrap/bootstrap.h"
#include "bootstrap/wire.h"
#include "os/hostinfo.h"
#include "os/netif.h"

#include <stdio.h>
#include <string.h>

static const char mark[6] = "KOLOid"; /* no zero at its end */

enum { ID_VERSION = 1 };

/* ---- bytes ---- */

void kl_id_pack(const struct kl_id *id, ncclUniqueId *bytes)
{
    struct kl_writer w = kl_writer_on(bytes->internal, sizeof bytes->internal);

    memset(bytes, 0, sizeof *bytes);
    kl_put_bytes(&w, mark, sizeof mark);
    kl_put_u8(&w, ID_VERSION);
    kl_put_u8(&w, (uint8_t)id->kind);
    kl_put_bytes(&w, id->secret.bytes, KL_KEY_BYTES);
    for (int i = 0; i < id->naddresses; i++) {
        unsigned char wire[KL_ADDRESS_WIRE];
        kl_address_pack(&id->address[i], wire);
        kl_put_bytes(&w, wire, sizeof wire);
    }
}

/* Used addresses come first; the rest are empty. */
static bool unpack_addresses(struct kl_reader *r, struct kl_id *id)
{
    for (int i = 0; i < KL_ADDRESSES; i++) {
        unsigned char wire[KL_ADDRESS_WIRE];
        union kl_address a;

        kl_get_bytes(r, wire, sizeof wire);
        if (!kl_address_unpack(wire, &a)) return false;
        if (kl_address_is_none(&a)) continue;
        if (id->naddresses != i || !kl_address_is_bound(&a)) return false;
        id->address[id->naddresses++] = a;
    }
    return id->naddresses > 0;
}

void kl_id_add_psk(struct kl_id *id)
{
    struct kl_bootstrap_params params;

    kl_param_load(&kl_bootstrap_param_set, &params);
    if (*params.psk) id->secret = kl_key_derive(&id->secret, "kolo psk", params.psk, strlen(params.psk));
    explicit_bzero(&params, sizeof params);
}

bool kl_id_unpack(const ncclUniqueId *bytes, struct kl_id *id)
{
    struct kl_reader r = kl_reader_on(bytes->internal, sizeof bytes->internal);
    struct kl_id found = {0};
    char start[sizeof mark];

    kl_get_bytes(&r, start, sizeof start);
    if (memcmp(start, mark, sizeof mark) || kl_get_u8(&r) != ID_VERSION) return false;
    found.kind = kl_get_u8(&r);
    if (found.kind != KL_ID_ROOT_RUNS && found.kind != KL_ID_RANK0_OPENS) return false;
    kl_get_bytes(&r, found.secret.bytes, KL_KEY_BYTES);
    if (!unpack_addresses(&r, &found) || kl_get_u32(&r)) return false;
    kl_id_add_psk(&found);
    *id = found;
    return true;
}

/* ---- text ---- */

static int hex_value(char c)
{
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return -1;
}

static bool parse_hex(const char *text, ncclUniqueId *id)
{
    if (strlen(text) != 2 * sizeof id->internal) return false;
    for (size_t i = 0; i < sizeof id->internal; i++) {
        int high = hex_value(text[2 * i]), low = hex_value(text[2 * i + 1]);
        if (high < 0 || low < 0) return false;
        id->internal[i] = (char)(high << 4 | low);
    }
    return true;
}

void kl_bootstrap_id_format(const ncclUniqueId *id, char text[2 * NCCL_UNIQUE_ID_BYTES + 1])
{
    for (size_t i = 0; i < sizeof id->internal; i++) snprintf(text + 2 * i, 3, "%02x", (unsigned char)id->internal[i]);
}

/* Text that is not an address may be a damaged id, and must not appear in a log. */
static ncclResult_t parse_rendezvous(const char *text, ncclUniqueId *bytes)
{
    struct kl_bootstrap_params params;
    struct kl_id id;

    if (!kl_param_is_address(text))
        return KL_FAIL(
            ncclInvalidArgument,
            "a job's id is %zu hexadecimal digits or host:port of a rendezvous; the %zu characters given are "
            "neither",
            2 * sizeof bytes->internal, strlen(text));
    kl_param_load(&kl_bootstrap_param_set, &params);
    KL_TRY(kl_id_rendezvous(text, params.secret, &id));
    kl_id_pack(&id, bytes);
    return ncclSuccess;
}

ncclResult_t kl_bootstrap_id_parse(const char *text, ncclUniqueId *out)
{
    ncclUniqueId bytes;
    struct kl_id id;

    if (!parse_hex(text, &bytes)) return parse_rendezvous(text, out);
    if (!kl_id_unpack(&bytes, &id))
        return KL_FAIL(ncclInvalidArgument, "the %zu hexadecimal digits are not an id of this library", strlen(text));
    *out = bytes;
    return ncclSuccess;
}

/* ---- making ids ---- */

/* The number follows from the id, so that all ranks of the host know it. */
static union kl_address unix_address_of(const struct kl_id *id, uint64_t place)
{
    union kl_address local = kl_address_new_unix(place);
    unsigned char wire[KL_ADDRESS_WIRE];

    kl_address_pack(&id->address[0], wire);
    struct kl_key derived = kl_key_derive(&id->secret, "kolo door", wire, sizeof wire);
    memcpy(local.un.number, derived.bytes, sizeof local.un.number);
    return local;
}

ncclResult_t kl_id_rendezvous(const char *address, const char *secret, struct kl_id *id)
{
    struct kl_id made = {.kind = KL_ID_RANK0_OPENS, .naddresses = 1};
    uint64_t place;

    KL_TRY(kl_address_parse(address, &made.address[0]));
    if (!kl_address_port(&made.address[0]))
        return KL_FAIL(ncclInvalidArgument, "the rendezvous \"%s\" needs a port that all ranks know, not 0", address);
    made.secret = kl_key_from_text(secret);
    KL_TRY(kl_hostinfo_netns_hash(&place));
    if (place) made.address[made.naddresses++] = unix_address_of(&made, place);
    *id = made;
    return ncclSuccess;
}

uint32_t kl_id_name(const struct kl_id *id)
{
    struct kl_key derived = kl_key_derive(&id->secret, "kolo name", NULL, 0);
    struct kl_reader r = kl_reader_on(derived.bytes, sizeof derived.bytes);

    return kl_get_u32(&r);
}

bool kl_id_is_public(const struct kl_id *id)
{
    struct kl_key known = kl_key_from_text("");

    return !memcmp(&known, &id->secret, sizeof known);
}

/* Ranks of one host, which have its Unix address, need no interface. */
static ncclResult_t choose_interfaces(const struct kl_netif_constraints *constraints, bool has_unix,
                                      struct kl_netif chosen[KL_NETIF_MAX], int *n)
{
    const bool asked = !has_unix || (constraints->names && *constraints->names) || constraints->family;
    int quiet = kl_error_quiet(!asked);
    ncclResult_t rc = kl_netif_choose(constraints, chosen, n);

    kl_error_quiet(quiet);
    if (!rc || asked) return rc;
    KL_INFO(KL_BOOTSTRAP, "there is no network interface: only ranks of this host can join");
    *n = 0;
    return ncclSuccess;
}

ncclResult_t kl_id_listen_addresses(const struct kl_bootstrap_params *params, const union kl_address *near,
                                    union kl_address addresses[KL_ADDRESSES], int *count)
{
    static const int families[] = {[KL_SOCKET_IPV4] = AF_INET, [KL_SOCKET_IPV6] = AF_INET6};
    struct kl_netif_constraints constraints = {.names = params->socket_ifname, .near = near};
    struct kl_netif chosen[KL_NETIF_MAX];
    uint64_t place;
    int n = 0;

    if (params->socket_family != KL_SOCKET_ANY) constraints.family = families[params->socket_family];
    KL_TRY(kl_hostinfo_netns_hash(&place));
    KL_TRY(choose_interfaces(&constraints, place != 0, chosen, &n));
    if (n > KL_ADDRESSES) n = KL_ADDRESSES;
    for (int i = 0; i < n; i++) addresses[i] = chosen[i].address;
    if (place && n < KL_ADDRESSES) addresses[n++] = kl_address_new_unix(place);
    *count = n;
    return ncclSuccess;
}
