/* SPDX-License-Identifier: Apache-2.0 */
#include "koloplan/request.h"

#include "answer/opened.h"
#include "api/param_sets.h"
#include "base/error.h"

#include <stdlib.h>
#include <string.h>

/* Each copy is a link of a list. */
struct kl_plan_texts {
    struct kl_plan_texts *next;
    max_align_t data[];
};

struct copier {
    struct kl_plan_texts *texts;
    bool failed;
};

static void *hold(struct copier *c, size_t bytes)
{
    struct kl_plan_texts *t = malloc(sizeof *t + bytes);

    if (!t) {
        c->failed = true;
        return NULL;
    }
    t->next = c->texts;
    c->texts = t;
    return t->data;
}

static const char *copy_bytes(struct copier *c, const char *text, size_t bytes)
{
    char *copy = text ? hold(c, bytes + 1) : NULL;

    if (!copy) return NULL;
    if (bytes) memcpy(copy, text, bytes);
    copy[bytes] = 0;
    return copy;
}

static const char *copy_text(struct copier *c, const char *text)
{
    return text ? copy_bytes(c, text, strlen(text)) : NULL;
}

static const char *const *copy_list(struct copier *c, const char *const *text, int n)
{
    const char **copy = n ? hold(c, (size_t)n * sizeof *copy) : NULL;

    for (int i = 0; copy && i < n; i++) copy[i] = copy_text(c, text[i]);
    return copy;
}

void kl_plan_texts_free(struct kl_plan_texts *t)
{
    while (t) {
        struct kl_plan_texts *next = t->next;

        free(t);
        t = next;
    }
}

bool kl_plan_is_stdin(const char *path)
{
    return path && !strcmp(path, "-");
}

/* ---- checks ---- */

static ncclResult_t check_list(const char *name, const char *const *text, int n)
{
    if (n < 0) return KL_FAIL(ncclInvalidArgument, "koloplanOpen: request.n%s is %d", name, n);
    if (n && !text)
        return KL_FAIL(ncclInvalidArgument, "koloplanOpen: request.%s is NULL, and n%s is %d", name, name, n);
    for (int i = 0; i < n; i++)
        if (!text[i]) return KL_FAIL(ncclInvalidArgument, "koloplanOpen: request.%s[%d] is NULL", name, i);
    return ncclSuccess;
}

/* The tool's limits. */
static ncclResult_t check_number(const char *name, int value, int max)
{
    if (value >= 0 && value <= max) return ncclSuccess;
    return KL_FAIL(ncclInvalidArgument, "koloplanOpen: request.%s is %d; expected 0 (not given) to %d", name, value,
                   max);
}

static ncclResult_t check_sources(const koloplanRequest_t *q)
{
    const int n = !!q->topo + !!q->text + !!q->nsmi + !!q->sysfs;

    if (n > 1)
        return KL_FAIL(ncclInvalidArgument,
                       "koloplanOpen: more than one of request.topo, text, smi and sysfs is given");
    if (q->machine && (q->nsmi || q->sysfs))
        return KL_FAIL(ncclInvalidArgument, "koloplanOpen: request.machine goes with topo or text, or alone");
    for (int i = 0; i < q->nsmi; i++)
        if (kl_plan_is_stdin(q->smi[i]))
            return KL_FAIL(ncclInvalidArgument, "koloplanOpen: request.smi[%d] is \"-\"; give text instead", i);
    if (kl_plan_is_stdin(q->topo))
        return KL_FAIL(ncclInvalidArgument, "koloplanOpen: request.topo is \"-\"; give text and bytes instead");
    return ncclSuccess;
}

static ncclResult_t check(const koloplanRequest_t *q)
{
    KL_TRY(check_list("smi", q->smi, q->nsmi));
    KL_TRY(check_list("with", q->with, q->nwith));
    KL_TRY(check_list("without", q->without, q->nwithout));
    KL_TRY(check_list("withoutLink", q->withoutLink, q->nwithoutLink));
    KL_TRY(check_number("hosts", q->hosts, 65536));
    KL_TRY(check_number("ranks", q->ranks, 4096));
    KL_TRY(check_number("mnnvl", q->mnnvl, 1));
    return check_sources(q);
}

/* ---- the copy ---- */

/* A caller that was compiled with an older header has a shorter request. */
static ncclResult_t read_request(const koloplanRequest_t *from, koloplanRequest_t *q)
{
    const size_t least = offsetof(koloplanRequest_t, nwithoutLink) + sizeof q->nwithoutLink;

    if (!from) return KL_FAIL(ncclInvalidArgument, "koloplanOpen: request is NULL");
    if (from->size < least)
        return KL_FAIL(ncclInvalidArgument,
                       "koloplanOpen: request.size is %zu; begin with KOLOPLAN_REQUEST_INITIALIZER, which sets it",
                       from->size);
    memset(q, 0, sizeof *q);
    memcpy(q, from, from->size < sizeof *q ? from->size : sizeof *q);
    return check(q);
}

static struct kl_edit_list copy_edits(struct copier *c, const char *const *text, int n)
{
    return (struct kl_edit_list){copy_list(c, text, n), n};
}

ncclResult_t kl_plan_request_copy(const koloplanRequest_t *from, struct kl_cluster_request *request,
                                  struct kl_plan_texts **texts)
{
    struct copier c = {.texts = NULL};
    koloplanRequest_t q;

    KL_TRY(read_request(from, &q));
    *request = (struct kl_cluster_request){.hosts = q.hosts, .ranks = q.ranks, .mnnvl = q.mnnvl};
    KL_TRY(kl_constants_named(q.constants, &request->constants));
    request->topo = copy_text(&c, q.topo);
    request->machine = copy_text(&c, q.machine);
    request->text = copy_bytes(&c, q.text, q.bytes);
    request->bytes = q.text ? q.bytes : 0;
    request->label = copy_text(&c, q.label);
    request->smi = copy_list(&c, q.smi, q.nsmi);
    request->nsmi = q.nsmi;
    request->sysfs = copy_text(&c, q.sysfs);
    request->nccl = copy_text(&c, q.nccl);
    request->gpus = copy_text(&c, q.gpus);
    request->edits = (struct kl_edits){.with = copy_edits(&c, q.with, q.nwith),
                                       .without = copy_edits(&c, q.without, q.nwithout),
                                       .without_link = copy_edits(&c, q.withoutLink, q.nwithoutLink),
                                       .params = &kl_param_registry};
    *texts = c.texts;
    if (!c.failed) return ncclSuccess;
    kl_plan_texts_free(c.texts);
    return KL_NOMEM("a request");
}
