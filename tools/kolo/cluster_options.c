/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/kolo/cluster_options.h"

#include "api/param_sets.h"
#include "base/error.h"

#include <string.h>

static ncclResult_t find_constants(const char *name, const struct kl_tuning_constants **found)
{
    static const struct kl_tuning_constants *const all[] = {&kl_tuning_reference, &kl_tuning_host};

    for (size_t i = 0; name && i < sizeof all / sizeof all[0]; i++)
        if (!strcmp(all[i]->name, name)) return *found = all[i], ncclSuccess;
    return name ? KL_FAIL(ncclInvalidArgument, "--constants %s: expected reference or host", name) : ncclSuccess;
}

static struct kl_edit_list edits_of(const struct kl_opt_list *list)
{
    return (struct kl_edit_list){list->text, list->n};
}

ncclResult_t kl_cluster_options_read(const struct kl_cluster_options *o, struct kl_cluster_request *q)
{
    *q = (struct kl_cluster_request){.topo = o->topo,
                                     .sysfs = o->sysfs,
                                     .gpus = o->gpus,
                                     .hosts = o->hosts,
                                     .ranks = o->ranks,
                                     .mnnvl = o->mnnvl,
                                     .edits = {.with = edits_of(&o->with),
                                               .without = edits_of(&o->without),
                                               .without_link = edits_of(&o->without_link),
                                               .params = &kl_param_registry}};
    return find_constants(o->constants, &q->constants);
}

/* The library only logs it. */
void kl_cluster_options_warn(const struct kl_cluster *c)
{
    struct kl_setting setting;

    if (c->setting_failed && kl_settings_find(&c->settings, "NCCL_TOPO_FILE", &setting))
        fprintf(stderr,
                "warning: NCCL_TOPO_FILE=%s cannot be read or has no <gpu> element, so this machine is looked at\n",
                setting.text);
}

ncclResult_t kl_cluster_options_open(const struct kl_cluster_request *q, struct kl_cluster *c)
{
    KL_TRY(kl_cluster_open(q, c));
    kl_cluster_options_warn(c);
    return ncclSuccess;
}
