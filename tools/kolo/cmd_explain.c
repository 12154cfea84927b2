/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/kolo/cmd.h"

#include "answer/coll.h"
#include "base/error.h"
#include "base/text.h"
#include "plan/collective.h"
#include "tools/kolo/explain/explain.h"

#include <limits.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

static const struct kl_opt table[] = {
    {0, "topo", KL_OPT_LIST, offsetof(struct kl_explain_request, topos), 0, 0, "FILE",
     "topology of one host, - for standard input (default: this machine); diff takes two"},
    {0, "machine", KL_OPT_LIST, offsetof(struct kl_explain_request, machines), 0, 0, "NAME",
     KL_MACHINE_DOC "; diff takes two"},
    {0, "nccl", KL_OPT_LIST, offsetof(struct kl_explain_request, releases), 0, 0, "VERSION",
     KL_RELEASE_DOC "; diff takes two"},
    KL_CLUSTER_OPTIONS(struct kl_explain_request, options,
                       "number of identical hosts (default: 1, or as many as the file describes)"),
    KL_CONSTANTS_OPTION(struct kl_explain_request, options),
    {0, "log", KL_OPT_LIST, offsetof(struct kl_explain_request, logs), 0, 0, "FILE...",
     "logs of NCCL (NCCL_DEBUG=INFO): their contents and their problems; instead of a QUESTION"},
    {0, "bench", KL_OPT_LIST, offsetof(struct kl_explain_request, benches), 0, 0, "FILE",
     "a table of nccl-tests, compared with the model; instead of a QUESTION"},
    {0, "type", KL_OPT_TEXT, offsetof(struct kl_explain_request, type), 0, 0, "TYPE",
     "data type of a collective: int8 ... float ... f8e5m2 (default: float)"},
    {0, "op", KL_OPT_TEXT, offsetof(struct kl_explain_request, op), 0, 0, "OP",
     "reduction of a collective: sum prod max min avg (default: sum)"},
    {0, "tuner", KL_OPT_TEXT, offsetof(struct kl_explain_request, tuner), 0, 0, "FILE",
     "a collective: the choices of a tuner plugin, or of a file of rules (CSV, JSON), beside the model's"},
    {0, "all", KL_OPT_FLAG, offsetof(struct kl_explain_request, all), 0, 0, NULL,
     "search: every attempt and every link, one by one; --log: every difference"},
    {0, "root", KL_OPT_TEXT, offsetof(struct kl_explain_request, root), 0, 0, "RANK", "order, traffic: the root"},
    {0, "pod", KL_OPT_TEXT, offsetof(struct kl_explain_request, pod), 0, 0, "HOSTS|P,...|FILE",
     "traffic: so many hosts are a pod, or the pod of each host, or a file of switches (Slurm's topology.conf, "
     "topograph's output): bytes that cross pods, and the best order of hosts"},
    {0, "element", KL_OPT_TEXT, offsetof(struct kl_explain_request, element), 0, 0, "I,...",
     "order: the sums of these elements"},
    {0, "group", KL_OPT_TEXT, offsetof(struct kl_explain_request, group), 0, 0, "SIZE,...",
     "order: other operations of its group"},
    {0, "registered", KL_OPT_FLAG, offsetof(struct kl_explain_request, registered), 0, 0, NULL,
     "order: out of place, in registered buffers"},
    {0, "captured", KL_OPT_FLAG, offsetof(struct kl_explain_request, captured), 0, 0, NULL,
     "order: out of place, captured in a graph"},
    {0, "vs", KL_OPT_TEXT, offsetof(struct kl_explain_request, vs), 0, 0, "SIZE|NAME=VALUE|VERSION",
     "order: has each element the same sum there?"},
    {0, "lint", KL_OPT_FLAG, offsetof(struct kl_explain_request, lint), 0, 0, NULL,
     "order: only remarks on the settings in force"},
    {0, "format", KL_OPT_TEXT, offsetof(struct kl_explain_request, format), 0, 0, "NAME",
     "order: text, json, svg (a picture of the additions) or html (one to explore in a browser) (default: text)"},
    {0, "json", KL_OPT_FLAG, offsetof(struct kl_explain_request, json), 0, 0, NULL, "print JSON; see docs/explain.md"},
    KL_OPT_HELP(struct kl_explain_request, help),
    KL_OPT_END,
};

