/* SPDX-License-Identifier: Apache-2.0 */
/**
 * cooperative_groups.h - groups of threads that wait for each other and exchange values: grids, blocks, tiles, and lanes of a warp that
 * have come to the same place.
 */
#ifndef KOLO_CUDA_COOPERATIVE_GROUPS_H
#define KOLO_CUDA_COOPERATIVE_GROUPS_H

#include "cuda_runtime.h"

#if !defined(__KOLO_NVCC__)
#error "cooperative_groups.h is only for code that kolo-nvcc compiles"
#endif

#pragma GCC system_header

#include <type_traits>

namespace cooperative_groups
{

/** Threads of a block. */
class thread_block
{
  public:
    static constexpr unsigned _max_size = 1024;

    void sync(KOLO_CUDA_HERE) const
    {
        ::__syncthreads(file, line);
    }
    /** A thread that has arrived waits where all others do: so the wait is the whole barrier. */
    class arrival_token
    {
    };
    arrival_token barrier_arrive() const
    {
        return arrival_token();
    }
    void barrier_wait(arrival_token &&, KOLO_CUDA_HERE) const
    {
        sync(file, line);
    }
    unsigned thread_rank() const
    {
        return __kolo::thread_rank();
    }
    unsigned size() const
    {
        return blockDim.x * blockDim.y * blockDim.z;
    }
    unsigned num_threads() const
    {
        return size();
    }
    dim3 group_index() const
    {
        return dim3(blockIdx.x, blockIdx.y, blockIdx.z);
    }
    dim3 thread_index() const
    {
        return dim3(threadIdx.x, threadIdx.y, threadIdx.z);
    }
    dim3 group_dim() const
    {
        return blockDim;
    }
    dim3 dim_threads() const
    {
        return blockDim;
    }
};

/** All threads of a cluster of blocks; without clusters of the block. */
class cluster_group
{
  public:
    static void sync(KOLO_CUDA_HERE)
    {
        __koloClusterBarrier(file, line);
    }
    /** A thread that has arrived waits where all others do: so the wait is the whole barrier. */
    class arrival_token
    {
    };
    static arrival_token barrier_arrive()
    {
        return arrival_token();
    }
    static void barrier_wait(KOLO_CUDA_HERE)
    {
        sync(file, line);
    }
    static void barrier_wait(arrival_token &&, KOLO_CUDA_HERE)
    {
        sync(file, line);
    }
    static dim3 dim_blocks()
    {
        dim3 d;

        __koloClusterDim(&d.x, &d.y, &d.z);
        return d;
    }
    static dim3 block_index()
    {
        const dim3 d = dim_blocks();

        return dim3(blockIdx.x % d.x, blockIdx.y % d.y, blockIdx.z % d.z);
    }
    static unsigned block_rank()
    {
        const dim3 d = dim_blocks(), at = block_index();

        return at.x + d.x * (at.y + d.y * at.z);
    }
    static unsigned num_blocks()
    {
        const dim3 d = dim_blocks();

        return d.x * d.y * d.z;
    }
    static dim3 dim_threads()
    {
        const dim3 d = dim_blocks();

        return dim3(d.x * blockDim.x, d.y * blockDim.y, d.z * blockDim.z);
    }
    static dim3 thread_index()
    {
        const dim3 at = block_index();

        return dim3(at.x * blockDim.x + threadIdx.x, at.y * blockDim.y + threadIdx.y, at.z * blockDim.z + threadIdx.z);
    }
    static unsigned thread_rank()
    {
        return block_rank() * thread_block().size() + __kolo::thread_rank();
    }
    static unsigned num_threads()
    {
        return num_blocks() * thread_block().size();
    }
    static unsigned size()
    {
        return num_threads();
    }
    /** The block that the address in shared memory belongs to, and the same address in the block `rank`. */
    static unsigned query_shared_rank(const void *address)
    {
        return __koloClusterRankOf(address);
    }
    template <class T> static T *map_shared_rank(T *address, int rank)
    {
        return static_cast<T *>(__koloClusterShared((void *)address, (unsigned)rank));
    }
};

inline cluster_group this_cluster()
{
    return cluster_group();
}

/** All threads of a cooperative launch. */
class grid_group
{
  public:
    bool is_valid() const
    {
        return __koloCooperative();
    }
    void sync(KOLO_CUDA_HERE) const
    {
        __koloGridBarrier(file, line);
    }
    /** A thread that has arrived waits where all others do: so the wait is the whole barrier. */
    class arrival_token
    {
    };
    arrival_token barrier_arrive() const
    {
        return arrival_token();
    }
    void barrier_wait(arrival_token &&, KOLO_CUDA_HERE) const
    {
        sync(file, line);
    }
    unsigned long long block_rank() const
    {
        return blockIdx.x + (unsigned long long)gridDim.x * (blockIdx.y + (unsigned long long)gridDim.y * blockIdx.z);
    }
    unsigned long long num_blocks() const
    {
        return (unsigned long long)gridDim.x * gridDim.y * gridDim.z;
    }
    unsigned long long thread_rank() const
    {
        return block_rank() * thread_block().size() + __kolo::thread_rank();
    }
    unsigned long long size() const
    {
        return num_blocks() * thread_block().size();
    }
    unsigned long long num_threads() const
    {
        return size();
    }
    dim3 group_dim() const
    {
        return gridDim;
    }
    dim3 dim_blocks() const
    {
        return gridDim;
    }
    dim3 block_index() const
    {
        return dim3(blockIdx.x, blockIdx.y, blockIdx.z);
    }
};

/** Neighbouring lanes, a power of two of them. */
class tile_base
{
  protected:
    unsigned width_;

