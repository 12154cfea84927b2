/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/kolo/cmd.h"

#include "answer/output.h"
#include "answer/record.h"
#include "base/error.h"
#include "tools/kolo/explain/record_print.h"
#include "tools/kolo/options.h"
#include "tools/kolo/ras_client.h"
#include "tools/kolo/ras_nccl.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LOCAL_MS = 2000, SLACK_MS = 3000, USUAL_S = 5, AGAIN_MS = 1000 };
#define ONCE UINT64_MAX

struct asked {
    int pid, timeout, json, verbose, help;
    uint64_t watch;
    const char *address;
    const char *nccl, *format, *from, *serve;
    struct kl_opt_list faults;
};

static const struct kl_opt table[] = {
    {0, "json", KL_OPT_FLAG, offsetof(struct asked, json), 0, 0, NULL, "print JSON"},
    {'v', "verbose", KL_OPT_FLAG, offsetof(struct asked, verbose), 0, 0, NULL,
     "list every rank of large communicators"},
    {'w', "watch", KL_OPT_TIME, offsetof(struct asked, watch), 0, 0, "SECONDS",
     "ask again every SECONDS seconds, until no process is left"},
    {0, "pid", KL_OPT_INT, offsetof(struct asked, pid), 1, 1 << 30, "PID",
     "ask this process (default: all on this host)"},
    {0, "address", KL_OPT_TEXT, offsetof(struct asked, address), 0, 0, "HOST:PORT",
     "ask the process that listens there (NCCL_RAS_ADDR); it answers callers on its own host only"},
    {'t', "timeout", KL_OPT_INT, offsetof(struct asked, timeout), 1, 3600, "SECONDS",
     "how long processes wait for others (default: 2)"},
    {0, "nccl", KL_OPT_TEXT, offsetof(struct asked, nccl), 0, 0, "HOST[:PORT]",
     "ask NCCL's RAS service of a running job, at its port 28028, and name the ranks that are behind, silent or dead"},
    {0, "format", KL_OPT_TEXT, offsetof(struct asked, format), 0, 0, "FORMAT",
     "text, json, or nccl: the JSON of NCCL's service, byte by byte"},
    {0, "from", KL_OPT_TEXT, offsetof(struct asked, from), 0, 0, "FILE",
     "with --format nccl or --serve: a status in JSON, instead of a job's"},
    {0, "fault", KL_OPT_LIST, offsetof(struct asked, faults), 0, 0, "RANK=FAULT",
     "with --format nccl or --serve: dead, unresponsive, behind[:N], init, error[:CODE], abort, finalize, destroy"},
    {0, "serve", KL_OPT_TEXT, offsetof(struct asked, serve), 0, 0, "HOST[:PORT]",
     "be a double of NCCL's service, with these faults, until it is ended"},
    KL_OPT_HELP(struct asked, help),
    KL_OPT_END,
};

static void print_help(FILE *to)
{
    fprintf(to, "usage: kolo ras [options]\n\nShow the state of the ranks of running jobs: which lag behind, which are "
                "missing. Any "
                "process of a job knows about all of it.\n\n");
    kl_opts_help(table, to);
}

static int usage(FILE *to)
{
    print_help(to);
    return to == stdout ? EXIT_OK : EXIT_USAGE;
}

static int refuse(const char *why)
{
    fprintf(stderr, "kolo ras: %s\n", why);
    return EXIT_USAGE;
}

/* ---- one job after the other ---- */

/* The findings so far. */
struct found {
    json_t *jobs, *silent;
    json_t *communicators; /* told of: an object by their hashes */
    bool problem;
};

/* An answer is lines of replies, and then a document. */
static json_t *document_of(const char *answer)
{
    const char *begin = strchr(answer, '{');

    return begin ? json_loads(begin, 0, NULL) : NULL;
}

static json_t *communicators_of(const json_t *document)
{
    return json_object_get(document, "communicators");
}

static const char *text_of(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));

    return text ? text : "";
}

/* Does the document have a communicator that no earlier one had? Communicators without a process do not count. */
static bool is_news(const struct found *f, const json_t *document)
{
    size_t i;
    json_t *c;

    json_array_foreach(communicators_of(document), i,
                       c) if (!json_object_get(f->communicators, text_of(c, "hash"))) return true;
    return false;
}

static void note(struct found *f, const json_t *document)
{
    size_t i;
    json_t *c;

    json_array_foreach(communicators_of(document), i, c)
    {
        json_object_set_new(f->communicators, text_of(c, "hash"), json_true());
        f->problem |= strcmp(text_of(c, "verdict"), "OK") != 0;
    }
}

static ncclResult_t ask_document(const struct kl_ras_process *p, const struct asked *a, const char *what, int ms,
                                 json_t **document)
{
    char question[128], *answer;

    snprintf(question, sizeof question, "TIMEOUT %d\nSET FORMAT json\n%s\n", a->timeout, what);
    KL_TRY(kl_ras_ask(p, question, ms, &answer));
    *document = document_of(answer);
    free(answer);
    return *document ? ncclSuccess : KL_FAIL(ncclRemoteError, "%s gives no report", p->name);
}