static const char collective[] = "COLLECTIVE"; /* stands for all of them */

/* Ends with an empty row. */
static const struct kl_explain_question questions[] = {
    {collective, 0, 2, "[SIZE[-SIZE]]",
     "which algorithm, protocol and channels, how long, and why; e.g. all_reduce 64M\n"
     "                                   SIZE: nccl-tests' size; of the result for all_gather (default: 1-16G)",
     kl_explain_coll},
    {"search", 0, 1, "[ring|tree|collnet|nvls]", "how the search found its channels, why it stopped, probable faults",
     kl_explain_search},
    {"pair", 2, 2, "A B", "how two GPUs talk, or a GPU and a NIC, and why not better", kl_explain_pair},
    {"nics", 0, 0, "", "which NIC serves which GPU, which serves none, and which NICs talk across hosts",
     kl_explain_nics},
    {"diff", 0, 0, "", "the effect of a change: --topo A --topo B, or --with, --without, --without-link",
     kl_explain_diff},
    {"order", 1, 3, "COLLECTIVE [SIZE[-SIZE]]",
     "in which order each element is added, and at which counts, places and settings that changes", kl_explain_order},
    {"traffic", 1, INT_MAX, "COLLECTIVE SIZE|FILE...",
     "bytes over each link, NIC, host and rail: of an operation, or of all in traces and flight records",
     kl_explain_traffic},
    {NULL, 0, 0, NULL, NULL, NULL},
};

static void print_help(FILE *to)
{
    fprintf(
        to,
        "usage: kolo explain QUESTION [options]\n       kolo explain FILE... [options]\n       kolo explain --log "
        "FILE... | --bench FILE [options]\n\nExplain choices and their reasons, on any topology, without devices. The "
        "kind of a FILE follows from its\ncontent: a log, a table, a topology file, text of nvidia-smi or lspci.\n\n");
    for (const struct kl_explain_question *k = questions; k->name; k++) {
        char form[64];

        snprintf(form, sizeof form, "%s %s", k->name, k->words);
        fprintf(to, "  %-32s %s\n", form, k->summary);
    }
    fprintf(to, "\n");
    kl_opts_help(table, to);
}

static int usage(FILE *to)
{
    print_help(to);
    return to == stdout ? EXIT_OK : EXIT_USAGE;
}

static const struct kl_explain_question *question_named(const char *name)
{
    for (const struct kl_explain_question *k = questions; k->name; k++)
        if (k->name == collective ? kl_coll_is_named(name) : !strcmp(k->name, name)) return k;
    return NULL;
}

/* Words and options in any order; words are gathered at the front of argv. -1 with the reason in `why`. */
static int gather_words(int argc, char **argv, struct kl_explain_request *q, char *why, size_t why_size)
{
    int n = 0;

    for (int at = 1; at < argc; at++) {
        at = kl_opts_parse(table, argc, argv, at, q, why, why_size);
        if (at < 0) return -1;
        if (at < argc) argv[n++] = argv[at];
    }
    return n;
}

/* A file among the words, whose option was forgotten; NULL if there is none. */
static const char *file_among(int n, char **words)
{
    for (int i = 0; i < n; i++)
        if (kl_opts_is_file(words[i])) return words[i];
    return NULL;
}

static int refuse(const char *why)
{
    fprintf(stderr, "kolo explain: %s; see kolo explain --help\n", why);
    return EXIT_USAGE;
}

/* ---- options of some questions only ---- */

