/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/kolo/picture/casts.h"

#include "base/error.h"

#include <stdlib.h>
#include <string.h>

struct kl_cast kl_cast_first(const struct kl_scene *s)
{
    struct kl_cast c = {.n = s->drawn};

    for (int i = 0; i < c.n; i++) c.host[i] = i;
    return c;
}

/* Of hosts in several NVLink domains, only the first domain's can be drawn. */
static int last_host(const struct kl_scene *s)
{
    return (s->systems > 1 ? s->systems : s->hosts) - 1;
}

struct kl_cast kl_cast_last(const struct kl_scene *s)
{
    struct kl_cast c = {.n = s->drawn};

    for (int i = 0; i < c.n; i++) c.host[i] = last_host(s) - c.n + 1 + i;
    return c;
}

/* ---- hosts in the order in which a channel comes to them ---- */

static int host_of(const struct kl_scene *s, int rank)
{
    int gpu;

    if (s->systems <= 1) return rank / s->view->plan->ranks_per_host;
    gpu = kl_topo_gpu_of_rank(s->topo, rank % s->view->plan->ranks_per_host);
    return gpu < 0 ? 0 : kl_scene_system(s, kl_topo_at(s->topo, KL_NODE_GPU, gpu));
}

struct visit {
    const struct kl_scene *s;
    bool *seen; /* by host */
    int *host, n;
};

static void come(struct visit *v, int rank)
{
    int host = host_of(v->s, rank);

    if (v->seen[host]) return;
    v->seen[host] = true;
    v->host[v->n++] = host;
}

static void follow_ring(struct visit *v, int channel)
{
    const struct kl_plan *p = v->s->view->plan;
    int rank = 0;

    for (int i = 0; i < p->nranks; i++, rank = kl_connect_ring(p->connect, channel, rank).next) come(v, rank);
}

/* Level by level. */
static ncclResult_t follow_tree(struct visit *v, int channel)
{
    const struct kl_plan *p = v->s->view->plan;
    int *queue = malloc((size_t)p->nranks * sizeof *queue), n = 1, up;

    if (!queue) return KL_NOMEM("a picture");
    queue[0] = 0;
    while ((up = kl_connect_tree(p->connect, channel, queue[0]).up) >= 0) queue[0] = up;
    for (int at = 0; at < n; at++) {
        struct kl_tree_neighbours t = kl_connect_tree(p->connect, channel, queue[at]);

        come(v, queue[at]);
        for (int i = 0; i < 3; i++)
            if (t.down[i] >= 0 && n < p->nranks) queue[n++] = t.down[i];
    }
    free(queue);
    return ncclSuccess;
}

static int ascending(const void *a, const void *b)
{
    return *(const int *)a - *(const int *)b;
}

/* Take `front` of the visited hosts from the front, the others from the end; in a drawn NVLink domain all are visited. */
static void cast_visited(const struct visit *v, int front, struct kl_cast *cast)
{
    cast->n = v->s->drawn;
    for (int i = 0; i < cast->n; i++) cast->host[i] = v->host[i < front ? i : v->n - cast->n + i];
    qsort(cast->host, (size_t)cast->n, sizeof cast->host[0], ascending);
}

ncclResult_t kl_cast_touched(const struct kl_scene *s, int graph, int channel, struct kl_cast *cast)
{
    struct visit v = {.s = s};
    ncclResult_t rc = ncclSuccess;

    *cast = kl_cast_first(s);
    if (graph != KL_GRAPH_RING && graph != KL_GRAPH_TREE) return ncclSuccess;
    v.seen = calloc((size_t)s->hosts + 1, sizeof *v.seen);
    v.host = malloc(((size_t)s->hosts + 1) * sizeof *v.host);
    if (!v.seen || !v.host)
        rc = KL_NOMEM("a picture");
    else if (graph == KL_GRAPH_RING)
        follow_ring(&v, channel);
    else
        rc = follow_tree(&v, channel);
    if (!rc && v.n >= s->drawn) cast_visited(&v, graph == KL_GRAPH_RING ? (s->drawn + 1) / 2 : s->drawn, cast);
    free(v.seen);
    free(v.host);
    return rc;
}

/* ---- comparing ---- */

bool kl_cast_same(const struct kl_cast *a, const struct kl_cast *b)
{
    return a->n == b->n && !memcmp(a->host, b->host, (size_t)a->n * sizeof a->host[0]);
}

static bool same_box(const struct kl_box *a, const struct kl_box *b)
{
    return a->kind == b->kind && a->count == b->count && !memcmp(&a->bar, &b->bar, sizeof a->bar) &&
           !memcmp(&a->frame, &b->frame, sizeof a->frame);
}

bool kl_scene_same_shape(const struct kl_scene *a, const struct kl_scene *b)
{
    if (a->nboxes != b->nboxes || a->nwires != b->nwires || a->drawn != b->drawn) return false;
    for (int i = 0; i < a->nboxes; i++)
        if (!same_box(&a->box[i], &b->box[i])) return false;
    for (int i = 0; i < a->nwires; i++)
        if (a->wire[i].a != b->wire[i].a || a->wire[i].b != b->wire[i].b) return false;
    return true;
}
