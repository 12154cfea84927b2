/* SPDX-License-Identifier: Apache-2.0 */
#include "topo/smi.h"

#include "base/error.h"

#include <limits.h>
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FILE_BYTES = 1 << 20, LINE_BYTES = 8192, MAX_WORDS = KL_SMI_DEVICES + 32 };

struct reader {
    struct kl_smi *smi;
    const char *file;
    int line;
    bool header;           /* the columns were read */
    int gpu;               /* the GPU of the links that follow; -1 */
    int column[MAX_WORDS]; /* device of each column */
    int ncolumns;
    bool one_column;  /* a list of names alone */
    int name_column;  /* of a CSV list: where the product's name stands; -1: not in a list */
    int index_column; /* where the GPU's number stands; -1: GPUs come in their order */
    int listed;       /* GPUs of the list so far */
};

void kl_smi_init(struct kl_smi *smi)
{
    memset(smi, 0, sizeof *smi);
    for (int i = 0; i < KL_SMI_GPUS; i++) smi->numa[i] = smi->active[i] = -1;
}

/* ---- words ---- */

/* Terminals underline the columns: without escape sequences. Bars of tables separate cells as blanks do. */
static void clean(char *line)
{
    char *to = line;

    for (const char *c = line; *c; c++) {
        if (c[0] == '\033' && c[1] == '[') {
            while (*c && !isalpha((unsigned char)*c)) c++;
            if (!*c) break;
        } else
            *to++ = *c;
    }
    *to = 0;
}

static void blank_bars(char *line)
{
    for (char *at = strchr(line, '|'); at; at = strchr(at, '|')) *at = ' ';
}

static int split(char *line, char *word[MAX_WORDS])
{
    char *rest;
    int n = 0;

    for (char *w = strtok_r(line, " \t\r", &rest); w && n < MAX_WORDS; w = strtok_r(NULL, " \t\r", &rest))
        word[n++] = w;
    return n;
}

/* The number behind a prefix, -1 if the word is not these two. */
static int numbered(const char *word, const char *prefix)
{
    size_t n = strlen(prefix);
    char *end;

    if (strncmp(word, prefix, n) != 0 || !isdigit((unsigned char)word[n])) return -1;
    long value = strtol(word + n, &end, 10);
    return *end || value > 1 << 20 ? -1 : (int)value;
}

static int device_named(const struct kl_smi *s, const char *name)
{
    for (int i = 0; i < s->ndevices; i++)
        if (!strcmp(s->name[i], name)) return i;
    return -1;
}

/* ---- the matrix ---- */

static const struct {
    const char *text;
    enum kl_smi_level level;
} levels[] = {{"X", KL_SMI_NONE},  {"PIX", KL_SMI_PIX},   {"PSB", KL_SMI_PIX}, {"PXB", KL_SMI_PXB},
              {"PHB", KL_SMI_PHB}, {"NODE", KL_SMI_NODE}, {"SYS", KL_SMI_SYS}, {"SOC", KL_SMI_SYS}};

enum { LEVELS = sizeof levels / sizeof levels[0] };

static bool is_cell(const char *word)
{
    if (numbered(word, "NV") >= 0) return true;
    for (int i = 0; i < LEVELS; i++)
        if (!strcmp(word, levels[i].text)) return true;
    return false;
}

static bool is_gpu(const char *word)
{
    return numbered(word, "GPU") >= 0;
}

/* How many cells the rows below a header have: words behind a device's name, as far as they are levels. The most counts. */
static int cells_below(const char *text)
{
    char line[LINE_BYTES], *word[MAX_WORDS];
    int most = 0;

    for (; *text; text += strcspn(text, "\n"), text += *text == '\n') {
        size_t n = strcspn(text, "\n");

        if (n >= sizeof line) continue;
        memcpy(line, text, n);
        line[n] = 0;
        clean(line);
        blank_bars(line);
        int words = split(line, word), cells = 0;

        while (cells + 1 < words && is_cell(word[cells + 1])) cells++;
        if (words && is_gpu(word[0]) && cells > most) most = cells;
    }
    return most;
}