/* The questions that take an option; `collective` stands for COLLECTIVE. "log" and "bench" are also files by themselves. */
static const struct {
    const char *option;
    size_t field;
    bool is_flag;
    const char *of[5];
} owned[] = {
    {"type", offsetof(struct kl_explain_request, type), false, {collective, "order", "traffic"}},
    {"op", offsetof(struct kl_explain_request, op), false, {collective, "order", "traffic"}},
    {"tuner", offsetof(struct kl_explain_request, tuner), false, {collective}},
    {"all", offsetof(struct kl_explain_request, all), true, {"search", "diff", "log", "bench"}},
    {"root", offsetof(struct kl_explain_request, root), false, {"order", "traffic"}},
    {"pod", offsetof(struct kl_explain_request, pod), false, {"traffic"}},
    {"element", offsetof(struct kl_explain_request, element), false, {"order"}},
    {"group", offsetof(struct kl_explain_request, group), false, {"order"}},
    {"registered", offsetof(struct kl_explain_request, registered), true, {"order"}},
    {"captured", offsetof(struct kl_explain_request, captured), true, {"order"}},
    {"vs", offsetof(struct kl_explain_request, vs), false, {"order"}},
    {"lint", offsetof(struct kl_explain_request, lint), true, {"order"}},
    {"format", offsetof(struct kl_explain_request, format), false, {"order"}},
};

static bool is_given(const struct kl_explain_request *q, size_t i)
{
    const char *field = (const char *)q + owned[i].field;

    return owned[i].is_flag ? *(const int *)field != 0 : *(const char *const *)field != NULL;
}

static bool is_owner(const char *question, size_t i)
{
    for (int k = 0; owned[i].of[k]; k++)
        if (!strcmp(owned[i].of[k], question)) return true;
    return false;
}

/* Is an option given that the question does not have? Its name and its questions are in `why`. */
static bool has_strange_option(const struct kl_explain_request *q, const char *question, char *why, size_t why_size)
{
    for (size_t i = 0; i < sizeof owned / sizeof owned[0]; i++) {
        if (!is_given(q, i) || is_owner(question, i)) continue;
        struct kl_text t = kl_text_in(why, why_size);

        kl_text_add(&t, "%s has no --%s, which belongs to", question == collective ? "a collective" : question,
                    owned[i].option);
        for (int k = 0; owned[i].of[k]; k++)
            kl_text_add(&t, "%s%s", k ? ", " : " ", owned[i].of[k] == collective ? "collectives" : owned[i].of[k]);
        return true;
    }
    return false;
}

static int answer(const struct kl_explain_question *k, struct kl_explain_request *q)
{
    if (q->releases.n) q->options.nccl = q->releases.text[q->releases.n - 1];
    ncclResult_t rc = kl_cluster_options_read(&q->options, &q->cluster);

    if (!rc) rc = k->answer(q, stdout);
    if (rc == ncclInvalidArgument) return refuse(kl_error_text());
    if (rc) fprintf(stderr, "%s\n", kl_error_text());
    return rc ? EXIT_PROBLEM : EXIT_OK;
}

/* A file of switches among the topologies: the pods of `traffic`, if those are not given otherwise. */
static void take_switches(struct kl_explain_request *q)
{
    int n = 0;

    for (int i = 0; i < q->topos.n; i++) {
        if (!kl_explain_is_switches(q->topos.text[i]))
            q->topos.text[n++] = q->topos.text[i];
        else if (!q->pod)
            q->pod = q->topos.text[i];
    }
    q->topos.n = n;
}

/* Only diff takes several machines. */
static void use_last(struct kl_explain_request *q)
{
    if (q->topos.n) q->options.topo = q->topos.text[q->topos.n - 1];
    if (q->machines.n) q->options.machine = q->machines.text[q->machines.n - 1];
}

/* Questions by themselves: their files may go on as words. `kolo explain log FILE` asks the same as `kolo explain --log FILE`. */
static const struct kl_explain_question file_questions[] = {
    {"log", 1, INT_MAX, "FILE...", NULL, kl_explain_log},
    {"bench", 1, INT_MAX, "FILE...", NULL, kl_explain_bench},
};

static const struct kl_explain_question *file_question_named(const char *name)
{
    for (size_t i = 0; i < sizeof file_questions / sizeof file_questions[0]; i++)
        if (!strcmp(file_questions[i].name, name)) return &file_questions[i];
    return NULL;
}

static int refuse_words(const struct kl_explain_question *k)
{
    char why[256];

    snprintf(why, sizeof why, "expected: %s%s%s", k->name, *k->words ? " " : "", k->words);
    return refuse(why);
}

