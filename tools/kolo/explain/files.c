/* SPDX-License-Identifier: Apache-2.0 */
/** files.c - `kolo explain FILE...`: the question follows from the files' content. */
#include "answer/record.h"
#include "base/error.h"
#include "base/text.h"
#include "tools/kolo/explain/explain.h"
#include "topo/input.h"
#include "topo/xml.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { FILES = 4096 };

static const char LOG[] = "a log of NCCL", TABLE[] = "a table of nccl-tests",
                  LOG_AND_TABLE[] = "a log of NCCL with a table, which follows";

/* Files by their kind; a text may be a log and a table. */
struct sorted {
    const char *machine[FILES], *log[FILES], *table[FILES], *record[FILES], *switches;
    int machines, logs, tables, records;
    enum kl_input_kind kind, kind_of_record, kind_of_switches; /* of the first */
};

/* Standard input is read twice: to tell its kind, and to answer. Its text goes to memory that takes its place. */
static ncclResult_t keep_input(const char *text, size_t bytes)
{
    int fd = memfd_create("kolo-input", MFD_CLOEXEC);
    ssize_t written = 0;

    for (size_t at = 0; fd >= 0 && at < bytes && written >= 0; at += (size_t)(written > 0 ? written : 0))
        written = write(fd, text + at, bytes - at);
    bool kept = fd >= 0 && written >= 0 && !lseek(fd, 0, SEEK_SET) && dup2(fd, STDIN_FILENO) == STDIN_FILENO;

    if (fd >= 0) close(fd);
    clearerr(stdin);
    return kept ? ncclSuccess : KL_FAIL_ERRNO("standard input cannot be kept");
}

static ncclResult_t tell(const char *file, struct kl_input *in)
{
    char *text;
    size_t bytes;

    KL_TRY(kl_xml_read(file, &text, &bytes));
    *in = kl_input_of(text, bytes);
    ncclResult_t rc = strcmp(file, "-") ? ncclSuccess : keep_input(text, bytes);

    free(text);
    return rc;
}

static ncclResult_t refuse(const char *file, enum kl_input_kind kind)
{
    const char *use = kl_input_use(kind);

    return KL_FAIL(
        ncclInvalidUsage,
        "%s is %s%s%s; kolo explain reads topology files, text of nvidia-smi and lspci, trees of switches, logs, "
        "tables, flight records, status of RAS, reports of Inspector and traces",
        file, kl_input_name(kind), use ? "; " : "", use ? use : "");
}

static void add_record(struct sorted *s, const char *file, enum kl_input_kind kind)
{
    if (!s->records) s->kind_of_record = kind;
    s->record[s->records++] = file;
}

static ncclResult_t sort(const struct kl_explain_request *q, struct sorted *s)
{
    if (q->nwords > FILES) return KL_FAIL(ncclInvalidArgument, "more than %d files", FILES);
    for (int i = 0; i < q->nwords; i++) {
        struct kl_input in;

        KL_TRY(tell(q->word[i], &in));
        if (!i) s->kind = in.kind;
        if (kl_input_is_machine(in.kind))
            s->machine[s->machines++] = q->word[i];
        else if (in.kind == KL_INPUT_LOG)
            s->log[s->logs++] = q->word[i];
        else if (kl_record_reads(in.kind))
            add_record(s, q->word[i], in.kind);
        else if (kl_input_is_switches(in.kind))
            s->switches = q->word[i], s->kind_of_switches = in.kind;
        else if (in.kind != KL_INPUT_TABLE && in.kind != KL_INPUT_TABLE_JSON)
            return refuse(q->word[i], in.kind);
        if (in.kind == KL_INPUT_TABLE || in.kind == KL_INPUT_TABLE_JSON || in.table) s->table[s->tables++] = q->word[i];
    }
    return ncclSuccess;
}

/* Files beside records answer other questions. */
static ncclResult_t check_records(const struct sorted *s)
{
    if (!s->records || !(s->machines + s->logs + s->tables)) return ncclSuccess;
    return KL_FAIL(ncclInvalidArgument,
                   "%s is %s: give records of calls by themselves, without logs, tables and topologies", s->record[0],
                   kl_input_name(s->kind_of_record));
}

