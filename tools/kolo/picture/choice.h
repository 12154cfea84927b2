/* SPDX-License-Identifier: Apache-2.0 */
/** choice.h - which graph and channel a picture begins with. */
#ifndef KOLO_TOOL_PICTURE_CHOICE_H
#define KOLO_TOOL_PICTURE_CHOICE_H

#include "base/error.h"
#include "tools/kolo/picture/scene.h"

/** The first graph of a scene and a channel of it. ncclInvalidUsage when there is none. */
ncclResult_t kl_picture_choose(const struct kl_scene *s, int channel, const struct kl_picture_graph **graph,
                               const struct kl_channel_path **way);

#endif
