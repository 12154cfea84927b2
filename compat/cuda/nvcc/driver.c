/* SPDX-License-Identifier: Apache-2.0 */
#include "compat/cuda/nvcc/driver.h"
#include "compat/cuda/nvcc/text.h"
#include "compat/cuda/nvcc/translate.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

struct driver {
    const struct options *o;
    const struct places *p;
    const char *compiler;
    char *folder; /* of intermediate files */
    bool has_cub; /* the source that was translated last includes it */
    bool loops;   /* some of its kernels became loops */
    bool methods; /* with methods written where they are called */
    struct words scratch;
};

/* ---- commands ---- */

static void show(const struct words *command)
{
    fputs("#$ ", stderr);
    for (size_t i = 0; i < command->count; i++) {
        bool quoted = strpbrk(command->at[i], " \"'$") ||
                      !strncmp(command->at[i], "-L", 2); /* as LIBRARIES= has them: CMake compares */

        fprintf(stderr, quoted ? "\"%s\" " : "%s ", command->at[i]);
    }
    fputc('\n', stderr);
}

/* Run to the end, with messages into the file `messages` if that is not NULL; its exit status, or 1 where there is none. */
static int run_into(const struct driver *d, const struct words *command, const char *messages)
{
    posix_spawn_file_actions_t actions;
    pid_t child;
    int status, rc;

    if (d->o->verbose || d->o->dry_run) show(command);
    if (d->o->dry_run) return 0;
    (void)posix_spawn_file_actions_init(&actions);
    if (messages)
        (void)posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, messages, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    rc = posix_spawnp(&child, command->at[0], &actions, NULL, command->at, environ);
    (void)posix_spawn_file_actions_destroy(&actions);
    if (rc) {
        fprintf(stderr, "kolo-nvcc: cannot run %s: %s\n", command->at[0], strerror(rc));
        return 1;
    }
    while (waitpid(child, &status, 0) < 0)
        if (errno != EINTR) return 1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

static int run(const struct driver *d, const struct words *command)
{
    return run_into(d, command, NULL);
}

/* ---- words that compilations have in common ---- */

static bool says(const struct words *w, const char *start)
{
    for (size_t i = 0; i < w->count; i++)
        if (!strncmp(w->at[i], start, strlen(start))) return true;
    return false;
}

/* Kernels need C++17: raise an older standard. */
static void put_standard(const struct driver *d, struct words *to)
{
    static const char *const old[] = {"c++98",   "c++03",   "c++0x",   "c++11",   "c++1y",   "c++14",
                                      "gnu++98", "gnu++03", "gnu++0x", "gnu++11", "gnu++1y", "gnu++14"};
    const char *standard = d->o->standard ? d->o->standard : "gnu++17";
    char *word;

    for (size_t i = 0; i < sizeof old / sizeof old[0]; i++)
        if (!strcmp(standard, old[i])) standard = "gnu++17";
    word = must_print("-std=%s", standard);
    words_add(to, word);
    free(word);
}

static void put_print(struct words *to, const char *format, const char *value)
{
    struct text t = {0};
    const char *at = strstr(format, "%s");

    text_add(&t, format, (size_t)(at - format));
    text_put(&t, value);
    text_put(&t, at + 2);
    words_add(to, t.at);
    text_drop(&t);
}

static void put_includes(const struct driver *d, struct words *to)
{
    put_print(to, "-I%s/include", d->p->cuda);
    words_add_all(to, &d->o->compile);
    if (d->p->nccl_include) {
        words_add(to, "-isystem");
        words_add(to, d->p->nccl_include);
    }
    if (d->p->cccl) {
        words_add(to, "-isystem");
        words_add(to, d->p->cccl);
    }
}

/* For any architecture: templates choose the code of compute capability 8.0, as nv/target does. The runtime reports
 * this as the version of their PTX. */
static void put_macros(const struct driver *d, struct words *to)
{
    static const char *const macros[] = {"-D__CUDACC__=1",           "-D__NVCC__=1",
                                         "-D__KOLO_NVCC__=1",        "-D__CUDACC_VER_MAJOR__=13",
                                         "-D__CUDACC_VER_MINOR__=0", "-D__CUDACC_VER_BUILD__=88",
                                         "-D__CUDA_ARCH_LIST__=800", "-DCUB_PTX_ARCH=800",
                                         "-Wno-unknown-pragmas"};

    for (size_t i = 0; i < sizeof macros / sizeof macros[0]; i++) words_add(to, macros[i]);
    if (d->o->per_thread) words_add(to, "-DCUDA_API_PER_THREAD_DEFAULT_STREAM=1");
    if (d->o->fast_math) words_add(to, "-D__USE_FAST_MATH__=1");
    if (d->o->debug_device) words_add(to, "-D__CUDACC_DEBUG__=1");
}

/* Kernels compute like their references on the host, may alias memory, and are compiled for speed, as by nvcc. */
static void put_code_options(const struct driver *d, struct words *to)
{
    words_add(to, "-ffp-contract=off");
    words_add(to, "-fno-strict-aliasing");
    words_add(to,
              "-fstack-clash-protection"); /* a frame that is too large for a thread's stack meets the page below it */
    if (!says(&d->o->compile, "-O")) words_add(to, d->o->debug_device ? "-O0" : "-O2");
}

/* ---- names of files ---- */

static char *scratch(struct driver *d, const char *name)
{
    char *path;

    if (!d->folder && d->o->keep) d->folder = must_print("%s", d->o->keep_folder ? d->o->keep_folder : ".");
    if (!d->folder) {
        const char *temporary = getenv("TMPDIR");

        d->folder = must_print("%s/kolo-nvcc-XXXXXX", temporary && *temporary ? temporary : "/tmp");
        if (!mkdtemp(d->folder)) {
            perror("kolo-nvcc: no folder for intermediate files");
            exit(1);
        }
    }
    path = must_print("%s/%zu-%s", d->folder, d->scratch.count, name);
    words_add(&d->scratch, path);
    return path;
}

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash ? slash + 1 : path;
}

