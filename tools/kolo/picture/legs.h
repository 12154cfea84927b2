/* SPDX-License-Identifier: Apache-2.0 */
/**
 * legs.h - how a leg of a channel runs over the wires of a picture: SVG path data, kept right of each wire as
 * on a road, so that both directions are seen.
 */
#ifndef KOLO_TOOL_PICTURE_LEGS_H
#define KOLO_TOOL_PICTURE_LEGS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct kl_path;
struct kl_scene;

struct kl_leg_writer {
    const struct kl_scene *s;
    FILE *to;
    uint8_t *uses; /* by link of the machine: marked */
    bool begun;
    float x, y; /* where it is */
    int box;    /* entered last; -1: none */
};

/** Begin a leg; its paths follow, then kl_leg_end. */
void kl_leg_begin(struct kl_leg_writer *w);

/** Follow a path of a domain's topology in one copy of the machine. */
void kl_leg_path(struct kl_leg_writer *w, int copy, int domain, const struct kl_path *path);

/** Come from hosts that are not drawn, over the network; go to an undrawn box, beyond the bar that was reached. */
void kl_leg_from_afar(struct kl_leg_writer *w);
void kl_leg_to_afar(struct kl_leg_writer *w);

void kl_leg_end(struct kl_leg_writer *w);

#endif
