/* SPDX-License-Identifier: Apache-2.0 */
#include "compat/cuda/nvcc/options.h"

#include "tests/kolo_test.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* The words of a line that spaces separate. */
static int split(char *line, char **words)
{
    int n = 0;

    for (char *save, *w = strtok_r(line, " ", &save); w; w = strtok_r(NULL, " ", &save)) words[n++] = w;
    return n;
}

static void joined(const struct words *w, char *to, size_t bytes)
{
    to[0] = 0;
    for (size_t i = 0; i < w->count; i++)
        snprintf(to + strlen(to), bytes - strlen(to), "%s%s", i ? " " : "", w->at[i][0] ? w->at[i] : "(object)");
}

static const struct {
    const char *line;
    enum phase phase;
    const char *compile, *order;
} lines[] = {
    {"nvcc -c a.cu", PHASE_COMPILE, "", "(object)"},
    {"nvcc -gencode=arch=compute_90,code=sm_90 -gencode arch=compute_80,code=sm_80 -arch sm_90 "
     "--gpu-architecture=sm_80 -code=sm_80 a.cu",
     PHASE_LINK, "", "(object)"},
    {"nvcc -Xcompiler -Wall,-fPIC -Xcompiler=-g -Xptxas -v -maxrregcount 96 -lineinfo -t 4 -O3 a.cu b.o -lm -l z",
     PHASE_LINK, "-Wall -fPIC -g -O3", "(object) b.o -lm -lz"},
    {"nvcc -dc -rdc=true -Ia -I b -DX=1 -D Y -isystem c --expt-relaxed-constexpr x.cu", PHASE_COMPILE,
     "-D__CUDACC_RDC__=1 -Ia -Ib -DX=1 -DY -isystem c -D__CUDACC_RELAXED_CONSTEXPR__=1", "(object)"},
    {"nvcc -dlink -arch=sm_90 a.o b.o -o d.o", PHASE_DEVICE_LINK, "", "a.o b.o"},
    {"nvcc -lib -o l.a a.o", PHASE_ARCHIVE, "", "a.o"},
    {"nvcc -Xlinker=-rpath=a\\\tb a.o", PHASE_LINK, "", "-Xlinker -rpath=a\tb a.o"},
    {"nvcc -shared -Xlinker -rpath,x -cudart shared -cudadevrt=none -diag-suppress=177 -Wno-deprecated-gpu-targets a.o",
     PHASE_LINK, "", "-Xlinker -rpath -Xlinker x a.o"},
    {"nvcc -Werror all-warnings -w -use_fast_math -forward-unknown-to-host-compiler -fopenmp a.cu", PHASE_LINK,
     "-Werror -w -fopenmp", "(object)"},
    {"nvcc -E -std=c++14 --default-stream per-thread -ftz=true -prec-div=false --fmad=false x.cu", PHASE_PREPROCESS, "",
     "(object)"},
    {"nvcc -M -MT t x.cu", PHASE_DEPENDENCIES, "", "(object)"},
};

static void lines_are_understood(void **state)
{
    (void)state;
    FOR_EACH_CASE(c, lines)
    {
        char line[512], got[512], *words[64];
        struct options o;

        snprintf(line, sizeof line, "%s", c->line);
        expect_case(c->line, options_read(&o, split(line, words), (const char *const *)words));
        expect_case(c->line, o.phase == c->phase);
        joined(&o.compile, got, sizeof got);
        if (strcmp(got, c->compile) != 0) fail_msg("%s: compile \"%s\"", c->line, got);
        joined(&o.order, got, sizeof got);
        if (strcmp(got, c->order) != 0) fail_msg("%s: order \"%s\"", c->line, got);
        options_drop(&o);
    }
}

static void values_are_kept(void **state)
{
    const char *words[] = {"nvcc",           "-x",          "cu",    "-o", "out",   "-std=c++20",
                           "-ccbin=clang++", "-arch=sm_86", "-odir", "d",  "a.cpp", NULL};
    struct options o;

    (void)state;
    assert_true(options_read(&o, 11, words));
    assert_string_equal(o.output, "d/out");
    assert_string_equal(o.standard, "c++20");
    assert_string_equal(o.compiler, "clang++");
    assert_string_equal(o.architecture, "86");
    assert_int_equal(o.input_count, 1);
    assert_int_equal(o.inputs[0].language, LANGUAGE_CUDA);
    options_drop(&o);
}

static void a_file_has_options(void **state)
{
    char path[] = "/tmp/kolo-options-XXXXXX";
    const char *words[] = {"nvcc", "--options-file", path, "b.cu", NULL};
    int fd = mkstemp(path);
    struct options o;

    (void)state;
    assert_true(fd >= 0);
    assert_int_equal(write(fd, "-DA=\"x y\" '-I a'\n-c", 19), 19);
    close(fd);
    assert_true(options_read(&o, 4, words));
    assert_int_equal(o.phase, PHASE_COMPILE);
    assert_int_equal(o.compile.count, 2);
    assert_string_equal(o.compile.at[0], "-DA=x y");
    assert_string_equal(o.compile.at[1], "-I a");
    options_drop(&o);
    unlink(path);
}

static void what_is_wrong_is_told(void **state)
{
    const char *no_value[] = {"nvcc", "-o", NULL}, *language[] = {"nvcc", "-x", "fortran", NULL},
               *ptx[] = {"nvcc", "-ptx", "a.cu", NULL};
    const char *missing[] = {"nvcc", "-optf", "/nowhere/at/all", NULL};
    struct options o;

    (void)state;
    assert_false(options_read(&o, 2, no_value));
    options_drop(&o);
    assert_false(options_read(&o, 3, language));
    options_drop(&o);
    assert_false(options_read(&o, 3, ptx));
    options_drop(&o);
    assert_false(options_read(&o, 3, missing));
    options_drop(&o);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(lines_are_understood), cmocka_unit_test(values_are_kept),
                                       cmocka_unit_test(a_file_has_options), cmocka_unit_test(what_is_wrong_is_told)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
