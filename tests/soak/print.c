/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/soak/program.h"

static const char *const kinds[SOAK_KINDS] = {
    "all_reduce",       "reduce",       "broadcast", "bcast",    "all_gather",
    "reduce_scatter",   "all_to_all",   "gather",    "scatter",  "all_gather_v",
    "reduce_scatter_v", "all_to_all_v", "barrier",   "messages",
};
static const char *const reductions[SOAK_REDUCTIONS] = {
    "sum",     "prod",   "max",     "min",         "avg",        "premulsum",
    "bit and", "bit or", "bit xor", "logical and", "logical or", "logical xor",
};
static const char *const types[ncclNumTypes] = {"int8", "uint8", "int32",  "uint32",   "int64",   "uint64",
                                                "half", "float", "double", "bfloat16", "fp8e4m3", "fp8e5m2"};
static const char *const acts[] = {"operate", "split", "shrink", "leave", "abort"};

void soak_operation_text(const struct soak_operation *o, char *text, size_t size)
{
    snprintf(text, size, "%s%s of communicator %d: %zu x %s%s%s, root %d", kinds[o->kind],
             o->in_place ? " in place" : "", o->comm, o->count, types[o->type], soak_reduces(o->kind) ? " " : "",
             soak_reduces(o->kind) ? reductions[o->reduction] : "", o->root);
}

static void print_operation(const struct soak_operation *o, FILE *to)
{
    char text[200];

    soak_operation_text(o, text, sizeof text);
    fprintf(to, "      %s\n", text);
    if (o->kind != SOAK_MESSAGE) return;
    fprintf(to, "        %s:", o->together ? "a group" : "one after the other");
    for (int m = 0; m < o->messages; m++)
        fprintf(to, " %d->%d (%zu)", o->message[m].from, o->message[m].to, o->message[m].count);
    fprintf(to, "\n");
}

static void print_children(const struct soak_program *p, const struct soak_step *s, FILE *to)
{
    for (int r = 0; r < p->comm[s->comm].n; r++)
        if (s->child[r] >= 0)
            fprintf(to, "      its rank %d becomes rank %d of %d\n", r,
                    soak_comm_rank(&p->comm[s->child[r]], p->comm[s->comm].member[r]), s->child[r]);
}

static void print_step(const struct soak_program *p, int i, FILE *to)
{
    const struct soak_step *s = &p->step[i];

    fprintf(to, "  %2d  %s", i, acts[s->act]);
    if (s->act != SOAK_OPERATE) fprintf(to, " communicator %d", s->comm);
    if (s->depth) fprintf(to, ", a group %d deep", s->depth);
    if (s->act == SOAK_LEAVE && s->finalize) fprintf(to, ", finalized first");
    if (s->act == SOAK_ABORT)
        fprintf(to, " by ranks 0x%x%s while these are under way", s->aborters,
                s->by_another ? " in threads of their own" : "");
    fprintf(to, "%s\n", s->wait ? ", wait" : "");
    for (int k = 0; k < s->operations; k++) print_operation(&s->operation[k], to);
    if (s->act == SOAK_SPLIT || s->act == SOAK_SHRINK) print_children(p, s, to);
}

void soak_program_print(const struct soak_program *p, FILE *to)
{
    fprintf(to, "seed %llu: %d ranks in %d processes of %d threads on %d hosts, %s\n", (unsigned long long)p->seed,
            p->n, p->processes, p->threads, p->hosts, p->blocking ? "blocking" : "not blocking");
    for (int i = 0; i < p->nsettings; i++) fprintf(to, "  %s\n", p->setting[i]);
    for (int i = 0; i < p->nsteps; i++) print_step(p, i, to);
}
