/* SPDX-License-Identifier: Apache-2.0 */
/**
 * scene.h - a cluster as boxes and wires with places on a page; for the files of the picture only.
 *
 *     tree.c     which node stands in which: GPU and NIC in switch in CPU in host
 *     measure.c  how wide and how high they are
 *     layout.c   where the boxes stand
 *     wires.c    where the links run
 *     load.c     load of each graph's channels on each link
 *     segments.c          how one segment of a channel runs over the wires
 *     channel_paths.c     the segments of each channel, and in which order it visits the GPUs
 *     busy.c     which link is busy when
 *     words.c    texts about the cluster, its graphs and its links
 *     names.c    texts about boxes
 *     labels.c   where names of bars have room
 *     shown_hosts.c    which hosts of many are drawn
 *     draw.c     SVG of boxes, wires and ways
 *     times.c    SVG of which link is busy when
 *     captions.c, legend.c   SVG of captions and legends
 *     text.c     untrusted texts in XML and HTML
 *     svg.c, html.c    the two documents
 *     views.c, views_json.c    the views of the HTML document's script
 *
 * Units: pixels, y down. Deterministic: everything follows from the order of nodes and links.
 */
#ifndef KOLO_TOOL_PICTURE_SCENE_H
#define KOLO_TOOL_PICTURE_SCENE_H

#include "graph/graph.h"
#include "plan/timeline.h"
#include "answer/plan_json.h"
#include "topo/paths.h"

enum kl_box_kind {
    KL_BOX_HOST,
    KL_BOX_NVS,
    KL_BOX_CPU,
    KL_BOX_PCI,
    KL_BOX_GPU,
    KL_BOX_NIC,
    KL_BOX_NETWORK,
    KL_BOX_MORE /* stands for undrawn boxes */
};

enum {
    KL_PICTURE_HOSTS = 4, /* drawn at most */
    KL_PICTURE_GPUS = 20, /* of a host with more, only KL_PICTURE_FEW are drawn */
    KL_PICTURE_FEW = 16,  /* more NICs in a host are small */
    KL_PICTURE_NICS = 64  /* drawn at most */
};

enum { KL_NOT_DRAWN = -2, KL_IN_HOST = -1 }; /* for kl_scene.parent */

struct kl_rect {
    float x, y, w, h;
};

struct kl_box {
    int kind;
    int node;             /* of the machine; -1 for hosts, the network and KL_BOX_MORE */
    int copy;             /* of the machine */
    int host;             /* its number in the cluster; -1 for boxes outside of hosts */
    bool flip;            /* of a host that is drawn upside down: its GPUs are below */
    bool lower;           /* of the two rows of small NICs */
    int count;            /* MORE: of how many GPUs, or hosts when host is -1 */
    struct kl_rect bar;   /* the tile or bar */
    struct kl_rect frame; /* around the contents; no width: none */
};

/** A link, with up to four corners, or an arc. */
struct kl_wire {
    int a, b; /* boxes */
    int copy;
    int link[2]; /* links of the machine: from a to b, and back; -1 where there is none */
    int npoints;
    float x[4], y[4];
    float apex; /* of an arc between two points: how far it rises (negative: falls); 0: straight */
};

/** The path of a channel, and the number of each GPU in its order. */
struct kl_channel_path {
    char *path;        /* SVG path data, a line for each leg */
    int32_t *number;   /* by box; -1 for none */
    uint8_t *uses;     /* by link of the machine */
    uint64_t channels; /* bits of the channels with this path */
};

struct kl_picture_graph {
    int id;                       /* enum kl_graph_id */
    const struct kl_graph *graph; /* of the GPUs with rank 0 */
    double *used;                 /* GB/s, by link of the machine */
    struct kl_channel_path *way;
    int nchannel_paths;
    struct kl_timeline *times; /* NULL: there is none */
};

/**
 *     +- host 0 --------------------------------+
 *     | [ NVSwitch                            ] |   bars: many links meet there
 *     |    |      |            |      |         |
 *     | +---------------+ +-------------------+ |
 *     | | GPU/0  GPU/1  | |  GPU/2  GPU/3     | |   tiles
 *     | |  |______|___  | |   |______|____    | |
 *     | | [PCI switch ] | |  [PCI switch ]    | |
 *     | | |  NET/0      | |  |   NET/1        | |
 *     | | [ CPU       ]-----[ CPU           ] | |
 *     +------|-----------------------|----------+
 *     [ network                                 ]
 *
 * The machine is the whole one, before trimming, so that unused parts are visible as well. Hosts that
 * the network joins are alike: a *copy* of the machine is drawn for each. Hosts that share an NVLink domain are parts of
 * one machine, which is drawn once.
 */
