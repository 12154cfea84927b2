/* SPDX-License-Identifier: Apache-2.0 */
#include "plan/finding.h"

#include "base/error.h"
#include "base/text.h"
#include "plan/op_choice.h"
#include "plan/planned.h"
#include "topo/anomaly.h"
#include "topo/parts.h"

#include <stdio.h>

/* ---- figures ---- */

ncclResult_t kl_finding_measure(const struct kl_plan *plan, float *busbw)
{
    struct kl_op_question all_reduce = {.func = KL_FUNC_ALL_REDUCE,
                                        .first = KL_FINDING_BYTES,
                                        .last = KL_FINDING_BYTES,
                                        .type = ncclFloat32,
                                        .op = ncclSum};
    struct kl_op_choice choice;
    *busbw = 0;
    KL_TRY(kl_op_choice_find(&all_reduce, &plan->tuning, &choice));
    if (choice.npossible)
        *busbw = (float)(KL_FINDING_BYTES / (double)choice.candidate[0].choice.time / 1e3 *
                         kl_tuning_bus_factor(KL_FUNC_ALL_REDUCE, plan->nranks));
    kl_op_choice_fini(&choice);
    return ncclSuccess;
}

static ncclResult_t measure(struct kl_cluster *cluster, float *busbw)
{
    struct kl_planned planned = {.plan = NULL};
    ncclResult_t rc;

    KL_TRY_OR(rc, out, kl_planned_init(cluster, &planned));
    rc = kl_finding_measure(planned.plan, busbw);
out:
    kl_planned_fini(&planned);
    return rc;
}

static ncclResult_t measure_request(const struct kl_cluster_request *q, float *busbw)
{
    struct kl_cluster cluster;

    KL_TRY(kl_cluster_open(q, &cluster));
    ncclResult_t rc = measure(&cluster, busbw);
    kl_cluster_close(&cluster);
    return rc;
}

/* The document includes the effect of --topo, --gpus and --without. */
static struct kl_cluster_request request_of(const struct kl_cluster_request *q, const struct kl_xml *document)
{
    struct kl_cluster_request r = *q;

    r.document = document;
    r.topo = r.machine = r.sysfs = r.gpus = NULL;
    r.edits.without = r.edits.without_link = (struct kl_edit_list){NULL, 0};
    return r;
}

static ncclResult_t compare(const struct kl_cluster_request *q, struct kl_xml *document, int code, int nccl,
                            struct kl_finding *f)
{
    struct kl_cluster_request r = request_of(q, document);
    bool mended;

    KL_TRY(measure_request(&r, &f->now));
    KL_TRY(kl_anomaly_repair(document, (enum kl_anomaly_code)code, nccl, &mended));
    return mended ? measure_request(&r, &f->mended) : ncclSuccess;
}

/* ---- looking ---- */

static ncclResult_t look_at_boards(const struct kl_xml *document, int nccl, struct kl_finding *f)
{
    struct kl_parts parts = {0};
    ncclResult_t rc;

    if (kl_xml_count(document) > KL_ANOMALY_ELEMENTS) return ncclSuccess;
    KL_TRY_OR(rc, out, kl_parts_gather(document, nccl, &parts));
    if ((f->product = kl_parts_board(document, &parts, false, &f->n)))
        f->code = KL_FINDING_NO_NVLINK;
    else if ((f->product = kl_parts_board(document, &parts, true, &f->n)))
        f->code = KL_FINDING_MANY_NVLINKS;
out:
    kl_parts_fini(&parts);
    return rc;
}

static void look_for_amd(const struct kl_assumed *assumed, struct kl_finding *f)
{
    for (int i = 0; i < assumed->n; i++)
        if (assumed->at[i].code == KL_ASSUMED_AMD)
            *f = (struct kl_finding){KL_FINDING_AMD, assumed->at[i].n, NULL, 0, 0};
}

ncclResult_t kl_finding_look(const struct kl_cluster_request *q, const struct kl_cluster *c, struct kl_finding *f)
{
    struct kl_machine machine = c->machine;
    struct kl_xml *document = NULL;
    ncclResult_t rc;

    *f = (struct kl_finding){.code = KL_FINDING_NONE};
    look_for_amd(&c->assumed, f);
    if (!c->file || f->code) return ncclSuccess;
    machine.hosts = 1;
    KL_TRY(kl_machine_document(&machine, &c->options, &document));
    KL_TRY_OR(rc, out, look_at_boards(document, c->options.nccl, f));
    if (f->code == KL_FINDING_NO_NVLINK) rc = compare(q, document, KL_ANOMALY_NO_NVLINK, c->options.nccl, f);
    if (f->code == KL_FINDING_MANY_NVLINKS) rc = compare(q, document, KL_ANOMALY_MANY_NVLINKS, c->options.nccl, f);
out:
    kl_xml_free(document);
    return rc;
}

/* ---- words ---- */

const char *kl_finding_name(enum kl_finding_code code)
{
    static const char *const names[] = {[KL_FINDING_NONE] = "none",
                                        [KL_FINDING_NO_NVLINK] = "no_nvlinks",
                                        [KL_FINDING_MANY_NVLINKS] = "many_nvlinks",
                                        [KL_FINDING_AMD] = "amd_gpus"};

    return names[code];
}

/* "11.7", "464": three digits are meant. */
static const char *figure(float busbw, char text[16])
{
    snprintf(text, 16, busbw < 100 ? "%.3g" : "%.0f", (double)busbw);
    return text;
}

static void say_links(const struct kl_finding *f, struct kl_text *t)
{
    bool none = f->code == KL_FINDING_NO_NVLINK;
    char number[16];

    kl_text_add(t, "%d SXM GPUs %s in the file: %s GB/s; ", f->n, none ? "without NVLink" : "with too many NVLinks",
                figure(f->now, number));
    if (f->mended > 0)
        kl_text_add(t, "with the %d each that this product (%s) has: %s GB/s", f->product->links, f->product->name,
                    figure(f->mended, number));
    else
        kl_text_add(t, "this product (%s) has %d each, but how they are wired is not known", f->product->name,
                    f->product->links);
    kl_text_add(t, " (bus bandwidth of an all-reduce of 1 GiB, predicted)");
}

const char *kl_finding_text(const struct kl_finding *f, char text[KL_FINDING_TEXT])
{
    struct kl_text t = kl_text_in(text, KL_FINDING_TEXT);

    if (f->code == KL_FINDING_AMD)
        kl_text_add(
            &t,
            "%d AMD GPUs: RCCL has models of its own for such machines, which are missing here; what follows is NCCL's "
            "search over XGMI, with NVIDIA's tuning",
            f->n);
    else if (f->code)
        say_links(f, &t);
    return text;
}
