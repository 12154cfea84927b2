/* SPDX-License-Identifier: Apache-2.0 */
/** casts.h - which hosts of many to draw: the first, the last, or where a channel begins and ends. */
#ifndef KOLO_TOOL_PICTURE_CASTS_H
#define KOLO_TOOL_PICTURE_CASTS_H

#include "tools/kolo/picture/scene.h"

/** As many as `s` draws. */
struct kl_cast kl_cast_first(const struct kl_scene *s);
struct kl_cast kl_cast_last(const struct kl_scene *s);

/**
 * Of a ring: its first hosts, and its last, from which it returns. Of a tree: the host of the root, then those below it, level by level.
 * Other graphs are the same in all hosts: the first. ncclSystemError when memory is short.
 */
ncclResult_t kl_cast_touched(const struct kl_scene *s, int graph, int channel, struct kl_cast *cast);

bool kl_cast_same(const struct kl_cast *a, const struct kl_cast *b);

/** Do two scenes differ in texts and ways only, and not in where their boxes and wires are? */
bool kl_scene_same_shape(const struct kl_scene *a, const struct kl_scene *b);

#endif