/* The file's name without its ending, with another one. */
static char *renamed(const char *path, const char *ending)
{
    const char *base = base_name(path), *dot = strrchr(base, '.');

    return must_print("%.*s%s", (int)(dot && dot != base ? dot - base : (long)strlen(base)), base, ending);
}

static enum language language_of(const struct input *in)
{
    const char *dot = strrchr(base_name(in->path), '.');

    if (in->language != LANGUAGE_BY_NAME) return in->language;
    if (dot && !strcmp(dot, ".cu")) return LANGUAGE_CUDA;
    return dot && !strcmp(dot, ".c") ? LANGUAGE_C : LANGUAGE_CXX;
}

static char *read_all(const char *path, size_t *bytes)
{
    FILE *f = fopen(path, "r");
    struct text t = {0};
    char chunk[65536];
    size_t n;

    if (!f) return NULL;
    while ((n = fread(chunk, 1, sizeof chunk, f)) > 0) text_add(&t, chunk, n);
    (void)fclose(f);
    text_put(&t, "");
    *bytes = t.bytes;
    return t.at;
}

static bool write_all(const char *path, const struct text *t)
{
    FILE *f = fopen(path, "w");
    bool good = f && fwrite(t->at ? t->at : "", 1, t->bytes, f) == t->bytes;

    if (f && fclose(f)) good = false;
    if (!good) fprintf(stderr, "kolo-nvcc: cannot write %s: %s\n", path, strerror(errno));
    return good;
}

/* ---- phases ---- */

/* With -MD and no file named for it: the object's name ending in .d; and with no target named: the object. */
static void put_dependencies(const struct driver *d, const char *object, struct words *to)
{
    char *file;

    if (!d->o->dependencies.count) return;
    words_add_all(to, &d->o->dependencies);
    if (d->o->phase == PHASE_DEPENDENCIES) return;
    if (!says(&d->o->dependencies, "-MF")) {
        char *plain = renamed(object, ".d");
        file = must_print("%.*s%s", (int)(base_name(object) - object), object, plain);
        words_add(to, "-MF");
        words_add(to, file);
        free(file);
        free(plain);
    }
    if (!says(&d->o->dependencies, "-MT") && !says(&d->o->dependencies, "-MQ")) {
        words_add(to, "-MT");
        words_add(to, object);
    }
}

