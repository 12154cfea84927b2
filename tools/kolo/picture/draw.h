/* SPDX-License-Identifier: Apache-2.0 */
/**
 * draw.h - a scene as SVG elements, without the document around them.
 *
 * Colours and fonts are in picture/drawing.css: elements have classes, and wires a class s0 to s4 for their load.
 * Boxes have the ids b0, b1, ..., wires w0, w1, ..., in the order of the scene; way paths stand in #way.
 */
#ifndef KOLO_TOOL_PICTURE_DRAW_H
#define KOLO_TOOL_PICTURE_DRAW_H

#include "tools/kolo/picture/scene.h"

#include <stdio.h>

/**
 * All boxes and wires, without captions. `g`: the loads of this graph colour the wires; `way`: the channel to draw, NULL for none;
 * `live`: for a page with a script: elements can have the focus, and name themselves instead of having tooltips.
 */
void kl_draw_scene(const struct kl_scene *s, const struct kl_picture_graph *g, const struct kl_way *way, bool live,
                   FILE *to);

/**
 * The legend of colours, widths of this machine's links, and arrows: three parts, each KL_LEGEND_H high, at (x, y).
 * `way` and `arrows`: about the drawn channel.
 */
enum { KL_LEGEND_H = 34, KL_LEGEND_LOADS_W = 440, KL_LEGEND_WAY_W = 470 };
void kl_draw_legend_loads(float x, float y, FILE *to);
float kl_legend_widths_width(const struct kl_scene *s);
void kl_draw_legend_widths(const struct kl_scene *s, float x, float y, FILE *to);
void kl_draw_legend_way(float x, float y, const char *way, const char *arrows, FILE *to);

/** The captions of the drawing's rows, in its first KL_PAGE_CAPTIONS pixels, which hold nothing else. */
void kl_draw_captions(const struct kl_scene *s, FILE *to);

#endif
