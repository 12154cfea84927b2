/* SPDX-License-Identifier: Apache-2.0 */
#include "base/error.h"
#include "base/log.h"
#include "base/parse.h"
#include "topo/input.h"
#include "topo/lspci.h"
#include "topo/machine.h"
#include "topo/placement.h"
#include "topo/smi.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int kl_machine_file_gpus(const struct kl_xml *file)
{
    int n = 0;

    for (int e = KL_XML_ROOT; !kl_xml_empty(file) && e != KL_XML_NONE; e = kl_xml_walk(file, KL_XML_ROOT, e))
        n += !strcmp(kl_xml_tag(file, e), "gpu");
    return n;
}

ncclResult_t kl_machine_check_file(const struct kl_xml *file)
{
    KL_TRY(kl_xml_check_system(file));
    int gpus = kl_machine_file_gpus(file);
    if (gpus > KL_MACHINE_MAX_GPUS)
        return KL_FAIL(ncclInvalidUsage, "%s: %d GPUs; at most %d can be one machine, describe fewer hosts",
                       kl_xml_name(file), gpus, KL_MACHINE_MAX_GPUS);
    if (gpus) return ncclSuccess;
    const char *misplaced = kl_xml_misplaced(file);

    if (*misplaced)
        return KL_FAIL(
            ncclInvalidUsage, "%s:%s%s", kl_xml_name(file), misplaced,
            !strstr(misplaced, ": <gpu>")
                ? ""
                : ": wrap it in <pci busid=\"0000:01:00.0\" class=\"0x030200\" link_speed=\"32.0 GT/s "
                  "PCIe\" link_width=\"16\">, and name the busid of the other GPU as the target of an <nvlink>");
    return kl_xml_fail(
        file, KL_XML_ROOT, ncclInvalidUsage,
        "no <gpu> element and no <pci> element that could be one, so no devices; add <gpu dev=\"0\" sm=\"80\"/> to "
        "the <pci> elements of GPUs");
}

static ncclResult_t find_machine(const char *name, const struct kl_known_machine **machine, int *trays)
{
    *machine = name && *name ? kl_known_named(name, trays) : NULL;
    if (*machine || !name || !*name) return ncclSuccess;
    return KL_FAIL(ncclInvalidUsage,
                   "machine %s: there is none of this name, or it has not so many trays; kolo topo --machines "
                   "lists them",
                   name);
}

/* Make a document of a text; ncclInvalidUsage, naming its kind and its use, for kinds that describe no machine. */
static ncclResult_t read_text(const char *path, const char *text, size_t bytes, struct kl_input in,
                              struct kl_assumed *assumed, struct kl_xml **xml)
{
    const char *use = kl_input_use(in.kind);

    if (in.kind == KL_INPUT_SMI) return kl_smi_read(path, text, bytes, assumed, xml);
    if (in.kind == KL_INPUT_LSPCI) return kl_lspci_read(path, text, bytes, assumed, xml);
    if (in.kind == KL_INPUT_UNKNOWN || in.kind == KL_INPUT_EMPTY || in.kind == KL_INPUT_TOPOLOGY ||
        in.kind == KL_INPUT_XML)
        return kl_xml_parse(path, text, bytes, kl_xml_topo_schema, xml);
    return KL_FAIL(ncclInvalidUsage, "%s is %s, which describes no machine%s%s", path, kl_input_name(in.kind),
                   use ? "; use it with " : "", use ? use : "");
}

static ncclResult_t parse_text(const char *path, const char *text, size_t bytes, const struct kl_known_machine *machine,
                               struct kl_assumed *assumed, struct kl_xml **xml)
{
    const struct kl_input in = kl_input_of(text, bytes);

    KL_TRY(read_text(path, text, bytes, in, assumed, xml));
    ncclResult_t rc = kl_xml_check_system(*xml);
    if (!rc && in.kind != KL_INPUT_SMI) rc = kl_placement_complete(*xml, machine, assumed);
    if (!rc) return ncclSuccess;
    kl_xml_free(*xml);
    *xml = NULL;
    return rc;
}

ncclResult_t kl_machine_load(const char *path, const char *name, struct kl_assumed *assumed, struct kl_xml **file)
{
    struct kl_assumed unasked = {.n = 0};
    const struct kl_known_machine *machine;
    struct kl_xml *xml = NULL;
    int trays;

    KL_TRY(find_machine(name, &machine, &trays));
    if (!path || !*path) return kl_known_document(machine, trays, file);
    char *text;
    size_t bytes;

    KL_TRY(kl_xml_read(path, &text, &bytes));
    ncclResult_t rc = parse_text(path, text, bytes, machine, assumed ? assumed : &unasked, &xml);

    free(text);
    if (!rc) *file = xml;
    return rc;
}

