/* SPDX-License-Identifier: Apache-2.0 */
#include "net/socket/stream.h"

#include "base/error.h"
#include "os/fault_inject.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>

enum { MOST = 4 << 20 }; /* bytes per call of kl_out_move: other connections wait meanwhile */

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

static enum kl_flow flow_of_errno(void)
{
    return errno == EAGAIN || errno == EWOULDBLOCK ? KL_FLOW_BLOCKED : KL_FLOW_LOST;
}

/* ---- sending ---- */

ncclResult_t kl_out_init(struct kl_out *out)
{
    out->box = out->plain;
    if (!out->cipher_state.cipher) return ncclSuccess;
    out->box = malloc(KL_STREAM_BOX);
    return out->box ? ncclSuccess : KL_NOMEM("a connection's box");
}

void kl_out_fini(struct kl_out *out)
{
    if (out->box != out->plain) free(out->box); /* NULL: moved by kl_out_take, or never allocated */
    out->box = NULL;
}

void kl_out_take(struct kl_out *out, struct kl_out *from)
{
    *out = *from;
    if (from->box == from->plain) out->box = out->plain;
    sodium_memzero(from, sizeof *from);
}

void kl_in_take(struct kl_in *in, struct kl_in *from)
{
    *in = *from;
    sodium_memzero(from, sizeof *from);
}

/* Fill the box with data to send along with the head: an encrypted record, or small data in plain. */
static void fill_box(struct kl_out *out)
{
    size_t bytes = least(out->left, KL_CIPHER_RECORD);

    if (!bytes || (!out->cipher_state.cipher && bytes > KL_STREAM_SMALL)) return;
    if (out->cipher_state.cipher)
        kl_cipher_seal_record(&out->cipher_state, out->data, bytes, out->box + out->box_bytes);
    else
        memcpy(out->box + out->box_bytes, out->data, bytes);
    out->box_bytes += bytes + (out->cipher_state.cipher ? KL_CIPHER_TAG : 0);
    out->data += bytes;
    out->left -= bytes;
}

bool kl_out_has_room(const struct kl_out *out)
{
    return !out->busy || (!out->left && out->box_bytes <= KL_STREAM_BATCH);
}

void kl_out_begin(struct kl_out *out, enum kl_head_kind kind, uint64_t bytes_told, uint32_t tag, const void *data,
                  size_t bytes)
{
    const struct kl_head head = {.bytes = bytes_told, .tag = tag, .kind = kind, .sequence = out->sequence++};
    unsigned char plain[KL_CIPHER_PLAIN_HEAD];

    kl_head_encode(&head, plain);
    if (!out->busy) out->box_at = out->box_bytes = 0;
    kl_cipher_seal_head(&out->cipher_state, plain, out->box + out->box_bytes);
    out->box_bytes += KL_CIPHER_SEALED_HEAD;
    out->data = data;
    out->left = bytes;
    out->busy = true;
    fill_box(out);
}

/* `n` bytes have been sent: first those of the box, then data. */
static void sent(struct kl_out *out, size_t n)
{
    size_t boxed = least(n, out->box_bytes - out->box_at);

    out->box_at += boxed;
    if (n == boxed) return;
    out->data += n - boxed;
    out->left -= n - boxed;
}