/* Where a name that ran into the one before begins: "NIC1NIC2", "GPU7mlx5_0"; 0: nowhere. */
static size_t second_name(const char *word)
{
    static const char *const kinds[] = {"GPU", "NIC", "mlx", "CPU"};

    for (size_t i = 1; word[i]; i++)
        for (size_t k = 0; isdigit((unsigned char)word[i - 1]) && k < sizeof kinds / sizeof kinds[0]; k++)
            if (!strncmp(word + i, kinds[k], strlen(kinds[k]))) return i;
    return 0;
}

static ncclResult_t add_column(struct reader *r, const char *name, size_t n)
{
    struct kl_smi *s = r->smi;
    char text[KL_SMI_NAME];

    snprintf(text, sizeof text, "%.*s", (int)(n < sizeof text ? n : sizeof text - 1), name);
    bool gpu = is_gpu(text);

    if (s->ndevices == KL_SMI_DEVICES || (gpu && s->ngpus == KL_SMI_GPUS))
        return KL_FAIL(ncclInternalError, "%s:%d: more than %d GPUs or %d devices", r->file, r->line, KL_SMI_GPUS,
                       KL_SMI_DEVICES);
    if (gpu && s->ngpus != s->ndevices)
        return KL_FAIL(ncclInternalError, "%s:%d: %s stands behind a NIC; expected GPUs first", r->file, r->line, text);
    s->ngpus += gpu;
    memcpy(s->name[s->ndevices], text, sizeof text);
    r->column[r->ncolumns++] = s->ndevices++;
    return ncclSuccess;
}

/* Columns are devices until "CPU Affinity". Where rows have more cells than the header has words, names ran into each other. */
static ncclResult_t read_header(struct reader *r, char **word, int n, const char *rest)
{
    int columns = 0;

    if (r->header) return ncclSuccess; /* printed again */
    const int cells = cells_below(rest);

    while (columns < n && strncmp(word[columns], "CPU", 3) != 0 && strcmp(word[columns], "NUMA") != 0) columns++;
    for (int i = 0; i < columns; i++) {
        const char *name = word[i];

        for (size_t at = second_name(name); at && r->ncolumns + columns - i < cells; at = second_name(name)) {
            KL_TRY(add_column(r, name, at));
            name += at;
        }
        if (strncmp(name, "CPU", 3) != 0) KL_TRY(add_column(r, name, strlen(name)));
    }
    r->header = true;
    return ncclSuccess;
}

static ncclResult_t read_cell(struct reader *r, int from, int to, const char *cell)
{
    int links = numbered(cell, "NV");

    if (links > 0 && links < 256 && from < r->smi->ngpus && to < r->smi->ngpus) {
        r->smi->level[from][to] = KL_SMI_NVLINK;
        r->smi->links[from][to] = (unsigned char)links;
        return ncclSuccess;
    }
    for (int i = 0; i < LEVELS; i++)
        if (!strcmp(cell, levels[i].text)) return r->smi->level[from][to] = (unsigned char)levels[i].level, ncclSuccess;
    return KL_FAIL(ncclInternalError, "%s:%d: \"%.40s\"; expected X, NV#, PIX, PXB, PHB, NODE or SYS", r->file, r->line,
                   cell);
}

/* Behind the cells: CPUs ("0-31,64-95"), NUMA nodes ("0"; "0-1" counts as its first), and the GPU's own node. */
static ncclResult_t read_row(struct reader *r, int device, char **word, int n)
{
    if (n < r->ncolumns)
        return KL_FAIL(ncclInternalError, "%s:%d: %d cells; expected %d, one for each column", r->file, r->line, n,
                       r->ncolumns);
    for (int i = 0; i < r->ncolumns; i++) KL_TRY(read_cell(r, device, r->column[i], word[i]));
    if (device >= r->smi->ngpus) return ncclSuccess;
    r->smi->row[device] = r->line;
    if (n > r->ncolumns) snprintf(r->smi->cpus[device], KL_SMI_NAME, "%.*s", KL_SMI_NAME - 1, word[r->ncolumns]);
    if (n > r->ncolumns + 1 && isdigit((unsigned char)word[r->ncolumns + 1][0])) {
        long numa = strtol(word[r->ncolumns + 1], NULL, 10);
        r->smi->numa[device] = numa >= 0 && numa < 4096 ? (int)numa : -1;
    }
    return ncclSuccess;
}

