/* SPDX-License-Identifier: Apache-2.0 */
#include "topo/input.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

enum { LINE_BYTES = 1024 }; /* of a line, the start decides */

/* ---- words ---- */

static const struct {
    const char *name, *use;
} kinds[KL_INPUT_KINDS] = {
    [KL_INPUT_UNKNOWN] = {"a text of no kind that is known here", NULL},
    [KL_INPUT_EMPTY] = {"empty", NULL},
    [KL_INPUT_COMPRESSED] = {"compressed", "unpack it first: zcat, zstdcat, xzcat or bzcat FILE | kolo explain -"},
    [KL_INPUT_TOPOLOGY] = {"a topology file", "kolo explain QUESTION --topo FILE"},
    [KL_INPUT_GRAPH] = {"a graph file", "NCCL_GRAPH_FILE=FILE kolo graph --topo TOPOLOGY"},
    [KL_INPUT_XML] = {"XML, but neither a topology nor a graph file", NULL},
    [KL_INPUT_SMI] = {"the matrix of nvidia-smi topo -m", "kolo explain QUESTION --topo FILE"},
    [KL_INPUT_SMI_NAMES] = {"text of nvidia-smi without a matrix",
                            "add the output of nvidia-smi topo -m: kolo topo --smi MATRIX --smi FILE"},
    [KL_INPUT_LSPCI] = {"the tree of lspci", "kolo explain QUESTION --topo FILE"},
    [KL_INPUT_LOG] = {"a log of NCCL", "kolo explain --log FILE"},
    [KL_INPUT_TABLE] = {"a table of nccl-tests", "kolo explain --bench FILE"},
    [KL_INPUT_TABLE_JSON] = {"a table of nccl-tests in JSON", "kolo explain --bench FILE"},
    [KL_INPUT_FLIGHT] = {"a flight record of PyTorch", "kolo explain FILE..., one for each rank"},
    [KL_INPUT_KOLO_FLIGHT] = {"a flight record of Kolo", "kolo explain FILE..., one for each rank"},
    [KL_INPUT_RAS] = {"a status of NCCL's RAS service", "kolo explain FILE"},
    [KL_INPUT_RAS_TEXT] = {"a report of NCCL's RAS service", "kolo explain FILE"},
    [KL_INPUT_INSPECTOR] = {"reports of NCCL's Inspector", "kolo explain FILE..., one for each rank"},
    [KL_INPUT_OTLP] = {"metrics of OpenTelemetry", "kolo explain FILE..., one for each rank"},
    [KL_INPUT_TRACE] = {"a trace", "kolo explain FILE..., one for each rank"},
    [KL_INPUT_CHAKRA] = {"a Chakra execution trace", "kolo explain traffic FILE..., one for each rank"},
    [KL_INPUT_CHAKRA_BINARY] = {"a Chakra execution trace in binary form",
                                "convert it to JSON first: chakra_jsonizer --input_filename FILE --output_filename "
                                "FILE.json"},
    [KL_INPUT_EXECUTION] = {"an execution trace of PyTorch", "kolo explain traffic FILE..., one for each rank"},
    [KL_INPUT_JSON] = {"JSON of no kind that is known here", NULL},
    [KL_INPUT_SLURM] = {"Slurm's topology.conf",
                        "kolo explain FILE, or kolo explain traffic all_reduce 64M --pod FILE"},
    [KL_INPUT_TOPOGRAPH] = {"output of topograph",
                            "kolo explain FILE, or kolo explain traffic all_reduce 64M --pod FILE"},
};

const char *kl_input_name(enum kl_input_kind kind)
{
    return kinds[kind].name;
}

const char *kl_input_use(enum kl_input_kind kind)
{
    return kinds[kind].use;
}

/* ---- first bytes ---- */

static bool is_compressed(const char *text, size_t bytes)
{
    static const struct {
        const char *magic;
        size_t n;
    } magics[] = {{"\x1f\x8b", 2}, {"\x28\xb5\x2f\xfd", 4}, {"\xfd\x37zXZ", 5}, {"BZh", 3}, {"PK\x03\x04", 4}};

    for (size_t i = 0; i < sizeof magics / sizeof magics[0]; i++)
        if (bytes >= magics[i].n && !memcmp(text, magics[i].magic, magics[i].n)) return true;
    return false;
}

/* Protocols from 2 on begin with their number; before, a dictionary begins with these opcodes. */
static bool is_pickle(const char *text, size_t bytes)
{
    if (bytes > 2 && text[0] == '\x80') return text[1] >= 2 && text[1] <= 5;
    return bytes > 4 && (!memcmp(text, "(dp0\n", 5) || !memcmp(text, "}q\0(", 4));
}

/* The first message, of its own length, begins with the version of the schema: "0.0.4". */
static bool is_chakra_binary(const char *text, size_t bytes)
{
    if (bytes < 6 || text[1] != '\n' || text[2] < 3 || text[2] > 24 || text[0] < text[2] + 2) return false;
    const size_t n = (size_t)text[2];

    return bytes >= n + 3 && isdigit((unsigned char)text[3]) && text[4] == '.' && isdigit((unsigned char)text[5]) &&
           !memchr(text + 3, '\n', n);
}