static int timeout_ms(const struct asked *a)
{
    return (a->timeout ? a->timeout : USUAL_S) * 1000 + SLACK_MS;
}

static ncclResult_t print_text(const struct kl_ras_process *p, const struct asked *a)
{
    char question[128], *answer;

    snprintf(question, sizeof question, "TIMEOUT %d\n%sSTATUS\n", a->timeout, a->verbose ? "VERBOSE " : "");
    KL_TRY(kl_ras_ask(p, question, timeout_ms(a), &answer));
    fputs(strncmp(answer, "OK\n", 3) ? answer : answer + 3, stdout);
    free(answer);
    return ncclSuccess;
}

static ncclResult_t tell(struct found *f, const struct kl_ras_process *p, const struct asked *a)
{
    json_t *document;

    KL_TRY(ask_document(p, a, "VERBOSE STATUS", timeout_ms(a), &document));
    note(f, document);
    if (!a->json && json_array_size(f->jobs)) printf("\n");
    json_array_append_new(f->jobs, document);
    return a->json ? ncclSuccess : print_text(p, a);
}

/* Query the other processes even if one does not answer. */
static void ask_one(struct found *f, const struct kl_ras_process *p, const struct asked *a)
{
    json_t *own;
    ncclResult_t rc = ask_document(p, a, "LOCAL STATUS", LOCAL_MS, &own);

    if (!rc) {
        if (is_news(f, own)) rc = tell(f, p, a);
        json_decref(own);
    }
    if (!rc) return;
    fprintf(stderr, "kolo ras: %s\n", kl_error_text());
    json_array_append_new(f->silent, json_integer(p->pid));
    f->problem = true;
}

static ncclResult_t whom_to_ask(const struct asked *a, struct kl_ras_process **process, int *n)
{
    int kept = 0;

    if (a->address) {
        *process = calloc(1, sizeof **process);
        if (!*process) return KL_NOMEM("an address");
        snprintf((*process)->name, sizeof(*process)->name, "%s", a->address);
        *n = 1;
        return ncclSuccess;
    }
    KL_TRY(kl_ras_processes(process, n));
    for (int i = 0; i < *n; i++)
        if (!a->pid || (*process)[i].pid == a->pid) (*process)[kept++] = (*process)[i];
    *n = kept;
    return ncclSuccess;
}

static int finish(struct found *f, const struct asked *a, int asked_of)
{
    int status = f->problem || !asked_of ? EXIT_PROBLEM : EXIT_OK;

    if (!asked_of && a->pid)
        fprintf(stderr, "kolo ras: process %d has no communicator, or is not here\n", a->pid);
    else if (!asked_of)
        fprintf(stderr, "kolo ras: no process on this host has a communicator\n");
    json_decref(f->communicators);
    json_t *all = json_pack("{s:o, s:o}", "jobs", f->jobs, "silent", f->silent);
    if (!a->json || !asked_of)
        json_decref(all);
    else if (kl_output_json(all, stdout))
        status = EXIT_PROBLEM;
    return status;
}

/* `*asked_of`: how many processes there are. */
static int look(const struct asked *a, int *asked_of)
{
    struct found f = {.jobs = json_array(), .silent = json_array(), .communicators = json_object()};
    struct kl_ras_process *process = NULL;
    int quiet = kl_error_quiet(1);
    ncclResult_t rc = whom_to_ask(a, &process, asked_of);

    for (int i = 0; i < *asked_of && !rc; i++) ask_one(&f, &process[i], a);
    free(process);
    kl_error_quiet(quiet);
    if (rc) fprintf(stderr, "kolo ras: %s\n", kl_error_text());
    return finish(&f, a, *asked_of);
}

/* ---- NCCL's service ---- */

static int fail(void)
{
    fprintf(stderr, "kolo ras: %s\n", kl_error_text());
    return EXIT_PROBLEM;
}

static int print_answer(const struct kl_record_answer *answer, const struct asked *a)
{
    if (a->json)
        return kl_record_json(answer, stdout) || kl_record_has_problem(&answer->record) ? EXIT_PROBLEM : EXIT_OK;
    kl_record_print(answer, a->verbose, stdout);
    return kl_record_has_problem(&answer->record) ? EXIT_PROBLEM : EXIT_OK;
}

/* The status is read in the same way as a file. */
static ncclResult_t ask_service(const struct asked *a, struct kl_record_answer *answer)
{
    char *text = NULL;

    KL_TRY(kl_ras_nccl_ask(a->nccl, a->timeout ? a->timeout : USUAL_S, timeout_ms(a), &text));
    const struct kl_named_text t = {a->nccl, text, strlen(text)};
    ncclResult_t rc = kl_record_answer_make(&t, 1, answer);

    free(text);
    return rc;
}

static bool is_behind(const struct kl_record *r)
{
    return kl_record_has_problem(r) && r->finding[0].code == KL_RECORD_BEHIND;
}

