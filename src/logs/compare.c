/* SPDX-License-Identifier: Apache-2.0 */
#include "base/error.h"
#include "base/param_names.h"
#include "logs/compare_make.h"
#include "plan/planned.h"
#include "topo/config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- settings ---- */

struct settings {
    const char **text; /* of the log, then of the command line */
    int nmade, n, max; /* made: of the log */
};

/* Files of the log's machine are not here, and other settings do not matter to a plan. */
static bool concerns_plan(const struct kl_param_registry *params, const struct kl_log_setting *s)
{
    if (strstr(s->name, "_FILE") || strstr(s->name, "DEBUG") || !strncmp(s->name, "NCCL_SOCKET", 11)) return false;
    return params && *s->value && kl_param_find(params, s->name) != NULL;
}

/* Would a plan take it? */
static bool is_good(const struct kl_param_registry *params, const char *text)
{
    struct kl_edits one = {.with = {&text, 1}, .params = params};
    struct kl_setting *over = NULL;
    int quiet = kl_error_quiet(1);
    ncclResult_t rc = kl_edit_settings(&one, &over);

    kl_error_quiet(quiet);
    free(over);
    return rc == ncclSuccess;
}

static bool is_known(const struct settings *all, const char *name)
{
    for (int i = 0; i < all->nmade; i++)
        if (!strncmp(all->text[i], name, strlen(name)) && all->text[i][strlen(name)] == '=') return true;
    return false;
}

/* One of the log as --with writes it; NULL: it does not concern the plan. */
static char *written(const struct kl_edits *edits, const struct settings *all, const struct kl_log_setting *s)
{
    char text[512];

    if (!concerns_plan(edits->params, s) || is_known(all, s->name)) return NULL;
    snprintf(text, sizeof text, "%s=%.400s", s->name, s->value);
    return is_good(edits->params, text) ? strdup(text) : NULL;
}

static bool append(struct settings *all, const char *text)
{
    if (all->n == all->max) {
        int max = all->max ? 2 * all->max : 32;
        const char **grown = realloc(all->text, (size_t)max * sizeof *grown);

        if (!grown) return false;
        all->text = grown;
        all->max = max;
    }
    all->text[all->n++] = text;
    return true;
}

/* Settings of the log, then of the command line, which take precedence. */
static ncclResult_t gather_settings(const struct kl_log *log, const struct kl_edits *edits, struct settings *all)
{
    bool good = true;

    for (int i = 0; i < log->nsetting && good; i++) {
        char *text = written(edits, all, &log->setting[i]);

        if (!text) continue;
        good = append(all, text);
        if (good)
            all->nmade++;
        else
            free(text);
    }
    for (int i = 0; i < edits->with.n && good; i++) good = append(all, edits->with.text[i]);
    return good ? ncclSuccess : KL_NOMEM("settings of a log");
}

static void free_settings(struct settings *all)
{
    for (int i = 0; i < all->nmade; i++) free((char *)all->text[i]);
    free(all->text);
}

/* ---- the machine to plan for ---- */

static void choose_release(const struct kl_log *log, const struct kl_log_comm *comm,
                           const struct kl_cluster_request *request, struct kl_log_compare *c)
{
    const struct kl_log_version *own = kl_log_version_of(log, comm);
    const char *text = request->nccl ? request->nccl : own ? own->text : NULL;

    c->other_release = !text || kl_nccl_parse(text) < 0;
    kl_nccl_text(kl_nccl_nearest(text, kl_topo_config_release()), c->nccl);
}

static int nodes_of(const struct kl_log_comm *comm)
{
    return comm && comm->nnodes > 0 ? comm->nnodes : 1;
}

static ncclResult_t refuse(struct kl_log_compare *c, const char *why)
{
    snprintf(c->why, sizeof c->why, "%s", why);
    return ncclSuccess;
}

