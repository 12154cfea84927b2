/* SPDX-License-Identifier: Apache-2.0 */
/**
 * address.h - where a TCP socket is: an IPv4 or IPv6 address and a port.
 *
 * Text:     1.2.3.4:port   [v6]:port   [v6%interface]:port   host:port (the first answer of the resolver, which may wait
 *           for the network).
 * Wire:     KL_ADDRESS_WIRE bytes, little-endian but for the address itself: u16 family (0 none, 4, 6), u16 port,
 *           16 bytes of address (IPv4 in the first four), u32 scope, u32 zero.
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

/** Zeroed: no address. */
union kl_address {
    struct sockaddr any;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
};
_Static_assert(sizeof(union kl_address) == 28, "the larger of the two");

#define KL_ADDRESS_WIRE 28
#define KL_ADDRESS_TEXT 80 /* [v6%interface]:port and a zero */

/** Unparsable text, unknown host or interface, port over 65535: ncclInvalidArgument, with the text in the sentence. */
ncclResult_t kl_address_parse(const char *text, union kl_address *address);

/** "none" for no address. Returns `text`. */
const char *kl_address_format(const union kl_address *address, char text[KL_ADDRESS_TEXT]);

/** Bytes of the sockaddr inside, for bind and connect; 0 for none. */
socklen_t kl_address_bytes(const union kl_address *address);

int kl_address_port(const union kl_address *address);
void kl_address_set_port(union kl_address *address, int port);

bool kl_address_is_none(const union kl_address *address);
bool kl_address_is_loopback(const union kl_address *address);

/** An IPv6 address that means something on one link only (fe80::/10). */
bool kl_address_is_link_local(const union kl_address *address);

/** The same address, whatever the ports? What is no address is that of no host. */
bool kl_address_same_host(const union kl_address *a, const union kl_address *b);

/** Same family and the same bits under `mask`; link-local addresses need the same scope, too. Ports do not matter. */
bool kl_address_same_subnet(const union kl_address *a, const union kl_address *b, const union kl_address *mask);

void kl_address_pack(const union kl_address *address, unsigned char wire[KL_ADDRESS_WIRE]);

/** Silent. False for an unknown family; `address` is then untouched. */
bool kl_address_unpack(const unsigned char wire[KL_ADDRESS_WIRE], union kl_address *address);

#endif
