/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/kolo/cmd.h"

#include "answer/output.h"
#include "answer/topo.h"
#include "answer/topo_path_json.h"
#include "base/error.h"
#include "tools/kolo/assumed.h"
#include "tools/kolo/cluster_options.h"
#include "tools/kolo/machines.h"
#include "tools/kolo/nic_skips.h"
#include "tools/kolo/rdma_text.h"
#include "tools/kolo/topo_text.h"

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

static void print_help(FILE *to)
{
    fprintf(
        to,
        "usage: kolo topo [options]\n\nShow this machine, or one that a file describes, and the paths through it.\n\n");
    kl_opts_help(table, to);
}

static int usage(FILE *to)
{
    print_help(to);
    return to == stdout ? EXIT_OK : EXIT_USAGE;
}

/* ---- formats ---- */

struct view {
    struct kl_topo_answer answer;
    const char *from, *to; /* of --path */
    bool json;
};

static void print_warning(void *ctx, const char *text)
{
    (void)ctx;
    fprintf(stderr, "warning: %s\n", text);
}

static ncclResult_t print_text(const struct view *v)
{
    const struct kl_cluster *c = v->answer.cluster;

    kl_topo_answer_warn(&v->answer, print_warning, NULL);
    kl_print_preamble(c, stdout);
    kl_topo_text(v->answer.topo, c, stdout);
    if (c->assumed.n || c->uncertain.n) printf("\n");
    kl_assumed_print(c, "", stdout);
    kl_uncertain_print(c, "", stdout);
    kl_nic_skips_text(c->skip, c->nskips, stdout);
    if (c->nskips || c->facts.nnets) kl_rdma_text(c->machine.sysfs, stdout);
    return ncclSuccess;
}

static ncclResult_t print_xml(const struct view *v)
{
    kl_topo_answer_warn(&v->answer, print_warning, NULL);
    kl_finding_warn(v->answer.cluster);
    return kl_output_xml(v->answer.document, stdout);
}

static ncclResult_t print_dot(const struct view *v)
{
    kl_topo_dot(v->answer.topo, v->answer.cluster->name, stdout);
    return ncclSuccess;
}

static ncclResult_t print_json(const struct view *v)
{
    return kl_topo_json(&v->answer, stdout);
}

static ncclResult_t print_path(const struct view *v)
{
    int from = 0, to = 0;

    KL_TRY(kl_topo_end(&v->answer, v->from, &from));
    KL_TRY(kl_topo_end(&v->answer, v->to, &to));
    if (v->json) return kl_topo_path_json(v->answer.topo, from, to, stdout);
    kl_topo_explain_path(v->answer.topo, from, to, stdout);
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
    struct kl_opened opened;
    struct view v = {.from = a->path, .to = to, .json = a->json || !strcmp(a->format, "json")};
    ncclResult_t rc;

    KL_TRY(kl_cluster_options_read(&a->cluster, &request));
    KL_TRY(kl_cluster_options_open(&request, &opened));
    rc = kl_topo_answer_make(&opened, a->cluster.hosts > 0, &v.answer);
    if (!rc) rc = print(&v);
    kl_topo_answer_fini(&v.answer);
    kl_opened_fini(&opened);
    return rc;
}

static int finish(ncclResult_t rc)
{
    if (rc) fprintf(stderr, "%s\n", kl_error_text());
    return !rc ? EXIT_OK : rc == ncclInvalidArgument ? EXIT_USAGE : EXIT_PROBLEM;
}

static int command(int argc, char **argv)
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

const struct kl_command kl_command_topo = {
    "topo", command, "show this machine or a topology file, and the paths through it", print_help, table, NULL};