ncclResult_t kl_machine_parse(const char *label, const char *text, size_t bytes, const char *name,
                              struct kl_assumed *assumed, struct kl_xml **file)
{
    struct kl_assumed unasked = {.n = 0};
    const struct kl_known_machine *machine;
    int trays;

    KL_TRY(find_machine(name, &machine, &trays));
    return parse_text(label, text, bytes, machine, assumed ? assumed : &unasked, file);
}

static void log_assumed(const char *path, const struct kl_assumed *assumed)
{
    for (int i = 0; i < assumed->n; i++) {
        char text[KL_ASSUMED_TEXT];

        KL_INFO(KL_GRAPH, "%s: %s (%s)", path, kl_assumed_text(&assumed->at[i], text),
                kl_assumed_from_text(assumed->at[i].from));
    }
}

/* Without GPUs, or with unidentified ones, a file only describes the places of devices. */
static ncclResult_t complete_or_drop(const char *path, const struct kl_known_machine *machine,
                                     struct kl_assumed *assumed, struct kl_xml **xml)
{
    ncclResult_t rc = kl_xml_empty(*xml) ? ncclSuccess : kl_xml_check_system(*xml);
    const char *why = "it has no <gpu> element";

    int quiet = kl_error_quiet(1);
    ncclResult_t told = rc ? rc : kl_placement_complete(*xml, machine, assumed);
    kl_error_quiet(quiet);
    if (told == ncclSystemError) rc = told; /* short of memory: no fault of the file */
    if (!rc && told)
        why = kl_error_text();
    else if (!rc && !kl_xml_empty(*xml) && kl_machine_file_gpus(*xml)) {
        log_assumed(path, assumed);
        return ncclSuccess;
    }
    if (!rc) KL_WARN("%s is not used: %s", path, why);
    kl_xml_free(*xml);
    *xml = NULL;
    return rc;
}

ncclResult_t kl_machine_read_file(const char *path, const char *name, struct kl_assumed *assumed, struct kl_xml **file)
{
    struct kl_assumed unasked = {.n = 0};
    const struct kl_known_machine *machine;
    struct kl_xml *xml = NULL;
    int trays;

    *file = NULL;
    KL_TRY(find_machine(name, &machine, &trays));
    if (!*path) return machine ? kl_known_document(machine, trays, file) : ncclSuccess;
    if (access(path, R_OK)) {
        KL_WARN("%s cannot be read (%s), so the machine is looked at instead; check NCCL_TOPO_FILE", path,
                strerror(errno));
        return ncclSuccess;
    }
    KL_TRY(kl_xml_load(path, kl_xml_topo_schema, &xml));
    KL_TRY(complete_or_drop(path, machine, assumed ? assumed : &unasked, &xml));
    *file = xml;
    return ncclSuccess;
}

static bool is_number(const char *hash)
{
    char *end;

    strtoull(hash, &end, 16);
    return end != hash && !*end;
}

bool kl_machine_file_multihost(const struct kl_xml *file)
{
    uint64_t first = 0;

    if (kl_xml_empty(file)) return false;
    for (int c = kl_xml_child(file, KL_XML_ROOT, "cpu"); c != KL_XML_NONE; c = kl_xml_next_same(file, c)) {
        const char *text = kl_xml_attr(file, c, "host_hash");
        uint64_t hash = text && is_number(text) ? kl_parse_hex(text) : 0;

        if (hash && first && hash != first) return true;
        if (hash) first = hash;
    }
    return false;
}

/* ---- defaults ---- */

static ncclResult_t fill(struct kl_xml *xml, int elem, const char *key, const char *value)
{
    return kl_xml_attr(xml, elem, key) ? ncclSuccess : kl_xml_set(xml, elem, key, value);
}

static ncclResult_t fill_int(struct kl_xml *xml, int elem, const char *key, int value)
{
    return kl_xml_attr(xml, elem, key) ? ncclSuccess : kl_xml_set_int(xml, elem, key, value);
}

static ncclResult_t fill_cpu(struct kl_xml *xml, int elem)
{
    KL_TRY(fill(xml, elem, "numaid", "0"));
    KL_TRY(fill(xml, elem, "arch", "x86_64"));
    KL_TRY(fill(xml, elem, "vendor", "GenuineIntel"));
    KL_TRY(fill(xml, elem, "familyid", "6"));
    return fill(xml, elem, "modelid", "85");
}

