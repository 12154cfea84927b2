/* SPDX-License-Identifier: Apache-2.0 */
/** torch.c - a flight record of PyTorch (TORCH_FR_BUFFER_SIZE, TORCH_NCCL_DUMP_ON_TIMEOUT): a pickle or JSON, one file per rank. */
#include "logs/record/make.h"
#include "logs/record/pickle.h"

#include "base/error.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TENSORS = 1 << 16, DIMENSIONS = 64, FRAMES = 256, RANKS = 1 << 20 };

/* ---- groups ---- */

/* "[0, 1, 2]", as a text or a list, without blanks and brackets. */
static char *plain_ranks(const json_t *value)
{
    char *text = json_is_array(value) ? json_dumps(value, JSON_COMPACT)
                                      : strdup(json_is_string(value) ? json_string_value(value) : "");
    char *to = text;

    if (!text) return NULL;
    for (const char *from = text; *from; from++)
        if (isdigit((unsigned char)*from) || *from == ',') *to++ = *from;
    *to = 0;
    return text;
}

static ncclResult_t list_ranks(struct kl_record *r, int group)
{
    int first = r->nlist, n = 0;

    for (const char *at = r->group[group].listed; *at && n < RANKS; n++) {
        char *end;
        const long rank = strtol(at, &end, 10);

        if (end == at || rank < 0 || rank > RANKS) break;
        KL_TRY(kl_record_add_rank(r, (int)rank));
        at = *end == ',' ? end + 1 : end;
    }
    r->group[group].first_listed = first;
    r->group[group].nlisted = n;
    if (n) r->group[group].size = n;
    return ncclSuccess;
}

static const json_t *config_of(const json_t *document, const char *id)
{
    return json_object_get(json_object_get(document, "pg_config"), id);
}

static ncclResult_t find_group(struct kl_record *r, const json_t *document, const char *id, const char *desc,
                               int *group)
{
    const json_t *config = config_of(document, id);
    char *listed = plain_ranks(json_object_get(config, "ranks"));
    const int before = r->ngroup;

    if (!listed) return KL_NOMEM("the ranks of a group");
    ncclResult_t rc = kl_record_group_of(r, id, listed, group);

    free(listed);
    if (rc || r->ngroup == before) return rc;
    r->group[*group].desc = kl_record_name(r, *desc ? desc : kl_json_get_text(config, "desc"));
    return list_ranks(r, *group);
}

static ncclResult_t find_member(struct kl_record *r, int file, const json_t *document, const char *id, const char *desc,
                                int *member)
{
    const int rank = r->file[file].rank;
    char key[32];
    int group;

    *member = kl_record_member_of_id(r, file, id); /* a file lists the ranks of a group once, and these may be many */
    if (*member >= 0) return ncclSuccess;
    KL_TRY(find_group(r, document, id, desc, &group));
    *member = kl_record_member_of(r, group, rank, file);
    if (*member >= 0) return ncclSuccess;
    KL_TRY(kl_record_new_member(r, group, rank, file, member));
    snprintf(key, sizeof key, "rank %d", rank);
    KL_TRY(kl_record_proc_of(r, key, &r->member[*member].proc));
    struct kl_record_proc *p = &r->proc[r->member[*member].proc];

    p->rank = rank;
    p->recorded = true;
    return ncclSuccess;
}

/* Groups that the rank has, also those in which it called nothing. */
static ncclResult_t add_groups(struct kl_record *r, int file, const json_t *document)
{
    json_t *config = json_object_get(document, "pg_config"), *value;
    const char *id;
    int member;

    json_object_foreach(config, id, value)
    {
        if (*id) KL_TRY(find_member(r, file, document, id, kl_json_get_text(value, "desc"), &member));
    }
    return ncclSuccess;
}

/* ---- an entry ---- */

