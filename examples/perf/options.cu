/* SPDX-License-Identifier: Apache-2.0 */
#include "options.h"

#include <getopt.h>
#include <string.h>

static const named_type types[] = {
    {"int8", ncclInt8},      {"uint8", ncclUint8},       {"int32", ncclInt32},  {"uint32", ncclUint32},
    {"int64", ncclInt64},    {"uint64", ncclUint64},     {"half", ncclFloat16}, {"float", ncclFloat32},
    {"double", ncclFloat64}, {"bfloat16", ncclBfloat16},
};
static const named_op ops[] = {
    {"sum", ncclSum}, {"prod", ncclProd}, {"max", ncclMax}, {"min", ncclMin}, {"avg", ncclAvg},
};

static const option table[] = {
    {"minbytes", required_argument, nullptr, 'b'},
    {"maxbytes", required_argument, nullptr, 'e'},
    {"stepbytes", required_argument, nullptr, 'i'},
    {"stepfactor", required_argument, nullptr, 'f'},
    {"ngpus", required_argument, nullptr, 'g'},
    {"nthreads", required_argument, nullptr, 't'},
    {"iters", required_argument, nullptr, 'n'},
    {"warmup_iters", required_argument, nullptr, 'w'},
    {"check", required_argument, nullptr, 'c'},
    {"datatype", required_argument, nullptr, 'd'},
    {"op", required_argument, nullptr, 'o'},
    {"root", required_argument, nullptr, 'r'},
    {"help", no_argument, nullptr, 'h'},
    {nullptr, 0, nullptr, 0},
};

[[noreturn]] static void usage(const char *name, int rc)
{
    fprintf(rc ? stderr : stdout,
            "usage: %s_perf [options]\n"
            "  -b, --minbytes SIZE      first size; 8, 64K, 1M, 1G (32M)\n"
            "  -e, --maxbytes SIZE      last size (32M)\n"
            "  -i, --stepbytes SIZE     from size to size (1M)\n"
            "  -f, --stepfactor N       or N times the size before\n"
            "  -g, --ngpus N            devices of a thread (1)\n"
            "  -t, --nthreads N         threads of a process (1)\n"
            "  -n, --iters N            calls that are measured (20)\n"
            "  -w, --warmup_iters N     calls before (1)\n"
            "  -c, --check 0|1          verify the results (1)\n"
            "  -d, --datatype TYPE      int8 ... double, bfloat16, or all (float)\n"
            "  -o, --op OP              sum, prod, max, min, avg, or all (sum)\n"
            "  -r, --root RANK          of collectives that have one (0)\n",
            name);
    exit(rc);
}

static size_t number(const char *text, const char *name)
{
    char *end;
    double value = strtod(text, &end);

    if (end == text || value < 0) usage(name, 1);
    switch (*end) {
    case 'G':
    case 'g':
        value *= 1 << 30;
        break;
    case 'M':
    case 'm':
        value *= 1 << 20;
        break;
    case 'K':
    case 'k':
        value *= 1 << 10;
        break;
    case 0:
        break;
    default:
        usage(name, 1);
    }
    return (size_t)value;
}

template <typename T, size_t N>
static void choose(const T (&all)[N], const char *text, std::vector<T> &chosen, const char *name)
{
    chosen.clear();
    for (const T &t : all)
        if (!strcmp(text, "all") || !strcmp(text, t.name)) chosen.push_back(t);
    if (chosen.empty()) usage(name, 1);
}

options read_options(int argc, char **argv, const char *name)
{
    options o;

    choose(types, "float", o.types, name);
    choose(ops, "sum", o.ops, name);
    for (int c; (c = getopt_long(argc, argv, "b:e:i:f:g:t:n:w:c:d:o:r:h", table, nullptr)) != -1;) switch (c) {
        case 'b':
            o.first = number(optarg, name);
            break;
        case 'e':
            o.last = number(optarg, name);
            break;
        case 'i':
            o.step = number(optarg, name);
            break;
        case 'f':
            o.factor = number(optarg, name);
            break;
        case 'g':
            o.gpus = (int)number(optarg, name);
            break;
        case 't':
            o.threads = (int)number(optarg, name);
            break;
        case 'n':
            o.iterations = (int)number(optarg, name);
            break;
        case 'w':
            o.warmup = (int)number(optarg, name);
            break;
        case 'c':
            o.check = (int)number(optarg, name);
            break;
        case 'd':
            choose(types, optarg, o.types, name);
            break;
        case 'o':
            choose(ops, optarg, o.ops, name);
            break;
        case 'r':
            o.root = (int)number(optarg, name);
            break;
        case 'h':
            usage(name, 0);
        default:
            usage(name, 1);
        }
    if (o.gpus < 1 || o.threads < 1 || o.iterations < 1 || (o.factor <= 1 && o.step == 0)) usage(name, 1);
    if (o.last < o.first) o.last = o.first;
    if (!o.first && o.factor > 1) o.first = 1; /* nothing times a factor is nothing for ever */
    return o;
}