    unsigned first() const
    {
        return __kolo::lane() & ~(width_ - 1);
    }
    unsigned mask() const
    {
        return (width_ == 32 ? 0xffffffffu : (1u << width_) - 1) << first();
    }

  public:
    explicit tile_base(unsigned width) : width_(width)
    {
    }
    unsigned lanes(KOLO_CUDA_HERE) const
    {
        return __kolo::present(mask(), file, line);
    }
    void sync(KOLO_CUDA_HERE) const
    {
        ::__syncwarp(mask(), file, line);
    }
    unsigned thread_rank() const
    {
        return __kolo::lane() & (width_ - 1);
    }
    unsigned size() const
    {
        unsigned threads = thread_block().size() - (__kolo::thread_rank() & ~(width_ - 1));

        return threads < width_ ? threads : width_;
    }
    unsigned num_threads() const
    {
        return size();
    }
    unsigned meta_group_rank() const
    {
        return __kolo::thread_rank() / width_;
    }
    unsigned meta_group_size() const
    {
        return (thread_block().size() + width_ - 1) / width_;
    }
    template <class T> T shfl(T value, int source, KOLO_CUDA_HERE) const
    {
        return ::__shfl_sync(mask(), value, source, (int)width_, file, line);
    }
    template <class T> T shfl_up(T value, unsigned delta, KOLO_CUDA_HERE) const
    {
        return ::__shfl_up_sync(mask(), value, delta, (int)width_, file, line);
    }
    template <class T> T shfl_down(T value, unsigned delta, KOLO_CUDA_HERE) const
    {
        return ::__shfl_down_sync(mask(), value, delta, (int)width_, file, line);
    }
    template <class T> T shfl_xor(T value, unsigned other, KOLO_CUDA_HERE) const
    {
        return ::__shfl_xor_sync(mask(), value, (int)other, (int)width_, file, line);
    }
    int any(int predicate, KOLO_CUDA_HERE) const
    {
        return ::__any_sync(mask(), predicate, file, line);
    }
    int all(int predicate, KOLO_CUDA_HERE) const
    {
        return ::__all_sync(mask(), predicate, file, line);
    }
    unsigned ballot(int predicate, KOLO_CUDA_HERE) const
    {
        return ::__ballot_sync(mask(), predicate, file, line) >> first();
    }
    template <class T> unsigned match_any(T value, KOLO_CUDA_HERE) const
    {
        return ::__match_any_sync(mask(), value, file, line) >> first();
    }
    template <class T> unsigned match_all(T value, int &all, KOLO_CUDA_HERE) const
    {
        return ::__match_all_sync(mask(), value, &all, file, line) >> first();
    }
};

/** Neighbouring threads that are more than a warp: 64 and more of them. */
template <unsigned Size> class large_tile
{
    /* Tiles of the same width have barriers next to each other, the next width behind them. */
    static constexpr unsigned first_barrier = Size == 64 ? 0 : Size == 128 ? 16 : Size == 256 ? 24 : 28;

  public:
    void sync(KOLO_CUDA_HERE) const
    {
        if (Size >= thread_block().size())
            ::__syncthreads(file, line);
        else
            __koloTileBarrier(first_barrier + meta_group_rank(), size(), file, line);
    }
    unsigned thread_rank() const
    {
        return __kolo::thread_rank() % Size;
    }
    unsigned size() const
    {
        unsigned threads = thread_block().size() - __kolo::thread_rank() / Size * Size;

        return threads < Size ? threads : Size;
    }
    unsigned num_threads() const
    {
        return size();
    }
    unsigned meta_group_rank() const
    {
        return __kolo::thread_rank() / Size;
    }
    unsigned meta_group_size() const
    {
        return (thread_block().size() + Size - 1) / Size;
    }
    /** Of each warp's one value, all that the tile has: `use(values, n, mine)` is called with them. */
    template <class T, class F> T with_values(T of_warp, F use, KOLO_CUDA_HERE) const
    {
        alignas(T) static thread_local unsigned char room[32][sizeof(T)]; /* the block's, as all that it shares */
        unsigned first = __kolo::thread_rank() / Size * (Size / 32), mine = thread_rank() / 32;
        T *values = reinterpret_cast<T *>(room[first]);

        if (thread_rank() % 32 == 0) memcpy((void *)&values[mine], &of_warp, sizeof(T));
        sync(file, line);
        T result = use(values, (size() + 31) / 32, mine);
        sync(file, line);
        return result;
    }
    template <class T> T shfl(T value, unsigned source, KOLO_CUDA_HERE) const
    {
        T of_warp = tile_base(32).shfl(value, (int)(source % 32), file, line);

        return with_values(
            of_warp, [=](const T *values, unsigned, unsigned) { return values[source % Size / 32]; }, file, line);
    }
    int any(int predicate, KOLO_CUDA_HERE) const
    {
        return with_values(
            tile_base(32).any(predicate, file, line),
            [](const int *values, unsigned n, unsigned) {
                int result = 0;
                for (unsigned i = 0; i < n; i++) result |= values[i];
                return result;
            },
            file, line);
    }
    int all(int predicate, KOLO_CUDA_HERE) const
    {
        return !any(!predicate, file, line);
    }
};

template <unsigned Size> class small_tile : public tile_base
{
  public:
    small_tile() : tile_base(Size)
    {
    }
};

template <unsigned Size, class Parent = thread_block>
class thread_block_tile : public std::conditional_t<(Size > 32), large_tile<Size>, small_tile<Size>>
{
    static_assert(Size && Size <= 1024 && !(Size & (Size - 1)), "tiles have a power of two of threads, up to 1024");