/* ---- products and links ---- */

/* The text behind "GPU 0: " or the like, and the number; NULL if that is not there. */
static const char *after_number(const char *line, const char *word, int *number)
{
    char *end;
    size_t n = strlen(word);

    if (strncmp(line, word, n) != 0 || !isdigit((unsigned char)line[n])) return NULL;
    long value = strtol(line + n, &end, 10);
    if (*end != ':' || value > INT_MAX) return NULL;
    *number = (int)value;
    return end + 1 + strspn(end + 1, " ");
}

static void set_product(struct reader *r, int gpu, const char *name, size_t n)
{
    while (n && isspace((unsigned char)name[n - 1])) n--;
    if (gpu < 0 || gpu >= KL_SMI_GPUS || !n) return;
    snprintf(r->smi->product[gpu], KL_SMI_NAME, "%.*s", (int)(n < KL_SMI_NAME ? n : KL_SMI_NAME - 1), name);
}

/* "GPU 0: NVIDIA A100-SXM4-80GB (UUID: GPU-...)" */
static bool read_product(struct reader *r, const char *line)
{
    int index;
    const char *name = after_number(line, "GPU ", &index);

    if (!name || index >= KL_SMI_GPUS) return false;
    set_product(r, index, name, strcspn(name, "(\n"));
    r->gpu = index;
    return true;
}

/* "    Product Name                          : NVIDIA H100 80GB HBM3", of -q: GPUs come in their order. */
static bool read_detail(struct reader *r, const char *line)
{
    const char *at = line + strspn(line, " \t"), *colon = strchr(at, ':');

    if (strncmp(at, "Product Name", 12) || !colon) return false;
    colon += 1 + strspn(colon + 1, " ");
    set_product(r, r->listed++, colon, strlen(colon));
    return true;
}

/* "|   0  NVIDIA A100-SXM4-80GB          On  | 00000000:0F:00.0 Off |", of the overview */
static bool read_overview(struct reader *r, const char *line)
{
    const char *at = line + (*line == '|'), *end;
    char *name;
    long index = strtol(at + strspn(at, " "), &name, 10);

    if (*line != '|' || name == at || index < 0 || index >= KL_SMI_GPUS || strncmp(name, "  ", 2)) return false;
    name += strspn(name, " ");
    end = strstr(name, "  ");
    const char *bar = strchr(name, '|');

    if (!isalpha((unsigned char)*name) || !end || !bar || end > bar || !strchr(bar, ':')) return false;
    set_product(r, (int)index, name, (size_t)(end - name));
    return true;
}

/* ---- lists with commas ---- */

/* Cell `i` of a line with commas, without quotes; its length in *n. NULL if there are fewer. */
static const char *csv_cell(const char *line, int i, size_t *n)
{
    for (; i > 0; i--) {
        line = strchr(line, ',');
        if (!line) return NULL;
        line++;
    }
    line += strspn(line, " \t\"");
    *n = strcspn(line, ",\"\n");
    return line;
}

static int csv_column(const char *line, const char *name)
{
    size_t n;
    const char *cell;

    for (int i = 0; (cell = csv_cell(line, i, &n)); i++) {
        while (n && isspace((unsigned char)cell[n - 1])) n--;
        if (n == strlen(name) && !strncmp(cell, name, n)) return i;
    }
    return -1;
}

/* "index, name, memory.total [MiB]": the head of a list; lines below have as many cells. "name" alone: names alone. */
static bool read_csv_head(struct reader *r, const char *line)
{
    int name = csv_column(line, "name");

    if (name < 0) name = csv_column(line, "gpu_name");
    if (name < 0) return false;
    r->one_column = !strchr(line, ',');
    r->name_column = name;
    r->index_column = csv_column(line, "index");
    r->listed = 0;
    return true;
}

