/* SPDX-License-Identifier: Apache-2.0 */
#include "base/cpuset.h"

#include <ctype.h>
#include <string.h>

int kl_cpuset_count(const struct kl_cpuset *set)
{
    int n = 0;

    for (int w = 0; w < KL_CPUSET_WORDS; w++) n += __builtin_popcountll(set->words[w]);
    return n;
}

int kl_cpuset_next(const struct kl_cpuset *set, int cpu)
{
    for (; cpu < KL_CPUSET_CPUS; cpu = (cpu / 64 + 1) * 64) {
        uint64_t rest = set->words[cpu / 64] >> cpu % 64;

        if (rest) return cpu + __builtin_ctzll(rest);
    }
    return -1;
}

bool kl_cpuset_equal(const struct kl_cpuset *a, const struct kl_cpuset *b)
{
    return !memcmp(a, b, sizeof *a);
}

void kl_cpuset_intersect(struct kl_cpuset *set, const struct kl_cpuset *other)
{
    for (int w = 0; w < KL_CPUSET_WORDS; w++) set->words[w] &= other->words[w];
}

/* ---- reading ---- */

/* Parse a number at `*at` and advance `*at`; -1 if there is none or it is not a CPU. */
static int take_number(const char **at)
{
    int n = 0;

    if (!isdigit((unsigned char)**at)) return -1;
    for (; isdigit((unsigned char)**at); ++*at) {
        n = n * 10 + (**at - '0');
        if (n >= KL_CPUSET_CPUS) return -1;
    }
    return n;
}

/* One part of a list, "first-last:used/group": of each group of CPUs, the first `used`. */
struct range {
    int first, last, used, group;
};

/* Each part but the first is optional. */
static bool take_range(const char **at, struct range *r)
{
    r->first = r->last = take_number(at);
    r->used = r->group = 1;
    if (**at == '-') {
        ++*at;
        r->last = take_number(at);
        if (**at == ':') {
            ++*at;
            r->used = take_number(at);
            if (*(*at)++ != '/') return false;
            r->group = take_number(at);
        }
    }
    return r->first >= 0 && r->first <= r->last && r->used > 0 && r->used <= r->group;
}

static bool at_end(const char *at)
{
    return !at[0] || (at[0] == '\n' && !at[1]);
}

bool kl_cpuset_parse_list(const char *text, struct kl_cpuset *set)
{
    struct kl_cpuset made = {0};
    struct range r;

    for (bool more = !at_end(text); more; text += more) {
        if (!take_range(&text, &r)) return false;
        for (int cpu = r.first; cpu <= r.last; cpu++)
            if ((cpu - r.first) % r.group < r.used) kl_cpuset_add(&made, cpu);
        more = *text == ',';
    }
    if (!at_end(text)) return false;
    *set = made;
    return true;
}

/* Parse one to eight hexadecimal digits at `*at` and advance `*at`; -1 if there is something else. */
static int64_t take_word(const char **at)
{
    int64_t word = 0;
    int digits = 0;

    for (; isxdigit((unsigned char)**at); ++*at, digits++) {
        int c = tolower((unsigned char)**at);

        if (digits == 8) return -1;
        word = word << 4 | (isdigit(c) ? c - '0' : c - 'a' + 10);
    }
    return digits ? word : -1;
}

static size_t count_words(const char *map)
{
    size_t n = 1;

    for (; *map; map++) n += *map == ',';
    return n;
}

bool kl_cpuset_parse_map(const char *text, struct kl_cpuset *set)
{
    struct kl_cpuset made = {0};

    for (size_t left = count_words(text); left--;) {
        int64_t word = take_word(&text);

        if (word < 0 || (word && left >= 2 * KL_CPUSET_WORDS)) return false;
        if (word) made.words[left / 2] |= (uint64_t)word << (left % 2 ? 32 : 0);
        if (left && *text++ != ',') return false;
    }
    if (!at_end(text)) return false;
    *set = made;
    return true;
}

/* ---- writing ---- */

void kl_cpuset_add_list(struct kl_text *text, const struct kl_cpuset *set)
{
    const char *comma = "";

    for (int first, last = -1; (first = kl_cpuset_next(set, last + 1)) >= 0; comma = ",") {
        for (last = first; kl_cpuset_has(set, last + 1);) last++;
        kl_text_add(text, "%s%d", comma, first);
        if (last > first) kl_text_add(text, "-%d", last);
    }
}

static unsigned byte_of(const struct kl_cpuset *set, int i)
{
    return set->words[i / 8] >> 8 * (i % 8) & 0xff;
}

void kl_cpuset_add_map(struct kl_text *text, const struct kl_cpuset *set)
{
    int i = KL_CPUSET_CPUS / 8 - 1;

    while (i > 0 && !byte_of(set, i)) i--;
    for (; i >= 0; i--) kl_text_add(text, "%02x%s", byte_of(set, i), i && i % 4 == 0 ? "," : "");
}
