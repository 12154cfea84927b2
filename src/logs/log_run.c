/* SPDX-License-Identifier: Apache-2.0 */
/** log_run.c - runs of nccl-tests and rccl-tests in a log: heads, lists of ranks, rows, failures. */
#include "logs/log_make.h"

#include <ctype.h>
#include <string.h>

static struct kl_log_run *last_run(struct kl_log *log, struct kl_log_at at)
{
    struct kl_log_run *r = log->nrun ? &log->run[log->nrun - 1] : NULL;

    return r && r->at.file == at.file ? r : NULL;
}

/* The run that a line belongs to; `begins`: a run that has ranks or rows is over. */
static struct kl_log_run *run_of(struct kl_log *log, struct kl_log_at at, bool begins)
{
    struct kl_log_run *r = last_run(log, at);

    log->tests = true;
    if (r && !(begins && (r->ranks || r->rows || r->failure))) return r;
    r = KL_LOG_NEW(log, run);
    if (r) r->at = at;
    return r;
}

static bool is_head(const char *text)
{
    static const char *const heads[] = {"nThread ", "nccl-tests version", "rccl-tests version",
                                        "Collective test starting", "Using devices"};

    if (*text != '#') return false;
    text += 1 + strspn(text + 1, " ");
    for (size_t i = 0; i < sizeof heads / sizeof heads[0]; i++)
        if (!strncmp(text, heads[i], strlen(heads[i]))) return true;
    return false;
}

/* "#  Rank  0 Group  0 Pid 13510 on ..." */
static bool read_rank(struct kl_log *log, const char *text, struct kl_log_at at)
{
    const char *rank = *text == '#' ? kl_log_after(text, " Rank ") : NULL;
    int number;

    if (!rank || !strstr(rank, " Pid ") || !strstr(rank, " device ")) return false;
    rank += strspn(rank, " ");
    if (!kl_log_int(&rank, &number)) return false;
    struct kl_log_run *r = run_of(log, at, false);

    if (r && r->ranks && !number) r = run_of(log, at, true); /* another list */
    if (r) r->ranks++;
    return true;
}

/* "  1048576  262144  float  sum ..." */
static bool is_row(const char *text)
{
    int numbers = 0;

    for (text += strspn(text, " "); isdigit((unsigned char)*text) && numbers < 2; numbers++) {
        text += strspn(text, "0123456789");
        if (*text != ' ') return false;
        text += strspn(text, " ");
    }
    return numbers == 2 && isalpha((unsigned char)*text) && strchr(text, '.');
}

static bool is_failure(const char *text)
{
    return strstr(text, "Test CUDA failure") || strstr(text, "Test NCCL failure") || strstr(text, "Test HIP failure") ||
           strstr(text, "Test failure common.cu");
}

static void read_failure(struct kl_log *log, const struct kl_log_line *line)
{
    struct kl_log_run *r = run_of(log, line->at, false);

    if (!r || r->failure) return;
    r->failure = kl_log_keep(log, line->text, strlen(line->text));
    r->failed_at = line->at;
}

/* Lists and failures have more to tell: other readers look at them, too. */
bool kl_log_read_run(struct kl_log *log, int origin, const struct kl_log_line *line)
{
    const char *text = line->level == KL_LOG_PLAIN ? kl_log_skip_prefix(line->text) : "";
    struct kl_log_run *r;

    (void)origin;
    if (is_head(text)) {
        run_of(log, line->at, true);
        return !strstr(text, "-library=");
    }
    if (read_rank(log, text, line->at)) return false;
    if (is_failure(text)) read_failure(log, line);
    if (!is_row(text) || !(r = last_run(log, line->at))) return false;
    r->rows++;
    r->last_row = line->at;
    return true;
}
