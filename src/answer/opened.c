/* SPDX-License-Identifier: Apache-2.0 */
#include "answer/opened.h"

#include "base/clock.h"
#include "base/error.h"
#include "plan/finding.h"

#include <stdio.h>
#include <string.h>

ncclResult_t kl_constants_named(const char *name, const struct kl_tuning_constants **found)
{
    static const struct kl_tuning_constants *const all[] = {&kl_tuning_reference, &kl_tuning_host};

    *found = NULL;
    for (size_t i = 0; name && i < sizeof all / sizeof all[0]; i++)
        if (!strcmp(all[i]->name, name)) return *found = all[i], ncclSuccess;
    return name ? KL_FAIL(ncclInvalidArgument, "--constants %s: expected reference or host", name) : ncclSuccess;
}

ncclResult_t kl_opened_init(const struct kl_cluster_request *request, struct kl_opened *o)
{
    memset(o, 0, sizeof *o);
    KL_TRY(kl_cluster_open(request, &o->cluster));
    kl_uncertain_machine(&o->cluster);
    o->machine = o->cluster.uncertain;
    ncclResult_t rc = kl_finding_look(request, &o->cluster, &o->cluster.finding);
    if (rc) kl_cluster_close(&o->cluster);
    return rc;
}

void kl_opened_fini(struct kl_opened *o)
{
    if (o->has_plan) kl_planned_fini(&o->planned);
    o->has_plan = false;
    kl_cluster_close(&o->cluster);
}

ncclResult_t kl_opened_plan(struct kl_opened *o)
{
    const uint64_t start = kl_now_ns();

    if (o->has_plan) return ncclSuccess;
    ncclResult_t rc = kl_planned_init(&o->cluster, &o->planned);
    o->search_ms = (double)(kl_now_ns() - start) / 1e6;
    o->has_plan = !rc;
    if (rc) kl_planned_fini(&o->planned);
    return rc;
}

void kl_opened_about_machine(struct kl_opened *o)
{
    o->cluster.uncertain = o->machine;
}

void kl_opened_about_tuning(struct kl_opened *o, const struct kl_tuning_op *op)
{
    kl_opened_about_machine(o);
    kl_uncertain_tuning(&o->planned, op, &o->cluster);
}

/* ---- warnings ---- */

enum { WARNING_TEXT = 1024 };

/* GPUs whose links may be asleep are seen as they are. */
static void warn_of_low_links(const struct kl_cluster *c, kl_opened_say *say, void *ctx)
{
    const struct kl_gpu_facts *first = NULL;
    char text[WARNING_TEXT];
    int n = 0;

    for (int i = 0; i < c->facts.ngpus; i++) {
        if (!kl_gpu_link_is_low(&c->facts.gpu[i], c->options.nccl)) continue;
        if (!n++) first = &c->facts.gpu[i];
    }
    if (!n) return;
    snprintf(text, sizeof text,
             "%s%s: PCIe generation %d x%d at the moment, %d x%d at best; this release of NCCL plans with the former",
             first->busid, n > 1 ? " and others" : "", first->pcie_gen, first->pcie_width, first->pcie_max_gen,
             first->pcie_max_width);
    say(ctx, text);
}

void kl_opened_warn(const struct kl_cluster *c, kl_opened_say *say, void *ctx)
{
    struct kl_setting setting;
    char text[WARNING_TEXT];

    if (c->setting_failed && kl_settings_find(&c->settings, "NCCL_TOPO_FILE", &setting)) {
        snprintf(
            text, sizeof text,
            "NCCL_TOPO_FILE=%s cannot be read, or holds no GPUs that can be identified; using this machine instead",
            setting.text);
        say(ctx, text);
    }
    if (*c->problem) say(ctx, c->problem);
    warn_of_low_links(c, say, ctx);
}