static ssize_t send_some(const struct kl_out *out)
{
    struct iovec part[2] = {{.iov_base = out->box + out->box_at, .iov_len = out->box_bytes - out->box_at},
                            {.iov_base = (void *)(uintptr_t)out->data, .iov_len = least(out->left, MOST)}};
    struct msghdr message = {.msg_iov = part, .msg_iovlen = 2};

    if (out->cipher_state.cipher || !out->left)
        return kl_inject_send(out->fd, part[0].iov_base, part[0].iov_len, MSG_NOSIGNAL | MSG_DONTWAIT);
    return kl_inject_sendmsg(out->fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
}

enum kl_flow kl_out_move(struct kl_out *out)
{
    while (out->busy) {
        ssize_t n = send_some(out);

        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return flow_of_errno();
        sent(out, (size_t)n);
        if (out->box_at < out->box_bytes) continue;
        out->box_at = out->box_bytes = 0;
        if (out->cipher_state.cipher) fill_box(out);
        out->busy = out->box_bytes || out->left;
    }
    return KL_FLOW_DONE;
}

/* ---- receiving ---- */

/* Read into a list of buffers; the stage, if it is one of them, is empty. BLOCKED: no data. */
static enum kl_flow read_more(struct kl_in *in, struct iovec *place, int places, size_t *got)
{
    struct msghdr message = {.msg_iov = place, .msg_iovlen = (size_t)places};
    ssize_t n;

    do
        n = places > 1 ? kl_inject_recvmsg(in->fd, &message, MSG_DONTWAIT)
                       : kl_inject_recv(in->fd, place->iov_base, place->iov_len, MSG_DONTWAIT);
    while (n < 0 && errno == EINTR);
    if (n < 0) return flow_of_errno();
    errno = 0;
    *got = (size_t)n;
    return n ? KL_FLOW_DONE : KL_FLOW_LOST;
}

/* Fill the stage with at least a head. */
static enum kl_flow fill_stage(struct kl_in *in)
{
    while (in->stage_end - in->stage_at < KL_CIPHER_SEALED_HEAD) {
        size_t got;

        memmove(in->stage, in->stage + in->stage_at, in->stage_end - in->stage_at);
        in->stage_end -= in->stage_at;
        in->stage_at = 0;
        struct iovec place = {.iov_base = in->stage + in->stage_end, .iov_len = KL_STREAM_STAGE - in->stage_end};
        enum kl_flow flow = read_more(in, &place, 1, &got);
        if (flow) return flow;
        in->stage_end += got;
    }
    return KL_FLOW_DONE;
}

enum kl_flow kl_in_head(struct kl_in *in, struct kl_head *head)
{
    unsigned char plain[KL_CIPHER_PLAIN_HEAD];
    enum kl_flow flow = fill_stage(in);

    if (flow) return flow;
    if (!kl_cipher_open_head(&in->cipher_state, in->stage + in->stage_at, plain)) return KL_FLOW_FORGED;
    if (!kl_head_decode(plain, head) || head->sequence != in->sequence) return KL_FLOW_FORGED;
    in->sequence++;
    in->stage_at += KL_CIPHER_SEALED_HEAD;
    in->have = in->done = 0;
    return KL_FLOW_DONE;
}

static size_t take_staged(struct kl_in *in, void *to, size_t bytes)
{
    size_t n = least(bytes, in->stage_end - in->stage_at);

    if (n) memcpy(to, in->stage + in->stage_at, n);
    in->stage_at += n;
    return n;
}

/* The two buffers of a record: data, and its tag behind it. */
static void places_of(struct kl_in *in, unsigned char *data, size_t bytes, size_t tag, struct iovec place[2])
{
    size_t of_data = least(in->have, bytes), of_tag = in->have - of_data;

    place[0] = (struct iovec){.iov_base = data + of_data, .iov_len = bytes - of_data};
    place[1] = (struct iovec){.iov_base = in->tag + of_tag, .iov_len = tag - of_tag};
}

/* Read `bytes` to `data` and, if encrypted, a tag. `last`: a head follows on the wire. */
static enum kl_flow read_record(struct kl_in *in, unsigned char *data, size_t bytes, bool last)
{
    size_t tag = in->cipher_state.cipher ? KL_CIPHER_TAG : 0;
    struct iovec place[3];

    places_of(in, data, bytes, tag, place);
    in->have += take_staged(in, place[0].iov_base, place[0].iov_len);
    places_of(in, data, bytes, tag, place);
    if (!place[0].iov_len) in->have += take_staged(in, place[1].iov_base, place[1].iov_len);
    while (in->have < bytes + tag) {
        size_t got = 0, missing = bytes + tag - in->have;

        places_of(in, data, bytes, tag, place);
        place[2] = (struct iovec){.iov_base = in->stage, .iov_len = KL_STREAM_STAGE};
        enum kl_flow flow = read_more(in, place, last ? 3 : 2, &got);
        if (flow) return flow;
        in->have += least(got, missing);
        in->stage_at = 0;
        in->stage_end = got - least(got, missing);
        if (got < missing && got < KL_CIPHER_RECORD) return KL_FLOW_BLOCKED; /* the rest has not arrived yet */
    }
    return KL_FLOW_DONE;
}

static enum kl_flow read_encrypted(struct kl_in *in, unsigned char *data, size_t bytes)
{
    while (in->done < bytes) {
        size_t record = least(bytes - in->done, KL_CIPHER_RECORD);
        enum kl_flow flow = read_record(in, data + in->done, record, in->done + record == bytes);

        if (flow) return flow;
        if (!kl_cipher_open_record(&in->cipher_state, data + in->done, record, in->tag)) return KL_FLOW_FORGED;
        in->done += record;
        in->have = 0;
    }
    return KL_FLOW_DONE;
}

enum kl_flow kl_in_data(struct kl_in *in, void *data, size_t bytes)
{
    if (!bytes) return KL_FLOW_DONE;
    return in->cipher_state.cipher ? read_encrypted(in, data, bytes) : read_record(in, data, bytes, true);
}