static int preprocess(struct driver *d, const char *source, const char *object, const char *result)
{
    struct words c = {0};
    int rc;

    words_add(&c, d->compiler);
    words_add(&c, d->o->phase == PHASE_DEPENDENCIES ? "-x" : "-E");
    if (d->o->phase != PHASE_DEPENDENCIES) words_add(&c, "-x");
    words_add(&c, "c++");
    put_standard(d, &c);
    put_macros(d, &c);
    words_add(&c, "-include"); /* before those of the command line */
    words_add(&c, "cuda_runtime.h");
    put_includes(d, &c);
    put_dependencies(d, object, &c);
    words_add(&c, source);
    if (result) {
        words_add(&c, "-o");
        words_add(&c, result);
    }
    rc = run(d, &c);
    words_drop(&c);
    return rc;
}

static int translate_file(struct driver *d, const char *from, const char *to, bool fibres)
{
    struct translate_options options = {.fibres = fibres, .report = d->o->report ? stderr : NULL};
    struct text out = {0};
    size_t bytes;
    char *text;
    bool good;

    if (d->o->dry_run) return 0;
    text = read_all(from, &bytes);
    if (!text) {
        fprintf(stderr, "kolo-nvcc: cannot read %s: %s\n", from, strerror(errno));
        return 1;
    }
    d->has_cub = memmem(text, bytes, "/cub/", 5) != NULL;
    good = translate(text, bytes, &options, &out, stderr);
    d->loops = options.loops > 0;
    d->methods = options.methods;
    if (good && to) good = write_all(to, &out);
    if (good && !to) good = fwrite(out.at ? out.at : "", 1, out.bytes, stdout) == out.bytes;
    free(text);
    text_drop(&out);
    return !good;
}

static int compile_translated(struct driver *d, const char *source, const char *object, const char *messages)
{
    struct words c = {0};
    int rc;

    words_add(&c, d->compiler);
    put_standard(d, &c);
    words_add(&c, "-Wno-unknown-pragmas");
    if (d->has_cub) words_add(&c, "-fpermissive"); /* classes of it have members of the names of types that they use */
    words_add_all(&c, &d->o->compile);
    put_code_options(d, &c);
    words_add(&c, "-x");
    words_add(&c, "c++-cpp-output");
    words_add(&c, "-c");
    words_add(&c, source);
    words_add(&c, "-o");
    words_add(&c, object);
    if (d->loops) {
        words_add(&c, "-fopenmp-simd");      /* of its pragmas the loops over threads have one */
        words_add(&c, "-fno-trapping-math"); /* `if (lane >= d) v += o` is a vector operation then */
        if (d->methods) words_add(&c, "-fno-access-control");
        if (isatty(STDERR_FILENO)) words_add(&c, "-fdiagnostics-color=always");
    }
    rc = run_into(d, &c, messages);
    words_drop(&c);
    return rc;
}

static void forward(const char *path)
{
    size_t bytes;
    char *text = read_all(path, &bytes);

    if (text) (void)fwrite(text, 1, bytes, stderr);
    free(text);
}

/* Messages of a source with loops are shown if it compiles. One that does not has another chance without them: its messages are about
 * the user's code then. */
static int compile_loops(struct driver *d, const char *preprocessed, const char *translated, const char *object)
{
    char *messages = scratch(d, "messages");
    int rc = compile_translated(d, translated, object, messages);

    if (!rc) {
        forward(messages);
    } else {
        if (d->o->report)
            fputs("kolo-nvcc: with loops over threads it does not compile: fibres for all kernels\n", stderr);
        rc = translate_file(d, preprocessed, translated, true);
        if (!rc) rc = compile_translated(d, translated, object, NULL);
    }
    free(messages);
    return rc;
}

