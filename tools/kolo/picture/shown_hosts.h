/* SPDX-License-Identifier: Apache-2.0 */
/** shown_hosts.h - which hosts of many to draw: the first, the last, or where a channel begins and ends. */
#ifndef KOLO_TOOL_PICTURE_SHOWN_HOSTS_H
#define KOLO_TOOL_PICTURE_SHOWN_HOSTS_H

#include "tools/kolo/picture/scene.h"

/** As many as `s` draws. */
struct kl_shown_hosts kl_shown_hosts_first(const struct kl_scene *s);
struct kl_shown_hosts kl_shown_hosts_last(const struct kl_scene *s);

/**
 * Of a ring: its first hosts, and its last, from which it returns. Of a tree: the host of the root, then those below it, level by level.
 * Other graphs are the same in all hosts: the first. ncclSystemError when memory is short.
 */
ncclResult_t kl_shown_hosts_used(const struct kl_scene *s, int graph, int channel, struct kl_shown_hosts *cast);

bool kl_shown_hosts_same(const struct kl_shown_hosts *a, const struct kl_shown_hosts *b);

/** Do two scenes differ in texts and ways only, and not in where their boxes and wires are? */
bool kl_scene_same_shape(const struct kl_scene *a, const struct kl_scene *b);

#endif