/* Without a head: the first cell that begins as a name; 1 if there is none. */
static int csv_name(const char *line)
{
    size_t n;
    const char *cell;

    for (int i = 1; (cell = csv_cell(line, i, &n)); i++)
        if (!strncmp(cell, "NVIDIA", 6)) return i;
    return 1;
}

/* A product as nvidia-smi names it, by itself in its line. */
static bool is_name(const char *line)
{
    return !strncmp(line, "NVIDIA ", 7) || !strncmp(line, "Tesla ", 6) || !strncmp(line, "Quadro ", 7) ||
           !strncmp(line, "GeForce ", 8);
}

/* "0, NVIDIA H200, 143771 MiB"; without a head the number comes first. */
static bool read_csv_row(struct reader *r, const char *line)
{
    const bool headed = r->name_column >= 0;
    size_t n = 0, m = 0;
    const char *name = csv_cell(line, headed ? r->name_column : csv_name(line), &n),
               *index = csv_cell(line, headed && r->index_column >= 0 ? r->index_column : 0, &m);
    int gpu = r->listed;

    if (!name || !index || !isalpha((unsigned char)*name)) return false;
    if (headed && r->one_column ? !is_name(name) : !strchr(line, ',')) return false;
    if (!headed && (strspn(index, "0123456789") != m || strncmp(name, "NVIDIA", 6))) return false;
    if (!headed || r->index_column >= 0) {
        if (!isdigit((unsigned char)*index)) return false;
        gpu = (int)strtol(index, NULL, 10);
    }
    set_product(r, gpu, name, n);
    r->listed++;
    return true;
}

/* "Link 0: 25 GB/s", or "Link 0: <inactive>" */
static bool read_link(struct reader *r, const char *line)
{
    int link;
    const char *state = after_number(line + strspn(line, " \t"), "Link ", &link);

    if (!state) return false;
    if (r->gpu < 0) return true;
    int *active = &r->smi->active[r->gpu];
    if (*active < 0) *active = 0;
    *active += isdigit((unsigned char)*state) != 0 && *active < 255;
    return true;
}

/* ---- lines ---- */

/* "NIC0: mlx5_0" of the legend; other lines are skipped. */
static void read_legend(struct reader *r, char **word, int n)
{
    size_t length = n == 2 ? strlen(word[0]) : 0;

    if (!length || word[0][length - 1] != ':') return;
    word[0][length - 1] = 0;
    int device = device_named(r->smi, word[0]);
    if (device >= r->smi->ngpus) snprintf(r->smi->name[device], KL_SMI_NAME, "%.*s", KL_SMI_NAME - 1, word[1]);
}

static bool read_names(struct reader *r, const char *line)
{
    return read_product(r, line) || read_link(r, line) || read_detail(r, line) || read_overview(r, line) ||
           read_csv_head(r, line) || read_csv_row(r, line);
}

/* `rest`: the text behind the line. */
static ncclResult_t read_line(struct reader *r, char *line, const char *rest)
{
    char *word[MAX_WORDS];

    clean(line);
    if (read_names(r, line)) return ncclSuccess;
    blank_bars(line);
    int n = split(line, word);
    if (n && !strncmp(word[0], "GPU0", 4) && !isdigit((unsigned char)word[0][4]) && (n == 1 || !is_cell(word[1])))
        return read_header(r, word, n, rest);
    int device = n > 1 && r->header ? device_named(r->smi, word[0]) : -1;
    if (device >= 0) return read_row(r, device, word + 1, n - 1);
    read_legend(r, word, n);
    return ncclSuccess;
}

ncclResult_t kl_smi_parse(struct kl_smi *smi, const char *file, const char *text)
{
    struct reader r = {.smi = smi, .file = file, .gpu = -1, .name_column = -1, .index_column = -1};
    char line[LINE_BYTES];

    while (*text) {
        size_t n = strcspn(text, "\n");

        r.line++;
        if (n >= sizeof line)
            return KL_FAIL(ncclInternalError,
                           "%s:%d: a line of more than %d characters; give the output of nvidia-smi alone", file,
                           r.line, LINE_BYTES - 1);
        memcpy(line, text, n);
        line[n] = 0;
        text += n + (text[n] == '\n');
        KL_TRY(read_line(&r, line, text));
    }
    return ncclSuccess;
}

