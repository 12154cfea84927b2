/* SPDX-License-Identifier: Apache-2.0 */
#include "compat/cuda/nvcc/options.h"
#include "compat/cuda/nvcc/text.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The action of an option. Options for GPU code have no effect here, and are accepted so that build files need no change. */
enum action {
    IGNORE,           /* alone */
    IGNORE_VALUE,     /* with its value */
    FLAG,             /* a phase or a switch: see set_flag */
    TO_COMPILE,       /* as it is to the compiler */
    TO_COMPILE_VALUE, /* as two words */
    JOINED,           /* as one word: the option's short form and its value */
    UNWRAP_COMPILE,   /* the value's words, separated by commas, to the compiler and, where it links, to it as well */
    UNWRAP_LINK,
    DEPENDENCIES,
    DEPENDENCIES_VALUE,
    LINK_VALUE, /* one word to the linker */
    VALUE,      /* kept: see set_value */
    REFUSED
};

struct option {
    const char *names; /* separated and enclosed by spaces; the first is passed on */
    enum action action;
    const char *why;
};

static const struct option table[] = {
    {" -c --compile -dc --device-c -dw --device-w ", FLAG, "compile"},
    {" -E --preprocess ", FLAG, "preprocess"},
    {" -M --generate-dependencies ", FLAG, "-M"},
    {" -MM --generate-nonsystem-dependencies ", FLAG, "-MM"},
    {" -dlink --device-link ", FLAG, "dlink"},
    {" -lib --lib ", FLAG, "archive"},
    {" -link --link ", IGNORE, NULL},
    {" --translate ", FLAG, "translate"},
    {" -run --run ", FLAG, "run"},
    {" -shared --shared ", FLAG, "shared"},
    {" -v --verbose ", FLAG, "verbose"},
    {" -dryrun --dryrun ", FLAG, "dryrun"},
    {" -keep --keep -save-temps --save-temps ", FLAG, "keep"},
    {" -V --version ", FLAG, "version"},
    {" -h --help ", FLAG, "help"},
    {" --list-options ", FLAG, "list"},
    {" -use_fast_math --use_fast_math ", FLAG, "fast"},
    {" -G --device-debug ", FLAG, "-G"},
    {" -expt-extended-lambda --expt-extended-lambda -extended-lambda --extended-lambda ", FLAG, "lambda"},
    {" -expt-relaxed-constexpr --expt-relaxed-constexpr ", FLAG, "constexpr"},
    {" -MD --generate-dependencies-with-compile ", DEPENDENCIES, NULL},
    {" -MMD --generate-nonsystem-dependencies-with-compile ", DEPENDENCIES, NULL},
    {" -MP --generate-dependency-targets ", DEPENDENCIES, NULL},
    {" -MF --dependency-output ", DEPENDENCIES_VALUE, NULL},
    {" -MT --dependency-target-name ", DEPENDENCIES_VALUE, NULL},
    {" -MQ ", DEPENDENCIES_VALUE, NULL},
    {" -o --output-file ", VALUE, "output"},
    {" -x --x ", VALUE, "language"},
    {" -std --std ", VALUE, "standard"},
    {" -ccbin --compiler-bindir ", VALUE, "compiler"},
    {" -odir --output-directory ", VALUE, "directory"},
    {" -gencode --generate-code ", VALUE, "architecture"},
    {" -arch --gpu-architecture ", VALUE, "architecture"},
    {" -default-stream --default-stream ", VALUE, "stream"},
    {" -rdc --relocatable-device-code ", VALUE, "rdc"},
    {" -optf --options-file ", VALUE, "file"},
    {" -Werror --Werror ", VALUE, "werror"},
    {" -code --gpu-code ", IGNORE_VALUE, NULL},
    {" -cudart --cudart ", VALUE, "cudart"},
    {" -cudadevrt --cudadevrt ", IGNORE_VALUE, NULL},
    {" -maxrregcount --maxrregcount ", IGNORE_VALUE, NULL},
    {" -ftz --ftz ", IGNORE_VALUE, NULL},
    {" -prec-div --prec-div ", IGNORE_VALUE, NULL},
    {" -prec-sqrt --prec-sqrt ", IGNORE_VALUE, NULL},
    {" -fmad --fmad ", IGNORE_VALUE, NULL},
    {" -t --threads ", IGNORE_VALUE, NULL},
    {" -split-compile --split-compile ", IGNORE_VALUE, NULL},
    {" -diag-suppress --diag-suppress -diag-error --diag-error -diag-warn --diag-warn ", IGNORE_VALUE, NULL},
    {" -Xptxas --ptxas-options ", IGNORE_VALUE, NULL},
    {" -Xnvlink --nvlink-options ", IGNORE_VALUE, NULL},
    {" -Xcudafe ", IGNORE_VALUE, NULL},
    {" -Xarchive --archive-options ", IGNORE_VALUE, NULL},
    {" -m --machine ", IGNORE_VALUE, NULL},
    {" -keep-dir --keep-dir ", VALUE, "keep"},
    {" -idp --input-drive-prefix -ddp --dependency-drive-prefix -dp --drive-prefix ", IGNORE_VALUE, NULL},
    {" -ldir --libdevice-directory -target-dir --target-directory -dopt --dopt -compress-mode --compress-mode ",
     IGNORE_VALUE, NULL},
    {" -static-global-template-stub --static-global-template-stub -time --time -brief-diag --brief-diagnostics ",
     IGNORE_VALUE, NULL},
    {" -device-entity-has-hidden-visibility --device-entity-has-hidden-visibility -opt-info --opt-info ", IGNORE_VALUE,
     NULL},
    {" -lineinfo --generate-line-info -restrict --restrict -src-in-ptx --source-in-ptx ", IGNORE, NULL},
    {" -res-usage --resource-usage ", FLAG, "report"},
    {" --barriers ", VALUE, "barriers"},
    {" -Wno-deprecated-gpu-targets --Wno-deprecated-gpu-targets -Wno-deprecated-declarations-gpu ", IGNORE, NULL},
    {" -forward-unknown-to-host-compiler --forward-unknown-to-host-compiler --forward-unknown-opts ", IGNORE, NULL},
    {" -forward-unknown-to-host-linker --forward-unknown-to-host-linker -noprof --no-host-device-initializer-list ",
     IGNORE, NULL},
    {" -allow-unsupported-compiler --allow-unsupported-compiler -extra-device-vectorization "
     "--extra-device-vectorization ",
     IGNORE, NULL},
    {" -no-compress --no-compress -dlto --dlink-time-opt -gen-opt-lto --gen-opt-lto -ewp --extensible-whole-program ",
     IGNORE, NULL},
    {" -display-error-number --display-error-number -no-display-error-number --no-display-error-number -err-no ",
     IGNORE, NULL},
    {" -Wreorder --Wreorder -Wdefault-stream-launch -Wmissing-launch-bounds -Wext-lambda-captures-this ", IGNORE, NULL},
    {" -relocatable-ptx --relocatable-ptx -nodlink -no-align-double --no-align-double -clean --clean-targets ", IGNORE,
     NULL},
    {" -expt-drop-const --nvlink-flags -m64 --m64 ", IGNORE, NULL},
    {" -Xcompiler --compiler-options ", UNWRAP_COMPILE, NULL},
    {" -Xlinker --linker-options ", UNWRAP_LINK, NULL},
    {" -I --include-path ", JOINED, NULL},
    {" -D --define-macro ", JOINED, NULL},
    {" -U --undefine-macro ", JOINED, NULL},
    {" -O --optimize ", JOINED, NULL},
    {" -isystem --system-include ", TO_COMPILE_VALUE, NULL},
    {" -include --pre-include ", TO_COMPILE_VALUE, NULL},
    {" -L --library-path ", LINK_VALUE, NULL},
    {" -l --library ", VALUE, "library"},
    {" -g --debug ", TO_COMPILE, NULL},
    {" -pg --profile ", TO_COMPILE, NULL},
    {" -w --disable-warnings ", TO_COMPILE, NULL},
    {" -noeh --no-exceptions ", IGNORE, NULL},
    {" -ptx --ptx -cubin --cubin -fatbin --fatbin -optix-ir --optix-ir -cuda --cuda ", REFUSED,
     "kolo-nvcc makes no code for GPUs"},
};

