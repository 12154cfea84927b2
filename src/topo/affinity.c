/* SPDX-License-Identifier: Apache-2.0 */
#include "topo/affinity.h"

#include "base/log.h"
#include "topo/paths.h"

#include <stdio.h>
#include <string.h>

static int hex_value(char c)
{
    if (c >= '0' && c <= '9') return c - '0';
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Length of the leading part that belongs to a set. */
static size_t set_length(const char *text)
{
    size_t n = 0;

    while (text[n] == ',' || hex_value(text[n]) >= 0) n++;
    return n;
}

static int trimmed(const uint64_t *word, int n)
{
    while (n && !word[n - 1]) n--;
    return n;
}

/* From the end, where the low CPUs are; a comma starts the next 32 however many digits the group had. */
int kl_affinity_parse(const char *text, uint64_t *word)
{
    int group = 0, digit = 0;

    memset(word, 0, KL_AFFINITY_WORDS * sizeof *word);
    for (size_t i = text ? set_length(text) : 0; i > 0 && group < 2 * KL_AFFINITY_WORDS; i--) {
        if (text[i - 1] == ',') {
            group++;
            digit = 0;
        } else if (digit < 8)
            word[group / 2] |= (uint64_t)hex_value(text[i - 1]) << (32 * (group % 2) + 4 * digit++);
    }
    return trimmed(word, KL_AFFINITY_WORDS);
}

int kl_affinity_of_gpu(const struct kl_topo *t, int gpu, const uint64_t *allowed, int nallowed, uint64_t *word)
{
    int cpu, n;

    if (kl_path_cpu_of_gpu(t, gpu, &cpu)) return 0;
    const struct kl_node *node = &t->node[kl_topo_at(t, KL_NODE_CPU, cpu)];
    n = node->cpu.nmasks;
    if (!t->options.ignore_cpu_affinity && n > nallowed) n = nallowed;
    for (int i = 0; i < n; i++) {
        word[i] = t->mask[node->cpu.first_mask + i];
        if (!t->options.ignore_cpu_affinity) word[i] &= allowed[i];
    }
    return trimmed(word, n);
}

char *kl_affinity_text(const uint64_t *word, int nwords, char *text, size_t bytes)
{
    int byte = 8 * trimmed(word, nwords);
    size_t used = 0;

    text[0] = 0;
    while (byte > 0 && !(word[(byte - 1) / 8] >> 8 * ((byte - 1) % 8) & 0xff)) byte--;
    for (; byte > 0 && used + 4 < bytes; byte--) {
        unsigned value = word[(byte - 1) / 8] >> 8 * ((byte - 1) % 8) & 0xff;
        used +=
            (size_t)snprintf(text + used, bytes - used, "%02x%s", value, byte > 1 && (byte - 1) % 4 == 0 ? "," : "");
    }
    return text;
}
