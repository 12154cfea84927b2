/* SPDX-License-Identifier: Apache-2.0 */
/**
 * page.h - sizes of a picture: measure.c computes them, layout.c uses them.
 */
#ifndef KOLO_TOOL_PICTURE_PAGE_H
#define KOLO_TOOL_PICTURE_PAGE_H

#include "tools/kolo/picture/scene.h"

/** Sizes on the page, in pixels. */
enum {
    KL_PAGE_COLUMN = 72, /* of a tile with the space beside it */
    KL_PAGE_TILE_W = 64,
    KL_PAGE_TILE_H = 38,
    KL_PAGE_SMALL_COLUMN = 64, /* of small tiles in two rows: the lower one stands a step to the right */
    KL_PAGE_SMALL_W = 44,
    KL_PAGE_SMALL_H = 22,
    KL_PAGE_SMALL_STEP = 15,
    KL_PAGE_SMALL_APART = 16,
    KL_PAGE_BAR_H = 34,
    KL_PAGE_GUTTER = 14,   /* left of everything in a switch: room for its link to the box around it */
    KL_PAGE_CPU_NAME = 76, /* more of it in a CPU with a bar that too many cables cross */
    KL_PAGE_INSET = 6,     /* of the contents of a frame */
    KL_PAGE_APART = 8,     /* frames of switches */
    KL_PAGE_CPUS_APART = 28,
    KL_PAGE_HEAD = 26,       /* title of a host */
    KL_PAGE_ABOVE_GPUS = 54, /* room for NVLinks to an NVSwitch */
    KL_PAGE_ABOVE_ARCS = 4,  /* of the highest arc, besides the title's room */
    KL_PAGE_BELOW_GPUS = 34, /* for PCI links */
    KL_PAGE_ABOVE_NICS = 26,
    KL_PAGE_BELOW_ROW = 22,
    KL_PAGE_LANE = 8, /* of links between CPUs that are not neighbours */
    KL_PAGE_HOSTS_APART = 20,
    KL_PAGE_TO_NETWORK = 50,
    KL_PAGE_NETWORK_H = 40,
    KL_PAGE_MARGIN = 16,
    KL_PAGE_CAPTIONS = 124, /* captions of the rows, left of the first host */
    KL_PAGE_LEAST_HOST = 190,
    KL_PAGE_ROW_WIDTH = 1720 /* hosts beyond it go into a second row, upside down */
};

/** Heights within a host: the same for all hosts. `bar` and `nic` by level. */
struct kl_rows {
    float nvs, gpu, bar[80], nic[80], height;
};

struct kl_page {
    struct kl_scene *s;
    struct kl_rows rows;
    float *width; /* by node: of its frame */
    float host_width;
    int copy, host;  /* being placed */
    float left, top; /* of that host */
    bool flip;       /* it is upside down */
};

/**
 * The child of `parent` (a node, or KL_IN_HOST) with this type that follows `after` (-1: the first), by rank and then by
 * index; -1 if there is none.
 */
int kl_page_child(const struct kl_scene *s, int parent, enum kl_node_type type, int after, int system);

/** GPUs of a system that are not drawn. */
int kl_page_hidden_gpus(const struct kl_scene *s, int system);

float kl_page_nics_height(const struct kl_scene *s);

/** Do switches in a node have NICs with cables down through its bar? */
bool kl_page_nics_deeper(const struct kl_scene *s, int node);

/** Left of the contents of a switch or CPU. */
float kl_page_gutter(const struct kl_scene *s, int node);

/** Widths of all frames of switches and CPUs; then of a host. */
void kl_page_measure(const struct kl_page *p);
float kl_page_host_width(const struct kl_page *p, int system);

/** Heights within hosts. */
void kl_page_rows(struct kl_page *p);

#endif
