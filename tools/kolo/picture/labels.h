/* SPDX-License-Identifier: Apache-2.0 */
/** labels.h - where the name of a bar can stand, so that nothing crosses it. */
#ifndef KOLO_TOOL_PICTURE_LABELS_H
#define KOLO_TOOL_PICTURE_LABELS_H

#include "tools/kolo/picture/scene.h"

struct kl_span {
    float from, to;
};

/**
 * In the half of the bar that is away from its GPUs: the first room between the wires there, with the ways beside them, that
 * is `width` wide or more; if there is none, the widest.
 */
struct kl_span kl_label_room(const struct kl_scene *s, int box, float width);

#endif
