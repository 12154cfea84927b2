// SPDX-License-Identifier: Apache-2.0
/**
 * rendezvous.hpp - the ranks of a group find each other by c10d's store, and get a communicator and its streams.
 *
 * Failures are thrown, with the group's name; ranks that do not come within the group's timeout are named.
 */
#pragma once

#include "issue.hpp"

#include <torch/csrc/distributed/c10d/Store.hpp>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <random>

namespace kolo
{

[[noreturn]] inline void report_missing(const intrusive_ptr<Store> &store, int size, const std::string &group,
                                        milliseconds timeout)
{
    std::string missing;
    for (int r = 0; r < size; r++)
        if (!store->check({"kolo/here/" + std::to_string(r)})) missing.append(" ").append(std::to_string(r));
    C10_THROW_ERROR(DistBackendError, "kolo: group " + group + ": not all ranks came within " +
                                          std::to_string(timeout.count()) + " ms; missing:" + missing);
}

/** Wait until all ranks are here: Kolo's rendezvous then takes milliseconds, whoever was late. */
inline void meet(const intrusive_ptr<Store> &store, int rank, int size, const std::string &group, milliseconds timeout)
{
    store->set("kolo/here/" + std::to_string(rank), std::vector<uint8_t>{1});
    if (store->add("kolo/arrived", 1) == size) store->set("kolo/all", std::vector<uint8_t>{1});
    try {
        store->wait({"kolo/all"}, timeout);
    } catch (const std::exception &) {
        report_missing(store, size, group, timeout);
    }
}

inline ncclUniqueId exchange_id(const intrusive_ptr<Store> &store, int rank, const Link &link)
{
    ncclUniqueId id;
    if (rank == 0) {
        if (const ncclResult_t r = ncclGetUniqueId(&id)) link.fail("rendezvous", 0, r);
        auto *bytes = reinterpret_cast<const uint8_t *>(&id);
        store->set("kolo/id", std::vector<uint8_t>(bytes, bytes + sizeof id));
        return id;
    }
    const auto bytes = store->get("kolo/id");
    TORCH_CHECK(bytes.size() == sizeof id, "kolo: group ", link.group, ": the store's kolo/id has ", bytes.size(),
                " bytes, not ", sizeof id);
    std::copy(bytes.begin(), bytes.end(), reinterpret_cast<uint8_t *>(&id));
    return id;
}

/** torchrun's local rank names the device. Without one, or beyond the devices, the rank gets the next free one. */
inline void choose_device()
{
    const char *local = std::getenv("LOCAL_RANK");
    int count = 0;

    if (!local || koloGetDeviceCount(&count) != ncclSuccess) return;
    const int device = std::atoi(local);
    if (device >= 0 && device < count) koloSetDevice(device);
}

inline void make_streams(Link &link)
{
    int device = 0;
    ncclResult_t r = ncclCommCuDevice(link.comm, &device);
    if (r == ncclSuccess) r = koloSetDevice(device);
    if (r == ncclSuccess) r = koloStreamCreate(&link.queue, KOLO_STREAM_DEFAULT);
    if (r == ncclSuccess) r = koloStreamCreate(&link.direct, KOLO_STREAM_INLINE);
    if (r != ncclSuccess) link.fail("streams", 0, r);
}

inline std::shared_ptr<Link> link_around(ncclComm_t comm, int rank, const std::string &group)
{
    auto link = std::make_shared<Link>();
    link->rank = rank;
    link->group = group;
    link->comm = comm;
    make_streams(*link);
    return link;
}

inline std::shared_ptr<Link> connect(const intrusive_ptr<Store> &store, int rank, int size, const Options &options)
{
    auto link = std::make_shared<Link>();
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;

    link->rank = rank;
    link->group = options.group_name;
    meet(store, rank, size, link->group, options.timeout);
    const ncclUniqueId id = exchange_id(store, rank, *link);
    choose_device();
    config.commName = link->group.c_str();
    if (const ncclResult_t r = ncclCommInitRankConfig(&link->comm, size, id, rank, &config)) link->fail("init", 0, r);
    make_streams(*link);
    return link;
}

#ifdef C10D_BACKEND_HAS_RECONFIGURE
/** Of a group that has its first members when it is reconfigured. */
inline std::shared_ptr<Link> unconnected(int rank, const Options &options)
{
    auto link = std::make_shared<Link>();

    link->rank = rank;
    link->group = options.group_name;
    return link;
}

/** "kolo:RANK:NUMBER": the rank is the one of the process in its first group; handles sort by it. */
inline std::string make_handle(uint64_t global_rank)
{
    std::random_device random;
    char text[64];

    std::snprintf(text, sizeof text, "kolo:%08llu:%08x%08x", (unsigned long long)global_rank, random(), random());
    return text;
}
#endif

} // namespace kolo
