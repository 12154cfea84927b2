/* SPDX-License-Identifier: Apache-2.0 */
#include "topo/assume.h"

#include "base/text.h"

void kl_assume(struct kl_assumed *assumed, struct kl_assumption what)
{
    if (assumed && assumed->n < KL_ASSUMED_MAX) assumed->at[assumed->n++] = what;
}

const char *kl_assumed_name(enum kl_assumed_code code)
{
    static const char *const names[KL_ASSUMED_CODES] = {
        [KL_ASSUMED_MACHINE] = "machine",
        [KL_ASSUMED_GPUS] = "gpus",
        [KL_ASSUMED_GPU_ORDER] = "gpu_order",
        [KL_ASSUMED_SWITCHED] = "nvlinks_to_switches",
        [KL_ASSUMED_WIRED] = "nvlinks_between_gpus",
        [KL_ASSUMED_NO_BRIDGE] = "no_bridge",
        [KL_ASSUMED_NOT_WIRED] = "no_nvlinks",
        [KL_ASSUMED_NICS] = "nics",
        [KL_ASSUMED_NIC_SPEED] = "nic_speed",
        [KL_ASSUMED_NICS_UNKNOWN] = "nics_unknown",
        [KL_ASSUMED_PCI_LINKS] = "pci_links",
        [KL_ASSUMED_CPU] = "cpu",
        [KL_ASSUMED_PRODUCT] = "product",
        [KL_ASSUMED_AMD] = "amd_gpus",
        [KL_ASSUMED_BUSIDS] = "bus_ids",
        [KL_ASSUMED_SM] = "sm",
        [KL_ASSUMED_USUAL_SPEED] = "usual_nic_speed",
        [KL_ASSUMED_CPUS] = "cpus",
        [KL_ASSUMED_ROOTS] = "root_buses",
    };

    return names[code];
}

static const struct {
    const char *name, *text;
} from_words[] = {
    [KL_FROM_OPTION] = {"option", "as --machine or KOLO_MACHINE says"},
    [KL_FROM_IDS] = {"device_id", "by PCI device id"},
    [KL_FROM_CONTENTS] = {"form", "by the file's contents"},
    [KL_FROM_NAME] = {"file_name", "by the file's name"},
    [KL_FROM_PRODUCT] = {"product", "by the GPUs' names"},
    [KL_FROM_MACHINE] = {"machine", "as that machine has them"},
    [KL_FROM_DEFAULT] = {"default", "by default"},
};

const char *kl_assumed_from_name(enum kl_assumed_from from)
{
    return from_words[from].name;
}

const char *kl_assumed_from_text(enum kl_assumed_from from)
{
    return from_words[from].text;
}

/* The assumptions about NICs, links, CPUs and products. */
static void say_of_parts(const struct kl_assumption *a, struct kl_text *t)
{
    const char *product = a->product ? a->product->name : "";
    int n = a->n;

    switch (a->code) {
    case KL_ASSUMED_NICS:
        kl_text_add(t, "%d NIC%s of %d port%s with %d Gb/s%s", n, kl_plural(n), a->more, kl_plural(a->more), a->gbps,
                    a->more > 1 ? " each" : "");
        break;
    case KL_ASSUMED_NIC_SPEED:
        kl_text_add(t, "%d NIC%s (%s) %s %d Gb/s, the most that such cards have", n, kl_plural(n), a->nic->name,
                    n == 1 ? "has" : "have", a->gbps);
        break;
    case KL_ASSUMED_NICS_UNKNOWN:
        kl_text_add(t, "%d NIC%s of unknown speed, neither in the file nor by ids: 10 Gb/s assumed", n, kl_plural(n));
        break;
    case KL_ASSUMED_PCI_LINKS:
        kl_text_add(t, "%d PCI link%s without a speed %s generation %d, x16", n, kl_plural(n), n == 1 ? "has" : "have",
                    a->more);
        break;
    case KL_ASSUMED_CPU:
        kl_text_add(t, "%d CPU%s %s of the machine's kind: %s, family %d, model %d", n, kl_plural(n),
                    n == 1 ? "is" : "are", a->machine->cpu->vendor ? a->machine->cpu->vendor : a->machine->cpu->arch,
                    a->machine->cpu->family, a->machine->cpu->model);
        break;
    case KL_ASSUMED_PRODUCT:
        kl_text_add(t, "the file's %d GPUs are %s", n, product);
        break;
    case KL_ASSUMED_AMD:
        kl_text_add(
            t, "%d AMD GPUs: the rules for NVIDIA's sm 80 stand in, with XGMI links as fast as RCCL counts them", n);
        break;
    default:
        break;
    }
}

static void say(const struct kl_assumption *a, struct kl_text *t)
{
    const char *product = a->product ? a->product->name : "";
    int n = a->n;

    switch (a->code) {
    case KL_ASSUMED_BUSIDS:
        kl_text_add(t, "bus ids are made up: the text has none");
        break;
    case KL_ASSUMED_ROOTS:
        kl_text_add(t, n > 1 ? "root buses from 80 on belong to a second CPU" : "all root buses belong to one CPU");
        break;
    case KL_ASSUMED_CPUS:
        kl_text_add(t, "%d CPU%s of Intel, Skylake to Ice Lake", n, kl_plural(n));
        break;
    case KL_ASSUMED_SM:
        kl_text_add(t, "%d GPU%s: %s%ssm %d", n, kl_plural(n), product, *product ? ", " : "", a->more);
        break;
    case KL_ASSUMED_USUAL_SPEED:
        kl_text_add(t, "%d NIC%s of %d Gb/s, usual beside such GPUs", n, kl_plural(n), a->gbps);
        break;
    case KL_ASSUMED_MACHINE:
        kl_text_add(t, "the machine is %s (%s)", a->machine->title, a->machine->name);
        if (a->other) kl_text_add(t, "; it could be %s as well: --machine %s", a->other->title, a->other->name);
        break;
    case KL_ASSUMED_GPUS:
        kl_text_add(t, "%d PCI device%s %s: %s, sm %d", n, kl_plural(n), n == 1 ? "is a GPU" : "are GPUs", product,
                    a->product->sm);
        break;
    case KL_ASSUMED_GPU_ORDER:
        kl_text_add(t, "GPUs are numbered by ascending bus id, as NVML numbers them");
        break;
    case KL_ASSUMED_SWITCHED:
        kl_text_add(t, "each GPU has %d NVLinks to NVSwitches", n);
        break;
    case KL_ASSUMED_WIRED:
        kl_text_add(t,
                    "each GPU has %d NVLinks to other GPUs, paired in the order of bus ids as in %s; the true order is "
                    "not in the file",
                    n, a->machine->title);
        break;
    case KL_ASSUMED_NO_BRIDGE:
        kl_text_add(t, "no NVLink bridge joins the cards (%s)", product);
        break;
    case KL_ASSUMED_NOT_WIRED:
        kl_text_add(t, "%d GPUs (%s) have no NVLinks, as nothing names any: name the machine with --machine", n,
                    product);
        break;
    default:
        say_of_parts(a, t);
        break;
    }
}

const char *kl_assumed_text(const struct kl_assumption *what, char text[KL_ASSUMED_TEXT])
{
    struct kl_text t = kl_text_in(text, KL_ASSUMED_TEXT);

    say(what, &t);
    return text;
}
