/* SPDX-License-Identifier: Apache-2.0 */
/**
 * id.h - what the 128 bytes of a unique id mean.
 *
 *      0          6         7      8        40          68          96          124    128
 *     +----------+---------+------+--------+-----------+-----------+-----------+------+
 *     | "KOLOid" | version | kind | secret | address 0 | address 1 | address 2 | zero |
 *     +----------+---------+------+--------+-----------+-----------+-----------+------+
 *
 * The secret keys every connection of the communicators made with the id: whoever may join has been given it.
 */
#ifndef KL_BOOTSTRAP_ID_H
#define KL_BOOTSTRAP_ID_H

#include "bootstrap/config.h"
#include "bootstrap/keys.h"
#include "bootstrap/record.h"

enum kl_id_kind {
    KL_ID_ROOT_RUNS = 1, /* in the process that made the id */
    KL_ID_RANK0_OPENS,   /* address 0 is where rank 0 starts the root when it joins */
};

struct kl_id {
    enum kl_id_kind kind;
    struct kl_key secret;
    int naddresses; /* at least 1 */
    union kl_address address[KL_ADDRESSES];
};

void kl_id_pack(const struct kl_id *id, ncclUniqueId *bytes);

/** The secret that connections are keyed with, from that of the id's bytes: with KOLO_PSK, if there is one, mixed in. Once. */
void kl_id_add_psk(struct kl_id *id);

/** With kl_id_add_psk. Silent. False: these bytes are not an id of this library and version. */
bool kl_id_unpack(const ncclUniqueId *bytes, struct kl_id *id);

/** The id of a rendezvous at `address` ("host:port"), and at a door for rank 0's host; `secret` "": a key that everybody knows. */
ncclResult_t kl_id_rendezvous(const char *address, const char *secret, struct kl_id *id);

/** What callers and acceptors of the id call it: it chooses among the keys of a process, and proves nothing. */
uint32_t kl_id_name(const struct kl_id *id);

/** Is the id's secret the one that everybody knows? */
bool kl_id_is_public(const struct kl_id *id);

/**
 * Where to listen, ports 0: one address for each interface chosen, and where there is room among KL_ADDRESSES a door for this host. Where the
 * user chose no interface, and there is none, the door is all.
 */
ncclResult_t kl_id_listen_addresses(const struct kl_bootstrap_params *params, const union kl_address *near,
                                    union kl_address addresses[KL_ADDRESSES], int *count);

#endif
