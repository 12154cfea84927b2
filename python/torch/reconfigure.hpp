// SPDX-License-Identifier: Apache-2.0
/**
 * reconfigure.hpp - a group gets other members, since PyTorch 2.14.
 */
#pragma once

#include "submit.hpp"

#include <torch/csrc/distributed/c10d/PrefixStore.hpp>

#include <algorithm>

namespace kolo
{

#ifdef C10D_BACKEND_HAS_RECONFIGURE
bool KoloBackend::supportsReconfigure() const
{
    return options_->enable_reconfigure;
}

c10d::ReconfigureHandle KoloBackend::get_reconfigure_handle() const
{
    TORCH_CHECK(options_->enable_reconfigure, "kolo: group ", link_->group,
                " cannot be reconfigured: it was made without enable_reconfigure");
    return handle_;
}

inline uint64_t global_rank_of(const c10d::ReconfigureHandle &handle)
{
    unsigned long long rank = 0;

    if (std::sscanf(handle.c_str(), "kolo:%llu:", &rank) != 1)
        bad_value("reconfigure", "\"" + handle + "\" is no handle of a group of kolo");
    return rank;
}

/** By position in a list; a set is sorted. */
inline std::vector<std::string> members_of(const c10d::ReconfigureOptions &opts)
{
    if (auto *list = std::get_if<std::vector<c10d::ReconfigureHandle>>(&opts.handles)) return *list;
    const auto &set = std::get<std::unordered_set<c10d::ReconfigureHandle>>(opts.handles);
    std::vector<std::string> sorted(set.begin(), set.end());
    std::sort(sorted.begin(), sorted.end());
    return sorted;
}

/** Members that meet under a number that was used would find the answers of others there. */
inline void claim(const intrusive_ptr<Store> &store, int rank, const std::string &handle, int64_t number)
{
    if (rank) return;
    const std::vector<uint8_t> mine(handle.begin(), handle.end());
    TORCH_CHECK(store->compareSet("claimed", {}, mine) == mine, "kolo: reconfigure: the uuid ", number,
                " was already used");
}

/** The group gets other members. Nothing of it is under way on this rank. On failure all stays as it was. */
WorkPtr KoloBackend::reconfigure(const c10d::ReconfigureOptions &opts)
{
    const Call call{OpType::UNKNOWN, "reconfigure", "kolo:reconfigure", options_->timeout, true};
    const std::string own = get_reconfigure_handle();
    const auto members = members_of(opts);
    const auto me = std::find(members.begin(), members.end(), own);
    auto options = c10::make_intrusive<Options>(*options_);

    if (me == members.end()) bad_value(call.name, "this rank's handle " + own + " is not among the handles");
    TORCH_CHECK(!numbers_used_.count(opts.uuid), "kolo: reconfigure: the uuid ", opts.uuid, " was already used");
    options->global_ranks_in_group.clear();
    for (auto &m : members) options->global_ranks_in_group.push_back(global_rank_of(m));
    options->timeout = opts.timeout.value_or(options_->timeout);
    const int rank = (int)(me - members.begin()), size = (int)members.size();
    intrusive_ptr<Store> store =
        c10::make_intrusive<c10d::PrefixStore>("reconfigure/" + std::to_string(opts.uuid), first_store_);
    claim(store, rank, own, opts.uuid);
    numbers_used_.insert(opts.uuid);
    auto link = connect(store, rank, size, *options);
    become(std::move(link), store, rank, size, options->global_ranks_in_group);
    return finished(call, 0, {});
}

void KoloBackend::become(std::shared_ptr<Link> link, const intrusive_ptr<Store> &store, int rank, int size,
                         const std::vector<uint64_t> &global_ranks)
{
    const auto old = link_;
    if (old->comm && !left_) {
        old->settle_pending(false);
        old->aborted = true;
        ncclCommAbort(old->comm); // members that are gone would keep a destroy waiting
        old->settle_pending(true);
        quit_messages(true);
    }
    link->hooks = old->hooks;
    link->global_rank = old->global_rank;
    tagged_.reset();
    messages_.reset();
    link_ = std::move(link);
    store_ = store;
    rank_ = rank;
    size_ = size;
    options_->global_ranks_in_group = global_ranks;
    seq_ = 0;
    monitored_ = 0;
    left_ = false;
    begin_messages();
}
#endif

} // namespace kolo