/* ---- finding an option ---- */

/* Where `word` stands in a list of names, and how long it is. */
static bool has_name(const char *names, const char *word, size_t bytes)
{
    for (const char *n = names + 1, *end; (end = strchr(n, ' ')); n = end + 1)
        if ((size_t)(end - n) == bytes && !memcmp(n, word, bytes)) return true;
    return false;
}

static const struct option *find(const char *word, size_t bytes)
{
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++)
        if (has_name(table[i].names, word, bytes)) return &table[i];
    return NULL;
}

static char *first_name(const struct option *option)
{
    return must_copy(option->names + 1, strcspn(option->names + 1, " "));
}

/* ---- actions of options ---- */

static bool complain(const char *what, const char *word)
{
    fprintf(stderr, "kolo-nvcc: %s: %s\n", word, what);
    return false;
}

static void keep(char **place, const char *value)
{
    free(*place);
    *place = must_copy(value, strlen(value));
}

static bool read_list(struct options *o, int argc, const char *const *argv);

static bool set_flag(struct options *o, const char *which)
{
    static const struct {
        const char *name;
        enum phase phase;
    } phases[] = {{"compile", PHASE_COMPILE},    {"preprocess", PHASE_PREPROCESS}, {"-M", PHASE_DEPENDENCIES},
                  {"-MM", PHASE_DEPENDENCIES},   {"dlink", PHASE_DEVICE_LINK},     {"archive", PHASE_ARCHIVE},
                  {"translate", PHASE_TRANSLATE}};
    const struct {
        const char *name;
        bool *flag;
    } flags[] = {{"run", &o->run},        {"shared", &o->shared},   {"verbose", &o->verbose}, {"dryrun", &o->dry_run},
                 {"keep", &o->keep},      {"version", &o->version}, {"help", &o->help},       {"list", &o->list},
                 {"fast", &o->fast_math}, {"-G", &o->debug_device}, {"report", &o->report}};

    for (size_t i = 0; i < sizeof phases / sizeof phases[0]; i++)
        if (!strcmp(which, phases[i].name) && o->phase != PHASE_DEVICE_LINK) o->phase = phases[i].phase;
    for (size_t i = 0; i < sizeof flags / sizeof flags[0]; i++)
        if (!strcmp(which, flags[i].name)) *flags[i].flag = true;
    if (which[0] == '-' && which[1] == 'M') words_add(&o->dependencies, which);
    if (!strcmp(which, "-G")) words_add(&o->compile, "-g");
    if (!strcmp(which, "lambda")) words_add(&o->compile, "-D__CUDACC_EXTENDED_LAMBDA__=1");
    if (!strcmp(which, "constexpr")) words_add(&o->compile, "-D__CUDACC_RELAXED_CONSTEXPR__=1");
    return true;
}

