/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/kolo/graph_tuner.h"

#include "base/error.h"

static const int64_t last_size = (int64_t)16 << 30;

ncclResult_t kl_graph_tuner_ask(const struct kl_plan_view *v, const char *file, struct kl_graph_tuner *g)
{
    const struct kl_plan *p = v->plan;
    const struct kl_tuner_place place = {.nranks = p->nranks, .nnodes = p->connect->nodes.nnodes};

    *g = (struct kl_graph_tuner){.file = file};
    KL_TRY(kl_tuner_open_file(&place, p->tuning.constants, file, &g->tuner));
    for (int f = 0; f < KL_FUNCS && p->nranks > 1; f++) {
        const struct kl_coll_asked asked = {
            .func = f, .first = 1, .last = last_size, .type = ncclFloat32, .op = ncclSum};
        KL_TRY(kl_coll_tuner_find(&asked, &p->tuning, g->tuner, &g->func[f]));
    }
    return ncclSuccess;
}

void kl_graph_tuner_fini(struct kl_graph_tuner *g)
{
    kl_tuner_close(g->tuner);
}

void kl_graph_tuner_text(const struct kl_graph_tuner *g, FILE *to)
{
    fprintf(to, "\nwith the tuner %s (%s), asked for powers of two, for a sum of floats:\n", kl_tuner_name(g->tuner),
            g->file);
    for (int f = 0; f < KL_FUNCS; f++) {
        if (!g->func[f].n) continue;
        fprintf(to, "%s\n", kl_func_name[f]);
        kl_coll_tuned_text(&g->func[f], g->tuner, to);
    }
}

json_t *kl_graph_tuner_json(const struct kl_graph_tuner *g)
{
    json_t *functions = json_object();

    for (int f = 0; f < KL_FUNCS; f++) json_object_set_new(functions, kl_func_name[f], kl_coll_tuned_json(&g->func[f]));
    return json_pack("{s:s,s:s,s:o}", "name", kl_tuner_name(g->tuner), "file", g->file, "functions", functions);
}