/* Is `word` in the first bytes? */
static bool has(const char *text, size_t bytes, const char *word)
{
    return memmem(text, bytes, word, strlen(word)) != NULL;
}

/* A document's kind, by its root. */
static enum kl_input_kind xml_kind(const char *text, size_t bytes)
{
    if (has(text, bytes, "<graphs")) return KL_INPUT_GRAPH;
    return has(text, bytes, "<system") ? KL_INPUT_TOPOLOGY : KL_INPUT_XML;
}

static enum kl_input_kind json_kind(const char *text, size_t bytes)
{
    static const struct {
        const char *key[2];
        enum kl_input_kind kind;
    } keys[] = {{{"\"traceEvents\"", NULL}, KL_INPUT_TRACE},
                {{"\"record_param_comms\"", "\"nodes\""}, KL_INPUT_EXECUTION},
                {{"-chakra.", "\"schema\""}, KL_INPUT_EXECUTION},
                {{"\"COMM_COLL_NODE\"", NULL}, KL_INPUT_CHAKRA},
                {{"\"COMM_SEND_NODE\"", NULL}, KL_INPUT_CHAKRA},
                {{"\"COMM_RECV_NODE\"", NULL}, KL_INPUT_CHAKRA},
                {{"\"COMP_NODE\"", "\"attr"}, KL_INPUT_CHAKRA},
                {{"\"kolo_flight_record\"", NULL}, KL_INPUT_KOLO_FLIGHT},
                {{"\"resourceMetrics\"", NULL}, KL_INPUT_OTLP},
                {{"\"coll_perf\"", "\"header\""}, KL_INPUT_INSPECTOR},
                {{"\"p2p_perf\"", "\"header\""}, KL_INPUT_INSPECTOR},
                {{"\"record_id\"", "\"pg_config\""}, KL_INPUT_FLIGHT},
                {{"\"collective_seq_id\"", NULL}, KL_INPUT_FLIGHT},
                {{"\"pg_config\"", NULL}, KL_INPUT_FLIGHT},
                {{"\"communicators\"", "\"collective_counts\""}, KL_INPUT_RAS},
                {{"\"missing_ranks\"", NULL}, KL_INPUT_RAS},
                {{"network.topology.nvidia.com/", NULL}, KL_INPUT_TOPOGRAPH},
                {{"network.topology.kubernetes.io/", NULL}, KL_INPUT_TOPOGRAPH},
                {{"busbw", NULL}, KL_INPUT_TABLE_JSON},
                {{"bus_bw", NULL}, KL_INPUT_TABLE_JSON},
                {{"busBw", NULL}, KL_INPUT_TABLE_JSON}};

    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++)
        if (has(text, bytes, keys[i].key[0]) && (!keys[i].key[1] || has(text, bytes, keys[i].key[1])))
            return keys[i].kind;
    return KL_INPUT_JSON;
}

/* A document begins with a brace, or a bracket before one: launchers write brackets as well. Docker wraps lines of logs. */
static bool is_json(const char *text, size_t bytes)
{
    static const char docker[] = "{\"log\":\"";
    size_t at = 0;

    if (bytes >= sizeof docker - 1 && !memcmp(text, docker, sizeof docker - 1)) return false;
    if (at < bytes && text[at] == '[')
        for (at++; at < bytes && isspace((unsigned char)text[at]);) at++;
    return at < bytes && text[at] == '{';
}

/* ---- lines ---- */

/* How many lines each kind of text has. */
struct counts {
    int log, rows, matrix, names, lspci, slurm, topograph, ras, ras_json;
    bool gpu_row;
};

static bool has_any(const char *line, const char *const *words)
{
    for (; *words; words++)
        if (strstr(line, *words)) return true;
    return false;
}

#define HAS_ANY(line, ...) has_any((line), (const char *const[]){__VA_ARGS__, NULL})

static bool is_log_line(const char *line)
{
    return HAS_ANY(line, "NCCL INFO", "NCCL WARN", "NCCL TRACE", "NCCL version", "RCCL version",
                   "libfabric:", "ProcessGroupNCCL", "WorkNCCL(", "NET/OFI", "NVRM: Xid", "Test CUDA failure",
                   "Test HIP failure", "Test NCCL failure", "nccl==");
}

/* "  1048576   262144   float   sum ...": two numbers, a word, and times. */
static bool is_row(const char *line)
{
    int numbers = 0;

    while (*line && strchr(" |", *line)) line++;
    for (; isdigit((unsigned char)*line) && numbers < 2; numbers++) {
        line += strspn(line, "0123456789");
        line += strspn(line, " |");
    }
    return numbers == 2 && isalpha((unsigned char)*line) && strchr(line, '.');
}

static bool is_table_line(const char *line)
{
    return HAS_ANY(line, "busbw", "# nThread ", "Collective test starting", "Avg bus bandwidth", "ccl-tests version");
}

