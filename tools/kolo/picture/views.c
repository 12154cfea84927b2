/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/kolo/picture/views.h"

#include "base/error.h"

void kl_views_close(struct kl_views *v)
{
    for (int i = 1; i < v->n; i++) kl_scene_free(v->scene[i]);
}

/* The view with these hosts, created if there is none; 0 for machines with different hosts. */
static ncclResult_t view_of(const struct kl_scene *s, struct kl_views *v, const struct kl_cast *cast, int *view)
{
    *view = 0;
    for (int i = 0; i < v->n; i++)
        if (kl_cast_same(&v->cast[i], cast)) return *view = i, ncclSuccess;
    if (v->n == KL_VIEWS) return ncclSuccess;
    KL_TRY(kl_scene_create(s->view, cast, &v->scene[v->n]));
    if (!kl_scene_same_shape(s, v->scene[v->n])) {
        kl_scene_free(v->scene[v->n]);
        return ncclSuccess;
    }
    v->cast[v->n] = *cast;
    *view = v->n++;
    return ncclSuccess;
}

ncclResult_t kl_views_open(struct kl_scene *s, struct kl_views *v)
{
    struct kl_cast cast = kl_cast_last(s);
    int view;

    *v = (struct kl_views){.scene = {s}, .cast = {kl_cast_first(s)}, .n = 1};
    if (s->hosts <= s->drawn) return ncclSuccess;
    KL_TRY(view_of(s, v, &cast, &view));
    if (!view) return ncclSuccess;
    for (int g = 0; g < s->ngraphs; g++)
        for (int w = 0; w < s->graph[g].nways; w++) {
            KL_TRY(kl_cast_touched(s, s->graph[g].id, __builtin_ctzll(s->graph[g].way[w].channels), &cast));
            KL_TRY(view_of(s, v, &cast, &v->of_way[g][w]));
        }
    return ncclSuccess;
}
