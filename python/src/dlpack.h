/* SPDX-License-Identifier: Apache-2.0 */
/** dlpack.h - the structures of DLPack 1.1 that a consumer on CPUs needs. Source: DLPack's specification. */
#ifndef KOLOCC_DLPACK_H
#define KOLOCC_DLPACK_H

#include <stdint.h>

enum { KC_DL_CPU = 1, KC_DL_READ_ONLY = 1 };
enum {
    KC_DL_INT,
    KC_DL_UINT,
    KC_DL_FLOAT,
    KC_DL_BFLOAT = 4,
    KC_DL_COMPLEX,
    KC_DL_BOOL,
    KC_DL_E4M3FN = 10,
    KC_DL_E5M2 = 12
};

struct kc_dl_tensor {
    void *data;
    int32_t device_type, device_id;
    int32_t ndim;
    uint8_t code, bits;
    uint16_t lanes;
    int64_t *shape, *strides; /* strides NULL: contiguous */
    uint64_t byte_offset;
};

struct kc_dl_managed { /* capsule "dltensor" */
    struct kc_dl_tensor tensor;
    void *context;
    void (*deleter)(struct kc_dl_managed *self);
};

struct kc_dl_versioned { /* capsule "dltensor_versioned" */
    uint32_t major, minor;
    void *context;
    void (*deleter)(struct kc_dl_versioned *self);
    uint64_t flags;
    struct kc_dl_tensor tensor;
};

#endif
