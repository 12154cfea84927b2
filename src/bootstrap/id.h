/* SPDX-License-Identifier: Apache-2.0 */
/**
 * id.h - layout of the 128 bytes of a unique id.
 *
 *      0          6         7      8        40          68          96          124    128
 *     +----------+---------+------+--------+-----------+-----------+-----------+------+
 *     | "KOLOid" | version | kind | secret | address 0 | address 1 | address 2 | zero |
 *     +----------+---------+------+--------+-----------+-----------+-----------+------+
 *
 * The secret keys every connection of the communicators made with the id: holding the id is the right to join.
 */
#ifndef KL_BOOTSTRAP_ID_H
#define KL_BOOTSTRAP_ID_H

#include "bootstrap/config.h"
#include "bootstrap/keys.h"
#include "bootstrap/record.h"

enum kl_id_kind {
    KL_ID_ROOT_RUNS = 1, /* the root runs in the process that made the id */
    KL_ID_RANK0_OPENS,   /* rank 0 starts the root at address 0 when it joins */
};

struct kl_id {
    enum kl_id_kind kind;
    struct kl_key secret;
    int naddresses; /* at least 1 */
    union kl_address address[KL_ADDRESSES];
};

void kl_id_pack(const struct kl_id *id, ncclUniqueId *bytes);

/** Mix KOLO_PSK, if it is set, into the id's secret, which keys connections. Call it once. */
void kl_id_add_psk(struct kl_id *id);

/** With kl_id_add_psk. Silent. False: these bytes are not an id of this library and version. */
bool kl_id_unpack(const ncclUniqueId *bytes, struct kl_id *id);

/**
 * The id of a rendezvous at `address` ("host:port"), and at a Unix address for rank 0's host; `secret` "": a public
 * key.
 */
ncclResult_t kl_id_rendezvous(const char *address, const char *secret, struct kl_id *id);

/** The id's name, by which callers find its acceptors: selects among the keys of a process, and proves nothing. */
uint32_t kl_id_name(const struct kl_id *id);

/** Is the id's secret the public one? */
bool kl_id_is_public(const struct kl_id *id);

/**
 * Addresses to listen on, ports 0: one for each interface chosen, and if KL_ADDRESSES leaves room a Unix address. If
 * the user chose no interface, and there is none, the Unix address is the only one.
 */
ncclResult_t kl_id_listen_addresses(const struct kl_bootstrap_params *params, const union kl_address *near,
                                    union kl_address addresses[KL_ADDRESSES], int *count);

#endif