/* "-[0000:00]-+-00.0  Intel ...", " +-[0000:17]-+-00.0" */
static bool is_lspci_line(const char *line)
{
    const char *at = strstr(line, "-["), *end = at ? strstr(at, "]-") : NULL;

    return end && end - at > 3 && end - at < 20 && strspn(at + 2, "0123456789abcdef:-") == (size_t)(end - at - 2);
}

static void count_matrix(const char *line, struct counts *c)
{
    const char *at = line + strspn(line, " \t|"), *next;
    size_t n = strcspn(at, " \t|");

    if (strncmp(at, "GPU0", 4)) return;
    next = at + n + strspn(at + n, " \t|");
    if (!strncmp(next, "X", 1))
        c->gpu_row = true;
    else
        c->matrix++;
}

static void count_line(const char *line, struct counts *c)
{
    const char *at = line + strspn(line, " \t");

    c->log += is_log_line(line);
    c->rows += is_row(line) || is_table_line(line);
    c->names += !strncmp(at, "GPU 0: ", 7) || !strncmp(at, "Product Name", 12) || strstr(at, "NVIDIA-SMI") ||
                !strncmp(at, "index, name", 11);
    c->lspci += is_lspci_line(line);
    c->ras += !strncmp(at, "Job summary", 11) || !strncmp(at, "Communicators...", 16);
    c->ras_json += !strncmp(at, "\"communicators\": [", 18);
    c->slurm += (strcasestr(at, "SwitchName=") || strcasestr(at, "BlockName=") || !strncmp(at, "- switch: ", 10) ||
                 !strncmp(at, "- block: ", 9)) &&
                !strchr(at, '{');
    c->topograph +=
        HAS_ANY(at, "network.topology.nvidia.com/", "network.topology.kubernetes.io/", "topograph", "capacity_blocks:");
    count_matrix(line, c);
}

static void count_lines(const char *text, size_t bytes, struct counts *c)
{
    for (size_t at = 0; at < bytes;) {
        const char *stop = memchr(text + at, '\n', bytes - at);
        size_t n = stop ? (size_t)(stop - text) - at : bytes - at, kept = n < LINE_BYTES - 1 ? n : LINE_BYTES - 1;
        char line[LINE_BYTES];

        for (size_t i = 0; i < kept; i++) line[i] = text[at + i] ? text[at + i] : ' ';
        line[kept] = 0;
        count_line(line, c);
        at += n + (stop != NULL);
    }
}

static struct kl_input text_kind(const char *text, size_t bytes)
{
    struct counts c = {.log = 0};
    struct kl_input in = {.kind = KL_INPUT_UNKNOWN};

    count_lines(text, bytes, &c);
    if (c.ras > 1)
        in.kind = KL_INPUT_RAS_TEXT;
    else if (c.ras_json)
        in.kind = KL_INPUT_RAS;
    else if (c.matrix && c.gpu_row && c.log < 3)
        in.kind = KL_INPUT_SMI;
    else if (c.log)
        in = (struct kl_input){KL_INPUT_LOG, c.rows > 0};
    else if (c.rows)
        in.kind = KL_INPUT_TABLE;
    else if (c.topograph)
        in.kind = KL_INPUT_TOPOGRAPH;
    else if (c.slurm)
        in.kind = KL_INPUT_SLURM;
    else if (c.lspci)
        in.kind = KL_INPUT_LSPCI;
    else if (c.matrix)
        in.kind = KL_INPUT_SMI;
    else if (c.names)
        in.kind = KL_INPUT_SMI_NAMES;
    return in;
}

struct kl_input kl_input_of(const char *text, size_t bytes)
{
    static const char bom[] = "\xef\xbb\xbf";

    if (bytes > KL_INPUT_BYTES) bytes = KL_INPUT_BYTES;
    if (is_compressed(text, bytes)) return (struct kl_input){.kind = KL_INPUT_COMPRESSED};
    if (is_pickle(text, bytes)) return (struct kl_input){.kind = KL_INPUT_FLIGHT};
    if (is_chakra_binary(text, bytes)) return (struct kl_input){.kind = KL_INPUT_CHAKRA_BINARY};
    if (bytes >= sizeof bom - 1 && !memcmp(text, bom, sizeof bom - 1)) {
        text += sizeof bom - 1;
        bytes -= sizeof bom - 1;
    }
    while (bytes && isspace((unsigned char)*text)) {
        /* the first column of a matrix is blank: lines keep their indentation where a word follows */
        if (*text == ' ' || *text == '\t') {
            size_t blanks = 0;

            while (blanks < bytes && (text[blanks] == ' ' || text[blanks] == '\t')) blanks++;
            if (blanks < bytes && !isspace((unsigned char)text[blanks]) && !strchr("<{[", text[blanks])) break;
        }
        text++;
        bytes--;
    }
    if (!bytes) return (struct kl_input){.kind = KL_INPUT_EMPTY};
    if (*text == '<') return (struct kl_input){.kind = xml_kind(text, bytes)};
    if (is_json(text, bytes)) return (struct kl_input){.kind = json_kind(text, bytes)};
    return text_kind(text, bytes);
}