/* Elements of all tensors; -1: not told. */
static int64_t elements(const json_t *sizes)
{
    int64_t sum = 0;

    if (!json_is_array(sizes)) return -1;
    for (size_t i = 0; i < json_array_size(sizes) && i < TENSORS; i++) {
        const json_t *tensor = json_array_get(sizes, i);
        int64_t n = 1;

        for (size_t d = 0; d < json_array_size(tensor) && d < DIMENSIONS; d++)
            if (__builtin_mul_overflow(n, json_integer_value(json_array_get(tensor, d)), &n)) return -1;
        if (__builtin_add_overflow(sum, n, &sum)) return -1;
    }
    return sum;
}

static enum kl_call_state state_of(const json_t *entry)
{
    const char *state = kl_json_get_text(entry, "state");

    if (!strcmp(state, "completed") || kl_json_get_int(entry, "time_discovered_completed_ns", 0) > 0)
        return KL_CALL_ENDED;
    if (!strcmp(state, "started")) return KL_CALL_STARTED;
    return kl_json_get_true(entry, "retired") ? KL_CALL_ENDED
                                              : KL_CALL_QUEUED; /* backends without states retire only */
}

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash ? slash + 1 : path;
}

/* The innermost frame of the program itself. */
static const char *where_of(struct kl_record *r, const json_t *entry)
{
    const json_t *frames = json_object_get(entry, "frames");

    for (size_t i = 0; i < json_array_size(frames) && i < FRAMES; i++) {
        const json_t *f = json_array_get(frames, i);
        const char *file = kl_json_get_text(f, "filename");
        char text[256];

        if (!*file || strstr(file, "/torch/") || !strncmp(file, "torch/", 6)) continue;
        snprintf(text, sizeof text, "%.100s, %.120s:%d", kl_json_get_text(f, "name"), base_name(file),
                 (int)kl_json_get_int(f, "line", 0));
        return kl_record_name(r, text);
    }
    return "";
}

/* "send 0->1", "recv 1<-0" */
static bool read_peer(const char *text, const char *verb, const char *arrow, int *peer)
{
    int64_t own, other;

    if (!kl_scan_word(&text, verb) || !kl_scan_int(&text, &own) || !kl_scan_word(&text, arrow) ||
        !kl_scan_int(&text, &other) || other > RANKS)
        return false;
    *peer = (int)other;
    return true;
}

/* "nccl:send 0->1", "gloo:all_reduce" */
static void read_name(struct kl_record *r, const char *text, struct kl_record_call *c)
{
    const char *colon = strchr(text, ':');

    if (colon) text = colon + 1;
    c->name = kl_record_name_n(r, text, strcspn(text, " "));
    if (read_peer(text, "send ", "->", &c->peer))
        c->kind = KL_CALL_SEND;
    else if (read_peer(text, "recv ", "<-", &c->peer))
        c->kind = KL_CALL_RECV;
    else if (!strcmp(c->name, "coalesced"))
        c->kind = KL_CALL_BATCH;
}

/* A member's peer is told as a rank of the group. */
static void use_ranks_of_job(const struct kl_record *r, struct kl_record_call *c)
{
    const struct kl_record_group *g = &r->group[r->member[c->member].group];

    if (c->peer >= 0 && c->peer < g->nlisted) c->peer = r->list[g->first_listed + c->peer];
}

static const char *first_text(struct kl_record *r, const json_t *entry, const char *key)
{
    return kl_record_name(r, json_string_value(json_array_get(json_object_get(entry, key), 0)));
}

static void read_call(struct kl_record *r, const json_t *e, struct kl_record_call *c)
{
    const bool message = kl_json_get_true(e, "is_p2p");

    read_name(r, kl_json_get_text(e, "profiling_name"), c);
    use_ranks_of_job(r, c);
    c->state = state_of(e);
    c->number = kl_json_get_int(e, message || c->kind != KL_CALL_COLLECTIVE ? "p2p_seq_id" : "collective_seq_id", -1);
    if (c->kind == KL_CALL_BATCH && !message) c->number = kl_json_get_int(e, "collective_seq_id", -1);
    if (c->number < 0) c->number = kl_json_get_int(e, "seq_id", -1); /* before 2.4 */
    c->in = elements(json_object_get(e, "input_sizes"));
    c->out = elements(json_object_get(e, "output_sizes"));
    c->type = first_text(r, e, "input_dtypes");
    if (!*c->type) c->type = first_text(r, e, "output_dtypes");
    c->where = where_of(r, e);
    c->begun_us = (double)kl_json_get_int(e, "time_created_ns", 0) / 1e3;
    const double ms = kl_json_get_real(e, "duration_ms", -1);

    if (ms >= 0) c->took_us = ms * 1e3;
}

