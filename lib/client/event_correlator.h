// Decides what to do with a recorded event: create a new Event object, increase the count of an earlier
// one, or drop it because the object sends too many. Like client-go: ten similar events with different
// messages within ten minutes are folded into one; an object may send 25 events at once, and then one per
// five minutes.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "lib/api/types.h"
#include "lib/base/clock.h"

namespace keelson::client {

class EventCorrelator {  // not thread safe
 public:
  EventCorrelator(std::string component, std::string host)
      : component_(std::move(component)), host_(std::move(host)) {}

  struct Outcome {
    corev1::Event event;  // complete; a count above 1 means that it was sent before
    uint64_t key;         // for Renamed()
  };
  // nullopt: dropped as spam.
  std::optional<Outcome> Correlate(const corev1::ObjectReference& object, std::string_view type,
                                   std::string_view reason, std::string message, WallTime now);
  // The event was created under another name, or again: later counts go to `name`.
  void Renamed(uint64_t key, const std::string& name);

  static constexpr size_t kMaxEntries = 4096;

 private:
  struct Series {
    std::string name;
    int count = 0;
    WallTime first;
  };
  struct Similar {
    std::vector<uint64_t> messages;  // hashes
    WallTime last;
  };
  struct Bucket {
    double tokens;
    WallTime last;
  };
  // A map that forgets its oldest keys. Keys are hashes: it remembers thousands of deleted pods, and their
  // texts would take most of the memory.
  template <typename T>
  struct Bounded {
    std::unordered_map<uint64_t, T> map;
    std::deque<uint64_t> order;
    T& At(uint64_t key, const T& initial);
  };

  bool TakeToken(uint64_t object, WallTime now);
  bool FoldMessage(uint64_t key, std::string_view message, WallTime now);
  std::string NewName(const corev1::ObjectReference& object, WallTime now);

  const std::string component_, host_;
  Bounded<Series> series_;
  Bounded<Similar> similar_;
  Bounded<Bucket> buckets_;
  int64_t last_stamp_ = 0;
};

}  // namespace keelson::client