  public:
    thread_block_tile() = default;
    template <class Other> thread_block_tile(const thread_block_tile<Size, Other> &)
    {
    }
};

/** Lanes of a warp, in their order. */
class coalesced_group
{
    unsigned mask_;

    /* The lane of rank `n`. */
    unsigned lane_of(unsigned n) const
    {
        unsigned rest = mask_;

        while (n--) rest &= rest - 1;
        return (unsigned)__builtin_ctz(rest);
    }
    unsigned packed(unsigned lanes) const
    {
        unsigned result = 0, n = 0;

        for (unsigned rest = mask_; rest; rest &= rest - 1, n++) result |= (lanes >> __builtin_ctz(rest) & 1u) << n;
        return result;
    }

  public:
    explicit coalesced_group(unsigned mask) : mask_(mask)
    {
    }
    unsigned lanes() const
    {
        return mask_;
    }
    void sync(KOLO_CUDA_HERE) const
    {
        ::__syncwarp(mask_, file, line);
    }
    unsigned thread_rank() const
    {
        return (unsigned)__builtin_popcount(mask_ & ((1u << __kolo::lane()) - 1));
    }
    unsigned size() const
    {
        return (unsigned)__builtin_popcount(mask_);
    }
    unsigned num_threads() const
    {
        return size();
    }
    unsigned meta_group_rank() const
    {
        return 0;
    }
    unsigned meta_group_size() const
    {
        return 1;
    }
    /** The lanes of it that say the same. */
    template <class T> coalesced_group of_same(T value, KOLO_CUDA_HERE) const
    {
        return coalesced_group(::__match_any_sync(mask_, value, file, line));
    }
    /** Its lanes by their order, `width` each. */
    coalesced_group part(unsigned width) const
    {
        unsigned first = thread_rank() / width * width, lanes = 0;

        for (unsigned n = first; n < first + width && n < size(); n++) lanes |= 1u << lane_of(n);
        return coalesced_group(lanes);
    }
    template <class T> T shfl(T value, unsigned source, KOLO_CUDA_HERE) const
    {
        return __kolo::take_from(mask_, value, lane_of(source % size()), file, line);
    }
    template <class T> T shfl_up(T value, unsigned delta, KOLO_CUDA_HERE) const
    {
        unsigned rank = thread_rank();

        return __kolo::take_from(mask_, value, lane_of(rank < delta ? rank : rank - delta), file, line);
    }
    template <class T> T shfl_down(T value, unsigned delta, KOLO_CUDA_HERE) const
    {
        unsigned rank = thread_rank();

        return __kolo::take_from(mask_, value, lane_of(delta >= size() - rank ? rank : rank + delta), file, line);
    }
    int any(int predicate, KOLO_CUDA_HERE) const
    {
        return ::__any_sync(mask_, predicate, file, line);
    }
    int all(int predicate, KOLO_CUDA_HERE) const
    {
        return ::__all_sync(mask_, predicate, file, line);
    }
    unsigned ballot(int predicate, KOLO_CUDA_HERE) const
    {
        return packed(::__ballot_sync(mask_, predicate, file, line));
    }
    template <class T> unsigned match_any(T value, KOLO_CUDA_HERE) const
    {
        return packed(::__match_any_sync(mask_, value, file, line));
    }
    template <class T> unsigned match_all(T value, int &all, KOLO_CUDA_HERE) const
    {
        return packed(::__match_all_sync(mask_, value, &all, file, line));
    }
};

/** Any of these. */
class thread_group
{
    enum { BLOCK, TILE, LANES } kind_;
    unsigned width_; /* of a tile; the lanes */