/* The communicator's ranks must be the machine's. */
static bool fits(const struct kl_log_comm *comm, const struct kl_cluster *cluster, struct kl_log_compare *c)
{
    int ranks = cluster->hosts * cluster->gpus;

    c->hosts = cluster->hosts;
    c->gpus = cluster->gpus;
    if (!comm || comm->nranks < 1 || comm->nranks == ranks) return true;
    snprintf(c->why, sizeof c->why,
             "the communicator of the log has %d ranks, but %d host%s with %d GPU%s of this machine have %d",
             comm->nranks, cluster->hosts, kl_plural(cluster->hosts), cluster->gpus, kl_plural(cluster->gpus), ranks);
    return false;
}

static ncclResult_t plan_and_compare(const struct kl_log *log, const struct kl_log_comm *comm,
                                     const struct kl_cluster_request *request, struct kl_log_compare *c)
{
    struct kl_cluster cluster;
    struct kl_planned planned = {.plan = NULL};
    ncclResult_t rc;

    KL_TRY(kl_cluster_open(request, &cluster));
    snprintf(c->machine, sizeof c->machine, "%s", cluster.name);
    if (!fits(comm, &cluster, c)) {
        kl_cluster_close(&cluster);
        return ncclSuccess;
    }
    KL_TRY_OR(rc, out, kl_planned_init(&cluster, &planned));
    KL_TRY_OR(rc, out, kl_log_compare_plan(log, comm ? (int)(comm - log->comm) : -1, planned.plan, c));
    c->made = true;
out:
    kl_planned_fini(&planned);
    kl_cluster_close(&cluster);
    return rc;
}

/* Use the log's own machine; `why` says what is missing where it cannot be planned. */
static ncclResult_t compare_own(const struct kl_log *log, const struct kl_log_comm *comm,
                                struct kl_cluster_request *request, struct kl_log_compare *c)
{
    int system = kl_log_system_of(log, comm), quiet = kl_error_quiet(1);
    struct kl_xml *xml = NULL;
    ncclResult_t rc = ncclSuccess;

    if (log->amd || (log->nversion && log->version[0].rccl))
        refuse(c, "it is RCCL's, whose search is not followed");
    else if (system < 0)
        refuse(c, log->nsystem ? "the lines of the machine (=== System) are cut"
                               : "the log has no lines of the machine (NCCL_DEBUG_SUBSYS=INIT,GRAPH prints them)");
    else
        rc = kl_log_machine(log, system, kl_nccl_parse(c->nccl), &xml, &c->assumed);
    if (!rc && xml) {
        c->from_log = true;
        request->document = xml;
        rc = plan_and_compare(log, comm, request, c);
    }
    if (rc) refuse(c, kl_error_text());
    kl_xml_free(xml);
    kl_error_quiet(quiet);
    return ncclSuccess;
}

ncclResult_t kl_log_compare_make(const struct kl_log *log, const struct kl_cluster_request *request,
                                 struct kl_log_compare *c)
{
    const struct kl_log_comm *comm = kl_log_main(log);
    struct kl_cluster_request own = *request;
    struct settings settings = {.n = 0};
    ncclResult_t rc;

    *c = (struct kl_log_compare){.made = false};
    KL_TRY(kl_cluster_check_release(request));
    choose_release(log, comm, request, c);
    KL_TRY_OR(rc, out, gather_settings(log, &request->edits, &settings));
    c->settings = settings.nmade;
    own.nccl = c->nccl;
    own.edits.with = (struct kl_edit_list){settings.text, settings.n};
    if (!own.hosts) own.hosts = nodes_of(comm);
    if (kl_cluster_is_named(request))
        rc = plan_and_compare(log, comm, &own, c);
    else
        rc = compare_own(log, comm, &own, c);
out:
    free_settings(&settings);
    return rc;
}

void kl_log_compare_fini(struct kl_log_compare *c)
{
    free(c->difference);
    *c = (struct kl_log_compare){.made = false};
}
