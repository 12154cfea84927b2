/* SPDX-License-Identifier: Apache-2.0 */
#include "answer/record.h"
#include "answer/switches.h"
#include "base/error.h"
#include "tools/kolo/assumed.h"
#include "tools/kolo/explain/explain.h"
#include "tools/kolo/explain/inner.h"
#include "tools/kolo/explain/traffic_print.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void print_text(const struct kl_traffic_answer *x, FILE *to)
{
    kl_print_preamble(x->asked.cluster, to);
    kl_traffic_text(x, to);
    kl_assumed_print(x->asked.cluster, "", to);
    kl_uncertain_print(x->asked.cluster, "", to);
}

enum { MOST_PODS = 4096 };

/* Pods out of a list, or of a file of switches. */
struct pods {
    int64_t number[MOST_PODS];
    const char *name[MOST_PODS];
    struct kl_switches switches;
};

/* Hosts come from the file, by name: all, or as many as --hosts says. */
static ncclResult_t read_switches(const char *file, struct kl_cluster_request *cluster, struct kl_traffic_question *u,
                                  struct pods *p)
{
    KL_TRY(kl_switches_open(file, &p->switches));
    const int all = p->switches.nhosts < MOST_PODS ? p->switches.nhosts : MOST_PODS;

    if (!cluster->hosts && p->switches.nhosts > all)
        return KL_FAIL(ncclInvalidUsage, "%s names %d hosts: choose up to %d with --hosts", file, p->switches.nhosts,
                       MOST_PODS);
    if (!cluster->hosts) cluster->hosts = all;
    if (cluster->hosts > all)
        return KL_FAIL(ncclInvalidUsage, "--hosts %d: %s names %d", cluster->hosts, file, p->switches.nhosts);
    for (int h = 0; h < cluster->hosts; h++) {
        p->number[h] = p->switches.host[h].pod;
        p->name[h] = p->switches.host[h].name;
    }
    u->npods = cluster->hosts > 1 ? cluster->hosts : 0;
    u->host_name = p->name;
    return ncclSuccess;
}

static ncclResult_t read_pods(const struct kl_explain_request *q, struct kl_cluster_request *cluster,
                              struct kl_traffic_question *u, struct pods *p)
{
    *u = (struct kl_traffic_question){.pod = p->number};
    if (q->pod && q->pod[strspn(q->pod, "0123456789,")] && access(q->pod, F_OK))
        return KL_FAIL(ncclInvalidArgument, "--pod %s: neither a file nor numbers separated by commas", q->pod);
    if (q->pod && q->pod[strspn(q->pod, "0123456789,")]) return read_switches(q->pod, cluster, u, p);
    return kl_inner_list("--pod", q->pod, p->number, MOST_PODS, &u->npods);
}

static ncclResult_t read_question(const struct kl_explain_request *q, struct kl_cluster_request *cluster,
                                  struct kl_traffic_question *u, struct pods *p)
{
    KL_TRY(read_pods(q, cluster, u, p));
    KL_TRY(kl_inner_operation(q, &u->op));
    return kl_inner_number("--root", q->root, &u->root);
}

static ncclResult_t print_answer(const struct kl_explain_request *q, const struct kl_traffic_answer *x, FILE *to)
{
    if (q->json) return kl_traffic_json(x, to);
    print_text(x, to);
    return ncclSuccess;
}

/* Without --hosts, as many as the ranks of the trace need. */
static ncclResult_t count_hosts(const struct kl_record *record, struct kl_cluster_request *cluster)
{
    struct kl_opened one;

    if (cluster->hosts) return ncclSuccess;
    KL_TRY(kl_opened_init(cluster, &one));
    const int gpus = one.cluster.gpus;

    kl_opened_fini(&one);
    cluster->hosts = kl_traffic_trace_hosts(record, gpus);
    return ncclSuccess;
}

static ncclResult_t answer_records(const struct kl_explain_request *q, const struct kl_record *record, struct pods *p,
                                   FILE *to)
{
    struct kl_cluster_request cluster = q->cluster;
    struct kl_traffic_question question;
    struct kl_traffic_answer x;
    struct kl_opened opened;

    KL_TRY(read_pods(q, &cluster, &question, p));
    KL_TRY(count_hosts(record, &cluster));
    KL_TRY(kl_cluster_options_open(&cluster, &opened));
    ncclResult_t rc = kl_traffic_trace_make(&question, record, &cluster, &opened, &x);

    if (!rc) rc = print_answer(q, &x, to);
    kl_traffic_answer_fini(&x);
    kl_opened_fini(&opened);
    return rc;
}

static ncclResult_t answer_trace(const struct kl_explain_request *q, struct pods *p, FILE *to)
{
    static const struct kl_opt_list none = {.n = 0};
    struct kl_named_text *file = kl_explain_texts(&none, q);
    struct kl_record_answer *a = calloc(1, sizeof *a);
    ncclResult_t rc = file && a ? ncclSuccess : KL_NOMEM("names of files");

    if (!rc && (q->type || q->op || q->root))
        rc =
            KL_FAIL(ncclInvalidArgument,
                    "a trace's calls have types, operations and roots of their own: leave out --type, --op and --root");
    if (!rc) rc = kl_record_answer_make(file, q->nwords, a);
    if (!rc) rc = answer_records(q, &a->record, p, to);
    if (a) kl_record_answer_fini(a);
    free(a);
    free(file);
    return rc;
}

static ncclResult_t answer(const struct kl_explain_request *q, struct pods *p, FILE *to)
{
    struct kl_cluster_request cluster = q->cluster;
    struct kl_traffic_question question;
    struct kl_traffic_answer x;
    struct kl_opened opened;

    KL_TRY(read_question(q, &cluster, &question, p));
    KL_TRY(kl_cluster_options_open(&cluster, &opened));
    ncclResult_t rc = kl_traffic_answer_make(&question, &opened, &x);

    if (!rc) rc = print_answer(q, &x, to);
    kl_traffic_answer_fini(&x);
    kl_opened_fini(&opened);
    return rc;
}

/* A collective and its size, or files of calls. */
static bool is_trace(const struct kl_explain_request *q)
{
    return !kl_coll_is_named(q->word[0]) && (!strcmp(q->word[0], "-") || !access(q->word[0], F_OK));
}

ncclResult_t kl_explain_traffic(const struct kl_explain_request *q, FILE *to)
{
    struct pods *p = calloc(1, sizeof *p);
    ncclResult_t rc = !p ? KL_NOMEM("pods") : is_trace(q) ? answer_trace(q, p, to) : answer(q, p, to);

    if (p) kl_switches_fini(&p->switches);
    free(p);
    return rc;
}