static ncclResult_t ask_files(struct kl_explain_request *r, const char *const *file, int n, const char *kind,
                              ncclResult_t (*answer)(const struct kl_explain_request *, FILE *), FILE *to);

/* Alone: pods of hosts. Beside a machine they belong to a question. */
static ncclResult_t ask_switches(struct kl_explain_request *r, const struct sorted *s, FILE *to)
{
    if (r->nwords == 1)
        return ask_files(r, &s->switches, 1, kl_input_name(s->kind_of_switches), kl_explain_switches, to);
    return KL_FAIL(ncclInvalidArgument,
                   "%s is %s: give it by itself, or to a question: kolo explain traffic all_reduce 64M --topo MACHINE "
                   "--pod %s",
                   s->switches, kl_input_name(s->kind_of_switches), s->switches);
}

/* The beginning of the first line. */
static void print_kind(const char *const *file, int n, const char *kind, FILE *to)
{
    if (n == 1)
        fprintf(to, "%s, read as %s: ", kl_text_input(file[0]), kind);
    else
        fprintf(to, "%d files, read as %s: ", n, kind);
}

/* Ask the question; the first line of the answer begins with the kind of its files. */
static ncclResult_t ask(struct kl_explain_request *r, const char *const *file, int n, const char *kind,
                        ncclResult_t (*answer)(const struct kl_explain_request *, FILE *), FILE *to)
{
    char *text = NULL;
    size_t bytes = 0;
    FILE *memory = open_memstream(&text, &bytes);

    if (!memory) return KL_NOMEM("an answer");
    ncclResult_t rc = kl_cluster_options_read(&r->options, &r->cluster);

    if (!rc) rc = answer(r, memory);
    fclose(memory);
    if (!rc && kind && !r->json) print_kind(file, n, kind, to);
    if (!rc) fwrite(text, 1, bytes, to);
    free(text);
    return rc;
}

static ncclResult_t ask_files(struct kl_explain_request *r, const char *const *file, int n, const char *kind,
                              ncclResult_t (*answer)(const struct kl_explain_request *, FILE *), FILE *to)
{
    r->word = file;
    r->nwords = n;
    return ask(r, file, n, kind, answer, to);
}

/* Machines alone: the search of one, or the differences between two. */
static ncclResult_t ask_machines(struct kl_explain_request *r, const struct sorted *s, FILE *to)
{
    if (s->machines > 2) return KL_FAIL(ncclInvalidArgument, "%d topologies: give one, or two to compare", s->machines);
    r->nwords = 0;
    r->topos = (struct kl_opt_list){{s->machine[0], s->machine[1]}, s->machines};
    r->options.topo = s->machine[s->machines - 1];
    if (s->machines == 2) return ask(r, s->machine, 2, "topologies", kl_explain_diff, to);
    /* answers about other texts name the kind themselves */
    return ask(r, s->machine, 1, s->kind == KL_INPUT_TOPOLOGY ? kl_input_name(s->kind) : NULL, kl_explain_search, to);
}

static ncclResult_t answer(struct kl_explain_request *r, const struct sorted *s, bool json, FILE *to)
{
    if (s->switches) return ask_switches(r, s, to);
    KL_TRY(check_records(s));
    if (s->records) return ask_files(r, s->record, s->records, kl_input_name(s->kind_of_record), kl_explain_record, to);
    if (!s->logs && !s->tables) return ask_machines(r, s, to);
    if (s->machines > 1)
        return KL_FAIL(ncclInvalidArgument, "%d topologies beside a log or table: give one", s->machines);
    if (s->machines) r->options.topo = s->machine[0];
    if (s->logs) KL_TRY(ask_files(r, s->log, s->logs, s->tables ? LOG_AND_TABLE : LOG, kl_explain_log, to));
    if (!s->tables || (s->logs && json)) return ncclSuccess; /* JSON is one document */
    if (s->logs) fprintf(to, "\n");
    return ask_files(r, s->table, s->tables, TABLE, kl_explain_bench, to);
}

ncclResult_t kl_explain_files(const struct kl_explain_request *q, FILE *to)
{
    struct kl_explain_request r = *q;
    struct sorted *s = calloc(1, sizeof *s);
    ncclResult_t rc = s ? sort(q, s) : KL_NOMEM("names of files");

    if (!rc) rc = answer(&r, s, q->json, to);
    free(s);
    return rc;
}
