// SPDX-License-Identifier: Apache-2.0
/**
 * life.hpp - a group's state, its suspension and its end.
 */
#pragma once

#include "backend.hpp"

namespace kolo
{

at::Tensor KoloBackend::allocateTensor(long size, at::TensorOptions options)
{
    return allocate(size, options);
}

c10d::ErrorType KoloBackend::getError()
{
    ncclResult_t state = ncclSuccess;

    if (link_->aborted) return c10d::ErrorType::COMM_ERROR;
    if (!link_->comm || link_->ended || ncclCommGetAsyncError(link_->comm, &state) != ncclSuccess)
        return c10d::ErrorType::SUCCESS;
    if (state == ncclSuccess || state == ncclInProgress) return c10d::ErrorType::SUCCESS;
    if (link_->stood_still()) return c10d::ErrorType::TIMEOUT;
    return state == ncclRemoteError ? c10d::ErrorType::REMOTE_ERROR : c10d::ErrorType::COMM_ERROR;
}

std::unordered_map<std::string, uint64_t> KoloBackend::getMemoryStats()
{
    static const std::pair<const char *, ncclCommMemStat_t> kinds[] = {
        {"suspend", ncclStatGpuMemSuspend},
        {"suspended", ncclStatGpuMemSuspended},
        {"persist", ncclStatGpuMemPersist},
        {"total", ncclStatGpuMemTotal},
    };
    std::unordered_map<std::string, uint64_t> stats;
    std::lock_guard hold(link_->issue);

    for (auto &[name, kind] : kinds)
        if (const ncclResult_t r = ncclCommMemStats(link_->comm, kind, &stats[name])) link_->fail("memory_stats", 0, r);
    return stats;
}

void KoloBackend::flight_record(const std::string &file)
{
    const ncclResult_t r = koloFlightRecorder(link_->comm, file.empty() ? nullptr : file.c_str());
    if (r != ncclSuccess) link_->fail("flight_record", 0, r);
}

void KoloBackend::quit_messages(bool by_abort)
{
    if (!messages_) return;
    if (by_abort)
        messages_->abort();
    else
        messages_->shutdown();
}

void KoloBackend::abort()
{
    if (getpid() != link_->process || !link_->comm || left_.exchange(true)) return;
    link_->call_hooks();
    link_->settle_pending(false);
    link_->aborted = true;
    ncclCommAbort(link_->comm);
    link_->settle_pending(true);
    quit_messages(true);
}

void KoloBackend::shutdown()
{
    if (getpid() != link_->process || !link_->comm || left_.exchange(true)) return;
    const ncclResult_t r = koloStreamSynchronize(link_->queue);
    link_->settle_pending(r == ncclSuccess);
    link_->settle_pending(false);
    {
        std::lock_guard hold(link_->issue);
        link_->ended = true;
    }
    ncclCommDestroy(link_->comm);
    quit_messages(false);
}

/** The destructor's end: without waiting for peers. */
void KoloBackend::leave()
{
    if (getpid() != link_->process || !link_->comm || left_) return;
    link_->settle_pending(false);
    if (link_->is_idle())
        shutdown();
    else
        abort();
}

void KoloBackend::suspend()
{
    std::lock_guard hold(link_->issue);
    if (const ncclResult_t r = ncclCommSuspend(link_->comm, NCCL_SUSPEND_MEM)) link_->fail("suspend", 0, r);
}

void KoloBackend::resume()
{
    std::lock_guard hold(link_->issue);
    if (const ncclResult_t r = ncclCommResume(link_->comm)) link_->fail("resume", 0, r);
}

#ifdef C10D_BACKEND_HAS_HOOKS
/** Called once: when the group fails, or before abort(). */
void KoloBackend::registerAbortHook(int64_t id, c10d::AbortHook hook)
{
    link_->hooks->set(id, std::move(hook));
}

void KoloBackend::unregisterAbortHook(int64_t id)
{
    if (!link_->hooks->remove(id)) bad_value("unregister_abort_hook", "there is no hook " + std::to_string(id));
}
#endif

} // namespace kolo
