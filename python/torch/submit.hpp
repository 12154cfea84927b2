// SPDX-License-Identifier: Apache-2.0
/**
 * submit.hpp - how an operation of the group is issued: at once on the inline stream, queued behind others, or put into a batch.
 */
#pragma once

#include "batch.hpp"
#include "record.hpp"

#include <ATen/record_function.h>

namespace kolo
{

void KoloBackend::check_alive(const Call &call) const
{
    if (!link_->comm || link_->aborted || link_->ended) link_->fail(call.name, 0, ncclInvalidUsage);
}

/** Under the lock: how long operations from now on may stand still. */
void KoloBackend::be_patient(milliseconds timeout)
{
    constexpr milliseconds longest = std::chrono::hours(24 * 365);

    if (timeout == link_->timeout_set) return;
    if (koloSetTimeout(link_->comm, (unsigned long long)std::min(timeout, longest).count()) == ncclSuccess)
        link_->timeout_set = timeout;
}

template <class F>
WorkPtr KoloBackend::submit(const Call &call, const Tensors &inputs, const Tensors &outputs, Staging &staging, F issue)
{
    check_alive(call);
    if (manner_.as_nccl) {
        check_tensors_of_nccl(call.name, inputs, !call.message);
        check_tensors_of_nccl(call.name, outputs, !call.message);
    }
    const uint64_t seq = call.message ? 0 : ++seq_;
    const Records records = record(call, seq, inputs, outputs);
    if (auto *batch = own_batch()) {
        put_into_batch(*batch, call, inputs, outputs, staging, std::move(issue), records);
        return finished(call, seq, outputs);
    }
    try {
        return run_or_enqueue(call, seq, inputs, outputs, staging, issue, records);
    } catch (...) {
        for (auto id : records) FlightRecorder::get().finish(id, false);
        link_->after_failure();
        throw;
    }
}

template <class F>
WorkPtr KoloBackend::run_or_enqueue(const Call &call, uint64_t seq, const Tensors &inputs, const Tensors &outputs,
                                    Staging &staging, F &issue, const Records &records)
{
    const bool profiled = at::getStepCallbacksUnlessEmpty(at::RecordScope::USER_SCOPE).has_value();
    if (manner_.run_inline || (!call.async && !profiled)) {
        if (run_now(call, seq, staging, issue, records)) {
            for (auto id : records) FlightRecorder::get().finish(id, true);
            return call.async ? finished(call, seq, outputs) : nullptr;
        }
    }
    auto work = enqueue(call, seq, inputs, outputs, staging, issue);
    work->follow(records);
    if (!call.async) work->wait();
    return work;
}

/** False: others are under way, and this one has to queue behind them. */
template <class F>
bool KoloBackend::run_now(const Call &call, uint64_t seq, Staging &staging, F &issue, const Records &records)
{
    {
        std::lock_guard hold(link_->issue);
        if (!link_->is_idle()) return false;
        for (auto id : records) FlightRecorder::get().start(id);
        be_patient(call.timeout);
        Scope scope(link_->comm, link_->direct);
        ncclResult_t r = issue(scope);
        if (r == ncclSuccess) r = koloStreamSynchronize(link_->direct);
        if (r != ncclSuccess) link_->fail(call.name, seq, r);
    }
    staging.bring_back();
    return true;
}

template <class F>
intrusive_ptr<KoloWork> KoloBackend::enqueue(const Call &call, uint64_t seq, const Tensors &inputs,
                                             const Tensors &outputs, Staging &staging, F &issue)
{
    auto work = c10::make_intrusive<KoloWork>(link_, call, seq, inputs, outputs);
    {
        std::lock_guard hold(link_->issue);
        be_patient(call.timeout);
        Scope scope(link_->comm, link_->queue);
        ncclResult_t r = issue(scope);
        if (r == ncclSuccess) r = work->mark(link_->queue);
        if (r != ncclSuccess) link_->fail(call.name, seq, r);
        work->staging = std::move(staging);
    }
    link_->add_pending(work);
    return work;
}

WorkPtr KoloBackend::finished(const Call &call, uint64_t seq, const Tensors &outputs)
{
    auto work = c10::make_intrusive<KoloWork>(link_, call, seq, std::nullopt, outputs);
    work->settle(ncclSuccess);
    return work;
}

} // namespace kolo
