/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/kolo/cmd.h"

#include "base/error.h"
#include "plan/cluster.h"
#include "plan/topo_name.h"
#include "tools/kolo/assumed.h"
#include "tools/kolo/cluster_options.h"
#include "tools/kolo/machines.h"
#include "tools/kolo/graph_json.h"
#include "tools/kolo/nic_skips.h"
#include "tools/kolo/output.h"
#include "tools/kolo/topo_path_json.h"
#include "tools/kolo/topo_text.h"
#include "topo/paths.h"
#include "topo/warn.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <errno.h>

struct asked {
    struct kl_cluster_options cluster;
    const char *format, *record, *path;
    int json, help, machines;
};

static const struct kl_opt table[] = {
    {0, "topo", KL_OPT_TEXT, offsetof(struct asked, cluster.topo), 0, 0, "FILE",
     "topology file, - for standard input (default: this machine)"},
    KL_MACHINE_OPTION(struct asked, cluster),
    KL_RELEASE_OPTION(struct asked, cluster),
    KL_CLUSTER_OPTIONS(struct asked, cluster,
                       "show the topology of rank 0 among N such hosts (default: the whole machine)"),
    {0, "format", KL_OPT_TEXT, offsetof(struct asked, format), 0, 0, "text|xml|json|dot", "output (default: text)"},
    {0, "json", KL_OPT_FLAG, offsetof(struct asked, json), 0, 0, NULL, "the same as --format json"},
    {0, "path", KL_OPT_TEXT, offsetof(struct asked, path), 0, 0, "FROM TO", "explain a path, e.g. --path GPU/0 NET/3"},
    {0, "machines", KL_OPT_FLAG, offsetof(struct asked, machines), 0, 0, NULL,
     "list the machines that --machine knows, and the source of each"},
    {0, "record", KL_OPT_TEXT, offsetof(struct asked, record), 0, 0, "DIR",
     "record this machine in DIR, for --sysfs; with --machines: a file for each of them"},
    KL_OPT_HELP(struct asked, help),
    KL_OPT_END,
};

static int usage(FILE *to)
{
    fprintf(
        to,
        "usage: kolo topo [options]\n\nShow this machine, or one that a file describes, and the paths through it.\n\n");
    kl_opts_help(table, to);
    return to == stdout ? EXIT_OK : EXIT_USAGE;
}

/* ---- formats ---- */

struct view {
    struct kl_cluster *cluster;
    struct kl_topo *topo;
    struct kl_xml *document;
    const char *from, *to; /* of --path */
    bool json;
};

static void print_warning(void *ctx, const char *text)
{
    (void)ctx;
    fprintf(stderr, "warning: %s\n", text);
}

static void collect_warning(void *ctx, const char *text)
{
    json_array_append_new(ctx, json_string(text));
}

static void look(const struct view *v, kl_topo_warning *warn, void *ctx)
{
    kl_topo_warn(v->document, v->topo->options.nccl, v->cluster->file ? NULL : &v->cluster->facts.cpu, warn, ctx);
}

static ncclResult_t print_text(const struct view *v)
{
    look(v, print_warning, NULL);
    kl_answer_begin(v->cluster, stdout);
    kl_topo_text(v->topo, v->cluster, stdout);
    if (v->cluster->assumed.n || v->cluster->uncertain.n) printf("\n");
    kl_assumed_print(v->cluster, "", stdout);
    kl_uncertain_print(v->cluster, "", stdout);
    kl_nic_skips_text(v->cluster->skip, v->cluster->nskips, stdout);
    return ncclSuccess;
}

static ncclResult_t print_xml(const struct view *v)
{
    look(v, print_warning, NULL);
    kl_finding_warn(v->cluster);
    return kl_output_xml(v->document, stdout);
}

static ncclResult_t print_dot(const struct view *v)
{
    kl_topo_dot(v->topo, v->cluster->name, stdout);
    return ncclSuccess;
}

static ncclResult_t print_json(const struct view *v)
{
    json_t *o = json_object(), *warnings = json_array();
    const struct kl_topo *t = v->topo;

    look(v, collect_warning, warnings);
    char nccl[KL_NCCL_TEXT];
    int failed = json_object_set_new(o, "topology", json_string(v->cluster->name)) ||
                 json_object_set_new(o, "nccl", json_string(kl_nccl_text(t->options.nccl, nccl))) ||
                 json_object_set_new(o, "assumed", kl_assumed_json(v->cluster)) ||
                 json_object_set_new(o, "uncertain", kl_uncertain_json(v->cluster)) ||
                 json_object_set_new(o, "finding", kl_finding_json(v->cluster)) ||
                 json_object_set_new(o, "system", kl_json_system(t)) ||
                 json_object_set_new(o, "max_bw", kl_json_float(t->max_bw)) ||
                 json_object_set_new(o, "total_bw", kl_json_float(t->total_bw)) ||
                 json_object_set_new(o, "paths", kl_json_paths(t)) ||
                 json_object_set_new(o, "queries", kl_json_queries(t, v->cluster)) ||
                 json_object_set_new(o, "nics_unused", kl_nic_skips_json(v->cluster->skip, v->cluster->nskips)) ||
                 json_object_set(o, "warnings", warnings);
    json_decref(warnings);
    if (!failed) return kl_output_json(o, stdout);
    json_decref(o);
    return ncclInternalError;
}