/* Calls of a batch have no state of their own: the entry at its end has. */
static void end_batch(struct kl_record *r, int batch, int first)
{
    const struct kl_record_call *end = &r->call[batch];

    for (int i = batch - 1; i >= first; i--) {
        struct kl_record_call *c = &r->call[i];

        if (c->member != end->member) continue;
        if (c->kind == KL_CALL_BATCH || c->number != end->number) break;
        if (c->state < end->state) c->state = end->state;
    }
}

static ncclResult_t add_entry(struct kl_record *r, int file, const json_t *document, const json_t *e, int first)
{
    const json_t *group = json_object_get(e, "process_group");
    const char *id = json_string_value(json_array_get(group, 0)), *desc = json_string_value(json_array_get(group, 1));
    int member, call;

    if (!id) return ncclSuccess;
    KL_TRY(find_member(r, file, document, id, desc ? desc : "", &member));
    KL_TRY(kl_record_new_call(r, member, &call));
    read_call(r, e, &r->call[call]);
    if (r->call[call].state != KL_CALL_QUEUED && strncmp(kl_json_get_text(e, "profiling_name"), "gloo", 4))
        r->file[file].starts_known = true;
    if (r->call[call].kind == KL_CALL_BATCH) end_batch(r, call, first);
    return ncclSuccess;
}

/* ---- the file ---- */

/* The number at the end of a file's name, before its extension: "nccl_trace_rank_12", "rank3.json". */
static int rank_of_name(const char *name)
{
    const char *base = base_name(name), *end = base + strcspn(base, ".");
    const char *at = end;

    if (at == base) return -1;
    while (at > base && isdigit((unsigned char)at[-1])) at--;
    return at < end && end - at < 8 ? (int)strtol(at, NULL, 10) : -1;
}

static int files_before(const struct kl_record *r, int file)
{
    int n = 0;

    for (int i = 0; i < file; i++) n += r->file[i].kind == r->file[file].kind;
    return n;
}

static void read_facts(struct kl_record *r, int file, const json_t *document)
{
    struct kl_record_file *f = &r->file[file];

    f->version = kl_record_name(r, kl_json_get_text(document, "version"));
    const int64_t rank = kl_json_get_int(document, "rank", rank_of_name(f->name));

    f->rank = rank >= 0 && rank < RANKS ? (int)rank : -1;
    f->rank_guessed = f->rank < 0;
    if (f->rank < 0) f->rank = files_before(r, file);
}

static ncclResult_t read_document(struct kl_record *r, int file, const json_t *document)
{
    const json_t *entries = json_object_get(document, "entries");
    const int first = r->ncall;
    size_t i;
    json_t *e;

    if (!json_is_object(document) || (!entries && !json_object_get(document, "pg_config")))
        return KL_FAIL(ncclInvalidUsage,
                       "%s: no flight record of PyTorch: neither \"entries\" nor \"pg_config\" at its top",
                       r->file[file].name);
    read_facts(r, file, document);
    KL_TRY(add_groups(r, file, document));
    json_array_foreach(entries, i, e) KL_TRY(add_entry(r, file, document, e, first));
    return ncclSuccess;
}

ncclResult_t kl_record_add_torch(struct kl_record *r, int file, const char *text, size_t bytes)
{
    const char *name = r->file[file].name;
    json_t *document;

    if (bytes && (*text == '\x80' || *text == '(' || *text == '}')) /* '(' and '}': protocols 0 and 1 */
        KL_TRY(kl_pickle_read(name, text, bytes, &document));
    else
        KL_TRY(kl_record_parse(name, text, bytes, &document));
    ncclResult_t rc = read_document(r, file, document);

    json_decref(document);
    return rc;
}