struct kl_scene {
    const struct kl_plan_view *view;
    struct kl_topo *topo; /* the whole machine */
    struct kl_xml *document;
    int **link_of;               /* by domain of the plan and link of its topology: link of the machine; -1 */
    int systems;                 /* hosts in the machine */
    int hosts;                   /* in the cluster */
    int copies;                  /* of the machine, drawn */
    int drawn;                   /* hosts */
    int shown[KL_PICTURE_HOSTS]; /* their numbers, ascending */
    bool network;                /* joins the hosts */
    bool small_nics;             /* so many that they stand in two rows */

    /* by node of the machine */
    int *parent; /* the node it stands in, KL_IN_HOST or KL_NOT_DRAWN */
    int *level;  /* of switches: 1 for those with GPUs and NICs only, ... */
    int *rank;   /* the lowest in it, INT_MAX without a GPU: the order of boxes */
    int levels;  /* of CPUs: one more than of any switch */

    struct kl_box *box;
    int nboxes, network_box;
    int *box_of; /* by copy and node: box; -1 */
    struct kl_wire *wire;
    int nwires;
    int *wire_of; /* by copy and link: wire; -1 */
    float width, height;

    struct kl_picture_graph graph[KL_GRAPHS];
    int ngraphs;
};

/** Hosts to draw, ascending. */
struct kl_shown_hosts {
    int n, host[KL_PICTURE_HOSTS];
};

/**
 * Everything, ready to be drawn: with the first hosts, or with the hosts of `cast`. `cast` must have as many hosts as a scene
 * with the first ones draws; its scene has no timelines. ncclSystemError when memory is short.
 */
ncclResult_t kl_scene_create(const struct kl_plan_view *view, const struct kl_shown_hosts *cast,
                             struct kl_scene **scene);
void kl_scene_free(struct kl_scene *s);

/* The steps of it, in this order. */
ncclResult_t kl_scene_tree(struct kl_scene *s);
ncclResult_t kl_scene_layout(struct kl_scene *s);
ncclResult_t kl_scene_wires(struct kl_scene *s);
ncclResult_t kl_scene_load(struct kl_scene *s);
ncclResult_t kl_scene_channel_paths(struct kl_scene *s);
ncclResult_t kl_scene_times(struct kl_scene *s);

static inline int kl_scene_box(const struct kl_scene *s, int copy, int node)
{
    return s->box_of[(size_t)copy * (size_t)s->topo->nnodes + (size_t)node];
}

static inline int kl_scene_wire(const struct kl_scene *s, int copy, int link)
{
    return s->wire_of[(size_t)copy * (size_t)s->topo->nlinks + (size_t)link];
}

/** The link that a wire stands for, in one direction: both have the same kind and, in all but odd files, bandwidth. */
static inline const struct kl_link *kl_scene_link(const struct kl_scene *s, const struct kl_wire *w)
{
    return &s->topo->link[w->link[0] >= 0 ? w->link[0] : w->link[1]];
}

/** Tiles stand for one thing, bars join many. */
static inline bool kl_is_tile(const struct kl_box *b)
{
    return b->kind == KL_BOX_GPU || b->kind == KL_BOX_NIC || b->kind == KL_BOX_MORE;
}

/** Which drawn copy of the machine a host is, or all hosts of an NVLink domain are; -1 if it is not drawn. */
static inline int kl_scene_copy(const struct kl_scene *s, int host)
{
    if (s->systems > 1) return host ? -1 : 0;
    for (int i = 0; i < s->copies; i++)
        if (s->shown[i] == host) return i;
    return -1;
}

/** The host of a drawn copy: the inverse of kl_scene_copy. */
static inline int kl_scene_host(const struct kl_scene *s, int copy)
{
    return s->systems > 1 ? copy : s->shown[copy];
}

/** Is a system of the machine among the drawn hosts? */
static inline bool kl_scene_shows(const struct kl_scene *s, int system)
{
    if (s->systems <= 1) return true;
    for (int i = 0; i < s->drawn; i++)
        if (s->shown[i] == system) return true;
    return false;
}

/** How high an arc rises between two GPUs, by the difference of their ranks. */
static inline float kl_scene_apex(int away)
{
    return 12 + 17 * (float)(away > 9 ? 9 : away);
}

/** Towards the GPUs, as seen from a bar: -1 up, 1 down. On that side of it ways run, on the other its name stands. */
static inline float kl_towards_gpus(const struct kl_box *bar)
{
    return (bar->kind == KL_BOX_NVS) == bar->flip ? -1 : 1;
}

/** The system of a machine that a node belongs to. */
static inline int kl_scene_system(const struct kl_scene *s, int node)
{
    return s->systems > 1 ? kl_id_host(s->topo->node[node].id) : 0;
}

#endif