/* The words of `list`, which commas separate; a comma behind a backslash is one. */
static void unwrap(struct words *to, const char *list)
{
    struct text word = {0};

    for (const char *c = list;; c++) {
        if (*c == '\\' && (c[1] == ',' || isspace((unsigned char)c[1]))) {
            text_add(&word, ++c, 1);
        } else if (*c == ',' || !*c) {
            if (word.bytes) words_add(to, word.at);
            text_drop(&word);
            if (!*c) return;
        } else if (!isspace((unsigned char)*c)) {
            text_add(&word, c, 1);
        } else if (word.bytes) { /* -Xcompiler "-Wall -O2" */
            words_add(to, word.at);
            text_drop(&word);
        }
    }
}

/* For the linker, in the compiler's syntax. */
static void unwrap_for_linker(struct words *to, const char *list)
{
    struct words words = {0};

    unwrap(&words, list);
    for (size_t i = 0; i < words.count; i++) {
        words_add(to, "-Xlinker");
        words_add(to, words.at[i]);
    }
    words_drop(&words);
}

/* sm_90, compute_90a, arch=compute_90,code=sm_90: the last number. */
static void set_architecture(struct options *o, const char *value)
{
    for (const char *c = value; (c = strchr(c, '_')); c++)
        if (isdigit((unsigned char)c[1])) {
            free(o->architecture);
            o->architecture = must_copy(c + 1, strspn(c + 1, "0123456789"));
        }
}

