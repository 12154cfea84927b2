/* SPDX-License-Identifier: Apache-2.0 */
/**
 * visible.h - the devices of a host that a process sees, and their order: CUDA_VISIBLE_DEVICES.
 *
 * A list, separated by commas, of ordinals and of UUIDs (GPU-..., may be abbreviated if unique); its order is the
 * process's numbering. The first entry that names no device, MIG devices among them, hides itself and all that follow;
 * a device named twice hides all.
 *
 * Threads: any.
 * Source:  CUDA's programming guide, environment variables.
 */
#ifndef KL_DEVICE_VISIBLE_H
#define KL_DEVICE_VISIBLE_H

#include <stdint.h>

/**
 * The 16 bytes of a device's UUID: a function of host and device. As text: GPU-xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx.
 */
void kl_uuid_of(uint64_t host, int device, unsigned char uuid[16]);

/** Write the visible ones of `count` devices of `host` to `list`, which has room for all; returns how many. `text` NULL: all. */
int kl_visible_devices(const char *text, int count, uint64_t host, int *list);

/** One more than the largest ordinal that the text names before another kind of entry; 0: none. */
int kl_visible_extent(const char *text);

#endif
