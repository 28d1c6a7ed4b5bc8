// Decides what becomes of a recorded event: a new Event object, a higher count on one that was sent before,
// or nothing when an object floods us. After client-go: similar events with ever new messages are folded
// into one after ten within ten minutes; an object gets 25 events at once and one in five minutes then.
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
    corev1::Event event;  // complete; count above 1 means that it has been sent before
    uint64_t key;         // for Renamed()
  };
  // nullopt: dropped as spam.
  std::optional<Outcome> Correlate(const corev1::ObjectReference& object, std::string_view type,
                                   std::string_view reason, std::string message, WallTime now);
  // The event had to be created under another name or anew: later counts go there.
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
  // A map that forgets its oldest keys. They are hashes: thousands of pods that have gone are remembered
  // here, and the texts would be most of it.
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