static ncclResult_t find_end(const struct view *v, const char *name, int *node)
{
    int found = kl_topo_named(v->topo, name);

    if (found < 0 || v->topo->node[found].type == KL_NODE_PCI || v->topo->node[found].type == KL_NODE_NIC)
        return KL_FAIL(ncclInvalidUsage, "--path %s: %s; paths lead between GPU/<rank>, NET/<dev>, CPU and NVS nodes",
                       name, found < 0 ? "no such node" : "no path is kept for switches and cards");
    *node = found;
    return ncclSuccess;
}

static ncclResult_t print_path(const struct view *v)
{
    int from = 0, to = 0;

    KL_TRY(find_end(v, v->from, &from));
    KL_TRY(find_end(v, v->to, &to));
    if (v->json) return kl_output_json(kl_topo_path_json(v->topo, from, to), stdout);
    kl_topo_explain_path(v->topo, from, to, stdout);
    return ncclSuccess;
}

static const struct {
    const char *name;
    ncclResult_t (*print)(const struct view *v);
} formats[] = {{"text", print_text}, {"xml", print_xml}, {"json", print_json}, {"dot", print_dot}};

/* ---- the command ---- */

static ncclResult_t copy_record(const char *from, struct kl_recorded *facts)
{
    KL_TRY(kl_record_check(from));
    return kl_record_load(from, facts);
}

/* Record this machine, or a record again. NICs are in sysfs; GPUs are not. */
static ncclResult_t record(const char *dir, const char *sysfs)
{
    char problem[KL_GPUS_PROBLEM_TEXT] = "";
    struct kl_recorded facts = {0};
    ncclResult_t rc;

    KL_TRY(sysfs ? copy_record(sysfs, &facts) : kl_gpus_read(&facts.gpu, &facts.ngpus, problem));
    if (*problem) fprintf(stderr, "warning: %s\n", problem);
    if (!facts.has_cpu) kl_cpu_facts_read(&facts.cpu);
    facts.has_cpu = true;
    rc = mkdir(dir, 0777) && errno != EEXIST ? KL_FAIL_ERRNO("creating %s", dir) : ncclSuccess;
    if (!rc) rc = kl_record_sysfs(sysfs ? sysfs : "/sys", dir);
    if (!rc) rc = kl_record_save(dir, &facts);
    kl_record_free(&facts);
    return rc;
}

static ncclResult_t show(const struct asked *a, const char *to, ncclResult_t (*print)(const struct view *))
{
    struct kl_cluster_request request;
    struct kl_cluster cluster;
    struct view v = {.cluster = &cluster, .from = a->path, .to = to, .json = a->json || !strcmp(a->format, "json")};
    ncclResult_t rc;

    KL_TRY(kl_cluster_options_read(&a->cluster, &request));
    KL_TRY(kl_cluster_options_open(&request, &cluster));
    rc = kl_cluster_whole(&cluster, &v.topo, &v.document);
    if (!rc && a->cluster.hosts) {
        kl_topo_free(v.topo);
        v.topo = NULL;
        rc = kl_cluster_topo(&cluster, 0, &v.topo);
    }
    if (!rc) rc = print(&v);
    kl_topo_free(v.topo);
    kl_xml_free(v.document);
    kl_cluster_close(&cluster);
    return rc;
}

static int finish(ncclResult_t rc)
{
    if (rc) fprintf(stderr, "%s\n", kl_error_text());
    return !rc ? EXIT_OK : rc == ncclInvalidArgument ? EXIT_USAGE : EXIT_PROBLEM;
}

int cmd_topo(int argc, char **argv)
{
    struct asked a = {.format = "text"};
    char why[256];
    const char *to = NULL;
    int next = kl_opts_parse(table, argc, argv, 1, &a, why, sizeof why);

    if (a.path && next >= 0 && next < argc) {
        to = argv[next];
        next = kl_opts_parse(table, argc, argv, next + 1, &a, why, sizeof why);
    }
    if (a.help) return usage(stdout);
    if (next >= 0 && next < argc) kl_opts_refuse_word(table, argv[next], why, sizeof why);
    if (next != argc || (a.path && !to)) {
        fprintf(stderr, "kolo topo: %s\n", next != argc ? why : "--path takes two nodes, as in --path GPU/0 NET/3");
        return EXIT_USAGE;
    }
    if (a.machines && a.record) return finish(kl_machines_write(a.record));
    if (a.machines) return finish(kl_machines_list(a.json, stdout));
    if (a.record) return finish(record(a.record, a.cluster.sysfs));
    if (a.path) return finish(show(&a, to, print_path));
    for (size_t i = 0; i < sizeof formats / sizeof formats[0]; i++)
        if (!strcmp(formats[i].name, a.json ? "json" : a.format)) return finish(show(&a, NULL, formats[i].print));
    fprintf(stderr, "kolo topo: --format %s: expected text, xml, json or dot\n", a.format);
    return EXIT_USAGE;
}