/* Options in a file, separated by spaces, with quotes. */
static bool read_file(struct options *o, const char *path)
{
    FILE *f = fopen(path, "r");
    struct words words = {0};
    struct text word = {0};
    bool good, inside = false;
    int c, quote = 0;

    if (!f) return complain("cannot be read", path);
    while ((c = fgetc(f)) != EOF) {
        char byte = (char)c;

        if (c == quote) {
            quote = 0;
        } else if (!quote && (c == '"' || c == '\'')) {
            quote = c;
            inside = true;
        } else if (!quote && isspace(c)) {
            if (inside) words_add(&words, word.at ? word.at : "");
            inside = false;
            text_drop(&word);
        } else {
            if (c == '\\' && (c = fgetc(f)) != EOF) byte = (char)c;
            text_add(&word, &byte, 1);
            inside = true;
        }
    }
    if (inside) words_add(&words, word.at ? word.at : "");
    text_drop(&word);
    (void)fclose(f);
    good = read_list(o, (int)words.count, (const char *const *)words.at);
    words_drop(&words);
    return good;
}

static enum language language_now;
static char *directory_now;

static bool set_value(struct options *o, const char *which, const char *value)
{
    if (!strcmp(which, "output")) keep(&o->output, value);
    if (!strcmp(which, "standard")) keep(&o->standard, value);
    if (!strcmp(which, "keep")) keep(&o->keep_folder, value);
    if (!strcmp(which, "compiler")) keep(&o->compiler, value);
    if (!strcmp(which, "directory")) keep(&directory_now, value);
    if (!strcmp(which, "architecture")) set_architecture(o, value);
    if (!strcmp(which, "cudart")) {
        if (strcmp(value, "static") != 0 && strcmp(value, "shared") != 0 && strcmp(value, "none") != 0)
            return complain("no kind of runtime library (static, shared, none)", value);
        o->static_runtime = !strcmp(value, "static");
    }
    if (!strcmp(which, "barriers")) {
        if (strcmp(value, "loops") != 0 && strcmp(value, "fibres") != 0)
            return complain("no way to run kernels with barriers (loops, fibres)", value);
        o->fibres = !strcmp(value, "fibres");
    }
    if (!strcmp(which, "stream")) o->per_thread = !strcmp(value, "per-thread");
    if (!strcmp(which, "rdc") && !strcmp(value, "true")) words_add(&o->compile, "-D__CUDACC_RDC__=1");
    if (!strcmp(which, "file")) return read_file(o, value);
    if (!strcmp(which, "werror") && strstr(value, "all-warnings")) words_add(&o->compile, "-Werror");
    if (!strcmp(which, "library")) {
        char *word = must_print("-l%s", value);

        words_add(&o->order, word);
        free(word);
    }
    if (!strcmp(which, "language")) {
        if (!strcmp(value, "cu"))
            language_now = LANGUAGE_CUDA;
        else if (!strcmp(value, "c++"))
            language_now = LANGUAGE_CXX;
        else if (!strcmp(value, "c"))
            language_now = LANGUAGE_C;
        else
            return complain("no language that this knows (cu, c++, c)", value);
    }
    return true;
}

/* `word` is the option as it was written. */
static bool apply(struct options *o, const struct option *option, const char *word, const char *value)
{
    char *name = first_name(option), *joined;
    bool good = true;

    switch (option->action) {
    case IGNORE:
    case IGNORE_VALUE:
        break;
    case FLAG:
        good = set_flag(o, option->why);
        break;
    case TO_COMPILE:
        words_add(&o->compile, name);
        break;
    case TO_COMPILE_VALUE:
        words_add(&o->compile, name);
        words_add(&o->compile, value);
        break;
    case JOINED:
    case LINK_VALUE:
        joined = must_print("%s%s", name, value);
        words_add(option->action == JOINED ? &o->compile : &o->link, joined);
        free(joined);
        break;
    case UNWRAP_COMPILE:
        unwrap(&o->compile, value);
        unwrap(&o->link, value);
        break;
    case UNWRAP_LINK:
        unwrap_for_linker(&o->order, value);
        break;
    case DEPENDENCIES:
        words_add(&o->dependencies, name);
        break;
    case DEPENDENCIES_VALUE:
        words_add(&o->dependencies, name);
        words_add(&o->dependencies, value);
        break;
    case VALUE:
        good = set_value(o, option->why, value);
        break;
    case REFUSED:
        good = complain(option->why, word);
        break;
    }
    free(name);
    return good;
}

