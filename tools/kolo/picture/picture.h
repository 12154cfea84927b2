/* SPDX-License-Identifier: Apache-2.0 */
/**
 * picture.h - a plan as a picture: the machine as nested boxes, links as wide as their bandwidth and coloured by how much
 * of it a graph's channels reserve, and the way of one channel.
 *
 * Both documents stand alone: no scripts, fonts or images from elsewhere.
 *
 * Errors: ncclInvalidUsage for a graph or channel that there is none of; ncclSystemError when memory is short or the
 *         document cannot be written.
 */
#ifndef KOLO_TOOL_PICTURE_H
#define KOLO_TOOL_PICTURE_H

#include "answer/plan_json.h"

#include <stdio.h>

/** The first of the view's graphs with the way of one of its channels, as SVG. */
ncclResult_t kl_picture_svg(const struct kl_plan_view *view, int channel, FILE *to);

/** All of the view's graphs and channels, to choose from, as HTML; `channel` is shown first. */
ncclResult_t kl_picture_html(const struct kl_plan_view *view, int channel, FILE *to);

#endif
