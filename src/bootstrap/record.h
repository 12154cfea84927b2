/* SPDX-License-Identifier: Apache-2.0 */
/**
 * record.h - encode and decode the bodies of the bootstrap's own frames. Pure and silent.
 *
 * Decoders return false for a record that is too short, too long, or holds values out of range; the struct is then
 * undefined. Texts from the wire come back terminated and printable.
 */
#ifndef KL_BOOTSTRAP_RECORD_H
#define KL_BOOTSTRAP_RECORD_H

#include "base/error.h"
#include "bootstrap/keys.h"
#include "os/address.h"

#define KL_HOST_TEXT    64 /* bytes of a host name, its zero included */
#define KL_ADDRESSES    3  /* most addresses of one listener */
#define KL_SESSION      32 /* bytes */
#define KL_MAX_RANKS    (1 << 24)
#define KL_MAX_PARTNERS 64

/** Address record of a rank: identity and listening addresses. */
struct kl_address_record {
    int rank;
    uint64_t pid;
    char host[KL_HOST_TEXT];
    int naddresses;
    union kl_address address[KL_ADDRESSES];
};
#define KL_ADDRESS_RECORD_WIRE (4 + 8 + KL_HOST_TEXT + KL_ADDRESSES * KL_ADDRESS_WIRE)

/** Announcement, rank to root. */
struct kl_announce {
    int nranks;
    uint32_t library;    /* version of the library */
    uint64_t timeout_ms; /* how long the rank waits for the others */
    struct kl_address_record record;
};
#define KL_ANNOUNCE_WIRE (4 + 4 + 8 + KL_ADDRESS_RECORD_WIRE)

/** Process number of a rank (processes.h), its place in it, and the number of members. */
struct kl_placement {
    int process, nprocesses;
    int place, nmembers; /* among the ranks of the process; 0: it is their leader */
};

/**
 * Introduction, root to rank, when all have announced: its partners at distances 1, 2, 4, ... in both directions; and
 * for leaders, the leaders at the same distances in processes.
 */
struct kl_introduction {
    unsigned char session[KL_SESSION]; /* random; with the id's secret, it keys the connections between ranks */
    struct kl_placement placement;
    int npartners, nleaders;
    struct kl_address_record partner[2 * KL_MAX_PARTNERS]; /* partners, then leaders */
};
#define KL_INTRODUCTION_WIRE(nrecords) (KL_SESSION + 4 * 4 + 2 * 4 + (size_t)(nrecords)*KL_ADDRESS_RECORD_WIRE)

/** Failure notice. */
struct kl_notice {
    int culprit; /* a rank, or -1: none in particular */
    ncclResult_t code;
    char text[KL_ERROR_TEXT];
};
#define KL_NOTICE_WIRE_MAX (4 + 4 + KL_ERROR_TEXT)

void kl_address_record_encode(const struct kl_address_record *record, unsigned char wire[KL_ADDRESS_RECORD_WIRE]);
bool kl_address_record_decode(const unsigned char wire[KL_ADDRESS_RECORD_WIRE], struct kl_address_record *record);

void kl_announce_encode(const struct kl_announce *announce, unsigned char wire[KL_ANNOUNCE_WIRE]);
bool kl_announce_decode(const void *wire, size_t bytes, struct kl_announce *announce);

/** `wire` has room for KL_INTRODUCTION_WIRE(npartners + nleaders) bytes. */
void kl_introduction_encode(const struct kl_introduction *introduction, unsigned char *wire);
bool kl_introduction_decode(const void *wire, size_t bytes, struct kl_introduction *introduction);

/** Returns the encoded length. */
size_t kl_notice_encode(const struct kl_notice *notice, unsigned char wire[KL_NOTICE_WIRE_MAX]);
bool kl_notice_decode(const void *wire, size_t bytes, struct kl_notice *notice);

#endif
