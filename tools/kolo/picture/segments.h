/* SPDX-License-Identifier: Apache-2.0 */
/**
 * segments.h - how a segment of a channel runs over the wires of a picture: SVG path data, kept right of each wire as
 * on a road, so that both directions are seen.
 */
#ifndef KOLO_TOOL_PICTURE_SEGMENTS_H
#define KOLO_TOOL_PICTURE_SEGMENTS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct kl_path;
struct kl_scene;

struct kl_drawn_segment_writer {
    const struct kl_scene *s;
    FILE *to;
    uint8_t *uses; /* by link of the machine: marked */
    bool begun;
    float x, y; /* where it is */
    int box;    /* entered last; -1: none */
};

/** Begin a segment; its paths follow, then kl_drawn_segment_end. */
void kl_drawn_segment_begin(struct kl_drawn_segment_writer *w);

/** Follow a path of a domain's topology in one copy of the machine. */
void kl_drawn_segment_path(struct kl_drawn_segment_writer *w, int copy, int domain, const struct kl_path *path);

/** Come from hosts that are not drawn, over the network; go to an undrawn box, beyond the bar that was reached. */
void kl_drawn_segment_from_undrawn(struct kl_drawn_segment_writer *w);
void kl_drawn_segment_to_undrawn(struct kl_drawn_segment_writer *w);

void kl_drawn_segment_end(struct kl_drawn_segment_writer *w);

#endif
