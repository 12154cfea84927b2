// SPDX-License-Identifier: Apache-2.0
/**
 * barriers.hpp - the barrier of the communicator, and the one through the store that names missing ranks.
 */
#pragma once

#include "submit.hpp"

namespace kolo
{

WorkPtr KoloBackend::barrier(const c10d::BarrierOptions &opts)
{
    const Call call = call_of(OpType::BARRIER, "barrier", "kolo:barrier", opts);
    Staging staging;

    return submit(call, {}, {}, staging, [](Scope &s) { return koloBarrier(s.comm, s.stream); });
}

/** A barrier through the store, which works also when other ranks have failed: rank 0 names the missing ranks. */
struct MonitoredBarrier {
    const intrusive_ptr<Store> &store;
    const int rank, size;
    const uint64_t number;
    const milliseconds timeout;
    const Clock::time_point end = Clock::now() + timeout;

    std::string key(uint64_t n, const std::string &name) const
    {
        return "monitored/" + std::to_string(n) + "/" + name;
    }

    bool await(const std::string &name) const
    {
        const auto left = std::chrono::duration_cast<milliseconds>(end - Clock::now());
        try {
            if (left.count() <= 0) return store->check({key(number, name)});
            store->wait({key(number, name)}, left);
            return true;
        } catch (const std::exception &) {
            return false;
        }
    }

    void collect(bool wait_all_ranks) const
    {
        std::string missing;
        for (int r = 1; r < size; r++) {
            if (await(std::to_string(r))) continue;
            missing += (missing.empty() ? "" : ", ") + std::to_string(r);
            if (!wait_all_ranks) break;
        }
        if (missing.empty()) return;
        const std::string ms = std::to_string(timeout.count()) + " ms";
        const std::string text = "[Rank 0]: Rank" + std::string(wait_all_ranks ? "s " : " ") + missing +
                                 " failed to pass monitoredBarrier in " + ms;
        store->set(key(number, "go"), text);
        TORCH_CHECK(false, text, timeout.count() ? "" : "; Rank 0 timed out in monitoredBarrier after " + ms);
    }

    void follow() const
    {
        store->set(key(number, std::to_string(rank)), std::string("here"));
        const std::string prefix = "Rank " + std::to_string(rank) + " successfully reached monitoredBarrier, but " +
                                   "received errors while waiting for send/recv from rank 0: ";
        TORCH_CHECK(await("go"), prefix, "nothing came within ", timeout.count(), " ms. Please check rank 0");
        const auto verdict = store->get(key(number, "go"));
        TORCH_CHECK(verdict.size() == 2, prefix, std::string(verdict.begin(), verdict.end()));
        store->deleteKey(key(number, std::to_string(rank)));
    }

    void run(bool wait_all_ranks) const
    {
        if (rank) return follow();
        collect(wait_all_ranks);
        store->set(key(number, "go"), std::string("go"));
        if (number > 1) store->deleteKey(key(number - 1, "go")); // all have passed that one
    }
};

void KoloBackend::monitoredBarrier(const c10d::BarrierOptions &opts, bool wait_all_ranks)
{
    const auto timeout = opts.timeout == c10d::kUnsetTimeout ? options_->timeout : opts.timeout;

    TORCH_CHECK(!manner_.as_nccl, "kolo: monitored_barrier: ProcessGroupNCCL does not support monitoredBarrier");
    check_alive({OpType::BARRIER, "monitored_barrier", nullptr, timeout, false});
    MonitoredBarrier{store_, rank_, size_, ++monitored_, timeout}.run(wait_all_ranks);
}

} // namespace kolo
