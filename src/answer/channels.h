/* SPDX-License-Identifier: Apache-2.0 */
/** channels.h - sets of channels, bit c standing for channel c, as people and programs read them. */
#ifndef KL_ANSWER_CHANNELS_H
#define KL_ANSWER_CHANNELS_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

enum { KL_CHANNELS_TEXT = 256 }; /* enough for any set */

/** "0-3, 8"; "-" for none. Returns `text`. */
const char *kl_channels_text(uint64_t channels, char *text, size_t size);

/** [0, 1, 2, 3, 8] */
json_t *kl_channels_json(uint64_t channels);

#endif
