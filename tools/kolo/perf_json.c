/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/kolo/perf_json.h"

#include "api/param_sets.h"
#include "topo/release.h"

#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { LAYOUT_VERSION = 1, KEPT_DIGITS = 12 };

struct kl_perf_json {
    FILE *file;
    json_t *root, *results;
    bool failed; /* something did not fit into memory */
};

/* Takes the value over, like the functions of Jansson that end in _new. */
static void set(struct kl_perf_json *j, json_t *object, const char *key, json_t *value)
{
    if (json_object_set_new(object, key, value)) j->failed = true;
}

static void add(struct kl_perf_json *j, json_t *array, json_t *value)
{
    if (json_array_append_new(array, value)) j->failed = true;
}

static json_t *now(void)
{
    char text[32] = "";
    time_t t = time(NULL);
    struct tm tm;

    if (localtime_r(&t, &tm)) strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S", &tm);
    return json_string(text);
}

/* Bytes that are not UTF-8 would make the whole document unwritable. */
static json_t *any_string(const char *text)
{
    json_t *string = json_string(text);

    return string ? string : json_string("(not UTF-8)");
}

/* An unknown name may be a secret's, misspelled. */
static bool may_be_shown(const struct kl_setting *s)
{
    const struct kl_param *param = kl_param_find(&kl_param_registry, s->name);

    return param ? kl_param_display(param, s->text) == s->text
                 : kl_param_find_other(&kl_param_registry, s->name) != NULL;
}

struct listing {
    struct kl_perf_json *j;
    json_t *list;
};

static void add_setting(void *ctx, const struct kl_setting *s)
{
    struct listing *l = ctx;
    char line[KL_PARAM_TEXT + 128];

    if (!may_be_shown(s)) return;
    snprintf(line, sizeof line, "%s=%s", s->name, s->text);
    add(l->j, l->list, any_string(line));
}

static json_t *environment(struct kl_perf_json *j)
{
    struct kl_settings from = {.environment = environ, .user = KL_CONF_NONE, .system = KL_CONF_NONE};
    struct listing l = {.j = j, .list = json_array()};

    kl_settings_each(&from, add_setting, &l);
    return l.list;
}

static json_t *arguments(struct kl_perf_json *j, int argc, char *const *argv)
{
    json_t *list = json_array();

    for (int i = 0; i < argc; i++) add(j, list, any_string(argv[i]));
    return list;
}

struct kl_perf_json *kl_perf_json_open(const char *file, int argc, char *const *argv)
{
    struct kl_perf_json *j = calloc(1, sizeof *j);

    if (!j) return NULL;
    j->file = fopen(file, "we");
    if (!j->file) {
        free(j);
        return NULL;
    }
    j->root = json_object();
    set(j, j->root, "version", json_integer(LAYOUT_VERSION));
    set(j, j->root, "start_time", now());
    set(j, j->root, "args", arguments(j, argc, argv));
    set(j, j->root, "env", environment(j));
    set(j, j->root, "nccl_version", json_integer(NCCL_VERSION_CODE));
    return j;
}

void kl_perf_json_config(struct kl_perf_json *j, const struct kl_perf_config *c)
{
    static const char *const averages[] = {"rank0", "average", "min", "max"};
    json_t *o = json_object();
    char nccl[KL_NCCL_TEXT];

    set(j, j->root, "nccl", json_string(kl_nccl_text(c->release, nccl)));
    set(j, o, "collective", json_string(c->coll->name));
    set(j, o, "nthreads", json_integer(c->nthreads));
    set(j, o, "ngpus", json_integer(c->ndevices));
    set(j, o, "minimum_bytes", json_integer((json_int_t)c->min_bytes));
    set(j, o, "maximum_bytes", json_integer((json_int_t)c->max_bytes));
    if (c->step_factor > 1)
        set(j, o, "step_factor", json_integer(c->step_factor));
    else
        set(j, o, "step_bytes", json_integer((json_int_t)c->step_bytes));
    set(j, o, "warmup_iters", json_integer(c->warmups));
    set(j, o, "iterations", json_integer(c->iterations));
    set(j, o, "aggregated_iterations", json_integer(c->aggregated));
    set(j, o, "validation", json_integer(c->checks));
    set(j, o, "graph", json_integer(c->graph_launches));
    set(j, o, "blocking_collectives", json_boolean(c->blocking));
    set(j, o, "blocking_mode", json_integer(c->blocking));
    set(j, o, "parallel_init", json_boolean(c->parallel_init));
    set(j, o, "report_cputime", json_boolean(c->cpu_time));
    set(j, o, "average", json_string(averages[c->average]));
    set(j, o, "local_register", json_integer(c->registration));
    set(j, o, "unalign", json_integer(c->misalign));
    set(j, j->root, "config", o);
}