static bool takes_value(const struct option *option)
{
    return option->action != IGNORE && option->action != FLAG && option->action != TO_COMPILE &&
           option->action != DEPENDENCIES && option->action != REFUSED;
}

/* ---- words that are no options of the table ---- */

static bool is_for_linker(const char *path)
{
    static const char *const ends[] = {".o", ".a", ".so", ".lo", ".obj", ".lib"};
    size_t n = strlen(path);

    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++)
        if (n > strlen(ends[i]) && !strcmp(path + n - strlen(ends[i]), ends[i])) return true;
    return strstr(path, ".so.") != NULL;
}

static void add_input(struct options *o, const char *path)
{
    if (is_for_linker(path)) {
        words_add(&o->order, path);
        return;
    }
    o->inputs = must_grow(o->inputs, (o->input_count + 1) * sizeof *o->inputs);
    o->inputs[o->input_count++] = (struct input){must_copy(path, strlen(path)), language_now};
    words_add(&o->order, ""); /* its object, when there is one */
}

/* -O3, -Ifolder, -lm, -DX=1: the value touches. Longest names first would not matter: each of these is one letter. */
static const struct option *find_joined(const char *word, const char **value)
{
    if (strlen(word) < 3 || word[0] != '-' || !strchr("IDULlOxtm", word[1])) return NULL;
    if (strchr("xtm", word[1]) && !isalnum((unsigned char)word[2])) return NULL;
    if (word[1] == 't' && !isdigit((unsigned char)word[2])) return NULL;
    if (word[1] == 'x' && strcmp(word + 2, "cu") != 0) return NULL;
    if (word[1] == 'm' && !isdigit((unsigned char)word[2])) return NULL;
    *value = word + 2;
    return find(word, 2);
}

static bool read_one(struct options *o, const char *word, const char *next, bool *used_next)
{
    const char *equals = strchr(word, '='), *value = NULL;
    const struct option *option;

    *used_next = false;
    if (word[0] != '-' || !word[1]) {
        add_input(o, word);
        return true;
    }
    option = find(word, strlen(word));
    if (!option && equals) {
        option = find(word, (size_t)(equals - word));
        if (option && takes_value(option)) value = equals + 1;
        if (option && !takes_value(option)) option = NULL;
    }
    if (!option) option = find_joined(word, &value);
    if (!option) { /* the compiler's own, as -fopenmp or -Wall */
        words_add(&o->compile, word);
        words_add(&o->link, word);
        return true;
    }
    if (takes_value(option) && !value) {
        if (!next) return complain("needs a value", word);
        value = next;
        *used_next = true;
    }
    return apply(o, option, word, value);
}

static bool read_list(struct options *o, int argc, const char *const *argv)
{
    bool used_next;

    for (int i = 0; i < argc; i++) {
        if (!read_one(o, argv[i], i + 1 < argc ? argv[i + 1] : NULL, &used_next)) return false;
        i += used_next;
    }
    return true;
}

/* -odir: where outputs without a name of their own go. */
static void put_in_directory(struct options *o)
{
    char *path;

    if (!directory_now || (o->output && o->output[0] == '/')) return;
    if (!o->output) return;
    path = must_print("%s/%s", directory_now, o->output);
    free(o->output);
    o->output = path;
}

bool options_read(struct options *o, int argc, const char *const *argv)
{
    bool good;

    *o = (struct options){0};
    language_now = LANGUAGE_BY_NAME;
    good = read_list(o, argc - 1, argv + 1);
    if (good) put_in_directory(o);
    free(directory_now);
    directory_now = NULL;
    return good;
}

void options_drop(struct options *o)
{
    for (size_t i = 0; i < o->input_count; i++) free(o->inputs[i].path);
    free(o->inputs);
    free(o->output);
    free(o->compiler);
    free(o->standard);
    free(o->architecture);
    free(o->keep_folder);
    words_drop(&o->compile);
    words_drop(&o->dependencies);
    words_drop(&o->link);
    words_drop(&o->order);
}

void options_list(FILE *to)
{
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        enum action action = table[i].action;
        const char *effect = action == REFUSED ? "refused" : action <= IGNORE_VALUE ? "ignored" : "used";

        fprintf(to, "%.*s\t%s\t%s\n", (int)strlen(table[i].names) - 2, table[i].names + 1,
                takes_value(&table[i]) ? "value" : "none", effect);
    }
}