/* Ranks are not looked at in the same moment: where some are behind, ask again, to see whether they move. */
static ncclResult_t ask_twice(const struct asked *a, struct kl_record_answer *first, struct kl_record_answer *second)
{
    KL_TRY(ask_service(a, first));
    if (!is_behind(&first->record)) return ncclSuccess;
    usleep(AGAIN_MS * 1000);
    KL_TRY(ask_service(a, second));
    kl_record_compare(&second->record, &first->record);
    return ncclSuccess;
}

static int ask_nccl(const struct asked *a)
{
    struct kl_record_answer *answer = calloc(2, sizeof *answer);
    const int quiet = kl_error_quiet(1);
    ncclResult_t rc = answer ? ask_twice(a, &answer[0], &answer[1]) : KL_NOMEM("an answer");

    kl_error_quiet(quiet);
    const int status = rc ? fail() : print_answer(&answer[answer[1].record.nfile > 0], a);

    for (int i = 0; i < 2 && answer; i++) kl_record_answer_fini(&answer[i]);
    free(answer);
    return status;
}

/* The status of a file, or of the first job that is found. */
static ncclResult_t find_report(const struct asked *a, json_t **report)
{
    struct kl_ras_process *process = NULL;
    json_error_t error;
    int n = 0;

    if (a->from) {
        *report = json_load_file(a->from, 0, &error);
        return *report ? ncclSuccess : KL_FAIL(ncclInvalidUsage, "%s:%d: %s", a->from, error.line, error.text);
    }
    ncclResult_t rc = whom_to_ask(a, &process, &n);

    if (!rc && !n)
        rc = KL_FAIL(ncclInvalidUsage, "no process on this host has a communicator; --from FILE gives a status");
    if (!rc) rc = ask_document(&process[0], a, "VERBOSE STATUS", timeout_ms(a), report);
    free(process);
    return rc;
}

static int print_nccl(const struct asked *a)
{
    struct kl_ras_fault fault[KL_OPT_LIST_MAX];
    json_t *report = NULL;
    const int quiet = kl_error_quiet(1);
    ncclResult_t rc = ncclSuccess;

    for (int i = 0; i < a->faults.n && !rc; i++) rc = kl_ras_fault_read(a->faults.text[i], &fault[i]);
    if (!rc) rc = find_report(a, &report);
    if (!rc) rc = kl_ras_faults_check(report, fault, a->faults.n);
    if (!rc && a->serve)
        rc = kl_ras_nccl_serve(a->serve, report, fault, a->faults.n);
    else if (!rc)
        rc = kl_ras_nccl_print(report, fault, a->faults.n, time(NULL), stdout);
    json_decref(report);
    kl_error_quiet(quiet);
    if (rc == ncclInvalidArgument) return refuse(kl_error_text());
    return rc ? fail() : EXIT_OK;
}

static const char *wrong_of(const struct asked *a)
{
    const bool nccl = a->format && !strcmp(a->format, "nccl");

    if (!a->watch) return "-w 0 leaves no time between two questions; leave it out to ask once";
    if (a->address && strlen(a->address) >= sizeof((struct kl_ras_process *)0)->name) return "--address is too long";
    if (a->format && !nccl && strcmp(a->format, "json") && strcmp(a->format, "text"))
        return "--format is text, json or nccl";
    if (!nccl && !a->serve && (a->from || a->faults.n)) return "--from and --fault belong to --format nccl or --serve";
    if (a->nccl && (nccl || a->serve || a->address || a->pid))
        return "--nccl asks one service, and prints text or --json";
    return NULL;
}

/* stdout escapes control characters; these are meant. */
static void begin_page(void)
{
    static const char home_and_clear[] = "\x1b[H\x1b[J";

    if (!isatty(STDOUT_FILENO) || write(STDOUT_FILENO, home_and_clear, sizeof home_and_clear - 1) < 0) printf("\n");
}

static int watch(const struct asked *a)
{
    int there = 0, status = look(a, &there);

    while (a->watch != ONCE && there) {
        fflush(stdout);
        usleep((useconds_t)(a->watch * 1000));
        begin_page();
        status = look(a, &there);
    }
    return status;
}

static int command(int argc, char **argv)
{
    struct asked a = {.watch = ONCE};
    char why[256];
    const int end = kl_opts_parse(table, argc, argv, 1, &a, why, sizeof why);

    if (end < 0) return refuse(why);
    if (a.help) return usage(stdout);
    if (end < argc) return usage(stderr);
    if (wrong_of(&a)) return refuse(wrong_of(&a));
    a.json |= a.format && !strcmp(a.format, "json");
    if (a.nccl) return ask_nccl(&a);
    return a.serve || (a.format && !strcmp(a.format, "nccl")) ? print_nccl(&a) : watch(&a);
}

const struct kl_command kl_command_ras = {
    "ras",      command, "show the state of the ranks of running jobs: which lag behind, which are missing",
    print_help, table,   NULL};
