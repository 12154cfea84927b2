// SPDX-License-Identifier: Apache-2.0
/**
 * groups.hpp - groups made of a group: split, merge, shrink.
 */
#pragma once

#include "backend.hpp"

#include <torch/csrc/distributed/c10d/PrefixStore.hpp>

#include <algorithm>

namespace kolo
{

intrusive_ptr<Options> KoloBackend::options_for_child(const intrusive_ptr<Options> &opts) const
{
    auto own = c10::make_intrusive<Options>(opts ? *opts : *options_); // the caller's may be getBackendOptions() itself
    if (own->group_name.empty()) own->group_name = link_->group;
#ifdef C10D_BACKEND_HAS_RECONFIGURE
    own->enable_reconfigure = false; // it has its members
#endif
    return own;
}

intrusive_ptr<Backend> KoloBackend::child(ncclComm_t comm, const intrusive_ptr<Store> &store, int rank, int size,
                                          const intrusive_ptr<Options> &opts)
{
    auto own = options_for_child(opts);
    return c10::make_intrusive<KoloBackend>(link_around(comm, rank, own->group_name), store, rank, size, own, manner_);
}

intrusive_ptr<Backend> KoloBackend::split(const intrusive_ptr<Store> &store, const std::vector<int> &ranks,
                                          const intrusive_ptr<Options> &opts)
{
    const auto me = std::find(ranks.begin(), ranks.end(), rank_);
    const bool member = me != ranks.end();
    const int place = (int)(me - ranks.begin());
    ncclComm_t comm = nullptr;
    {
        std::lock_guard hold(link_->issue);
        // Lists of one call do not overlap, so the lowest rank tells them apart.
        const int color = member ? *std::min_element(ranks.begin(), ranks.end()) : NCCL_SPLIT_NOCOLOR;
        if (const ncclResult_t r = ncclCommSplit(link_->comm, color, place, &comm, nullptr)) link_->fail("split", 0, r);
    }
    return member ? child(comm, store, place, (int)ranks.size(), opts) : nullptr;
}

intrusive_ptr<Backend> KoloBackend::merge(const intrusive_ptr<Store> &store, const intrusive_ptr<Options> &opts,
                                          const int &rank, const int &size)
{
    return create(store, rank, size, options_for_child(opts), manner_);
}

intrusive_ptr<Backend> KoloBackend::shrink(const std::vector<int64_t> &excluded, int flags,
                                           const intrusive_ptr<Options> &opts)
{
    const std::set<int64_t> gone(excluded.begin(), excluded.end());
    std::vector<int> list(gone.begin(), gone.end());
    ncclComm_t comm = nullptr;

    if (gone.count(rank_))
        bad_value("shrink", "rank " + std::to_string(rank_) + " is one of those to exclude: it takes no part");
    const int place = rank_ - (int)std::distance(gone.begin(), gone.lower_bound(rank_));
    {
        std::lock_guard hold(link_->issue);
        const ncclResult_t r = ncclCommShrink(link_->comm, list.data(), (int)list.size(), &comm, nullptr, flags);
        if (r != ncclSuccess) link_->fail("shrink", 0, r);
    }
    auto store = c10::make_intrusive<c10d::PrefixStore>("shrink" + std::to_string(shrunk_++) + "/", store_);
    return child(comm, store, place, size_ - (int)gone.size(), opts);
}

} // namespace kolo
