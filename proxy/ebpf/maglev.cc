#include "proxy/ebpf/maglev.h"

#include <algorithm>
#include <bit>
#include <numeric>
#include <tuple>

namespace keelson::proxy::ebpf {
namespace {

constexpr size_t kLeast = 512, kShare = 32, kMost = 65536;

// FNV-1a, and a finisher that makes low bits as good as high ones.
uint64_t HashOf(const Backend& endpoint, uint64_t seed) {
  uint64_t hash = 0xcbf29ce484222325 ^ seed;
  auto take = [&](uint8_t byte) { hash = (hash ^ byte) * 0x100000001b3; };
  for (char c : endpoint.ip.bytes()) take(static_cast<uint8_t>(c));
  take(static_cast<uint8_t>(endpoint.port >> 8));
  take(static_cast<uint8_t>(endpoint.port));
  hash ^= hash >> 33;
  hash *= 0xff51afd7ed558ccd;
  return hash ^ hash >> 33;
}

// The order in which an endpoint asks for places: all of them, each once, for an odd step has no divisor in
// common with a power of two.
struct Wishes {
  uint16_t index;
  size_t next, step;
};

}  // namespace

size_t MaglevSize(size_t endpoints) {
  return std::bit_ceil(std::max(kLeast, kShare * std::min(endpoints, kMost)));
}

std::vector<uint16_t> MaglevTable(const std::vector<Backend>& endpoints) {
  const size_t size = MaglevSize(endpoints.size()), count = std::min(endpoints.size(), kMost);
  std::vector<uint16_t> out(size, 0);
  if (count == 0) return out;
  std::vector<uint16_t> order(count);
  std::iota(order.begin(), order.end(), uint16_t{0});
  std::sort(order.begin(), order.end(), [&](uint16_t a, uint16_t b) {
    return std::tie(endpoints[a].ip, endpoints[a].port) < std::tie(endpoints[b].ip, endpoints[b].port);
  });
  std::vector<Wishes> all;
  for (uint16_t index : order) {
    all.push_back({index, HashOf(endpoints[index], 0) % size, HashOf(endpoints[index], 1) % size | 1});
  }
  std::vector<bool> taken(size);
  for (size_t filled = 0; filled < size;) {
    for (Wishes& one : all) {
      while (taken[one.next]) one.next = (one.next + one.step) % size;
      taken[one.next] = true;
      out[one.next] = one.index;
      if (++filled == size) break;
    }
  }
  return out;
}

}  // namespace keelson::proxy::ebpf
