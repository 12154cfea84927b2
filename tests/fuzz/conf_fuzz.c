/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a configuration file: parsing and loading every parameter from it must be safe, and the result
   must keep the contract of conf.h. */
#include "api/param_sets.h"
#include "base/cpuset.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define CHECK(cond)                                                                                                    \
    do {                                                                                                               \
        if (!(cond)) abort();                                                                                          \
    } while (0)

static void check_promises(const struct kl_conf *conf)
{
    int line = 0;

    CHECK(!strcmp(conf->file, "fuzz.conf"));
    CHECK(conf->nproblems <= KL_CONF_PROBLEMS);
    for (size_t i = 0; i < conf->nentries; i++) {
        const struct kl_conf_entry *e = &conf->entries[i];

        CHECK(e->line > line); /* one entry per line, in order */
        line = e->line;
        CHECK(e->name[0] && e->name[0] != '#' && !strpbrk(e->name, "=\n") && !strchr(e->value, '\n'));
        CHECK(strlen(e->name) + 1 + strlen(e->value) <= KL_CONF_LINE);
        CHECK(kl_conf_find(conf, e->name)->line <= line);
    }
}

static void load_everything(const struct kl_settings *settings)
{
    for (const struct kl_param_set *const *set = kl_param_registry.sets; *set; set++) {
        void *config = malloc((*set)->config_bytes);

        CHECK(config);
        kl_param_load_from(*set, config, settings);
        free(config);
    }
}

static void look_at(void *ctx, const struct kl_setting *setting)
{
    struct kl_cpuset cpus;
    char origin[KL_ORIGIN_TEXT];

    (void)ctx;
    kl_setting_origin(setting, origin);
    kl_param_nearest(&kl_param_registry, setting->name);
    kl_cpuset_parse_list(setting->text, &cpus);
    kl_cpuset_parse_map(setting->text, &cpus);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *const nothing[] = {NULL};
    struct kl_settings settings = {.environment = nothing, .system = KL_CONF_NONE};

    kl_conf_parse(&settings.user, "fuzz.conf", (const char *)data, size);
    check_promises(&settings.user);
    load_everything(&settings);
    kl_settings_each(&settings, look_at, NULL);
    kl_conf_free(&settings.user);
    return 0;
}