/* Two GPUs that have NVLinks in one row, and none in the other. */
static ncclResult_t check_both_ways(const struct kl_smi *smi, const char *file)
{
    for (int i = 0; i < smi->ngpus; i++)
        for (int j = 0; j < smi->ngpus; j++)
            if (smi->links[i][j] && !smi->links[j][i])
                return KL_FAIL(ncclInvalidUsage,
                               "%s:%d: %s has no NVLink to %s, which has %d to it in line %d; paste the matrix as "
                               "nvidia-smi prints it",
                               file, smi->row[j], smi->name[j], smi->name[i], smi->links[i][j], smi->row[i]);
    return ncclSuccess;
}

ncclResult_t kl_smi_check(const struct kl_smi *smi, const char *file)
{
    if (!smi->ngpus)
        return KL_FAIL(ncclInvalidUsage, "%s: no matrix with GPUs; expected the output of `nvidia-smi topo -m`", file);
    for (int i = 0; i < smi->ngpus; i++)
        if (!smi->row[i])
            return KL_FAIL(ncclInvalidUsage, "%s: the matrix has a column %s, but no row; paste all of its lines", file,
                           smi->name[i]);
    return check_both_ways(smi, file);
}

/* ---- files ---- */

ncclResult_t kl_smi_read(const char *file, const char *text, size_t bytes, struct kl_assumed *assumed,
                         struct kl_xml **xml)
{
    struct kl_smi *smi = malloc(sizeof *smi);
    char *copy = malloc(bytes + 1);
    ncclResult_t rc = smi && copy ? ncclSuccess : KL_NOMEM("the output of nvidia-smi");

    if (!rc) {
        kl_smi_init(smi);
        memcpy(copy, text, bytes);
        copy[bytes] = 0;
        rc = memchr(copy, 0, bytes)
                 ? KL_FAIL(ncclInternalError, "%s: not the text of nvidia-smi; save its output again, as text", file)
                 : kl_smi_parse(smi, file, copy);
    }
    if (!rc) rc = kl_smi_check(smi, file);
    if (!rc) rc = kl_smi_document(smi, file, assumed, xml);
    free(copy);
    free(smi);
    return rc;
}

static ncclResult_t read_file(struct kl_smi *smi, const char *file, char *text)
{
    bool piped = !strcmp(file, "-");
    FILE *from = piped ? stdin : fopen(file, "re");

    if (!from) return KL_FAIL_ERRNO("%s", file);
    size_t n = fread(text, 1, FILE_BYTES, from);
    ncclResult_t rc = ferror(from) ? KL_FAIL_ERRNO("%s", file) : ncclSuccess;
    if (!piped) fclose(from);
    KL_TRY(rc);
    text[n] = 0;
    if (n == FILE_BYTES || memchr(text, 0, n))
        return KL_FAIL(ncclInternalError, "%s: not the text of nvidia-smi; save its output again, as text", file);
    return kl_smi_parse(smi, file, text);
}

ncclResult_t kl_smi_load(const char *const *file, int n, struct kl_assumed *assumed, struct kl_xml **xml)
{
    struct kl_smi *smi = malloc(sizeof *smi);
    char *text = malloc(FILE_BYTES + 1);
    ncclResult_t rc = smi && text ? ncclSuccess : KL_NOMEM("the output of nvidia-smi");

    if (!rc) kl_smi_init(smi);
    for (int i = 0; i < n && !rc; i++) rc = read_file(smi, file[i], text);
    if (!rc) rc = kl_smi_check(smi, file[0]);
    if (!rc) rc = kl_smi_document(smi, "nvidia-smi's machine", assumed, xml);
    free(text);
    free(smi);
    return rc;
}
