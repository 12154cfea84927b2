/* SPDX-License-Identifier: Apache-2.0 */
/**
 * address.h - address of a stream socket: IPv4 or IPv6 with a port, or an abstract Unix socket of this host.
 *
 * A Unix address is a random number, and a place: a boot and a network namespace (kl_hostinfo_netns_hash). Processes of
 * the same place reach it, without a network.
 *
 * Text:     1.2.3.4:port   [v6]:port   [v6%interface]:port   host:port (the first answer of the resolver, which may
 *           block on the network). Unix addresses are written as unix:@kolo-number, and not parsed.
 * Wire:     KL_ADDRESS_WIRE bytes, little-endian but for the address itself: u16 family (0 none, 1 Unix, 4, 6), u16
 *           port, 16 bytes of address (IPv4 in the first four; for Unix the number and the place), u32 scope, u32 zero.
 * Threads:  any.
 */
#ifndef KL_OS_ADDRESS_H
#define KL_OS_ADDRESS_H

#include "include/nccl.h"

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

struct kl_address_unix {
    sa_family_t family; /* AF_UNIX */
    unsigned char zero[2];
    unsigned char number[8], place[8]; /* little-endian; number 0: the system chooses one */
};

/** Zeroed: no address. */
union kl_address {
    struct sockaddr any;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
    struct kl_address_unix un;
};
_Static_assert(sizeof(union kl_address) == 28, "the largest of them");

#define KL_ADDRESS_WIRE 28
#define KL_ADDRESS_TEXT 80 /* [v6%interface]:port and a zero */

/** Unparsable text, unknown host or interface, port over 65535: ncclInvalidArgument, with the text in the sentence. */
ncclResult_t kl_address_parse(const char *text, union kl_address *address);

/** "none" for no address. Returns `text`. */
const char *kl_address_format(const union kl_address *address, char text[KL_ADDRESS_TEXT]);

/** A Unix address of this place, without a number yet. */
union kl_address kl_address_new_unix(uint64_t place);

/** Bytes of the address inside; 0 for none. */
socklen_t kl_address_bytes(const union kl_address *address);

/** For bind and connect. Returns the length; 0 for none. */
socklen_t kl_address_sockaddr(const union kl_address *address, struct sockaddr_storage *system);

int kl_address_port(const union kl_address *address); /* 0 for a Unix address */
void kl_address_set_port(union kl_address *address, int port);

/** The port, or the number of a Unix address: is it set? Unset it. Do two addresses have the same one? */
bool kl_address_is_bound(const union kl_address *address);
void kl_address_unbind(union kl_address *address);
bool kl_address_same_port(const union kl_address *a, const union kl_address *b);

bool kl_address_is_none(const union kl_address *address);
bool kl_address_is_unix(const union kl_address *address);
bool kl_address_is_unix_of(const union kl_address *address, uint64_t place);
bool kl_address_is_loopback(const union kl_address *address);

/** An IPv6 address that is valid on one link only (fe80::/10). */
bool kl_address_is_link_local(const union kl_address *address);

/** Are the addresses equal, ports aside? False if either is none. */
bool kl_address_same_host(const union kl_address *a, const union kl_address *b);

/** Same family and the same bits under `mask`; link-local addresses need the same scope, too. Ports do not matter. */
bool kl_address_same_subnet(const union kl_address *a, const union kl_address *b, const union kl_address *mask);

void kl_address_pack(const union kl_address *address, unsigned char wire[KL_ADDRESS_WIRE]);

/** Silent. False for an unknown family; `address` is then untouched. */
bool kl_address_unpack(const unsigned char wire[KL_ADDRESS_WIRE], union kl_address *address);

#endif
