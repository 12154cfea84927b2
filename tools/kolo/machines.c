/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/kolo/machines.h"

#include "base/error.h"
#include "answer/machines.h"
#include "topo/config.h"
#include "topo/machine.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* ---- the list ---- */

ncclResult_t kl_machines_list(bool json, FILE *to)
{
    const struct kl_known_machine *m;

    if (json) return kl_machines_json(to);
    for (int i = 0; (m = kl_known_at(i)); i++) {
        struct kl_known_parts parts = kl_known_count(m);

        fprintf(to, "%-28s %s\n%-28s   %d x %s, %d NICs of %d Gb/s%s\n%-28s   %s: %s\n", m->name, m->title, "",
                parts.gpus, m->gpu, parts.nics * m->ports, m->gbps, m->trays > 1 ? " in each tray" : "", "",
                kl_known_certainty(m), m->source);
    }
    fprintf(to, "\nNAME:N takes N trays of a rack, as in gb200-nvl72:4. Layouts follow the source; bus ids are "
                "made up.\n");
    return ncclSuccess;
}

/* ---- files ---- */

static ncclResult_t write_machine(const struct kl_known_machine *m, const char *path)
{
    struct kl_xml *xml = NULL;
    ncclResult_t rc;
    FILE *to;

    KL_TRY(kl_known_document(m, m->trays, &xml));
    to = fopen(path, "we");
    rc = to ? ncclSuccess : KL_FAIL_ERRNO("creating %s", path);
    if (to)
        fprintf(to, "<!-- %s. How it is known: %s (%s). Bus ids and the order of devices are made up. -->\n", m->title,
                kl_known_certainty(m), m->source);
    if (!rc) rc = kl_xml_write(xml, to);
    if (to && fclose(to) && !rc) rc = KL_FAIL_ERRNO("writing %s", path);
    kl_xml_free(xml);
    return rc;
}

ncclResult_t kl_machines_write(const char *dir)
{
    if (mkdir(dir, 0777) && errno != EEXIST) return KL_FAIL_ERRNO("creating %s", dir);
    for (int i = 0; kl_known_at(i); i++) {
        char path[PATH_MAX];

        if (snprintf(path, sizeof path, "%s/%s.xml", dir, kl_known_at(i)->name) >= (int)sizeof path)
            return KL_FAIL(ncclInvalidUsage, "%s: the path is too long", dir);
        KL_TRY(write_machine(kl_known_at(i), path));
    }
    return ncclSuccess;
}

/* ---- for processes ---- */

static bool complain(const char *who)
{
    fprintf(stderr, "kolo %s: %s\n", who, kl_error_text());
    return false;
}

static void say_assumed(const char *who, const char *topo, const struct kl_assumed *assumed)
{
    char text[KL_ASSUMED_TEXT];

    if (assumed->n)
        fprintf(stderr, "kolo %s: %s: %s; kolo topo --topo lists all %d assumptions\n", who, topo,
                kl_assumed_text(&assumed->at[0], text), assumed->n);
}

bool kl_machines_use(const char *who, const char *topo, const char *machine)
{
    struct kl_assumed assumed = {.n = 0};
    struct kl_topo_config config;
    struct kl_topo_options options;
    struct kl_xml *file = NULL;

    if (!topo && !machine) return true;
    kl_topo_config_load(&config, &options);
    const char *name = machine ? machine : topo ? config.machine : NULL;
    ncclResult_t rc = kl_machine_load(topo, name, &assumed, &file);
    if (!rc) rc = kl_machine_check_file(file);
    kl_xml_free(file);
    if (rc) return complain(who);
    if (topo) say_assumed(who, topo, &assumed);
    if (machine) setenv("KOLO_MACHINE", machine, 1);
    if (!topo) setenv("NCCL_TOPO_FILE", "", 1); /* the requested machine, without a file */
    return true;
}
