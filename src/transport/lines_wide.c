/* SPDX-License-Identifier: Apache-2.0 */
/**
 * lines_wide.c - 64-byte stores: does the CPU have them, and does a second core ever see one in part?
 *
 * Architecture manuals guarantee 8 or 16 bytes, but machines store whole lines. So a test decides: one thread stores lines of
 * equal words, another one reads the last word first and must not find older ones before it.
 */
#include "transport/lines_wide.h"

#include "base/clock.h"
#include "transport/lines.h"

#include <pthread.h>
#include <string.h>

#if defined(__x86_64__) && !defined(__SANITIZE_THREAD__)
#include <immintrin.h>
#define HAVE_WIDE 1

static bool cpu_has_wide(void)
{
    return __builtin_cpu_supports("avx512f");
}

__attribute__((target("avx512f"))) static void store_64(void *to, const void *from)
{
    _mm512_store_si512(to, _mm512_loadu_si512(from));
}
#else
#define HAVE_WIDE 0

static bool cpu_has_wide(void)
{
    return false;
}

static void store_64(void *to, const void *from)
{
    memcpy(to, from, 64);
}
#endif

void kl_lines_store_wide(void *lines, const unsigned char *data, size_t bytes, uint64_t flag)
{
    struct {
        alignas(64) unsigned char data[KL_LINES_DATA];
        uint64_t flag;
    } line = {.flag = flag};

    for (unsigned char *to = lines; bytes; to += 64) {
        size_t n = bytes < KL_LINES_DATA ? bytes : KL_LINES_DATA;
        memcpy(line.data, data, n);
        store_64(to, &line);
        data += n;
        bytes -= n;
    }
}

/* ---- the trial ---- */

enum { WORDS = 8, TRIAL_NS = 500000, LEAST_CHANGES = 16 };

static struct {
    alignas(64) _Atomic uint64_t word[WORDS];
    alignas(64) _Atomic uint32_t stop;
} trial;

static void *write_lines(void *unused)
{
    uint64_t words[WORDS], n = 0;

    (void)unused;
    while (!kl_load_acquire(&trial.stop)) {
        n++;
        for (int i = 0; i < WORDS; i++) words[i] = n;
        store_64(trial.word, words);
    }
    return NULL;
}

/* The last word is the flag's place. Words before it may be newer, never older. A writer that did not get to run proves
 * nothing. */
static bool sees_whole_lines(void)
{
    uint64_t before = 0;
    int changes = 0;

    for (uint64_t end = kl_now_ns() + TRIAL_NS; kl_now_ns() < end;)
        for (int round = 0; round < 64; round++) {
            uint64_t last = kl_load_acquire(&trial.word[WORDS - 1]);
            for (int i = 0; i < WORDS - 1; i++)
                if (kl_load_acquire(&trial.word[i]) < last) return false;
            changes += last != before && changes < LEAST_CHANGES;
            before = last;
        }
    return changes == LEAST_CHANGES;
}

static bool wide_works;

static void try_wide(void)
{
    pthread_t writer;

    if (!HAVE_WIDE || !cpu_has_wide() || pthread_create(&writer, NULL, write_lines, NULL)) return;
    wide_works = sees_whole_lines();
    kl_store_release(&trial.stop, 1);
    pthread_join(writer, NULL);
}

bool kl_lines_wide_works(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, try_wide);
    return wide_works;
}