static int compile_cuda(struct driver *d, const char *source, const char *object)
{
    char *preprocessed = scratch(d, "preprocessed.ii"), *translated = scratch(d, "translated.ii");
    int rc = preprocess(d, source, object, preprocessed);
    bool shows = d->o->phase == PHASE_TRANSLATE;

    if (!rc)
        rc = translate_file(d, preprocessed, shows ? d->o->output : translated, d->o->fibres || d->o->debug_device);
    if (!rc && !shows)
        rc = d->loops ? compile_loops(d, preprocessed, translated, object)
                      : compile_translated(d, translated, object, NULL);
    free(preprocessed);
    free(translated);
    return rc;
}

static int compile_plain(struct driver *d, const struct input *in, const char *object)
{
    struct words c = {0};
    bool is_c = language_of(in) == LANGUAGE_C;
    int rc;

    words_add(&c, d->compiler);
    if (!is_c && d->o->standard) put_standard(d, &c);
    put_includes(d, &c);
    if (d->o->phase != PHASE_PREPROCESS && d->o->phase != PHASE_DEPENDENCIES) words_add(&c, "-c");
    if (d->o->phase == PHASE_PREPROCESS) words_add(&c, "-E");
    put_dependencies(d, object ? object : in->path, &c);
    if (in->language != LANGUAGE_BY_NAME || is_c) {
        words_add(&c, "-x");
        words_add(&c, is_c ? "c" : "c++");
    }
    words_add(&c, in->path);
    if (object) {
        words_add(&c, "-o");
        words_add(&c, object);
    }
    rc = run(d, &c);
    words_drop(&c);
    return rc;
}

static int compile(struct driver *d, const struct input *in, const char *object)
{
    return language_of(in) == LANGUAGE_CUDA ? compile_cuda(d, in->path, object) : compile_plain(d, in, object);
}

static void put_libraries(const struct driver *d, struct words *to)
{
    put_print(to, "-L%s", d->p->libraries);
    put_print(to, "-Wl,-rpath,%s", d->p->libraries);
    if (d->p->nccl) {
        put_print(to, "-L%s", d->p->nccl);
        put_print(to, "-Wl,-rpath,%s", d->p->nccl);
    }
    words_add(to, "-lcudart");
    words_add(to, "-lpthread");
    words_add(to, "-ldl");
    words_add(to, "-lrt");
}

static const char *program_name(const struct driver *d)
{
    return d->o->output ? d->o->output : d->o->shared ? "a.so" : "a.out";
}

/* Inputs of the linker, in the order of the command line: objects at the places of their sources. */
static void put_in_order(const struct driver *d, const struct words *objects, struct words *to)
{
    size_t next = 0;

    for (size_t i = 0; i < d->o->order.count; i++) {
        if (d->o->order.at[i][0])
            words_add(to, d->o->order.at[i]);
        else if (next < objects->count)
            words_add(to, objects->at[next++]);
    }
}

static int link_program(struct driver *d, const struct words *objects)
{
    struct words c = {0};
    int rc;

    if (d->o->static_runtime)
        fputs("kolo-nvcc: -cudart static: the runtime that is linked is the shared one, there is no other\n", stderr);
    words_add(&c, d->compiler);
    if (d->o->shared) words_add(&c, "-shared");
    words_add(&c, "-o");
    words_add(&c, program_name(d));
    words_add_all(&c, &d->o->link);
    put_in_order(d, objects, &c);
    put_libraries(d, &c);
    rc = run(d, &c);
    words_drop(&c);
    return rc;
}

static int make_archive(struct driver *d, const struct words *objects)
{
    struct words c = {0};
    int rc;

    words_add(&c, "ar");
    words_add(&c, "rcs");
    words_add(&c, d->o->output ? d->o->output : "a.a");
    put_in_order(d, objects, &c);
    rc = run(d, &c);
    words_drop(&c);
    return rc;
}

/* Device code needs no linking here: an object without anything in it. */
static int link_device(struct driver *d)
{
    struct words c = {0};
    int rc;

    words_add(&c, d->compiler);
    if (says(&d->o->compile, "-fPIC")) words_add(&c, "-fPIC");
    words_add(&c, "-x");
    words_add(&c, "c++");
    words_add(&c, "-c");
    words_add(&c, "/dev/null");
    words_add(&c, "-o");
    words_add(&c, d->o->output ? d->o->output : "a_dlink.o");
    rc = run(d, &c);
    words_drop(&c);
    return rc;
}

