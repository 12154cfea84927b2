/* SPDX-License-Identifier: Apache-2.0 */
/**
 * recorded.h - a file of calls of a net plugin, as examples/plugins/net/record.c writes it: one process's calls, in their order.
 *
 * Errors: kl_recorded_read returns false, and a sentence with file and line.
 */
#ifndef KOLO_TOOL_PLUGIN_RECORDED_H
#define KOLO_TOOL_PLUGIN_RECORDED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum kl_recorded_name {
    KL_REC_INIT,
    KL_REC_DEVICES,
    KL_REC_PROPERTIES,
    KL_REC_LISTEN,
    KL_REC_CONNECT,
    KL_REC_ACCEPT,
    KL_REC_REG_MR,
    KL_REC_DEREG_MR,
    KL_REC_ISEND,
    KL_REC_IRECV,
    KL_REC_IFLUSH,
    KL_REC_TEST,
    KL_REC_CLOSE_SEND,
    KL_REC_CLOSE_RECV,
    KL_REC_CLOSE_LISTEN,
    KL_REC_MAKE_VDEVICE,
    KL_REC_FINALIZE,
    KL_REC_NAMES
};
extern const char *const kl_recorded_names[KL_REC_NAMES];

struct kl_recorded_call {
    enum kl_recorded_name name;
    long thread;
    uint64_t begun, ended; /* ns; ended 0: it has not returned */
    uint64_t object,
        extra; /* the listener, communicator or request it was called with; a registration, or the hash of a handle; of makeVDevice a byte
                  for each member */
    uint64_t bytes;          /* of data; of listen and connect: the device; of makeVDevice: the number of members */
    int result, value;       /* value: not NULL, or done; of makeVDevice: the device */
    uint64_t out, out_extra; /* the object that it made; of listen: the hash of the handle */
};

struct kl_recorded {
    const char *file;
    struct kl_recorded_call *call;
    size_t n;
};

bool kl_recorded_read(const char *file, struct kl_recorded *recorded, char *why, size_t why_size);
void kl_recorded_free(struct kl_recorded *recorded);

#endif
