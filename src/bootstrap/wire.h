/* SPDX-License-Identifier: Apache-2.0 */
/**
 * wire.h - records on the wire: little-endian fields, written and read through a bounds-checked cursor.
 *
 * An access beyond the end does not move the cursor and sets `bad`: check `bad` once, after a whole record was written
 * or read. Reading past the end yields zeros.
 */
#ifndef KL_BOOTSTRAP_WIRE_H
#define KL_BOOTSTRAP_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct kl_writer {
    unsigned char *at, *end;
    bool bad;
};

struct kl_reader {
    const unsigned char *at, *end;
    bool bad;
};

static inline struct kl_writer kl_writer_on(void *bytes, size_t n)
{
    return (struct kl_writer){.at = bytes, .end = (unsigned char *)bytes + n};
}

static inline struct kl_reader kl_reader_on(const void *bytes, size_t n)
{
    return (struct kl_reader){.at = bytes, .end = (const unsigned char *)bytes + n};
}

static inline void kl_put_bytes(struct kl_writer *w, const void *from, size_t n)
{
    if (w->bad || (size_t)(w->end - w->at) < n) {
        w->bad = true;
        return;
    }
    if (n) memcpy(w->at, from, n);
    w->at += n;
}

static inline void kl_get_bytes(struct kl_reader *r, void *to, size_t n)
{
    if (r->bad || (size_t)(r->end - r->at) < n) {
        r->bad = true;
        memset(to, 0, n);
        return;
    }
    if (n) memcpy(to, r->at, n);
    r->at += n;
}

static inline void kl_put_uint(struct kl_writer *w, uint64_t value, unsigned bytes)
{
    unsigned char b[8];

    for (unsigned i = 0; i < bytes; i++) b[i] = (unsigned char)(value >> (8 * i));
    kl_put_bytes(w, b, bytes);
}

static inline uint64_t kl_get_uint(struct kl_reader *r, unsigned bytes)
{
    unsigned char b[8];
    uint64_t value = 0;

    kl_get_bytes(r, b, bytes);
    for (unsigned i = 0; i < bytes; i++) value |= (uint64_t)b[i] << (8 * i);
    return value;
}

static inline void kl_put_u8(struct kl_writer *w, uint8_t v)
{
    kl_put_uint(w, v, 1);
}

static inline void kl_put_u16(struct kl_writer *w, uint16_t v)
{
    kl_put_uint(w, v, 2);
}

static inline void kl_put_u32(struct kl_writer *w, uint32_t v)
{
    kl_put_uint(w, v, 4);
}

static inline void kl_put_u64(struct kl_writer *w, uint64_t v)
{
    kl_put_uint(w, v, 8);
}

static inline uint8_t kl_get_u8(struct kl_reader *r)
{
    return (uint8_t)kl_get_uint(r, 1);
}

static inline uint16_t kl_get_u16(struct kl_reader *r)
{
    return (uint16_t)kl_get_uint(r, 2);
}

static inline uint32_t kl_get_u32(struct kl_reader *r)
{
    return (uint32_t)kl_get_uint(r, 4);
}

static inline uint64_t kl_get_u64(struct kl_reader *r)
{
    return kl_get_uint(r, 8);
}

#endif
