/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/kolo/cmd.h"

#include "base/error.h"
#include "tools/kolo/options.h"
#include "answer/output.h"
#include "tools/kolo/ras_client.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LOCAL_MS = 2000, SLACK_MS = 3000, USUAL_S = 5 };
#define ONCE UINT64_MAX

struct asked {
    int pid, timeout, json, verbose, help;
    uint64_t watch;
    const char *address;
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
    KL_OPT_HELP(struct asked, help),
    KL_OPT_END,
};

static int usage(FILE *to)
{
    fprintf(to, "usage: kolo ras [options]\n\nShow the state of the ranks of running jobs: which lag behind, which are "
                "missing. Any "
                "process of a job knows about all of it.\n\n");
    kl_opts_help(table, to);
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

static int patience_ms(const struct asked *a)
{
    return (a->timeout ? a->timeout : USUAL_S) * 1000 + SLACK_MS;
}

static ncclResult_t print_text(const struct kl_ras_process *p, const struct asked *a)
{
    char question[128], *answer;

    snprintf(question, sizeof question, "TIMEOUT %d\n%sSTATUS\n", a->timeout, a->verbose ? "VERBOSE " : "");
    KL_TRY(kl_ras_ask(p, question, patience_ms(a), &answer));
    fputs(strncmp(answer, "OK\n", 3) ? answer : answer + 3, stdout);
    free(answer);
    return ncclSuccess;
}

static ncclResult_t tell(struct found *f, const struct kl_ras_process *p, const struct asked *a)
{
    json_t *document;

    KL_TRY(ask_document(p, a, "VERBOSE STATUS", patience_ms(a), &document));
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

int cmd_ras(int argc, char **argv)
{
    struct asked a = {.watch = ONCE};
    char why[256];
    int there = 0, end = kl_opts_parse(table, argc, argv, 1, &a, why, sizeof why);

    if (end < 0) return refuse(why);
    if (a.help) return usage(stdout);
    if (end < argc) return usage(stderr);
    if (!a.watch) return refuse("-w 0 leaves no time between two questions; leave it out to ask once");
    if (a.address && strlen(a.address) >= sizeof((struct kl_ras_process *)0)->name)
        return refuse("--address is too long");
    int status = look(&a, &there);
    while (a.watch != ONCE && there) {
        fflush(stdout);
        usleep((useconds_t)(a.watch * 1000));
        printf(isatty(STDOUT_FILENO) ? "\x1b[H\x1b[J" : "\n");
        status = look(&a, &there);
    }
    return status;
}
