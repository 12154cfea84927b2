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
};

void kl_smi_init(struct kl_smi *smi)
{
    memset(smi, 0, sizeof *smi);
    for (int i = 0; i < KL_SMI_GPUS; i++) smi->numa[i] = smi->active[i] = -1;
}

/* ---- words ---- */

/* Terminals underline the columns: without escape sequences. */
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

/* Columns are devices until "CPU Affinity". GPUs come first. */
static ncclResult_t read_header(struct reader *r, char **word, int n)
{
    struct kl_smi *s = r->smi;

    if (r->header) return ncclSuccess; /* printed again */
    for (int i = 0; i < n && strcmp(word[i], "CPU") != 0; i++) {
        bool gpu = numbered(word[i], "GPU") >= 0;

        if (s->ndevices == KL_SMI_DEVICES || (gpu && s->ngpus == KL_SMI_GPUS))
            return KL_FAIL(ncclInternalError, "%s:%d: more than %d GPUs or %d devices", r->file, r->line, KL_SMI_GPUS,
                           KL_SMI_DEVICES);
        if (gpu && s->ngpus != s->ndevices)
            return KL_FAIL(ncclInternalError, "%s:%d: %s stands behind a NIC; expected GPUs first", r->file, r->line,
                           word[i]);
        s->ngpus += gpu;
        snprintf(s->name[s->ndevices], KL_SMI_NAME, "%.*s", KL_SMI_NAME - 1, word[i]);
        r->column[r->ncolumns++] = s->ndevices++;
    }
    r->header = true;
    return ncclSuccess;
}

static ncclResult_t read_cell(struct reader *r, int from, int to, const char *cell)
{
    static const struct {
        const char *text;
        enum kl_smi_level level;
    } levels[] = {{"X", KL_SMI_NONE},  {"PIX", KL_SMI_PIX},   {"PXB", KL_SMI_PXB},
                  {"PHB", KL_SMI_PHB}, {"NODE", KL_SMI_NODE}, {"SYS", KL_SMI_SYS}};
    int links = numbered(cell, "NV");

    if (links >= 0 && links < 256 && from < r->smi->ngpus && to < r->smi->ngpus) {
        r->smi->level[from][to] = KL_SMI_NVLINK;
        r->smi->links[from][to] = (unsigned char)links;
        return ncclSuccess;
    }
    for (size_t i = 0; i < sizeof levels / sizeof levels[0]; i++)
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
    if (device < r->smi->ngpus && n > r->ncolumns + 1 && isdigit((unsigned char)word[r->ncolumns + 1][0])) {
        long numa = strtol(word[r->ncolumns + 1], NULL, 10);
        r->smi->numa[device] = numa >= 0 && numa < 4096 ? (int)numa : -1;
    }
    return ncclSuccess;
}

/* ---- products and links ---- */

/* The text after "GPU 0: " or the like, and the number; NULL if there is none. */
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

/* "GPU 0: NVIDIA A100-SXM4-80GB (UUID: GPU-...)" */
static bool read_product(struct reader *r, const char *line)
{
    int index;
    const char *name = after_number(line, "GPU ", &index);

    if (!name || index >= KL_SMI_GPUS) return false;
    size_t n = strcspn(name, "(\n");
    while (n && name[n - 1] == ' ') n--;
    snprintf(r->smi->product[index], KL_SMI_NAME, "%.*s", (int)(n < KL_SMI_NAME ? n : KL_SMI_NAME - 1), name);
    r->gpu = index;
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

static ncclResult_t read_line(struct reader *r, char *line)
{
    char *word[MAX_WORDS];

    clean(line);
    if (read_product(r, line) || read_link(r, line)) return ncclSuccess;
    int n = split(line, word);
    if (n && !strcmp(word[0], "GPU0") && (n == 1 || strcmp(word[1], "X") != 0)) return read_header(r, word, n);
    int device = n > 1 && r->header ? device_named(r->smi, word[0]) : -1;
    if (device >= 0) return read_row(r, device, word + 1, n - 1);
    read_legend(r, word, n);
    return ncclSuccess;
}

ncclResult_t kl_smi_parse(struct kl_smi *smi, const char *file, const char *text)
{
    struct reader r = {.smi = smi, .file = file, .gpu = -1};
    char line[LINE_BYTES];

    while (*text) {
        size_t n = strcspn(text, "\n");

        r.line++;
        if (n >= sizeof line)
            return KL_FAIL(ncclInternalError, "%s:%d: a line of more than %d characters", file, r.line, LINE_BYTES - 1);
        memcpy(line, text, n);
        line[n] = 0;
        KL_TRY(read_line(&r, line));
        text += n + (text[n] == '\n');
    }
    return ncclSuccess;
}

/* ---- files ---- */

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
        return KL_FAIL(ncclInternalError, "%s: not the text of nvidia-smi", file);
    return kl_smi_parse(smi, file, text);
}

ncclResult_t kl_smi_load(const char *const *file, int n, struct kl_assumed *assumed, struct kl_xml **xml)
{
    struct kl_smi *smi = malloc(sizeof *smi);
    char *text = malloc(FILE_BYTES + 1);
    ncclResult_t rc = smi && text ? ncclSuccess : KL_NOMEM("the output of nvidia-smi");

    if (!rc) kl_smi_init(smi);
    for (int i = 0; i < n && !rc; i++) rc = read_file(smi, file[i], text);
    if (!rc && !smi->ngpus)
        rc = KL_FAIL(ncclInvalidUsage, "%s: no matrix with GPUs; expected the output of `nvidia-smi topo -m`", file[0]);
    if (!rc) rc = kl_smi_document(smi, assumed, xml);
    free(text);
    free(smi);
    return rc;
}