/* `files` are those given as words. */
static int answer_file(const struct kl_explain_question *k, char **files, int n, struct kl_explain_request *q)
{
    char why[256];

    if (q->logs.n && q->benches.n) return refuse("--log and --bench are two questions");
    if (has_strange_option(q, k->name, why, sizeof why)) return refuse(why);
    if (!n && !q->logs.n && !q->benches.n) return refuse_words(k);
    use_last(q);
    q->word = (const char *const *)files;
    q->nwords = n;
    return answer(k, q);
}

/* ---- files by themselves ---- */

static bool is_readable(const char *word)
{
    return !strcmp(word, "-") || !access(word, F_OK);
}

static bool are_files(char **word, int n)
{
    for (int i = 0; i < n; i++)
        if (!is_readable(word[i])) return false;
    return n > 0;
}

static int finish(ncclResult_t rc)
{
    if (rc) fprintf(stderr, "%s\n", kl_error_text());
    return !rc ? EXIT_OK : rc == ncclInvalidArgument ? EXIT_USAGE : EXIT_PROBLEM;
}

/* A question that has files besides its words. */
static int refuse_file(const char *file)
{
    char why[512];

    snprintf(why, sizeof why, "\"%s\" is no question; use --topo %s for a topology, or kolo explain %s by itself", file,
             file, file);
    return refuse(why);
}

/* The first word is no question: files, some of which are missing, or a question that is not known. */
static int refuse_unknown(char **word, int n)
{
    int found = 0, missing = 0;
    char why[512];

    for (int i = n - 1; i >= 0; i--)
        if (is_readable(word[i]))
            found++;
        else
            missing = i;
    if (!found && !strpbrk(word[0], "./") && n == 1)
        snprintf(why, sizeof why, "no question, collective or file \"%s\"", word[0]);
    else
        snprintf(why, sizeof why, "%s: there is no such file%s", word[missing],
                 found || strpbrk(word[missing], "./") ? "" : ", question or collective");
    return refuse(why);
}

static int answer_files(char **files, int n, struct kl_explain_request *q)
{
    char why[256];

    if (has_strange_option(q, "log", why, sizeof why)) return refuse(why);
    if (q->releases.n) q->options.nccl = q->releases.text[q->releases.n - 1];
    use_last(q);
    q->word = (const char *const *)files;
    q->nwords = n;
    return finish(kl_explain_files(q, stdout));
}

static int command(int argc, char **argv)
{
    struct kl_explain_request q = {.nwords = 0};
    char why[256] = "";
    int n = gather_words(argc, argv, &q, why, sizeof why);

    if (n < 0) return refuse(why);
    if (q.help) return usage(stdout);
    if (q.logs.n || q.benches.n) return answer_file(&file_questions[q.benches.n > 0], argv, n, &q);
    if (!n)
        return refuse("a question is missing: a collective, search, pair, nics, diff, order, traffic, log or bench");
    if (file_question_named(argv[0])) return answer_file(file_question_named(argv[0]), argv + 1, n - 1, &q);

    const struct kl_explain_question *k = question_named(argv[0]);

    if (!k && are_files(argv, n)) return answer_files(argv, n, &q);
    const char *file = k && k->answer != kl_explain_traffic ? file_among(n, argv) : NULL;

    if (file) return refuse_file(file);
    if (!k) return refuse_unknown(argv, n);
    q.question = argv[0];
    if (k->answer == kl_explain_traffic) take_switches(&q);
    use_last(&q);
    q.word = (const char *const *)argv + 1;
    q.nwords = n - 1;
    if (q.nwords < k->min_words || q.nwords > k->max_words) return refuse_words(k);
    if (has_strange_option(&q, k->name, why, sizeof why)) return refuse(why);
    return answer(k, &q);
}

/* Questions, then collectives: the first word. */
static const char *operand(int i)
{
    int n = 0;

    for (const struct kl_explain_question *k = questions; k->name; k++)
        if (k->name != collective && n++ == i) return k->name;
    return i - n < KL_NCOLLS ? kl_colls[i - n].name : NULL;
}

const struct kl_command kl_command_explain = {
    "explain",  command, "explain algorithms, channels, transports, NICs, and the effect of a change",
    print_help, table,   operand};
