/* SPDX-License-Identifier: Apache-2.0 */
/** log_plugin.c - lines of network plugins: its name and release. */
#include "logs/log_make.h"

#include <ctype.h>
#include <string.h>

static const struct {
    const char *word, *name;
} plugins[] = {{"NET/OFI", "aws-ofi-nccl"},
               {"NET/AWS Libfabric", "aws-ofi-nccl"},
               {"libfabric:", "libfabric"},
               {"GPUDirectTCPX", "GPUDirect-TCPX"},
               {"NET/FasTrak", "GPUDirect-TCPXO"},
               {"FastSocket", "Fast Socket"},
               {"NET/gIB", "gIB"},
               {"SHARP", "SHARP"},
               {"NET/UCX", "UCX"},
               {"NET/Plugin", "a network plugin"}};

static const char *plugin_in(const struct kl_log_line *line)
{
    if (!strncmp(line->where, "libfabric", 9)) return "libfabric";
    if (strstr(line->where, "fastsocket")) return "Fast Socket";
    for (size_t i = 0; i < sizeof plugins / sizeof plugins[0]; i++)
        if (strstr(line->text, plugins[i].word)) return plugins[i].name;
    return NULL;
}

/* "Initializing aws-ofi-nccl 1.9.1-aws" */
static const char *version_in(struct kl_log *log, const char *text)
{
    const char *at = kl_log_after(text, "aws-ofi-nccl "), *end;

    if (!at || !isdigit((unsigned char)*at)) return NULL;
    end = at + strspn(at, "0123456789.");
    return kl_log_keep(log, at, (size_t)(end - at));
}

bool kl_log_read_plugin(struct kl_log *log, int origin, const struct kl_log_line *line)
{
    const char *name = plugin_in(line);

    (void)origin;
    if (!name || (line->level == KL_LOG_PLAIN && *line->text == '#')) return false;
    log->plugin.lines++;
    if (!log->plugin.name) log->plugin.name = name;
    if (!log->plugin.version) log->plugin.version = version_in(log, line->text);
    return true;
}
