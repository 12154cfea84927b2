/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/kolo/cluster_options.h"

#include "api/param_sets.h"
#include "base/error.h"

#include <stdio.h>

static struct kl_edit_list edits_of(const struct kl_opt_list *list)
{
    return (struct kl_edit_list){list->text, list->n};
}

ncclResult_t kl_cluster_options_read(const struct kl_cluster_options *o, struct kl_cluster_request *q)
{
    *q = (struct kl_cluster_request){.topo = o->topo,
                                     .machine = o->machine,
                                     .smi = o->smi.text,
                                     .nsmi = o->smi.n,
                                     .sysfs = o->sysfs,
                                     .nccl = o->nccl,
                                     .gpus = o->gpus,
                                     .hosts = o->hosts,
                                     .ranks = o->ranks,
                                     .mnnvl = o->mnnvl,
                                     .edits = {.with = edits_of(&o->with),
                                               .without = edits_of(&o->without),
                                               .without_link = edits_of(&o->without_link),
                                               .params = &kl_param_registry}};
    return kl_constants_named(o->constants, &q->constants);
}

void kl_cluster_hosts(const struct kl_cluster *c, struct kl_text *to)
{
    const int together = c->file ? kl_machine_file_hosts(c->file) : 1;

    if (together > 1)
        kl_text_add(to, "%d NVLink domain%s of %d hosts", c->hosts, kl_plural(c->hosts), together);
    else
        kl_text_add(to, "%d host%s", c->hosts, kl_plural(c->hosts));
}

void kl_cluster_devices(const struct kl_cluster *c, int n, struct kl_text *to)
{
    if (!c->cpus)
        kl_text_add(to, "%d GPU%s", n, kl_plural(n));
    else
        kl_text_add(to, "%s%d CPU device%s stand%s in for %s", c->looked ? "no GPUs; " : "", n, kl_plural(n),
                    n == 1 ? "s" : "", c->looked ? "them" : "GPUs");
}

void kl_cluster_size(const struct kl_cluster *c, struct kl_text *to)
{
    kl_cluster_hosts(c, to);
    kl_text_add(to, "%s", c->cpus ? ", " : " with ");
    kl_cluster_devices(c, c->gpus, to);
    if (c->hosts > 1) kl_text_add(to, c->cpus ? " on each" : " each");
}

static void print_warning(void *ctx, const char *text)
{
    (void)ctx;
    fprintf(stderr, "warning: %s\n", text);
}

void kl_cluster_options_warn(const struct kl_cluster *c)
{
    kl_opened_warn(c, print_warning, NULL);
}

ncclResult_t kl_cluster_options_open(const struct kl_cluster_request *q, struct kl_opened *o)
{
    KL_TRY(kl_opened_init(q, o));
    kl_cluster_options_warn(&o->cluster);
    return ncclSuccess;
}