void kl_perf_json_devices(struct kl_perf_json *j, const struct kl_perf_device *devices, int nranks)
{
    json_t *list = json_array();

    for (int r = 0; r < nranks; r++) {
        json_t *o = json_object();
        char hex[16];

        snprintf(hex, sizeof hex, "0x%02x", devices[r].device);
        set(j, o, "rank", json_integer(devices[r].rank));
        set(j, o, "group", json_integer(0));
        set(j, o, "pid", json_integer(devices[r].pid));
        set(j, o, "hostname", any_string(devices[r].host));
        set(j, o, "device", json_integer(devices[r].device));
        set(j, o, "device_hex", json_string(hex));
        set(j, o, "device_info", json_string("host CPU"));
        add(j, list, o);
    }
    set(j, j->root, "devices", list);
}

static json_t *reals(struct kl_perf_json *j, const double *values, int n)
{
    json_t *list = json_array();

    for (int i = 0; i < n; i++) add(j, list, json_real(values[i]));
    return list;
}

static json_t *iterations(struct kl_perf_json *j, const struct kl_perf_half *h, int n, int nprocesses)
{
    const struct kl_perf_spread *s = &h->spread;
    json_t *o = json_object();

    set(j, o, "min_us", json_real(s->min));
    set(j, o, "max_us", json_real(s->max));
    set(j, o, "avg_us", json_real(s->mean));
    set(j, o, "p50_us", json_real(s->p50));
    set(j, o, "p95_us", json_real(s->p95));
    set(j, o, "p99_us", json_real(s->p99));
    set(j, o, "stdev_us", json_real(s->stdev));
    set(j, o, "cv_pct", json_real(s->cv_percent));
    set(j, o, "times_us", reals(j, h->times_us, n));
    set(j, o, "per_process_max_times_us", reals(j, h->process_max_us, nprocesses));
    return o;
}

static json_t *half(struct kl_perf_json *j, const struct kl_perf_config *c, const struct kl_perf_half *h,
                    int nprocesses)
{
    json_t *o = json_object();

    set(j, o, c->cpu_time ? "cpu_time" : "time", json_real(h->time_us));
    set(j, o, "alg_bw", json_real(h->bandwidth.algorithm));
    set(j, o, "bus_bw", json_real(h->bandwidth.bus));
    set(j, o, "nwrong", h->wrong == KL_PERF_UNCHECKED ? json_string("N/A") : json_integer(h->wrong));
    if (c->per_iteration) set(j, o, "per_iteration", iterations(j, h, c->iterations, nprocesses));
    return o;
}

void kl_perf_json_row(struct kl_perf_json *j, const struct kl_perf_config *c, const struct kl_perf_row *row,
                      int nprocesses)
{
    json_t *o = json_object();
    char root[16];

    snprintf(root, sizeof root, "%d", row->root);
    set(j, o, "size", json_integer((json_int_t)row->bytes));
    set(j, o, "count", json_integer((json_int_t)row->count));
    set(j, o, "type", json_string(row->type));
    set(j, o, "redop", json_string(row->op));
    set(j, o, "root", json_string(root)); /* text there, too */
    set(j, o, "out_of_place", half(j, c, &row->half[0], nprocesses));
    set(j, o, "in_place", half(j, c, &row->half[1], nprocesses));
    set(j, o, "actual_iterations", json_integer(c->iterations));
    if (!j->results) {
        j->results = json_array();
        set(j, j->root, "results", j->results);
    }
    add(j, j->results, o);
}

static void put_summary(struct kl_perf_json *j, const struct kl_perf_summary *s)
{
    json_t *wrong = json_object(), *speed = json_object();

    set(j, wrong, "count", json_integer(s->wrong));
    set(j, wrong, "okay", json_boolean(!s->wrong));
    set(j, speed, "bandwidth", json_real(kl_perf_mean_bandwidth(s)));
    set(j, speed, "okay", s->min_bandwidth < 0 ? json_string("unchecked") : json_boolean(!kl_perf_too_slow(s)));
    set(j, j->root, "out_of_bounds", wrong);
    set(j, j->root, "average_bus_bandwidth", speed);
    set(j, j->root, "errors", json_array());
    set(j, j->root, "end_time", now());
}

int kl_perf_json_close(struct kl_perf_json *j, const struct kl_perf_summary *summary)
{
    int rc = 0;

    if (!j) return 0;
    put_summary(j, summary);
    errno = ENOMEM;
    if (j->failed || json_dumpf(j->root, j->file, JSON_INDENT(2) | JSON_REAL_PRECISION(KEPT_DIGITS))) rc = -1;
    if (fputc('\n', j->file) == EOF || fclose(j->file)) rc = -1;
    json_decref(j->root);
    free(j);
    return rc;
}