  public:
    thread_group(const thread_block &) : kind_(BLOCK), width_(0)
    {
    }
    thread_group(const coalesced_group &group) : kind_(LANES), width_(group.lanes())
    {
    }
    template <unsigned Size, class Parent>
    thread_group(const thread_block_tile<Size, Parent> &) : kind_(TILE), width_(Size)
    {
        static_assert(Size <= 32, "a thread_group has up to 32 threads, or is a block");
    }
    explicit thread_group(unsigned width) : kind_(TILE), width_(width)
    {
    }
    void sync(KOLO_CUDA_HERE) const
    {
        if (kind_ == BLOCK) ::__syncthreads(file, line);
        if (kind_ == TILE) tile_base(width_).sync(file, line);
        if (kind_ == LANES) coalesced_group(width_).sync(file, line);
    }
    unsigned size() const
    {
        return kind_ == BLOCK  ? thread_block().size()
               : kind_ == TILE ? tile_base(width_).size()
                               : coalesced_group(width_).size();
    }
    unsigned num_threads() const
    {
        return size();
    }
    unsigned thread_rank() const
    {
        return kind_ == BLOCK  ? __kolo::thread_rank()
               : kind_ == TILE ? tile_base(width_).thread_rank()
                               : coalesced_group(width_).thread_rank();
    }
};

/** Memory that GPUs need for tiles of more than a warp. */
template <unsigned MaxBlockSize = 1024> struct block_tile_memory {
    char unused;
};

inline thread_block this_thread_block()
{
    return thread_block();
}

template <unsigned Max> inline thread_block this_thread_block(block_tile_memory<Max> &)
{
    return thread_block();
}

inline grid_group this_grid()
{
    return grid_group();
}

inline coalesced_group coalesced_threads(KOLO_CUDA_HERE)
{
    return coalesced_group(::__activemask(file, line));
}

template <unsigned Size, class Parent> inline thread_block_tile<Size, Parent> tiled_partition(const Parent &)
{
    return thread_block_tile<Size, Parent>();
}

/** Of a size that is known when it runs: 1 to 32, a power of two. */
inline thread_group tiled_partition(const thread_group &, unsigned width)
{
    return thread_group(width);
}

inline coalesced_group tiled_partition(const coalesced_group &group, unsigned width)
{
    return group.part(width);
}

/** The threads of a group of one warp with the same label. */
template <class T> inline coalesced_group labeled_partition(const coalesced_group &group, T label, KOLO_CUDA_HERE)
{
    return group.of_same(label, file, line);
}

template <unsigned Size, class Parent, class T>
inline coalesced_group labeled_partition(const thread_block_tile<Size, Parent> &tile, T label, KOLO_CUDA_HERE)
{
    return coalesced_group(tile.lanes()).of_same(label, file, line);
}

template <class Group> inline coalesced_group binary_partition(const Group &group, bool label, KOLO_CUDA_HERE)
{
    return labeled_partition(group, (int)label, file, line);
}

/** One thread of the group calls it. */
template <class Group, class F, class... A> inline void invoke_one(const Group &group, F &&f, A &&...arguments)
{
    if (group.thread_rank() == 0) static_cast<F &&>(f)(static_cast<A &&>(arguments)...);
}

template <class Group> inline void sync(const Group &group, KOLO_CUDA_HERE)
{
    group.sync(file, line);
}

template <class Group> inline auto thread_rank(const Group &group)
{
    return group.thread_rank();
}

template <class Group> inline auto group_size(const Group &group)
{
    return group.size();
}

} // namespace cooperative_groups

#endif
