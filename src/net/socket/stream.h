/* SPDX-License-Identifier: Apache-2.0 */
/**
 * stream.h - frames over one socket, without blocking: the sending and the receiving half.
 *
 * A small frame is one system call at each end: head and data go in one sendmsg, behind other small ones if there are
 * any, and are read into a stage of 4 KiB that holds several. Larger frames are read directly to their destination,
 * except for bytes that came along with a head. Encrypted data is sealed record by record into a box, and opened in
 * place.
 *
 * MSG_ZEROCOPY is not used: over the loopback the kernel copies nevertheless and reports that, so that sending and
 * receiving 64 KiB took 25 instead of 17 us of CPU time, 1 MiB 272 instead of 161, and 16 MiB 7.6 ms instead of 3.3.
 *
 * Threads:  one at a time per half.
 */
#ifndef KL_NET_SOCKET_STREAM_H
#define KL_NET_SOCKET_STREAM_H

#include "include/nccl.h"
#include "net/socket/head.h"

enum {
    KL_STREAM_STAGE = 4096,
    KL_STREAM_SMALL =
        216, /* data of at most this many bytes is copied behind its head: cheaper than a second iovec entry */
    KL_STREAM_BATCH = 1024, /* bytes of small frames that are sent together */
    KL_STREAM_BOX = KL_STREAM_BATCH + KL_CIPHER_SEALED_HEAD + KL_CIPHER_RECORD + KL_CIPHER_TAG,
};

enum kl_flow {
    KL_FLOW_DONE,
    KL_FLOW_BLOCKED, /* the socket takes or has no more now */
    KL_FLOW_LOST,    /* errno says why; 0: the other side closed the connection */
    KL_FLOW_FORGED,  /* not sealed by the other end, or out of sequence */
};

/** Zeroed but for `fd`, then kl_out_init. */
struct kl_out {
    int fd;
    struct kl_cipher_state cipher_state;
    uint64_t sequence; /* of the next frame */
    bool busy;         /* frames have begun */
    const unsigned char *data;
    size_t left;        /* bytes of data that are neither sent nor in the box */
    unsigned char *box; /* sealed bytes to send before the data; encrypted data passes through it completely */
    size_t box_at, box_bytes;
    unsigned char plain[KL_STREAM_BATCH + KL_CIPHER_SEALED_HEAD + KL_STREAM_SMALL]; /* the box of plain frames */
};

struct kl_in {
    int fd;
    struct kl_cipher_state cipher_state;
    uint64_t sequence;
    size_t have; /* bytes of the current record, or of plain data, with its tag */
    size_t done; /* bytes of the current data that are opened */
    unsigned char tag[KL_CIPHER_TAG];
    size_t stage_at, stage_end;
    unsigned char stage[KL_STREAM_STAGE];
};

/** ncclSystemError: no memory for the box. The cipher state is set up, `fd` a connected socket. */
ncclResult_t kl_out_init(struct kl_out *out);
void kl_out_fini(struct kl_out *out);

/** Move the half to another connection; the destination's old contents are lost. */
void kl_out_take(struct kl_out *out, struct kl_out *from);
void kl_in_take(struct kl_in *in, struct kl_in *from);

/** Is there room for a frame behind those that have begun? */
bool kl_out_has_room(const struct kl_out *out);

/**
 * Begin a frame; there is room. `data`, of which `bytes` are sent, must stay valid until all frames that have begun are
 * done.
 */
void kl_out_begin(struct kl_out *out, enum kl_head_kind kind, uint64_t bytes_told, uint32_t tag, const void *data,
                  size_t bytes);

/** Send as much as the socket takes. */
enum kl_flow kl_out_move(struct kl_out *out);

/** Read the next head. */
enum kl_flow kl_in_head(struct kl_in *in, struct kl_head *head);

/** Read the data behind it: call again with the same arguments until done. */
enum kl_flow kl_in_data(struct kl_in *in, void *data, size_t bytes);

#endif
