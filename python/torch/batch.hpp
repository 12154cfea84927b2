// SPDX-License-Identifier: Apache-2.0
/**
 * batch.hpp - calls between startCoalescing and endCoalescing become one group of calls.
 */
#pragma once

#include "backend.hpp"

namespace kolo
{

Batch *KoloBackend::own_batch()
{
    if (!batching_) return nullptr;
    std::lock_guard hold(batch_guard_);
    return batch_ && batch_->owner == std::this_thread::get_id() ? batch_.get() : nullptr;
}

void KoloBackend::put_into_batch(Batch &batch, const Call &call, const Tensors &inputs, const Tensors &outputs,
                                 Staging &staging, Issue issue, const Records &records)
{
    batch.records.insert(batch.records.end(), records.begin(), records.end());
    batch.issues.push_back(std::move(issue));
    batch.inputs.insert(batch.inputs.end(), inputs.begin(), inputs.end());
    batch.outputs.insert(batch.outputs.end(), outputs.begin(), outputs.end());
    for (auto &t : staging.kept) batch.staging.kept.push_back(t);
    for (auto &b : staging.back) batch.staging.back.push_back(b);
    batch.timeout = std::max(batch.timeout, call.timeout);
}

void KoloBackend::startCoalescing()
{
    std::lock_guard hold(batch_guard_);
    batch_ = std::make_unique<Batch>(); // one that was never ended is forgotten: nothing of it was issued
    batch_->owner = std::this_thread::get_id();
    batching_ = true;
}

/** Messages alone take no part in the order of operations, so no stream has to come to them. */
c10::intrusive_ptr<KoloWork> KoloBackend::work_of_messages(const Call &call, Batch &batch)
{
    auto work = c10::make_intrusive<KoloWork>(link_, call, seq_, batch.inputs, batch.outputs);

    work->staging = std::move(batch.staging);
    return work;
}

WorkPtr KoloBackend::endCoalescing()
{
    std::unique_ptr<Batch> batch;
    {
        std::lock_guard hold(batch_guard_);
        TORCH_CHECK(batch_ && batch_->owner == std::this_thread::get_id(),
                    "kolo: endCoalescing without startCoalescing in this thread");
        batch = std::move(batch_);
        batching_ = false;
    }
    Call call{OpType::COALESCED, "coalesced", "kolo:coalesced", options_->timeout, true};
    call.timeout = batch->timeout > kNoTimeout ? batch->timeout : call.timeout;
    auto issue = [&](Scope &s) {
        if (batch->issues.empty()) return ncclSuccess;
        return grouped([&] {
            for (auto &one : batch->issues)
                if (const ncclResult_t r = one(s)) return r;
            return ncclSuccess;
        });
    };
    check_alive(call);
    auto work = batch->issues.empty() && !batch->parts.empty()
                    ? work_of_messages(call, *batch)
                    : enqueue(call, seq_, batch->inputs, batch->outputs, batch->staging, issue);
    work->parts = std::move(batch->parts);
    work->follow(std::move(batch->records));
    return work;
}

} // namespace kolo
