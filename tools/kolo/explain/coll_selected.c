/* SPDX-License-Identifier: Apache-2.0 */
/** coll_selected.c - the rows of the library's table for processes of this machine: how they copy their data, and why. */
#include "answer/graph_json.h"
#include "answer/reason_json.h"
#include "coll/select/select.h"
#include "comm/setup/facts.h"
#include "tools/kolo/explain/coll_print.h"

static const char *const memory[KL_BUFFER_CLASSES] = {"ordinary memory", "memory of ncclMemAlloc"};
static const char *const names[KL_BUFFER_CLASSES] = {"ordinary", "exported"};

static struct kl_select_row row_of(const struct kl_coll_asked *a, const struct kl_select_facts *facts, int buffers)
{
    return kl_select_decide(facts, a->func, (size_t)a->first, (enum kl_buffers)buffers);
}

void kl_coll_selected_text(const struct kl_coll_asked *a, FILE *to)
{
    const struct kl_select_facts facts = kl_comm_facts_here(a->ranks);
    char buffer[512];
    struct kl_text profile = kl_text_in(buffer, sizeof buffer);

    fprintf(to, "\nhow %d processes of this machine copy their data\n", a->ranks);
    kl_profile_text(&facts.profile, &profile);
    fprintf(to, "  machine profile: %s; %d to a core\n", buffer, facts.ranks_per_core);
    for (int b = 0; b < KL_BUFFER_CLASSES; b++) {
        const struct kl_select_row row = row_of(a, &facts, b);
        struct kl_text text = kl_text_in(buffer, sizeof buffer);

        kl_select_row_text(&row, &text);
        fprintf(to, "  %s: %s\n", memory[b], buffer);
    }
}

static json_t *row_json(const struct kl_select_row *row, const char *buffers)
{
    return json_pack("{s:s,s:s,s:b,s:b,s:o,s:o,s:o}", "buffers", buffers, "copy", kl_copy_name[row->copy],
                     "hierarchical", row->hierarchical, "nt_stores", row->nt, "us", kl_json_float(row->us), "other_us",
                     kl_json_float(row->other_us), "reason",
                     kl_json_reason(kl_select_reason_name[row->reason], kl_select_reason_text[row->reason]));
}

json_t *kl_coll_selected_json(const struct kl_coll_asked *a)
{
    const struct kl_select_facts facts = kl_comm_facts_here(a->ranks);
    char buffer[256];
    struct kl_text text = kl_text_in(buffer, sizeof buffer);
    json_t *rows = json_array();

    kl_profile_text(&facts.profile, &text);
    for (int b = 0; b < KL_BUFFER_CLASSES; b++) {
        const struct kl_select_row row = row_of(a, &facts, b);
        json_array_append_new(rows, row_json(&row, names[b]));
    }
    return json_pack("{s:s,s:i,s:o}", "profile", buffer, "ranks_per_core", facts.ranks_per_core, "rows", rows);
}