static int run_program(struct driver *d)
{
    struct words c = {0};
    char *path = strchr(program_name(d), '/') ? must_print("%s", program_name(d)) : must_print("./%s", program_name(d));
    int rc;

    words_add(&c, path);
    free(path);
    rc = run(d, &c);
    words_drop(&c);
    return rc;
}

/* Each source by itself: an object, a preprocessed text, a list of its includes. */
static int each_alone(struct driver *d)
{
    int rc = 0;

    if (d->o->output && d->o->input_count > 1 && d->o->phase == PHASE_COMPILE) {
        fputs("kolo-nvcc: one output for several sources: use it without -o, or link\n", stderr);
        return 1;
    }
    for (size_t i = 0; i < d->o->input_count && !rc; i++) {
        const struct input *in = &d->o->inputs[i];
        char *object = d->o->output ? must_print("%s", d->o->output) : renamed(in->path, ".o");

        if (d->o->phase == PHASE_COMPILE || d->o->phase == PHASE_TRANSLATE)
            rc = compile(d, in, object);
        else if (language_of(in) == LANGUAGE_CUDA)
            rc = preprocess(d, in->path, object, d->o->output);
        else
            rc = compile_plain(d, in, d->o->output);
        free(object);
    }
    return rc;
}

static int all_together(struct driver *d)
{
    struct words objects = {0};
    int rc = 0;

    for (size_t i = 0; i < d->o->input_count && !rc; i++) {
        char *name = renamed(d->o->inputs[i].path, ".o"), *object = scratch(d, name);

        rc = compile(d, &d->o->inputs[i], object);
        words_add(&objects, object);
        free(object);
        free(name);
    }
    if (!rc) rc = d->o->phase == PHASE_ARCHIVE ? make_archive(d, &objects) : link_program(d, &objects);
    if (!rc && d->o->run && d->o->phase == PHASE_LINK) rc = run_program(d);
    words_drop(&objects);
    return rc;
}

static void clean_up(struct driver *d)
{
    for (size_t i = 0; i < d->scratch.count && !d->o->keep; i++) (void)unlink(d->scratch.at[i]);
    if (d->folder && !d->o->keep) (void)rmdir(d->folder);
    free(d->folder);
    words_drop(&d->scratch);
}

/* The lines of nvcc -v from which CMake finds a toolkit. */
static void tell_places(const struct driver *d)
{
    const char *path = getenv("PATH");

    fprintf(stderr, "#$ _NVVM_BRANCH_=nvvm\n#$ _SPACE_= \n#$ _CUDART_=cudart\n#$ _HERE_=%s/bin\n#$ _THERE_=%s/bin\n",
            d->p->cuda, d->p->cuda);
    fprintf(stderr, "#$ TOP=%s\n#$ NVVMIR_LIBRARY_DIR=%s/nvvm/libdevice\n#$ PATH=%s/bin:%s\n", d->p->cuda, d->p->cuda,
            d->p->cuda, path ? path : "");
    fprintf(stderr, "#$ _ARCHITECTURE_=-arch compute_%s\n", d->o->architecture ? d->o->architecture : "90");
    fprintf(stderr, "#$ INCLUDES=\"-I%s/include\"  \n#$ LIBRARIES=  \"-L%s\"\n", d->p->cuda, d->p->libraries);
}

int drive(const struct options *o, const struct places *p)
{
    const char *chosen = getenv("NVCC_CCBIN");
    struct driver d = {.o = o, .p = p, .compiler = o->compiler ? o->compiler : chosen && *chosen ? chosen : "g++"};
    int rc;

    if (o->verbose || o->dry_run) tell_places(&d);
    switch (o->phase) {
    case PHASE_DEVICE_LINK:
        rc = link_device(&d);
        break;
    case PHASE_COMPILE:
    case PHASE_PREPROCESS:
    case PHASE_DEPENDENCIES:
    case PHASE_TRANSLATE:
        rc = each_alone(&d);
        break;
    default:
        rc = all_together(&d);
    }
    clean_up(&d);
    return rc;
}
