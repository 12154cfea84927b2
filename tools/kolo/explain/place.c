/* SPDX-License-Identifier: Apache-2.0 */
#include "base/text.h"
#include "tools/kolo/assumed.h"
#include "tools/kolo/explain/explain.h"

static bool find_setting(const struct kl_cluster *c, struct kl_setting *setting)
{
    return c->from_setting && kl_settings_find(&c->settings, "NCCL_TOPO_FILE", setting);
}

/* Who named the file: some are not known of. */
static void add_place(const struct kl_cluster *c, struct kl_text *t)
{
    struct kl_setting setting;
    char origin[KL_ORIGIN_TEXT];

    kl_text_add(t, "%s", c->name);
    if (find_setting(c, &setting)) kl_text_add(t, " (NCCL_TOPO_FILE, %s)", kl_setting_origin(&setting, origin));
    kl_text_add(t, ", ");
    kl_cluster_size(c, t);
}

void kl_explain_place(const struct kl_cluster *cluster, const char *note, FILE *to)
{
    char line[1024];
    struct kl_text text = kl_text_in(line, sizeof line);

    add_place(cluster, &text);
    fprintf(to, "  %s%s\n", line, note);
}

json_t *kl_explain_origin(const struct kl_cluster *cluster)
{
    struct kl_setting setting;
    char origin[KL_ORIGIN_TEXT];

    return find_setting(cluster, &setting) ? json_string(kl_setting_origin(&setting, origin)) : json_null();
}

void kl_explain_assumed(const struct kl_cluster *cluster, json_t *answer)
{
    char nccl[KL_NCCL_TEXT];

    json_object_set_new(answer, "nccl", json_string(kl_nccl_text(cluster->options.nccl, nccl)));
    json_object_set_new(answer, "assumed", kl_assumed_json(cluster));
    json_object_set_new(answer, "uncertain", kl_uncertain_json(cluster));
    json_object_set_new(answer, "finding", kl_finding_json(cluster));
}