static ncclResult_t fill_pci(struct kl_xml *xml, int elem)
{
    KL_TRY(fill(xml, elem, "link_speed", ""));
    return fill(xml, elem, "link_width", "");
}

static ncclResult_t fill_gpu(struct kl_xml *xml, int elem, int order)
{
    KL_TRY(fill_int(xml, elem, "dev", order));
    KL_TRY(fill(xml, elem, "sm", "80"));
    return fill(xml, elem, "gdr", "1");
}

static bool any_net_has_dev(const struct kl_xml *xml)
{
    for (int e = KL_XML_ROOT; e != KL_XML_NONE; e = kl_xml_walk(xml, KL_XML_ROOT, e))
        if (!strcmp(kl_xml_tag(xml, e), "net") && kl_xml_attr(xml, e, "dev")) return true;
    return false;
}

static ncclResult_t fill_all(struct kl_xml *xml)
{
    bool number_nets = !any_net_has_dev(xml);
    int gpus = 0, nets = 0;

    for (int e = KL_XML_ROOT; e != KL_XML_NONE; e = kl_xml_walk(xml, KL_XML_ROOT, e)) {
        const char *tag = kl_xml_tag(xml, e);

        if (!strcmp(tag, "cpu")) KL_TRY(fill_cpu(xml, e));
        if (!strcmp(tag, "pci")) KL_TRY(fill_pci(xml, e));
        if (!strcmp(tag, "gpu")) KL_TRY(fill_gpu(xml, e, gpus++));
        if (!strcmp(tag, "net") && number_nets) KL_TRY(kl_xml_set_int(xml, e, "dev", nets++));
    }
    return ncclSuccess;
}

/* ---- rank order ---- */

struct gpu {
    int elem, key, order;
};

static int by_key(const void *x, const void *y)
{
    const struct gpu *a = x, *b = y;

    if (a->key != b->key) return a->key < b->key ? -1 : 1;
    return a->order < b->order ? -1 : 1;
}

/* Sort by an attribute if all have it and no two are equal. */
static bool sort_by(const struct kl_xml *xml, struct gpu *gpu, int n, const char *attr)
{
    for (int i = 0; i < n; i++) {
        if (!kl_xml_attr(xml, gpu[i].elem, attr)) return false;
        gpu[i].key = kl_xml_int(xml, gpu[i].elem, attr, 0);
    }
    qsort(gpu, (size_t)n, sizeof *gpu, by_key);
    for (int i = 1; i < n; i++)
        if (gpu[i].key == gpu[i - 1].key) return false;
    return true;
}

static int by_order(const void *x, const void *y)
{
    return ((const struct gpu *)x)->order - ((const struct gpu *)y)->order;
}

/* Decide whether `rank` or `dev` orders the GPUs before the defaults are filled in. */
static void sort_gpus(const struct kl_xml *xml, struct gpu *gpu, int n)
{
    if (sort_by(xml, gpu, n, "rank") || sort_by(xml, gpu, n, "dev")) return;
    qsort(gpu, (size_t)n, sizeof *gpu, by_order);
}

static int collect_gpus(const struct kl_xml *xml, struct gpu *gpu)
{
    int n = 0;

    for (int e = KL_XML_ROOT; e != KL_XML_NONE; e = kl_xml_walk(xml, KL_XML_ROOT, e))
        if (!strcmp(kl_xml_tag(xml, e), "gpu")) {
            gpu[n] = (struct gpu){.elem = e, .order = n};
            n++;
        }
    return n;
}

ncclResult_t kl_machine_complete(struct kl_xml *file, int *elem)
{
    struct gpu *gpu;
    ncclResult_t rc;

    KL_TRY(kl_machine_check_file(file));
    gpu = malloc(((size_t)kl_machine_file_gpus(file) + 1) * sizeof *gpu);
    if (!gpu) return KL_NOMEM("a topology");
    int n = collect_gpus(file, gpu);
    sort_gpus(file, gpu, n);
    KL_TRY_OR(rc, out, fill_all(file));
    for (int i = 0; i < n; i++) {
        KL_TRY_OR(rc, out, kl_xml_set_int(file, gpu[i].elem, "rank", i));
        if (elem) elem[i] = gpu[i].elem;
    }
out:
    free(gpu);
    return rc;
}
