/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/kolo/cluster_options.h"

#include "api/param_sets.h"
#include "base/error.h"
#include "plan/finding.h"

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
    return find_constants(o->constants, &q->constants);
}

/* GPUs may be asleep: their current links count. */
static void warn_of_low_links(const struct kl_cluster *c)
{
    const struct kl_gpu_facts *first = NULL;
    int n = 0;

    for (int i = 0; i < c->facts.ngpus; i++) {
        if (!kl_gpu_link_is_low(&c->facts.gpu[i], c->options.nccl)) continue;
        if (!n++) first = &c->facts.gpu[i];
    }
    if (!n) return;
    fprintf(stderr,
            "warning: %s%s: PCIe generation %d x%d at the moment, %d x%d at best; this release of NCCL plans with the "
            "former\n",
            first->busid, n > 1 ? " and others" : "", first->pcie_gen, first->pcie_width, first->pcie_max_gen,
            first->pcie_max_width);
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

/* The library only logs it. */
void kl_cluster_options_warn(const struct kl_cluster *c)
{
    struct kl_setting setting;

    if (c->setting_failed && kl_settings_find(&c->settings, "NCCL_TOPO_FILE", &setting))
        fprintf(stderr,
                "warning: NCCL_TOPO_FILE=%s cannot be read, or holds no GPUs that can be identified; using this "
                "machine instead\n",
                setting.text);
    if (*c->problem) fprintf(stderr, "warning: %s\n", c->problem);
    warn_of_low_links(c);
}

ncclResult_t kl_cluster_options_open(const struct kl_cluster_request *q, struct kl_cluster *c)
{
    KL_TRY(kl_cluster_open(q, c));
    kl_cluster_options_warn(c);
    kl_uncertain_machine(c);
    ncclResult_t rc = kl_finding_look(q, c, &c->finding);
    if (rc) kl_cluster_close(c);
    return rc;
}
